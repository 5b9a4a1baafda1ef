# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # set and used by the scripts that source this file
#
# A Debian 13 in a folder with backports' QEMU, virglrenderer and Mesa, whose Vulkan in software stands for a GPU. The
# cache keeps what would need the network or much time:
#
#   $QCU_CACHE/fresh/vulkan-VERSION.tar.zst  the Debian with its packages and the guest's kernel
#                   /vulkan                  its QCU_CACHE

# vulkan_folders: sets what vulkan_debian needs, and what is shown there: the repository, $build and the toolkit.
vulkan_folders() {
	local nvcc cuda
	nvcc=$(command -v "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" || command -v nvcc) || die "the CUDA Toolkit is missing"
	cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
	release=13 dist=trixie
	make_cache
	store=$cache/fresh/vulkan
	mkdir -p "$store"
	folders=("$root:/qcuda:ro" "$build:/build:ro" "$cuda:/cuda:ro" "$store:/root/.cache/qcuda")
}

# Mesa comes from backports as QEMU does, whose modules need that one.
install_vulkan() {
	local uri get=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends)
	uri=$(debian_uri 2>/dev/null) || skip "this machine's apt does not say where Debian is to be had"
	echo "deb $uri trixie-backports main" >"$new/etc/apt/sources.list.d/backports.list"
	step "installing QEMU, virglrenderer and Mesa"
	enter apt-get -q --error-on=any update >"$work/log" 2>&1 || fail "$work/log" "cannot read the package lists"
	enter "${get[@]}" install linux-headers-amd64 g++ make busybox-static cpio kmod procps xz-utils zstd file binutils \
		libseccomp2 liblz4-1 libcap2 >"$work/log" 2>&1 || fail "$work/log" "cannot install the packages"
	enter "${get[@]}" -t trixie-backports install qemu-system-x86 qemu-system-modules-opengl virgl-server \
		mesa-vulkan-drivers libegl1 libegl-mesa0 libopengl0 libgl1-mesa-dri libgbm1 vulkan-tools libvulkan-dev \
		glslang-tools libvirt-clients libvirt-daemon libvirt-daemon-driver-qemu python3 >"$work/log" 2>&1 ||
		fail "$work/log" "cannot install the packages"
	enter /qcuda/scripts/build-guest >"$work/log" 2>&1 || fail "$work/log" "cannot fetch the guest's kernel"
}

# Puts that Debian into the folder $new.
vulkan_debian() {
	kept_debian vulkan-2 install_vulkan
}

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Vulkan beside CUDA in one guest: a Debian 13 in a folder with backports' QEMU, virglrenderer and Mesa, whose
# Vulkan in software stands for a GPU. Programs are compiled there, and run natively and in VMs
# (vulkan_inside.sh). The device, the library and CUDA are those that were built here. The cache keeps what
# would need the network or much time:
#
#   $QCU_CACHE/fresh/vulkan-VERSION.tar.zst  the Debian with its packages and the guest's kernel
#                   /vulkan                  its QCU_CACHE
#
# Exit code 77: this machine cannot run the test, and the last line says why.
# shellcheck source=scripts/lib.sh
. "$(dirname "$(readlink -f "$0")")/../../scripts/lib.sh" || exit 2
# shellcheck source=tests/fresh/lib.sh
. "$root/tests/fresh/lib.sh" || exit 2

case ${1:-} in
'') ;;
--help | -h) echo 'usage: tests/fresh/vulkan.sh' && exit ;;
*) die "unknown argument $1 (try --help)" ;;
esac

build=$(realpath "${QCU_BUILD:-${B:-$root/build}}")
need_root_folder
nvcc=$(command -v "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" || command -v nvcc) || die "the CUDA Toolkit is missing"
cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
release=13 dist=trixie self=vulkan
make_cache
store=$cache/fresh/vulkan
mkdir -p "$store"
folders=("$root:/qcuda:ro" "$build:/build:ro" "$cuda:/cuda:ro" "$store:/root/.cache/qcuda")

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
		glslang-tools libvirt-clients libvirt-daemon libvirt-daemon-driver-qemu python3 >"$work/log" 2>&1 || fail "$work/log" "cannot install the packages"
}

prepare_vulkan() {
	lock fresh-13
	bare_debian
	install_vulkan
	enter /qcuda/scripts/build-guest >"$work/log" 2>&1 || fail "$work/log" "cannot fetch the guest's kernel"
	rm -f "$new"/var/cache/apt/archives/*.deb
	tar -C "$new" --one-file-system -c . | zstd -q -T0 -3 >"$work/packed" || die "cannot pack the Debian; is the disk full?"
	rm -f "$cache"/fresh/vulkan-*.tar.zst
	mv "$work/packed" "$machine"
}

main() {
	local bare new machine=$cache/fresh/vulkan-2.tar.zst
	lock vulkan
	need_space "$cache" 4000
	scratch
	new=$work/root
	mkdir "$new"
	if [ -e "$machine" ]; then
		unpack "$machine"
	else
		prepare_vulkan
	fi
	step "ready"
	enter /qcuda/tests/fresh/vulkan_inside.sh 2>&1 | tee "$work/log" || die "not all went well"
	! grep '^@FAIL' "$work/log" || die "not all went well"
	step "done"
}

# In one piece, because the shell reads a script while it runs, and it may be edited.
main "$@"; exit

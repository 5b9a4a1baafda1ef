# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # set and used by the scripts that source this file
#
# The Debian with systemd, a kernel and a compiler that systemd.sh and host.sh use:
#
#   $QCU_CACHE/fresh/systemd-RELEASE-VERSION.tar.zst

# choose_release RELEASE: without one, this machine's, or 13.
choose_release() {
	release=$1
	# shellcheck source=/dev/null
	[ -n "$release" ] || release=$(. /etc/os-release && [ "${VERSION_CODENAME:-}" = bookworm ] && echo 12 || echo 13)
	dist=$([ "$release" = 12 ] && echo bookworm || echo trixie)
	# Debian 13's has docker, too (systemd_inside.sh).
	contents=$([ "$release" = 12 ] && echo 2 || echo 3)
}

# The packages are used once. xz takes seconds of processors for the kernel alone, and in an emulated guest to unpack them.
export DPKG_DEB_COMPRESSOR_TYPE=none
build=$(realpath "${QCU_BUILD:-${B:-$root/build}}")
kind=systemd
packages=(adduser ca-certificates dbus dkms dosfstools e2fsprogs fdisk g++ kmod linux-headers-amd64 linux-image-amd64
	make mtools syslinux syslinux-common systemd-sysv udev zstd)

# What a Debian of its own has besides packages. Left out is what costs time at each boot and is of no use here.
finish() {
	enter /qcuda/tests/fresh/systemd_inside.sh finish >"$work/log" 2>&1 || fail "$work/log" "the Debian cannot be completed"
}

# need_systemd: skips the test if systemd cannot run in a folder here, or packages cannot be made.
need_systemd() {
	need_root_folder
	unshare --mount --cgroup sh -c 'mount --make-rprivate / && mount -t cgroup2 cgroup2 /mnt' 2>/dev/null ||
		skip "control groups cannot be mounted here, which systemd needs"
	"$root/scripts/deps" --no-cuda --deb >/dev/null || skip "the packages for making packages cannot be installed"
}

# use_host NAME SCRIPT SECONDS: makes the Debian $new with the host's packages, by `SCRIPT install`, and lets `SCRIPT use`
# run in it under systemd. SCRIPT is a file below tests/fresh, and its last line says that all is well.
use_host() {
	local bare p inside=/qcuda/tests/fresh/$2 archives
	make_cache
	archives=$cache/fresh/$1-$release
	mkdir -p "$archives"
	lock "$self"
	need_space "$cache" 4000
	scratch
	new=$work/root
	mkdir -p "$new" "$work/packages"
	folders=("$root:/qcuda:ro" "$work/packages:/packages" "$build/tests/guest:/programs:ro" "$archives:/var/cache/apt/archives")
	bare_debian
	step "Debian $release is ready; making packages"
	for p in qcuda-host qcuda-vm qcuda-qemu; do
		make_deb "$work/packages" --version 0.1~test --only "$p" || die "no package $p"
	done
	step "installing them"
	enter "$inside" install >"$work/log" 2>&1 || fail "$work/log" "they cannot be installed"
	step "systemd starts"
	with_systemd $(($3 * ${QCU_SLOW:-1})) "$inside use"
	grep -x "$1: all is well" "$new/root/said" >/dev/null || {
		tail -n 5 "$work/systemd.log" | tr -c '\t\n -~' '?'
		die "not all went well"
	}
}

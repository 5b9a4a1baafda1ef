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
}

build=$(realpath "${QCU_BUILD:-${B:-$root/build}}")
kind=systemd contents=2
packages=(adduser ca-certificates dbus dkms dosfstools e2fsprogs fdisk g++ kmod linux-headers-amd64 linux-image-amd64
	make mtools syslinux syslinux-common systemd-sysv udev zstd)

# What a Debian of its own has besides packages. Left out is what costs time at each boot and is of no use here.
finish() {
	enter /qcuda/tests/fresh/systemd_inside.sh finish >"$work/log" 2>&1 || fail "$work/log" "the Debian cannot be completed"
}

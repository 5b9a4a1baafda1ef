#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# qcu vm --disk --vulkan: a Debian 13 with a disk and systemd, as in systemd.sh, that has Mesa and the guest package,
# boots in the Debian of vulkan.sh, whose QEMU has OpenGL. An ordinary user runs programs there, and qcu-doctor says what
# it says (vulkan_guest.sh). Besides what vulkan.sh keeps, the cache keeps
#
#   $QCU_CACHE/fresh/vulkan-guest-VERSION.tar.zst  the guest's Debian
#
# Exit code 77: this machine cannot run the test, and the last line says why.
# shellcheck source=scripts/lib.sh
. "$(dirname "$(readlink -f "$0")")/../../scripts/lib.sh" || exit 2
# shellcheck source=tests/fresh/lib.sh
. "$root/tests/fresh/lib.sh" || exit 2
# shellcheck source=tests/fresh/vulkan_lib.sh
. "$root/tests/fresh/vulkan_lib.sh" || exit 2

case ${1:-} in
'') ;;
--help | -h) echo 'usage: tests/fresh/vulkan_disk.sh' && exit ;;
*) die "unknown argument $1 (try --help)" ;;
esac

build=$(realpath "${QCU_BUILD:-${B:-$root/build}}")
need_root_folder
"$root/scripts/deps" --no-cuda --deb >/dev/null || skip "the packages for making packages cannot be installed"
self=vulkan-disk
vulkan_folders

# prepare_guest: systemd.sh's Debian, with Mesa.
prepare_guest() {
	bare_debian
	step "installing Mesa"
	enter env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install mesa-vulkan-drivers vulkan-tools \
		>"$work/log" 2>&1 || fail "$work/log" "cannot install the packages"
	keep_debian "$machine"
}

make_disk() {
	local new=$work/guest machine=$cache/fresh/vulkan-guest-1.tar.zst folders=("$root:/qcuda:ro" "$work/disk:/disk"
		"$work/packages:/packages:ro") kind contents packages
	mkdir "$new"
	# shellcheck source=tests/fresh/systemd_lib.sh
	. "$root/tests/fresh/systemd_lib.sh"
	if [ -e "$machine" ]; then
		unpack "$machine"
	else
		prepare_guest
	fi
	step "making the guest package"
	QCU_BUILD=$build DEBFULLNAME='The qCUDA authors' DEBEMAIL=qcuda@packages.debian.org \
		"$root/scripts/deb/make-deb" --version 0.1~test --only qcuda-guest >"$work/made" || die "no package"
	xargs -a "$work/made" cp -t "$work/packages"
	step "installing it"
	enter sh -c 'DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install /packages/qcuda-guest_*.deb &&
		usermod -aG render ada' >"$work/log" 2>&1 || fail "$work/log" "the package cannot be installed"
	step "making a disk"
	enter /qcuda/tests/fresh/systemd_inside.sh disk >"$work/log" 2>&1 || fail "$work/log" "no disk"
	sbin mke2fs -q -F -t ext4 -O '^has_journal' -E offset=$((65 << 20)) -d "$new" "$work/disk/disk.img" 2943M ||
		die "no file system"
	rm -rf "$new"
}

main() {
	local bare new machine
	vulkan_debian
	mkdir -p "$work"/{packages,share,disk}
	make_disk
	folders+=("$work/disk:/disk" "$work/packages:/packages:ro" "$work/share:/share")
	step "ready"
	enter /qcuda/tests/fresh/vulkan_inside.sh disk || die "not all went well"
	step "done"
}

# In one piece, because the shell reads a script while it runs, and it may be edited.
main "$@"; exit

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A machine with newer parts than this one's: a Debian 13 in a folder with QEMU and a kernel from its
# backports. There, the driver is compiled for each kernel, and its tests and some programs run in a VM
# that the machine's own QEMU runs (newer_inside.sh). The device, the library and the programs are those
# that were built here. The cache keeps what would need the network or much time:
#
#   $QCU_CACHE/fresh/newer-VERSION.tar.zst   the Debian with its packages
#                   /newer                   its QCU_CACHE, with the guests' kernels
#
# Exit code 77: this machine cannot run the test, and the last line says why.
# shellcheck source=scripts/lib.sh
. "$(dirname "$(readlink -f "$0")")/../../scripts/lib.sh" || exit 2
# shellcheck source=tests/fresh/lib.sh
. "$root/tests/fresh/lib.sh" || exit 2

case ${1:-} in
'') ;;
--help | -h) echo 'usage: tests/fresh/newer.sh' && exit ;;
*) die "unknown argument $1 (try --help)" ;;
esac

build=$(realpath "${QCU_BUILD:-${B:-$root/build}}")
need_root_folder
newer_folders

main() {
	local bare new machine
	newer_debian
	step "ready"
	enter /qcuda/tests/fresh/newer_inside.sh 2>&1 | tee "$work/log" || die "not all went well"
	! grep -B 8 '^@FAIL' "$work/log" || die "not all went well"
	step "done"
}

# In one piece, because the shell reads a script while it runs, and it may be edited.
main "$@"; exit

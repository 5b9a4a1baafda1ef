#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The packages of the host in a Debian that has nothing else of qCUDA: they are installed with apt, systemd starts
# the unit qcu-device@, which serves a VM, and starts it again when the VM has ended; the packaged launcher runs a
# program; and after they are removed nothing is left (host_inside.sh). systemd is the first process of that Debian,
# which is the folder that systemd.sh makes a disk of. The cache keeps the Debian, and the packages that ours need.
#
# Exit code 77: this machine cannot run the test, and the last line says why.
# shellcheck source=scripts/lib.sh
. "$(dirname "$(readlink -f "$0")")/../../scripts/lib.sh" || exit 2
# shellcheck source=tests/fresh/lib.sh
. "$root/tests/fresh/lib.sh" || exit 2
# shellcheck source=tests/fresh/systemd_lib.sh
. "$root/tests/fresh/systemd_lib.sh" || exit 2

case ${1:-} in
'' | 12 | 13) choose_release "${1:-}" ;;
--help | -h) echo 'usage: tests/fresh/host.sh [12 | 13]' && exit ;;
*) die "unknown argument $1 (try --help)" ;;
esac
self=host-$release
need_systemd

main() {
	local new
	use_host host host_inside.sh 300
	step "removing them"
	enter /qcuda/tests/fresh/host_inside.sh remove || die "something was left"
	step "done"
}

# In one piece, because the shell reads a script while it runs, and it may be edited.
main "$@"; exit

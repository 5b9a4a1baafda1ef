#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Jobs of Slurm: a Debian with Debian's own slurmctld, munge and two slurmd, which stand for two nodes, and with the
# packages of qCUDA's host, set up as docs/vm/slurm.md says. Users who are strangers to one another submit jobs there
# (inside.sh). The cache keeps the Debian, and the packages that ours need.
#
# Exit code 77: this machine cannot run the test, and the last line says why.
# shellcheck source=scripts/lib.sh
. "$(dirname "$(readlink -f "$0")")/../../../scripts/lib.sh" || exit 2
# shellcheck source=tests/fresh/lib.sh
. "$root/tests/fresh/lib.sh" || exit 2
# shellcheck source=tests/fresh/systemd_lib.sh
. "$root/tests/fresh/systemd_lib.sh" || exit 2

case ${1:-} in
'') ;;
--help | -h) echo 'usage: tests/fresh/slurm/slurm.sh' && exit ;;
*) die "unknown argument $1 (try --help)" ;;
esac
choose_release ''
self=slurm-$release
kind=slurm contents=1
packages=(adduser ca-certificates dbus munge procps python3 slurm-client slurmctld slurmd systemd-sysv zstd)

# Nothing starts by itself: the page says what to start.
finish() {
	enter systemctl mask getty.target systemd-resolved.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
		>"$work/log" 2>&1 || fail "$work/log" "the Debian cannot be completed"
}

need_systemd

main() {
	local new
	use_host slurm slurm/inside.sh 1200
	step "done"
}

# In one piece, because the shell reads a script while it runs, and it may be edited.
main "$@"; exit

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

need_root_folder
unshare --mount --cgroup sh -c 'mount --make-rprivate / && mount -t cgroup2 cgroup2 /mnt' 2>/dev/null ||
	skip "control groups cannot be mounted here, which systemd needs"
"$root/scripts/deps" --no-cuda --deb >/dev/null || skip "the packages for making packages cannot be installed"

main() {
	local bare new p made archives=$cache/fresh/slurm-$release
	make_cache
	mkdir -p "$archives"
	lock "$self"
	need_space "$cache" 4000
	scratch
	new=$work/root
	mkdir -p "$new" "$work/packages"
	folders=("$root:/qcuda:ro" "$work/packages:/packages" "$build/tests/guest:/programs:ro" "$archives:/var/cache/apt/archives")
	bare_debian
	step "Debian $release is ready; making packages"
	export DPKG_DEB_COMPRESSOR_TYPE=gzip
	for p in qcuda-host qcuda-vm qcuda-qemu; do
		made=$(QCU_BUILD=$build DEBFULLNAME='The qCUDA authors' DEBEMAIL=qcuda@packages.debian.org \
			"$root/scripts/deb/make-deb" --version 0.1~test --only "$p") || die "no package $p"
		cp "$made" "$work/packages/"
	done
	step "installing them"
	enter /qcuda/tests/fresh/slurm/inside.sh install >"$work/log" 2>&1 || fail "$work/log" "they cannot be installed"
	step "systemd starts"
	with_systemd $((1200 * ${QCU_SLOW:-1})) "/qcuda/tests/fresh/slurm/inside.sh use"
	grep -x 'slurm: all is well' "$new/root/said" >/dev/null || {
		tail -n 5 "$work/systemd.log" | tr -c '\t\n -~' '?'
		die "not all went well"
	}
	step "done"
}

# In one piece, because the shell reads a script while it runs, and it may be edited.
main "$@"; exit

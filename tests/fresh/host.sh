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
need_root_folder
unshare --mount --cgroup sh -c 'mount --make-rprivate / && mount -t cgroup2 cgroup2 /mnt' 2>/dev/null ||
	skip "control groups cannot be mounted here, which systemd needs"
"$root/scripts/deps" --no-cuda --deb >/dev/null || skip "the packages for making packages cannot be installed"

main() {
	local bare new p made archives=$cache/fresh/host-$release
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
	# The kernel alone takes xz 8 s of processors, gzip 3.
	export DPKG_DEB_COMPRESSOR_TYPE=gzip
	for p in qcuda-host qcuda-vm qcuda-qemu; do
		made=$(QCU_BUILD=$build DEBFULLNAME='The qCUDA authors' DEBEMAIL=qcuda@packages.debian.org \
			"$root/scripts/deb/make-deb" --version 0.1~test --only "$p") || die "no package $p"
		cp "$made" "$work/packages/"
	done
	step "installing them"
	enter /qcuda/tests/fresh/host_inside.sh install >"$work/log" 2>&1 || fail "$work/log" "they cannot be installed"
	step "systemd starts"
	with_systemd $((300 * ${QCU_SLOW:-1})) "/qcuda/tests/fresh/host_inside.sh use"
	grep -x 'host: all is well' "$new/root/said" >/dev/null || {
		tail -n 5 "$work/systemd.log" | tr -c '\t\n -~' '?'
		die "not all went well"
	}
	step "removing them"
	enter /qcuda/tests/fresh/host_inside.sh remove || die "something was left"
	step "done"
}

# In one piece, because the shell reads a script while it runs, and it may be edited.
main "$@"; exit

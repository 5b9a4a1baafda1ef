#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Makes the Debian packages twice, as an older and a newer version, has lintian look at them, and installs,
# upgrades, removes and purges them in a Debian 13 in a folder (packages_inside.sh). That Debian is the one
# of newer.sh: it has two kernels' headers, for which DKMS builds the driver.
#
# Exit code 77: this machine cannot run the test, and the last line says why.
# shellcheck source=scripts/lib.sh
. "$(dirname "$(readlink -f "$0")")/../../scripts/lib.sh" || exit 2
# shellcheck source=tests/fresh/lib.sh
. "$root/tests/fresh/lib.sh" || exit 2

case ${1:-} in
'') ;;
--help | -h) echo 'usage: tests/fresh/packages.sh' && exit ;;
*) die "unknown argument $1 (try --help)" ;;
esac

build=$(realpath "${QCU_BUILD:-${B:-$root/build}}")
need_root_folder
"$root/scripts/deps" --no-cuda --deb >/dev/null || skip "the packages for making packages cannot be installed"
newer_folders

refused() {
	local rc=0
	"$root/scripts/deb/make-deb" "$@" >/dev/null 2>&1 || rc=$?
	[ $rc -eq 2 ] || die "make-deb $*: exit code $rc, expected 2"
}

main() {
	local bare new machine v
	refused --speed
	refused --version
	refused --version 'one two'
	newer_debian
	for v in 0.1~old 0.1~test; do
		step "making version $v"
		mkdir -p "$new/root/packages/$v"
		make_deb "$new/root/packages/$v" --version "$v" || die "no packages"
	done
	step "lintian"
	lintian --allow-root --fail-on error,warning "$new/root/packages/$v"/*.deb || die "lintian is not content"
	enter /qcuda/tests/fresh/packages_inside.sh 2>&1 | tee "$work/log" || {
		! grep 'Unable to fetch\|Temporary failure' "$work/log" >/dev/null || fail "$work/log" "not from the new machine"
		die "not all went well"
	}
	step "done"
}

# In one piece, because the shell reads a script while it runs, and it may be edited.
main "$@"; exit

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# On a machine with a GPU: runs programs whose kernel fails in VMs with --faults and without, and checks that codes and stdout are the
# same and that stderr names the kernel. A minute under KVM, a few without.
#
#	faults.sh [OUT]		OUT (default: the current folder) gets faults.txt
#
# GPU names the backend (cuda). Uses the bundle if there is one.
set -uo pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
[ ! -e "$root/.bundle/BUNDLE" ] || root=$root/.bundle
out=$(cd "${1:-.}" && pwd) || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
programs=${PROGRAMS:-$root/build/tests/guest}
wrong=0

# say WORD...: a line of the result.
say() {
	echo "$*" | tee -a "$out/faults.txt"
}

# in_vm NAME OPTION... PROGRAM ARG...: leaves NAME.1, NAME.2 and NAME.code.
in_vm() {
	local name=$work/$1
	shift
	"$root/scripts/qcu" run --gpu "${GPU:-cuda}" --share "$work" "$@" </dev/null >"$name.1" 2>"$name.2"
	echo $? >"$name.code"
}

: >"$out/faults.txt"
while read -r program kernel argument; do
	cp "$programs/$program" "$work/"
	in_vm plain "$work/$program" "$argument"
	in_vm faults --faults "$work/$program" "$argument"
	cat "$work/faults.2" >>"$out/faults.txt"
	if [ "$(cat "$work/faults.code")" = 0 ] && cmp -s "$work/plain.1" "$work/faults.1"; then
		say "ok   $program $argument: codes and output are the same"
	else
		say "FAIL $program $argument: $(cat "$work/faults.code"), without --faults $(cat "$work/plain.code")"
		wrong=1
	fi
	if grep -q "^qcuda:   in kernel $kernel(" "$work/faults.2" && grep -q '^qcuda:   block (0,0,0), thread' "$work/faults.2"; then
		say "ok   $program $argument: kernel, block and thread are named"
	else
		say "FAIL $program $argument: no place"
		wrong=1
	fi
done <<-END
	illegal_access store 0
	illegal_access store 1
END
exit $wrong

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The scripts that users run: shellcheck finds nothing, and each script finds its folder when it is
# called through a link, or ends before it does anything.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
# shellcheck source=tests/passed_before.sh
. tests/passed_before.sh
bad=0
mapfile -t scripts < <(git ls-files scripts perf/run .ci/run tests/run tests/vm/launcher/launcher.sh tests/demo tests/fresh qcu-device/qemu/add-to-qemu |
	xargs grep -l -m1 -E "^#!/(usr/bin/env |bin/)(ba)?sh" --)
[ ${#scripts[@]} -gt 10 ] || { echo "hardly any scripts found"; exit 1; }
if grep -n -F "dirname \"\$0\"" scripts/* perf/run .ci/run; then
	echo "a link to it leads elsewhere; see the others"
	bad=1
fi
if grep -n -E "^\. .*/lib\.sh\"$" "${scripts[@]}"; then
	echo "goes on without lib.sh"
	bad=1
fi

# sourced_by FILE...: prints the files that shellcheck reads with these.
sourced_by() {
	grep -h -s -o -E "(^[[:space:]]*(\\.|source)[[:space:]]+|shellcheck source=)[\"']?[A-Za-z0-9_./-]+" -- "$@" |
		sed "s/.*[=[:space:]\"']//" | sort -u | while read -r f; do
		[ ! -f "$f" ] || echo "$f"
	done
}

if command -v shellcheck >/dev/null; then
	mapfile -t sourced < <(sourced_by "${scripts[@]}")
	for (( n = 0; n < ${#sourced[@]}; )); do
		n=${#sourced[@]}
		mapfile -t sourced < <(sourced_by "${scripts[@]}" "${sourced[@]}")
	done
	options=(-x -S warning -e 'SC2054,SC2154')
	choose_new shell "${options[*]} $(shellcheck --version && sha256sum "${sourced[@]}")" "${scripts[@]}"
	if [ ${#new[@]} -eq 0 ] || shellcheck "${options[@]}" "${new[@]}"; then
		note_passed
	else
		bad=1
	fi
	echo "${#scripts[@]} scripts, with ${#sourced[@]} files that they source; ${#new[@]} scripts were read"
else
	echo "shellcheck is not installed"
	[ $bad -ne 0 ] || exit 77
fi
exit $bad

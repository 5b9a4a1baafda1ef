#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The scripts that users run: shellcheck finds nothing, and each script finds its folder when it is
# called through a link, or ends before it does anything.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
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
if command -v shellcheck >/dev/null; then
	shellcheck -x -S warning -e SC2054,SC2154 "${scripts[@]}" || bad=1
else
	echo "shellcheck is not installed"
	[ $bad -ne 0 ] || exit 77
fi
exit $bad

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# No folder has more than 28 files side by side, and no file has more than 900 lines. Data does not
# count: the results of benchmarks, and what the fuzzers start from.
set -euo pipefail
cd "$(dirname "$0")/../.."
mapfile -t files < <(git ls-files -- . ':!perf/results' ':!tests/fuzz/corpus' | while read -r f; do
	[ ! -f "$f" ] || echo "$f"
done)
{
	printf '%s\n' "${files[@]}" | sed 's|^\([^/]*\)$|./\1|; s|/[^/]*$||' | sort | uniq -c | sed 's/$/ files/'
	wc -l "${files[@]}" | sed '$d; s/$/ lines/'
} | awk '
	$1 > ($3 == "files" ? 28 : 900) {
		print $2 " has " $1 " " $3
		bad = 1
	}
	END {
		if (NR < 500) {
			print "hardly any files found"
			bad = 1
		}
		exit bad
	}'

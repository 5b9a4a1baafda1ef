#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The name of a static function stands in one file of its part, so that a search, a stack trace and a
# profile say which function it is.
set -euo pipefail
cd "$(dirname "$0")/../.."
bad=0
for part in qcu-library qcu-driver qcu-device; do
	git ls-files -- "$part/*.[ch]" | while read -r f; do
		[ ! -f "$f" ] || echo "$f"
	done | xargs awk -v part="$part" '
		FNR == 1 { held = "" }
		# The name may stand in the next line.
		held != "" { $0 = held " " $0; held = "" }
		/^static / {
			gsub(/__attribute__\(\([^)]*(\([^)]*\))?[^)]*\)\)/, "")
			if (!/[(;={]/) {
				held = $0
				next
			}
			if (!match($0, /[A-Za-z0-9_]+\(/) || substr($0, 1, RSTART) ~ /[={]/)
				next
			name = substr($0, RSTART, RLENGTH - 1)
			if (name !~ /^[a-z]/ || (FILENAME, name) in seen)
				next
			seen[FILENAME, name] = 1
			files[name] = files[name] " " FILENAME
			count[name]++
			all++
		}
		END {
			for (name in count)
				if (count[name] > 1) {
					print part ": " name " is a static function in" files[name]
					bad = 1
				}
			if (all < 100) {
				print part ": hardly any static functions found"
				bad = 1
			}
			exit bad
		}' || bad=1
done
exit $bad

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# docs/programs/library-functions.md agrees with the remarks, and each shim exports what NVIDIA's library does, under
# the same version.
set -euo pipefail
cd "$(dirname "$0")/../.."
B=${B:-build}
include=$(make -s print-cudart-include)
# What the generator says of a library, the build has kept: reading the headers takes long.
made=$B/qcu-library/shims
tables=()
for remarks in qcu-library/shims/remarks/*.remarks; do
	tables+=("$made/$(basename "$remarks" .remarks).table")
done
diff -u docs/programs/library-functions.md <(scripts/shims/generate table && cat "${tables[@]}")

# exports SONAME FUNCTIONS: the library has these functions, under its own version, and no others.
exports() {
	diff <(awk -v soname="$1" '{ print $1 "@@" soname }' "$2" | LC_ALL=C sort) \
		<(nm -D --defined-only "$B/qcu-library/$1" | awk '$2 == "T" { print $3 }' | LC_ALL=C sort)
	readelf -d "$B/qcu-library/$1" | grep -q "SONAME.*\[$1\]"
}

for remarks in qcu-library/shims/remarks/*.remarks; do
	soname=$(awk '$1 == "soname" { print $2 }' "$remarks")
	exports "$soname" <(grep -v '^#' "${remarks%.remarks}.syms")
	for part in $(awk '$1 == "parts" { $1 = ""; print }' "$remarks"); do
		exports "${soname/./_$part.}" <(awk -v part="$part" '$NF == part' "${remarks%.remarks}.syms")
	done
	theirs=$(dirname "$include")/lib64/$soname
	[ -e "$theirs" ] || continue
	# A newer toolkit may have more, and internal ones may be gone. What we serve must be there.
	comm -13 <(nm -D --defined-only "$theirs" | awk '{ sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort) \
		<(LC_ALL=C sort "$made/$(basename "$remarks" .remarks).served") |
		(! grep .) || { echo "$soname does not export these"; exit 1; }
done

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# usage: libraries.sh BUILD
# The libraries under the names of CUDA 12 agree with NVIDIA's: each exports the same functions under the same version,
# those that are served are declared alike, and types and values differ only where remarks/NAME.cuda12 says so. At
# night only: NVIDIA's wheels have more than a gigabyte.
set -euo pipefail
cd "$(dirname "$0")/../.."
B=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
nvidia=$(scripts/cuda-wheels libraries-12.9 2>"$tmp/why") && runtime=$(scripts/cuda-wheels 12.9 2>"$tmp/why") || {
	cat "$tmp/why"
	exit 77
}
include13=$(make -s --no-print-directory print-cudart-include)
include12=$nvidia/include:$runtime/include:$runtime/compiler
remarks=qcu-library/shims/remarks

# fails COMMAND...: it must find a mistake.
fails() {
	if "$@" >"$tmp/out" 2>&1; then
		echo "no mistake was found by: $*"
		exit 1
	fi
}

# types FILE.cuda12 NAME
types() {
	python3 tests/cuda12/libraries.py "$1" "$tmp/declared.c" "$(awk '$1 == "headers" { $1 = ""; print }' "$remarks/$2.remarks")" \
		"$include12" "$include13"
}

# compiles FILE: with the headers of CUDA 12.
compiles() {
	gcc -Wall -Wextra -Werror -I"${include12//:/ -I}" -fsyntax-only -x c "$1"
}

for file in "$remarks"/*.cuda12; do
	name=$(basename "$file" .cuda12)
	soname=$(awk '$1 == "soname" { print $2 }' "$file")
	diff "$nvidia/exports/$soname" <(nm -D --defined-only "$B/qcu-library/$soname" | awk '$2 == "T" { print $3 }' | LC_ALL=C sort)
	[ "$(wc -l <"$nvidia/exports/$soname")" -gt 50 ]
	readelf -d "$B/qcu-library/$soname" | grep -q "SONAME.*\[$soname\]"

	scripts/shims/generate older-declarations "$remarks/$name.remarks" -I "$include13" >"$tmp/declared.c"
	types "$file" "$name"
	grep -q -E '^(unknown|status)' "$file"
	grep -v -E '^(unknown|status)' "$file" >"$tmp/wrong"
	fails types "$tmp/wrong" "$name"

	compiles "$tmp/declared.c"
	sed 's/([a-z]/(char **more, &/' "$tmp/declared.c" >"$tmp/wrong.c"
	fails compiles "$tmp/wrong.c"
	echo "$soname: $(grep -c ';$' "$tmp/declared.c") declarations agree"

	# Versions are those of NVIDIA's header.
	version=$(awk -v OFS=' ' '$1 == "answer" && NF == 5 { print $3, $4, $5 }' "$file")
	theirs=$(awk '/#define CU[A-Z]*_VER_(MAJOR|MINOR|PATCH) / { print $NF }' "$nvidia"/include/{cublas_api,cufft,cusolver_common}.h | paste -d' ' - - -)
	grep -qx "$version" <<<"$theirs" || { echo "$soname says $version, and NVIDIA's are: $theirs"; exit 1; }
done

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# qcu-library/cuda12/ agrees with NVIDIA's headers of CUDA 12 and 13: the structures, field by field; the
# functions that are converted; that no others have to be; and what is exported, under which version.
set -euo pipefail
cd "$(dirname "$0")/../.."
B=${B:-build}
syms=qcu-library/cuda12/cudart12.syms
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
nvidia=$(scripts/cuda-wheels 12.9 2>"$tmp/why") || {
	cat "$tmp/why"
	exit 77
}
include13=$(make -s --no-print-directory print-cudart-include)

include12=(-isystem "$nvidia/include" -isystem "$nvidia/compiler")

# fields OPTION...: prints the places of the fields, with the header that the options lead to.
fields() {
	gcc -Wall -Wextra -Werror -I. -Itests/cuda12 "$@" tests/cuda12/fields.c -o "$tmp/fields"
	"$tmp/fields"
}
fields "${include12[@]}" >"$tmp/theirs"
fields -isystem "$include13" >"$tmp/ours"
diff "$tmp/theirs" "$tmp/ours"

# The converted functions are declared as in CUDA 12: the compiler sees both declarations of each.
# signatures HEADER: includes HEADER, our cuda12.h, after NVIDIA's.
signatures() {
	{
		echo '#define __CUDA_API_VERSION_INTERNAL'
		echo '#include <cuda_runtime_api.h>'
		echo '#include "names.h"'
		awk '$2 == "converted" { name = $1; sub(/cuda/, "", name); print "#define cuda12_" name " " $1 }' $syms
		echo "#include \"$1\""
	} >"$tmp/signatures.c"
	gcc -Wall -Wextra -Werror -I. -Itests/cuda12 "${include12[@]}" -c "$tmp/signatures.c" -o "$tmp/o"
}
signatures qcu-library/cuda12/cuda12.h

# declarations SYMS FIELDS
declarations() {
	python3 tests/cuda12/declarations.py "$1" "$2" "$nvidia/include:$nvidia/compiler" "$include13"
}
declarations $syms "$tmp/ours"

# All of this can fail.
fails() {
	if "$@" >"$tmp/out" 2>&1; then
		echo "no mistake was found by: $*"
		exit 1
	fi
}
sed 's/^cudaMemAdvise converted/cudaMemAdvise cudaMemAdvise/' $syms >"$tmp/wrong"
fails declarations "$tmp/wrong" "$tmp/ours"
sed 's/^cudaPointerGetAttributes converted/cudaPointerGetAttributes cudaPointerGetAttributes/' $syms >"$tmp/wrong"
fails declarations "$tmp/wrong" "$tmp/ours"
grep -v '^cudaResourceViewDesc.depth' "$tmp/ours" >"$tmp/wrong"
fails declarations $syms "$tmp/wrong"
sed 's/enum cudaMemoryAdvise advice,/& int more,/' qcu-library/cuda12/cuda12.h >"$tmp/wrong.h"
fails signatures "$tmp/wrong.h"

# exports FILE: prints its functions, as name@@version.
exports() {
	nm -D --defined-only "$1" | awk '$2 != "A" && /@/ { print $3 }' | sort
}
exports "$nvidia/lib/libcudart.so.12" >"$tmp/theirs"
exports "$B/qcu-library/libcudart.so.12" | grep -v '^qcul_11_' >"$tmp/ours" # those are for programs of CUDA 11
[ "$(wc -l <"$tmp/theirs")" -gt 400 ]
diff "$tmp/theirs" "$tmp/ours"
echo "$(wc -l <"$tmp/ours") functions are exported as in NVIDIA's library"

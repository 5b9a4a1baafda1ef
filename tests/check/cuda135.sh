#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The functions that CUDA 13.0 does not have (qcu-library/link/later.h) are declared as in the headers of
# CUDA 13.5, and the library exports what NVIDIA's library 13.5 exports.
set -euo pipefail
cd "$(dirname "$0")/../.."
B=${B:-build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
nvidia=$(scripts/cuda-wheels 13.5 2>"$tmp/why") || {
	cat "$tmp/why"
	exit 77
}
include13=$(make -s --no-print-directory print-cudart-include)

# signatures HEADER: the compiler sees both declarations of each function. The toolkit's folder is for
# the headers that the package does not have.
signatures() {
	{
		echo '#define __CUDA_API_VERSION_INTERNAL'
		echo '#include <cuda_runtime_api.h>'
		awk '$3 == "13.5" && $2 == "implemented" { name = $1; sub(/cuda/, "", name); print "#define qcul_" name " " $1 }' \
			qcu-library/cudart.syms
		echo '#define QCUL_LATER_COMPARE'
		echo "#include \"$1\""
	} >"$tmp/signatures.c"
	gcc -Wall -Wextra -Werror -I. -isystem "$nvidia/include" -isystem "$include13" -c "$tmp/signatures.c" -o "$tmp/o"
}
signatures qcu-library/link/later.h
sed 's/cudaGraph_t graph, unsigned int \*id/& , int more/' qcu-library/link/later.h >"$tmp/wrong.h"
if signatures "$tmp/wrong.h" 2>/dev/null; then
	echo "no mistake was found"
	exit 1
fi

# Every function that is compared is in NVIDIA's header: it is declared again without ours.
while read -r name; do
	grep -q "\<$name\>" "$nvidia/include/cuda_runtime_api.h" || [ "${name%_ptsz}" != "$name" ] || {
		echo "the header of CUDA 13.5 has no $name"
		exit 1
	}
done < <(awk '$3 == "13.5" && $2 == "implemented" { print $1 }' qcu-library/cudart.syms)

# exports FILE: prints its functions, as name@@version, without those for libcuda.so.1.
exports() {
	nm -D --defined-only "$1" | awk '$2 != "A" && /@/ && !/@@QCUDA_PRIVATE$/ { print $3 }' | sort
}
exports "$nvidia/lib/libcudart.so.13" >"$tmp/theirs"
exports "$B/qcu-library/libcudart.so.13" >"$tmp/ours"
[ "$(wc -l <"$tmp/theirs")" -gt 450 ]
diff "$tmp/theirs" "$tmp/ours"
echo "$(wc -l <"$tmp/ours") functions are exported as in NVIDIA's library"

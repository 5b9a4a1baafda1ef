#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# libnccl.so.2 agrees with NVIDIA's header, from the Python package index: what is exported, the numbers, the functions.
set -euo pipefail
cd "$(dirname "$0")/../.."
B=${B:-build}
syms=qcu-library/nccl/nccl.syms
library=$B/qcu-library/libnccl.so.2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# These need nothing of NVIDIA's. Each function is there a second time, with a "p" in front.
nm -D --defined-only "$library" | awk '{ print $3 }' | sort >"$tmp/ours"
awk '!/^#/ { print $1; print "p" $1 }' $syms | sort | diff - "$tmp/ours"
objdump -p "$library" >"$tmp/headers"
grep -q 'SONAME *libnccl.so.2$' "$tmp/headers"
grep -q 'NEEDED *libcudart.so.13$' "$tmp/headers"
# It is a program of the runtime: nothing of ours that NVIDIA's does not have.
if nm -D --undefined-only "$library" | grep -E 'qcul_|QCUDA_PRIVATE'; then
	echo "it uses what only our own runtime has"
	exit 1
fi

nvidia=$(scripts/cuda-wheels nccl 2>"$tmp/why") || {
	cat "$tmp/why"
	exit 77
}
cuda=$(make -s print-cudart-include)
# compile FILE [OPTION...]
compile() {
	gcc -Wall -Wextra -Werror -I. -isystem "$nvidia/include" -isystem "$cuda" -c -o "$tmp/o" "$@"
}
# values [OPTION...]: prints the types as the header says.
values() {
	gcc -I. -isystem "$nvidia/include" -isystem "$cuda" "$@" -o "$tmp/values" tests/nccl/values.c && "$tmp/values"
}
names() {
	grep -ohE '\bnccl[A-Z][A-Za-z0-9]*\(' "$nvidia/include/nccl.h" | tr -d '(' | sort -u
}
compile tests/nccl/functions.c
values -DTHEIRS >"$tmp/theirs"
values | diff "$tmp/theirs" -
[ "$(wc -l <"$tmp/theirs")" -gt 35 ]
names >"$tmp/names"
[ "$(wc -l <"$tmp/names")" -gt 60 ]
awk '!/^#/ { print $1 }' $syms | sort >"$tmp/listed"
if comm -23 "$tmp/names" "$tmp/listed" | grep .; then
	echo "NVIDIA's header has these, and ours does not"
	exit 1
fi

# All of this can fail.
fails() {
	if "$@" >"$tmp/out" 2>&1; then
		echo "no mistake was found by: $*"
		exit 1
	fi
}
mkdir -p "$tmp/qcu-library/nccl"
sed -e 's/ncclMax = 2/ncclMax = 3/; s/ncclMin = 3/ncclMin = 2/' -e 's/(int \*version)/(long *version)/' \
	qcu-library/nccl/api.h >"$tmp/qcu-library/nccl/api.h"
fails compile -iquote "$tmp" tests/nccl/functions.c
values -iquote "$tmp" >"$tmp/wrong"
fails diff "$tmp/theirs" "$tmp/wrong"

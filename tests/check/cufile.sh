#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# libcufile.so.0 agrees with NVIDIA's header, from the Python package index: what is exported, the numbers, the
# functions. What is not served says so, once.
set -euo pipefail
cd "$(dirname "$0")/../.."
B=${B:-build}
syms=qcu-library/cufile/cufile.syms
library=$B/qcu-library/libcufile.so.0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

nm -D --defined-only "$library" | awk '{ print $3 }' | sort >"$tmp/ours"
awk '!/^#/ { print $1 }' $syms | sort | diff - "$tmp/ours"
objdump -p "$library" >"$tmp/headers"
grep -q 'SONAME *libcufile.so.0$' "$tmp/headers"
# It is a program of the runtime: nothing of ours that NVIDIA's does not have.
if nm -D --undefined-only "$library" | grep -E 'qcul_|QCUDA_PRIVATE'; then
	echo "it uses what only our own runtime has"
	exit 1
fi

nvidia=$(scripts/cuda-wheels cufile 2>"$tmp/why") || {
	cat "$tmp/why"
	exit 77
}
cuda=$(make -s print-cudart-include)
compile() {
	gcc -Wall -Wextra -Werror -I. -isystem "$nvidia/include" -isystem "$cuda" "$@"
}
compile -E -P "$nvidia/include/cufile.h" | tr -s '\n\t ' ' ' |
	grep -oE '(CUfileError_t|ssize_t|long|void) cuFile[A-Za-z0-9_]*\(' | tr -d '(' | awk '{ print $2 }' | sort -u >"$tmp/theirs"
diff "$tmp/theirs" "$tmp/ours"
# values [OPTION...]: prints the types as the header says.
values() {
	compile "$@" -o "$tmp/values" tests/cufile/values.c && "$tmp/values"
}
compile -c -o "$tmp/o" tests/cufile/functions.c
values -DTHEIRS >"$tmp/theirs"
values | diff "$tmp/theirs" -
[ "$(wc -l <"$tmp/theirs")" -gt 50 ]

# All of this can fail.
fails() {
	if "$@" >"$tmp/out" 2>&1; then
		echo "no mistake was found by: $*"
		exit 1
	fi
}
mkdir -p "$tmp/qcu-library/cufile"
sed -e 's/CU_FILE_SUCCESS = 0/CU_FILE_SUCCESS = 1/; s/(int \*version)/(long *version)/' \
	qcu-library/cufile/api.h >"$tmp/qcu-library/cufile/api.h"
fails compile -iquote "$tmp" -c -o "$tmp/o" tests/cufile/functions.c
values -iquote "$tmp" >"$tmp/wrong"
fails diff "$tmp/theirs" "$tmp/wrong"

cat >"$tmp/program.c" <<'END'
#include <stdio.h>
#include <cufile.h>

int main(void)
{
	for (int i = 0; i < 2; i++)
		printf("%d %d\n", cuFileSetStatsLevel(1).err == CU_FILE_PLATFORM_NOT_SUPPORTED,
		       cuFileExportPCIeTopology("x").cu_err);
	return 0;
}
END
compile -o "$tmp/program" "$tmp/program.c" "$library" -Wl,-rpath-link,"$B/qcu-library"
LD_LIBRARY_PATH=$B/qcu-library "$tmp/program" >"$tmp/out" 2>"$tmp/said"
diff - "$tmp/out" <<'END'
1 0
1 0
END
# Each once, in whatever order a compiler evaluates arguments.
sort "$tmp/said" | diff - <(for name in ExportPCIeTopology SetStatsLevel; do
	echo "qcuda: cuFile: cuFile$name is not supported"
done)

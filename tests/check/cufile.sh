#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# libcufile.so.0 has the functions of NVIDIA's header, from the Python package index, and each says that it is not served.
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

nvidia=$(scripts/cuda-wheels cufile 2>"$tmp/why") || {
	cat "$tmp/why"
	exit 77
}
cuda=$(make -s print-cudart-include)
compile() {
	gcc -Wall -Wextra -Werror -isystem "$nvidia/include" -isystem "$cuda" "$@"
}
compile -E -P "$nvidia/include/cufile.h" | tr -s '\n\t ' ' ' |
	grep -oE '(CUfileError_t|ssize_t|long|void) cuFile[A-Za-z0-9_]*\(' | tr -d '(' |
	sed 's/^CUfileError_t/error/; s/^ssize_t/size/; s/^long/none/; s/^void/nothing/' |
	awk '{ print $2, $1 }' | sort -u >"$tmp/theirs"
grep -v '^#' $syms | sort | diff - "$tmp/theirs"

cat >"$tmp/program.c" <<'END'
#include <stdio.h>
#include <cufile.h>

int main(void)
{
	char data[8];

	for (int i = 0; i < 2; i++)
		printf("%d %d %ld %ld\n", cuFileDriverOpen().err == CU_FILE_PLATFORM_NOT_SUPPORTED,
		       cuFileDriverOpen().cu_err, (long)cuFileRead(NULL, data, sizeof(data), 0, 0), cuFileUseCount());
	cuFileBatchIODestroy(NULL);
	return 0;
}
END
compile -o "$tmp/program" "$tmp/program.c" "$library"
LD_LIBRARY_PATH=$B/qcu-library "$tmp/program" >"$tmp/out" 2>"$tmp/said"
diff - "$tmp/out" <<'END'
1 0 -5007 0
1 0 -5007 0
END
# Each once, in whatever order a compiler evaluates arguments.
sort "$tmp/said" | diff - <(for name in BatchIODestroy DriverOpen Read UseCount; do
	echo "qcuda: cuFile: cuFile$name is not supported: read the file, and copy with CUDA"
done)

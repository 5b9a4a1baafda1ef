#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# libnvidia-ml.so.1 agrees with NVIDIA's header: what is exported, the structures, the numbers, the functions.
# If this machine's toolkit has a stub of the library, what that exports is compared, too.
set -euo pipefail
cd "$(dirname "$0")/../.."
B=${B:-build}
syms=qcu-library/nvml/nvml.syms
library=$B/qcu-library/libnvidia-ml.so.1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# exports FILE: prints its functions. They have no versions.
exports() {
	nm -D --defined-only "$1" | awk '$2 == "T" { print $3 }' | sort
}

# These need nothing of NVIDIA's.
exports "$library" >"$tmp/ours"
awk '!/^#/ { print $1 }' $syms | sort | diff - "$tmp/ours"
objdump -p "$library" >"$tmp/headers"
grep -q 'SONAME *libnvidia-ml.so.1$' "$tmp/headers"
if grep -q 'NEEDED *libcudart' "$tmp/headers"; then
	echo "it needs libcudart"
	exit 1
fi

for stub in "${CUDA_HOME:-/usr/local/cuda}"/{lib64,targets/x86_64-linux/lib}/stubs/libnvidia-ml.so; do
	[ -e "$stub" ] || continue
	exports "$stub" >"$tmp/theirs"
	[ "$(wc -l <"$tmp/theirs")" -gt 300 ]
	if comm -23 "$tmp/theirs" "$tmp/ours" | grep .; then
		echo "$stub exports these, and ours does not"
		exit 1
	fi
done

nvidia=$(scripts/cuda-wheels nvml 2>"$tmp/why") || {
	cat "$tmp/why"
	exit 77
}
# compile FILE [OPTION...]
compile() {
	gcc -Wall -Wextra -Werror -Wno-deprecated-declarations -I. -isystem "$nvidia/include" -c -o "$tmp/o" "$@"
}
list() {
	python3 tests/nvml/pointers.py "$1" "$nvidia/include/nvml.h"
}
compile tests/nvml/types.c
compile tests/nvml/functions.c
list $syms

# All of this can fail.
fails() {
	if "$@" >"$tmp/out" 2>&1; then
		echo "no mistake was found by: $*"
		exit 1
	fi
}
mkdir -p "$tmp/qcu-library/nvml"
cp qcu-library/nvml/*.h "$tmp/qcu-library/nvml"
sed -i 's/unsigned long long total, free, used;/unsigned long long total, used, free;/' "$tmp/qcu-library/nvml/abi.h"
sed -i 's/int \*major, int \*minor/int *major/' "$tmp/qcu-library/nvml/api.h"
fails compile -iquote "$tmp" tests/nvml/types.c
fails compile -iquote "$tmp" tests/nvml/functions.c
grep -v '^nvmlInit_v2 ' $syms >"$tmp/wrong"
fails list "$tmp/wrong"
sed 's/^nvmlDeviceGetTemperatureThreshold quiet 2/nvmlDeviceGetTemperatureThreshold quiet 1/' $syms >"$tmp/wrong"
fails list "$tmp/wrong"

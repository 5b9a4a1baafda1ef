#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# qcu run --check: wrong calls; then programs in a VM with findings, with none, and with a fault. What a program is
# told of a fault reaches its stderr, and only there.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

export TMPDIR=$tmp
check=("$root/scripts/qcu" run --check --share "$tmp/share")

# ---- wrong calls ----

expect_host code-without-check 2 'belongs to --check' "$qcu" run --error-exitcode 3 /bin/true
expect_host code-too-large 2 'must be a number from 0 to 255' "$qcu" run --check --error-exitcode 256 /bin/true
expect_host check-of-a-gpu 2 'does not go with --gpu cuda' "$qcu" run --check --gpu cuda /bin/true
touch "$tmp/disk"
expect_host check-of-a-disk 2 'does not go with --disk' "$qcu" vm --check --disk "$tmp/disk"

# ---- programs ----

# outputs CODE PROGRAM [OPTION...]: checks PROGRAM, with $arguments, in a VM, and leaves what it writes in $tmp/1 and $tmp/2.
arguments=()
outputs() {
	local code=$1 program=$2
	shift 2
	host_limit=200 expect_host "$(basename "$program")${arguments:+-exits}${*:+-with-a-code}" "$code" '^$' \
		bash -c '"$@" >'"$tmp"'/1 2>'"$tmp"'/2; rc=$?; echo; exit $rc' check "${check[@]}" "$@" "$program" "${arguments[@]}"
}
outputs 42 "$guest/unwritten" --error-exitcode 42
expect_host findings 0 '^qcuda: check: 2 findings$' cat "$tmp/2"
expect_host finding-names-kernel 0 'in kernel compare\(int const volatile\*, int\*\)$' cat "$tmp/2"
expect_host finding-names-memory 0 'inside the 256 bytes at 0x[0-9a-f]+ made by cudaMalloc$' cat "$tmp/2"
outputs 0 "$guest/unwritten"
arguments=(_exit)
outputs 42 "$guest/unwritten" --error-exitcode 42
expect_host findings-of-_exit 0 '^qcuda: check: 2 findings$' cat "$tmp/2"
# It loads our library late, so the C library's _exit() would come first.
arguments=(-c 'import ctypes, os; ctypes.CDLL("libcudart.so.13").cudaFree(None); os._exit(3)')
outputs 3 /usr/bin/python3 --root /
expect_host findings-of-late 0 '^qcuda: check: 0 findings$' cat "$tmp/2"
arguments=()
outputs 0 "$guest/vector_add" --error-exitcode 42
expect_host no-findings 0 '^qcuda: check: 0 findings$' cat "$tmp/2"
outputs 0 "$guest/illegal_access"
expect_host fault 0 '^qcuda: an illegal memory access was encountered: write of 4 bytes' cat "$tmp/2"
expect_host fault-names-kernel 0 'in kernel store\(int\*, int\)$' cat "$tmp/2"
expect_host fault-once 0 '^1$' grep -c '^qcuda: an' "$tmp/2"
expect_host fault-counts 0 '^qcuda: check: 1 finding$' cat "$tmp/2"
expect_host stdout-is-the-programs 0 '^0$' bash -c "grep -c qcuda: '$tmp/1' || true"

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Programs and libraries of others, from the Python package index, in a VM with this machine's Python. One
# boot for all of them. docs/programs/list.md has what they are.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

# tests/tests.mk runs more of them without a VM: where the processor is emulated, compilers take minutes. CuPy runs in the
# containers of fresh/systemd-12, too.
programs=(tools_nvml libraries_12 ${QCU_NIGHTLY:+bindings_launch cupy_kernels numba_kernels})

wheels=$(scripts/python-wheels 2>"$tmp/why") || {
	for p in "${programs[@]}"; do
		echo "@skip $p $(tail -n 1 "$tmp/why")"
	done
	exit 0
}
cuda_home=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")")")
PYTHONPATH=$wheels CUDA_HOME=$cuda_home CUDA_PATH=$cuda_home PYTHONDONTWRITEBYTECODE=1 QCU_SLOW=$slow \
	"$qcu" run --gpu soft --root / --share "$tmp/share" --klog "$klogs/$script" --timeout 400 \
	sh "$root/tests/python/inside.sh" "${programs[@]}" </dev/null
rc=$?
[ $rc -eq 0 ] || echo "@FAIL boot the guest ended with $rc"
scan_klog

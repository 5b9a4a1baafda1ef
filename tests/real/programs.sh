#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Programs of others that make kernels while they run, in this folder's Python files: over the loopback
# library, and then in a VM. They run on request (tests/run real/programs). PROGRAMS names some of them.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"

all=(tests/real/*.py)
all=("${all[@]##*/}")
PROGRAMS=${PROGRAMS:-${all[*]%.py}}
if ! wheels=$(scripts/python-wheels 2>"$tmp/why") || ! more=$(scripts/python-wheels --real 2>"$tmp/why"); then
	for p in $PROGRAMS; do
		echo "@skip $p $(tail -n 1 "$tmp/why")"
	done
	exit 0
fi
home=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")")")
export PYTHONPATH=$more:$wheels PYTHONDONTWRITEBYTECODE=1 CUDA_HOME=$home CUDA_PATH=$home QCU_SLOW=$slow
export CUPY_COMPILE_WITH_PTX=1 CUPY_CACHE_IN_MEMORY=1 CACHELEVEL=0
loopback=$PWD/$B/loopback
for p in $PROGRAMS; do
	# Some of them keep what they have compiled.
	if HOME=$tmp LD_LIBRARY_PATH=$loopback:$home/lib64 LD_AUDIT=$loopback/libqcuda-loader.so \
		timeout $((100 * slow)) python3 "tests/real/$p.py" </dev/null; then
		echo "@ok loopback-$p"
	else
		echo "@FAIL loopback-$p exit code $?"
	fi
done
# shellcheck disable=SC2086
PROGRAMS_IN=$root/tests/real "$qcu" run --gpu soft --root / --share "$tmp/share" --klog "$klogs/$script" --timeout 900 \
	sh "$root/tests/python/inside.sh" ${PROGRAMS//[[:space:]]/ } </dev/null
rc=$?
[ $rc -eq 0 ] || echo "@FAIL boot the guest ended with $rc"
scan_klog

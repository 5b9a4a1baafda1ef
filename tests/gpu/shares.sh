#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# On a machine with a GPU: what each VM has of it when they share it by agreement, and what the driver's time slices give
# natively. Each program over the loopback library is a VM to the broker.
#
#	shares.sh [OUT]		NATIVE names the folder of NVIDIA's libcudart.so.13, CASES what of shares.py
#
# OUT (default: the current folder) gets shares.out, and shares.csv: rows for
# perf/results/GPU/all.csv, which perf/figures draws.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
[ ! -e "$root/.bundle/BUNDLE" ] || root=$root/.bundle
out=$(cd "${1:-.}" && pwd)
native=${NATIVE:-$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/nvidia/cu13/lib}

{
	export ROWS=$out/shares.csv NATIVE=$native QCU_LOOPBACK_BACKEND=$root/build/qcu-device/be_cuda.so LD_LIBRARY_PATH=$root/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	for case in ${CASES:-gpu_weights gpu_lengths gpu_mixed gpu_interactive gpu_stops alone stops broker_dies strangers forged programs many}; do
		echo "== $case"
		timeout 400 python3 "$here/../loopback/share/shares.py" "$root/build" $case 2>&1
		echo "exit code $?"
	done
} | tee "$out/shares.out"

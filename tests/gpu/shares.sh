#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# On a machine with a GPU: what each VM has of it when they share it by agreement, and what the driver's time slices give
# natively. Each program over the loopback library is a VM to the broker.
#
#	shares.sh [OUT]		NATIVE names the folder of NVIDIA's libcudart.so.13
#
# OUT (default: the current folder) gets shares.out.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
[ ! -e "$root/.bundle/BUNDLE" ] || root=$root/.bundle
out=$(cd "${1:-.}" && pwd)/shares.out
native=${NATIVE:-$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/nvidia/cu13/lib}
hog=$root/build/tests/loopback/hog
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT

count() {
	od -A n -t u8 -N 8 "$1" | tr -d ' '
}

# time_slices N: one program natively beside N others, for ten seconds: its part of the kernels that end.
time_slices() {
	local i sum=0 first
	for ((i = 0; i <= $1; i++)); do
		LD_LIBRARY_PATH=$native "$hog" "$work/$i" 500000 1000000000 &
	done
	sleep 3
	first=$(count "$work/0")
	for ((i = 0; i <= $1; i++)); do sum=$((sum - $(count "$work/$i"))); done
	sleep 10
	for ((i = 0; i <= $1; i++)); do sum=$((sum + $(count "$work/$i"))); done
	echo "natively, one program beside $1: $((($(count "$work/0") - first) * 1000 / sum)) of 1000 kernels, $sum in 10 s"
	# shellcheck disable=SC2046 # a list
	kill $(jobs -p)
	wait
	rm "$work"/*
}

{
	time_slices 1
	time_slices 4
	export QCU_LOOPBACK_BACKEND=$root/build/qcu-device/be_cuda.so LD_LIBRARY_PATH=$root/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	for case in weights alone stops broker_dies strangers forged programs many; do
		echo "== $case"
		timeout 120 python3 "$here/../loopback/share/shares.py" "$root/build" $case 2>&1
		echo "exit code $?"
	done
} | tee "$out"

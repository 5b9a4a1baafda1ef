#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# On a machine with a GPU: sessions that are saved and made again. First the backend's own checks, in which a fresh process
# gets the memory of another one. Then every test program without a VM, natively and with its session saved and restored in
# the middle: the outputs must be the same. Then how long that takes, beside NVIDIA's checkpoints of a process.
#
#	saved.sh [OUT [SECONDS [GIB]]]	SECONDS: for the programs (150); GIB: at most this much device memory (40).
#					PARTS: which of backend, memory, checkpoints, programs; SEEDS: for the programs
#
# OUT (default: the current folder) gets saved.out, and what differs in saved.differ.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
[ ! -e "$root/.bundle/BUNDLE" ] || root=$root/.bundle
root=$(cd "$root" && pwd)
out=$(cd "${1:-.}" && pwd)
seconds=${2:-150} most=${3:-40}
device=$root/build/qcu-device
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
native=${CUDA_HOME:-/usr/local/cuda}/lib64
ours=$root/build/loopback:$root/lib

# Without addresses, numbers, and how wide they are.
same() {
	sed -E 's/0x[0-9a-f]+/P/g; s/[0-9]+(\.[0-9]+)?(e[-+][0-9]+)?/N/g; s/ +/ /g' "$1"
}

# Other than natively without a VM in any case: those that need a second libcuda or a second library of one name in the
# process, that share memory that may leave, that do what native CUDA does not allow, and that need the whole GPU.
left_out() {
	[[ $1 = driver_* || $1 = mixed_* || $1 = cu*_* || $1 = nccl_* || $1 = ipc_* ||
		" shared_pool libraries_bare fork_child bandwidth out_of_memory crash sleeper " = *" $1 "* ]]
}

# run NAME: both, and a line with the result into NAME.as.
run() {
	local program=$root/build/tests/guest/$1 o=$work/$1 args=() is=0 was=0 what
	case $1 in
	first_call | illegal_access) args=(0) ;;
	esac
	LD_LIBRARY_PATH=$native timeout 40 "$program" "${args[@]}" >"$o.native" 2>"$o.native.err" </dev/null || was=$?
	LD_LIBRARY_PATH=$ours QCU_LOOPBACK_BACKEND=$device/be_cuda.so QCU_LOOPBACK_SAVE=$seed:2 QCU_LOOPBACK_SAVED=$o.log \
		QCU_LOOPBACK_SAVE_TIMES=$o.times timeout 40 "$program" "${args[@]}" >"$o.saved" 2>"$o.saved.err" </dev/null || is=$?
	if grep -q '^lost' "$o.log" 2>/dev/null; then
		what=$(grep '^lost' "$o.log")
	elif [ "$is" != "$was" ]; then
		what="ended with $is, not $was"
	elif ! diff <(same "$o.native") <(same "$o.saved") >"$o.diff"; then
		what=differs
	elif grep -q '^saved' "$o.log" 2>/dev/null; then
		what=same
	else
		what=$(head -n 1 "$o.log" 2>/dev/null)
		what=${what:-same, no moment to save}
	fi
	echo "$what" >"$o.as"
}

programs() {
	local f name end=$((SECONDS + seconds))
	for f in "$root"/build/tests/guest/*; do
		name=${f##*/}
		left_out "$name" || [ ! -x "$f" ] && continue
		[ "$SECONDS" -lt "$end" ] || {
			echo "no time left for $name"
			continue
		}
		run "$name" &
		while [ "$(jobs -rp | wc -l)" -ge 8 ]; do
			sleep 0.05
		done
	done
	wait
	sort "$work"/*.as | uniq -c | sort -rn
	for f in "$work"/*.as; do
		name=$(basename "$f" .as)
		grep -q '^same' "$f" || echo "$name: $(cat "$f")"
		! grep -q 'differs\|^lost\|^ended' "$f" || {
			echo "== $name: $(cat "$f")"
			cat "$work/$name.log" "$work/$name.diff" 2>/dev/null | head -n 20
			tail -n 5 "$work/$name.saved" "$work/$name.saved.err"
		} >>"$out/saved.differ"
	done
}

backend() {
	echo "== the backend"
	BE_CHECK_MOVABLE=1 timeout 200 "$device/be_check" "$device/be_cuda.so" "$device/be_check.fatbin" 0 2>&1 |
		grep -v '^ok '
}

memory() {
	local gib
	echo "== memory"
	for gib in 1 8 "$most"; do
		rm -f "$work/ready"
		LD_LIBRARY_PATH=$ours QCU_LOOPBACK_BACKEND=$device/be_cuda.so QCU_LOOPBACK_SAVE=1:1 QCU_LOOPBACK_SAVED=$work/holder.log \
			QCU_LOOPBACK_SAVE_WHEN=$work/ready QCU_LOOPBACK_SAVE_TIMES=$work/times timeout 300 \
			"$root/build/tests/loopback/holder" "$gib" "$work/ready"
	done
	cat "$work/holder.log" "$work/times"
}

checkpoints() {
	BE_CHECK_MOVABLE=1 BE_CHECK_GIB=$most BE_CHECK_ONLY=checkpoints timeout 200 "$device/be_check" "$device/be_cuda.so" \
		"$device/be_check.fatbin" 0 2>&1 | grep cuCheckpoint
}

: >"$out/saved.differ"
for part in ${PARTS:-backend memory checkpoints programs}; do
	if [ "$part" = programs ]; then
		for seed in ${SEEDS:-1}; do
			echo "== programs, seed $seed"
			programs
		done
	else
		"$part"
	fi
done | tee "$out/saved.out"

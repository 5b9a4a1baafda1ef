#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# On a machine with a GPU: device memory that leaves and comes back.
#
#	memory.sh [OUT [CASE...]]	GPU is the backend (cuda), GIB how much memory is moved (40)
#
#	fixed		all checks of the backend, with memory that cannot leave
#	movable		the same with memory that can
#	speed		how fast it leaves and comes back, beside plain copies of registered memory and NVIDIA's
#			checkpoints of a process; what allocations cost beside the driver's own
#	allocations	the same with 1 GiB, which takes seconds
#	turns		two programs, each a VM to the broker, that take turns of 1 s and 10 s with 0.6 and 0.9 of GIB
#			each; another program has the rest of the GPU's memory
#	turns_vm	the same in two VMs
#	requests	8 programs of PyTorch over the loopback library, each with weights of 0.3 of GIB (20), answer requests
#			one after the other; memory.csv gets rows for perf/results/GPU/all.csv, which perf/figures draws
#	training	PyTorch's training over the loopback library, with an eviction every 200 ms, beside native's;
#			STEPS names steps of training_steps.py
#
# OUT (default: the current folder) gets memory.out and the outputs of programs. NATIVE names the folder of NVIDIA's
# libcudart.so.13. TURNS: how many turns each program has, of which the last but three count (1 s: 8; 10 s: 4); MS: only turns of so
# many milliseconds, PART: only of so many tenths. DEVICE: more options of qcu-device in turns_vm.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
[ ! -e "$root/.bundle/BUNDLE" ] || root=$root/.bundle
root=$(cd "$root" && pwd)
out=$(cd "${1:-.}" && pwd) || exit 2
[ $# -eq 0 ] || shift
gpu=${GPU:-cuda}
gib=${GIB:-40}
mib=$((gib * 1024))
# On the software GPU a GiB is a MiB.
[ "$gpu" = cuda ] || mib=$gib
device=$root/build/qcu-device
work=$(mktemp -d)
started=()
trap 'kill "${started[@]}" 2>/dev/null; rm -rf "$work"' EXIT

# be_check [NAME=VALUE...]: prints what is not as it should be, and the timings.
be_check() {
	env "$@" timeout 400 "$device/be_check" "$device/be_cuda.so" "$device/be_check.fatbin" "${seconds:-0}" 2>&1 | grep -v '^ok '
	return "${PIPESTATUS[0]}"
}

fixed() {
	seconds=0.1 be_check
}

movable() {
	seconds=0.1 be_check BE_CHECK_MOVABLE=1
}

speed() {
	be_check BE_CHECK_MOVABLE=1 BE_CHECK_GIB="$gib"
}

allocations() {
	be_check BE_CHECK_MOVABLE=1 BE_CHECK_GIB=1
}

# begin COMMAND...: in the background, until it ends or the case does.
begin() {
	"$@" &
	started+=($!)
}

# number N: of the file that the programs share.
number() {
	[ -s "$share/turns" ] && od -A n -t u8 -j $((8 * $1)) -N 8 "$share/turns" | tr -d ' '
}

# wait_for N PID: until the number is not 0; fails if the process ends before.
wait_for() {
	until [ "$(number "$1")" -gt 0 ] 2>/dev/null; do
		kill -0 "$2" 2>/dev/null || return 1
		sleep 0.05
	done
}

loopback_program() {
	env QCU_LOOPBACK_SHARE="$folder" QCU_LOOPBACK_SWAP=$((4 * mib << 20)) \
		LD_LIBRARY_PATH="$root/build/loopback:$root/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
		"$root/build/tests/loopback/turner" "$share/turns" "$@"
}

vm_program() {
	local d a=()
	# shellcheck disable=SC2086
	for d in --share "$folder" --swap "$((4 * mib))M" --vram "${mib}M" ${DEVICE:-}; do
		a+=(--device-arg "$d")
	done
	mkdir "$share.$1"
	(cd "$share" && TMPDIR=$share.$1 "$root/scripts/qcu" run --gpu "$gpu" --root / --mem 1G --cpus 2 \
		--timeout "${LIMIT:-300}" "${a[@]}" ./turner turns "$@" </dev/null)
}

# turns_of PROGRAM PART MS TURNS: two programs with PART tenths each, in turns of MS.
turns_of() {
	local program=$1 each=$((mib * $2 / 10)) holder rc=0 who pid=() memory=()
	share=$work/$1.$2.$3 folder=$work/$1.$2.$3.share
	mkdir "$share" "$folder"
	cp "$root/build/tests/loopback/turner" "$share/"
	truncate -s 64 "$share/turns"
	[ "$gpu" = cuda ] || memory=(--memory "$mib")
	if [ "$gpu" != cuda ] || [ "$program" = loopback_program ]; then
		begin "$device/qcu-share" --folder "$folder" --gpu soft "${memory[@]}"
	fi
	for who in 0 1; do
		"$program" $who "$each" "$mib" "$3" "$4" >"$share.$who.out" 2>&1 &
		pid+=($!)
		started+=($!)
	done
	for who in 0 1; do
		wait_for $((1 + who)) "${pid[who]}" || rc=1
	done
	if [ $rc = 0 ] && [ "$gpu" = cuda ]; then
		env -u QCU_LOOPBACK_BACKEND LD_LIBRARY_PATH="$native" "$share/turner" "$share/turns" hold "$mib" >"$share.hold.out" 2>&1 &
		holder=$!
		started+=("$holder")
		wait_for 4 "$holder" || rc=1
	fi
	# GO
	printf '\1' | dd of="$share/turns" bs=1 seek=24 conv=notrunc status=none
	[ $rc = 0 ] || kill "${pid[@]}"
	for who in 0 1; do
		wait "${pid[who]}" || rc=1
	done
	"$device/qcu-share" --folder "$folder" --gpu soft --status 2>/dev/null | sed 's/^/	/'
	# The shell says nothing of a process that it waits for.
	[ -z "${holder:-}" ] || { kill "$holder" && wait "$holder" 2>/dev/null; }
	echo "0.$2 of $mib MiB each, turns of $3 ms:"
	sed 's/^/	/' "$share".*.out
	cp "$share".*.out "$out/"
	return $rc
}

native_folder() {
	echo "${NATIVE:-$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/nvidia/cu13/lib}"
}

all_turns() {
	local part ms rc=0
	native=$(native_folder)
	for part in ${PART:-6 9}; do
		for ms in ${MS:-1000 10000}; do
			turns_of "$1" "$part" "$ms" "${TURNS:-$((ms < 5000 ? 8 : 4))}" || rc=1
		done
	done
	return $rc
}

turns() {
	[ "$gpu" != cuda ] || export QCU_LOOPBACK_BACKEND=$device/be_cuda.so
	all_turns loopback_program
	unset QCU_LOOPBACK_BACKEND
}

turns_vm() {
	"$root/scripts/build-guest" >/dev/null
	all_turns vm_program
}

# shellcheck disable=SC2086
training() {
	export QCU_LOOPBACK_EVICT_MS=200 QCU_LOOPBACK_EVICT_COUNT=$work/evicted
	TURNS=1 "$here/loopback.sh" "$out" ${STEPS:-products residual_network residual_graphed transformer_layer transformer_graphed language_model} &&
		echo "native's bits; $(awk '{ n += $1 } END { print n / 1e9 }' "$work/evicted") GB have left"
}

requests() {
	share=$work/requests folder=$work/requests.share
	mkdir "$share" "$folder"
	truncate -s 64 "$share/turns"
	begin "$device/qcu-share" --folder "$folder" --gpu soft
	native=$(native_folder)
	# shellcheck disable=SC2016
	ROWS=$out/memory.csv NATIVE=$native GIB=${GIB:-20} QCU_LOOPBACK_SHARE=$folder TURNS=0 \
		HOLD=$root/build/tests/loopback/turner NUMBERS=$share/turns COMMAND='python3 request_steps.py "$NUMBERS" "$HOLD"' \
		"$here/loopback.sh" "$out"
}

{
	for case in ${*:-fixed movable speed turns turns_vm requests training}; do
		echo "== $case"
		"$case"
		echo "exit code $?"
	done
} 2>&1 | tee "$out/memory.out"

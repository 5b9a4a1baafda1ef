#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Programs whose session is saved and made again in a fresh mirror at random moments (tests/transport/saved.h) print the
# same and end as without. Numbers in their output may differ: most programs print times. What is refused is counted by its
# sentence.
#
#	tests/loopback/saved/saved.sh BUILD SEED [PROGRAM]...
#	tests/loopback/saved/saved.sh BUILD N-rounds	all programs in any order, from any seed on, until N sessions were saved
set -euo pipefail
build=$1 seed=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$PWD/$build/loopback
export QCU_LOOPBACK_SHARED=$work/shared
failed=0 saved=0

# One or more of each kind of object, threads, printed text, forks.
day=(array_copies async_copies barrier_votes constant_tables cooperative_grid cublas_handles cublas_threads cufft_plans cufft_workspace
	curand_host curand_offsets device_limits driver_green driver_link driver_segments driver_streams driver_modules driver_virtual
	dynamic_shared fork_child graph_conditional host_functions host_register last_block launch_errors legacy_order managed_variables many_small matmul
	memory_pools memset mipmap multi_thread per_thread_streams pinned_zero_copy printf_formats printf_kernel
	queries reduction stream_attributes surface_write symbols texture_2d vector_add)

# Without addresses, numbers, and how wide they are. A fresh mirror looks for a missing library anew, and says why it is
# not there as the first one did the first time.
same() {
	sed -E 's/0x[0-9a-f]+/P/g; s/[0-9]+(\.[0-9]+)?(e[-+][0-9]+)?/N/g; s/ +/ /g; s/the (host|software GPU) has no/there is no/' "$1"
}

# run NAME: without, once, and with. Only a hang reaches the limit: out_of_memory takes a minute on a busy machine.
run() {
	local program=$build/tests/guest/$1 rc=0 as=0
	[ -e "$work/$1.as" ] || {
		timeout 1000 "$program" >"$work/$1.plain" 2>&1 </dev/null || as=$?
		echo "$as" >"$work/$1.as"
	}
	: >"$work/log"
	QCU_LOOPBACK_SAVE=$seed:8 QCU_LOOPBACK_SAVED=$work/log timeout 1000 "$program" >"$work/out" 2>&1 </dev/null || rc=$?
	cat "$work/log" >>"$work/all"
	saved=$((saved + $(grep -c '^saved' "$work/log" || true)))
	if [ "$rc" != "$(cat "$work/$1.as")" ] || ! diff <(same "$work/$1.plain") <(same "$work/out") >"$work/diff"; then
		failed=1
		printf '%s, seed %s: ended with %s, not %s\n' "$1" "$seed" "$rc" "$(cat "$work/$1.as")"
		cat "$work/diff" "$work/log"
	fi
}

case $seed in
*-rounds)
	rounds=${seed%-rounds}
	mapfile -t day < <(sed -n 's,^loopback guest/\([a-z0-9_]*\) .*,\1,p' "$build/tests/list" | grep -v '^nccl_\|^crash$')
	for ((seed = RANDOM; saved < rounds && !failed; seed++)); do
		echo "seed $seed"
		while read -r name; do
			[ "$saved" -ge "$rounds" ] || [ ! -e "$build/tests/guest/$name" ] || run "$name"
		done < <(printf '%s\n' "${day[@]}" | sort -R)
	done
	;;
*)
	[ $# -eq 0 ] || day=("$@")
	for name in "${day[@]}"; do
		run "$name"
	done
	;;
esac
sort "$work/all" | uniq -c | sort -rn
[ "$saved" -gt 0 ] || {
	echo "nothing was saved"
	failed=1
}
exit $failed

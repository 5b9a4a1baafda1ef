#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs the test programs, optimised, with the whole stack and its defaults: the driver's chunk
# size, and chunks remapped side by side on the host. Programs that move much data run again with other
# chunk sizes. Those that only compute run at night, and those that other scripts run with the same options.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

programs_of guest
# vm/managed_moves and vm/malloc run these; vm/two_gpus those of NCCL, with one GPU more.
twice=' fork_child malloc_pageable malloc_sparse managed_advice managed_moves managed_random managed_variables
	nccl_abort nccl_ended nccl_far nccl_graphs nccl_killed nccl_resize nccl_strangers nccl_threads nccl_transfers nccl_wrong '
[ -z "${QCU_NIGHTLY:-}" ] || twice=
for i in "${!programs[@]}"; do
	[[ $twice != *[[:space:]]"${programs[i]##*/}"[[:space:]]* ]] || unset "programs[i]"
done
with "${programs[@]}"
boot --map cvm "${with[@]}" <<'END'
programs ''
for chunk in 64K 1M 16M; do
	export QCU_CHUNK=$chunk
	expect chunks-$chunk/big_copies 0 big_copies
	expect chunks-$chunk/pinned_zero_copy 0 pinned_zero_copy
	expect chunks-$chunk/async_copies 0 async_copies
done
unset QCU_CHUNK

# Copies through kernel memory: the way that the other ways are compared with.
echo 1 >/sys/module/qcuda/parameters/kernel_copy
stat copied_in_guest
before=$value
for p in big_copies async_copies memory_errors host_register 'bandwidth 16'; do
	# shellcheck disable=SC2086
	expect "kernel-copy/${p% *}" 0 $p
done
begin kernel-copy/counted
stat copied_in_guest
[ $((value - before)) -gt $((100 << 20)) ] && pass || fail "only $((value - before)) bytes were copied"
echo 0 >/sys/module/qcuda/parameters/kernel_copy
END

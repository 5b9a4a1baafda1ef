#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Managed memory that moves between the guest and the GPU: case by case, at random, with a quota that is
# smaller than the memory, with other chunk sizes, and with a process that is killed. MANAGED_STEPS=N adds N steps
# at random.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

with "$guest"/{managed_moves,managed_random,managed_advice,managed_variables,fork_child}
boot "${with[@]}" <<'END'
# moved NAME CODE COMMAND...: runs it, and sets $up and $down to how many bytes have moved.
moved() {
	stat moved_up_bytes
	up=$value
	stat moved_down_bytes
	down=$value
	expect "$@"
	stat moved_up_bytes
	up=$((value - up))
	stat moved_down_bytes
	down=$((value - down))
}

for case in in_turn scattered zeros_and_backwards copies host_function graph ipc system_calls signal_handler read_only \
	advice freed threads after_a_fault; do
	moved "$case" 0 managed_moves $case
	begin "$case/moved"
	[ $down -gt 0 ] && pass || fail "nothing has moved down"
done
# 20 turns of a hundredth. A chunk for each of them would be 80 MiB.
moved part 0 managed_moves part
begin part/moved
[ $((up + down)) -lt $((40 << 20)) ] && pass || fail "$up bytes up, $down down"
moved in_place 0 env QCU_MANAGED=inplace managed_moves
begin in_place/moved
[ $((up + down)) -eq 0 ] && pass || fail "$up bytes up, $down down"
expect managed_advice 0 managed_advice
expect managed_variables 0 managed_variables
expect fork_child 0 fork_child
expect random/forks+host-functions 0 managed_random 400 1 fh
expect random/forks+shared 0 managed_random 400 2 fs
begin killed
stat moved_down_bytes
before=$value
moving() {
	stat moved_down_bytes
	[ "$value" -gt $((before + (8 << 20))) ]
}
managed_random 1000000 3 s >>$log 2>&1 &
pid=$!
until_true moving && kill -9 $pid
wait $pid
rc=$?
[ $rc -eq 137 ] && pass || fail "exit code $rc"
expect after-the-kill 0 managed_moves in_turn
END

# So little device memory that some allocations of each program stay in place.
boot --device-arg --limit --device-arg vm-device-memory=24M --chunk 64K "${with[@]}" <<'END'
for case in in_turn scattered host_function freed threads; do
	expect "quota/$case" 0 managed_moves $case
done
expect quota/random 0 managed_random 240 4 fs
END

[ -z "${MANAGED_STEPS:-}" ] || boot --timeout 3000 "${with[@]}" <<END
expect random/$MANAGED_STEPS 0 managed_random $MANAGED_STEPS 5 fs
END

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Managed memory that moves between the guest and the GPU.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

with "$guest"/{managed_moves,managed_advice,managed_variables,fork_child}
boot "${with[@]}" <<'END'
# moved NAME COMMAND...: runs it, and sets $up and $down to how many bytes have moved.
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

for case in in_turn scattered zeros_and_backwards copies host_function graph system_calls \
	signal_handler read_only advice freed threads; do
	moved "moves/$case" 0 managed_moves $case
	echo "moved by $case: $up up, $down down"
	[ $down -gt 0 ] || echo "@FAIL moves/$case/counts nothing has moved"
done
moved moves/inplace 0 env QCU_MANAGED=inplace managed_moves
[ $((up + down)) -eq 0 ] || echo "@FAIL moves/inplace/counts $up up, $down down"
expect managed_advice 0 managed_advice
expect managed_variables 0 managed_variables
expect fork_child 0 fork_child
END

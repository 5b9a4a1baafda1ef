#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: newer_vm.sh RELEASE
#
# Tests a guest that a QEMU without our front end runs: that it has this kernel, what the device looks like
# there, and some programs. newer_inside.sh runs this; its results are lines as in tests/vm/.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh" || exit 2

expect_host refuses-a-qemu-without-device 2 'no QEMU with vhost-user-test-device-pci' \
	env PATH="$tmp/nothing:/usr/bin:/bin" bash -c "
	mkdir '$tmp/nothing' && printf '#!/bin/sh\nexit 1\n' >'$tmp/nothing/qemu-system-x86_64'
	chmod +x '$tmp/nothing/qemu-system-x86_64'
	scripts/qcu run --qemu system /bin/true"

with "$guest"/{device_query,vector_add,matmul,reduction,pinned_zero_copy,streams_events,host_functions,printf_kernel,managed_variables}
export WANTED=$1
boot --sessions 8 "${with[@]}" <<'END'
begin release
[ "$(uname -r)" = "$WANTED" ] && pass || fail "$(uname -r)"

begin plain-device
set -- /sys/bus/virtio/drivers/qcuda/virtio*
[ "$(cat "$1/device")" = 0x0015 ] && pass || fail "$*: $(cat "$1/device")"

programs ''

# One interrupt serves all queues: programs at once must each get their answers.
begin many-programs-one-interrupt
pids=
for n in 1 2 3 4 5 6; do
	vector_add >>$log 2>&1 &
	pids="$pids $!"
done
why=
for p in $pids; do
	wait "$p" || why="$why $?"
done
[ -z "$why" ] && pass || fail "exit codes$why"
END

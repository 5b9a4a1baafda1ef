#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What the guest reads in the config space is wrong for a while: torn, because the host process comes or goes meanwhile, or
# of a device that the driver cannot work with. CUDA works in the VM as soon as the config is right again. A program between
# QEMU and qcu-device changes what the guest reads.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/vm/machine/machine.sh
. tests/vm/machine/machine.sh

with "$guest"/{first_call,vector_add}
guest_script "$tmp/script" <<'END'
expect first 0 vector_add

# wrong NAME PLAN: the device goes and comes, and what is then read of it is changed by PLAN (between.py).
wrong() {
	begin "$1"
	shift
	ask "restart $*"
	until_true vector_add >>$log 2>&1 && pass || fail "exit code $?"
}

# The guest reads the 64 bytes one by one: once to see whether the device must be set up again, then to set it up.
for skip in 0 64 100; do
	wrong torn-after-$skip $skip 4 0 00000000
done
wrong torn-at-its-end 30 20 8 0000000000000000
wrong twice-torn 62 70 0 000000000000000000000000
wrong no-sessions 0 90 8 00000000
wrong too-many-sessions 64 30 8 ffffffff
wrong window-outside 0 70 16 00000000000000ff0000000000000000

# A host with another release, until it is replaced.
begin other-release
ask "restart 0 0 4 0f270000"
until_true first_call 803 >>$log 2>&1
grep -q 'speaks [0-9]*, the qcuda module [0-9]*, the device 9999; to be updated: this libcudart the module$' $log && rc=0 || rc=1
ask "restart 0 1 32 00"
until_true vector_add >>$log 2>&1 && [ $rc -eq 0 ] && pass || fail 'see above'

# Reading the config goes on meanwhile, as nothing may say that it is right again.
begin right-without-a-notice
ask "restart 0 0 4 0f270000"
until_true first_call 803 >>$log 2>&1
ask "plan 0 1 32 00"
until_true vector_add >>$log 2>&1 && pass || fail "exit code $?"
END

host_plan() {
	echo "$1" >"$tmp/new-plan"
	mv "$tmp/new-plan" "$tmp/plan"
	echo yes
}

host_restart() {
	host_plan "$1" >/dev/null
	host_kill
}

device_socket=$tmp/real.sock
tests/vm/machine/between.py "$tmp/qcu.sock" "$device_socket" "$tmp/plan" &
between=$!
machine_start "${with[@]}"
machine_serve
machine_end
kill $between

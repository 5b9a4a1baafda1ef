#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The VM's memory changes while programs run: a DIMM is plugged in and removed. Running programs get an
# error, and never touch memory that now belongs to somebody else. Programs that start later work, also
# with the new memory. QCU_SHORT: then the device is killed in this guest, as far as QEMU and KVM have a part in it.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/vm/machine/machine.sh
. tests/vm/machine/machine.sh

with "$guest"/{sleeper,first_call,vector_add,bandwidth}
guest_script "$tmp/script" <<'END'
# blocks STATE: prints how many of the kernel's memory blocks have this state.
blocks() {
	grep -l "^$1" /sys/devices/system/memory/memory*/state | wc -l
}

more_blocks() {
	[ "$(blocks .)" -gt "$before" ]
}

echo offline >/sys/devices/system/memory/auto_online_blocks
# Blocks of new memory do not come online by themselves. Below they are set to online_movable, so that
# everything in them can be moved away again.
expect first 0 vector_add
before=$(blocks .)

begin a-dimm-comes
begin_two
ask plug
until_true more_blocks
end_busy
end_idle
[ "$at_work $waited" = '46 46' ] && pass || fail "exit codes $at_work $waited"

# Most of the old memory is in use, so the program gets memory of the new DIMM.
begin programs-use-the-new-memory
for state in /sys/devices/system/memory/memory*/state; do
	read -r word <"$state"
	[ "$word" != offline ] || echo online_movable >"$state" || echo "$state stays offline" >>$log
done
memory
dd if=/dev/zero of=/dev/shm/hog bs=1M count=$((value / 1024 - 200)) 2>>$log
bandwidth 64 >>$log 2>&1
rc=$?
rm /dev/shm/hog
available=0
[ $rc -eq 0 ] && [ "$(blocks offline)" -eq 0 ] && pass || fail "exit code $rc, blocks offline: $(blocks offline)"

begin the-dimm-goes
begin_two
ask unplug
end_busy
end_idle
available=0
[ "$at_work $waited" = '46 46' ] && [ "$answer" = gone ] && pass || fail "exit codes $at_work $waited, the DIMM: $answer"
available=0
expect works-after-all 0 vector_add
[ "${1:-}" = restart ] || exit 0

# As in device_restart.
begin killed-and-back
begin_two
ask kill
end_busy
until_true first_call 0 >>$log 2>&1
end_idle
[ "$at_work $waited" = '46 46' ] && pass || fail "exit codes $at_work $waited"
expect works-again 0 vector_add
ask kill-while-stopped
begin killed-while-the-vm-is-stopped
until_true first_call 0 >>$log 2>&1
vector_add >>$log 2>&1 && pass || fail "exit code $?"
END

host_plug() {
	qmp object-add '{"qom-type":"memory-backend-memfd","id":"more","size":268435456,"share":true}' &&
		qmp device_add '{"driver":"pc-dimm","id":"dimm","memdev":"more"}' && echo plugged ||
		echo "$qmp_answer"
}

# The guest needs some time to empty the DIMM.
host_unplug() {
	qmp_forget
	qmp device_del '{"id":"dimm"}' && qmp_event DEVICE_DELETED && echo gone || echo "$qmp_answer"
}

machine_start --mem 512M --qemu-arg -m --qemu-arg slots=2,maxmem=2G "${with[@]}" ${QCU_SHORT:+restart}
machine_serve
machine_end

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The VM is reset, rebooted and switched off, and the driver loses its device, while programs use the
# device. No mirror outlives its guest program, and the next program runs.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/vm/machine/machine.sh
. tests/vm/machine/machine.sh

with "$guest"/{sleeper,vector_add}
guest_script "$tmp/script" <<'END'
ask boot
boot=$answer
expect boot-$boot-works 0 vector_add

case $boot in
1)
	begin_two
	ask reset
	;;
2)
	begin unbound-under-programs
	begin_two
	cd /sys/bus/virtio/drivers/qcuda
	dev=$(echo virtio*)
	echo "$dev" >unbind
	end_busy
	timeout $((20 * slow)) vector_add >>$log 2>&1
	without=$?
	echo "$dev" >bind
	vector_add >>$log 2>&1
	after=$?
	# The program that waited gets its error now: its session does not come back.
	end_idle
	cd /
	ask unbound
	if [ $at_work$waited$after = 46460 ] && [ $without -ne 0 ] && [ $without -ne 124 ]; then
		pass
	else
		fail "at work $at_work, without the device $without, after it $after, waiting $waited"
	fi

	begin_two
	ask about-to-end
	reboot -f
	;;
3)
	begin_two
	ask about-to-end
	poweroff -f
	;;
esac
END

times=0
host_boot() {
	times=$((times + 1))
	echo $times
	case $times in
	2) after_end reset 'the guest stopped or reset the device' ;;
	3) after_end reboot 'the guest stopped or reset the device' ;;
	esac >&2
}

host_unbound() {
	after_end unbind 'the guest stopped or reset the device' >&2
	echo yes
}

# said_twice WHY: has the log said so of both sessions?
said_twice() {
	[ "$(grep -c "sleeper.*ended, because $1" "$device_log")" -eq 2 ]
}

# after_end NAME WHY: waits until no mirror of the two sessions is left, and until the log says why they
# ended.
after_end() {
	if ! until_host no_mirrors; then
		echo "@FAIL $1-ends-sessions mirrors are left: $(mirrors)"
	elif ! until_host said_twice "$2"; then
		echo "@FAIL $1-ends-sessions not both sessions ended for that reason"
	else
		echo "@ok $1-ends-sessions"
	fi
	cat "$device_log"
	: >"$device_log"
}

host_reset() {
	local n
	n=$(mirrors | wc -l)
	[ "$n" -eq 2 ] || echo "@FAIL reset-with-sessions there are $n mirrors" >&2
	qmp system_reset
}

# After the VM has been switched off, nothing may write to its memory.
host_about-to-end() {
	[ "$times" -eq 3 ] || {
		echo yes
		return
	}
	qmp_forget
	echo yes >&"$to_guest"
	qmp_event SHUTDOWN && qmp_event STOP || echo '@FAIL poweroff the VM does not stop' >&2
	after_end poweroff 'the guest stopped or reset the device' >&2
	qmp system_reset
	qmp cont
}

machine_start --qemu-arg -action --qemu-arg reboot=reset,shutdown=pause "${with[@]}"
machine_serve 2>&1
if [ "$times" -ne 4 ]; then
	echo "@FAIL times $times, expected 4"
fi
machine_end

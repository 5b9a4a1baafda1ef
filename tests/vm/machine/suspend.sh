#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The guest is suspended. While programs use CUDA, the driver refuses this with a reason, and the
# programs go on. Otherwise the guest sleeps and wakes up, and the next program works.
#
# The test uses the kernel's own test mode, which does all steps except the last one
# (Documentation/power/basic-pm-debugging). QEMU starts this guest without a boot loader, so the guest
# does not wake up from ACPI's S3, with or without our device.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/vm/machine/machine.sh
. tests/vm/machine/machine.sh
B=$(realpath "$B")
qcu=$root/$qcu guest=$B/tests/guest klogs=$B/tests/logs/klog

with "$guest"/{sleeper,first_call,vector_add}
guest_script "$tmp/script" <<'END'
# nap HOW: suspends the guest and sets $slept to the exit code.
nap() {
	echo "$1" >/sys/power/state 2>>$log
	slept=$?
}

# said TEXT: prints how often TEXT is in the kernel's log.
said() {
	dmesg | grep -c "$1"
}

echo platform >/sys/power/pm_test
echo 0 >/sys/module/suspend/parameters/pm_test_delay
expect first 0 vector_add

round=0
for how in mem freeze; do
	round=$((round + 1))
	begin refused-under-a-program-$how
	mkfifo /tmp/in
	# Not what the last program has said.
	: >/tmp/out
	sleeper </tmp/in >/tmp/out 2>&1 &
	pid=$!
	exec 3>/tmp/in
	until_true grep -q ready /tmp/out
	nap $how
	exec 3>&-
	wait $pid
	rc=$?
	rm /tmp/in
	cat /tmp/out >>$log
	said=$(said 'no suspend while programs use CUDA')
	[ $slept -ne 0 ] && [ $rc -eq 0 ] && [ "$said" -eq $round ] && pass ||
		fail "sleeping ended with $slept, the program with $rc, it was said $said times"

	begin sleeps-and-wakes-up-$how
	before=$(said 'qcuda.*sessions, wire version')
	nap $how
	vector_add >>$log 2>&1
	rc=$?
	again=$(($(said 'qcuda.*sessions, wire version') - before))
	[ $slept$rc$again = 001 ] && pass ||
		fail "sleeping ended with $slept, a program with $rc; set up anew $again times"
done

begin sleeps-without-a-device
ask kill-and-keep
until_true first_call 100 >>$log 2>&1
nap mem
first_call 100 >>$log 2>&1
without=$?
ask let-it-come
until_true first_call 0 >>$log 2>&1
[ $slept$without$? = 000 ] && pass || fail "sleeping ended with $slept, a program then with $without"
expect works-after-all 0 vector_add
END

# This VM has no shared folder: Linux' 9p does not support suspend. In / the launcher
# shares nothing, because it never shares the root folder.
machine_share=()
cd / || exit
machine_start "${with[@]}"
cd "$root" || exit
machine_serve
machine_end

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The guest's memory runs out. The kernel must kill the program that has filled the memory with chunks,
# and no other program. So the kernel must see how much memory that program has, and must wait until
# the memory of a killed program is freed, which takes a moment. OOM_ROUNDS sets how often each case runs: by day once, and the cases
# follow one another in the same guest.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

rounds=${OOM_ROUNDS:-1}
[ -z "${QCU_NIGHTLY:-}" ] || rounds=${OOM_ROUNDS:-5}
with "$tools"/{oom,resident}
{
	echo "rounds=$rounds"
	cat <<'END'
for test in $(resident --list); do
	expect "resident/$test" 0 resident "$test"
done
echo on >/proc/sys/kernel/printk_devkmsg

# When the kernel kills a process, it writes a call trace to its log. It writes another one when an
# allocation of such a process fails. The traces of hogs are removed, because the log is searched for
# call traces afterwards.
forgive() {
	dmesg -c | sed -e '/invoked oom-killer/,/Out of memory: Killed process .*(hog)/d' \
		-e '/ hog: page allocation failure/,/Mem-Info:/d' >/tmp/klog
	while read -r line; do
		echo "$line"
	done </tmp/klog >/dev/kmsg
}

# one HOG: runs a hog. The hog must be killed, but not the innocent program, and not a program that asks
# for memory when there is none.
one() {
	oom innocent /tmp/ready >>$log 2>&1 &
	innocent=$!
	until_true [ -e /tmp/ready ]
	rm -f /tmp/full
	oom "$1" /tmp/full >>$log 2>&1 &
	hog=$!
	asked=0
	if [ "$1" = untouched ]; then
		until_true [ -e /tmp/full ] || echo 'never full' >>$log
		oom asks 120 >>$log 2>&1
		asked=$?
		kill $hog 2>/dev/null
	fi
	wait $hog
	hog=$?
	rm /tmp/ready
	wait $innocent
	innocent=$?
	[ "$hog $innocent $asked" = '137 0 0' ] && return
	dmesg >>$log
	fail "the hog ended with $hog, the innocent one with $innocent, who asked with $asked"
	return 1
}

# Unmapped memory that a busy stream still holds is not freed. It must not delay the kill for long.
begin held
oom held /tmp/held >>$log 2>&1 &
holder=$!
until_true [ -e /tmp/held ]
stat oom_waits
waits=$value
one ordinary
good=$?
kill $holder
wait $holder
stat oom_waits
if [ $good -eq 0 ]; then
	[ "$value" -gt "$waits" ] && pass || fail 'the kernel has not waited at all'
fi
forgive

for kind in touched faulted untouched; do
	n=0
	while [ $n -lt $rounds ]; do
		n=$((n + 1))
		begin "$kind-$n"
		one $kind && pass
		forgive
	done
done
END
} | boot --mem 512M "${with[@]}" --timeout $((200 + rounds * 60))

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A guest whose memory runs out. The kernel ends the program that has filled it with chunks, and
# nobody else: it has to see how much that program has, and to know that what it had takes a moment
# to come back. OOM_ROUNDS says how often each is tried.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

rounds=${OOM_ROUNDS:-2}
with "$tools"/{oom,resident}
{
	echo "rounds=$rounds"
	cat <<'END'
for test in $(resident --list); do
	expect "resident/$test" 0 resident "$test"
done
echo on >/proc/sys/kernel/printk_devkmsg

# The kernel tells of a process that it kills with a call trace, and of what such a process still asks
# for and does not get with another one. Those of hogs are taken out of its log, which is searched for
# such afterwards.
forgive() {
	dmesg -c | sed -e '/invoked oom-killer/,/Out of memory: Killed process .*(hog)/d' \
		-e '/ hog: page allocation failure/,/Mem-Info:/d' >/tmp/klog
	while read -r line; do
		echo "$line"
	done </tmp/klog >/dev/kmsg
}

# one HOG: it is killed; the innocent one is not, nor whoever asks for memory when there is none.
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

# Memory that does not come back keeps nobody from being ended for long.
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

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Memory cgroups: chunks are charged to the cgroup of their process, and its limit holds.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

with "$tools/memcg" "$guest"/{vector_add,out_of_memory}
boot --mem 2G "${with[@]}" <<'END'
for test in charged commands_are_refused touching_is_killed; do
	expect $test 0 memcg $test
done

# When the kernel kills a process, it writes a call trace to its log. Only this trace is removed,
# because the log is searched for call traces afterwards.
echo on >/proc/sys/kernel/printk_devkmsg
dmesg -c | sed '/invoked oom-killer/,/Memory cgroup out of memory: Killed process .*(memcg)/d' >/tmp/klog
while read -r line; do
	echo "$line"
done </tmp/klog >/dev/kmsg

# A whole CUDA program gets an error and no signal. Then another program runs.
begin pinned-memory-beyond-the-limit
group=/sys/fs/cgroup/qcuda-program
mkdir $group
echo 256M >$group/memory.max
sh -c "echo 0 >$group/cgroup.procs && exec out_of_memory 1" >>$log 2>&1
rc=$?
cat $group/memory.events >>$log
[ $rc -eq 0 ] && grep -q '^oom_kill 0' $group/memory.events && pass || fail "exit code $rc"
expect next 0 vector_add
END

#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs in the guest: inside.sh PROGRAM... runs programs of this folder, or of PROGRAMS_IN, one after the other,
# each in a process of its own, and prints a line for each (tests/run).
here=${PROGRAMS_IN:-$(dirname "$0")}

# hundredths: sets $now to the time since boot, in hundredths of a second.
hundredths() {
	read -r now _ </proc/uptime
	now=${now%.*}${now#*.}
}

for program; do
	hundredths
	began=$now
	timeout -k 5 $((200 * ${QCU_SLOW:-1})) python3 "$here/$program.py" 2>&1 </dev/null
	rc=$?
	hundredths
	took=$((now - began))
	if [ $rc -eq 0 ]; then
		echo "@ok $program $((took / 100)).$((took / 10 % 10))"
	else
		echo "@FAIL $program exit code $rc"
	fi
done

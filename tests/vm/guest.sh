# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=dash
#
# Functions that the scripts inside the guest share. tests/vm/lib.sh puts this file in front of each
# script. A guest boots once and runs many tests. After each test nothing of it may be left: no
# session, no chunk, no pinned page, no request, and the memory must be free again.
#
# Avoid forks: under emulation each fork costs milliseconds.
#
# A program has no time limit of its own: the boot has one, on the host's clock. The guest's clock may be wrong by far,
# when its kernel has measured its processor while that stood still. What waits here is multiplied by $slow, which
# tests/vm/lib.sh may set.

stats=/sys/kernel/debug/qcuda/stats
log=/tmp/test.log
slow=${slow:-1}
available=0 # the idle guest's memory (see memory), in KiB; 0: not known yet
slack=8192  # how many KiB of it may be missing
# KASAN keeps freed memory, up to a 32nd of all memory, and kmemleak records each allocation.
[ ! -e /sys/kernel/debug/kmemleak ] || slack=131072

# clock: sets $ticks to the time since boot, in hundredths of a second.
clock() {
	read -r ticks _ </proc/uptime
	ticks=${ticks%.*}${ticks#*.}
}

# stat NAME: sets $value to the driver's counter NAME.
stat() {
	value=
	while read -r _key _value; do
		[ "$_key" != "$1" ] || value=$_value
	done <"$stats"
}

# memory: sets $value to the memory that programs could get, in KiB. This is MemAvailable plus the free
# pages that each CPU keeps. MemAvailable does not count these, although they are tens of megabytes.
memory() {
	while read -r _key _value _; do
		[ "$_key" != MemAvailable: ] || value=$_value
	done </proc/meminfo
	while read -r _key _value _; do
		[ "$_key" != count: ] || value=$((value + _value * 4))
	done </proc/zoneinfo
}

# leftovers: sets $left to what is left behind. The driver gets two seconds to clean up after a killed
# program.
leftovers() {
	_tries=0
	while :; do
		left=
		while read -r _key _value; do
			case $_key in
			sessions | groups | chunk_pages | pinned_pages | requests | snapshots)
				[ "$_value" = 0 ] || left="$left $_key $_value"
				;;
			esac
		done <"$stats"
		memory
		if [ "$available" -gt 0 ] && [ "$value" -lt $((available - slack)) ]; then
			left="$left $((available - value)) KiB less memory than before"
		fi
		if [ -z "$left" ] || [ $_tries -ge $((40 * slow)) ]; then
			break
		fi
		_tries=$((_tries + 1))
		usleep 50000
	done
}

# begin NAME: starts a test. The test ends with pass or with fail WHY. When the boot ends before that, its output says
# which test it was.
begin() {
	name=$1
	echo "begin $name"
	clock
	started=$ticks
	: >$log
}

pass() {
	if [ -e $stats ]; then
		leftovers
		[ -z "$left" ] || {
			fail "left behind:$left"
			return
		}
		# The first program fills caches, which stay. So the memory is measured after it.
		[ "$available" -gt 0 ] || available=$value
	fi
	clock
	_t=$((ticks - started))
	echo "@ok $name $((_t / 100)).$((_t / 10 % 10))"
}

fail() {
	cat $log
	echo "@FAIL $name $*"
}

# expect NAME CODE COMMAND...: a test that runs COMMAND and expects exit code CODE, a number or a
# pattern. COMMAND is no function of these scripts, though one may have its name. Exit code 77 means that the test was skipped,
# and its last line why. The output goes to $log.
expect() {
	begin "$1"
	_want=$2
	shift 2
	command "$@" >>$log 2>&1 </dev/null
	rc=$?
	# shellcheck disable=SC2254
	case $rc in
	$_want) pass ;;
	77) echo "@skip $name $(tail -n 1 $log)" ;;
	*) fail "exit code $rc, expected $_want" ;;
	esac
}

# programs PREFIX: runs every test program once. PREFIX is put before the test's name.
programs() {
	for _p in /qcu/bin/*; do
		_p=${_p##*/}
		case $_p in
		qcu-run | qcu-smi | sleeper | crash) ;;
		illegal_access)
			for _n in 0 1 2; do
				expect "$1$_p-$_n" 0 "$_p" $_n
			done
			;;
		bandwidth) expect "$1$_p" 0 "$_p" 16 ;;
		*)
			# What a program repeats, it repeats less often by day. Without a VM all of it runs.
			_often=
			[ -n "${QCU_NIGHTLY:-}" ] || case $_p in
			malloc_pageable) _often=1000 ;;
			managed_random) _often=400 ;;
			many_small) _often=500 ;;
			esac
			# shellcheck disable=SC2086
			expect "$1$_p" 0 "$_p" $_often
			;;
		esac
	done
}

# until_true COMMAND...: waits up to ten seconds for COMMAND to succeed.
until_true() {
	_tries=0
	until "$@"; do
		_tries=$((_tries + 1))
		[ $_tries -lt $((200 * slow)) ] || return 1
		usleep 50000
	done
}

# is STAT VALUE: true if the driver's counter STAT has this value.
is() {
	stat "$1"
	[ "$value" = "$2" ]
}

# ask DEED: the host does something (machine.sh). Sets $answer to what it says.
ask() {
	echo "host: $1"
	read -r answer
}

# begin_two: starts one program that waits for us, and one that works. Both have a session and a mirror.
begin_two() {
	# Make new pipes: data that is left in a pipe stays there while a process has the pipe open.
	rm -f /tmp/never /tmp/in.idle
	mkfifo /tmp/never /tmp/in.idle
	: >/tmp/idle
	: >/tmp/busy
	sleeper </tmp/in.idle >/tmp/idle 2>&1 &
	idle=$!
	exec 3>/tmp/in.idle
	sleeper busy <>/tmp/never >/tmp/busy 2>&1 &
	busy=$!
	until_true grep -q ready /tmp/idle
	until_true grep -q ready /tmp/busy
}

# end_busy: waits for the program that works. Sets $at_work to its exit code.
end_busy() {
	wait $busy
	at_work=$?
}

# end_idle: lets the program that waits go on. Sets $waited to its exit code.
end_idle() {
	echo >&3
	exec 3>&-
	wait $idle
	waited=$?
	cat /tmp/idle /tmp/busy >>$log
}

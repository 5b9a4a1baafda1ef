# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=dash
#
# What the scripts that run inside the guest share; tests/vm/lib.sh puts it in front of each. A guest
# boots once and runs many tests. After every one of them nothing of it may be left: no session, no
# chunk, no pinned page, no request, and the memory is back.
#
# Mind the forks: under emulation each costs milliseconds.
#
# All limits are $slow times what they say; tests/vm/lib.sh may set it.

stats=/sys/kernel/debug/qcuda/stats
log=/tmp/test.log
limit=60 # seconds, for each program
slow=${slow:-1}
available=0 # MemAvailable of the idle guest, in KiB; 0: not known yet
slack=8192  # so much of it may be missing
# KASAN keeps what was freed, up to a 32nd of the memory, and kmemleak writes down what is allocated.
[ ! -e /sys/kernel/debug/kmemleak ] || slack=131072

# Hundredths of a second since boot, in $ticks.
clock() {
	read -r ticks _ </proc/uptime
	ticks=${ticks%.*}${ticks#*.}
}

# stat NAME: a counter of the driver, in $value.
stat() {
	value=
	while read -r _key _value; do
		[ "$_key" != "$1" ] || value=$_value
	done <"$stats"
}

# The memory that programs could have, in $value, in KiB: what the kernel says, and the free pages
# that each CPU keeps for itself, which it leaves out although they are tens of megabytes.
memory() {
	while read -r _key _value _; do
		[ "$_key" != MemAvailable: ] || value=$_value
	done </proc/meminfo
	while read -r _key _value _; do
		[ "$_key" != count: ] || value=$((value + _value * 4))
	done </proc/zoneinfo
}

# What is left, in $left; gives the driver two seconds for what a killed program leaves behind.
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

# begin NAME; ...; then one of pass, fail WHY
begin() {
	name=$1
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
		# The first program has filled caches that stay.
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

# expect NAME CODE COMMAND...: runs it, output into $log; CODE is a number or a pattern.
expect() {
	begin "$1"
	_want=$2
	shift 2
	timeout -k 2 $((limit * slow)) "$@" >>$log 2>&1 </dev/null
	rc=$?
	# shellcheck disable=SC2254
	case $rc in
	$_want) pass ;;
	143 | 124) fail "not done after $((limit * slow)) s" ;;
	*) fail "exit code $rc, expected $_want" ;;
	esac
}

# Every test program once: programs PREFIX
programs() {
	for _p in /qcu/bin/*; do
		_p=${_p##*/}
		case $_p in
		sleeper | crash) ;;
		illegal_access)
			for _n in 0 1 2; do
				expect "$1$_p-$_n" 0 "$_p" $_n
			done
			;;
		bandwidth) expect "$1$_p" 0 "$_p" 16 ;;
		*) expect "$1$_p" 0 "$_p" ;;
		esac
	done
}

# until COMMAND...: waits up to ten seconds for it to succeed.
until_true() {
	_tries=0
	until "$@"; do
		_tries=$((_tries + 1))
		[ $_tries -lt $((200 * slow)) ] || return 1
		usleep 50000
	done
}

# is STAT VALUE
is() {
	stat "$1"
	[ "$value" = "$2" ]
}

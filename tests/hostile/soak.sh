#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Eight programs at a time start, compute, stop and are killed in one VM, for SECONDS (60). From time
# to time all of them rest. Then nothing may be left: no session, no page, no mirror, no descriptor.
# At the end, guest and host use as much memory as at the first rest, and no program has had a wrong
# result.
#
#	tests/hostile/soak.sh [SECONDS]
#
# This is not part of `make test`. CI runs the same programs one after the other.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"

seconds=${1:-60}
# Programs with time limits are left out: with eight programs at once they may miss their limits.
programs=(vector_add matmul async_copies reduction scan sha256 fft graphs
	memory_pools pinned_zero_copy printf_kernel texture_2d array_copies multi_thread
	managed_variables per_thread_streams fork_child symbols atomics_histogram)
have=()
for p in "${programs[@]}"; do
	[ ! -x "$guest/$p" ] || have+=("$guest/$p")
done
with "${have[@]}" "$guest/sleeper"

{
	cat tests/vm/guest.sh
	printf 'seconds=%s rest_each=%s\n' "$seconds" "$((seconds / 10 > 300 ? 300 : seconds / 10 + 1))"
	echo "programs='${have[*]##*/}'"
	cat <<'END'
mkfifo /tmp/never
mkdir /tmp/w

now() {
	read -r ticks _ </proc/uptime
	ticks=${ticks%.*}
}

# worker N: runs one program after the other. Workers run different programs at the same time.
worker() {
	_n=0
	_skip=$1
	while [ ! -e /tmp/over ]; do
		for _p in $programs; do
			_skip=$((_skip - 1))
			[ $_skip -lt 0 ] || continue
			_skip=2
			while [ -e /tmp/pause ] && [ ! -e /tmp/over ]; do
				: >/tmp/w/idle.$1
				usleep 200000
			done
			rm -f /tmp/w/idle.$1
			[ ! -e /tmp/over ] || break
			timeout -k 5 1500 $_p >/tmp/w/out.$1 2>&1 </dev/null
			_rc=$?
			_n=$((_n + 1))
			echo $_n >/tmp/w/count.$1
			if [ $_rc -ne 0 ]; then
				echo "$_p ended with $_rc"
				tail -n 5 /tmp/w/out.$1
				echo "$_p $_rc" >>/tmp/w/wrong
			fi
		done
	done
	: >/tmp/w/idle.$1
}

# killer N: starts programs that copy and compute, and kills each while it works.
killer() {
	_n=0
	while [ ! -e /tmp/over ]; do
		while [ -e /tmp/pause ] && [ ! -e /tmp/over ]; do
			: >/tmp/w/idle.$1
			usleep 200000
		done
		rm -f /tmp/w/idle.$1
		sleeper busy <>/tmp/never >/tmp/w/out.$1 2>&1 &
		_pid=$!
		usleep $(((_n * 7919 % 40) * 100000 + 50000))
		kill -9 $_pid
		wait $_pid 2>/dev/null
		_n=$((_n + 1))
		echo $_n >/tmp/w/count.$1
	done
	: >/tmp/w/idle.$1
}

all_idle() {
	for _w in 1 2 3 4 5 6 7 8; do
		[ -e /tmp/w/idle.$_w ] || return 1
	done
}

rest() {
	: >/tmp/pause
	_tries=0
	until all_idle; do
		_tries=$((_tries + 1))
		[ $_tries -lt 9000 ] || {
			echo '@FAIL rest the programs do not come to an end'
			break
		}
		usleep 200000
	done
	echo 3 >/proc/sys/vm/drop_caches
	leftovers
	total=0
	for _w in 1 2 3 4 5 6 7 8; do
		[ ! -e /tmp/w/count.$_w ] || read -r _c </tmp/w/count.$_w
		total=$((total + ${_c:-0}))
		_c=0
	done
	now
	echo "rest at $ticks s: $total programs so far, $value KiB available"
	[ -z "$left" ] || echo "@FAIL rest left behind:$left"
	echo 'host: rest'
	read -r _
}

for w in 1 2 3 4 5 6; do
	worker $w &
done
killer 7 &
killer 8 &
now
end=$((ticks + seconds))
first=
while [ $ticks -lt $end ]; do
	next=$((ticks + rest_each))
	while [ $ticks -lt $next ] && [ $ticks -lt $end ]; do
		sleep 1
		now
	done
	rest
	[ -n "$first" ] || first=$value
	[ $ticks -ge $end ] || rm -f /tmp/pause
done
: >/tmp/over
wait
if [ -e /tmp/w/wrong ]; then
	echo "@FAIL results $(wc -l </tmp/w/wrong) programs did not end well"
else
	echo "@ok results"
fi
if [ "$value" -lt $((first - 16384)) ]; then
	echo "@FAIL guest-memory $first KiB were available at the first rest, $value at the last"
else
	echo "@ok guest-memory"
fi
END
} >"$tmp/script"

# memory_of PID: prints the KiB of its anonymous memory and page tables.
memory_of() {
	awk '/^(RssAnon|VmPTE):/ { sum += $2 } END { print sum + 0 }' "/proc/$1/status"
}

mkfifo "$tmp/in" "$tmp/out"
TMPDIR=$tmp "$qcu" vm --script "$tmp/script" --klog "$klogs/$script" --share "$tmp/share" \
	--timeout $((seconds + 1800)) "${with[@]}" <"$tmp/in" >"$tmp/out" 2>&1 &
launcher=$!
exec 3>"$tmp/in" 4<"$tmp/out"
first='' last='' rests=0 bad=0
while IFS= read -r line <&4; do
	[[ $line != @FAIL* ]] || bad=1
	case $line in
	'host: rest')
		main=$(device_main)
		vm=$(pgrep -f -- "path=$tmp/.*/qcu.sock" | head -n 1)
		last="$(memory_of "$main") $(find "/proc/$main/fd" -mindepth 1 | wc -l) $(mirrors | wc -l) $(find /dev/shm -mindepth 1 | wc -l)"
		echo "host: qcu-device has $last (KiB, descriptors, mirrors, files in /dev/shm), QEMU $(memory_of "$vm") KiB"
		rests=$((rests + 1))
		[ -n "$first" ] || first=$last
		echo >&3
		;;
	*) echo "$line" ;;
	esac
done
wait $launcher
rc=$?
exec 3>&- 4<&-
[ $rc -eq 0 ] || {
	echo "@FAIL boot the guest ended with $rc"
	bad=1
}
read -r kib0 fds0 mirrors0 _ <<<"$first"
read -r kib1 fds1 mirrors1 _ <<<"$last"
if [ $rests -lt 2 ]; then
	echo "@FAIL host-memory there were $rests rests"
	bad=1
elif [ "$kib1" -gt $((kib0 + 2048)) ] || [ "$fds1" -gt "$fds0" ] || [ "$mirrors1" -gt "$mirrors0" ]; then
	echo "@FAIL host-memory $first at the first rest, $last at the last"
	bad=1
else
	echo '@ok host-memory'
fi
scan_klog
exit $bad

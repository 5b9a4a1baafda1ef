#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Kills guest programs, their mirrors, qcu-device and QEMU, at random moments and under load. After each
# kill the guest goes on if it can, and nothing is left: no session, page or program in the guest, and
# no process, descriptor, folder or shared memory on the host.
#
#	tests/hostile/kills.sh [ROUNDS [SEED]]
#
# One round is one kill. Every fifth kill ends the VM, and the next round boots a new VM.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"

rounds=${1:-10}
seed=${2:-$$}
RANDOM=$seed
echo "$rounds rounds, seed $seed"

with "$guest"/{sleeper,vector_add}
guest_script "$tmp/script" <<'END'
mkfifo /tmp/never

# start N: starts a program that copies and computes without end.
start() {
	: >/tmp/out.$1
	sleeper busy <>/tmp/never >/tmp/out.$1 2>&1 &
	eval "pid_$1=$!"
}

running() {
	case $(cat "/proc/$1/stat" 2>/dev/null) in
	'' | *') Z '*) return 1 ;;
	esac
}

# Counts the programs that have ended, and starts them again.
again() {
	ended=0
	for _i in 1 2 3; do
		eval "_pid=\$pid_$_i"
		running $_pid && continue
		wait $_pid
		_rc=$?
		[ $_rc -ne 0 ] || {
			cat /tmp/out.$_i
			echo "@FAIL kills a program has ended by itself, well"
		}
		ended=$((ended + 1))
		start $_i
	done
	for _i in 1 2 3; do
		until_true grep -q ready /tmp/out.$_i || {
			cat /tmp/out.$_i
			echo "@FAIL kills no program can be started"
		}
	done
}

for i in 1 2 3; do
	start $i
done
again
echo ready
while read -r order; do
	case $order in
	program)
		eval "kill -9 \$pid_$((1 + $(cut -d ' ' -f 1 /proc/uptime | tr -d .) % 3))"
		;;
	mirror)
		# The host has killed a mirror. Its program gets an error, sooner or later.
		;;
	rest)
		kill -9 $pid_1 $pid_2 $pid_3
		wait $pid_1 $pid_2 $pid_3 2>/dev/null
		leftovers
		[ $available -gt 0 ] || available=$value
		[ -z "$left" ] || echo "@FAIL kills left behind in the guest:$left"
		echo rest
		read -r _
		for i in 1 2 3; do
			start $i
		done
		again
		echo ready
		continue
		;;
	over) break ;;
	esac
	_tries=0
	ended=0
	while [ $ended -eq 0 ]; do
		usleep 50000
		again
		_tries=$((_tries + 1))
		[ $_tries -lt 1200 ] || {
			echo "@FAIL kills after the kill of a $order every program runs on, or hangs"
			break
		}
	done
	echo ready
done
kill -9 $pid_1 $pid_2 $pid_3
wait $pid_1 $pid_2 $pid_3 2>/dev/null
vector_add >$log 2>&1 || echo "@FAIL kills vector_add ended with $?"
END

# qcu-device's main process: its command line contains our folder. The mirrors are its descendants.
main_process() {
	pgrep -o -f -- "--socket $tmp/"
}

qemu_process() {
	pgrep -o -f -- "qemu-system.*path=$tmp/"
}

below() {
	local c
	for c in $(pgrep -P "$1"); do
		echo "$c"
		below "$c"
	done
}

mirrors_below() {
	local p
	for p in $(below "$(main_process)"); do
		case $(cat "/proc/$p/comm" 2>/dev/null) in qcu-mirror*) echo "$p" ;; esac
	done
}

bad=0
wrong() {
	echo "@FAIL kills $*"
	bad=1
}

# Waits until the guest says that it is ready, or at rest.
wait_ready() {
	local line
	while IFS= read -r -t 200 line <&4; do
		line=${line%$'\r'}
		case $line in
		ready | rest) return 0 ;;
		@FAIL*) wrong "${line#@FAIL kills }" ;;
		*) echo "$line" ;;
		esac
	done
	return 1
}

descriptors() {
	find "/proc/$(main_process)/fd" -mindepth 1 2>/dev/null | wc -l
}

start_vm() {
	mkfifo "$tmp/in" "$tmp/out"
	TMPDIR=$tmp "$qcu" vm --script "$tmp/script" --klog "$klogs/$script" --share "$tmp/share" \
		--timeout 3000 "${with[@]}" <"$tmp/in" >"$tmp/out" 2>&1 &
	launcher=$!
	exec 3>"$tmp/in" 4<"$tmp/out"
	wait_ready || wrong 'the VM does not come up'
}

# Checks that all processes and folders of this VM disappear by themselves, soon after the launcher ends.
all_gone() {
	local tries=0
	wait $launcher
	exec 3>&- 4<&-
	rm -f "$tmp/in" "$tmp/out"
	while pgrep -f -- "$tmp/qcu" >/dev/null && [ $tries -lt 100 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
	if pgrep -a -f -- "$tmp/qcu"; then
		wrong 'processes are left'
	fi
	if [ -n "$(find "$tmp" -maxdepth 1 -name 'qcu.*')" ]; then
		ls -l "$tmp"
		wrong 'a folder is left'
	fi
}

touch "$tmp/before"
done_rounds=0 kills_program=0 kills_mirror=0 kills_device=0 kills_qemu=0
while [ $done_rounds -lt "$rounds" ] && [ $bad -eq 0 ]; do
	start_vm
	fds=
	for _ in 1 2 3 4; do
		[ $done_rounds -lt "$rounds" ] && [ $bad -eq 0 ] || break
		sleep "0.$((RANDOM % 10))$((RANDOM % 10))"
		if [ $((RANDOM % 2)) -eq 0 ]; then
			kills_program=$((kills_program + 1))
			echo program >&3
		else
			kills_mirror=$((kills_mirror + 1))
			mapfile -t list < <(mirrors_below)
			[ ${#list[@]} -gt 0 ] || wrong 'there is no mirror'
			kill -9 "${list[RANDOM % ${#list[@]}]}"
			echo mirror >&3
		fi
		wait_ready || wrong 'the guest does not go on'
		done_rounds=$((done_rounds + 1))
	done
	# At each rest, qcu-device has no mirror, and no more descriptors than at the rest before.
	for _ in 1 2; do
		echo rest >&3
		wait_ready || wrong 'the guest does not come to rest'
		[ -z "$(mirrors_below)" ] || wrong 'a mirror is left'
		[ -z "$fds" ] || [ "$(descriptors)" -le "$fds" ] || wrong "descriptors: $fds, then $(descriptors)"
		fds=$(descriptors)
		echo >&3
		wait_ready || wrong 'the guest does not go on after a rest'
	done
	if [ $done_rounds -lt "$rounds" ] && [ $bad -eq 0 ]; then
		sleep "0.$((RANDOM % 10))$((RANDOM % 10))"
		if [ $((RANDOM % 2)) -eq 0 ]; then
			kills_device=$((kills_device + 1))
			kill -9 "$(main_process)"
		else
			kills_qemu=$((kills_qemu + 1))
			kill -9 "$(qemu_process)"
		fi
		done_rounds=$((done_rounds + 1))
	else
		echo over >&3
	fi
	cat <&4 >"$tmp/rest"
	! grep '^@FAIL' "$tmp/rest" || bad=1
	all_gone
	[ $((done_rounds % 50)) -ne 0 ] || echo "$done_rounds rounds"
done
left=$(find /dev/shm -newer "$tmp/before" -name '*qcu*' 2>/dev/null)
[ -z "$left" ] || wrong "shared memory is left: $left"
echo "killed: $kills_program programs, $kills_mirror mirrors, $kills_device devices, $kills_qemu VMs"
[ $bad -ne 0 ] || echo '@ok kills'
exit $bad

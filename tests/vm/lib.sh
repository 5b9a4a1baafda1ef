# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Functions that the VM tests share on the host's side: they boot a guest with a script in it, and check
# its kernel log afterwards. The scripts source this file. tests/run runs them and reads their results.
set -uo pipefail
export LC_ALL=C

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root" || exit 2
B=${B:-build}
script=$(basename "$0" .sh)
klogs=$B/tests/logs/klog
mkdir -p "$klogs"
tmp=$(mktemp -d "${TMPDIR:-/tmp}/qcu-test.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/share"

# shellcheck disable=SC2034 # for the scripts
qcu=scripts/qcu guest=$B/tests/guest tools=$B/tests/vm

# with FILE...: sets the array $with to the launcher's options that take these programs along.
with() {
	local p
	with=()
	for p in "$@"; do
		with+=(--with "$p")
	done
}

# programs_of BUILD: sets the array $programs to the test programs of this build (guest, guest-O0 ...): those of
# `make test`, or all of them at night.
programs_of() {
	local name at
	programs=()
	while read -r _ name at; do
		[ "$at" = test ] || [ -n "${QCU_NIGHTLY:-}" ] || continue
		programs+=("$B/tests/$name")
	done < <(grep "^program $1/" "$B/tests/list")
}

# All time limits are multiplied by this number, for a slow (debug) kernel.
slow=${QCU_SLOW:-1}

# guest_script FILE: writes guest.sh, which all guest scripts share, and then standard input to FILE.
guest_script() {
	{
		echo "slow=$slow"
		cat tests/vm/guest.sh -
	} >"$1"
}

# threads: prints what each thread of this script's VMs waits for.
threads() {
	echo 'this boot takes long; its threads:'
	ps -L -o pid,tid,stat,wchan:32,comm -p "$(pgrep -d, -f -- "$tmp/")"
}

# boot OPTIONS...: runs the guest script from standard input. Its tests print their results.
boot() {
	local rc bell
	guest_script "$tmp/script"
	# Shortly before the VM is ended. When the boot is over, the pipe is closed, and `read` ends.
	exec {bell}> >(read -rt $((190 * slow)) || [ $? -le 128 ] || threads)
	TMPDIR=$tmp "$qcu" vm --script "$tmp/script" --klog "$klogs/$script" --share "$tmp/share" --timeout 200 "$@" \
		</dev/null {bell}>&-
	rc=$?
	exec {bell}>&-
	if [ $rc -ne 0 ]; then
		# How fast the guest thinks that its processor is: a wrong number makes its clock run fast.
		grep -a 'tsc: ' "$klogs/$script"
		echo "@FAIL boot the guest ended with $rc"
	fi
	scan_klog
}

# Checks that the kernel log exists and contains no errors.
boots=0
scan_klog() {
	local name=kernel-log
	boots=$((boots + 1))
	[ $boots -eq 1 ] || name+=-$boots
	if [ ! -s "$klogs/$script" ]; then
		echo "@FAIL $name there is none"
	elif scripts/scan-klog "$klogs/$script"; then
		echo "@ok $name 0.0"
	else
		echo "@FAIL $name"
	fi
}

# Prints the processes of this boot's qcu-device: its socket is in our own folder.
device_processes() {
	pgrep -f -- "--socket $tmp/"
}

# device_main prints the processes whose parent is not one of them.
device_main() {
	local p all
	all=$(device_processes)
	for p in $all; do
		grep -q -w -F "$(ps -o ppid= -p "$p" | tr -d ' ')" <<<"$all" || echo "$p"
	done
}

# Prints the mirrors, those that wait for a session among them.
mirrors() {
	local p
	for p in $(device_processes); do
		case $(ps -o comm= -p "$p") in qcu-mirror* | qcu-born | qcu-warming | qcu-spare) echo "$p" ;; esac
	done
}

# Prints the mirrors that serve a session.
at_work() {
	local p
	for p in $(device_processes); do
		case $(ps -o comm= -p "$p") in 'qcu-mirror '*) echo "$p" ;; esac
	done
}

# expect_host NAME CODE PATTERN COMMAND...: runs COMMAND on the host. It must end with exit code CODE,
# and its output must match PATTERN.
expect_host() {
	local name=$1 want=$2 pattern=$3 rc start us
	shift 3
	start=${EPOCHREALTIME/./}
	timeout -k 5 "$((${host_limit:-300} * slow))" "$@" >"$tmp/out" 2>&1 </dev/null
	rc=$?
	us=$((${EPOCHREALTIME/./} - start))
	cat "$tmp/out"
	if [ $rc -ne "$want" ]; then
		echo "@FAIL $name exit code $rc, expected $want"
	elif ! grep -q -E -e "$pattern" "$tmp/out"; then
		echo "@FAIL $name said nothing like: $pattern"
	else
		echo "@ok $name $((us / 1000000)).$((us / 100000 % 10))"
	fi
}

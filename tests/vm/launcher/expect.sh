# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # qcu is set by the scripts that source this file
#
# Functions that the tests of the launcher share. A case is many expectations and one result line, in
# the format of tests/run. Sourced, with the launcher's path in $qcu.
failed=0

# All time limits are multiplied by this number, as the launcher multiplies its own.
# shellcheck disable=SC2034 # used by the scripts that source this file
slow=${QCU_SLOW:-1}

# expect NAME WHAT GOT WANTED: the case fails unless GOT is WANTED.
started=${EPOCHREALTIME/./}
expect() {
	if [ "$3" = "$4" ]; then
		return
	fi
	printf '     %s: wanted %q, got %q\n' "$2" "$4" "$3"
	bad=1
}

# case_done NAME: prints the result of all expectations since the last case.
bad=0
case_done() {
	local now=${EPOCHREALTIME/./}
	if [ "$bad" -eq 0 ]; then
		echo "@ok $1 $(((now - started) / 1000000))"
	else
		echo "@FAIL $1"
		failed=$((failed + 1))
	fi
	bad=0
	started=$now
}

# plain ARG...: with little memory, which an emulated guest has ready sooner.
plain() {
	timeout -k 5 $((120 * slow)) "$qcu" run --no-device --no-module --mem 512M "$@"
}

# refused CODE TEXT ARG...: qcu ARG... must end with exit code CODE, print nothing on standard output, and print TEXT on
# standard error, after its name.
refused() {
	local code=$1 text=$2 out
	shift 2
	out=$("$qcu" "$@" 2>err)
	expect '' "exit code of $*" $? "$code"
	expect '' "output of $*" "$out" ''
	grep -q -F -- "$text" err || expect '' "error of $*" "$(cat err)" "$text"
	grep -q '^qcu: ' err || expect '' "prefix of $*" "$(cat err)" 'qcu: ...'
}

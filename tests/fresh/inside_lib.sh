# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # self and log are set by the scripts that source this file
#
# What the scripts that run in a Debian with systemd share. They have bad(), which says what failed and ends the script.

step() {
	echo "$self: $SECONDS s: $*"
}

# must WHAT COMMAND...: COMMAND must succeed.
must() {
	local what=$1
	shift
	"$@" >$log 2>&1 || {
		tail -n 20 $log
		bad "$what"
	}
}

# says CODE PATTERN COMMAND...: COMMAND must end with this exit code, and its output must match PATTERN.
says() {
	local code=$1 pattern=$2 rc=0
	shift 2
	"$@" >$log 2>&1 </dev/null || rc=$?
	if [ $rc -ne "$code" ] || ! grep -E -e "$pattern" $log >/dev/null; then
		tail -n 30 $log
		bad "$*: exit code $rc, expected $code and: $pattern"
	fi
}

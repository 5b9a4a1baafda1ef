# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What the tests of the launcher share: a case is many expectations and one result line, as tests/run
# wants it. Sourced.
failed=0

# expect NAME WHAT GOT WANTED
started=${EPOCHREALTIME/./}
expect() {
	if [ "$3" = "$4" ]; then
		return
	fi
	printf '     %s: wanted %q, got %q\n' "$2" "$4" "$3"
	bad=1
}

# case_done NAME: the verdict over all that was expected since the last one.
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

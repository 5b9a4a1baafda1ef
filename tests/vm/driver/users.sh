#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Limits for one user of the guest on what all users share: sessions and pinned memory.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

with "$tools/users" "$guest/first_call"
boot --mem 1G --sessions 8 "${with[@]}" <<'END'
for test in $(users --list); do
	expect "$test" 0 users "$test"
done

begin the-library-says-which-limit
echo 1 >/sys/module/qcuda/parameters/user_sessions
su -s /bin/sh nobody -c 'exec 3<>/dev/qcuda; first_call 46' >>$log 2>&1
rc=$?
echo 0 >/sys/module/qcuda/parameters/user_sessions
if [ $rc -ne 0 ]; then
	fail "exit code $rc"
elif ! grep -q 'as many sessions of /dev/qcuda as one may have' $log; then
	fail 'no clear sentence'
else
	pass
fi
END

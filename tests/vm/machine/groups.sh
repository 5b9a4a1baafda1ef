#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A control group for each mirror. This machine may have none that a test may change, so the device runs in a VM
# that has this machine's own root: unit/test_device_groups says what is tested.
set -uo pipefail

here=$(cd "$(dirname "$0")/../../.." && pwd)
# shellcheck source=tests/vm/launcher/expect.sh
. "$here/tests/vm/launcher/expect.sh"
B=${B:-build}
[[ $B == /* ]] || B=$here/$B

out=$(timeout -k 5 $((200 * slow)) "$here/scripts/qcu" shell --root / --no-device --no-module --mem 512M -c \
	"QCU_TEST_GROUPS=1 exec $(printf %q "$B/tests/unit/test_device_groups")" 2>&1)
expect '' 'exit code' $? 0
expect '' 'passed' "$(grep -c '^\[       OK \]' <<<"$out")" 2
[ $bad -eq 0 ] || echo "$out"
case_done each-its-own

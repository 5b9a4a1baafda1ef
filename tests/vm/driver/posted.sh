#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Posted commands, which the guest program does not wait for: how many ioctls, notifications, interrupts
# and waits they need, and everything that can go wrong with them.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

with "$tools/posted"
boot "${with[@]}" <<'END'
for test in $(posted --list); do
	expect "$test" 0 posted "$test"
done
END

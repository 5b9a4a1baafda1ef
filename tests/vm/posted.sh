#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Commands that nobody waits for: what they cost in ioctls, notifications, interrupts and waits, and
# all that can go wrong with them.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

with "$tools/posted"
boot "${with[@]}" <<'END'
for test in $(posted --list); do
	expect "$test" 0 posted "$test"
done
END

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The driver without the library in between: programs that make every wrong ioctl and mapping.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

with "$tools"/{ioctl_bad,chunk_bad}
boot "${with[@]}" <<'END'
for tool in ioctl_bad chunk_bad; do
	for test in $($tool --list); do
		expect "$test" 0 $tool "$test"
	done
done
END

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Tests the driver with random ioctls, mappings and kills (ioctl_fuzz.c), at night with a second seed. IOCTL_FUZZ_SECONDS
# makes it run longer, with seeds from IOCTL_FUZZ_SEED on.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

seconds=${IOCTL_FUZZ_SECONDS:-0} seed=${IOCTL_FUZZ_SEED:-1}
with "$tools/ioctl_fuzz" "$guest/vector_add"
{
	echo "seed=$seed seconds=$seconds"
	cat <<'END'
# Programs that crash at a wrong address need not appear in the kernel's log.
echo 0 >/proc/sys/debug/exception-trace
if [ $seconds -gt 0 ]; then
	expect seed-$seed 0 ioctl_fuzz $seed 0 $seconds
else
	for n in 1 ${QCU_NIGHTLY:+2}; do
		expect seed-$((seed + n)) 0 ioctl_fuzz $((seed + n)) 30
	done
fi
cat $log
expect next 0 vector_add
END
} | boot --sessions 16 "${with[@]}" --timeout $((300 + seconds))

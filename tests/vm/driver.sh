#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The driver without the library in between: programs that make every wrong ioctl and mapping, and
# what it has agreed on with the device.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

with "$tools"/{ioctl_bad,chunk_bad}
boot "${with[@]}" <<'END'
for tool in ioctl_bad chunk_bad; do
	for test in $($tool --list); do
		expect "$test" 0 $tool "$test"
	done
done

# Locked instructions order nothing for the device's processes where the CPU is emulated. The kernel
# uses fences on a virtqueue whose device asks for the platform's order.
begin virtqueue_order
features=$(cat /sys/bus/virtio/drivers/qcuda/virtio*/features)
[ "$(echo "$features" | cut -c 37)" = 1 ] && pass || fail "no VIRTIO_F_ORDER_PLATFORM in $features"
END

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Tests the driver without the library: programs that make every wrong ioctl and mapping; posted commands, which a
# program does not wait for (how many ioctls, notifications, interrupts and waits they need, and everything that can go
# wrong with them); and the features that the driver and the device have negotiated.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

with "$tools"/{ioctl_bad,chunk_bad,posted}
# In a guest that has just been booted, as under KVM.
boot --cold "${with[@]}" <<'END'
for tool in ioctl_bad chunk_bad posted; do
	for test in $($tool --list); do
		expect "$test" 0 $tool "$test"
	done
done

# On an emulated CPU, locked instructions do not order memory accesses for the device's processes. The
# kernel uses fences on a virtqueue only if the device offers VIRTIO_F_ORDER_PLATFORM.
begin virtqueue_order
features=$(cat /sys/bus/virtio/drivers/qcuda/virtio*/features)
[ "$(echo "$features" | cut -c 37)" = 1 ] && pass || fail "no VIRTIO_F_ORDER_PLATFORM in $features"

# JAX takes the processor if there is no such file.
begin name-of-nvidias-node
[ /dev/nvidiactl -ef /dev/qcuda ] && pass || fail 'no /dev/nvidiactl'
END

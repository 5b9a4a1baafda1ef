#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A VM whose memory is not shared with qcu-device, because somebody has forgotten it among QEMU's arguments: the device
# says so and what to do, and ends.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

export TMPDIR=$tmp
echo 'sleep 300' >"$tmp/script"
"$B/qcu-device/qcu-device" --gpu soft --socket "$tmp/sock" >"$tmp/log" 2>&1 </dev/null &
device=$!
until [ -S "$tmp/sock" ]; do sleep 0.05; done
"$qcu" vm --mem 512M --script "$tmp/script" --no-device --timeout 200 \
	--qemu-arg -object --qemu-arg memory-backend-ram,id=other,size=512M --qemu-arg -machine --qemu-arg memory-backend=other \
	--qemu-arg -chardev --qemu-arg "socket,id=qcu,path=$tmp/sock" \
	--qemu-arg -device --qemu-arg virtio-qcuda-pci,chardev=qcu >"$tmp/said" 2>&1 </dev/null &
vm=$!
rc=0
wait $device || rc=$?
kill $vm
wait $vm
[ $rc -ne 0 ] && echo '@ok device-ends 0.0' || echo '@FAIL device-ends with exit code 0'
expect_host why 0 'not shared with this process: QEMU needs -object memory-backend-memfd.*share=on' cat "$tmp/log"

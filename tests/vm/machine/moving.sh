#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A VM is saved with savevm and to a file, restored, and migrated to another QEMU of this machine, each with its own
# qcu-device, while programs use CUDA: they go on and print what they always print. What cannot be saved is refused, with
# the program's name. Migrations are cut off: then the VM goes on where it was.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/vm/again.sh
. tests/vm/again.sh

dir=$(scripts/build-qemu --print-dir) || {
	echo '@skip moving our QEMU was not built'
	exit
}
guest_dir=$(scripts/build-guest | tail -n 1)

mkdir -p "$tmp/stage/qcu"
cp tests/vm/machine/obey "$tmp/stage/qcu/"
mkdir "$tmp/stage/qcu/bin"
cp "$guest/sleeper" "$guest/long_work" "$tools/to_file" "$tmp/stage/qcu/bin/"
again_and_again_initrd "$guest_dir" "$tmp/initrd"

python3 tests/vm/machine/moving.py "$tmp" "$dir/bin/qemu-system-x86_64" "$B/qcu-device/qcu-device" \
	"$guest_dir/vmlinux" "$tmp/initrd" "$klogs/$script" "$slow" || echo "@FAIL ended $?"
scan_klog
python3 tests/vm/machine/take_over.py "$tmp" "$dir/bin/qemu-system-x86_64" "$B/qcu-device/qcu-device" \
	"$guest_dir/vmlinux" "$tmp/initrd" "$klogs/$script" "$slow" || echo "@FAIL ended $?"
scan_klog

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

# The guest's first program: it carries out what the host writes on the console.
mkdir -p "$tmp/stage/qcu"
cat >"$tmp/stage/qcu/obey" <<'END'
#!/bin/sh
export PATH=/bin:/qcu/bin LD_LIBRARY_PATH=/qcu/lib:/usr/lib/x86_64-linux-gnu:/lib/x86_64-linux-gnu
mount -t devtmpfs dev /dev
mount -a
exec </dev/ttyS0 >/dev/ttyS0 2>&1
modprobe virtio_pci
insmod /qcu/qcuda.ko
until_true() {
	_tries=0
	until "$@"; do
		_tries=$((_tries + 1))
		[ $_tries -lt 400 ] || return 1
		usleep 50000
	done
}
# hold [HOW]: a program has a session until release.
hold() {
	rm -f /tmp/in
	mkfifo /tmp/in
	: >/tmp/out
	sleeper "$@" <>/tmp/in >/tmp/out 2>&1 &
	held=$!
	until_true grep -q ready /tmp/out
}
release() {
	echo >/tmp/in
	wait $held
}
# stir: there is always memory that has been written since QEMU last looked.
stir() {
	while :; do cat /qcu/lib/* /qcu/bin/* >/tmp/stirred; done &
	stirring=$!
}
stop_stirring() {
	kill $stirring
	wait $stirring
	true
}
# works: three programs work, each again and again, until `worked`. What they print is compared.
works() {
	rm -f /tmp/enough /tmp/wrong
	long_work 200 >/tmp/want || return 1
	workers=
	for i in 1 2 3; do
		while [ ! -e /tmp/enough ]; do
			long_work 200 >/tmp/got$i 2>&1 || echo "ended with $?" >>/tmp/got$i
			[ "$(cat /tmp/got$i)" = "$(cat /tmp/want)" ] || cat /tmp/got$i >>/tmp/wrong
		done &
		workers="$workers $!"
	done
}
worked() {
	: >/tmp/enough
	wait $workers
	[ ! -e /tmp/wrong ] || cat /tmp/wrong
	[ ! -e /tmp/wrong ]
}
echo obeys
while read -r line; do
	eval "$line" >/tmp/log 2>&1
	rc=$?
	[ $rc -eq 0 ] || cat /tmp/log
	echo "done: $rc"
done
END
chmod +x "$tmp/stage/qcu/obey"
mkdir "$tmp/stage/qcu/bin"
cp "$guest/sleeper" "$guest/long_work" "$tools/to_file" "$tmp/stage/qcu/bin/"
again_and_again_initrd "$guest_dir" "$tmp/initrd"

python3 tests/vm/machine/moving.py "$tmp" "$dir/bin/qemu-system-x86_64" "$B/qcu-device/qcu-device" \
	"$guest_dir/vmlinux" "$tmp/initrd" "$klogs/$script" "$slow"
scan_klog
python3 tests/vm/machine/take_over.py "$tmp" "$dir/bin/qemu-system-x86_64" "$B/qcu-device/qcu-device" \
	"$guest_dir/vmlinux" "$tmp/initrd" "$klogs/$script" "$slow"
scan_klog

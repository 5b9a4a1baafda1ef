# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# shellcheck disable=SC2154 # set by lib.sh
#
# A guest that runs one program again and again, and says on its console how each run has ended. It needs
# nothing of scripts/qcu, and so it boots in any VM. Sourced after lib.sh.

# again_and_again_initrd GUEST FILE: makes its initramfs, of what scripts/build-guest has made. The kernel
# must get the argument rdinit=/qcu/again.
again_and_again_initrd() {
	local stage=$tmp/stage lib
	mkdir -p "$stage/qcu/bin" "$stage/qcu/lib"
	cp "$guest/vector_add" "$stage/qcu/bin/"
	cp "$B/qcu-library/libcudart.so.13" "$stage/qcu/lib/"
	cp "$B/qcu-driver/qcuda.ko" "$stage/qcu/"
	while read -r lib; do
		mkdir -p "$stage${lib%/*}"
		cp -L "$lib" "$stage$lib"
	done < <(ldd "$guest/vector_add" "$B/qcu-library/libcudart.so.13" | grep -v libcudart |
		sed -n -E 's/^[^/]*(\/[^ ]*) \(0x.*/\1/p' | sort -u)
	cat >"$stage/qcu/again" <<'END'
#!/bin/sh
export PATH=/bin:/qcu/bin LD_LIBRARY_PATH=/qcu/lib:/usr/lib/x86_64-linux-gnu:/lib/x86_64-linux-gnu
mount -t devtmpfs dev /dev
mount -a
exec </dev/null >/dev/ttyS0 2>&1
modprobe virtio_pci
insmod /qcu/qcuda.ko
while :; do
	vector_add >/tmp/log
	rc=$?
	[ $rc -eq 0 ] || cat /tmp/log
	echo "program: $rc"
	sleep 1
done
END
	chmod +x "$stage/qcu/again"
	(cat "$1/base.cpio" && cd "$stage" && find . -mindepth 1 -print0 | sort -z |
		cpio -0 -o -H newc -R 0:0 --quiet) >"$2"
}

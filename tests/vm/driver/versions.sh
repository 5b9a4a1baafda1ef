#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Library, driver and device are of different releases. None of them works with another wire version,
# and the message names both versions and the side to update. Special builds have version 9999. In both guests qcu-doctor
# says what is wrong; it also finds a module that is not loaded, and a user without rights.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

wire=$B/tests/wire

cp scripts/doctor "$tmp/share/doctor"
with "$guest"/{first_call,vector_add} "$wire/libcudart.so.13"
boot "${with[@]}" "$tmp/share" <<'END'
share=$1
begin library
LD_LIBRARY_PATH=/qcu/bin first_call 35 >>$log 2>&1
rc=$?
if ! grep -qE 'libcudart speaks 9999, the qcuda module [0-9]+, the device [0-9]+; to be updated: the module the host$' $log; then
	fail 'no clear sentence'
elif [ $rc -ne 0 ]; then
	fail "exit code $rc"
else
	pass
fi
expect the-right-one 0 vector_add

begin doctor-in-a-guest
"$share/doctor" >>$log 2>&1
rc=$?
if grep -q 'ok *wire *the module in this guest and the device on the host speak wire version' $log &&
	grep -q 'ok */dev/qcuda *root may open it' $log && [ $rc -eq 0 ]; then
	pass
else
	fail "exit code $rc"
fi
begin doctor-no-permission
chmod 600 /dev/qcuda
echo 'other:x:4000:4000::/:/bin/sh' >>/etc/passwd
su -s /bin/sh other -c "$share/doctor" >>$log 2>&1
rc=$?
chmod 666 /dev/qcuda
if grep -q 'BAD */dev/qcuda *other may not open it' $log && [ $rc -eq 1 ]; then
	pass
else
	fail "exit code $rc"
fi
begin doctor-not-loaded
rmmod qcuda
"$share/doctor" --guest --json >>$log 2>&1
rc=$?
if grep -q '"check":"module","level":"bad"' $log && [ $rc -eq 1 ]; then
	pass
else
	fail "exit code $rc"
fi
begin versions-cannot-be-set
insmod /qcu/run/qcuda.ko wire_version=7 >>$log 2>&1
if [ -d /sys/module/qcuda ]; then
	fail 'it was set'
else
	insmod /qcu/run/qcuda.ko
	pass
fi
END

mkdir -p "$tmp/build"/{qcu-device,qcu-driver,qcu-library}
ln -s "$root/$B/scripts" "$tmp/build/"
ln -s "$root/$wire/qcu-device/qcu-device" "$tmp/build/qcu-device/"
ln -s "$root/$B/qcu-driver/qcuda.ko" "$tmp/build/qcu-driver/"
ln -s "$root/$B/qcu-library/libcudart.so.13" "$tmp/build/qcu-library/"
with "$guest/first_call"
export QCU_BUILD=$tmp/build
boot "${with[@]}" "$tmp/share" <<'END'
begin device
first_call 803 >>$log 2>&1
rc=$?
dmesg | grep qcuda >>$log
if ! grep -q 'wire version 9999; this module: wire version [0-9]*; update the module in this guest' $log; then
	fail 'no clear sentence in the kernel log'
elif ! grep -q 'the qcuda module [0-9]*, the device 9999; to be updated: this libcudart the module$' $log; then
	fail 'no clear sentence from the library'
elif [ $rc -ne 0 ]; then
	fail "exit code $rc"
else
	pass
fi
begin doctor-newer-host
"$1/doctor" --guest >>$log 2>&1
rc=$?
if grep -q 'guest: wire version [0-9]*; the device on the host: wire version 9999; update the module in this guest' $log &&
	[ $rc -eq 1 ]; then
	pass
else
	fail "exit code $rc"
fi
END

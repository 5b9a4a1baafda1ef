#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A VM without the qCUDA device: the module loads and waits. Programs get an error, and a message that
# says that there is no device and what to do.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

with "$guest"/{first_call,device_query}
boot --no-device "${with[@]}" <<'END'
begin no-device
first_call 100 >>$log 2>&1
rc=$?
if ! grep -q '/dev/qcuda is missing.*virtio-qcuda' $log; then
	fail 'no clear sentence'
elif [ $rc -ne 0 ]; then
	fail "exit code $rc"
else
	pass
fi

expect a-program-ends-properly 1 device_query

begin unload-and-load
rmmod qcuda >>$log 2>&1 && insmod /qcu/run/qcuda.ko >>$log 2>&1 && pass || fail 'see above'
END

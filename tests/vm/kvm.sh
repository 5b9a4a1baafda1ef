#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# KVM: what differs most from emulation, in a guest in which KVM works (tests/kvm/run): in one guest programs, in another
# hotplug and restarts of qcu-device. At night more programs, the driver's own tests, and all of device_restart. `tests/run kvm`
# runs all that can.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
if [ -n "${QCU_NIGHTLY:-}" ]; then
	tests/kvm/counted programs driver hotplug device_restart
else
	QCU_SHORT=1 tests/kvm/counted programs hotplug
fi

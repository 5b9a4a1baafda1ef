#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# KVM: what differs most from emulation, in a guest in which KVM works (tests/kvm/run). `tests/run kvm` runs all that can.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
tests/kvm/counted programs driver hotplug device_restart

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The network between the VMs of a job's step, without VMs and without Slurm: who may join, and what a VM may send.
# tests/fresh/slurm/ has the whole.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

for case in calls strangers frames random join; do
	expect_host "$case" 0 'all is well' tests/vm/launcher/net.py "$B/scripts/qcu-net" "$case"
done

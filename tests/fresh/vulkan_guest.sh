#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in the guest of vulkan_disk.sh, as a unit of systemd: which driver of Vulkan programs get there, what qcu-doctor
# says of it, and programs. /share has the programs.
set -uo pipefail
export LC_ALL=C
log=/tmp/log

step() {
	echo "guest: $(cut -d ' ' -f 1 /proc/uptime) s: $*"
}

bad() {
	echo "guest: FAILED: $*"
	journalctl -b -p warning --no-pager -q | tail -n 20
	systemctl poweroff
	exit 1
}

# must WHAT COMMAND...: COMMAND must succeed.
must() {
	local what=$1
	shift
	"$@" >$log 2>&1 || {
		tail -n 20 $log
		bad "$what"
	}
}

# doctor USER PATTERN: what qcu-doctor says to this user must match PATTERN.
doctor() {
	su - "$1" -c qcu-doctor >$log 2>&1
	grep -E -e "$2" $log || {
		cat $log
		bad "qcu-doctor says nothing like: $2"
	}
}

step "booted"
must "udev has not loaded our driver" udevadm wait --timeout 900 /dev/qcuda
must "udev has not loaded virtio-gpu" udevadm wait --timeout 900 /dev/dri/renderD128
step "vulkaninfo"
must "vulkaninfo" su - ada -c 'vulkaninfo --summary'
grep driverName $log
grep -E 'driverName += venus' $log >/dev/null || { cat $log && bad "there is no venus"; }
doctor ada 'ok +vulkan +programs get the driver venus'
step "programs"
# 22: Venus.
must "compute" su - ada -c 'VULKAN_DRIVER=22 /share/compute >/tmp/output'
must "compute says something else than natively" cmp /tmp/output /share/native
must "both" su - ada -c 'VULKAN_DRIVER=22 /share/both'
step "what is wrong is said"
doctor eve 'BAD +vulkan +eve may not open /dev/dri/renderD128'
mv /usr/share/vulkan/icd.d/virtio_icd* /root/ || bad "no driver to take away"
doctor ada 'BAD +vulkan +there is no Mesa for the virtio GPU'
step "done"
echo 'guest: all is well'
systemctl poweroff

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs in the guest of systemd.sh, at each boot, as a unit of systemd: what an administrator and an ordinary user
# do there. /mnt has the packages, the toolkit and, unless the guest shall compile it, the driver.
set -uo pipefail
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
kernel=$(uname -r)
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

# says WHAT PATTERN COMMAND...: COMMAND must end with an error, and its output must match PATTERN.
says() {
	local what=$1 pattern=$2
	shift 2
	if "$@" >$log 2>&1 || ! grep -E -e "$pattern" $log >/dev/null; then
		cat $log
		bad "$what"
	fi
}

as() {
	su - "$1" -c "$2"
}

# All files that the package may leave behind. The lists of modules are depmod's, the key for signing is DKMS's.
files() {
	find /etc /usr /lib /var/lib /opt -xdev \( -path /var/lib/containers -o -path /var/lib/cni -o -path /etc/cni \
		-o -path /var/lib/docker -o -path /var/lib/containerd -o -path /etc/docker -o -path /var/lib/apt -o -path /var/lib/dpkg -o -name ld.so.cache -o \
		-path /var/lib/systemd -o -path '/usr/lib/modules/*' -o -name 'mok.*' -o -path '/etc/group*' -o \
		-path '/etc/gshadow*' \) -prune -o -print | sort
	find /usr/lib/modules -name 'qcuda*'
}

# install VERSION: with apt, as docs/vm/packages.md says. What DKMS has compiled elsewhere is put where it puts it.
install() {
	# Without what it recommends, because this guest has no network.
	must "apt does not install version $1" apt-get -q -y --no-install-recommends install "/mnt/qcuda-guest_$1_amd64.deb"
	if [ -e /mnt/driver.tar ]; then
		[ -e "/var/lib/dkms/qcuda/$1/source" ] || must "DKMS does not know it" dkms add "qcuda/$1"
		mkdir -p "/var/lib/dkms/qcuda/$1/$kernel"
		tar -C "/var/lib/dkms/qcuda/$1/$kernel" --no-same-owner -xf /mnt/driver.tar
		must "DKMS does not install the driver" dkms install "qcuda/$1" -k "$kernel"
	fi
	[[ $(dkms status "qcuda/$1" -k "$kernel") == *': installed'* ]] || bad "no driver: $(dkms status)"
}

first_boot() {
	step "before"
	[ ! -e /dev/qcuda ] || bad "there is a /dev/qcuda"
	[ ! -e /mnt/driver.tar ] || { mkdir -p /etc/dkms && touch /etc/dkms/no-autoinstall; }
	files >/var/tmp/before
	says "a program runs without the package" 'libcudart|cannot open shared' as ada /share/needs_library
	step "installing the package"
	install 0.1~old
	must "no group" usermod -aG render ada
	says "qcu-doctor finds nothing" 'BAD +module +the module qcuda is not loaded' qcu-doctor
	if [ -e /share/more ]; then
		touch /var/tmp/installed
		step "rebooting"
		systemctl reboot
		exit
	fi
	# A new session has the group, too, and udev finds the driver by the device as at a boot.
	must "udev does not look at the device again" udevadm trigger --action=add --subsystem-match=virtio
	installed
}

installed() {
	must "udev has not loaded the driver" udevadm wait --timeout 900 /dev/qcuda
	step "the driver is there"
	[ "$(readlink /dev/nvidiactl)" = qcuda ] || bad "/dev/nvidiactl is no link to qcuda"
	[ "$(stat -c '%a %G' /dev/qcuda)" = '660 render' ] || bad "/dev/qcuda: $(stat -c '%a %G' /dev/qcuda)"
	must "qcu-smi" qcu-smi
	step "a user of the group"
	must "qcu-doctor finds something" as ada 'qcu-doctor'
	if [ -e /share/vector_add.cu ]; then
		# As C++14 a third less is to be read (Makefile).
		must "nvcc" as ada '/mnt/cuda/bin/nvcc -std=c++14 -arch=compute_75 -cudart shared -I/share -o vector_add /share/vector_add.cu'
		step "compiled"
	else
		must "no program" as ada 'cp /share/needs_library vector_add'
	fi
	must "the program" as ada ./vector_add
	grep "sums equal the CPU's" $log || { cat $log && bad "the program says something else"; }
	must "a program with the runtime in it" as ada 'qcu-run /share/vector_add'
	step "a user who is not in the group"
	says "/dev/qcuda is open to all" 'qcuda' as eve /home/ada/vector_add
	says "qcu-doctor does not say why" 'usermod -aG render eve' as eve qcu-doctor

	. /share/containers
	containers

	if [ -e /mnt/qcuda-guest_0.1~test_amd64.deb ]; then
		step "upgrading"
		install 0.1~test
		[[ $(dkms status) != *'0.1~old'* ]] || bad "DKMS has the old one still"
		must "the program after the upgrade" as ada ./vector_add
	fi
	step "removing"
	if [ -e /share/more ]; then
		must "it is not removed" apt-get -q -y remove qcuda-guest
		says "a program runs without what was removed" 'libcudart|cannot open shared' as ada ./vector_add
	fi
	must "it is not purged" dpkg --purge qcuda-guest
	says "a program still runs" 'libcudart|cannot open shared' as ada ./vector_add
	must "the driver cannot be unloaded" rmmod qcuda
	[ ! -e /run/cdi/qcuda.yaml ] || bad "the specification for containers stays"
	rm -f /var/tmp/installed
	files >/var/tmp/after
	diff /var/tmp/before /var/tmp/after || bad "something was left, or was taken along"
	[ -z "$(systemctl --failed --plain --no-legend)" ] || bad "$(systemctl --failed --plain --no-legend)"
	step "done"
	echo 'guest: all is well'
	systemctl poweroff
}

if [ -e /var/tmp/installed ]; then
	step "booted again"
	installed
else
	first_boot
fi

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# systemd.sh runs this in the Debian of which it makes a disk, before it is one:
#   finish   settings that this Debian needs as a guest
#   image    has podman take the image of /share/images/python, and leaves its name in /share
#   disk     makes /disk/disk.img with a boot loader, the kernel and room for the root, from which it removes what the
#            guest does not need
#   driver   has DKMS compile the driver, and puts what it made into /packages
set -euo pipefail
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
kernel=$(cd /boot && echo vmlinuz-*)
kernel=${kernel#vmlinuz-}

finish() {
	# debootstrap does not find the order in which to install these.
	apt-get -q -y --no-install-recommends install crun podman runc uidmap
	# Debian 12's docker knows no CDI. Where it does, the test starts it. apparmor stands in the way as on most machines.
	if [ "$(sed -n 's/^VERSION_ID="\(.*\)"/\1/p' /etc/os-release)" != 12 ]; then
		apt-get -q -y --no-install-recommends install apparmor docker-cli docker.io
		systemctl disable containerd.service docker.service docker.socket
	fi
	cat >/etc/fstab <<-END
		/dev/vda2 / ext4 rw,noatime 0 0
		qcuda /mnt 9p ro,trans=virtio,version=9p2000.L,msize=262144 0 0
		qcu /share 9p rw,trans=virtio,version=9p2000.L,msize=262144 0 0
	END
	mkdir -p /share
	echo guest >/etc/hostname
	useradd -m -s /bin/bash ada
	useradd -m -s /bin/bash eve
	chmod 755 /home/ada # eve shall find ada's program
	echo MODULES=list >/etc/initramfs-tools/conf.d/list
	printf '%s\n' virtio_pci virtio_blk ext4 >>/etc/initramfs-tools/modules
	update-initramfs -u -k "$kernel"
	cat >/etc/systemd/system/test.service <<-END
		[Unit]
		After=multi-user.target
		[Service]
		Type=oneshot
		ExecStart=/bin/bash /share/test
		StandardInput=null
		StandardOutput=append:/share/log
		StandardError=append:/share/log
		[Install]
		WantedBy=multi-user.target
	END
	systemctl enable test.service
	systemctl set-default multi-user.target
	systemctl mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service \
		fstrim.timer getty@tty1.service podman.service podman.socket podman-auto-update.service podman-auto-update.timer podman-restart.service serial-getty@ttyS0.service systemd-binfmt.service systemd-random-seed.service \
		systemd-timesyncd.service
}

image() {
	podman pull -q oci:/share/images/python >/share/python
}

# What an emulated processor would read for long: each module that is added has depmod read them all, and apt reads its
# lists. A virtual machine has hardly any hardware, and this one no network.
leave_out() {
	local modules=/usr/lib/modules/$kernel
	rm -rf "$modules/kernel/sound" /var/lib/apt/lists/* /var/cache/apt/*.bin
	find "$modules/kernel/drivers" -name '*.ko' ! -name 'virtio*' ! -path '*/block/*' -delete
	depmod "$kernel"
}

disk() {
	leave_out
	cd /disk
	truncate -s 3G disk.img
	printf 'label: dos\n,64M,e,*\n,,L\n' | sfdisk -q disk.img
	mkfs.vfat -F 16 --offset 2048 disk.img 65536
	cat >syslinux.cfg <<-END
		DEFAULT linux
		LABEL linux
		KERNEL linux
		INITRD initrd
		APPEND root=/dev/vda2 ro console=ttyS0 quiet mitigations=off lpj=4000000 tsc=reliable no_timer_check audit=0 random.trust_cpu=on rcupdate.rcu_cpu_stall_timeout=300 modprobe.blacklist=kvm_amd,kvm_intel,kvm,ccp
	END
	export MTOOLS_SKIP_CHECK=1
	mcopy -i disk.img@@1M "/boot/vmlinuz-$kernel" ::/linux
	mcopy -i disk.img@@1M "/boot/initrd.img-$kernel" ::/initrd
	mcopy -i disk.img@@1M syslinux.cfg ::/
	syslinux --install --offset 1048576 disk.img
	dd if=/usr/lib/syslinux/mbr/mbr.bin of=disk.img conv=notrunc status=none
}

driver() {
	apt-get -q -y --no-install-recommends install /packages/qcuda-guest_0.1~old_*.deb
	tar -C "/var/lib/dkms/qcuda/0.1~old/$kernel" -cf /packages/driver.tar x86_64
}

"$1"

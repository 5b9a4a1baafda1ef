#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: enter.sh [--systemd] ROOT [FROM:TO[:ro]]... -- COMMAND...
#
# Runs COMMAND with the folder ROOT as its root, and with the folders FROM at TO. fresh.sh starts this in
# mount and process namespaces of its own, so that everything ends with COMMAND. The folder becomes the
# root by pivot_root, not by chroot: after a chroot no process can make a user namespace, and mirrors need
# one. With --systemd the folder gets devices, a /sys and control groups with which systemd can be the first
# process, and which are none of this machine's.
set -euo pipefail

systemd=
if [ "$1" = --systemd ]; then
	systemd=1
	shift
fi
new=$1
shift
mount --make-rprivate /
mount --bind "$new" "$new"
mount -t proc proc "$new/proc"
if [ -z "$systemd" ]; then
	for d in dev sys; do
		mount --rbind "/$d" "$new/$d"
	done
else
	mount -t sysfs -o ro sysfs "$new/sys"
	mount -t cgroup2 cgroup2 "$new/sys/fs/cgroup"
	mount -t tmpfs -o mode=755 tmpfs "$new/dev"
	for d in null zero full random urandom tty; do
		: >"$new/dev/$d"
		mount --bind "/dev/$d" "$new/dev/$d"
	done
	mkdir "$new"/dev/{pts,shm}
	mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$new/dev/pts"
	mount -t tmpfs -o mode=1777 tmpfs "$new/dev/shm"
	ln -s pts/ptmx "$new/dev/ptmx"
	ln -s /proc/self/fd "$new/dev/fd"
	for d in 0:stdin 1:stdout 2:stderr; do
		ln -s "/proc/self/fd/${d%:*}" "$new/dev/${d#*:}"
	done
	[ ! -e "$new/etc/fstab" ] || mount --bind /dev/null "$new/etc/fstab"
fi
mount -t tmpfs -o mode=755 tmpfs "$new/run"
while [ "$1" != -- ]; do
	IFS=: read -r from to how <<<"$1"
	mkdir -p "$new$to"
	mount --bind "$from" "$new$to"
	[ -z "$how" ] || mount -o "remount,bind,$how" "$new$to"
	shift
done
shift
cd "$new"
pivot_root . .
umount -l .
cd /root
exec "$@"

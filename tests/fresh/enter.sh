#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: enter.sh ROOT [FROM:TO[:ro]]... -- COMMAND...
#
# Runs COMMAND with the folder ROOT as its root, and with the folders FROM at TO. fresh.sh starts this in
# mount and process namespaces of its own, so that everything ends with COMMAND. The folder becomes the
# root by pivot_root, not by chroot: after a chroot no process can make a user namespace, and mirrors need
# one.
set -euo pipefail

new=$1
shift
mount --make-rprivate /
mount --bind "$new" "$new"
mount -t proc proc "$new/proc"
for d in dev sys; do
	mount --rbind "/$d" "$new/$d"
done
mount -t tmpfs tmpfs "$new/run"
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

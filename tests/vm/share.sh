#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Tests the shared folder with a hostile guest: which files the guest can make there, and which files
# it can reach. First with the guest kernel's 9p client, then with its own 9p messages to QEMU.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

if [ "$(id -u)" -ne 0 ]; then
	echo '@skip share only root can make what must not appear'
	exit 0
fi
share=$tmp/share
mkdir "$tmp/outside"
echo mine >"$tmp/outside/secret"
ln -s ../outside "$share/link-out"
ln -s ../outside/secret "$share/link-file"
echo plain >"$share/plain"
mkfifo "$share/host-pipe"
mknod "$share/host-device" c 1 3 || exit 2
cp /bin/true "$share/host-setuid"
chmod 4755 "$share/host-setuid"
mkdir -m 2775 "$share/group"
chgrp 12345 "$share/group" && chmod g+s "$share/group"

export QCU_TEST_DIR=$share
with "$tools/raw9p"
boot --no-device --no-module "${with[@]}" <<'END'
cd "$QCU_TEST_DIR"

# refuse COMMAND...: COMMAND must fail.
refuse() {
	! "$@" >>$log 2>&1 || why="$why; was let: $*"
}

begin what-an-honest-guest-does
why=
(
	set -e
	mkdir made
	printf '#!/bin/sh\necho ran\n' >made/run
	chmod 755 made/run
	[ "$(made/run)" = ran ]
	ln -s run made/link
	[ "$(made/link)" = ran ]
	ln made/run made/hard
	mv made/hard renamed
	cp made/run gone && rm gone
	echo echo again >>renamed
	[ "$(made/run)" = "ran
again" ]
	chmod 750 renamed
	mkdir group/inner group/kept
	(umask 077 && echo private >private)
) >>$log 2>&1 || why='; see above'
[ -z "$why" ] && pass || fail "${why#; }"

begin what-its-kernel-asks-for
why=
cp /bin/busybox copy
refuse chmod 4755 copy
refuse chmod 2755 copy
refuse mknod chr c 1 3
refuse mknod blk b 7 0
refuse mkfifo pipe
refuse chown 1000 copy
refuse sh -c 'cat link-out/secret'
refuse sh -c 'echo x >link-out/planted'
chmod 6755 group/inner >>$log 2>&1
[ -z "$why" ] && pass || fail "${why#; }"

cd /
umount "$QCU_TEST_DIR" || echo '@FAIL umount'
for d in /sys/bus/virtio/drivers/9pnet_virtio/virtio*; do
	echo "${d##*/}" >/sys/bus/virtio/drivers/9pnet_virtio/unbind
done
echo 1 >/proc/sys/vm/nr_hugepages
expect speaking-9p-itself 0 raw9p
cat $log
END

# has PATH OCTAL_MODE: prints an error unless PATH belongs to root and has this mode.
has() {
	local got
	got=$(stat -c '%u %a' "$share/$1" 2>&1)
	[ "$got" = "0 $2" ] || echo "$1: $got, not 0 $2"
}

find "$share" -printf '%y %m %U:%G %P\n'
found=$(find "$share" ! -name 'host-*' \( -perm /6000 ! -type d -o -perm /4000 -o -type b -o -type c -o -type p -o -type s -o ! -uid 0 \))
# Folders inside a folder with the set-group-ID bit inherit the bit and keep it. No others may have it.
found+=$(find "$share" -type d -perm /2000 ! -path "$share/group*")
found+=$(find "$share/host-setuid" -perm /6000)
found+=$(getcap -r "$share" 2>/dev/null)
[ -z "$found" ] && echo '@ok no-such-files 0.0' || echo "@FAIL no-such-files $found"

found=$(
	has made/run 750
	has renamed 750
	has program 755
	has private 600
	has made 755
	has group/kept 2755
	has group/inner 755
	cmp "$share/made/run" "$share/renamed" 2>&1
)
[ -z "$found" ] && echo '@ok what-was-made 0.0' || echo "@FAIL what-was-made $found"

if [ "$(ls "$tmp/outside")" = secret ] && [ "$(cat "$tmp/outside/secret")" = mine ] &&
	[ "$(stat -c '%a %u %h' "$tmp/outside/secret")" = '644 0 1' ]; then
	echo '@ok nothing-outside 0.0'
else
	echo "@FAIL nothing-outside $(ls -l "$tmp/outside")"
fi

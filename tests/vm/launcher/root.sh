#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests scripts/qcu run --root: a program whose root is a folder of the host. It looks like the program
# with that folder as its root here, except that nothing which it writes there stays. A hostile guest
# reads no more of the folder than what is stored in it, and writes nothing.
# shellcheck disable=SC2016 # the tests pass text that must not be expanded
set -uo pipefail

here=$(cd "$(dirname "$0")/../../.." && pwd)
qcu=$here/scripts/qcu
# shellcheck source=tests/vm/launcher/expect.sh
. "$here/tests/vm/launcher/expect.sh"
B=${B:-build}
[[ $B == /* ]] || B=$here/$B
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/my folder"
cd "$dir/my folder" || exit 2

: >file
refused 2 '--root needs a value' run --root
refused 2 '--root ./gone: no such folder' run --root ./gone /bin/true
refused 2 '--root ./file: no such folder' run --root ./file /bin/true
refused 2 '--root belongs to the commands run and shell' vm --script file --root /
refused 2 '--with does not go with --root' run --root / --with file /bin/true
refused 2 '--preload belongs to --root' run --preload /bin/true
refused 2 'share another folder' run --root / --share /proc /bin/true
refused 2 'no program given' run --root /
case_done bad-root-options

# ---- this machine's own root ----

cat >program <<'END'
#!/bin/bash
pwd
echo "$QCU_X"
umask
cat
echo written >there
mkdir -p /etc/qcu-was-here && echo layer >/etc/qcu-was-here/file && cat /etc/qcu-was-here/file
echo error >&2
[ "$(id -u)" -ne 0 ] || { cp hostile /qcu/hostile && nsenter -t 1 -m /bin/busybox sh /qcu/hostile; }
kill -SEGV $$
END
chmod 755 program
# A hostile guest: as root in the guest, the program goes where the guest's first process is, past the writable layer.
cat >hostile <<'END'
cd /root/lower || echo 'no way there'
(echo x >etc/qcu-was-here) 2>/dev/null && echo 'wrote'
mount -o remount,rw /root/lower 2>/dev/null
(echo x >etc/qcu-was-here) 2>/dev/null && echo 'wrote after a remount'
(echo x >tmp/qcu-was-here) 2>/dev/null && echo 'wrote to /tmp'
rm -f etc/hostname 2>/dev/null && echo 'removed'
cat proc/version 2>/dev/null && echo 'read /proc'
cat sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null && echo 'read /sys'
head -c 1 dev/zero >/dev/null 2>&1 && echo 'read /dev'
cat run/* 2>/dev/null && echo 'read /run'
cat etc/hostname
END
[ "$(id -u)" -ne 0 ] || echo mine >/run/qcu-test.$$
out=$(umask 027 && echo input | QCU_X="a  b'c" plain --root / ./program 2>err)
expect '' 'exit code by signal' $? 139
expect '' 'output' "$(head -n 5 <<<"$out")" "$(printf '%s\n' "$PWD" "a  b'c" 0027 input layer)"
expect '' 'standard error' "$(cat err)" error
expect '' 'a file in the current folder' "$(cat there)" written
[ ! -e /etc/qcu-was-here ] || expect '' 'what was written in the root' stayed lost
case_done own-root
if [ "$(id -u)" -eq 0 ]; then
	rm -f /run/qcu-test.$$
	expect '' 'what the hostile one got' "$(tail -n +6 <<<"$out")" "$(cat /etc/hostname)"
	[ ! -e /etc/qcu-was-here ] && [ ! -e /tmp/qcu-was-here ] || expect '' 'files on the host' made none
	if [ "$("$B/scripts/qcu-confine" --version-of-landlock)" -lt 2 ]; then
		bad=0
		echo '@skip hostile-with-root this kernel has no Landlock'
	else
		case_done hostile-with-root
	fi
else
	echo '@skip hostile-with-root only root is root in the guest'
fi

plain --root / ./gone 2>err
expect '' 'exit code' $? 127
expect '' 'error' "$(cat err)" 'qcu: ./gone: no such file'
plain --root / no-such-command-here 2>err
expect '' 'exit code' $? 127
expect '' 'error' "$(cat err)" 'qcu: no-such-command-here: command not found'
plain --root / ./file 2>err
expect '' 'exit code' $? 126
grep -q '^qcu: ./file: not an executable file' err || expect '' 'error' "$(cat err)" 'not an executable file'
case_done no-such-program

# ---- the folder of an image ----

# A root that is not like this machine's: no C library, nothing in /usr, folders behind absolute links.
mkdir -p "$dir/image"/{bin,etc,store/data}
cp /bin/busybox "$dir/image/bin/"
for f in sh cat ls; do
	ln -s busybox "$dir/image/bin/$f"
done
echo 'the image' >"$dir/image/etc/name"
ln -s /store/data "$dir/image/data"
echo 'behind a link' >"$dir/image/store/data/file"
chmod 700 "$dir/image/store"
out=$(cd "$dir" && PATH=/bin:/usr/bin plain --root image --share "$dir/my folder" sh -c 'cat /etc/name /data/file; ls /bin; echo new >/data/new; cat /data/new
	cat "my folder/there"; exit 7')
expect '' 'exit code' $? 7
expect '' 'output with a relative root, and another shared folder' "$out" \
	"$(printf '%s\n' 'the image' 'behind a link' busybox cat ls sh new written)"
expect '' 'the image afterwards' "$(cd "$dir/image" && find . -type f | sort)" \
	"$(printf '%s\n' ./bin/busybox ./etc/name ./store/data/file)"
case_done image

# ---- CUDA, with the root's libraries and our libcudart ----

cuda() {
	timeout -k 5 $((120 * slow)) "$qcu" run --gpu soft "$@"
}
cp "$B/tests/guest/vector_add" .
cp "$B/tests/guest-static/vector_add" linked-in
cuda --root / ./linked-in >out 2>err
expect '' 'exit code' $? 0
expect '' 'error' "$(cat err)" ''
cp linked-in changed && "$B/tests/loader/edit" changed spoil cudaMalloc && strip changed
cuda --root / "$PWD/changed" 2>err
expect '' 'exit code without a symbol table, and with changed code' $? 126
case_done linked-in-with-root

# A program whose own search path leads to another libcudart. It gets ours all the same from the loader module.
# Without the module the other one is taken, unless ours was loaded before.
mkdir "$dir/other"
cat >stub.c <<'END'
int cudaGetDeviceCount(int *count)
{
	*count = 99;
	return 0;
}
END
echo 'libcudart.so.13 { global: *; };' >stub.map
gcc -shared -fPIC -o "$dir/other/libcudart.so.13" stub.c -Wl,-soname,libcudart.so.13,--version-script,stub.map
cat >count.c <<'END'
int cudaGetDeviceCount(int *count);

int main(void)
{
	int count = 0;

	return cudaGetDeviceCount(&count) ? 50 : count;
}
END
gcc -o count count.c -L"$dir/other" -l:libcudart.so.13 -Wl,--disable-new-dtags,-rpath,"$dir/other"
cuda --root / sh -c './vector_add && ./count' 2>err
expect '' 'exit code with the loader module' $? 1
expect '' 'error' "$(cat err)" ''
QCU_LOADER=0 cuda --root / --preload sh -c './count; ours=$?; env -u LD_PRELOAD ./count; exit $((ours * 100 + $?))'
expect '' 'exit code with ours, and then with another libcudart' $? 199
case_done shared-with-root-and-preload

[ "$failed" -eq 0 ]

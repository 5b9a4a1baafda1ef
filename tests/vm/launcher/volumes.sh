#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests which files outside of the shared folder a program of qcu run gets: those that its arguments name, and the
# folders of -v; and that the user hears of those that it does not get. Needs no qCUDA device.
# shellcheck disable=SC2016 # the tests pass text that must not be expanded
set -uo pipefail

here=$(cd "$(dirname "$0")/../../.." && pwd)
qcu=$here/scripts/qcu
# shellcheck source=tests/vm/launcher/expect.sh
. "$here/tests/vm/launcher/expect.sh"
dir=$(cd "$(mktemp -d)" && pwd -P)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/here/in" "$dir/my data/sub" "$dir/out" "$dir/third"
cd "$dir/here" || exit 2

# said TEXT: the last run must have said it, once.
said() {
	expect '' "how often it says $1" "$(grep -c -F -e "$1" err)" 1
}

for v in x x: :/x x:y x:/y:rx x:/y:ro:z ''; do
	refused 2 '-v' run -v "$v" /bin/true
done
refused 2 'must be HOST:GUEST' run --volume=in /bin/true
refused 2 '-v needs HOST:GUEST' run -v
refused 2 'is no folder' run -v ./gone:/data /bin/true
refused 2 'is no folder' run -v /bin/true:/data /bin/true
for g in / /dev /proc/x /usr /usr/bin/.. /data/../sys/y /lib64; do
	refused 2 'the guest has its own' run -v "$dir/out:$g" /bin/true
done
refused 2 'the shared folder is there' run -v "$dir/out:$dir/here" /bin/true
refused 2 'another -v has that place' run -v "$dir/out:/data" -v "$dir/third:/x/../data/" /bin/true
refused 2 'which is shared and has this folder in it' run -v "$dir/here/in:/data:ro" /bin/true
ln -s "$dir/here/in" "$dir/to-in"
refused 2 'which is shared and has this folder in it' run -v "$dir/to-in:/data:ro" /bin/true
refused 2 'which is shared and has this folder in it' run -v "$dir/my data/sub:/data:ro" -v "$dir/my data:/rw" /bin/true
args=()
for i in {1..17}; do args+=(-v "$dir/out:/v$i"); done
refused 2 'at most 16' run "${args[@]}" /bin/true
refused 2 '-v does not go with --disk' vm --disk /bin/true -v "$dir/out:/data"
case_done bad-volumes

# ---- -v ----

# One guest for all. In the end root in it mounts the folder anew, for writing, and follows a link out of it.
echo 'the data' >"$dir/my data/file"
echo named >"$dir/third/named"
ln -s ../out "$dir/my data/link"
cat >script <<'END'
cat /data/file "$1"
(echo x >/data/new) 2>/dev/null || echo "read-only"
(echo x >/data/file) 2>/dev/null || echo "read-only"
mkdir /results/sub && echo result >/results/sub/file
echo third >"${1%/*}/file"
[ "$(id -u)" -eq 0 ] || exit 0
umount /data
mount -t 9p -o trans=virtio,version=9p2000.L,cache=none qcuvolume0 /data || echo "not mounted"
cat /data/file
(echo x >/data/file) 2>/dev/null && echo wrote
(echo x >/data/new) 2>/dev/null && echo made
rm /data/file 2>/dev/null && echo removed
mv /data/file /data/moved 2>/dev/null && echo moved
chmod 777 /data/file 2>/dev/null && echo chmod
(echo x >/data/link/new) 2>/dev/null && [ -e /data/link/new ] && echo "through a link"
cat /data/link/sub/file 2>/dev/null
true
END
out=$(plain -v "$dir/my data:/data:ro" --volume "$dir/out:/results" -v ../third:"$dir/third":rw /bin/sh script ../third/named 2>err)
expect '' 'exit code' $? 0
expect '' 'output' "$(head -n 4 <<<"$out")" "$(printf '%s\n' 'the data' named read-only read-only)"
expect '' 'error' "$(cat err)" ''
expect '' 'what was written' "$(cat "$dir/out/sub/file" "$dir/third/file")" "$(printf '%s\n' result third)"
expect '' 'the data afterwards' "$(cd "$dir/my data" && find . -type f -exec cat {} +)" 'the data'
case_done volumes
if [ "$(id -u)" -eq 0 ]; then
	expect '' 'what it got' "$(tail -n +5 <<<"$out")" 'the data'
	expect '' 'the data afterwards' "$(cd "$dir/my data" && find . ! -type d | sort; cat file; stat -c %a file)" \
		"$(printf '%s\n' ./file ./link 'the data' 644)"
	expect '' 'what is beside it' "$(ls "$dir/out")" sub
	case_done hostile-with-read-only
else
	echo '@skip hostile-with-read-only only root is root in the guest'
fi
rm "$dir/my data/link" script
out=$(plain --root / -v "$dir/my data:/mnt:ro" /bin/sh -c 'cat /mnt/file; (echo x >/mnt/file) 2>/dev/null || echo read-only')
expect '' 'output with --root' "$out" "$(printf '%s\n' 'the data' read-only)"
case_done volumes-in-another-root

# ---- arguments that name files ----

printf '#!/bin/sh\necho ran\n' >"$dir/third/tool" && chmod 755 "$dir/third/tool"
echo old >"$dir/out/old"
out=$(plain /bin/sh -c 'cat "$0"; cat "${1#*=}"; "$2"; (echo new >"$3") 2>/dev/null || echo "read-only"; cat "$3"
	echo "sh: x: not found" >&2' \
	'../my data/file' "--input=$dir/my data/file" "$dir/third/tool" ../out/old 2>err)
expect '' 'exit code' $? 0
expect '' 'output' "$out" "$(printf '%s\n' 'the data' 'the data' ran read-only old)"
expect '' 'error, but no hint because the program has ended well' "$(cat err)" 'sh: x: not found'
expect '' 'the file afterwards' "$(cat "$dir/out/old")" old
# The guest's own is there.
plain /bin/sh -c 'cat "$0" "$1" >/dev/null && mount | grep -q " /tmp/\| /sys " && echo "x: not found" >&2 && exit 4' /etc/passwd /etc/fstab 2>err
expect '' 'exit code with files that the guest has, too' $? 4
expect '' 'error, but no hint because a shell says something else' "$(cat err)" 'x: not found'
case_done named-files

# A guest may have made the link, so that a user names another file than he thinks.
echo secret >"$dir/secret"
ln -s "$dir/secret" "$dir/here/link"
ln -s "$dir/here/link" "$dir/third/link"
ln -s "$dir/out" "$dir/folder"
plain /bin/sh -c 'cat "$0" "$1" "$2"' link "$dir/third/link" "$dir/folder/old" >out 2>err
expect '' 'output' "$(cat out)" ''
said 'qcu: link is a link that leads out of the shared folder'
said "qcu: $dir/third/link is not in the guest, because a link leads there"
said "-v $dir/folder:$dir/folder:ro shares its folder"
ln -s "$dir/here" "$dir/entered"
echo inside >inside
out=$(cd "$dir/entered" && plain /bin/cat "$dir/entered/inside" inside 2>err)
expect '' 'files in a folder that was entered through a link' "$out" "$(printf '%s\n' inside inside)"
expect '' 'error' "$(cat err)" ''
case_done named-links

head -c 70000000 /dev/zero >"$dir/third/large"
plain /bin/sh -c 'mkdir -p ../out; echo lost >../out/new && echo x' ../third/large ../out ../out/new "../my data" /dev/null /usr 1/2 ./in >out 2>err
expect '' 'output' "$(cat out)" x
expect '' 'lines of error' "$(wc -l <err)" 4
said "-v '$dir/my data:$dir/my data:ro' shares it, too"
said "qcu: ../third/large is not in the guest, because it is too large to be taken along by itself; -v $dir/third:$dir/third:ro"
said "qcu: ../out is not in the guest, because only $dir/here is shared; -v $dir/out:$dir/out:ro shares it, too"
said "qcu: ../out/new does not exist, and the guest has not its folder; -v $dir/out:$dir/out shares"
rm "$dir/third/large"
case_done named-otherwise

# ---- files that nobody named ----

printf '#!/usr/bin/env bash\necho here\n' >shim && chmod 755 shim
printf '#!/bin/sh\npython3 x.py\n' >calls && chmod 755 calls
printf 'print("x")\n' >p.py
hint="with --root / it has all that is installed here: $qcu run --root /"
plain ./shim 'a b' 2>err
expect '' 'exit code of a script for bash' $? 127
said "$hint ./shim 'a b'"
plain ./calls 2>err
expect '' 'exit code of a script that calls python3' $? 127
said "$hint ./calls"
if [ -x /usr/bin/python3 ]; then
	PATH=/usr/bin:/bin plain python3 p.py 2>err
	expect '' 'exit code of python3' $? 1
	said "$hint python3 p.py"
fi
case_done hint-to-root

[ "$failed" -eq 0 ]

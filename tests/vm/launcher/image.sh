#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests scripts/qcu run --image, and qcu-fits. Images that mean harm come first: layers that lead out of their folder,
# devices, files with the set-user-ID bit, descriptions that make no sense. Then an image of this machine's libraries runs
# CUDA programs, from an OCI folder and, if podman is here, from its storage.
# shellcheck disable=SC2016 # the tests pass text that must not be expanded
set -uo pipefail

here=$(cd "$(dirname "$0")/../../.." && pwd)
qcu=$here/scripts/qcu
# shellcheck source=tests/vm/launcher/expect.sh
. "$here/tests/vm/launcher/expect.sh"
B=${B:-build}
[[ $B == /* ]] || B=$here/$B
fits=$B/scripts/qcu-fits
oci=$here/tests/vm/launcher/oci.py
# shellcheck source=tests/vm/launcher/image_root.sh
. "$here/tests/vm/launcher/image_root.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/my folder" "$dir/cache" "$dir/libs"
cd "$dir/my folder" || exit 2
umask 022

# ---- qcu-fits, on roots that are wrong ----

# fits CODE TEXT: what qcu-fits says of the folder root, which then is removed.
fits() {
	local out
	out=$(timeout 60 "$fits" root "$dir/libs" 2>&1)
	expect '' "exit code of qcu-fits, $2" $? "$1"
	[ -z "$2" ] && expect '' 'what qcu-fits says' "$out" '' || [[ $out == *"$2"* ]] || expect '' 'what qcu-fits says' "$out" "$2"
	rm -rf root
	mkdir -p root/lib root/lib64
}
mkdir root
fits 2 "qCUDA's libraries are not there"
printf 'x GLIBC_2.14 GLIBC_2.34' >"$dir/libs/libqcuda-loader.so"
printf 'GLIBC_2.3 GLIBC_2.' >"$dir/libs/libcudart.so.13"
"$fits" root 2>/dev/null
expect '' 'exit code of a wrong use' $? 2
"$fits" gone "$dir/libs" 2>/dev/null
expect '' 'exit code without a root' $? 2
fits 0 ''                                          # no C library at all
mkfifo root/lib64/libc.so.6
fits 0 ''                                          # nobody waits for a pipe
ln -s /dev/zero root/lib64/libc.so.6
fits 0 ''
ln -s "$(realpath "$dir/libs")/libqcuda-loader.so" root/lib64/libc.so.6
fits 0 ''                                          # a link leads to nothing outside of the root
ln -s ../../../../../../../../../../../..//proc/self/exe root/lib64/libc.so.6
fits 0 ''
ln -s libc.so.6 root/lib64/libc.so.6
fits 0 ''
mkdir root/lib64/libc.so.6
fits 0 ''
: >root/lib64/libc.so.6
fits 1 'this image has glibc 2.0'
printf 'GLIBC_2.99999' >root/lib64/libc.so.6       # more digits than a version has
truncate -s 1T root/lib64/libc.so.6 2>/dev/null || true
fits 0 ''
printf 'GLIBC_2.33GLIBC_2.' >root/lib64/libc.so.6
fits 1 "this image has glibc 2.33, and qCUDA's libraries need 2.34 or later"
echo x >root/lib/ld-musl-x86_64.so.1
fits 1 'the C library musl'
printf 'GLIBC_2.34' >root/lib/libc.so
ln -s /lib/libc.so root/lib64/libc.so.6            # but in the root it may be absolute
fits 0 ''
case_done fits

"$fits" / "$B/qcu-library"
expect '' 'exit code for this machine' $? 0
echo '{}' | "$fits" --hook "$B/qcu-library"
expect '' 'exit code as a hook' $? 0
case_done fits-here

# ---- qcu-cdi, which has no device here: tests/fresh/containers_guest.sh has the good path ----

# cdi TEXT VARIABLE ARG...
cdi() {
	local text=$1 out
	shift
	out=$(env "$1" "$here/scripts/container/cdi" "${@:2}" 2>&1)
	expect '' "exit code of qcu-cdi ${*:2}" $? 2
	[[ $out == *"qcu-cdi: "*"$text"* ]] || expect '' "what qcu-cdi ${*:2} says" "$out" "$text"
}
mkdir "$dir/odd: [x]"
for f in libqcuda-loader.so libcuda.so.1 libnvidia-ml.so.1 image-needs-newer-glibc qcu-smi; do
	: >"$dir/odd: [x]/$f"
	cp "$dir/odd: [x]/$f" "$dir/libs/"
done
cdi 'unknown option --speed' A= --speed
cdi '--output needs a value' A= --output
cdi '--output needs a value' A= --output ''
cdi 'the name must end with .yaml' A= --output /tmp/x.conf
cdi 'libqcuda-loader.so is missing' QCU_LIBRARY="$dir/none" --print
cdi 'such a path cannot be in a specification' QCU_LIBRARY="$dir/odd: [x]" --print
if [ -e /dev/qcuda ]; then
	echo '@skip no-device there is a /dev/qcuda here'
else
	cdi 'there is no /dev/qcuda' QCU_LIBRARY="$dir/libs" --print
fi
case_done bad-cdi

# ---- options ----

: >file
refused 2 '--image needs a value' run --image
refused 2 '--image belongs to the commands run and shell' vm --script file --image x
refused 2 '--image does not go with --root' run --root / --image x /bin/true
refused 2 '--with does not go with --image' run --image x --with file /bin/true
refused 2 'no name of an image' run --image=-x /bin/true
refused 2 'no name of an image' run --image 'a b' /bin/true
case_done bad-image-options

# ---- what a machine with a GPU lacks, tests/gpu/image.sh says before it makes a large image ----

# lacks NAMES [VARIABLE]: it ends before it needs another program than dirname, so there is no other one.
lacks() {
	local out
	out=$(env PATH="$dir/tools" "${@:2}" /bin/bash "$here/tests/gpu/image.sh" . 2>&1)
	expect '' "exit code of tests/gpu/image.sh ${*:2}" $? 2
	expect '' "what tests/gpu/image.sh ${*:2} says" "$out" "image.sh: no image was made, because these are missing: $1"
}
mkdir "$dir/tools"
ln -s "$(type -P dirname)" "$(type -P true)" "$dir/tools/"
lacks 'python3 skopeo umoci jq' A=
ln -s true "$dir/tools/jq"
lacks 'skopeo umoci' PYTHON=true
lacks "none skopeo umoci $here/tests/gpu/gone.py" PYTHON=none PROGRAM=gone.py
case_done gpu-image-needs

"$here/scripts/deps" --no-cuda --images >/dev/null 2>&1 || {
	echo '@skip image skopeo, umoci and jq cannot be installed'
	exit "$failed"
}
refused 2 'only what is on this machine' run --image docker://busybox /bin/true
refused 2 'no OCI image in this folder' run --image "$dir" /bin/true
mkdir empty && echo '{}' >empty/index.json
refused 2 '--image ./empty: it cannot be read' run --image ./empty /bin/true
case_done no-image

# ---- images that mean harm ----

image_root "$dir/root"
mkdir -p "$dir/small/bin" && cp /bin/busybox "$dir/small/bin/" && ln -s busybox "$dir/small/bin/sh"

# A cache in which only the images are new.
find "${QCU_CACHE:-${HOME:-/root}/.cache/qcuda}" -mindepth 1 -maxdepth 1 ! -name images -exec ln -s {} "$dir/cache/" \;
export QCU_CACHE=$dir/cache
echo secret >secret

# bad_image KIND TEXT
bad_image() {
	"$oci" "$1" "$1" "$dir/small" || expect '' "the image $1" 'not made' made
	refused 2 "$2" run --image "./$1" /bin/sh
	[ "$(cat secret)" = secret ] || expect '' "$1: a file of the user" changed kept
	[ ! -e "$1.victim" ] || expect '' "$1: outside of the image" made nothing
	[ -z "$(find "$dir/cache/images" -mindepth 1 -maxdepth 1 ! -name '.*')" ] || expect '' "$1: the cache" kept nothing
}
bad_image no-manifest 'it cannot be read'
bad_image nonsense 'it is not for Linux on x86-64'
bad_image arm 'it is not for Linux on x86-64'
bad_image long 'it is longer than 1048576 bytes'
for kind in env-object env-number env-name env-code env-zero env-many; do
	bad_image $kind 'makes no sense: Env'
done
bad_image command-string 'makes no sense: Entrypoint or Cmd'
bad_image command-zero 'makes no sense: Entrypoint or Cmd'
bad_image folder-relative 'makes no sense: WorkingDir'
bad_image wrong-digest 'it cannot be copied'
bad_image digest-path 'it cannot be'
bad_image no-archive 'it cannot be unpacked'
case_done nonsense-images

# Those that lead out of their folder are refused, or what they lead to lies in it. None names a program, so none runs.
for kind in dotdot absolute through-link hard-link hard-link-way whiteout special; do
	"$oci" $kind $kind "$dir/small"
	refused 2 "--image ./$kind: it " run --image ./$kind
	[ "$(cat secret)" = secret ] || expect '' "$kind: a file of the user" changed kept
	[ ! -e "$kind.victim" ] || expect '' "$kind: outside of the image" made nothing
	expect '' "$kind: files that are none of the image's" "$(find "$dir/cache/images" -samefile secret)" ''
	expect '' "$kind: devices, set-user-ID bits" "$(find "$dir/cache/images" \
		\( -type b -o -type c -o -type s -o -type f -perm /6000 \))" ''
	expect '' "$kind: who may look" "$(stat -c %a "$dir/cache/images")" 700
	ls "$dir/cache/images"/*/root/closed/file >>"$dir/closed" 2>/dev/null
	rm -rf "$dir"/cache/images/* || expect '' "$kind: its files" stay removed
done
[ -s "$dir/closed" ] || expect '' 'a file in a folder that its owner cannot enter' gone there
case_done hostile-images

# ---- an image ----

"$oci" good good "$dir/root"
(cd good && find . -type f -exec sha256sum {} + | sort) >"$dir/before"
out=$(plain --image ./good </dev/null 2>err)
expect '' 'exit code of its own program' $? 0
expect '' 'its own program' "$out" "$(printf 'own a  b\n/data\n')"
expect '' 'error' "$(cat err)" ''
"$oci" no-command no-command "$dir/small"
refused 2 'it names no program' run --image ./no-command
case_done image-program

for kind in oci-archive docker-archive; do
	rm -rf "$dir"/cache/images/*
	skopeo copy -q oci:no-command $kind:$kind.tar >why 2>&1 || expect '' "$kind" "$(cat why)" made
	refused 2 'it names no program' run --image $kind:$kind.tar
done
case_done image-archives

# Another program, in the current folder: CUDA programs that are linked in three ways.
out=$(SECRET_OF_CALLER=1 QCU_X=y timeout -k 5 $((120 * slow)) "$qcu" run --gpu soft --image ./good \
	sh -c 'env; pwd; echo w >/data/w; echo kept >there; shared && linked-in && stripped && nvidia-smi -L' </dev/null 2>err)
expect '' 'exit code' $? 0
for f in IMAGE="it's \$(here)" QCU_X=y PATH=/qcu/bin:/bin:/bin LD_LIBRARY_PATH=/qcu/lib:/own "HOME=$HOME" "$PWD"; do
	grep -q -x -F -- "$f" <<<"$out" || expect '' 'output' "$out" "$f"
done
! grep -q -e SECRET_OF_CALLER -e LD_PRELOAD <<<"$out" || expect '' 'environment' "$out" "the image's"
expect '' 'the current folder' "$(cat there)" kept
expect '' 'what was written in the image' "$(find "$dir"/cache/images/*/root/data -mindepth 1)" ''
expect '' 'programs that said what they say here' "$(grep -c '^verified: ' <<<"$out")" 3
grep -q '^GPU 0: ' <<<"$out" || expect '' 'nvidia-smi' "$out" 'GPU 0'
expect '' 'error' "$(cat err)" ''
(cd good && find . -type f -exec sha256sum {} + | sort) >"$dir/after"
cmp -s "$dir/before" "$dir/after" || expect '' 'the image' changed unchanged
case_done image-cuda

# The same from a storage of podman's, by the name that podman knows.
printf '[storage]\ndriver = "vfs"\ngraphroot = "%s"\nrunroot = "%s"\n' "$dir/store" "$dir/run" >"$dir/storage.conf"
export CONTAINERS_STORAGE_CONF=$dir/storage.conf
if ! command -v podman >/dev/null; then
	echo '@skip image-of-podman podman is not installed'
elif ! skopeo copy -q oci:no-command containers-storage:localhost/mine:latest >why 2>&1; then
	echo "@skip image-of-podman there is no storage here: $(tail -n 1 why)"
else
	refused 2 'podman has no such image' run --image gone
	refused 2 '--image mine: it names no program' run --image mine
	refused 2 '--image localhost/mine:latest: it names no program' run --image localhost/mine:latest
	case_done image-of-podman
fi

printf 'GLIBC_2.31' >"$dir/root$image_libraries/libc.so.6"
"$oci" old good "$dir/root"
refused 126 'this image has glibc 2.31' run --gpu soft --image ./old linked-in
case_done image-too-old

[ "$failed" -eq 0 ]

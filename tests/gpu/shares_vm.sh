#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# On a machine with a GPU: one program in a VM beside four programs in another one, which share the GPU by agreement:
# the parts of the kernels that end in ten seconds.
#
#	shares_vm.sh [WEIGHT WEIGHT]	GPU is the backend (cuda)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
[ ! -e "$root/.bundle/BUNDLE" ] || root=$root/.bundle
gpu=${GPU:-cuda}
kind=work
[ "$gpu" = cuda ] || kind=wait
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir "$work/shares" "$work/share"
cp "$root/build/tests/loopback/hog" "$work/share/"
cat >"$work/share/hogs" <<'END'
# hogs N KIND: says when N programs are at it, waits for the file "go", counts for ten seconds
sum() {
	total=0
	for f in /tmp/hog.*; do total=$((total + $(od -A n -t u8 -N 8 "$f"))); done
}
for n in $(seq "$1"); do
	./hog /tmp/hog.$n 500000 1000000000 "$2" &
done
for n in $(seq "$1"); do
	until [ -s /tmp/hog.$n ] && [ "$(od -A n -t u8 -N 8 /tmp/hog.$n)" -gt 0 ]; do sleep 0.1; done
done
touch ready.$1
until [ -e go ]; do sleep 0.05; done
sum
first=$total
sleep 10
sum
echo $((total - first)) >count.$1
touch done.$1
until [ -e done.1 ] && [ -e done.4 ]; do sleep 0.1; done
kill $(jobs -p)
END
cd "$work/share"
vm() {
	TMPDIR=$work "$root/scripts/qcu" run --gpu "$gpu" --root / --mem 1G --cpus 4 --timeout "${LIMIT:-120}" --device-arg --share --device-arg "$work/shares" \
		--device-arg --weight --device-arg "$2" bash hogs "$1" $kind >"$work/log.$1" 2>&1 </dev/null || true
}
vm 1 "${1:-100}" &
vm 4 "${2:-100}" &
until [ -e ready.1 ] && [ -e ready.4 ]; do
	[ "$(jobs -r | wc -l)" = 2 ] || {
		cat "$work"/log.*
		exit 1
	}
	sleep 0.2
done
touch go
wait
one=$(cat count.1) four=$(cat count.4)
echo "a VM with one program, weight ${1:-100}, beside one with four, weight ${2:-100}: $((one * 1000 / (one + four))) of 1000 kernels, $((one + four)) in 10 s"

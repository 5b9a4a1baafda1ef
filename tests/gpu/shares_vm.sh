#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# On a machine with a GPU: one program beside four others, natively and then in a VM and another VM, which share the GPU by
# agreement: the parts of the kernels that end in ten seconds, three times each.
#
#	shares_vm.sh [WEIGHT WEIGHT]	GPU is the backend (cuda). NATIVE names the folder of NVIDIA's libcudart.so.13,
#					ROWS a file to which the medians are added, in the form of perf/results/*/all.csv
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
[ ! -e "$root/.bundle/BUNDLE" ] || root=$root/.bundle
gpu=${GPU:-cuda}
weights=("${1:-100}" "${2:-100}")
kind=work
[ "$gpu" = cuda ] || kind="wait"
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir "$work/shares" "$work/share"
cp "$root/build/tests/loopback/hog" "$work/share/"
cat >"$work/share/hogs" <<'END'
# hogs N KIND: says when N programs are at it; counts for ten seconds after each of the files go.1, go.2, go.3
sum() {
	total=0
	for f in /tmp/hog.$1.*; do total=$((total + $(od -A n -t u8 -N 8 "$f"))); done
}
for n in $(seq "$1"); do
	./hog /tmp/hog.$1.$n 500000 1000000000 "$2" &
done
for n in $(seq "$1"); do
	until [ -s /tmp/hog.$1.$n ] && [ "$(od -A n -t u8 -N 8 /tmp/hog.$1.$n)" -gt 0 ]; do sleep 0.1; done
done
touch ready.$1
for turn in 1 2 3; do
	until [ -e go.$turn ]; do sleep 0.05; done
	sum "$1"
	first=$total
	sleep 10
	sum "$1"
	echo $((total - first)) >count.part.$1
	mv count.part.$1 count.$1.$turn
done
until [ -e count.1.3 ] && [ -e count.4.3 ]; do sleep 0.1; done
kill $(jobs -p)
rm -f /tmp/hog.$1.*
END
cd "$work/share"

run_natively() {
	LD_LIBRARY_PATH=$NATIVE bash hogs "$1" $kind >"$work/log.$1" 2>&1 </dev/null || true
}

run_in_vm() {
	TMPDIR=$work "$root/scripts/qcu" run --gpu "$gpu" --root / --mem 1G --cpus 4 --timeout "${LIMIT:-180}" --device-arg --share --device-arg "$work/shares" \
		--device-arg --weight --device-arg "$2" bash hogs "$1" $kind >"$work/log.$1" 2>&1 </dev/null || true
}

# add_rows LABEL PART: PART of 10000 kernels are the one's.
add_rows() {
	local case="shares,VMs of 1 and 4 ${weights[*]}"
	[ -z "${ROWS:-}" ] ||
		printf '%s,%s/%s,0,%s,,,,,3,,,,,\n' "$1" "$case" '1: one' "0.$(printf %04d "$2")" \
			"$1" "$case" '2: four' "0.$(printf %04d $((10000 - $2)))" >>"$ROWS"
}

# compare LABEL COMMAND: COMMAND runs one program and its weight, and beside it four.
compare() {
	local turn one four
	rm -f ready.* go.* count.*
	"$2" 1 "${weights[0]}" &
	"$2" 4 "${weights[1]}" &
	until [ -e ready.1 ] && [ -e ready.4 ]; do
		[ "$(jobs -r | wc -l)" = 2 ] || {
			cat "$work"/log.*
			exit 1
		}
		sleep 0.2
	done
	for turn in 1 2 3; do
		touch go.$turn
		until [ -e count.1.$turn ] && [ -e count.4.$turn ]; do sleep 0.2; done
		one=$(cat count.1.$turn) four=$(cat count.4.$turn)
		echo "$((one * 10000 / (one + four))) $((one + four))"
	done | sort -n >"$work/parts"
	wait
	sed "s|\(.*\) \(.*\)|$1: \1 of 10000 kernels are the one's, \2 kernels in 10 s|" "$work/parts"
	add_rows "$1" "$(sed -n '2s/ .*//p' "$work/parts")"
}

add_rows wanted $((weights[0] * 10000 / (weights[0] + weights[1])))
[ -z "${NATIVE:-}" ] || compare native run_natively
compare agreed run_in_vm

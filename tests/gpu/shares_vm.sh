#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# On a machine with a GPU: what each VM has of it if they share it by agreement, and what its programs have natively, three
# times each.
#
#	shares_vm.sh [WEIGHT WEIGHT]	a VM with one program and a VM with four: parts of the kernels that end
#	shares_vm.sh mixed		a VM of launches, one of graphs, one of cuBLAS: parts of what each does alone
#
# GPU is the backend (cuda). NATIVE names the folder of NVIDIA's libcudart.so.13. ROWS is a file to which the medians are added,
# in the form of perf/results/*/all.csv.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
[ ! -e "$root/.bundle/BUNDLE" ] || root=$root/.bundle
gpu=${GPU:-cuda}
kind=work
[ "$gpu" = cuda ] || kind="wait"
together="1 2 3" # steps in which all are at it
if [ "${1:-}" = mixed ]; then
	case=mixed
	names=(launches graphs cuBLAS)
	programs=("1 $kind 500000" "1 graph 2000000" "1 gemm 2048")
	weights=(100 100 100)
	steps="a0 a1 a2 $together" # first each of them alone
else
	case="VMs of 1 and 4 ${1:-100} ${2:-100}"
	names=(one four)
	programs=("1 $kind 500000" "4 $kind 500000")
	weights=("${1:-100}" "${2:-100}")
	steps=$together
fi
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir "$work/shares" "$work/share"
cp "$root/build/tests/loopback/hog" "$work/share/"
cat >"$work/share/hogs" <<'END'
# hogs V N KIND NS: runs N programs. In each step, those of the VMs that its file names are at it, and are counted.
v=$1
sum() {
	total=0
	for f in /tmp/hog.$v.*; do total=$((total + $(od -A n -t u8 -N 8 "$f"))); done
}
for n in $(seq "$2"); do
	./hog /tmp/hog.$v.$n "$4" 1000000000 "$3" &
done
for n in $(seq "$2"); do
	until [ -s /tmp/hog.$v.$n ] && [ "$(od -A n -t u8 -N 8 /tmp/hog.$v.$n)" -gt 0 ]; do sleep 0.1; done
done
touch ready.$v
for step in $(cat steps); do
	until [ -e go.$step ]; do sleep 0.05; done
	case " $(cat go.$step) " in
	*" $v "*) kill -CONT $(jobs -p) ;;
	*) kill -STOP $(jobs -p) ;;
	esac
	sleep 1
	sum
	first=$total
	sleep 8
	sum
	echo $((total - first)) >count.part.$v
	mv count.part.$v count.$v.$step
done
until [ -e end ]; do sleep 0.1; done
kill -CONT $(jobs -p)
kill $(jobs -p)
rm -f /tmp/hog.$v.*
END
cd "$work/share"
echo "$steps" >steps

# Both take the number of a VM.
run_natively() {
	# shellcheck disable=SC2086
	LD_LIBRARY_PATH=$NATIVE bash hogs "$1" ${programs[$1]} >"$work/log.$1" 2>&1 </dev/null || true
}

run_in_vm() {
	# shellcheck disable=SC2086
	TMPDIR=$work "$root/scripts/qcu" run --gpu "$gpu" --root / --mem 1G --cpus 4 --timeout "${LIMIT:-240}" --device-arg --share \
		--device-arg "$work/shares" --device-arg --weight --device-arg "${weights[$1]}" \
		bash hogs "$1" ${programs[$1]} >"$work/log.$1" 2>&1 </dev/null || true
}

# await STEM [END]: until there is a file of each VM. All of them must live.
await() {
	local v
	for v in "${!programs[@]}"; do
		until [ -e "$1.$v${2:-}" ]; do
			[ "$(jobs -r | wc -l)" = ${#programs[@]} ] || {
				cat "$work"/log.*
				exit 1
			}
			sleep 0.2
		done
	done
}

# add_rows LABEL PART...
add_rows() {
	local label=$1 v
	shift
	[ -n "${ROWS:-}" ] || return 0
	for v in "${!names[@]}"; do
		printf '%s,shares,%s/%s: %s,0,%s,,,,,3,,,,,\n' "$label" "$case" $((v + 1)) "${names[v]}" "${@:v+1:1}" >>"$ROWS"
	done
}

# compare LABEL COMMAND
compare() {
	local v step parts
	rm -f ready.* go.* count.* end
	for v in "${!programs[@]}"; do
		"$2" "$v" &
	done
	await ready
	for step in $steps; do
		case $step in
		a*) echo "${step#a}" ;;
		*) echo "${!programs[@]}" ;;
		esac >go.part
		mv go.part "go.$step"
		await count ".$step"
	done
	touch end
	wait
	# A line for each step: what each has, and all together as part of what they do alone, or in kernels.
	for step in $together; do
		for v in "${!programs[@]}"; do
			if [ -e "count.$v.a$v" ]; then
				echo "$(cat "count.$v.$step") $(cat "count.$v.a$v")"
			else
				echo "$(cat "count.$v.$step") 1"
			fi
		done | awk '{ n[NR] = $1 / $2; all += n[NR] } END { for (i = 1; i <= NR; i++) printf "%.4f ", n[i] / all; printf "%.3f\n", all }'
	done | tee "$work/parts" | sed "s/^/$1: /"
	parts=()
	for v in "${!programs[@]}"; do
		parts+=("$(cut -d' ' -f$((v + 1)) "$work/parts" | sort -n | sed -n 2p)")
	done
	echo "$1, medians: ${parts[*]}, together $(sed 's/.* //' "$work/parts" | sort -n | sed -n 2p)"
	add_rows "$1" "${parts[@]}"
}

# shellcheck disable=SC2046
add_rows wanted $(printf '%s\n' "${weights[@]}" | awk '{ w[NR] = $1; all += $1 } END { for (i = 1; i <= NR; i++) printf "%.4f ", w[i] / all }')
[ -z "${NATIVE:-}" ] || compare native run_natively
compare agreed run_in_vm

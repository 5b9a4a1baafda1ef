#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# `make demo` builds everything and calls this script. It boots one VM, runs four CUDA programs in it as
# any user would, and prints a table of what each program has verified. The exit code is 0 only if all
# four programs succeed.
set -uo pipefail
export LC_ALL=C
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 2
B=${B:-build}

programs=(device_query vector_add matmul bandwidth)
tmp=$(mktemp -d "${TMPDIR:-/tmp}/qcu-demo.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/share"

with=()
for p in "${programs[@]}"; do
	with+=(--with "$B/tests/guest/$p")
done

# This script runs in the guest, with busybox. It uses no `tee`, so that each line of a program's output
# is shown at once.
cat >"$tmp/script" <<'END'
rule='─────────────────────────────────────────────────────────────────────────────────────────'

clock() {
	read -r ticks _ </proc/uptime
	ticks=${ticks%.*}${ticks#*.}
}

read -r kernel </proc/sys/kernel/osrelease
emulated=
while read -r line; do
	case $line in
	*'QEMU TCG CPU'*) emulated=1 ;;
	esac
done </proc/cpuinfo
echo "The VM runs Linux $kernel; /dev/qcuda is its CUDA device."
[ -z "$emulated" ] || echo "Its CPU is emulated (no KVM here), which makes small copies and short programs slow."

failed=0
for program in "$@"; do
	echo
	echo "\$ $program"
	clock
	start=$ticks
	mkfifo /tmp/pipe
	$program >/tmp/pipe 2>&1 &
	what='-'
	while IFS= read -r line; do
		case $line in
		'verified: '*) what=${line#verified: } ;;
		*) printf '%s\n' "$line" ;;
		esac
	done </tmp/pipe
	wait $!
	rc=$?
	rm /tmp/pipe
	clock
	result=ok
	if [ $rc -ne 0 ]; then
		failed=$((failed + 1))
		result="FAILED, exit code $rc"
	fi
	t=$((ticks - start))
	printf '%-13s %-52s %6s s  %s\n' "$program" "$what" "$((t / 100)).$((t / 10 % 10))" \
		"$result" >>/tmp/table
done

echo
printf '%-13s %-52s %8s  %s\n' program verified time result
echo "$rule"
cat /tmp/table
echo "$rule"
if [ $failed -eq 0 ]; then
	echo "All four programs ran in the VM, unmodified, and their results are right."
else
	echo "$failed of the programs failed."
fi
[ $failed -eq 0 ]
END

cat <<END
qCUDA demo: four CUDA programs, compiled by nvcc with -cudart shared, in a QEMU guest.
It boots in some seconds.

END
start=$SECONDS
scripts/qcu vm --script "$tmp/script" --klog "$tmp/klog" --share "$tmp/share" --timeout 300 "${with[@]}" \
	"${programs[@]}" </dev/null
rc=$?
if [ $rc -ne 0 ]; then
	printf '\nThe demo failed (exit code %d). scripts/qcu run --verbose %s shows more.\n' $rc \
		"$B/tests/guest/${programs[0]}"
	exit $rc
fi
if ! scripts/scan-klog "$tmp/klog"; then
	echo "The guest's kernel complained; see above."
	exit 1
fi
printf '%d s. Your own program: scripts/qcu run ./program\n' $((SECONDS - start))

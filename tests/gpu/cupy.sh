#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# On a machine with a GPU and CuPy: runs a sample of CuPy's own tests natively and in VMs, whose root is this machine's,
# and compares which of them pass.
#
#	cupy.sh TESTS [OUT]	TESTS is the folder tests/ of CuPy's source package, of the version that is installed
#
# PYTHON names the interpreter (with pytest), GPU the backend (cuda), VMS how many of them (16), SAMPLED how many tests of each file
# (12), LIMIT the time of the VMs in seconds (400). OUT (default: the current folder) gets cupy.txt and the outputs. Uses the bundle
# if there is one.
set -uo pipefail
export LC_ALL=C # sort and join must agree
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
[ ! -e "$root/.bundle/BUNDLE" ] || root=$root/.bundle
[ -d "${1:-}/cupy_tests" ] || {
	sed -n 's/^#\t//p' "$0" >&2
	exit 2
}
tests=$(cd "$1" && pwd)
out=$(cd "${2:-.}" && pwd) || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/share" "$work/guest"
cp -r "$tests" "$work/share/tests"
cp "$here/sampled.py" "$work/share/tests/"
cd "$work/share/tests" || exit 2
# What the native runs compile, the VMs find.
export PYTHONPYCACHEPREFIX=$work/share/pyc CUPY_CACHE_DIR=$work/share/kernels PYTHONPATH=.${PYTHONPATH:+:$PYTHONPATH}
export SAMPLED=${SAMPLED:-12}
vms=${VMS:-16}
run=("${PYTHON:-python3}" -m pytest -p sampled -p no:cacheprovider -q --tb line)

# Those that need several GPUs are in other folders. What compiles for minutes is left out. The largest files come first, each to
# the next VM.
mapfile -t files < <(find cupy_tests/{binary,core,creation,fft,functional,indexing,linalg,logic,manipulation,math,misc,padding}_tests \
	cupy_tests/{polynomial,random,sorting,statistics}_tests -name 'test_*.py' \
	! -name test_raw.py ! -name test_callback.py ! -name test_cache.py -printf '%s %p\n' | sort -rn | cut -d' ' -f2)

# part N: sets the array $mine to the files of VM number N.
part() {
	local i
	mine=()
	for ((i = $1; i < ${#files[@]}; i += vms)); do
		mine+=("${files[i]}")
	done
}

for ((n = 0; n < vms; n++)); do
	part "$n"
	"${run[@]}" "${mine[@]}" >"$out/cupy.$n.native" 2>&1 </dev/null &
done
wait
QCU_CACHE=$work/guest "$root/scripts/build-guest" >/dev/null
for ((n = 0; n < vms; n++)); do
	part "$n"
	mkdir "$work/$n"
	TMPDIR=$work/$n QCU_CACHE=$work/guest "$root/scripts/qcu" run --gpu "${GPU:-cuda}" --root / --mem 4G --cpus 1 \
		--timeout "${LIMIT:-400}" "${run[@]}" "${mine[@]}" >"$out/cupy.$n.vm" 2>&1 </dev/null &
done
wait
sed -n 's/^test //p' "$out"/cupy.*.native | sort -k1,1 >"$out/native"
sed -n 's/^test //p' "$out"/cupy.*.vm | tr -d '\r' | sort -k1,1 >"$out/vm"
{
	echo "natively: $(awk '{ n[$NF]++ } END { for (o in n) printf "%s%d %s", sep, n[o], o; }' sep=' ' "$out/native")"
	echo "in a VM: $(awk '{ n[$NF]++ } END { for (o in n) printf "%s%d %s", sep, n[o], o; }' sep=' ' "$out/vm")"
	join -j 1 "$out/native" "$out/vm" | awk '
		$2 == $3 { same++; next }
		{ other++; print "different: " $0 }
		END { print "of those that ended in both, same: " same + 0 ", different: " other + 0 }'
} | tee "$out/cupy.txt"
rm -f "$out/native" "$out/vm"
! grep -q '^different' "$out/cupy.txt"

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# On a machine with a GPU: makes an image of this machine's root, runs a Python program natively and by `qcu run --image`,
# and compares what both print.
#
#	image.sh [OUT [PATH...]]	PYTHON names the interpreter, PROGRAM the program (torch_steps.py),
#					GPU the backend (cuda)
#
# OUT (default: the current folder) gets the outputs. PATH: what goes into the image (default: the system and the
# interpreter's own folder). Needs umoci, skopeo and jq, space for two copies of all that in TMPDIR and the cache, and
# minutes for these. Uses the bundle if there is one.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
[ ! -e "$root/.bundle/BUNDLE" ] || root=$root/.bundle
out=$(cd "${1:-.}" && pwd)
[ $# -eq 0 ] || shift
python=$(command -v "${PYTHON:-python3}")
program=${PROGRAM:-torch_steps.py}
prefix=$("$python" -c 'import sys; print(sys.prefix)')
if [ $# -eq 0 ]; then
	set -- /bin /lib /lib64 /etc/alternatives /usr
	[[ $prefix/ == /usr/* ]] || set -- "$@" "$prefix"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umoci init --layout "$work/image"
umoci new --image "$work/image:root"
for path; do
	umoci --log error insert --rootless --image "$work/image:root" "$path" "$path"
done
mkdir "$work/share"
cp "$here"/*.py "$work/share/"
cd "$work/share"
# Python's own code, which the native run compiles, the VM finds in the share.
export PYTHONPYCACHEPREFIX=$work/share/pyc
codes=()
rc=0
"$python" "$program" >"$out/image.native.out" 2>"$out/image.native.err" </dev/null || rc=$?
codes+=("$rc")
rc=0
QCU_LOADER=0 "$root/scripts/qcu" run --gpu "${GPU:-cuda}" --image "oci:$work/image:root" --preload --mem 8G --cpus 3 \
	"$python" "$program" >"$out/image.vm.out" 2>"$out/image.vm.err" </dev/null || rc=$?
codes+=("$rc")
result=same
cmp -s "$out/image.native.out" "$out/image.vm.out" || result=DIFFERENT
[ "${codes[*]}" = '0 0' ] || result=FAILED
echo "image: $result, $(wc -l <"$out/image.native.out") lines, exit codes ${codes[*]}"
[ $result = same ] || { diff "$out/image.native.out" "$out/image.vm.out" || true; tail -n 5 "$out/image.vm.err"; }
[ $result = same ]

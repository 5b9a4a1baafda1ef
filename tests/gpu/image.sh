#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# On a machine with a GPU: makes an image of this machine's root, runs a Python program natively and by `qcu run --image`,
# and compares what both print.
#
#	image.sh [OUT [PATH...]]	PYTHON names the interpreter, PROGRAM the program (torch_steps.py),
#					GPU the backend (cuda), WITHOUT patterns of tar that stay out
#
# OUT (default: the current folder) gets the outputs. PATH: what goes into the image (default: the system and the
# interpreter's own folder). Needs skopeo, umoci and jq, also in the bundle's bin, space for two copies of all that in TMPDIR
# and the cache, and minutes for these. Uses the bundle if there is one. Exit code 2: something is missing, and no image was
# made.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
[ ! -e "$root/.bundle/BUNDLE" ] || root=$root/.bundle
PATH=$PATH:$root/bin
program=${PROGRAM:-torch_steps.py}
missing=()
for tool in "${PYTHON:-python3}" skopeo umoci jq; do
	command -v "$tool" >/dev/null || missing+=("$tool")
done
[ -f "$here/$program" ] || missing+=("$here/$program")
if [ ${#missing[@]} -gt 0 ]; then
	echo "image.sh: no image was made, because these are missing: ${missing[*]}" >&2
	exit 2
fi
out=$(cd "${1:-.}" && pwd)
[ $# -eq 0 ] || shift
python=$(command -v "${PYTHON:-python3}")
prefix=$("$python" -c 'import sys; print(sys.prefix)')
if [ $# -eq 0 ]; then
	set -- /bin /lib /lib64 /etc/alternatives /usr
	[[ $prefix/ == /usr/* ]] || set -- "$@" "$prefix"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/image/blobs/sha256"
# keep FILE: it becomes a blob; prints its digest and size as JSON.
keep() {
	local digest size
	digest=$(sha256sum <"$1") size=$(stat -c %s "$1")
	mv "$1" "$work/image/blobs/sha256/${digest%% *}"
	echo "\"digest\": \"sha256:${digest%% *}\", \"size\": $size"
}
without=()
for pattern in ${WITHOUT:-}; do
	without+=(--exclude "$pattern")
done
tar -c -C / "${without[@]}" -f "$work/layer" "${@#/}"
layer=$(keep "$work/layer")
diff=${layer#*: }
echo "{\"os\": \"linux\", \"architecture\": \"amd64\", \"rootfs\": {\"type\": \"layers\", \"diff_ids\": [${diff%%,*}]}}" >"$work/config"
config=$(keep "$work/config")
oci=application/vnd.oci.image
echo "{\"schemaVersion\": 2, \"config\": {\"mediaType\": \"$oci.config.v1+json\", $config},
	\"layers\": [{\"mediaType\": \"$oci.layer.v1.tar\", $layer}]}" >"$work/manifest"
manifest=$(keep "$work/manifest")
echo "{\"schemaVersion\": 2, \"manifests\": [{\"mediaType\": \"$oci.manifest.v1+json\", $manifest,
	\"annotations\": {\"org.opencontainers.image.ref.name\": \"root\"}}]}" >"$work/image/index.json"
echo '{"imageLayoutVersion": "1.0.0"}' >"$work/image/oci-layout"
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

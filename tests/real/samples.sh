#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Builds NVIDIA's samples as nvcc does by default, with the runtime linked in, and runs them on the software
# GPU: over the loopback library, and then all of them in one VM. Where the headers of CUDA 13 refuse a
# sample, it gets those of CUDA 12 and its static runtime. SAMPLES names some of them.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"

SAMPLES=${SAMPLES:-$(awk '!/^#/ { print $2 }' tests/real/samples.txt)}
home=$(tests/real/fetch-samples 2>"$tmp/why") || {
	for name in $SAMPLES; do
		echo "@skip $name $(tail -n 1 "$tmp/why")"
	done
	exit 0
}
cuda12=$(scripts/cuda-wheels 12.9 2>/dev/null)
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
bin=$PWD/$B/tests/real
mkdir -p "$bin"

# compile NAME: in the sample's folder. The default of nvcc is PTX for 7.5, too.
compile() {
	local flags=(-O2 "-I$home/Common" -std=c++17 -w -gencode 'arch=compute_75,code=compute_75')
	local libs=()
	[ "$1" != simpleSeparateCompilation ] || flags+=(-rdc=true)
	[ "$1" != cudaOpenMP ] || flags+=(-Xcompiler -fopenmp) libs+=(-lgomp)
	local sources
	shopt -s nullglob
	sources=(./*.cu ./*.cpp)
	"$nvcc" "${flags[@]}" -o "$bin/$1" "${sources[@]}" "${libs[@]}" ||
		"$nvcc" "${flags[@]}" "-I$cuda12/include" -cudart none -o "$bin/$1" "${sources[@]}" \
			"$cuda12/lib/libcudart_static.a" "${libs[@]}" -ldl -lrt -lpthread
}

loopback=$PWD/$B/loopback ready=()
while read -r folder name arguments; do
	[[ " ${SAMPLES//$'\n'/ } " = *" $name "* ]] || continue
	cd "$home/Samples/$folder/$name" || exit 2
	if [ ! -x "$bin/$name" ] && ! compile "$name" >"$tmp/log" 2>&1; then
		cat "$tmp/log"
		echo "@FAIL $name it does not compile"
		continue
	fi
	# shellcheck disable=SC2086
	LD_LIBRARY_PATH=$loopback LD_AUDIT=$loopback/libqcuda-loader.so LD_PRELOAD=$loopback/libcudart.so.13 \
		timeout $((60 * slow)) "$bin/$name" $arguments </dev/null
	rc=$?
	if [ $rc -eq 0 ]; then
		echo "@ok loopback-$name"
		ready+=("$name")
		echo "expect $name 0 sh -c 'cd $home/Samples/$folder/$name && exec qcu-run /qcu/bin/$name $arguments'" >>"$tmp/all"
	else
		echo "@FAIL loopback-$name exit code $rc"
	fi
done < <(grep -v '^#' tests/real/samples.txt)
cd "$root" || exit 2
[ ${#ready[@]} -gt 0 ] || exit 0
with "${ready[@]/#/$bin/}"
boot --gpu soft "${with[@]}" --share "$home" --timeout 900 <"$tmp/all"

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# On a machine with a GPU, PyTorch, Triton and JAX: runs each program of this folder natively and in a VM, whose root
# is this machine's, and compares what they print. Where the VM's processor is emulated, importing PyTorch
# takes two minutes: all VMs run at the same time.
#
#	frameworks.sh [OUT [NAME...]]	PYTHON names the interpreter, GPU the backend (cuda)
#
# OUT (default: the current folder) gets frameworks.txt and the outputs. NAME: only these of torch, segments,
# libraries, training, counts, triton, jax, learning (JAX's training) and images. Uses the bundle if there is one.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
[ ! -e "$root/.bundle/BUNDLE" ] || root=$root/.bundle
out=$(cd "${1:-.}" && pwd) || exit 2
[ $# -eq 0 ] || shift
names=" ${*:-torch segments libraries training counts triton jax learning images} "
# Triton's programs run in two VMs.
names=${names/ triton / compiled triton }
python=${PYTHON:-python3}
limit=${LIMIT:-400}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/share" "$work/cache" "$work/pyc"
cp "$here"/*.py "$work/share/"
cd "$work/share" || exit 2
# What the native runs compile, the VMs find: Python's own code in the share, Triton's kernels only in one
# of the two VMs that run Triton.
export PYTHONPYCACHEPREFIX=$work/share/pyc
failed=0

# native NAME [VARIABLE=VALUE...] PROGRAM [ARG...]
native() {
	local name=$1
	shift
	[[ $names == *" $name "* ]] || return 0
	env "$@" >"$out/$name.native.out" 2>"$out/$name.native.err" </dev/null
	echo $? >"$out/$name.native.rc"
}

# vm NAME [VARIABLE=VALUE...] PROGRAM [ARG...]
vm() {
	local name=$1 variables=()
	shift
	[[ $names == *" $name "* ]] || return 0
	while [[ $1 == *=* ]]; do
		variables+=("$1")
		shift
	done
	mkdir "$work/$name"
	# Without the loader module, NVIDIA's own libraries are loaded and not our shims.
	env TMPDIR="$work/$name" QCU_CACHE="$work/cache" QCU_LOADER=0 "${variables[@]}" "$root/scripts/qcu" run \
		--gpu "${GPU:-cuda}" --root / --preload --mem 8G --cpus 3 --timeout "$limit" "$@" \
		>"$out/$name.vm.out" 2>"$out/$name.vm.err" </dev/null
	echo $? >"$out/$name.vm.rc"
}

compare() {
	local name=$1 result=same
	cmp -s "$out/$name.native.out" "$out/$name.vm.out" || result=DIFFERENT
	[ "$(cat "$out/$name.native.rc" "$out/$name.vm.rc" | tr '\n' ' ')" = '0 0 ' ] || result=FAILED
	[ $result = same ] || failed=1
	echo "$name: $result, $(wc -l <"$out/$name.native.out") steps," \
		"exit codes $(cat "$out/$name.native.rc") $(cat "$out/$name.vm.rc")"
	[ $result = same ] || diff "$out/$name.native.out" "$out/$name.vm.out"
	grep -h -e 'imported' -e 'one launch' -e 'training' -e 'losses' "$out/$name.native.err" | sed 's/^/	native /'
	grep -h -e 'imported' -e 'one launch' -e 'training' -e 'losses' -e 'not supported' "$out/$name.vm.err" | sed 's/^/	vm     /'
}

segments=PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
kernels=TRITON_CACHE_DIR=$work/share/triton
inductor=(TORCHINDUCTOR_CACHE_DIR="$work/share/inductor" TORCHINDUCTOR_COMPILE_THREADS=1)
jax=(JAX_COMPILATION_CACHE_DIR="$work/share/jax" JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1
	JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 XLA_PYTHON_CLIENT_PREALLOCATE=false
	XLA_FLAGS='--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0')
# The mirror takes the libraries that PyTorch has natively.
wheels=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/nvidia
libraries=LD_LIBRARY_PATH=$wheels/cudnn/lib:$wheels/cu13/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
native triton "$kernels" "$python" triton_steps.py &
native torch "$python" torch_steps.py
native libraries "$python" library_steps.py
native training "${inductor[@]}" "$python" training_steps.py
native counts "$python" count_steps.py
native jax "${jax[@]}" "$python" jax_steps.py but training
native learning "${jax[@]}" "$python" jax_steps.py training
native images "$python" image_steps.py
native segments $segments "$python" torch_steps.py devices empty copies elementwise streams_and_events allocator too_much &
wait
for kind in out err rc; do
	[[ $names != *" triton "* ]] || cp "$out/triton.native.$kind" "$out/compiled.native.$kind"
done
"$root/scripts/build-guest" >/dev/null
vm torch "$python" torch_steps.py &
vm segments $segments "$python" torch_steps.py devices empty copies elementwise streams_and_events allocator too_much &
vm libraries QCU_LOADER=1 "$libraries" "$python" library_steps.py &
vm training QCU_LOADER=1 "$libraries" "${inductor[@]}" "$python" training_steps.py &
vm counts QCU_LOADER=1 "$libraries" "$python" count_steps.py &
vm jax QCU_LOADER=1 "$libraries" "${jax[@]}" "$python" jax_steps.py but training &
vm learning QCU_LOADER=1 "$libraries" "${jax[@]}" "$python" jax_steps.py training &
vm images QCU_LOADER=1 "$libraries" "$python" image_steps.py &
vm compiled "$kernels" "$python" triton_steps.py &
vm triton TRITON_CACHE_DIR=/tmp/triton "$python" triton_steps.py &
wait
for name in $names; do
	compare $name
done >"$out/frameworks.txt" 2>&1
cat "$out/frameworks.txt"
exit $failed

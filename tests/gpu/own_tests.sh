#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# On a machine with a GPU and CuPy, Numba, PyTorch or JAX: runs a sample of its own tests natively and in VMs, whose root is this
# machine's, and compares which of them pass, and of JAX all bits. In a VM those come first that take the least time natively.
#
#	own_tests.sh cupy TESTS [OUT]		TESTS is the folder tests/ of CuPy's source package, of the version that is installed
#	own_tests.sh numba [OUT]		the tests that are installed with numba-cuda
#	own_tests.sh pytorch TESTS [OUT]	TESTS is the folder test/ of PyTorch's source package
#	own_tests.sh jax [OUT]			the uses of primitives that are installed with JAX for its tests
#
# PYTHON names the interpreter (with pytest, for JAX absl), GPU the backend (cuda), VMS how many of them (16; of PyTorch's 12 the
# first; JAX 8), SAMPLED how many tests of each file (CuPy 12, Numba 3; PyTorch 42 and JAX 140 for each VM), NATIVE and LIMIT the
# time of the native runs and of the VMs in seconds (150, 400). OUT (default: the current folder) gets the outputs, and cupy.txt,
# numba.txt, pytorch.txt or jax.txt. Uses the bundle if there is one.
#
# JAX chooses kernels by measuring them, so that bits may differ from run to run. This is switched off here.
set -uo pipefail
export LC_ALL=C # sort and join must agree
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
[ ! -e "$root/.bundle/BUNDLE" ] || root=$root/.bundle
python=${PYTHON:-python3}
kind=${1:-}
vms=${VMS:-16}
tests=''
usage() {
	sed -n 's/^#\t//p' "$0" >&2
	exit 2
}
case $kind in
cupy | pytorch)
	tests=$(cd "${2:-/nonexistent}" && pwd) || usage
	shift
	;;
numba) tests=$("$python" -c 'import os, numba.cuda.tests; print(os.path.dirname(numba.cuda.tests.__file__))') || usage ;;
jax) vms=${VMS:-8} ;;
*) usage ;;
esac
out=$(cd "${2:-.}" && pwd) || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/share/tests" "$work/guest"
[ -z "$tests" ] || cp -r "$tests/." "$work/share/tests"
cp "$here/sampled.py" "$here"/own_*.py "$work/share/tests/"
cd "$work/share/tests" || exit 2
# What the native runs compile, the VMs find.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX=$work/share/pyc PYTHONPATH=.${PYTHONPATH:+:$PYTHONPATH}
# Plugins that are installed by chance cost the VMs time.
export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
run=("$python" -m pytest -p sampled -p no:cacheprovider -q --tb line --continue-on-collection-errors)
machine=(--mem 4G --cpus 1)
parts=() # for each VM: how many tests of each file, which part of them, the files

# share FILE...: gives each file to the next VM. The largest files come first.
share() {
	local file n=0
	while read -r file; do
		parts[n % vms]="${parts[n % vms]:-$1 0/1} $file"
		n=$((n + 1))
	done < <(shift && printf '%s\n' "$@" | xargs ls -S)
}

case $kind in
cupy)
	export CUPY_CACHE_DIR=$work/share/kernels
	# Those that need several GPUs are in other folders. What compiles for minutes is left out.
	mapfile -t files < <(find cupy_tests/{binary,core,creation,fft,functional,indexing,linalg,logic,manipulation,math,misc,padding}_tests \
		cupy_tests/{polynomial,random,sorting,statistics}_tests -name 'test_*.py' \
		! -name test_raw.py ! -name test_callback.py ! -name test_cache.py)
	share "${SAMPLED:-12}" "${files[@]}"
	;;
numba)
	run+=(-p own_numba --assert plain --import-mode importlib --rootdir . -W ignore)
	# What starts processes or needs several GPUs is left out.
	mapfile -t files < <(find cudadrv cudapy nrt doc_examples -name 'test_*.py' \
		! -name 'test_multi*.py' ! -name test_ipc.py ! -name 'test_cach*.py' ! -name test_init.py)
	share "${SAMPLED:-3}" "${files[@]}"
	;;
pytorch)
	rm -f conftest.py # for an older pytest
	# Newer PyTorch derives the class of a device's tests from theirs, so that this would call itself.
	sed -i 's/super(self\.__class__, self)/super()/' test_*.py
	run+=(-p own_pytorch --assert plain -W ignore)
	n=${SAMPLED:-42}
	parts=("$n 0/2 test_torch.py" "$n 1/2 test_torch.py" "$n 0/2 test_linalg.py" "$n 1/2 test_linalg.py"
		"$n 0/2 test_nn.py" "$n 1/2 test_nn.py" "$n 0/2 test_ops.py" "$n 1/2 test_ops.py" "$n 0/1 test_autograd.py"
		"$n 0/1 test_cuda.py" "$((n / 3)) 0/1 nn/test_convolution.py nn/test_pooling.py nn/test_embedding.py"
		"$((n / 6)) 0/1 test_indexing.py test_sort_and_select.py test_shape_ops.py test_view_ops.py test_type_promotion.py
			test_tensor_creation_ops.py")
	parts=("${parts[@]:0:vms}")
	export PYTORCH_TESTING_DEVICE_ONLY_FOR=cuda
	machine=(--mem 6G --cpus 1 --preload)
	;;
jax)
	run+=(--assert plain -W ignore)
	mkdir wanted
	export WANTED=wanted JAX_PLATFORMS=${JAX_PLATFORMS:-cuda,cpu} JAX_ENABLE_X64=1 JAX_DEFAULT_MATMUL_PRECISION=highest
	export XLA_FLAGS='--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0' XLA_PYTHON_CLIENT_PREALLOCATE=false
	export JAX_COMPILATION_CACHE_DIR=$work/share/kernels JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1
	export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0
	for ((n = 0; n < vms; n++)); do
		parts+=("${SAMPLED:-140} $n/$vms own_jax.py")
	done
	machine=(--mem 8G --cpus 2 --preload)
	;;
esac
case $kind in
pytorch | jax)
	# The mirror takes the libraries that the program has natively.
	wheels=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/nvidia
	export LD_LIBRARY_PATH=$wheels/cudnn/lib:$wheels/cu13/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	;;
esac

for n in "${!parts[@]}"; do
	read -r -d '' -a part <<<"${parts[n]}"
	SAMPLED=${part[0]} PART=${part[1]} timeout "${NATIVE:-150}" "${run[@]}" "${part[@]:2}" >"$out/$kind.$n.native" 2>&1 </dev/null &
done
wait
export QCU_CACHE=${QCU_CACHE:-$work/guest}
"$root/scripts/build-guest" >/dev/null
for n in "${!parts[@]}"; do
	read -r -d '' -a part <<<"${parts[n]}"
	sed -n 's/^test //p' "$out/$kind.$n.native" | sort -k3n | cut -d' ' -f1 >"chosen.$n"
	mkdir "$work/$n"
	TMPDIR=$work/$n CHOSEN=chosen.$n "$root/scripts/qcu" run --gpu "${GPU:-cuda}" --root / "${machine[@]}" \
		--timeout "${LIMIT:-400}" "${run[@]}" "${part[@]:2}" >"$out/$kind.$n.vm" 2>&1 </dev/null &
done
wait
for where in native vm; do
	sed -n 's/^test //p' "$out/$kind".*.$where | tr -d '\r' | awk '{ print $1, $2, $4 == "" ? "-" : $4, $5 }' |
		sort -k1,1 >"$out/$where"
done
{
	echo "natively: $(awk '{ n[$2]++ } END { for (o in n) printf "%s%d %s", sep, n[o], o; }' sep=' ' "$out/native")"
	echo "in a VM: $(awk '{ n[$2]++ } END { for (o in n) printf "%s%d %s", sep, n[o], o; }' sep=' ' "$out/vm")"
	[ $kind != jax ] || echo "in a VM compiled, and not found in the cache: $(grep -c 'compiled$' "$out/vm")"
	join -j 1 -o 0,1.2,2.2,1.3,2.3 "$out/native" "$out/vm" | awk '
		$2 != $3 { other++; print "different: " $0; next }
		{ same++ }
		$4 == "-" || $5 == "-" { next }
		$4 == $5 { bits++; next }
		{ off++; print "different bits: " $0 }
		END {
			print "of those that ended in both, same: " same + 0 ", different: " other + 0
			if (bits + off) print "of these with the same bits: " bits + 0 ", with others: " off + 0
		}'
} | tee "$out/$kind.txt"
rm -f "$out/native" "$out/vm"
! grep -q '^different' "$out/$kind.txt"

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# On a machine with a GPU and PyTorch: training natively, and on qCUDA's library without a VM, in turn: what a step
# costs where no processor is emulated. Guest and mirror are then one process, in which there cannot be two libraries
# of one name: so the mirror gets copies of NVIDIA's under other names, which this script makes (5 GB in a temporary folder).
#
#	loopback.sh [OUT [STEP...]]	PYTHON names the interpreter, TURNS how often (3; 0: only COMMAND),
#					BESIDE a command that then runs beside all of it a second time,
#					COMMAND one that runs before it, with PRELOAD for these libraries
#
# OUT (default: the current folder) gets the outputs. STEP: of training_steps.py; not those that fork.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
[ ! -e "$root/.bundle/BUNDLE" ] || root=$root/.bundle
out=$(cd "${1:-.}" && pwd)
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- products residual_network residual_graphed residual_whole_step transformer_layer transformer_graphed \
	transformer_whole_step language_model
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wheels=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/nvidia
names='s/libcublas/libcublaz/g; s/libcudnn/libcudnz/g; s/libcufft/libcufzt/g; s/libcurand/libcurazd/g
	s/libcusolver/libcusolzer/g; s/libcusparse\.so/libcuspazse.so/g'

# Names of the same length, in each library that names another one.
mkdir "$work/nvidia" "$work/ours" "$work/steps"
for library in "$wheels"/cu13/lib/libcu{blas.so.13,blasLt.so.13,fft.so.12,rand.so.10,solver.so.12,sparse.so.12} \
	"$wheels"/cudnn/lib/libcudnn*.so.9; do
	LC_ALL=C sed "$names" "$library" >"$work/nvidia/$(basename "$library" | sed "$names")"
done
cp "$root"/build/loopback/libcu*.so.* "$work/ours/"
LC_ALL=C sed -i "$names" "$work/ours/libcudart.so.13"
# The backend refuses to load a library whose name a shim may have. Here none has.
LC_ALL=C sed 's/qcul_lib_begin/qcul_lib_other/' "$root/build/qcu-device/be_cuda.so" >"$work/ours/be_cuda.so"
cp "$here"/*.py "$work/steps/"
cd "$work/steps"

ours=$work/ours
preload=$ours/libcudart.so.13
for library in cublasLt.so.13 cublas.so.13 cufft.so.12 curand.so.10 cusparse.so.12 cusolver.so.12 cudnn.so.9; do
	preload+=:$ours/lib$library
done
if [ -n "${COMMAND:-}" ]; then
	PRELOAD=$preload QCU_LOOPBACK_BACKEND=$ours/be_cuda.so LD_LIBRARY_PATH=$work/nvidia:$root/lib:$wheels/cu13/lib \
		bash -c "$COMMAND"
fi
[ "${TURNS:-3}" != 0 ] || exit 0
# run_turns NAME STEP...
run_turns() {
	local name=$1 turn
	shift
	for turn in $(seq "${TURNS:-3}"); do
		turn=$name$turn
		"$python" training_steps.py "$@" >"$out/native.$turn.out" 2>"$out/native.$turn.err"
		LD_PRELOAD=$preload QCU_LOOPBACK_BACKEND=$ours/be_cuda.so \
			LD_LIBRARY_PATH=$ours:$work/nvidia:$root/lib:$wheels/cu13/lib \
			"$python" training_steps.py "$@" >"$out/loopback.$turn.out" 2>"$out/loopback.$turn.err"
		cmp "$out/native.$turn.out" "$out/loopback.$turn.out"
	done
	grep -h -e 'a step of' -e tokens "$out/native.$name"[0-9]*.err | sed "s/^[^]]*] /native   $name /" | sort
	grep -h -e 'a step of' -e tokens "$out/loopback.$name"[0-9]*.err | sed "s/^[^]]*] /loopback $name /" | sort
}

run_turns '' "$@"
if [ -n "${BESIDE:-}" ]; then
	bash -c "exec $BESIDE" >"$out/beside.out" 2>&1 &
	trap 'kill %1; rm -rf "$work"' EXIT
	sleep 5
	run_turns beside. "$@"
fi

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# On a machine with a GPU: the tools beside NVIDIA's. Needs nvidia-smi, nvcc and compute-sanitizer, and PyTorch.
#
#	tools.sh [OUT [NAME...]]	PYTHON names the interpreter, GPU the backend (cuda)
#
#	smi	qcu-smi's fields in a VM beside nvidia-smi's
#	fault	a write beyond an allocation and one far away: natively, with compute-sanitizer, in VMs with the GPU, with
#		--fault-place (also without a sandbox), with the software GPU, and with --check
#	trace	a training of PyTorch in a VM, with a trace and without: whether its sums agree with what the device has counted;
#		NPP and nvJPEG, too, whose calls the host does not see
#
# OUT (default: the current folder) gets tools.txt, the outputs, and the traces (*.json.gz). NAME: only these. All VMs run at the
# same time. Uses the bundle if there is one.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
[ ! -e "$root/.bundle/BUNDLE" ] || root=$root/.bundle
out=$(cd "${1:-.}" && pwd) || exit 2
[ $# -eq 0 ] || shift
names=" ${*:-smi fault trace} "
python=${PYTHON:-python3}
gpu=${GPU:-cuda}
limit=${LIMIT:-400}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/share" "$work/cache"
cp "$here"/*.py "$work/share/"
export QCU_CACHE=${QCU_CACHE:-$work/cache} PYTHONPYCACHEPREFIX=$work/share/pyc

wants() {
	[[ $names == *" $1 "* ]]
}

# run NAME COMMAND...: its outputs become NAME.out and NAME.err, its exit code the last line of NAME.out.
run() {
	local name=$1 rc=0
	shift
	mkdir -p "$work/$name"
	TMPDIR=$work/$name timeout "$limit" "$@" >"$out/$name.out" 2>"$out/$name.err" </dev/null || rc=$?
	echo "exit code $rc" >>"$out/$name.out"
}

vm() {
	local name=$1
	shift
	run "$name" "$root/scripts/qcu" run --share "$work/share" --timeout "$limit" "$@"
}

# What a guest can know, and then what changes all the time.
constant=index,name,uuid,driver_version,compute_cap,memory.total,power.limit,clocks.max.sm,clocks.max.memory,display_mode
changing=temperature.gpu,power.draw,clocks.sm,clocks.mem,utilization.gpu,utilization.memory,memory.used,memory.free
smi() {
	run smi.native nvidia-smi --query-gpu=$constant,$changing --format=csv &
	run list.native nvidia-smi -L &
	vm smi.vm --gpu "$gpu" --nvml full qcu-smi --query-gpu=$constant,$changing --format=csv &
	vm list.vm --gpu "$gpu" --nvml full qcu-smi -L &
	wait
}

compare_smi() {
	echo '== nvidia-smi and qcu-smi'
	"$python" - "$out" $constant <<-'END'
		import csv, sys
		both = []
		for where in "native", "vm":
		    with open(f"{sys.argv[1]}/smi.{where}.out", encoding="utf-8") as file:
		        both.append([[f.strip() for f in row] for row in csv.reader(file)][:2])
		constant, alike = sys.argv[2].count(",") + 1, 0
		for number, (title, native, vm) in enumerate(zip(both[0][0], both[0][-1], both[1][-1])):
		    same = native == vm
		    alike += same and number < constant
		    print(f"{title}: native {native}, VM {vm}{'' if same else '   different' if number < constant else '   changes'}")
		print("titles:", "same" if both[0][0] == both[1][0] else "different", both[1][0])
		print(f"{alike} of {constant} that do not change are the same")
	END
	head -n 1 "$out/list.native.out" "$out/list.vm.out"
	cat "$out"/smi.*.err | tail -n 5
}

fault() {
	cat >"$work/share/fill.cu" <<-'END'
		#include <cstdio>
		#include <cstdlib>
		__global__ void fill(float *data, size_t n, size_t past)
		{
			size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
			if (i < n)
				data[i] = 1;
			if (i == n - 1)
				data[i + past] = 2;
		}
		int main(int argc, char **argv)
		{
			float *data;
			cudaMalloc(&data, 1 << 20);
			fill<<<1024, 256>>>(data, 1 << 18, strtoull(argv[1], NULL, 0));
			printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
		}
	END
	nvcc -lineinfo -cudart shared -gencode arch=compute_75,code=compute_75 -gencode arch=compute_90,code=sm_90 \
		-o "$work/share/fill" "$work/share/fill.cu" || return
	local past name
	for past in 1 0x2000000000; do
		name=beside
		[ $past = 1 ] || name=far
		run $name.native "$work/share/fill" $past &
		run $name.sanitizer compute-sanitizer "$work/share/fill" $past &
		vm $name.gpu --gpu "$gpu" "$work/share/fill" $past &
		vm $name.place --gpu "$gpu" --device-arg --fault-place "$work/share/fill" $past &
		vm $name.unboxed --gpu "$gpu" --no-sandbox --device-arg --fault-place "$work/share/fill" $past &
		vm $name.soft --gpu soft "$work/share/fill" $past &
		vm $name.check --check "$work/share/fill" $past &
	done
	wait
}

print_fault() {
	local file
	for file in "$out"/{beside,far}.{native,sanitizer,gpu,place,unboxed,soft,check}.out; do
		echo "== $(basename "$file" .out)"
		head -n 30 "$file"
		grep -v '^qcu: ' "${file%.out}.err" | head -n 12
	done
}

# traced NAME PROGRAM...: runs it in a VM with a trace.
traced() {
	local name=$1
	shift
	mkdir "$name"
	cp ./*.py "$name/"
	(
		cd "$name" || exit
		LD_LIBRARY_PATH=$libraries PARTS=$root/scripts run "$name.traced" "$python" "$here/traced.py" "$work/$name.json" \
			"${machine[@]}" "$python" "$@"
		gzip -c "$work/$name.json" >"$out/$name.json.gz"
	)
}

trace() {
	local wheels libraries machine
	wheels=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/nvidia
	libraries=$wheels/cudnn/lib:$wheels/cu13/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	machine=(--gpu "$gpu" --root / --preload --mem 8G --cpus 3 --timeout "$limit")
	cd "$work/share" || return
	# What Python compiles natively, the VMs find.
	run training.native "$python" training_steps.py residual_network
	run images.native "$python" image_steps.py
	LD_LIBRARY_PATH=$libraries run training.vm "$root/scripts/qcu" run "${machine[@]}" "$python" training_steps.py residual_network &
	traced training training_steps.py residual_network &
	traced images image_steps.py &
	wait
}

print_trace() {
	local way
	for way in training.{native,vm,traced} images.{native,traced}; do
		echo "== $way"
		cat "$out/$way.out"
		grep -a -e 'residual' "$out/$way.err" | tail -n 4
	done
	for way in training images; do
		echo "== $way: summary"
		grep -a -v '^\[' "$out/$way.traced.err" | tail -n 90
	done
}

"$root/scripts/build-guest" >/dev/null
for name in smi fault trace; do
	! wants $name || $name &
done
wait
{
	! wants smi || compare_smi
	! wants fault || print_fault
	! wants trace || print_trace
} 2>&1 | tee "$out/tools.txt"

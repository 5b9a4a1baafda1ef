#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# On a machine with a GPU: VMs with programs of the GPU are moved from one QEMU of this machine to another, and cloned.
#
#	moved.sh [OUT [CASE...]]	PYTHON names the interpreter, GPU the backend (cuda), LIMIT seconds for one step (300)
#
#	programs	programs that hold memory and compute are moved five times
#	every		every program of the tests runs in a VM, and once more while the VM is moved; ONLY is a
#			pattern of names, EVERY how many seconds for all (3600)
#	memory		a program that sleeps is moved, with 1, 8 and 40 GiB on the GPU, as far as GIB (40) allows
#	written		the same for one that writes to all of it without a pause, with 1 and 8 GiB
#	full		another process has all memory of the GPU: what a VM begins ends with an error, and it cannot be moved, but goes on
#	training	PyTorch's training of 100 steps is moved five times: the bits of its losses beside native's
#	clones		a language model in PyTorch is loaded and has spoken; its VM is saved, and started ten times from there:
#			the time from a VM's start to its first word, beside that of the first VM
#	graphs		a language model whose words are made by a CUDA graph speaks, moves and speaks, five times
#
# OUT (default: the current folder) gets moved.out, the outputs, and moved.csv: rows in the form of
# perf/results/GPU/all.csv, which perf/figures draws. A VM that has mounted a folder of the host cannot be moved, so what the
# program loads is copied into the VM. Needs python3, and for the last three cases PyTorch. Uses the bundle if there is one.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
machine=$here/../../vm/machine
root=$here/../../..
[ ! -e "$root/.bundle/BUNDLE" ] || root=$root/.bundle
root=$(cd "$root" && pwd)
out=$(cd "${1:-.}" && pwd) || exit 2
[ $# -eq 0 ] || shift
cases=${*:-programs every memory written full training clones graphs}
python=$("${PYTHON:-python3}" -c 'import sys; print(sys.executable)') || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{share,pyc,files,archive,stage/qcu,vms}
export PYTHONPYCACHEPREFIX=$work/pyc

# take FILE: with all links that lead to it, at the same path, and those by which it is loaded.
take() {
	local f=$1 to dir
	while :; do
		dir=$work/files$(realpath "${f%/*}")
		mkdir -p "$dir"
		cp -a "$f" "$dir/" 2>/dev/null
		[ -L "$f" ] || break
		to=$(readlink "$f")
		[[ $to == /* ]] || to=${f%/*}/$to
		f=$to
	done
	[[ $f != *.so* ]] || find "${f%/*}" -maxdepth 1 -type l -lname "${f##*/}" -exec cp -a -t "$dir/" {} + 2>/dev/null
}

# What is missing shows here at once, and in a VM after minutes.
try_files() {
	cp -r "$work/stage/qcu" "$work/files/"
	unshare -m bash -c 'mount --bind /dev "$1/dev" && mount --bind /proc "$1/proc" && LD_LIBRARY_PATH=/qcu/lib \
		LD_PRELOAD=/qcu/lib/libcudart.so.13 LD_AUDIT=/qcu/lib/libqcuda-loader.so exec chroot "$@"' - \
		"$work/files" "$python" "$work/share/moved_steps.py" imports 2>&1 | grep -v '^ERROR: ld.so' | tail -n 5
}

# What the program has loaded natively, but not NVIDIA's libraries that we have our own of.
take_files() {
	local f dir
	ln -s usr/bin usr/lib usr/lib64 "$work/files/"
	mkdir -p "$work"/files/{usr/bin,usr/lib,usr/lib64,dev,proc,sys,tmp,etc}
	cp /etc/passwd "$work/files/etc/"
	while read -r f; do
		[ -e "$root/build/qcu-library/${f##*/}" ] || take "$f"
	done < <(sort -u "$work"/files.*)
	take "$python"
	take /usr/lib64/ld-linux-x86-64.so.2
	dir=$("$python" -c 'import sys; print(sys.prefix)')
	[ ! -e "$dir/pyvenv.cfg" ] || take "$dir/pyvenv.cfg"
	dir=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["stdlib"])')
	(cd / && tar -c --exclude test --exclude __pycache__ "${dir#/}") | tar -x -C "$work/files"
	tar -c -C "$work/files" -f "$work/archive/files" .
	try_files
	echo "$(du -sm "$work/archive" | cut -f1) MB are copied into a VM"
}

run_natively() {
	local way
	cp "$here"/*.py "$here"/../*.py "$work/share/"
	for way in "train 100" serve graph; do
		# shellcheck disable=SC2086
		echo go | FILES=$work/files.${way%% *} "$python" "$work/share/moved_steps.py" $way \
			>"$out/moved.native.${way%% *}" 2>"$out/moved.native.err" || tail -n 5 "$out/moved.native.err"
	done
}

# every_program: the names, without those that share memory with other processes, use several GPUs or take all memory.
every_program() {
	local f
	for f in "$root"/build/tests/guest/*; do
		[ ! -x "$f" ] || [[ ! ${f##*/} =~ ${ONLY:-.} ]] || basename "$f"
	done | grep -v -x 'nccl_.*\|ipc_.*\|sleeper\|crash\|out_of_memory\|bandwidth\|graph_memory_full\|shared_pool\|fork_child\|driver_ipc\|driver_virtual_share\|driver_fork'
}

# Each into a file: its exit code, and what it prints.
run_every_natively() {
	local name
	mkdir -p "$out/natively"
	for name in $(every_program); do
		{
			local args=() code=0
			[[ $name != first_call && $name != illegal_access ]] || args=(0)
			LD_LIBRARY_PATH=$libraries timeout 60 "$root/build/tests/guest/$name" "${args[@]}" >"$work/$name.native" 2>/dev/null </dev/null || code=$?
			{ echo "$code" && cat "$work/$name.native"; } >"$out/natively/$name"
		} &
		while [ "$(jobs -rp | wc -l)" -ge 8 ]; do
			sleep 0.05
		done
	done
	wait
}

make_initrd() {
	# shellcheck disable=SC2034 # again_and_again_initrd uses them
	local tmp=$work B=$root/build
	mkdir "$work/stage/qcu/lib"
	cp "$B"/qcu-library/lib*.so* "$work/stage/qcu/lib/"
	cp "$machine/obey" "$work/stage/qcu/"
	# shellcheck source=tests/vm/again.sh
	. "$machine/../again.sh"
	# shellcheck disable=SC2046
	LD_LIBRARY_PATH=$B/qcu-library again_and_again_initrd "$guest" "$work/initrd" "$B"/tests/guest/{sleeper,vector_add,long_work} \
		$([[ ! $cases =~ every ]] || every_program | grep -v -x 'vector_add\|long_work' | sed "s:^:$B/tests/guest/:")
}

PATH=$PATH:$root/bin
guest=$("$root/scripts/build-guest" | tail -n 1)
qemu=$("$root/scripts/build-qemu" | tail -n 1)/bin/qemu-system-x86_64
# NVIDIA's libraries, for programs that run natively and for mirrors.
wheels=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/nvidia
libraries=$wheels/cudnn/lib:$wheels/cu13/lib:${CUDA_HOME:-/usr/local/cuda}/lib64
[ "${GPU:-cuda}" = cuda ] || libraries=$root/build/loopback
{
	make_initrd
	[[ ! $cases =~ every ]] || run_every_natively
	if [[ $cases =~ training|clones|graphs ]]; then
		run_natively
		take_files
	fi
	LIMIT=${LIMIT:-300} PYTHON=$python STEPS=$work/share/moved_steps.py FILES=$work/archive ROWS=$out/moved.csv OUT=$out \
		PYTHONPATH=$machine LD_LIBRARY_PATH=$libraries python3 "$here/moved.py" "$work/vms" "$qemu" "$root/build/qcu-device/qcu-device" "$guest/vmlinux" \
		"$work/initrd" "$out/moved.klog" 10 $cases
	echo "exit code $?"
} 2>&1 | tee "$out/moved.out"

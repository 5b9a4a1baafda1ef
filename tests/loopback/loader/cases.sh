#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Programs with the runtime linked in, over the loopback library: each is run as make has built it in
# loader.mk, or linked here. The module is used as `qcu run` uses it, unless a case says otherwise.
#
#	cases.sh BUILD CASE
set -uo pipefail
export LC_ALL=C
B=$1/tests/loader loopback=$1/loopback check=$1/qcu-library/qcu-check
module=$loopback/libqcuda-loader.so
failed=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# with_module COMMAND...: runs a command with the module.
with_module() {
	LD_AUDIT=$module LD_PRELOAD=$loopback/libcudart.so.13 "$@"
}

# ends CODE TEXT COMMAND...: the command must end with CODE and say TEXT (nothing, if TEXT is empty).
ends() {
	local want=$1 text=$2 rc
	shift 2
	"$@" >"$tmp/said" 2>&1
	rc=$?
	cat "$tmp/said"
	if [ $rc -ne "$want" ]; then
		echo "$*: exit code $rc, not $want"
		failed=1
	elif [ -z "$text" ] && [ -s "$tmp/said" ]; then
		echo "$*: says something"
		failed=1
	elif ! grep -F -e "$text" "$tmp/said" >/dev/null && [ -n "$text" ]; then
		echo "$*: does not say: $text"
		failed=1
	fi
}

# copy NAME: copies a program to $tmp, for changes.
copy() {
	cp "$B/$1" "$tmp/$1"
}

# ---- what must be refused ----

# One bit is another, in the first or the last of the runtime's functions, or in one between.
case_stripped_changed() {
	local first last
	first=$(nm "$B/linked" | grep -E ' [tT] (__)?cuda[A-Z]' | sort | sed -n '1s/.* //p')
	last=$(nm "$B/linked" | grep -E ' [tT] (__)?cuda[A-Z]' | sort | sed -n '$s/.* //p')
	for f in "$first" cudaMalloc "$last"; do
		copy linked
		"$B/edit" "$tmp/linked" spoil "$f" || failed=1
		strip "$tmp/linked"
		ends 127 'symbol table is missing (stripped), and its code is like that of CUDA 13.0' \
			with_module "$tmp/linked"
		[ "$(wc -l <"$tmp/said")" = 1 ] || { echo 'more than one line'; failed=1; }
		ends 1 'link it with -cudart shared' "$check" "$tmp/linked"
		ends 1 refused "$check" --brief "$tmp/linked"
	done
	# A program that is changed by chance elsewhere is not our business.
	copy linked
	"$B/edit" "$tmp/linked" spoil main || failed=1
	strip "$tmp/linked"
	ends 0 'static 13' "$check" --brief "$tmp/linked"
}

# A library that is loaded later may be one that the program can do without.
case_stripped_changed_plugin() {
	copy plugin.so
	"$B/edit" "$tmp/plugin.so" spoil cudaFree || failed=1
	strip "$tmp/plugin.so"
	ends 1 'symbol table is missing (stripped)' with_module "$B/host" "$tmp/plugin.so"
	ends 0 '' with_module "$B/linked"
}

# Wherever the file ends, it is read to there.
case_stripped_cut() {
	local size at
	copy linked
	strip "$tmp/linked"
	size=$(stat -c %s "$tmp/linked")
	for ((at = 64; at < size; at += size / 40)); do
		head -c "$at" "$tmp/linked" >"$tmp/cut"
		"$check" "$tmp/cut" >"$tmp/said" 2>&1
		case $? in
		1 | 2 | 3) ;;
		*)
			echo "cut at $at of $size:"
			cat "$tmp/said"
			failed=1
			;;
		esac
	done
}

case_stripped_shared() {
	copy shared
	strip "$tmp/shared"
	ends 0 '' with_module "$tmp/shared"
	ends 0 'needs libcudart.so.13: qCUDA has it' "$check" "$tmp/shared"
}

case_lying_table() {
	copy linked
	"$B/edit" "$tmp/linked" same cudaMalloc cudaFree || failed=1
	ends 127 'cudaFree and cudaMalloc lie at the same address' with_module "$tmp/linked"
	copy linked
	"$B/edit" "$tmp/linked" empty cudaMalloc || failed=1
	ends 127 'cudaMalloc has the size 0' with_module "$tmp/linked"
	ends 1 'cudaMalloc has the size 0' "$check" "$tmp/linked"
}

case_unknown_version() {
	copy linked
	"$B/edit" "$tmp/linked" rename cudaMemset cudaXemset || failed=1
	ends 127 'of an unknown version' with_module "$tmp/linked"
	ends 1 'of an unknown version' "$check" "$tmp/linked"
}

case_cuda_11() {
	copy linked
	"$B/edit" "$tmp/linked" rename cudaCreateTextureObject cudaBindTexture || failed=1
	ends 127 'of CUDA 11 or earlier' with_module "$tmp/linked"
}

# shared_copy MAJOR NAME: a copy of NVIDIA's shared runtime of this name in $tmp, and a program that needs it.
shared_copy() {
	local major=$1 home=/usr/local/cuda/lib64
	[ "$major" = 13 ] || home=$(scripts/cuda-wheels --print-dir 12.9)/lib
	[ -e "$home/libcudart.so.$major" ] || { echo "there is no shared runtime of CUDA $major"; exit 77; }
	cp "$home/libcudart.so.$major" "$tmp/$2"
	chmod u+w "$tmp/$2"
	python3 tests/loopback/loader/rename.py "$tmp/$2" "$2" || exit 1
	g++ -o "$tmp/user" "$B/linked_$major.o" "$tmp/$2" "-Wl,-rpath,$tmp" -ldl -lpthread || exit 1
	readelf -dW "$tmp/user" | grep -F "[$2]" || exit 1
}

# A copy of which something is wrong. Without a GPU, an intact one of NVIDIA's would return errors.
case_copy_spoiled() {
	local name=libcudart-53d54daa.so.13.0.96 how text size at
	while IFS=: read -r how text; do
		shared_copy 13 $name
		# shellcheck disable=SC2086 # several words
		"$B/edit" "$tmp/$name" $how || failed=1
		ends 127 "$text" with_module "$tmp/user"
		[ "$(wc -l <"$tmp/said")" = 1 ] || { echo 'more than one line'; failed=1; }
		ends 1 "$text" "$check" "$tmp/$name"
		ends 1 refused "$check" --brief "$tmp/$name"
	done <<-EOF
		same cudaMalloc cudaFree:cannot be right: cudaFree and cudaMalloc lie at the same address
		empty cudaMalloc:cannot be right: cudaMalloc has the size 0
		rename cudaMemset cudaXemset:it is of an unknown version, without cudaMemset
		rename cudaCreateTextureObject cudaBindTexture:it is of CUDA 11 or earlier
		headless now:it lacks the names of its functions
	EOF
	shared_copy 13 $name
	size=$(stat -c %s "$tmp/$name")
	for ((at = 64; at < size; at += size / 40)); do
		head -c "$at" "$tmp/$name" >"$tmp/cut"
		"$check" "$tmp/cut" >"$tmp/said" 2>&1
		[ $? -le 3 ] || { echo "cut at $at of $size:" && cat "$tmp/said" && failed=1; }
	done
	ends 127 'NVIDIA'"'"'s shared CUDA runtime cannot be replaced: this system refuses changed code' \
		with_module "$B/no_exec" "$tmp/user"
	ends 127 'use LD_AUDIT and not LD_PRELOAD' env LD_PRELOAD="$module" "$tmp/user"
	# A library that only has such a name is none of the module's business.
	gcc -shared -o "$tmp/$name" "-Wl,-soname,$name" -x c /dev/null
	ends 3 'There is no CUDA in it' "$check" "$tmp/$name"
	ends 0 'no version information available' with_module "$tmp/user"
}

case_other_architecture() {
	copy linked
	"$B/edit" "$tmp/linked" machine 183 || failed=1
	ends 2 'is for another architecture than x86-64' "$check" "$tmp/linked"
}

case_refused_code() {
	ends 127 'this system refuses changed code' with_module "$B/no_exec" "$B/linked"
	# What needs no changed code works there.
	ends 0 '' with_module "$B/no_exec" "$B/shared"
}

case_check_bad_input() {
	printf 'int main(void) { return 0; }' >"$tmp/text"
	: >"$tmp/empty"
	head -c 5000 "$B/linked" >"$tmp/cut"
	ends 2 'usage: qcu-check' "$check"
	ends 2 'usage: qcu-check' "$check" --speed "$B/linked"
	ends 2 'does not exist' "$check" "$tmp/gone"
	ends 2 'is no file' "$check" "$tmp"
	ends 2 'is empty' "$check" "$tmp/empty"
	ends 2 'is no ELF file' "$check" "$tmp/text"
	ends 3 'There is no CUDA in it' "$check" "$tmp/cut"
	ends 3 'There is no CUDA in it' "$check" "$B/host"
	ends 3 none "$check" --brief "$B/host"
}

# No library can be loaded into such a program.
case_wholly_static() {
	ends 1 'it is linked statically as a whole' "$check" "$B/wholly_static"
	ends 1 refused "$check" --brief "$B/wholly_static"
}

# libcudart.so.12 is in a folder that lies beside the module, and cannot be loaded.
case_missing_library() {
	copy linked
	"$B/edit" "$tmp/linked" rename cudaStreamSynchronize cudaThreadSynchronize || failed=1
	cp "$loopback/libqcuda-loader.so" "$tmp/"
	echo nothing >"$tmp/libcudart.so.12"
	ends 127 'the library that takes its place cannot be loaded' \
		env LD_AUDIT="$tmp/libqcuda-loader.so" "$tmp/linked"
}

# ---- what must work ----

case_program() {
	ends 0 '' with_module "$B/linked"
	ends 0 'the runtime of CUDA 13 is linked in' "$check" "$B/linked"
	ends 0 'compute_75 (PTX)' "$check" "$B/linked"
	ends 0 'static 13' "$check" --brief "$B/linked"
}

# Without a symbol table, or without the names that only the file itself uses.
case_stripped() {
	local f how
	for f in linked linked_no_pie linked_one_segment linked_rdc linked_per_thread; do
		for how in --strip-all --discard-all; do
			copy $f
			strip $how "$tmp/$f"
			ends 0 '' with_module "$tmp/$f"
		done
	done
	copy linked
	strip "$tmp/linked"
	ends 0 'without names and with the code of 13.0' "$check" "$tmp/linked"
	ends 0 'static 13' "$check" --brief "$tmp/linked"
	ends 0 'functions of CUDA 13 replaced' env QCU_TRACE=1 LD_AUDIT="$module" "$tmp/linked"
	ends 0 '' env LD_PRELOAD="$module" "$tmp/linked"
	ends 0 '' with_module "$tmp/linked" threads
	ends 0 '' with_module "$tmp/linked" pages
	ends 0 '' with_module "$tmp/linked" no-more-code
	copy wholly_static
	strip "$tmp/wholly_static"
	ends 1 'it is linked statically as a whole' "$check" "$tmp/wholly_static"
}

case_stripped_plugin() {
	copy plugin.so
	copy plugin2.so
	strip "$tmp"/plugin*.so
	ends 0 'done' with_module "$B/host" "$tmp/plugin.so" "$tmp/plugin2.so"
	ends 0 '' with_module "$B/linked" plugins "$tmp/plugin.so" "$tmp/plugin2.so"
	copy needs
	strip "$tmp/needs"
	ends 0 '' with_module "$tmp/needs"
}

# archive VERSION: prints the path of its static runtime. Says if it could not be fetched.
archive() {
	local file
	file=$(scripts/cuda-wheels --print-dir "$1")/lib/libcudart_static.a
	[ -e "$file" ] && echo "$file" && return
	echo "the static runtime of CUDA $1 could not be fetched" >&2
	return 1
}

# links MAJOR NAME FLAGS...: links the program with these flags, strips it, and runs it.
links() {
	local major=$1 name=$2
	shift 2
	g++ -o "$tmp/$name" "$@" -ldl -lrt -lpthread || { echo "$name is not linked"; failed=1; return; }
	strip "$tmp/$name"
	ends 0 "static $major" "$check" --brief "$tmp/$name"
	ends 0 '' with_module "$tmp/$name"
	rm -f "$tmp/$name"
}

# With each linker that is here, in the ways that change code.
case_stripped_ways() {
	local ld flags runtime
	runtime=$(archive 13.0) || exit 77
	for ld in bfd gold lld mold; do
		g++ "-fuse-ld=$ld" -shared -o "$tmp/nothing" -x c /dev/null 2>/dev/null || { echo "there is no ld.$ld"; continue; }
		for flags in -pie -no-pie -Wl,--gc-sections,-O2 -Wl,--no-relax -Wl,-z,norelro \
			$([ $ld = bfd ] && echo -Wl,-z,noseparate-code || echo -Wl,--icf=all); do
			links 13 "$ld$flags" "-fuse-ld=$ld" "$flags" "$B/linked_13.o" "$runtime"
		done
		[ $ld = mold ] && continue # its -r is of another form
		"ld.$ld" -r -o "$tmp/whole.o" "$B/linked_13.o" --whole-archive "$runtime" || failed=1
		links 13 "$ld-relocatable" "-fuse-ld=$ld" "$tmp/whole.o"
	done
}

# Each version that has fingerprints, with the headers of CUDA 13.0 and 12.9: what the program calls is the same.
case_stripped_versions() {
	links_versions 12.9.37 12.9 13.0 13.1 13.2 13.3 13.4.49 13.4 13.5
}

# Debian has these. Other linkers and other flags keep their code, too.
case_stripped_older() {
	local ld
	links_versions 12.4 12.5
	for ld in gold lld mold; do
		g++ "-fuse-ld=$ld" -shared -o "$tmp/nothing" -x c /dev/null 2>/dev/null || { echo "there is no ld.$ld"; continue; }
		links 12 "older-$ld" "-fuse-ld=$ld" -Wl,--gc-sections,-O2 "$B/linked_12.o" "$(archive 12.5)"
	done
}

# The static runtime of CUDA 11.8 has names, too, but not those by which later ones are known.
case_cuda_11_8() {
	local home home12 runtime name
	home=$(scripts/cuda-wheels --print-dir 11.8)
	home12=$(scripts/cuda-wheels --print-dir 12.9)
	runtime=$(archive 11.8) && [ -d "$home12/compiler" ] || exit 77
	gcc -Wall -Wextra -Werror -Wno-deprecated-declarations -D__CUDA_API_VERSION_INTERNAL -isystem "$home/include" -isystem "$home12/compiler" -c \
		tests/loopback/loader/cuda_11.c -o "$tmp/cuda_11.o" || failed=1
	objcopy --redefine-sym main=linked_main "$B/linked_12.o" "$tmp/linked.o"
	for name in -pie -no-pie; do
		links 12 "older$name" "$name" "$tmp/cuda_11.o" "$tmp/linked.o" "$runtime"
	done
	g++ -o "$tmp/user" "$tmp/cuda_11.o" "$tmp/linked.o" "$runtime" -ldl -lrt -lpthread
	ends 0 '' with_module "$tmp/user"
	ends 0 '' with_module "$tmp/user" threads
	ends 0 11080 with_module "$tmp/user" version
	ends 0 'cudaBindTexture is not supported' with_module "$tmp/user" cuda-11
	# Beside one of CUDA 12 and one of 13.
	ends 0 '' with_module "$tmp/user" plugins "$B/plugin_12.so" "$B/plugin.so"
	ends 0 12090 with_module "$tmp/user" versions "$B/plugin_12.so"
	# One byte is another.
	"$B/edit" "$tmp/user" spoil cudaMalloc || failed=1
	ends 1 'like that of CUDA 11.8 but not the same' "$check" "$tmp/user"
	ends 127 'like that of CUDA 11.8 but not the same' with_module "$tmp/user"
}

# Of these versions there is no archive, but a program.
case_stripped_programs() {
	local v program
	for v in 12.1 12.2 12.3 12.8; do
		program=$(scripts/cuda-wheels --print-dir $v)/program
		[ -e "$program" ] || { echo "a program with CUDA $v could not be fetched"; exit 77; }
		cp "$program" "$tmp/program"
		strip "$tmp/program"
		ends 0 "linked 12 $v" "$check" --facts "$tmp/program"
		for f in cudaMalloc cudaGraphLaunch; do
			cp "$program" "$tmp/program"
			"$B/edit" "$tmp/program" spoil $f || failed=1
			strip "$tmp/program"
			ends 0 'and its code is like that of CUDA 12' "$check" --facts "$tmp/program"
			grep -q '^linked' "$tmp/said" && failed=1
		done
	done
}

links_versions() {
	local v runtime major
	for v; do
		runtime=$(archive $v) || exit 77
		major=${v%%.*}
		links "$major" "pie-$v" -pie "$B/linked_$major.o" "$runtime"
		links "$major" "no-pie-$v" -no-pie "$B/linked_$major.o" "$runtime"
	done
}

# Copies with a soname of their own, as tools for Python's wheels make them, or of another file's name only.
case_copy() {
	local major name
	for major in 13 12; do
		for name in libcudart-53d54daa.so.$major.0.96 libcudart.3eda8113.so.$major; do
			shared_copy $major $name
			ends 0 "runtime of CUDA $major; qCUDA replaces its" "$check" "$tmp/$name"
			ends 2 "needs $name: NVIDIA's own" "$check" "$tmp/user"
			ends 0 '' with_module "$tmp/user"
			ends 0 '' env LD_AUDIT="$module" "$tmp/user"
			ends 0 '' with_module "$tmp/user" threads
			ends 0 '' with_module "$tmp/user" no-more-code
			ends 0 $((major == 13 ? 13000 : 12090)) with_module "$tmp/user" version
			# Beside a runtime that is linked in.
			ends 0 '' with_module "$tmp/user" plugins "$B/plugin.so"
		done
	done
	# By its path, as Python's packages load it, and with the soname that our own library has.
	cp "$(readlink -f /usr/local/cuda/lib64/libcudart.so.13)" "$tmp/libcudart.3eda8113.so.13"
	g++ -o "$tmp/user" "$B/linked_13.o" -L"$loopback" -l:libcudart.so.13 -ldl -lpthread
	ends 0 '' env LD_AUDIT="$module" LD_PRELOAD="$tmp/libcudart.3eda8113.so.13" "$tmp/user"
	# Nothing takes its place.
	mkdir "$tmp/alone"
	cp "$module" "$tmp/alone/"
	ends 127 "cannot be loaded: there is only NVIDIA's" env LD_AUDIT="$tmp/alone/libqcuda-loader.so" \
		LD_PRELOAD="$tmp/libcudart.3eda8113.so.13" "$tmp/user"
}

# The module finds the library beside itself.
case_audit_alone() {
	ends 0 '' env LD_AUDIT="$module" "$B/linked"
}

case_preloaded() {
	ends 0 '' env LD_PRELOAD="$module" "$B/linked"
	ends 0 '' env LD_PRELOAD="$module" LD_AUDIT="$module" "$B/linked"
	# A library's own code has run before.
	ends 127 'use LD_AUDIT and not LD_PRELOAD' env LD_PRELOAD="$module" "$B/needs"
}

case_by_the_dynamic_linker() {
	ends 0 '' with_module /lib64/ld-linux-x86-64.so.2 "$B/linked"
}

case_no_pie() {
	ends 0 '' with_module "$B/linked_no_pie"
}

# Code and constants in one segment, as older linkers made it.
case_one_segment() {
	ends 0 '' with_module "$B/linked_one_segment"
}

case_rdc() {
	ends 0 '' with_module "$B/linked_rdc"
}

case_per_thread() {
	ends 0 '' with_module "$B/linked_per_thread"
}

case_threads() {
	ends 0 '' with_module "$B/linked" threads
}

case_plugins() {
	# From a program with a runtime of its own, and from one without.
	ends 0 '' with_module "$B/linked" plugins "$B/plugin.so" "$B/plugin2.so"
	ends 0 'done' with_module "$B/host" "$B/plugin.so" "$B/plugin2.so"
	ends 0 'done' env LD_AUDIT="$module" "$B/host" "$B/plugin.so"
}

case_needed_library() {
	ends 0 '' with_module "$B/needs"
	ends 0 '' env LD_AUDIT="$module" "$B/needs"
}

# Two versions in one process: each is served by its own library.
case_two_versions() {
	copy plugin.so
	"$B/edit" "$tmp/plugin.so" rename cudaStreamSynchronize cudaThreadSynchronize || failed=1
	mkdir "$tmp/lib"
	cp "$loopback/libqcuda-loader.so" "$tmp/lib/"
	cp "$B/libcudart.so.12" "$tmp/lib/"
	ends 0 '12345' env LD_AUDIT="$tmp/lib/libqcuda-loader.so" LD_PRELOAD="$loopback/libcudart.so.13" \
		"$B/linked" versions "$tmp/plugin.so"
	grep -qx 13000 "$tmp/said" || failed=1
}

# The static runtime of CUDA 12.9: served by libcudart.so.12, also beside one of CUDA 13 in one process.
case_cuda_12() {
	[ -x "$B/linked_12" ] || { echo 'the static runtime of CUDA 12.9 could not be fetched'; exit 77; }
	ends 0 'static 12' "$check" --brief "$B/linked_12"
	ends 0 '' with_module "$B/linked_12"
	ends 0 12090 with_module "$B/linked_12" version
	ends 0 12090 env LD_AUDIT="$module" "$B/linked_12" version
	ends 0 '' with_module "$B/linked_12" threads
	copy linked_12
	strip "$tmp/linked_12"
	ends 0 12090 with_module "$tmp/linked_12" version
	copy plugin_12.so
	strip "$tmp/plugin_12.so"
	ends 0 12090 with_module "$B/linked" versions "$tmp/plugin_12.so"
	ends 0 12090 with_module "$B/linked" versions "$B/plugin_12.so"
	grep -qx 13000 "$tmp/said" || failed=1
	ends 0 12090 with_module "$B/linked_12" versions "$B/plugin.so"
	grep -qx 13000 "$tmp/said" || failed=1
	ends 0 '' with_module "$B/linked" plugins "$B/plugin_12.so" "$B/plugin.so"
}

# That of 13.5, which has functions that this library does not have.
case_cuda_13_5() {
	[ -x "$B/linked_13_5" ] || { echo 'the static runtime of CUDA 13.5 could not be fetched'; exit 77; }
	ends 0 'static 13' "$check" --brief "$B/linked_13_5"
	ends 0 '' with_module "$B/linked_13_5"
	ends 0 '' env LD_PRELOAD="$module" "$B/linked_13_5"
	ends 0 '' with_module "$B/linked_13_5" threads
	ends 0 '' with_module "$B/linked_13_5" pages
	copy linked_13_5
	strip "$tmp/linked_13_5"
	ends 0 '' with_module "$tmp/linked_13_5" threads
}

case_pages() {
	ends 0 '' with_module "$B/linked" pages
	ends 0 '' with_module "$B/linked_no_pie" pages
}

# The program forbids itself to load code, and calls CUDA for the first time after that.
case_seccomp() {
	ends 0 '' with_module "$B/linked" no-more-code
	ends 0 '' env LD_AUDIT="$module" "$B/linked" no-more-code
}

# A program that compares its code with its file sees that it was changed, and not when the module is off.
case_own_code() {
	ends 3 '' with_module "$B/linked" own-code
	ends 0 '' env QCU_LOADER=0 LD_AUDIT="$module" "$B/linked" own-code
	ends 0 '' env QCU_LOADER=0 LD_PRELOAD="$module" "$B/linked" own-code
	ends 0 '' with_module "$B/shared" own-code
}

case_without_cuda() {
	ends 0 'done' with_module "$B/host"
	ends 0 '' with_module /bin/true
}

# A wheel's own library is passed over, whether it is found by RPATH or named by its path. Without the module, and
# where we have no library of that name, the wheel gets its own.
case_wheel() {
	ends 0 "$B/wheels/libcublas.so.13" "$B/wheel"
	ends 0 "$loopback/libcublas.so.13" with_module "$B/wheel"
	ends 0 "$loopback/libcublas.so.13" with_module "$B/wheel" "$PWD/$B/wheels/libcublas.so.13"
	ends 0 "$B/wheels/libcublas.so.13" env QCU_LOADER=0 LD_AUDIT="$module" "$B/wheel"
	cp "$B/wheels/libcublas.so.13" "$tmp/libcublas.so.99"
	ends 0 "$tmp/libcublas.so.99" with_module "$B/wheel" "$tmp/libcublas.so.99"
	# The names of CUDA 12.
	while read -r name function; do
		ends 0 "$loopback/$name" with_module "$B/wheel" "$tmp/$name" "$function"
		ends 0 "needs $name: qCUDA has it" "$check" "$loopback/../tests/loopback/names_12"
	done <<-EOF
		libcublas.so.12 cublasGetVersion_v2
		libcublasLt.so.12 cublasLtGetVersion
		libcufft.so.11 cufftGetVersion
		libcusolver.so.11 cusolverGetVersion
	EOF
	# The parts of cuDNN, of which some have no function.
	if [ -e "$loopback/libcudnn.so.9" ]; then
		ends 0 "$loopback/libcudnn_ops.so.9" with_module "$B/wheel" "$tmp/libcudnn_ops.so.9" cudnnCreateTensorDescriptor
		ends 1 'no library' with_module "$B/wheel" "$tmp/libcudnn_none.so.9" cudnnCreateTensorDescriptor
		for name in adv cnn engines_{precompiled,runtime_compiled,tensor_ir} ext graph heuristic ops; do
			ends 0 "needs libcudnn_$name.so.9: qCUDA has it" "$check" "$loopback/../tests/loopback/cudnn_rnn"
		done
	fi
	case $(LD_AUDIT=$module LD_PRELOAD=$loopback/libcudart.so.13 "$B/wheel") in
	*/wheels/*) echo 'it got its own' && failed=1 ;;
	esac
}

"case_$2"
exit $failed

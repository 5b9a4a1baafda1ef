#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs the fuzzers one after another, FUZZ_SECONDS each. `make fuzz` builds them and calls this script.
# BUILD/kept keeps the inputs that a fuzzer finds useful, so that the next run continues from there.
# An input that makes a fuzzer fail is saved there too. Reduce it, and add it to tests/fuzz/corpus
# together with the fix.
#
#	tests/fuzz/run.sh BUILD SEEDS RECORD PROGRAMS [TARGET]...
set -euo pipefail
build=$1 seeds=$2 record=$3 programs=$4
shift 4
seconds=${FUZZ_SECONDS:-60}
corpus=$(dirname "$0")/corpus
[ $# -gt 0 ] || set -- ptx fatbin image mirror elf broker letters state ahead saved handover dump

# The seeds: the fat binaries and PTX that nvcc has put into our test programs.
rm -rf "$build/seeds"
mkdir -p "$build/seeds/fatbin" "$build/seeds/ptx" "$build/seeds/image" "$build/seeds/mirror" "$build/seeds/elf" \
	"$build/seeds/broker" "$build/seeds/letters" "$build/seeds/state" "$build/seeds/ahead" "$build/seeds/saved" "$build/seeds/handover" "$build/seeds/dump"
for program in "$programs"/* "$programs"-O0/*; do
	if ! [ -f "$program" ] || ! [ -x "$program" ]; then
		continue
	fi
	name=${program##*/}
	[ "$program" = "$programs/$name" ] || name+=-O0
	objcopy -O binary --only-section=.nv_fatbin "$program" \
		"$build/seeds/fatbin/$name.bin" 2>/dev/null || true
done
"$seeds" "$build/seeds/ptx" "$build"/seeds/fatbin/*.bin
mv "$build"/seeds/ptx/*.elf "$build/seeds/image"
cp "$build"/seeds/fatbin/*.bin "$build"/seeds/ptx/*.ptx "$build/seeds/image"
cp "$build"/seeds/ptx/*.ptx "$build/seeds/fatbin"
# And the messages of libraries, as the shims make them.
"$record" "$build/seeds/mirror"
# And sessions of test programs that were saved. Long ones are mostly contents.
for name in array_copies async_copies driver_green driver_link driver_modules driver_streams graph_conditional \
	host_functions host_register long_work memory_pools \
	mipmap printf_formats queries stream_attributes surface_write symbols texture_2d; do
	LD_LIBRARY_PATH=$programs/../../loopback QCU_LOOPBACK_SAVE=7:5 QCU_LOOPBACK_ARCHIVES=$build/seeds/saved \
		"$programs/$name" >/dev/null 2>&1 </dev/null || true
done
find "$build/seeds/saved" -type f -size +63k -delete

# Without the threshold ASan maps its marks of large memory anew for each input, which costs more than some inputs do.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:clear_shadow_mmap_threshold=1073741824}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
failed=0
for target; do
	work=$build/kept/$target log=$build/kept/$target.log
	mkdir -p "$work"
	echo "fuzz_$target: $seconds s, log in $log"
	case $target in
	ptx) max=12800 ;;
	fatbin | image) max=24576 ;;
	elf) max=49152 ;;
	mirror) max=16384 ;;
	saved) max=65536 ;;
	broker | letters | handover) max=1024 ;;
	state | ahead | dump) max=4096 ;;
	esac
	if "$build/tests/fuzz/fuzz_$target" -close_fd_mask=2 -max_len="$max" -timeout=60 \
		-rss_limit_mb=4096 -max_total_time="$seconds" -print_final_stats=1 \
		-artifact_prefix="$work-" "$work" "$corpus/$target" "$build/seeds/$target" \
		>"$log" 2>&1; then
		grep -E '^Done|^stat::(number|average)' "$log"
	else
		failed=1
		echo "fuzz_$target has found something:"
		grep -m 12 -E 'ERROR|runtime error|SUMMARY|^ +#[0-9]+ .* in |Test unit written' "$log" || tail -n 12 "$log"
	fi
done
exit $failed

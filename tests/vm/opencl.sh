#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# OpenCL programs on PoCL: first without a VM, then in one, where what they print must be the same. The second time
# PoCL finds the kernels in its cache, because compilers take long where the processor is emulated. One program is
# compiled in the guest, too, at night three.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

groups=(bad_calls buffers events kernels programs query queues svm)

# The packages and PoCL are there only when somebody has asked for them; a test does.
prepare() {
	scripts/opencl/build-pocl --print-dir && [ -e /usr/include/CL/cl.h ] && return
	scripts/deps --no-cuda --opencl || return
	timeout -k 10 800 scripts/opencl/build-pocl && return
	[ $? -lt 124 ] || echo 'building PoCL takes longer than 800 s here'
	return 1
}

if ! { prepare && make -s "B=$B" opencl-tests; } >"$tmp/why" 2>&1; then
	for g in "${groups[@]}"; do
		echo "@skip $g $(tail -n 1 "$tmp/why")"
	done
	exit 0
fi
mkdir "$tmp/share/cache"
export POCL_CACHE_DIR=$tmp/share/cache
# It compiles a kernel, to say how large groups should be.
expect_host host-clinfo 0 'Portable Computing Language' tests/opencl/run.sh "$B" "$(type -P clinfo)"
for g in "${groups[@]}"; do
	expect_host "host-$g" 0 '^ok ' tests/opencl/run.sh "$B" "$g"
	cp "$tmp/out" "$tmp/share/$g"
done
# Here, too, the program ends with the fault. Then the guest need not compile its kernels.
for f in write_nowhere without_end; do
	QCU_SOFT_TIMEOUT=2 expect_host "host-$f" 134 '^ before: ok' tests/opencl/run.sh "$B" faults $f
done

with "${groups[@]/#/$B/tests/opencl/}" "$B/tests/opencl/faults" "$(type -P clinfo)"
QCU_SOFT_TIMEOUT=2 boot --gpu soft --opencl "${with[@]}" <<END
share=$tmp/share groups='${groups[*]}'
$(cat tests/opencl/inside.sh)
END

# Programs that are found in the guest: with another root, only --opencl says that PoCL is needed.
expect_host root 0 'Portable Computing Language' "$qcu" run --gpu soft --root / --opencl --share "$tmp/share" \
	--klog "$klogs/$script" sh -c "clinfo -l && '$PWD/$B/tests/opencl/buffers'"
if cmp -s <(grep -v -e '^qcu: ' -e Platform -e Device "$tmp/out") "$tmp/share/buffers"; then
	echo '@ok root-same 0.0'
else
	echo '@FAIL root-same it prints something else than without a VM'
fi
scan_klog

expect_host malloc-memory 0 '^ in chunks' "$qcu" run --gpu soft "$B/tests/opencl/chunks"

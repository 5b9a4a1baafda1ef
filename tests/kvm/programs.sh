#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A few programs in one guest, and what calls cost in exits. No kick reaches QEMU (ioeventfd): QEMU has nothing to do
# with a call. The guest's memory lies in huge pages: its first use does not cost an exit for each 4 KiB. QCU_SHORT: fewer
# programs.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"

# until_made FILE: waits until the guest has made FILE.
until_made() {
	until [ -e "$tmp/share/$1" ]; do sleep 0.2; done
}

# Only what is between the marks is traced, not the boot.
(until_made count && tests/kvm/tracing on && : >"$tmp/share/traced" && until_made counted && tests/kvm/tracing off) &
tracer=$!
with "$guest"/{vector_add,big_copies} "$B/perf/"{latency,paging}
[ -n "${QCU_SHORT:-}" ] || with+=(--with "$guest/matmul" --with "$guest/stream_pipeline")
boot --cpus 1 --mem 1G "${with[@]}" "$tmp/share" <<'END' | tee "$tmp/out"
: >"$1/count"
until [ -e "$1/traced" ]; do usleep 50000; done
begin first-use
paging --pause 0 --marks 1 --warmup 0 --reps 1 --min 128M --max 128M --only first/malloc >$log 2>&1
rc=$?
cat $log
[ $rc -eq 0 ] && pass || fail "exit code $rc"
begin exits
read -r spin </sys/module/qcuda/parameters/spin_us
echo 0 >/sys/module/qcuda/parameters/spin_us
latency --quick --pause 0 --max 1M --marks 16 --reps 3 --only launch --only cudaMemcpy/h2d --only Synchronize >$log 2>&1
rc=$?
cat $log
[ $rc -eq 0 ] && pass || fail "exit code $rc"
: >"$1/counted"
echo "$spin" >/sys/module/qcuda/parameters/spin_us
for p in vector_add matmul stream_pipeline big_copies; do
	[ ! -e /qcu/bin/$p ] || expect $p 0 $p
done
END
kill $tracer 2>/dev/null
grep '^marks ' "$tmp/out" >"$tmp/rows"
tests/kvm/exits "$tmp/rows" /sys/kernel/debug/tracing/trace

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# No call costs more instructions of the guest than perf/results/cost.txt says. After a change that is worth it,
# `perf/cost/run perf/results/cost.txt` writes it anew.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

# The comparison itself.
line='latency/x/0 100 1000 1.00 0.00 0.00'
echo "$line" >"$tmp/old"
expect_host no-growth 0 '1 calls compared' perf/cost/table.py --check "$tmp/old" "$tmp/old"
echo "${line/1000/1056}" >"$tmp/new"
expect_host growth 1 'latency/x/0: 1100 instructions before, 1156 now' perf/cost/table.py --check "$tmp/old" "$tmp/new"
expect_host growth-by-chance 0 '1 calls compared' perf/cost/table.py --check "$tmp/old" "$tmp/new" "$tmp/old"
line='latency/x/0 100 1000 1.00 1.00 1.00'
echo "$line" >"$tmp/old"
echo "${line/1000/9000}" >"$tmp/new"
expect_host waits-longer 0 '1 calls compared' perf/cost/table.py --check "$tmp/old" "$tmp/new"
echo "${line/100/140}" >"$tmp/new"
expect_host waits-and-computes 1 'latency/x/0: 100 instructions before, 140 now' perf/cost/table.py --check "$tmp/old" "$tmp/new"
: >"$tmp/new"
expect_host missing 1 'latency/x/0: is missing' perf/cost/table.py --check "$tmp/old" "$tmp/new"
expect_host nothing 1 '0 calls compared' perf/cost/table.py --check "$tmp/new" "$tmp/old"

[ -n "$(scripts/build-qemu --print-dir)" ] || {
	echo '@skip counted only the QEMU of scripts/build-qemu can count instructions'
	exit
}
host_limit=600
expect_host counted 0 'calls compared' perf/cost/run --check

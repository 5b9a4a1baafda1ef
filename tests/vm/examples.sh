#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs the three programs of docs/vm/examples.md in a VM, as a visitor does. Each says how fast it was the
# first time and again, and why. A size that is none is refused before CUDA is used, so that needs no VM.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

cp "$guest"/{pageable_upload,stream_pipeline,mapped_file} "$tmp/share/"
cd "$tmp/share" || exit 2
qcu=$root/$qcu host_limit=120
for p in pageable_upload stream_pipeline mapped_file; do
	expect_host "$p-bad-size" 1 'usage: .*MiB' env LD_LIBRARY_PATH="$root/$B/loopback" "./$p" none
	expect_host "$p" 0 '^again +[0-9]+\.[0-9]+ GB/s  [a-z]' "$qcu" run --gpu soft "./$p" 8
	grep -E '^first time +[0-9]+\.[0-9]+ GB/s  [a-z]' "$tmp/out" >/dev/null || echo "@FAIL $p-first-time it does not say"
	grep '^verified: ' "$tmp/out" >/dev/null || echo "@FAIL $p-verified it has verified nothing"
done

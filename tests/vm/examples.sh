#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs the three programs of docs/vm/examples.md in a VM. Each says how fast it was the
# first time and again, and why. A size that is none is refused before CUDA is used, so that needs no VM.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/lib.sh"

with "$guest"/{pageable_upload,stream_pipeline,mapped_file}
for p in pageable_upload stream_pipeline mapped_file; do
	expect_host "$p-bad-size" 1 'usage: .*MiB' env LD_LIBRARY_PATH="$root/$B/loopback" "$guest/$p" none
done

# In the shared folder, where mapped_file makes the file that it maps.
boot "${with[@]}" "$tmp/share" <<'END'
cd "$1" || exit
for p in pageable_upload stream_pipeline mapped_file; do
	begin $p
	$p 8 >>$log 2>&1
	rc=$?
	if [ $rc -ne 0 ]; then
		fail "exit code $rc"
	elif ! grep -q -E '^first time +[0-9]+\.[0-9]+ GB/s  [a-z]' $log || ! grep -q -E '^again +[0-9]+\.[0-9]+ GB/s  [a-z]' $log; then
		fail 'it does not say how fast it was'
	elif ! grep -q '^verified: ' $log; then
		fail 'it has verified nothing'
	else
		pass
	fi
done
END

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Tests malloc in a guest, with the driver: memory in chunks uses only the pages that are touched, it is
# copied without pinning pages, and all of it is freed again.
#
# QCU_TEST_LARGE=1 adds a guest of 6 GiB, with a process that holds 4 GiB of them and starts other processes.
# shellcheck source=tests/vm/lib.sh
. "$(dirname "$0")/../lib.sh"

large=${QCU_TEST_LARGE:-}
unset QCU_TEST_LARGE
with "$guest"/{malloc_sparse,malloc_pageable,vector_add} \
	"$B"/tests/loopback/{malloc_{api,cuda,fork,registered,spawn,threads},bad_memory,window_taken}
boot --mem 2G "${with[@]}" <<'END'
expect sparse 0 malloc_sparse
for chunk in 64K 1M 16M; do
	export QCU_CHUNK=$chunk
	expect chunks-$chunk/sparse 0 malloc_sparse
	expect chunks-$chunk/pageable 0 malloc_pageable 200
done
unset QCU_CHUNK

# Chunks are never pinned. Other memory is.
begin moves-as-chunks
stat window_bytes
before=$value
stat pages_bytes
pinned=$value
malloc_pageable 500 >>$log 2>&1
rc=$?
stat window_bytes
moved=$((value - before))
stat pages_bytes
pinned=$((value - pinned))
[ $rc -eq 0 ] && [ $moved -ge $((500 * 262144)) ] && [ $pinned -lt 262144 ] && pass ||
	fail "exit code $rc, $moved bytes in chunks, $pinned in pages"

begin switched-off
stat window_bytes
before=$value
QCU_MALLOC=0 malloc_pageable 100 >>$log 2>&1
rc=$?
stat window_bytes
[ $rc -eq 0 ] && [ "$value" = "$before" ] && pass ||
	fail "exit code $rc, $((value - before)) bytes in chunks"

expect api 0 malloc_api
# Without a VM these have more rounds.
expect cuda 0 malloc_cuda 1000
expect fork 0 malloc_fork 25
expect pageable 0 malloc_pageable 1000
expect threads 0 malloc_threads 2000
expect spawn 0 malloc_spawn
expect registered 0 malloc_registered
expect bad-memory 0 bad_memory
expect window-taken 0 window_taken
begin leaves-other-programs-alone
stat commands
before=$value
LD_PRELOAD=libcudart.so.13 dd if=/dev/zero of=/dev/null bs=64M count=1 >>$log 2>&1
rc=$?
stat commands
[ $rc -eq 0 ] && [ "$value" = "$before" ] && pass || fail "exit code $rc, commands were sent"

# at_work: it has memory in chunks.
at_work() {
	stat chunk_pages
	[ "$value" -gt 0 ]
}
for round in 1 2 3; do
	begin killed-$round
	malloc_threads 1000000000 >>$log 2>&1 &
	pid=$!
	until_true at_work
	usleep $((round * 100000))
	kill -9 $pid
	wait $pid
	[ $? -eq 137 ] && pass || fail 'it has ended by itself'
done
expect last 0 vector_add
END

[ -n "$large" ] || exit 0
export QCU_TEST_LARGE=1
boot --mem 6G "${with[@]}" <<'END'
expect spawn-of-4-gib 0 malloc_spawn
expect last 0 vector_add
END

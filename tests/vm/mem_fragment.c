// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fragments the guest's memory: takes nearly all of it in single pages, gives every other one back,
 * then takes the large blocks that are left, as chunks, until a chunk is made of small ones only.
 * Prints "ready" and keeps all that until the end of standard input.
 */
#define _GNU_SOURCE
#include "mem.h"

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24 /* Linux 5.18 */
#endif

#define LEAVE_KIB (96 << 10) /* less would bring the OOM killer */
#define CHUNK	  (4 * MIB)
#define PAGE	  ((size_t)4096)

static size_t free_kib(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	char line[128];
	size_t kib = 0;

	SAME(!f, 0);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "MemFree: %zu", &kib) == 1)
			break;
	fclose(f);
	return kib;
}

/* Bytes in blocks of more than 64 KiB in the chunks of this process. */
static size_t large_blocks(void)
{
	FILE *f = fopen("/sys/kernel/debug/qcuda/groups", "r");
	char line[512], blocks[256], *at;
	size_t bytes = 0;
	int pid;

	SAME(!f, 0);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%d %*x %*x %*u %255s", &pid, blocks) != 2 || pid != getpid())
			continue;
		for (at = strtok(blocks, ","); at; at = strtok(NULL, ",")) {
			size_t kib, n;

			if (sscanf(at, "%zuK:%zu", &kib, &n) == 2 && kib > 64)
				bytes += kib * n << 10;
		}
	}
	fclose(f);
	return bytes;
}

static void take_large_blocks(void)
{
	size_t had, has = 0, i = 0;
	char *p = raw_chunks(raw_session(), 0, 1024 * MIB);

	do {
		had = has;
		p[i++ * CHUNK] = 1;
		has = large_blocks();
	} while (has != had);
	printf("%zu MiB of large blocks taken\n", has / MIB);
}

int main(void)
{
	FILE *f = fopen("/proc/sys/vm/compact_unevictable_allowed", "w");
	size_t len, i;
	char *p, c;

	/* Locked pages are not moved together again. */
	SAME(!f, 0);
	fputs("0", f);
	fclose(f);
	SAME(free_kib() > 2 * LEAVE_KIB, 1);
	len = (free_kib() - LEAVE_KIB) << 10;
	p = mem_anonymous(len);
	SAME(mlock(p, len), 0);
	/*
	 * Without munlock, which would make a mapping of its own of each page. The last eighth in
	 * eight pages at a time: fork needs two together, and without them wakes the OOM killer.
	 */
	for (i = 0; i < len / 8 * 7; i += 2 * PAGE)
		SAME(madvise(p + i, PAGE, MADV_DONTNEED_LOCKED), 0);
	for (i = (i + 16 * PAGE - 1) / (16 * PAGE) * 16 * PAGE; i + 8 * PAGE <= len; i += 16 * PAGE)
		SAME(madvise(p + i, 8 * PAGE, MADV_DONTNEED_LOCKED), 0);
	take_large_blocks();
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fragments the guest's memory: takes nearly all of it in single pages, gives every other one back,
 * then takes the large blocks that are left, as chunks, until there is none, and none that the
 * kernel can make by moving pages.
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

static void set_vm(const char *path, const char *value)
{
	FILE *f = fopen(path, "w");

	SAME(!f, 0);
	fputs(value, f);
	SAME(fclose(f), 0);
}

/*
 * An allocation moves pages together only now and then, since it gives up for a while once it has
 * failed. So all that can be moved is moved first, the files of the initramfs for one: what a test
 * is given later shall not depend on when it asks.
 */
static void take_large_blocks(void)
{
	size_t before, had, has = 0, i = 0;
	char *p = raw_chunks(raw_session(), 0, 1024 * MIB);

	do {
		before = has;
		set_vm("/proc/sys/vm/compact_memory", "1");
		do {
			had = has;
			p[i++ * CHUNK] = 1;
			has = large_blocks();
		} while (has != had);
	} while (has != before);
	printf("%zu MiB of large blocks taken\n", has / MIB);
}

int main(void)
{
	size_t len, i;
	char *p, c;

	/* Locked pages are not moved together again. */
	set_vm("/proc/sys/vm/compact_unevictable_allowed", "0");
	/* Nor shall the kernel keep more back the more fragmented it is: that brings the OOM
	 * killer, too. */
	set_vm("/proc/sys/vm/watermark_boost_factor", "0");
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

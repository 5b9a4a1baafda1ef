// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fragments the guest's memory. The program takes nearly all memory in single pages and frees every
 * other page. Then it takes the large blocks that are left, as chunks, until there are none, and
 * until the kernel can make none by moving pages. Then it prints "ready" and keeps the memory until
 * the end of standard input.
 */
#define _GNU_SOURCE
#include "mem.h"

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24 /* Linux 5.18 */
#endif

/* The smallest chunk that is a large block, so that chunks take little else. */
#define CHUNK ((size_t)128 << 10)
#define PAGE  ((size_t)4096)

/* Returns the KiB that /proc/meminfo gives for this name. */
static size_t meminfo(const char *name)
{
	FILE *f = fopen("/proc/meminfo", "r");
	size_t kib = 0, len = strlen(name);
	char line[128];

	SAME(!f, 0);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, len) && sscanf(line + len, ": %zu", &kib) == 1)
			break;
	fclose(f);
	return kib;
}

/* Returns the bytes in blocks of more than 64 KiB in the chunks of this process. */
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
 * An allocation compacts memory only now and then: after a failure, the kernel gives up for a
 * while. So this function compacts first all that the kernel can move, for example the files of the
 * initramfs. What a later test gets must not depend on when it asks.
 */
static void take_large_blocks(void)
{
	size_t before, had, has = 0, i = 0;
	int fd = raw_session();
	char *p;

	mem_chunk_size(fd, CHUNK);
	p = raw_chunks(fd, 0, 1024 * MIB);
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
	/* With less than a tenth left, the OOM killer comes. */
	size_t leave = meminfo("MemTotal") / 10, len, i;
	char *p, c;

	/* The kernel must not compact locked pages. */
	set_vm("/proc/sys/vm/compact_unevictable_allowed", "0");
	/*
	 * The kernel must not keep more memory back when memory is more fragmented: that, too,
	 * brings the OOM killer.
	 */
	set_vm("/proc/sys/vm/watermark_boost_factor", "0");
	SAME(meminfo("MemFree") > 2 * leave, 1);
	len = (meminfo("MemFree") - leave) << 10;
	p = mem_anonymous(len);
	SAME(mlock(p, len), 0);
	/*
	 * munlock would make a separate mapping of each page, so MADV_DONTNEED_LOCKED is used. The
	 * second half is freed in runs of 16 pages: fork needs two pages together, eight with
	 * KASAN, and wakes the OOM killer without them. The tests' chunks take such runs first.
	 */
	for (i = 0; i < len / 2; i += 2 * PAGE)
		SAME(madvise(p + i, PAGE, MADV_DONTNEED_LOCKED), 0);
	for (i = (i + 32 * PAGE - 1) / (32 * PAGE) * 32 * PAGE; i + 16 * PAGE <= len;
	     i += 32 * PAGE)
		SAME(madvise(p + i, 16 * PAGE, MADV_DONTNEED_LOCKED), 0);
	take_large_blocks();
	puts("ready");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For the tests of transfers: kinds of memory, patterns, and the counters of the mirror. */
#ifndef MEM_H
#define MEM_H

#include <sys/syscall.h>
#include <time.h>

#include "raw.h"

#define RW (PROT_READ | PROT_WRITE)

static inline struct qcu_stats_desc mem_stats(int fd)
{
	struct qcu_stats_desc st;
	struct qCUcmd cmd = raw_cmd(QCU_OP_STATS);

	cmd.stats.buf.addr = (uintptr_t)&st;
	cmd.stats.buf.len = sizeof(st);
	SAME(raw_submit(fd, &cmd), 0);
	return st;
}

static inline void mem_chunk_size(int fd, unsigned int bytes)
{
	struct qcu_chunk_size size = {.bytes = bytes};

	SAME(ioctl(fd, QCU_IOC_CHUNK, &size), 0);
}

/* Fills memory with words that depend on their place and on the seed. */
static inline void mem_fill(void *at, size_t len, uint64_t seed)
{
	uint64_t word = (seed + 1) * 0x9e3779b97f4a7c15ull;
	char *p = at;

	for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
		word += 0x0101010101010107ull;
		memcpy(p, &word, sizeof(word));
	}
	word += seed;
	memcpy(p, &word, len);
}

/* Returns the index of the first byte that differs, or len. */
static inline size_t mem_differs(const void *a, const void *b, size_t len)
{
	const char *x = a, *y = b;
	size_t i = 0;

	if (!memcmp(a, b, len))
		return len;
	while (i < len && x[i] == y[i])
		i++;
	return i;
}

static inline char *mem_anonymous(size_t len)
{
	char *p = mmap(NULL, len, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	SAME(p == MAP_FAILED, 0);
	madvise(p, len, MADV_NOHUGEPAGE);
	return p;
}

/*
 * Touches the pages in an order that jumps, so that pages side by side here are not side by side in
 * guest memory.
 */
static inline char *mem_scattered(size_t len)
{
	size_t pages = len / 4096, page = 0, i;
	char *p = mem_anonymous(len);

	for (i = 0; i < pages; i++) {
		p[page * 4096] = 1;
		page = (page + 977) % pages;
		while (p[page * 4096] && i + 1 < pages)
			page = (page + 1) % pages;
	}
	return p;
}

/* Aligned to 2 MiB and in huge pages, if the kernel has some left. */
static inline char *mem_huge(size_t len)
{
	char *p = mmap(NULL, len + 2 * MIB, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	SAME(p == MAP_FAILED, 0);
	p = (char *)(((uintptr_t)p + 2 * MIB - 1) & ~(2 * MIB - 1));
	madvise(p, len, MADV_HUGEPAGE);
	memset(p, 1, len);
	return p;
}

static inline char *mem_file(size_t len)
{
	int fd = (int)syscall(SYS_memfd_create, "mem", 0u);
	char *p;

	SAME(ftruncate(fd, (off_t)len), 0);
	p = mmap(NULL, len, RW, MAP_SHARED, fd, 0);
	SAME(p == MAP_FAILED, 0);
	close(fd);
	return p;
}

/* Makes one copy. Returns 0 or an error. */
static inline int mem_copy(int fd, int op, uint64_t device, void *host, uint64_t len,
			   uint32_t stream, uint32_t flags)
{
	struct qCUcmd cmd = raw_cmd(op);

	cmd.copy_h2d.buf.addr = (uintptr_t)host;
	cmd.copy_h2d.buf.len = len;
	cmd.copy_h2d.dst = device; /* has the same offset as copy_d2h.src */
	cmd.copy_h2d.stream = stream;
	cmd.copy_h2d.flags = flags;
	return raw_submit(fd, &cmd);
}

static inline double mem_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif

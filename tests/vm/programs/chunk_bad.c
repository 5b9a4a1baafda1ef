// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Uses mappings of /dev/qcuda in the right and in the wrong way: what the driver refuses, what a
 * chunk costs, that a chunk is zero, and that DMA finds the chunk while a CPU still touches it for
 * the first time.
 */
#define _GNU_SOURCE /* mremap */
#include <pthread.h>

#include "raw.h"

#define RW (PROT_READ | PROT_WRITE)

static void *map_at(int fd, size_t at, size_t len, int prot, int flags, off_t offset)
{
	return mmap(WINDOW + at, len, prot, flags | MAP_FIXED_NOREPLACE, fd, offset);
}

static void refused_mappings(void)
{
	int fd = raw_session();
	char *p;

	FAILS((long)map_at(fd, 0, MIB, RW, MAP_PRIVATE, 0), EINVAL);
	FAILS((long)map_at(fd, 0, MIB, RW, MAP_SHARED, 4096), EINVAL);
	FAILS((long)map_at(fd, 0, MIB, RW, MAP_SHARED, 1ll << 40), EINVAL);
	FAILS((long)map_at(fd, 0, MIB, RW | PROT_EXEC, MAP_SHARED, 0), EPERM);
	FAILS((long)map_at(fd, 0, 0, RW, MAP_SHARED, 0), EINVAL);

	p = raw_chunks(fd, 0, 8 * MIB);
	p[0] = p[5 * MIB] = 1;
	FAILS(mprotect(p, 8 * MIB, RW | PROT_EXEC), EACCES);
	/* No part of a mapping can be unmapped, moved or changed. */
	FAILS(munmap(p, 4096), EINVAL);
	FAILS(munmap(p + 4 * MIB, 4 * MIB), EINVAL);
	FAILS(munmap(p + MIB, MIB), EINVAL);
	FAILS(mprotect(p, MIB, PROT_READ), EINVAL);
	FAILS((long)mremap(p, 8 * MIB, 4 * MIB, 0), EINVAL);
	SAME(mremap(p, 8 * MIB, 16 * MIB, MREMAP_MAYMOVE) == MAP_FAILED, 1);
	SAME(mremap(p, 8 * MIB, 8 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, WINDOW + 64 * MIB) ==
		     MAP_FAILED,
	     1);
	SAME(p[0] + p[5 * MIB], 2);
	SAME(munmap(p, 8 * MIB), 0);
	raw_works(fd);
}

static void odd_lengths(void)
{
	static const size_t lens[] = {1, 4095, 4097, 65537, 3 * MIB + 5000, 9 * MIB + 1};
	int fd = raw_session();
	uint64_t dev = raw_malloc(fd, 16 * MIB);
	char got[64];
	size_t i;

	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		size_t len = lens[i], n = len < 64 ? len : 64;
		char *p = raw_chunks(fd, i * 16 * MIB, len);

		p[len - 1] = 42;
		p[0] += 1;
		SAME(raw_upload(fd, dev, p, len), 0);
		memset(got, 0, sizeof(got));
		SAME(raw_download(fd, got, dev + len - n, n), 0);
		SAME(got[n - 1], len == 1 ? 43 : 42);
		/* One byte beyond the mapping's last page. */
		SAME(raw_upload(fd, dev, p, ((len + 4095) & ~4095ull) + 1), -EFAULT);
		SAME(munmap(p, len), 0);
		SAME(raw_upload(fd, dev, p, 1), -EFAULT);
	}
	raw_works(fd);
}

/* An address outside the window is ordinary memory. Commands still find its pages. */
static void elsewhere(void)
{
	int fd = raw_session();
	uint64_t dev = raw_malloc(fd, MIB);
	char *p = mmap(NULL, MIB, RW, MAP_SHARED, fd, 0), got[16];

	SAME(p != MAP_FAILED, 1);
	memset(p, 0x61, MIB);
	SAME(raw_upload(fd, dev, p, MIB), 0);
	SAME(raw_download(fd, got, dev + MIB - 16, 16), 0);
	SAME(got[15], 0x61);
	SAME(munmap(p, MIB), 0);
}

static void huge_and_barely_touched(void)
{
	const size_t len = (size_t)256 << 30;
	struct qcu_chunk_size size = {.bytes = 4 << 20};
	int fd = raw_session();
	char *p;

	SAME(ioctl(fd, QCU_IOC_CHUNK, &size), 0);
	p = raw_chunks(fd, 0, len);
	SAME(raw_stat("chunk_pages"), 0);
	p[0] = 1;
	p[len / 2] = 2;
	p[len - 1] = 3;
	SAME(raw_stat("chunk_pages"), 3 * 1024);
	SAME(p[1] + p[len / 2 + 1] + p[len - 2], 0);
	SAME(munmap(p, len), 0);
	SAME(raw_stat("chunk_pages"), 0);
}

static void zeroed(void)
{
	const size_t len = 24 * MIB + 4096;
	int fd = raw_session(), round;
	size_t i;

	for (round = 0; round < 3; round++) {
		uint64_t *p = (uint64_t *)raw_chunks(fd, 0, len);

		for (i = 0; i < len / 8; i++)
			if (p[i])
				SAME(p[i], 0);
		memset(p, 0xa5, len);
		SAME(munmap(p, len), 0);
	}
}

static void chunk_sizes(void)
{
	static const uint32_t bad[] = {0, 1, 4096, 32768, 65535, 65537, 3 << 20, 128 << 20, ~0u};
	struct qcu_chunk_size size = {0};
	uint32_t bytes;
	size_t i;
	int fd = raw_session();

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		size.bytes = bad[i];
		FAILS(ioctl(fd, QCU_IOC_CHUNK, &size), EINVAL);
	}
	size.bytes = 65536;
	size.rsvd = 1;
	FAILS(ioctl(fd, QCU_IOC_CHUNK, &size), EINVAL);
	FAILS(ioctl(fd, QCU_IOC_CHUNK, NULL), EFAULT);
	close(fd);

	for (bytes = QCU_CHUNK_MIN; bytes <= QCU_CHUNK_MAX; bytes *= 2) {
		char *p;

		fd = raw_session();
		size.bytes = bytes;
		size.rsvd = 0;
		SAME(ioctl(fd, QCU_IOC_CHUNK, &size), 0);
		p = raw_chunks(fd, 0, 2 * (size_t)bytes + 4096);
		p[bytes - 1] = 1;
		SAME(raw_stat("chunk_pages"), bytes / 4096);
		/* The end of the mapping cuts off the last chunk. */
		p[2 * (size_t)bytes] = 1;
		SAME(raw_stat("chunk_pages"), bytes / 4096 + 1);
		size.bytes = 65536;
		FAILS(ioctl(fd, QCU_IOC_CHUNK, &size), EBUSY);
		SAME(munmap(p, 2 * (size_t)bytes + 4096), 0);
		close(fd);
	}
}

/* More memory than the guest has: the command gets an error, and nothing else is harmed. */
static void more_than_there_is(void)
{
	const size_t len = (size_t)64 << 30;
	int fd = raw_session();
	uint64_t dev = raw_malloc(fd, MIB);
	char *p = raw_chunks(fd, 0, len);
	struct qCUcmd cmd = raw_cmd(QCU_OP_HOST_REGISTER);

	cmd.host_register.buf.addr = (uintptr_t)p;
	cmd.host_register.buf.len = len;
	SAME(raw_submit(fd, &cmd), -ENOMEM);
	SAME(raw_upload(fd, dev, p, MIB), 0);
	SAME(munmap(p, len), 0);
	raw_works(fd);
}

#define THREADS	 4
#define PER_TURN (3 * MIB + 4096)

struct turn {
	int fd, nr;
	uint64_t dev;
};

/*
 * Commands use memory that other threads touch for the first time at that moment. All four threads
 * share one mapping. Its chunks straddle the borders of the threads' parts.
 */
static void *touch_and_copy(void *arg)
{
	struct turn *t = arg;
	char *part = WINDOW + t->nr * PER_TURN, *back = WINDOW + 256 * MIB + t->nr * PER_TURN;
	size_t i;

	/* Never touched: the device gets zeros. */
	SAME(raw_upload(t->fd, t->dev, part, PER_TURN), 0);
	for (i = 0; i < PER_TURN; i += 512)
		part[i] = (char)(t->nr * 16 + i / 512);
	/* Download into untouched memory while the other threads touch theirs. */
	SAME(raw_download(t->fd, back, t->dev, PER_TURN), 0);
	for (i = 0; i < PER_TURN; i++)
		if (back[i])
			SAME(back[i], 0);
	SAME(raw_upload(t->fd, t->dev, part, PER_TURN), 0);
	SAME(raw_download(t->fd, back, t->dev, PER_TURN), 0);
	SAME(memcmp(part, back, PER_TURN), 0);
	for (i = 0; i < PER_TURN; i += 512)
		SAME((unsigned char)back[i], (unsigned char)(t->nr * 16 + i / 512));
	return NULL;
}

static void faults_and_dma(void)
{
	pthread_t thread[THREADS];
	struct turn turn[THREADS];
	int fd = raw_session(), round, i;

	for (i = 0; i < THREADS; i++)
		turn[i] = (struct turn){.fd = fd, .nr = i, .dev = raw_malloc(fd, PER_TURN)};
	for (round = 0; round < 5; round++) {
		char *p = raw_chunks(fd, 0, THREADS * PER_TURN);
		char *q = raw_chunks(fd, 256 * MIB, THREADS * PER_TURN);

		for (i = 0; i < THREADS; i++)
			SAME(pthread_create(&thread[i], NULL, touch_and_copy, &turn[i]), 0);
		for (i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		SAME(munmap(p, THREADS * PER_TURN), 0);
		SAME(munmap(q, THREADS * PER_TURN), 0);
	}
}

static void *copy_until_refused(void *arg)
{
	struct turn *t = arg;
	int status;

	while (!(status = raw_upload(t->fd, t->dev, WINDOW, MIB)))
		;
	SAME(status, -EFAULT);
	return NULL;
}

/*
 * munmap while commands use the memory. Each command ends well or is refused, and the pages come
 * back.
 */
static void unmap_under_dma(void)
{
	pthread_t thread[THREADS];
	struct turn turn[THREADS];
	int fd = raw_session(), round, i;

	for (i = 0; i < THREADS; i++)
		turn[i] = (struct turn){.fd = fd, .nr = i, .dev = raw_malloc(fd, MIB)};
	for (round = 0; round < 10; round++) {
		char *p = raw_chunks(fd, 0, 4 * MIB);

		for (i = 0; i < THREADS; i++)
			SAME(pthread_create(&thread[i], NULL, copy_until_refused, &turn[i]), 0);
		usleep(20000);
		SAME(munmap(p, 4 * MIB), 0);
		for (i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
	}
	raw_works(fd);
}

/* Chunks are ordinary pages: other parts of the kernel can read and write them. */
static void ordinary_pages(void)
{
	int fd = raw_session(), file, ends[2];
	char *p = raw_chunks(fd, 0, 4 * MIB), got[4096];

	file = open("/tmp/ordinary_pages", O_RDWR | O_CREAT | O_TRUNC, 0600);
	SAME(file >= 0, 1);
	memset(p, 0x2a, MIB);
	SAME(write(file, p, MIB), MIB);
	SAME(pread(file, p + MIB, MIB, 0), MIB);
	SAME(memcmp(p, p + MIB, MIB), 0);
	SAME(pipe(ends), 0);
	SAME(write(ends[1], p, 4096), 4096);
	SAME(read(ends[0], got, 4096), 4096);
	SAME(memcmp(p, got, 4096), 0);
	SAME(madvise(p, 4 * MIB, MADV_DONTNEED), 0);
	SAME(p[0], 0x2a);
	close(file);
	SAME(unlink("/tmp/ordinary_pages"), 0);
}

/*
 * The program closes the file while the mirror releases earlier mappings, and while the driver
 * frees the first of them. If the driver uses memory that it has freed, only a kernel with KASAN
 * reports it.
 */
static void closed_amid_unmaps(void)
{
	const size_t len = 8 * MIB;
	int fd, round, i;

	for (round = 0; round < 16; round++) {
		uint64_t dev;

		fd = raw_session();
		dev = raw_malloc(fd, len);
		for (i = 0; i < 12; i++)
			SAME(raw_upload(fd, dev, raw_chunks(fd, i * len, len), len), 0);
		for (i = 0; i < 12; i++)
			SAME(munmap(WINDOW + i * len, len), 0);
		usleep(round * 1000);
		close(fd);
	}
	raw_works(raw_session());
}

int main(int argc, char **argv)
{
	static const struct raw_case cases[] = {
		{"refused_mappings", refused_mappings},
		{"odd_lengths", odd_lengths},
		{"elsewhere", elsewhere},
		{"huge_and_barely_touched", huge_and_barely_touched},
		{"zeroed", zeroed},
		{"chunk_sizes", chunk_sizes},
		{"more_than_there_is", more_than_there_is},
		{"faults_and_dma", faults_and_dma},
		{"unmap_under_dma", unmap_under_dma},
		{"ordinary_pages", ordinary_pages},
		{"closed_amid_unmaps", closed_amid_unmaps},
		{NULL, NULL},
	};

	return raw_main(argc, argv, cases);
}

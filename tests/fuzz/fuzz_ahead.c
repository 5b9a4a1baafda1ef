// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzes memory that comes ahead: the stream, which QEMU reads from the network or from a file, and
 * the file in which a mirror looks it up. What is accepted lies within the file, has its sum, and
 * is found.
 */
#define _GNU_SOURCE /* memfd_create */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qcu-device/memory/ahead.h"
#include "tests/fuzz/fuzz.h"

#define SESSIONS 4
#define MOST	 65536
#define BYTES	 64u /* of a piece that the mutator makes */

/* summed: who has written the file has looked at the sums. What is wrong is an abort. */
static void check_file(int fd, bool summed)
{
	static uint8_t bytes[AHEAD_BYTES];
	const struct ahead_listed *p;
	struct ahead_list l;
	struct stat st;
	size_t i;

	if (!ahead_list(&l, fd)) {
		if (summed || l.listed || l.count)
			abort();
		return;
	}
	if (fstat(fd, &st))
		abort();
	for (i = 0; i < l.count; i++) {
		p = &l.listed[i];
		if (!p->len || p->len > AHEAD_BYTES || p->at % AHEAD_PAGE ||
		    p->at / AHEAD_SECTION != (p->at + p->len - 1) / AHEAD_SECTION ||
		    p->at > (uint64_t)st.st_size || p->len > (uint64_t)st.st_size - p->at)
			abort();
		if (summed && (pread(fd, bytes, p->len, (off_t)p->at) != (ssize_t)p->len ||
			       ahead_sum(bytes, p->len) != p->sum))
			abort();
		if ((i && p[-1].addr >= p->addr) || ahead_find(&l, p->addr, p->len, p->sum) != p)
			abort();
	}
	ahead_unlist(&l);
}

static void read_stream(const uint8_t *data, size_t size)
{
	size_t at, part = size ? data[size - 1] + 1u : 1;
	struct ahead_reader r;
	unsigned int i;

	if (!ahead_begin(&r, SESSIONS, MOST))
		return;
	for (at = 0; at < size; at += part)
		ahead_read(&r, data + at, size - at < part ? size - at : part);
	if (r.bad != (r.why[0] != '\0') || r.bytes > MOST)
		abort();
	for (i = 0; i <= QCU_MAX_SESSIONS; i++) {
		if (r.file[i].fd < 0)
			continue;
		if (!i || i > SESSIONS)
			abort();
		check_file(r.file[i].fd, true);
	}
	ahead_end(&r);
}

/* The first bytes are those of the first page, and so on: else an input has nothing but zeros. */
static void read_file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("ahead", MFD_CLOEXEC);
	size_t at, n;

	if (fd < 0)
		return;
	for (at = 0; at < size; at += n) {
		n = size - at < sizeof(struct ahead_piece) ? size - at : sizeof(struct ahead_piece);
		if (pwrite(fd, data + at, n,
			   (off_t)(at / sizeof(struct ahead_piece) * AHEAD_PAGE)) != (ssize_t)n)
			abort();
	}
	if (size % 2 && ftruncate(fd, (off_t)(size * AHEAD_PAGE / 16)))
		abort();
	check_file(fd, false);
	close(fd);
}

FUZZ_ENTRY int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size && data[0] == 0xff)
		read_file(data + 1, size - 1);
	else
		read_stream(data, size);
	return 0;
}

/* Good pieces, of which one number may be changed. */
FUZZ_ENTRY size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	uint64_t random = seed * 0x9e3779b97f4a7c15ull + 1;
	unsigned int count = 1 + fuzz_random(&random, 6), i;
	struct ahead_piece p;
	size_t len = 0;
	uint32_t at;

	if (!fuzz_random(&random, 3) || max < count * (sizeof(p) + BYTES))
		return LLVMFuzzerMutate(data, size, max);
	for (i = 0; i < count; i++) {
		p = (struct ahead_piece){.addr = fuzz_random(&random, 8) * 4096ull,
					 .session = 1 + fuzz_random(&random, SESSIONS),
					 .len = 1 + fuzz_random(&random, BYTES)};
		memset(data + len + sizeof(p), (int)fuzz_random(&random, 256), p.len);
		p.sum = ahead_sum(data + len + sizeof(p), p.len);
		memcpy(data + len, &p, sizeof(p));
		len += sizeof(p) + p.len;
	}
	at = fuzz_random(&random, (uint32_t)len - 3);
	if (!fuzz_random(&random, 3))
		memcpy(data + at, &(uint32_t){fuzz_random(&random, 0x10000)}, 4);
	return fuzz_random(&random, 8) ? len : fuzz_random(&random, (uint32_t)len + 1);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzes what makes a session of a saved one (mirror/restore.c): an archive of anything. Sums are
 * not looked at, because a fuzzer does not find them. Of the guest's memory the archive can name
 * only what is there. Of the memory that shall have come ahead, short pieces have come. A session
 * that has been made is saved again, and that must work.
 */
#define _GNU_SOURCE /* memfd_create */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qcu-device/base/limits.h"
#include "qcu-device/memory/guestmem.h"
#include "qcu-device/mirror/going.h"
#include "qcu-device/mirror/save.h"
#include "qcu-device/mirror/archive.h"
#include "tests/fuzz/fuzz.h"

#define RAM_BYTES ((size_t)1 << 20)
/*
 * Room for what kernels print. With the usual 8 MiB, ASan would mark more memory for each input
 * than the session itself takes.
 */
#define PRINTED_BYTES ((size_t)1 << 16)
#define CAME_BYTES    ((size_t)1 << 18) /* longer pieces have not come */
#define ENTRIES	      64

static struct guestmem mem;

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("session", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET))
		abort();
	return fd;
}

static void add_ram(void)
{
	void *ram =
		mmap(NULL, RAM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (ram == MAP_FAILED || guestmem_add(&mem, 0, RAM_BYTES, ram))
		abort();
}

/* Where each entry of the archive begins; returns how many there are. */
static size_t find_entries(const uint8_t *data, size_t size, size_t *at, size_t max)
{
	size_t next = sizeof(struct archive_head), count = 0;
	struct archive_entry e;

	while (count < max && next <= size && size - next >= sizeof(e)) {
		memcpy(&e, data + next, sizeof(e));
		if (e.len > size || e.wanted > size)
			break;
		at[count++] = next;
		next += sizeof(e) + e.len + e.wanted * sizeof(struct be_wanted) + sizeof(uint64_t);
	}
	return count;
}

/* A file with the pieces that the archive says have come ahead. */
static int came_for(const uint8_t *data, size_t size)
{
	static const uint8_t bytes[CAME_BYTES] = {1};
	size_t at[ENTRIES], count = find_entries(data, size, at, ENTRIES), i;
	struct ahead_file came = {.fd = file_of(NULL, 0)};
	struct archive_entry e;
	struct ahead_piece p;
	int fd;

	for (i = 0; i < count; i++) {
		memcpy(&e, data + at[i], sizeof(e));
		if (e.what != ARCHIVE_AHEAD || !e.cmd.buf.len || e.cmd.buf.len > CAME_BYTES)
			continue;
		p = (struct ahead_piece){e.cmd.copy_h2d.dst, e.age, 1, (uint32_t)e.cmd.buf.len};
		if (!ahead_put(&came, &p, bytes))
			abort();
	}
	fd = dup(came.fd);
	ahead_close(&came);
	return fd;
}

FUZZ_ENTRY int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct limits limits = {.session = {[LIMIT_PRINTED] = PRINTED_BYTES}};
	struct mir_config cfg = {
		.ops = &be_soft,
		.limits = &limits,
		.options = {.vram = 16u << 20, .gpus = 1, .threads = 1},
		.mem = &mem,
		.session = 1,
	};
	int from = file_of(data, size), to = file_of(NULL, 0), came = came_for(data, size);
	char why[256] = "";
	struct mirror *m;

	if (!mem.count)
		add_ram();
	if (mir_create(&m, &cfg))
		abort();
	mir_ahead_came(m, came);
	if (!mir_restore_unsummed(m, from, why, sizeof(why))) {
		if (!why[0])
			abort();
	} else if (!mir_save(m, to, 10000, why, sizeof(why)) && !why[0]) {
		abort();
	}
	mir_destroy(m);
	close(from);
	close(to);
	close(came);
	return 0;
}

/* Half of the time the bytes of one entry's record change, its numbers above all. */
FUZZ_ENTRY size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	static const uint64_t numbers[] = {
		0,	    1,		2,	    4095,	4096,	    0xffff,	   0x10000,
		1ull << 20, UINT32_MAX, 1ull << 32, 1ull << 47, UINT64_MAX, 0x300000000000};
	uint64_t random = seed, number;
	size_t at[ENTRIES], count = find_entries(data, size, at, ENTRIES), where;

	if (!count || fuzz_random(&random, 2))
		return LLVMFuzzerMutate(data, size, max);
	number = numbers[fuzz_random(&random, sizeof(numbers) / sizeof(numbers[0]))];
	where = at[fuzz_random(&random, (uint32_t)count)] +
		4 * fuzz_random(&random, sizeof(struct archive_entry) / 4 - 2);
	memcpy(data + where, &number, fuzz_random(&random, 2) ? 4 : 8);
	return size;
}

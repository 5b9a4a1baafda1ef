// SPDX-License-Identifier: GPL-2.0-or-later
/* The pages that sessions name. See named.h. */
#define _GNU_SOURCE /* memfd_create, fallocate */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "qcu-device/memory/named.h"

/* A limit for the size of files would end the process. */
int named_file(unsigned int sessions)
{
	const uint64_t bytes = sessions * NAMED_BYTES;
	struct rlimit most;
	int fd;

	if (getrlimit(RLIMIT_FSIZE, &most) || most.rlim_cur < bytes)
		return -1;
	fd = memfd_create("qcu-named", MFD_CLOEXEC);
	if (fd >= 0 && ftruncate(fd, (off_t)bytes)) {
		close(fd);
		return -1;
	}
	return fd;
}

uint8_t *named_map(int fd, unsigned int session)
{
	uint8_t *bits = mmap(NULL, NAMED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			     fd, (off_t)(session * NAMED_BYTES));

	if (bits == MAP_FAILED)
		return NULL;
	madvise(bits, NAMED_BYTES, MADV_DONTDUMP);
	return bits;
}

void named_unmap(uint8_t *bits)
{
	if (bits)
		munmap(bits, NAMED_BYTES);
}

/* Most pages are named again and again: then nothing is written. */
static void note_bits(uint8_t *byte, uint8_t bits)
{
	if ((__atomic_load_n(byte, __ATOMIC_RELAXED) & bits) != bits)
		__atomic_fetch_or(byte, bits, __ATOMIC_RELAXED);
}

void named_note(uint8_t *bits, uint64_t gpa, uint64_t len)
{
	uint64_t page = gpa / NAMED_PAGE, last = (gpa + len - 1) / NAMED_PAGE;

	for (; page <= last && page < NAMED_END / NAMED_PAGE; page++) {
		if (page % 8 || last - page < 7) {
			note_bits(&bits[page / 8], (uint8_t)(1u << page % 8));
			continue;
		}
		note_bits(&bits[page / 8], 0xff);
		page += 7;
	}
}

void named_forget(int fd, unsigned int session)
{
	if (fd >= 0)
		(void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)(session * NAMED_BYTES), (off_t)NAMED_BYTES);
}

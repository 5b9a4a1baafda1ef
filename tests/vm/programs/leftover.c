// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chunk memory that a program gets must hold nothing of the programs that had the pages before.
 * Each case takes so much of the guest's memory that it must get pages of the case before it:
 *
 *   fill	 maps chunks, writes words that no other program writes, and ends
 *   look	 maps chunks, and reads them: all bytes must be zero
 *   device	 the same, but the device reads the chunks, which no CPU has touched
 *   again	 all in one process: chunks are unmapped, and mapped again
 *
 * leftover CASE MEGABYTES
 */
#include "raw.h"

#define CHUNK (4 * MIB)
#define WORD  0x5ec4e7c0de5ec4e7ull

static void fill(uint64_t *at, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes / sizeof(*at); i++)
		at[i] = WORD + i;
}

static void zero(const uint64_t *at, size_t bytes, const char *who)
{
	size_t i, n = 0;

	for (i = 0; i < bytes / sizeof(*at); i++)
		n += at[i] != 0;
	if (n) {
		printf("%s: %zu of %zu words are not zero\n", who, n, bytes / sizeof(*at));
		exit(1);
	}
}

/* The mirror maps these pages. It releases them when the program unmaps them. */
static void map_in_mirror(int fd, uint64_t device, char *chunks, size_t bytes)
{
	size_t at;

	for (at = 0; at < bytes; at += CHUNK)
		SAME(raw_upload(fd, device, chunks + at, CHUNK), 0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 10) * MIB / CHUNK * CHUNK : 0, at;
	int fd = raw_session();
	uint64_t device = raw_malloc(fd, CHUNK);
	uint64_t *seen = malloc(CHUNK);
	char *chunks;

	if (!bytes || !seen) {
		fputs("usage: leftover fill|look|device|again MEGABYTES\n", stderr);
		return 2;
	}
	chunks = raw_chunks(fd, 0, bytes);
	if (!strcmp(what, "device")) {
		for (at = 0; at < bytes; at += CHUNK) {
			SAME(raw_upload(fd, device, chunks + at, CHUNK), 0);
			SAME(raw_download(fd, seen, device, CHUNK), 0);
			zero(seen, CHUNK, "the device");
		}
		return 0;
	}
	if (!strcmp(what, "look")) {
		zero((uint64_t *)chunks, bytes, "the program");
		return 0;
	}
	fill((uint64_t *)chunks, bytes);
	map_in_mirror(fd, device, chunks, bytes);
	if (strcmp(what, "again"))
		return 0;
	SAME(munmap(chunks, bytes), 0);
	/* The pages are free as soon as the mirror has released them. */
	while (raw_stat("chunk_pages"))
		usleep(1000);
	chunks = raw_chunks(fd, bytes, bytes);
	zero((uint64_t *)chunks, bytes, "the same program");
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzes the check of a device's saved state, which QEMU reads from a file or from the network.
 * Each refusal has a reason. In what is accepted, all is as a device would write it, and within the
 * limits.
 */
#define _GNU_SOURCE /* memfd_create */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qcu-device/moving/state.h"
#include "tests/fuzz/fuzz.h"

#define SESSIONS 16
#define MOST	 1000

/* What is wrong with an accepted state is an abort. */
static void check_accepted(const uint8_t *data, size_t size)
{
	struct state_entry s;
	struct state head, want;
	size_t at = sizeof(head);
	uint64_t memory = 0;
	unsigned int last = 0, i;

	memcpy(&head, data, sizeof(head));
	state_make(&want, SESSIONS, head.open ? 1 : head.gpus, head.open);
	if (memcmp(&head, &want, sizeof(head)) != 0)
		abort();
	for (i = 0; i < head.open; i++) {
		memcpy(&s, data + at, sizeof(s));
		at += sizeof(s) + s.bytes;
		memory += s.memory[0];
		if (at > size || s.queue <= last || s.queue > SESSIONS || s.name[15] ||
		    memory > MOST)
			abort();
		last = s.queue;
	}
	if (at + sizeof(uint64_t) != size)
		abort();
}

FUZZ_ENTRY int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct state_check c = {
		.sessions = SESSIONS, .gpus = 1, .session_memory = MOST, .vm_memory = MOST};
	int fd = memfd_create("state", MFD_CLOEXEC);
	char why[64] = ""; /* shorter than some reasons */
	bool fits;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	fits = state_file_fits(fd, size, &c, why, sizeof(why));
	close(fd);
	if (fits == (*why != '\0') || strnlen(why, sizeof(why)) == sizeof(why))
		abort();
	if (fits)
		check_accepted(data, size);
	return 0;
}

/* All of the mutator's archives are shorter than a piece. */
static void sum_up(uint8_t *data, size_t len)
{
	struct state_entry s;
	size_t at = sizeof(struct state);
	uint64_t sum = state_sum(0, data, at);

	while (at + sizeof(s) <= len) {
		memcpy(&s, data + at, sizeof(s));
		sum = state_sum(sum, data + at, sizeof(s));
		at += sizeof(s);
		if (s.bytes > len - at)
			break;
		if (s.bytes)
			sum = state_sum(sum, data + at, s.bytes);
		at += s.bytes;
	}
	memcpy(data + len, &sum, sizeof(sum));
}

/* A good state with one number changed. Else nearly all inputs end at the first comparison. */
FUZZ_ENTRY size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	uint64_t random = seed * 0x9e3779b97f4a7c15ull + 1;
	unsigned int open = fuzz_random(&random, 4), i;
	size_t len = 0;
	uint32_t at;

	if (!fuzz_random(&random, 4) ||
	    max < sizeof(struct state) + open * (sizeof(struct state_entry) + STATE_ARCHIVE_MIN) +
			    sizeof(uint64_t))
		return LLVMFuzzerMutate(data, size, max);
	state_make((struct state *)data, SESSIONS, 1, open);
	len = sizeof(struct state);
	for (i = 0; i < open; i++) {
		struct state_entry s = {
			.queue = 3 * i + 1, .pid = i, .name = "x", .waits = STATE_NONE};

		s.dead = fuzz_random(&random, 2);
		s.bytes = s.dead ? 0 : STATE_ARCHIVE_MIN;
		s.memory[0] = fuzz_random(&random, MOST);
		memcpy(data + len, &s, sizeof(s));
		len += sizeof(s) + s.bytes;
	}
	at = fuzz_random(&random, (uint32_t)len / 4) * 4;
	if (fuzz_random(&random, 8))
		memcpy(data + at, &(uint32_t){fuzz_random(&random, 0x10000)}, 4);
	sum_up(data, len);
	len += sizeof(uint64_t);
	return fuzz_random(&random, 8) ? len : fuzz_random(&random, (uint32_t)len + 1);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzes the check of a device's saved state, which QEMU reads from a file or from the network.
 * Each refusal has a reason. In what is accepted, all is as a device would write it, and within the
 * limits.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "qcu-device/moving/state.h"
#include "tests/fuzz/fuzz.h"

#define SESSIONS 16
#define MOST	 1000
#define PIECES	 3   /* of an archive that the mutator makes */
#define AHEAD	 40u /* bytes that went ahead */
#define LONGEST                                                      \
	(4 * sizeof(uint64_t) + sizeof(struct ahead_piece) + AHEAD + \
	 PIECES * (sizeof(uint64_t) + STATE_ARCHIVE_MIN))

static struct state_reader reader;
static struct ahead_reader came;

/* What is wrong with an accepted state is an abort. */
static void check_accepted(size_t size)
{
	struct state want;
	size_t bytes = sizeof(want) + sizeof(uint64_t);
	uint64_t memory = 0;
	unsigned int last = 0, i;
	struct stat st;

	state_make(&want, SESSIONS, reader.head.open ? 1 : reader.head.gpus, reader.head.open);
	if (memcmp(&reader.head, &want, sizeof(want)) != 0 || reader.count != want.open)
		abort();
	for (i = 0; i < reader.count; i++) {
		const struct state_session *s = &reader.session[i];

		bytes += sizeof(s->entry);
		memory += s->entry.memory[0];
		if (s->entry.queue <= last || s->entry.queue > SESSIONS || s->entry.name[15] ||
		    memory > MOST)
			abort();
		last = s->entry.queue;
		if (s->entry.dead)
			continue;
		if (fstat(s->file, &st) || (uint64_t)st.st_size < STATE_ARCHIVE_MIN)
			abort();
		bytes += (size_t)st.st_size + sizeof(uint64_t);
	}
	if (bytes > size)
		abort();
}

FUZZ_ENTRY int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct state_check c = {
		.sessions = SESSIONS, .gpus = 1, .session_memory = MOST, .vm_memory = MOST};
	size_t at, part = size ? data[size - 1] + 1u : 1;
	char why[64] = ""; /* shorter than some reasons */
	bool fits;

	if (!ahead_begin(&came, SESSIONS, MOST * AHEAD_PAGE))
		return 0;
	state_begin(&reader, &c, size % 16 ? &came : NULL);
	for (at = 0; at < size; at += part)
		state_read(&reader, data + at, size - at < part ? size - at : part);
	fits = state_is_whole(&reader, why, sizeof(why));
	if (fits == (*why != '\0') || strnlen(why, sizeof(why)) == sizeof(why))
		abort();
	if (fits)
		check_accepted(size);
	state_end(&reader);
	ahead_end(&came);
	return 0;
}

/* Goes on with the sum. Returns how many bytes of an archive there are, with its lengths. */
static size_t sum_archive(const uint8_t *data, size_t len, uint64_t *sum)
{
	size_t at = 0;
	uint64_t piece;

	while (at + sizeof(piece) <= len) {
		memcpy(&piece, data + at, sizeof(piece));
		*sum = state_sum(*sum, &piece, sizeof(piece));
		at += sizeof(piece);
		if (!piece || piece > len - at)
			break;
		at += piece;
	}
	return at;
}

static void sum_up(uint8_t *data, size_t len)
{
	struct state_entry s;
	size_t at = sizeof(struct state);
	uint64_t sum = state_sum(0, data, at);

	while (at + sizeof(s) <= len) {
		memcpy(&s, data + at, sizeof(s));
		sum = state_sum(sum, data + at, sizeof(s));
		at += sizeof(s);
		if (!s.dead)
			at += sum_archive(data + at, len - at, &sum);
		if (!s.dead)
			at += sum_archive(data + at, len - at, &sum);
	}
	memcpy(data + len, &sum, sizeof(sum));
}

/* One piece that went ahead, in two pieces of the state, or nothing. Returns its bytes. */
static size_t add_ahead(uint8_t *data, uint32_t queue, uint32_t len)
{
	struct ahead_piece p = {.addr = 4096, .session = queue, .len = len};
	uint64_t length = sizeof(p);
	size_t at = 0;

	if (len) {
		memset(data + 2 * sizeof(length) + sizeof(p), 7, len);
		p.sum = ahead_sum(data + 2 * sizeof(length) + sizeof(p), len);
		memcpy(data, &length, sizeof(length));
		memcpy(data + sizeof(length), &p, sizeof(p));
		length = len;
		memcpy(data + sizeof(length) + sizeof(p), &length, sizeof(length));
		at = 2 * sizeof(length) + sizeof(p) + len;
	}
	memset(data + at, 0, sizeof(length));
	return at + sizeof(length);
}

/* Returns its bytes. */
static size_t add_archive(uint8_t *data, unsigned int pieces)
{
	uint64_t length = STATE_ARCHIVE_MIN;
	size_t at = 0;

	for (; pieces; pieces--, at += sizeof(length) + length)
		memcpy(data + at, &length, sizeof(length));
	memset(data + at, 0, sizeof(length));
	return at + sizeof(length);
}

/* A good state with one number changed. Else nearly all inputs end at the first comparison. */
FUZZ_ENTRY size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	uint64_t random = seed * 0x9e3779b97f4a7c15ull + 1;
	unsigned int open = fuzz_random(&random, 4), i;
	size_t len = 0;
	uint32_t at;

	if (!fuzz_random(&random, 4) ||
	    max < sizeof(struct state) + open * (sizeof(struct state_entry) + LONGEST) +
			    sizeof(uint64_t))
		return LLVMFuzzerMutate(data, size, max);
	state_make((struct state *)data, SESSIONS, 1, open);
	len = sizeof(struct state);
	for (i = 0; i < open; i++) {
		struct state_entry s = {
			.queue = 3 * i + 1, .pid = i, .name = "x", .waits = STATE_NONE};

		s.dead = fuzz_random(&random, 2);
		s.memory[0] = fuzz_random(&random, MOST);
		memcpy(data + len, &s, sizeof(s));
		len += sizeof(s);
		if (!s.dead)
			len += add_ahead(data + len, s.queue, fuzz_random(&random, AHEAD + 1));
		if (!s.dead)
			len += add_archive(data + len, 1 + fuzz_random(&random, PIECES));
	}
	at = fuzz_random(&random, (uint32_t)len / 4) * 4;
	if (fuzz_random(&random, 8))
		memcpy(data + at, &(uint32_t){fuzz_random(&random, 0x10000)}, 4);
	sum_up(data, len);
	len += sizeof(uint64_t);
	return fuzz_random(&random, 8) ? len : fuzz_random(&random, (uint32_t)len + 1);
}

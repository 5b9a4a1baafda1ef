// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzes the words between an old and a new qcu-device (moving/handover.c): any bytes, in one or
 * two pieces, with any number of files. Only a word as handover_make() makes it is accepted, each
 * refusal has a reason that can be printed, and no file stays open.
 *
 * An input begins with the files of each piece, where the first piece ends, and what is expected.
 */
#define _GNU_SOURCE /* memfd_create */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qcu-device/moving/handover.h"
#include "tests/fuzz/fuzz.h"
#include "qcu-device/base/send_files.h"

#define SESSIONS 16
#define HEAD	 4u

static int open_files(void)
{
	int n = 0, fd;

	for (fd = 0; fd < 64; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void need(bool good)
{
	if (!good)
		abort();
}

static void check_word(const struct handover_word *w, enum handover_what what)
{
	struct handover_word same;
	char why[64] = ""; /* shorter than some reasons */
	bool fits = handover_fits(w, what, SESSIONS, why, sizeof(why));
	size_t i;

	need(fits == !*why && strnlen(why, sizeof(why)) < sizeof(why));
	for (i = 0; why[i]; i++)
		need(why[i] >= ' ' && why[i] <= '~');
	if (!fits)
		return;
	handover_make(&same, what, SESSIONS);
	same.has_vm = what == HANDOVER_GREETING && w->has_vm;
	same.asked = what == HANDOVER_VM && w->asked;
	same.messages = what == HANDOVER_VM && w->messages <= HANDOVER_MESSAGES ? w->messages : 0;
	memcpy(same.why + 1, w->why + 1, sizeof(same.why) - 1);
	need(!memcmp(w, &same, sizeof(same)));
}

FUZZ_ENTRY int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int before = open_files(), file, ends[2], fds[HANDOVER_FILES], many[SEND_FILES_MAX];
	struct handover_word w;
	size_t cut, i;

	if (size < HEAD)
		return 0;
	need(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	file = memfd_create("file", MFD_CLOEXEC);
	for (i = 0; i < SEND_FILES_MAX; i++)
		many[i] = file;
	cut = data[2] < size - HEAD ? data[2] : size - HEAD;
	if (cut)
		send_files(ends[0], data + HEAD, cut, many, data[0] % (SEND_FILES_MAX + 1), 0);
	if (size - HEAD > cut)
		send_files(ends[0], data + HEAD + cut, size - HEAD - cut, many,
			   data[1] % (SEND_FILES_MAX + 1), 0);
	close(ends[0]);
	if (handover_receive(ends[1], &w, fds)) {
		need(size - HEAD >= sizeof(w) && !memcmp(&w, data + HEAD, sizeof(w)));
		check_word(&w, (enum handover_what)(data[3] % 8));
	}
	for (i = 0; i < HANDOVER_FILES; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	close(ends[1]);
	close(file);
	need(open_files() == before);
	return 0;
}

/* A good word with one number changed. Else nearly all inputs end at the first comparison. */
FUZZ_ENTRY size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	uint64_t random = seed * 0x9e3779b97f4a7c15ull + 1;
	struct handover_word w;
	uint32_t at, what;

	if (max < HEAD + sizeof(w) || !fuzz_random(&random, 4))
		return LLVMFuzzerMutate(data, size, max);
	what = fuzz_random(&random, 8);
	handover_make(&w, (enum handover_what)what, SESSIONS);
	at = fuzz_random(&random, sizeof(w) / 4) * 4;
	if (fuzz_random(&random, 8))
		memcpy((uint8_t *)&w + at, &(uint32_t){fuzz_random(&random, 0x10000)}, 4);
	data[0] = (uint8_t)fuzz_random(&random, 6);
	data[1] = (uint8_t)fuzz_random(&random, 3);
	data[2] = (uint8_t)fuzz_random(&random, 256);
	data[3] = (uint8_t)(fuzz_random(&random, 8) ? what : fuzz_random(&random, 8));
	memcpy(data + HEAD, &w, sizeof(w));
	return HEAD + (fuzz_random(&random, 8) ? sizeof(w) : fuzz_random(&random, sizeof(w) + 1));
}

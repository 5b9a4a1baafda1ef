// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fuzzes what the loader module and qcu-check read: programs and libraries of any origin. What the
 * reader believes must be true: each function that would be replaced has room for a jump in the
 * code. And what links read with the same reader: object files and archives.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/driver_api/link_host.h"
#include "qcu-library/loader/fingerprint.h"
#include "qcu-library/loader/gpus.h"
#include "tests/fuzz/fuzz.h"

static void check_found(const struct qcul_elf *e, const struct qcul_linked *l)
{
	size_t i, offset;

	if (!l->count || (l->major != 12 && l->major != 13))
		abort();
	for (i = 0; i < l->count; i++) {
		const struct qcul_site *s = &l->sites[i];

		if (!qcul_elf_offset(e, s->addr, QCUL_SITE_BYTES, PF_X, &offset) ||
		    offset > e->size || QCUL_SITE_BYTES > e->size - offset || !*s->name)
			abort();
		if (i && (s->addr < l->sites[i - 1].addr ||
			  s->addr - l->sites[i - 1].addr < QCUL_SITE_ALIGN))
			abort();
	}
}

/* A fingerprint that is easily met: 96 bytes that are 0, with a hole in them. */
static void find_zeros(const struct qcul_elf *e, struct qcul_linked *l)
{
	static const unsigned char zeros[96];
	static const uint16_t starts[] = {5, 0}, holes[] = {40 << 1 | 1};
	static const struct qcul_holes runs[] = {{0, 1}};
	static const char *const names[] = {"cudaA", "cudaB"};
	struct qcul_fingerprint print = {.version = "12.0",
					 .major = 12,
					 .size = sizeof(zeros),
					 .sample_at = 16,
					 .sample = qcul_fingerprint_hash(0, zeros, 16),
					 .count_holes = 1,
					 .starts = starts};
	const struct qcul_fingerprints all = {.prints = &print,
					      .count = 1,
					      .names = names,
					      .names_count = 2,
					      .holes = holes,
					      .runs = runs};
	size_t i, offset;

	print.hash = qcul_fingerprint_hash(qcul_fingerprint_hash(0, zeros, 40), zeros,
					   sizeof(zeros) - 47);
	memset(l, 0, sizeof(*l));
	qcul_fingerprint_find(e, &all, l);
	if (l->state != QCUL_LINKED_FOUND)
		return;
	if (l->count != 2 || l->sites[0].addr - l->sites[1].addr != 80)
		abort();
	for (i = 0; i < sizeof(zeros); i++)
		if (!qcul_elf_offset(e, l->sites[1].addr, sizeof(zeros), PF_X, &offset) ||
		    ((i < 40 || i >= 47) && e->data[offset + i]))
			abort();
}

static cudaError_t read_fatbin(void *ctx, const void *fatbin, size_t bytes)
{
	size_t *left = ctx;

	/* No byte is passed on twice, and none from outside of the file. */
	if (bytes > *left || memcmp(fatbin, "\x50\xed\x55\xba", 4) != 0)
		abort();
	*left -= bytes;
	return cudaSuccess;
}

FUZZ_ENTRY int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t left = size;
	const struct qcul_fatbin_sink to = {.add = read_fatbin, .ctx = &left};
	static struct qcul_linked linked;
	char sentence[64];
	struct qcul_gpus gpus;
	struct qcul_elf e;
	const char *text;
	size_t i;

	(void)qcul_host_object(data, size, &to);
	left = size;
	(void)qcul_host_library(data, size, &to);
	if (qcul_elf_open(&e, data, size))
		return 0;
	qcul_linked_find(&e, &linked);
	/* A short buffer: long names must not lead to writes beyond its end. */
	qcul_linked_sentence(&linked, "prog", sentence, sizeof(sentence));
	if (linked.state == QCUL_LINKED_FOUND)
		check_found(&e, &linked);
	else if (!*sentence != (linked.state == QCUL_LINKED_NONE))
		abort();
	find_zeros(&e, &linked);
	qcul_gpus_read(&e, &gpus);
	if (gpus.count > QCUL_GPUS_MAX)
		abort();
	for (i = 0; i < 8 && (text = qcul_elf_dynamic_text(&e, DT_NEEDED, i)); i++)
		if (strlen(text) >= size)
			abort();
	return 0;
}

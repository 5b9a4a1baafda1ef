// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fuzzes what the loader module and qcu-check read: programs and libraries of any origin. What the
 * reader believes must be true: each function that would be replaced has room for a jump in the
 * code.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/loader/gpus.h"
#include "qcu-library/loader/linked.h"
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

FUZZ_ENTRY int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct qcul_linked linked;
	char sentence[64];
	struct qcul_gpus gpus;
	struct qcul_elf e;
	const char *text;
	size_t i;

	if (qcul_elf_open(&e, data, size))
		return 0;
	qcul_linked_find(&e, &linked);
	/* A short buffer: long names must not lead to writes beyond its end. */
	qcul_linked_sentence(&linked, "prog", sentence, sizeof(sentence));
	if (linked.state == QCUL_LINKED_FOUND)
		check_found(&e, &linked);
	else if (!*sentence != (linked.state == QCUL_LINKED_NONE))
		abort();
	qcul_gpus_read(&e, &gpus);
	if (gpus.count > QCUL_GPUS_MAX)
		abort();
	for (i = 0; i < 8 && (text = qcul_elf_dynamic_text(&e, DT_NEEDED, i)); i++)
		if (strlen(text) >= size)
			abort();
	return 0;
}

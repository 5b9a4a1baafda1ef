// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Finds the runtime of a stripped file by its code: see fingerprint.h. One pass over the code looks
 * for a sample of each version, and where there is one, all of the version's code is compared. So
 * what is believed is complete: a file that has a part of it, or a changed byte, is refused.
 *
 * The file may be made to cost time. Each byte of the file is looked at once, even if it lies in
 * several segments, and few samples are followed.
 */
#include <stdio.h>
#include <string.h>

#include "qcu-library/loader/fingerprint.h"

#include "qcu-library/loader/fingerprints.inc"
#include "qcu-library/loader/fingerprints_older.inc"

static const struct qcul_fingerprints known_older = {
	.prints = prints_older,
	.count = sizeof(prints_older) / sizeof(prints_older[0]),
	.names = names_older,
	.names_count = sizeof(names_older) / sizeof(names_older[0]),
	.holes = holes_older,
	.runs = runs_older,
};

const struct qcul_fingerprints qcul_fingerprints_known = {
	.older = &known_older,
	.prints = prints,
	.count = sizeof(prints) / sizeof(prints[0]),
	.names = names,
	.names_count = sizeof(names) / sizeof(names[0]),
	.holes = holes,
	.runs = runs,
};

/* How often code is compared that turns out to be something else. No program has one by chance. */
#define FALSE_SAMPLES_MAX 8u
#define SAMPLE_BYTES	  16u
/* A filter in front of the comparison with each sample: bits by the upper end of the hash. */
#define FILTER_BITS 10

/* One search. */
struct search {
	const struct qcul_elf *e;
	const struct qcul_fingerprints *all, *found_in;
	uint64_t filter[(1u << FILTER_BITS) / 64];
	const struct qcul_fingerprint *found, *changed;
	uint64_t addr; /* of the found code */
	unsigned int false_samples;
	bool twice;
};

static uint64_t hash_word(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15;
	return h ^ h >> 32;
}

uint64_t qcul_fingerprint_hash(uint64_t h, const unsigned char *p, size_t size)
{
	uint64_t word;

	for (; size >= sizeof(word); p += sizeof(word), size -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = hash_word(h, word);
	}
	if (!size)
		return h;
	word = 0;
	memcpy(&word, p, size);
	return hash_word(h, word);
}

/* True if the code of that version, all of which lies in the file, is as in NVIDIA's archive. */
static bool is_unchanged(const struct qcul_fingerprints *all, const struct qcul_fingerprint *f,
			 const unsigned char *code)
{
	uint64_t h = 0;
	size_t at = 0, i, k;

	for (i = 0; i < f->count_holes; i++) {
		const struct qcul_holes *run = &all->runs[f->first_holes + i];

		for (k = 0; k < run->count; k++) {
			unsigned int hole = all->holes[run->first + k];

			h = qcul_fingerprint_hash(h, code + at, hole >> 1);
			at += (hole >> 1) + (hole & 1 ? 7 : 4);
		}
	}
	return qcul_fingerprint_hash(h, code + at, f->size - at) == f->hash;
}

/* A sample of that version lies at an address. Is it in the version's code? */
static void follow_sample(struct search *s, const struct qcul_fingerprints *all,
			  const struct qcul_fingerprint *f, uint64_t addr)
{
	size_t offset;

	if (s->false_samples >= FALSE_SAMPLES_MAX)
		return;
	if (addr >= f->sample_at &&
	    qcul_elf_offset(s->e, addr - f->sample_at, f->size, PF_X, &offset) &&
	    is_unchanged(all, f, s->e->data + offset)) {
		s->twice |= s->found != NULL;
		s->found = f;
		s->found_in = all;
		s->addr = addr - f->sample_at;
		return;
	}
	s->changed = f;
	s->false_samples++;
}

static void follow_samples(struct search *s, uint64_t hash, uint64_t addr)
{
	const struct qcul_fingerprints *all;
	size_t i;

	for (all = s->all; all; all = all->older)
		for (i = 0; i < all->count; i++)
			if (all->prints[i].sample == hash)
				follow_sample(s, all, &all->prints[i], addr);
}

static void search_code(struct search *s, const struct qcul_elf_range *part)
{
	const unsigned char *p = s->e->data + part->offset, *end = p + part->size;
	uint64_t addr, h;
	size_t i;

	if (!qcul_elf_addr(s->e, part->offset, part->size, PF_X, &addr))
		return;
	i = (size_t)(-addr % QCUL_CODE_ALIGN);
	if (i > part->size)
		return;
	for (p += i, addr += i; (size_t)(end - p) >= SAMPLE_BYTES;
	     p += QCUL_CODE_ALIGN, addr += QCUL_CODE_ALIGN) {
		h = qcul_fingerprint_hash(0, p, SAMPLE_BYTES);
		i = h >> (64 - FILTER_BITS);
		if (s->filter[i / 64] >> i % 64 & 1)
			follow_samples(s, h, addr);
	}
}

/* The sites of the found code. Their names are the list's. */
static void take_starts(const struct search *s, struct qcul_linked *l)
{
	size_t i;

	l->count = 0;
	for (i = 0; i < s->found_in->names_count && l->count < QCUL_SITES_MAX; i++)
		if (s->found->starts[i] != QCUL_NO_START)
			l->sites[l->count++] = (struct qcul_site){
				.name = s->found_in->names[i],
				.addr = s->addr + (uint64_t)s->found->starts[i] * QCUL_CODE_ALIGN,
				.size = QCUL_SITE_BYTES,
			};
}

/* False if the file ends before what is loaded of it. It would not run. */
static bool is_whole_file(const struct qcul_elf *e)
{
	Elf64_Phdr p;
	size_t i;

	for (i = 0; qcul_elf_segment(e, i, &p); i++)
		if (p.p_type == PT_LOAD &&
		    (p.p_offset > e->size || p.p_filesz > e->size - p.p_offset))
			return false;
	return true;
}

void qcul_fingerprint_find(const struct qcul_elf *e, const struct qcul_fingerprints *all,
			   struct qcul_linked *l)
{
	struct search s = {.e = e, .all = all};
	const struct qcul_fingerprints *set, *first = all;
	struct qcul_elf_range part;
	size_t i, left = e->size;

	if (!is_whole_file(e)) {
		snprintf(l->what, sizeof(l->what), "the file is cut off");
		return;
	}
	for (set = all; set; first = set, set = set->older)
		for (i = 0; i < set->count; i++) {
			size_t bit = set->prints[i].sample >> (64 - FILTER_BITS);

			s.filter[bit / 64] |= (uint64_t)1 << bit % 64;
		}
	for (i = 0; qcul_elf_next_code(e, &i, &part) && part.size <= left;) {
		search_code(&s, &part);
		left -= part.size;
	}
	if (s.twice) {
		snprintf(l->what, sizeof(l->what), "its code is there twice");
	} else if (s.found) {
		take_starts(&s, l);
		l->major = s.found->major;
		l->version = s.found->version;
		l->state = QCUL_LINKED_FOUND;
	} else if (s.changed) {
		snprintf(l->what, sizeof(l->what),
			 "its code is like that of CUDA %s but not the same", s.changed->version);
	} else {
		snprintf(l->what, sizeof(l->what), "its code is that of no CUDA from %s to %s",
			 first->prints[0].version, all->prints[all->count - 1].version);
	}
}

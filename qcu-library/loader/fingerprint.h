/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Knows NVIDIA's static runtime by its code, where no symbol table names its functions. The runtime
 * is one object file, whose code every linker keeps in one run: all bytes but the addresses in it
 * stay the same. The fingerprint of a version consists of numbers only.
 */
#ifndef QCUL_FINGERPRINT_H
#define QCUL_FINGERPRINT_H

#include "qcu-library/loader/linked.h"

/* The code begins at a multiple of this, as each function does. Starts are counted in these. */
#define QCUL_CODE_ALIGN QCUL_SITE_ALIGN
/* A start that is none: the version lacks the function. */
#define QCUL_NO_START 65535u

/* Several holes in a row, in `holes` of all fingerprints. */
struct qcul_holes {
	uint16_t first, count;
};

/* The code of one version. */
struct qcul_fingerprint {
	const char *version;
	unsigned int major;
	uint32_t size;
	uint32_t sample_at; /* a multiple of QCUL_CODE_ALIGN */
	uint64_t sample;    /* the hash of the 16 bytes there, which no other version has */
	uint64_t hash;	    /* of all bytes outside the holes */
	uint32_t first_holes, count_holes;
	const uint16_t *starts; /* for each name */
};

/*
 * A hole is a run of bytes that a linker changes. Its number is twice the count of bytes between it
 * and the hole before. It has 4 bytes, or 7 if the number is odd.
 */
struct qcul_fingerprints {
	const struct qcul_fingerprints *older; /* a table of earlier versions, or NULL */
	const struct qcul_fingerprint *prints;
	size_t count;
	const char *const *names; /* in the order of strcmp */
	size_t names_count;
	const uint16_t *holes;
	const struct qcul_holes *runs;
};

extern const struct qcul_fingerprints qcul_fingerprints_known;

/* The hash of bytes that follow those whose hash is `h`. Any one word that differs changes it. */
uint64_t qcul_fingerprint_hash(uint64_t h, const unsigned char *p, size_t size);

/*
 * Looks for one of the fingerprints in a file. If its code is there, once and unchanged, the state
 * is QCUL_LINKED_FOUND. Otherwise the state stays and `what` says what is wrong.
 */
void qcul_fingerprint_find(const struct qcul_elf *e, const struct qcul_fingerprints *all,
			   struct qcul_linked *l);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds NVIDIA's runtime in a program or library: which version it is, and where its public
 * functions begin. It is the static one, or the file is a copy of NVIDIA's shared one.
 */
#ifndef QCUL_LINKED_H
#define QCUL_LINKED_H

#include "qcu-library/loader/elf.h"

/* More functions than the runtime of any version has. */
#define QCUL_SITES_MAX 1024u
/* A jump to any address takes this many bytes, and NVIDIA's functions begin at multiples of 16. */
#define QCUL_SITE_BYTES 14u
#define QCUL_SITE_ALIGN 16u

enum qcul_linked_state {
	QCUL_LINKED_NONE,     /* there is no runtime in it */
	QCUL_LINKED_FOUND,    /* `sites` are its functions */
	QCUL_LINKED_STRIPPED, /* its functions have no names, and its code is not known: `what` */
	QCUL_LINKED_NVIDIA,   /* the same, in a library of NVIDIA's, which nobody can link anew */
	QCUL_LINKED_OTHER,    /* it is of a version that we do not serve: `what` */
	QCUL_LINKED_CONTRADICTS, /* the symbol table cannot be right: `what` */
};

/* A public function of the runtime. */
struct qcul_site {
	const char *name; /* in the file's symbol table, or in that of the fingerprints */
	uint64_t addr, size;
};

struct qcul_linked {
	enum qcul_linked_state state;
	unsigned int major;  /* CUDA 11, 12 or 13 */
	bool shared;	     /* the file is NVIDIA's libcudart, under whatever name */
	const char *version; /* of the code by which it was found; NULL: by its symbol table */
	size_t count;
	struct qcul_site sites[QCUL_SITES_MAX]; /* by address */
	char what[160];
};

/* libcudart.so.12 serves CUDA 11.8, too: it has the few functions that have another form there. */
static inline unsigned int qcul_linked_library(unsigned int major)
{
	return major == 11 ? 12 : major;
}

void qcul_linked_find(const struct qcul_elf *e, struct qcul_linked *l);

/*
 * True for libcudart.so.13, and for names of copies such as libcudart-53d54daa.so.12.6.68 and
 * libcudart.3eda8113.so.13. Python's wheels have copies with such names.
 */
bool qcul_linked_is_shared_name(const char *name);

/* The sentence that tells what is wrong and what to do. Empty if all is well. */
void qcul_linked_sentence(const struct qcul_linked *l, const char *path, char *text, size_t size);

#endif

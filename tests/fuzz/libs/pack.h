/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packs random calls of libraries (include/qculib.h). `scripts/shims/generate fuzz` makes a
 * function for each that the mirror serves, which packs one parameter after the other with what is
 * declared here; those of functions that are written by hand are in hand*.c.
 */
#ifndef TESTS_FUZZ_PACK_H
#define TESTS_FUZZ_PACK_H

#include "qcu-device/libs/libs.h"
#include "tests/fuzz/fuzz.h"

#define FUZZ_WORDS    (1u << 16)   /* of a message */
#define FUZZ_OUTS     (256u << 10) /* bytes that a call may write */
#define FUZZ_OBJECTS  3u	   /* of each kind */
#define FUZZ_BACKENDS 256u	   /* descriptors of cuDNN's backend API */

#define FUZZ_ALGO  8u /* words of an algorithm of cuBLASLt */
#define FUZZ_ALGOS 16u

struct fuzz_call;

struct fuzz_function {
	void (*pack)(struct fuzz_call *f);
	/* The kinds of the objects without which the library is never called. 0: none */
	uint16_t handle, second;
};

struct fuzz_library {
	const struct lib_library *lib;
	uint16_t number;
	const struct fuzz_function *functions;
};

extern const struct fuzz_library *const fuzz_libraries[];
extern const unsigned int fuzz_library_count;

/* How many of a call's choices are wrong. */
enum fuzz_mood { FUZZ_TAME, FUZZ_ODD, FUZZ_WILD };

struct fuzz_call {
	uint64_t random;
	enum fuzz_mood mood;
	uint64_t usual; /* most numbers of the call are this one, so that sizes fit one another */
	bool scalars_on_gpu;
	bool without_null;
	const struct fuzz_library *lib;
	/* In a setting: its object does not travel. */
	bool setting, self_taken;
	bool on_host; /* the object works there */
	unsigned int depth;
	bool overflow; /* the message is too long, and is not sent */
	uint64_t *words;
	unsigned int used;
	uint32_t outs;
};

/* What exists in the mirror: the worker fills this in. */
struct fuzz_world {
	uint16_t object[QCU_LIB_KINDS][FUZZ_OBJECTS]; /* numbers; 0: there is none */
	/* Memory of the GPU: all zeros; and words that are addresses in it. */
	uint64_t zeros, pointers, bytes;
	uint64_t decoy, decoy_bytes; /* addresses that nothing may use */
	bool real;		     /* a wrong address costs the GPU's context */
	struct {
		uint16_t number, type;
		bool final;
		bool coming; /* the call makes it */
	} backend[FUZZ_BACKENDS];
	/* Algorithms that cuBLASLt has told. */
	uint64_t algo[FUZZ_ALGOS][FUZZ_ALGO];
	unsigned int algo_count;
	/* Are there enough findings in a function? Enough crashes by null pointers? */
	bool (*muted)(const struct fuzz_library *l, unsigned int function);
	bool (*without_null)(const struct fuzz_library *l, unsigned int function);
};
extern struct fuzz_world fuzz_world;

/* Packs a call of this function. */
void fuzz_pack(struct fuzz_call *f, unsigned int function);

/* Is this choice a wrong one? */
bool fuzz_is_odd(struct fuzz_call *f);
/* Values, as the words that carry them. */
uint64_t fuzz_number(struct fuzz_call *f, unsigned int bits);
uint64_t fuzz_bounded(struct fuzz_call *f, unsigned int bits, int64_t least, int64_t greatest);
uint64_t fuzz_enum(struct fuzz_call *f, const uint64_t *values, unsigned int count);
uint64_t fuzz_real(struct fuzz_call *f);
uint64_t fuzz_address(struct fuzz_call *f, bool of_pointers);

void fuzz_word(struct fuzz_call *f, uint64_t word);
void fuzz_bytes(struct fuzz_call *f, const void *bytes, uint64_t len);
void fuzz_device(struct fuzz_call *f, bool of_pointers);
void fuzz_object(struct fuzz_call *f, uint32_t kind);
/* The same, or none. Without a GPU there is none. */
void fuzz_bare(struct fuzz_call *f, uint32_t kind);
void fuzz_second(struct fuzz_call *f, uint32_t kind);
void fuzz_descriptor(struct fuzz_call *f, uint32_t kind);
/* Memory of `size` bytes, of elements of this size. */
void fuzz_in(struct fuzz_call *f, uint64_t size, size_t element, bool real);
void fuzz_inout(struct fuzz_call *f, uint64_t size, size_t element, bool real);
void fuzz_out(struct fuzz_call *f, uint64_t size);
void fuzz_text(struct fuzz_call *f);
/* As fuzz_device(), or fuzz_out() of so many elements if the call's object works on the host. */
void fuzz_either(struct fuzz_call *f, uint64_t count, size_t element);
void fuzz_scalar(struct fuzz_call *f, uint64_t room, size_t element, bool real, unsigned int way);
/* Bytes of a given content, as `in` memory. */
void fuzz_in_bytes(struct fuzz_call *f, const void *bytes, uint64_t size);
/* Where the rows of a sparse matrix begin, or the columns of its elements; mostly right, if it is
 * small. */
#define FUZZ_CSR 1024
void fuzz_csr(struct fuzz_call *f, int64_t n, int64_t nnz, bool columns);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory that ends at a guard page, for what the stubs take out of a message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "qcu-device/libs/libs.h"
#include "tests/fuzz/libs/catch.h"
#include "tests/fuzz/libs/guard.h"

#define SLOTS	 512u
#define SLOT	 (16u << 10)
#define PAGE	 4096u
#define STRIDE	 (SLOT + PAGE)
#define FRONT	 64u
#define FRONT_IS 0xa5

struct guarded_piece {
	uint8_t *at;
	uint64_t len;
	void *back;	/* where the result goes. NULL: nowhere */
	uint8_t *large; /* a mapping of its own */
	uint64_t large_len;
	bool front;
};

static uint8_t *slots;
static struct guarded_piece pieces[2 * SLOTS];
static unsigned int count, used_slots;

void fuzz_guard_begin(void)
{
	unsigned int i;

	slots = mmap(NULL, SLOTS * STRIDE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (slots == MAP_FAILED)
		abort();
	for (i = 0; i < SLOTS; i++)
		if (mprotect(slots + i * STRIDE + SLOT, PAGE, PROT_NONE))
			abort();
}

bool fuzz_guard_has(uint64_t address)
{
	unsigned int i;

	if (address - (uintptr_t)slots < (uint64_t)SLOTS * STRIDE)
		return true;
	for (i = 0; i < count; i++)
		if (pieces[i].large && address - (uintptr_t)pieces[i].large < pieces[i].large_len)
			return true;
	return false;
}

/* A large piece, which is not touched here. */
static uint8_t *map_large(struct guarded_piece *p, uint64_t len)
{
	uint64_t whole = ((len + PAGE - 1) & ~(uint64_t)(PAGE - 1)) + PAGE;

	p->large = mmap(NULL, whole, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p->large == MAP_FAILED || mprotect(p->large + whole - PAGE, PAGE, PROT_NONE))
		abort();
	p->large_len = whole;
	return p->large + whole - PAGE - len;
}

static void *guarded(uint64_t len, void *back)
{
	struct guarded_piece *p = &pieces[count];

	if (count == sizeof(pieces) / sizeof(pieces[0]))
		abort();
	memset(p, 0, sizeof(*p));
	if (len <= SLOT - FRONT && used_slots < SLOTS) {
		p->at = slots + used_slots++ * STRIDE + SLOT - len;
		p->front = true;
		memset(p->at - FRONT, FRONT_IS, FRONT);
	} else {
		p->at = map_large(p, len);
	}
	p->len = len;
	p->back = back;
	count++;
	return p->at;
}

static void *guarded_copy(void *from, uint64_t len, bool back)
{
	void *at;

	if (!from)
		return NULL;
	at = guarded(len, back ? from : NULL);
	memcpy(at, from, len);
	return at;
}

bool fuzz_guard_end(void)
{
	bool good = true;
	unsigned int i;

	while (count) {
		struct guarded_piece *p = &pieces[--count];

		for (i = 0; p->front && i < FRONT; i++)
			good &= p->at[-1 - (int)i] == FRONT_IS;
		if (p->large)
			munmap(p->large, p->large_len);
	}
	used_slots = 0;
	return good;
}

/* ---- in the linker's way: each calls the function of this name in the mirror ---- */

void *__real_lib_in(struct lib_call *c, uint64_t *len);
void *__real_lib_out(struct lib_call *c, uint64_t *len);
void *__real_lib_inout(struct lib_call *c, uint64_t *len);
void *__real_lib_text(struct lib_call *c, uint64_t *len);
void *__real_lib_bytes(struct lib_call *c, uint64_t len);
void *__real_lib_scalar(struct lib_call *c, uint64_t size, unsigned int way);
void *__real_lib_scratch(struct lib_call *c, uint64_t len);
void __real_lib_scalars_back(struct lib_call *c);
void *__wrap_lib_in(struct lib_call *c, uint64_t *len);
void *__wrap_lib_out(struct lib_call *c, uint64_t *len);
void *__wrap_lib_inout(struct lib_call *c, uint64_t *len);
void *__wrap_lib_text(struct lib_call *c, uint64_t *len);
void *__wrap_lib_bytes(struct lib_call *c, uint64_t len);
void *__wrap_lib_scalar(struct lib_call *c, uint64_t size, unsigned int way);
void *__wrap_lib_scratch(struct lib_call *c, uint64_t len);
void __wrap_lib_scalars_back(struct lib_call *c);

void *__wrap_lib_in(struct lib_call *c, uint64_t *len)
{
	void *at = __real_lib_in(c, len);

	return guarded_copy(at, *len, false);
}

void *__wrap_lib_text(struct lib_call *c, uint64_t *len)
{
	void *at = __real_lib_text(c, len);

	return guarded_copy(at, *len, false);
}

void *__wrap_lib_out(struct lib_call *c, uint64_t *len)
{
	void *at = __real_lib_out(c, len);

	return guarded_copy(at, *len, true);
}

void *__wrap_lib_inout(struct lib_call *c, uint64_t *len)
{
	void *at = __real_lib_inout(c, len);

	return guarded_copy(at, *len, true);
}

void *__wrap_lib_bytes(struct lib_call *c, uint64_t len)
{
	return guarded_copy(__real_lib_bytes(c, len), len, false);
}

void *__wrap_lib_scalar(struct lib_call *c, uint64_t size, unsigned int way)
{
	bool on_gpu =
		(size_t)(c->end - c->at) >= 8 && !memcmp(c->at, &(uint64_t){QCU_LIB_DEVICE}, 8);
	void *at = __real_lib_scalar(c, size, way);

	return on_gpu ? at : guarded_copy(at, size, way & LIB_OUT);
}

void *__wrap_lib_scratch(struct lib_call *c, uint64_t len)
{
	return __real_lib_scratch(c, len) ? guarded(len, NULL) : NULL;
}

/* The call has been made. */
void __wrap_lib_scalars_back(struct lib_call *c)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		if (pieces[i].back)
			memcpy(pieces[i].back, pieces[i].at, pieces[i].len);
	__real_lib_scalars_back(c);
}

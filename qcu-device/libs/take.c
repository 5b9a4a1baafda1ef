// SPDX-License-Identifier: GPL-2.0-or-later
/* Takes the arguments of a library's function out of a message. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/libs/impl.h"

static uint64_t mark_call_bad(struct lib_call *c)
{
	c->bad = true;
	c->at = c->end;
	return 0;
}

uint64_t lib_value(struct lib_call *c)
{
	uint64_t value;

	if ((size_t)(c->end - c->at) < sizeof(value))
		return mark_call_bad(c);
	memcpy(&value, c->at, sizeof(value));
	c->at += sizeof(value);
	return value;
}

double lib_real(struct lib_call *c)
{
	uint64_t bits = lib_value(c);
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

uint64_t lib_bounded(struct lib_call *c, uint64_t value, int64_t least, int64_t greatest)
{
	if ((int64_t)value < least || (int64_t)value > greatest)
		return mark_call_bad(c);
	return value;
}

/* What is no number lies nowhere. */
double lib_bounded_real(struct lib_call *c, double value, double least, double greatest)
{
	if (value >= least && value <= greatest)
		return value;
	mark_call_bad(c);
	return 0;
}

/*
 * Addresses that the backend has found to be device memory. A program names the same ones again and
 * again, and to look one up takes longer than to take all other arguments. They count until any
 * memory goes.
 */
#define KNOWN 1024u
struct lib_known {
	const struct mirror *m;
	uint64_t gone; /* what the backend's mem_gone was when the call began */
	struct lib_known_slot {
		uint64_t at, gone; /* what it was when the address was looked up */
	} slot[KNOWN];
};
_Static_assert(KNOWN == 1u << (64 - 54), "as slot_of_address() has it");

static struct {
	pthread_once_t once;
	pthread_key_t key;
	bool failed;
} known_of_threads = {.once = PTHREAD_ONCE_INIT};

static void make_known_key(void)
{
	known_of_threads.failed = pthread_key_create(&known_of_threads.key, free) != 0;
}

/*
 * Each thread has its own. It is too large for a variable of the thread: the loopback library,
 * which has both sides, is also loaded by programs that run already, and then has little room for
 * these.
 */
static struct lib_known *known_of_thread(void)
{
	struct lib_known *known;

	pthread_once(&known_of_threads.once, make_known_key);
	if (known_of_threads.failed)
		return NULL;
	known = pthread_getspecific(known_of_threads.key);
	if (!known) {
		known = calloc(1, sizeof(*known));
		if (known && pthread_setspecific(known_of_threads.key, known) != 0) {
			free(known);
			known = NULL;
		}
	}
	return known;
}

/* NULL: the backend does not say when memory goes, or there is no memory. */
static struct lib_known *know_addresses(const struct mirror *m)
{
	struct lib_known *known = m->cfg.ops->mem_gone ? known_of_thread() : NULL;

	if (!known)
		return NULL;
	if (known->m != m)
		memset(known, 0, sizeof(*known));
	known->m = m;
	/* Read before any lookup. */
	known->gone = atomic_load_explicit(m->cfg.ops->mem_gone, memory_order_acquire);
	return known;
}

/* The product's upper bits depend on all of the address. */
static struct lib_known_slot *slot_of_address(struct lib_known *k, uint64_t at)
{
	return &k->slot[at * 0x9e3779b97f4a7c15ull >> 54];
}

static bool is_known(struct lib_known *k, uint64_t at)
{
	const struct lib_known_slot *p = slot_of_address(k, at);

	return p->at == at && p->gone == k->gone;
}

static bool is_device_memory(struct lib_call *c, uint64_t at)
{
	struct mirror *m = c->c->m;

	if (!c->known)
		c->known = know_addresses(m);
	if (c->known && is_known(c->known, at))
		return true;
	if (!m->cfg.ops->mem_valid || !m->cfg.ops->mem_valid(m->be, at, 1))
		return false;
	if (c->known)
		*slot_of_address(c->known, at) = (struct lib_known_slot){at, c->known->gone};
	return true;
}

/*
 * May the library get this address? Not one of the mirror's own memory, which a library that copies
 * with the CPU would read or write. Only guest memory lies in the ranges that are set aside.
 */
static bool __attribute__((noinline)) is_guests(struct lib_call *c, uint64_t at)
{
	struct window *w = &c->c->m->window;

	return is_device_memory(c, at) || window_set_aside(w, at, 1) ||
	       window_pinned(w, at, 1, NULL);
}

/* A call in a graph can be made again later only if this memory is still there. */
static void note_memory(struct lib_call *c, uint64_t at)
{
	struct graph_call *g = c->graph;
	uint64_t *more = realloc(g->memory, (g->memory_count + 1) * sizeof(*more));

	if (!more) {
		c->rc = QCU_ERR_MemoryAllocation;
		mark_call_bad(c);
		return;
	}
	g->memory = more;
	more[g->memory_count++] = at;
}

/*
 * A call of no elements may name any address, and natively succeeds. The alignment stays, on which
 * it depends which kernel a library chooses.
 */
void *lib_address(struct lib_call *c, uint64_t at)
{
	if (at && !(c->known && is_known(c->known, at)) && !is_guests(c, at))
		at = LIB_NOWHERE | (at & 255);
	else if (at && c->graph)
		note_memory(c, at);
	return (void *)(uintptr_t)at;
}

void *lib_device(struct lib_call *c)
{
	return lib_address(c, lib_value(c));
}

/* The next `len` bytes, and the zeros behind them. */
static void *take_padded_bytes(struct lib_call *c, uint64_t len)
{
	uint64_t left = (uint64_t)(c->end - c->at), padded = (len + 7) & ~7ull;
	void *at = (void *)c->at;

	if (len > left || padded > left) {
		mark_call_bad(c);
		return NULL;
	}
	c->at += padded;
	return at;
}

static void *room(struct lib_call *c, uint64_t len)
{
	uint64_t padded = (len + 7) & ~7ull;
	void *at = c->outs;

	if (len > c->outs_left || padded > c->outs_left) {
		mark_call_bad(c);
		return NULL;
	}
	if (!padded)
		return at; /* without any room it is NULL */
	c->outs += padded;
	c->outs_left -= padded;
	return at;
}

void *lib_in(struct lib_call *c, uint64_t *len)
{
	*len = 0;
	switch (lib_value(c)) {
	case QCU_LIB_NULL:
		return NULL;
	case QCU_LIB_HOST:
		*len = lib_value(c);
		return take_padded_bytes(c, *len);
	}
	mark_call_bad(c);
	return NULL;
}

void *lib_out(struct lib_call *c, uint64_t *len)
{
	*len = 0;
	switch (lib_value(c)) {
	case QCU_LIB_NULL:
		return NULL;
	case QCU_LIB_ROOM:
		*len = lib_value(c);
		return room(c, *len);
	}
	mark_call_bad(c);
	return NULL;
}

/* All scalars of a call are in the same memory, because the object has one mode. */
static void set_scalar_mode(struct lib_call *c, int mode)
{
	if (c->mode >= 0 && c->mode != mode)
		mark_call_bad(c);
	c->mode = mode;
}

/* The library gets a scalar that is at `at` in the message at an address that it can use. */
static void *aligned(struct lib_call *c, void *at, uint64_t size, bool back)
{
	unsigned int i = c->scalar_count;

	if (!at)
		return NULL;
	if (size > (LIB_SCALARS - i) * LIB_SCALAR) {
		mark_call_bad(c);
		return NULL;
	}
	memcpy(c->scalar[i], at, size);
	c->scalars[i].back = back ? at : NULL;
	c->scalars[i].size = size;
	c->scalar_count += (unsigned int)((size + LIB_SCALAR - 1) / LIB_SCALAR);
	return c->scalar[i];
}

void lib_scalars_back(struct lib_call *c)
{
	unsigned int i;

	/* Only the first slot of a scalar has anything in `back`. */
	for (i = 0; i < c->scalar_count; i++)
		if (c->scalars[i].back)
			memcpy(c->scalars[i].back, c->scalar[i], c->scalars[i].size);
}

void *lib_scalar(struct lib_call *c, uint64_t size, unsigned int way)
{
	uint64_t form = lib_value(c);
	void *in = NULL, *out = NULL;

	if (form == QCU_LIB_NULL)
		return NULL;
	if (form == QCU_LIB_DEVICE) {
		set_scalar_mode(c, 1);
		return lib_device(c);
	}
	set_scalar_mode(c, 0);
	if (form != (way == LIB_IN    ? QCU_LIB_HOST
		     : way == LIB_OUT ? QCU_LIB_ROOM
				      : QCU_LIB_BOTH) ||
	    lib_value(c) != size) {
		mark_call_bad(c);
		return NULL;
	}
	if (way & LIB_IN)
		in = take_padded_bytes(c, size);
	if (way & LIB_OUT)
		out = room(c, size);
	if (in && out)
		memcpy(out, in, size);
	return aligned(c, out ? out : in, size, out);
}

void lib_fits(struct lib_call *c, uint64_t size, uint64_t room_of_it)
{
	if (c->mode == 0 && (!size || size > room_of_it))
		mark_call_bad(c);
}

void lib_sized(struct lib_call *c, const void *at, uint64_t len, uint64_t wanted)
{
	if (at && len != wanted)
		mark_call_bad(c);
}

void *lib_inout(struct lib_call *c, uint64_t *len)
{
	void *in, *out;

	*len = 0;
	switch (lib_value(c)) {
	case QCU_LIB_NULL:
		return NULL;
	case QCU_LIB_BOTH:
		*len = lib_value(c);
		in = take_padded_bytes(c, *len);
		out = room(c, *len);
		if (in && out)
			memcpy(out, in, *len);
		return out;
	}
	mark_call_bad(c);
	return NULL;
}

static bool works_on_host(const struct lib_call *c)
{
	return c->object && qcu_lib_kind_on_host(c->object->kind);
}

void *lib_either(struct lib_call *c, uint64_t *len)
{
	*len = 0;
	return works_on_host(c) ? lib_out(c, len) : lib_device(c);
}

void lib_elements(struct lib_call *c, const void *at, uint64_t len, uint64_t count, size_t size)
{
	if (!works_on_host(c))
		return;
	if (count > QCU_LIB_OUTS_MAX / size || len != (at ? count * size : 0) || (!at && count))
		mark_call_bad(c);
}

void *lib_text(struct lib_call *c, uint64_t *len)
{
	return lib_in(c, len);
}

void lib_ended(struct lib_call *c, const void *at, uint64_t len)
{
	if (at && (!len || ((const char *)at)[len - 1]))
		mark_call_bad(c);
}

void *lib_bytes(struct lib_call *c, uint64_t len)
{
	return take_padded_bytes(c, len);
}

void *lib_stream(struct lib_call *c)
{
	return c->stream;
}

static void *take_object(struct lib_call *c, uint64_t number, uint32_t kind)
{
	struct handle *h;

	/* One object for each call. */
	if (c->object || c->bad) {
		mark_call_bad(c);
		return NULL;
	}
	h = number <= QCU_ID_MAX ? handles_get(&c->c->m->handles, HANDLE_LIBRARY, (uint32_t)number)
				 : NULL;
	if (!h || h->device != c->c->cmd->device || !qcu_lib_kind_fits(h->library->kind, kind)) {
		handles_put(&c->c->m->handles, h);
		c->rc = QCU_ERR_InvalidResourceHandle;
		mark_call_bad(c);
		return NULL;
	}
	c->h = h;
	c->object = h->library;
	c->version = lib_value(c);
	number = lib_value(c);
	c->settings = take_padded_bytes(c, number);
	c->settings_end = c->settings ? c->settings + number : NULL;
	return c->object->native;
}

void *lib_object(struct lib_call *c, uint32_t kind)
{
	return c->self ? *c->self : take_object(c, lib_value(c), kind);
}

void *lib_bare(struct lib_call *c, uint32_t kind)
{
	uint64_t number = lib_value(c);

	return number ? take_object(c, number, kind) : NULL;
}

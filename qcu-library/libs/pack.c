// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Packs the arguments of a library's function, in the form of include/qculib.h. No function here
 * returns an error. The first error is kept, and becomes the call's status.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/libs/impl.h"

#define ROUND(n) (((n) + 7) & ~(uint64_t)7)

void qcul_lib_fail(struct qcul_pack *p, int status)
{
	if (!p->failed)
		p->status = status;
	p->failed = true;
}

/* FNV-1a, a word at a time. */
static void mix(uint64_t *hash, uint64_t word)
{
	*hash = (*hash ^ word) * 0x100000001b3ull;
	*hash ^= *hash >> 29;
}

static bool __attribute__((noinline)) grow_message(struct qcul_pack *p, uint64_t len)
{
	unsigned char *bigger;
	size_t room = p->room;

	if (len > QCU_LIB_ARGS_MAX || p->used + len > QCU_LIB_ARGS_MAX) {
		qcul_lib_fail(p, p->lib->memory);
		return false;
	}
	while (room - p->used < len)
		room *= 2;
	bigger = realloc(p->base == p->small ? NULL : p->base, room);
	if (!bigger) {
		qcul_lib_fail(p, p->lib->memory);
		return false;
	}
	if (p->base == p->small)
		memcpy(bigger, p->small, p->used);
	p->base = bigger;
	p->room = room;
	return true;
}

/* Every word of every call comes by here. */
static inline void *take_message_room(struct qcul_pack *p, uint64_t len)
{
	void *at;

	if (p->failed || (p->room - p->used < len && !grow_message(p, len)))
		return NULL;
	at = p->base + p->used;
	p->used += len;
	return at;
}

void *qcul_lib_room(struct qcul_pack *p, uint64_t len)
{
	return take_message_room(p, len);
}

static void pack_word(struct qcul_pack *p, uint64_t value)
{
	uint64_t *at = take_message_room(p, sizeof(value));

	if (at)
		*at = value;
}

/* Bytes, with zeros behind them up to `padded`, a multiple of 8. */
static void bytes(struct qcul_pack *p, const void *from, uint64_t len, uint64_t padded)
{
	unsigned char *at = take_message_room(p, padded);

	if (!at)
		return;
	memcpy(at, from, len);
	memset(at + len, 0, padded - len);
}

void qcul_lib_begin(struct qcul_pack *p, const struct qcul_lib *lib, uint16_t function)
{
	p->lib = lib;
	p->unknown = lib->unknown;
	p->function = function;
	p->object = NULL;
	p->stream = NULL;
	p->base = p->small;
	p->room = sizeof(p->small);
	p->used = sizeof(struct qcu_lib_head);
	p->outs = 0;
	p->failed = p->results = p->queued = p->waits = p->made = p->reports = p->steady =
		p->changes = false;
	p->out_count = 0;
	p->seen = p->state = 0xcbf29ce484222325ull;
	p->settings_end = 0;
	mix(&p->seen, (uint64_t)lib->number << 16 | function);
}

void qcul_lib_bound(struct qcul_pack *p, int64_t value, int64_t least, int64_t greatest)
{
	if (value < least || value > greatest)
		qcul_lib_fail(p, p->lib->invalid);
}

/* What is no number lies nowhere. */
void qcul_lib_bound_real(struct qcul_pack *p, double value, double least, double greatest)
{
	if (!(value >= least && value <= greatest))
		qcul_lib_fail(p, p->lib->invalid);
}

void qcul_lib_value(struct qcul_pack *p, uint64_t value)
{
	mix(&p->seen, value);
	pack_word(p, value);
}

void qcul_lib_real(struct qcul_pack *p, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	qcul_lib_value(p, bits);
}

/* Whether a call is right may depend on an address's alignment, but not on more of it. */
static void mix_address(struct qcul_pack *p, const void *address)
{
	mix(&p->seen, address ? 1 + ((uintptr_t)address & 255) : 0);
}

void qcul_lib_device(struct qcul_pack *p, const void *address)
{
	mix_address(p, address);
	pack_word(p, (uint64_t)(uintptr_t)address);
}

void qcul_lib_stream(struct qcul_pack *p, struct CUstream_st *stream)
{
	p->stream = stream;
	p->queued = true;
}

void qcul_lib_object(struct qcul_pack *p, const void *handle, uint32_t kind)
{
	struct qcul_object *o = qcul_lib_find(handle, kind);
	uint64_t sum = 0;
	unsigned int i;

	if (!o) {
		qcul_lib_fail(p, p->unknown);
		return;
	}
	mix(&p->state, (uint64_t)o->kind << 32 | (uint64_t)o->device << 1 | o->device_scalars);
	for (i = 0; i < o->set_count; i++)
		sum += o->set[i].seen;
	mix(&p->state, sum);
	pack_word(p, o->number);
	pack_word(p, o->version);
	pack_word(p, o->bytes);
	bytes(p, o->settings, o->bytes, o->bytes);
	if (p->object && !p->object->descriptor)
		return;
	p->object = o;
	p->settings_end = p->used;
	if (!p->queued)
		p->stream = o->stream;
}

void qcul_lib_bare(struct qcul_pack *p, const void *handle, uint32_t kind)
{
	if (handle)
		qcul_lib_object(p, handle, kind);
	else
		qcul_lib_value(p, 0);
}

void qcul_lib_second(struct qcul_pack *p, const void *handle, uint32_t kind)
{
	struct qcul_object *o = qcul_lib_find(handle, kind);

	if (o)
		qcul_lib_value(p, o->number);
	else
		qcul_lib_fail(p, p->lib->invalid);
}

void qcul_lib_made(struct qcul_pack *p, void **new_object, uint32_t kind)
{
	struct qcul_object *o = new_object ? qcul_lib_reserve(kind) : NULL;

	if (!o) {
		qcul_lib_fail(p, new_object ? p->lib->memory : p->lib->invalid);
		return;
	}
	o->descriptor = true;
	p->object = o;
	p->made = true;
	p->new_object = new_object;
	p->settings_end = p->used;
}

void qcul_lib_steady(struct qcul_pack *p)
{
	p->steady = true;
}

void qcul_lib_changes(struct qcul_pack *p)
{
	p->changes = true;
}

void qcul_lib_report(struct qcul_pack *p)
{
	p->reports = true;
}

void qcul_lib_descriptor(struct qcul_pack *p, const void *handle, uint32_t kind)
{
	struct qcul_object *o = handle ? qcul_lib_find(handle, kind) : NULL;
	uint64_t sum = 0;
	unsigned int i;

	if (handle && !o) {
		qcul_lib_fail(p, p->lib->invalid);
		return;
	}
	if (!o) {
		qcul_lib_value(p, 0);
		return;
	}
	for (i = 0; i < o->set_count; i++)
		sum += o->set[i].seen;
	/* What an object has already does not count among what is set in it. */
	mix(p->object ? &p->seen : &p->state, sum);
	pack_word(p, 1 + o->bytes);
	bytes(p, o->settings, o->bytes, o->bytes);
	if (p->object)
		return;
	p->object = o;
	p->settings_end = p->used;
}

void qcul_lib_plain(struct qcul_pack *p, uint64_t value)
{
	pack_word(p, value);
}

/* What decides whether the call is right: these bytes. */
static void mix_bytes(struct qcul_pack *p, const unsigned char *at, uint64_t len)
{
	uint64_t some;

	for (; len >= sizeof(some); len -= sizeof(some), at += sizeof(some)) {
		memcpy(&some, at, sizeof(some));
		mix(&p->seen, some);
	}
	if (!len)
		return;
	some = 0;
	memcpy(&some, at, len);
	mix(&p->seen, some);
}

/* False: it is a null pointer, or too large. After a failure nobody knows how long it is. */
static bool host(struct qcul_pack *p, uint64_t form, const void *at, uint64_t len)
{
	if (p->failed)
		return false;
	if (!at) {
		qcul_lib_value(p, QCU_LIB_NULL);
		return false;
	}
	if (len > QCU_LIB_ARGS_MAX || len > QCU_LIB_OUTS_MAX) {
		qcul_lib_fail(p, p->lib->invalid);
		return false;
	}
	qcul_lib_value(p, form);
	qcul_lib_value(p, len);
	return true;
}

void qcul_lib_in_like(struct qcul_pack *p, const void *from, uint64_t len, const void *like)
{
	if (!host(p, QCU_LIB_HOST, from, len))
		return;
	bytes(p, from, len, ROUND(len));
	mix_bytes(p, like, len);
}

void qcul_lib_in(struct qcul_pack *p, const void *from, uint64_t len)
{
	qcul_lib_in_like(p, from, len, from);
}

/* The library writes `padded` bytes, of which `len` go to the program. */
static void out(struct qcul_pack *p, void *to, uint64_t len, uint64_t padded)
{
	if (p->out_count == QCUL_LIB_OUTS || padded > QCU_LIB_OUTS_MAX - p->outs) {
		qcul_lib_fail(p, p->lib->memory);
		return;
	}
	p->out[p->out_count].to = to;
	p->out[p->out_count].len = (uint32_t)len;
	p->out[p->out_count++].padded = (uint32_t)padded;
	p->outs += (uint32_t)padded;
}

void qcul_lib_out(struct qcul_pack *p, void *to, uint64_t len)
{
	if (host(p, QCU_LIB_ROOM, to, len))
		out(p, to, len, ROUND(len));
}

void qcul_lib_either(struct qcul_pack *p, void *to, uint64_t count, size_t size)
{
	if (!p->object || !qcu_lib_kind_on_host(p->object->kind))
		qcul_lib_device(p, to);
	else if (count > QCU_LIB_OUTS_MAX / size || (!to && count))
		qcul_lib_fail(p, p->lib->invalid);
	else
		qcul_lib_out(p, to, count * size);
}

void qcul_lib_inout(struct qcul_pack *p, void *at, uint64_t len)
{
	if (!host(p, QCU_LIB_BOTH, at, len))
		return;
	bytes(p, at, len, ROUND(len));
	out(p, at, len, ROUND(len));
}

void qcul_lib_scalar(struct qcul_pack *p, void *at, size_t len, size_t room, unsigned int way)
{
	qcul_lib_scalar_at(p, at, len, room, way, p->object && p->object->device_scalars);
}

void qcul_lib_scalar_at(struct qcul_pack *p, void *at, size_t len, size_t room, unsigned int way,
			bool device)
{
	if (!at) {
		qcul_lib_value(p, QCU_LIB_NULL);
		return;
	}
	if (device) {
		qcul_lib_value(p, QCU_LIB_DEVICE);
		qcul_lib_device(p, at);
		return;
	}
	/* The size comes from a parameter, such as a type that nobody knows. */
	if (!len || len > room) {
		qcul_lib_fail(p, p->lib->invalid);
		return;
	}
	qcul_lib_value(p, way == QCUL_LIB_IN	? QCU_LIB_HOST
			  : way == QCUL_LIB_OUT ? QCU_LIB_ROOM
						: QCU_LIB_BOTH);
	qcul_lib_value(p, room);
	if (way & QCUL_LIB_IN)
		bytes(p, at, len, room);
	if (way & QCUL_LIB_OUT) {
		p->results = true;
		out(p, at, len, room);
	}
}

void qcul_lib_mix(uint64_t *hash, uint64_t value)
{
	mix(hash, value);
}

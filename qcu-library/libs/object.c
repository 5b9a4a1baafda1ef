// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The objects of libraries: handles, and the settings that programs have made in them. A handle is
 * the address of a slot in a table, so any pointer can be checked without reading it. The slot's
 * index is the number on the wire. The mirror creates and destroys an object after everything that
 * any thread has posted (the order of LIB_ASK). So an older call cannot reach a number that is used
 * again.
 */
#include <string.h>

#include "qcu-library/libs/impl.h"
#include "qcu-library/link/fork.h"

#define OBJECTS 4096u

static struct qcul_object objects[OBJECTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int next;
static _Atomic uint64_t versions = 1;

/* The child's session has another number, so all objects are foreign to it. */
QCUL_AT_FORK(QCUL_FORK_LIBRARY_OBJECTS, .lock = &lock)

struct qcul_object *qcul_lib_find(const void *handle, uint32_t kind)
{
	uintptr_t off = (uintptr_t)handle - (uintptr_t)objects;
	struct qcul_object *o;

	if (off >= sizeof(objects) || off % sizeof(*objects))
		return NULL;
	o = &objects[off / sizeof(*objects)];
	if (!o->number || o->epoch != qcul_epoch() || !qcu_lib_kind_fits(o->kind, kind))
		return NULL;
	return o;
}

void *qcul_lib_by_number(int64_t number)
{
	int64_t index = number - QCU_ID_FIRST;

	return index >= 0 && index < (int64_t)OBJECTS ? &objects[index] : NULL;
}

struct qcul_object *qcul_lib_reserve(uint32_t kind)
{
	struct qcul_object *o = NULL;
	unsigned int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < OBJECTS && !o; i++) {
		if (!objects[next].number || objects[next].epoch != qcul_epoch())
			o = &objects[next];
		next = (next + 1) % OBJECTS;
	}
	if (o) {
		memset(o, 0, sizeof(*o));
		o->number = QCU_ID_FIRST + (uint32_t)(o - objects);
		o->epoch = qcul_epoch();
		o->kind = kind;
		o->device = qcul_self.device;
	}
	pthread_mutex_unlock(&lock);
	return o;
}

void qcul_lib_forget(int device)
{
	unsigned int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < OBJECTS; i++)
		if (objects[i].number && !objects[i].descriptor && objects[i].device == device)
			objects[i].number = 0;
	pthread_mutex_unlock(&lock);
}

const unsigned char *qcul_lib_setting(const struct qcul_object *o, uint16_t function)
{
	uint32_t at = 0;

	while (at < o->bytes) {
		struct qcu_lib_setting s;

		memcpy(&s, o->settings + at, sizeof(s));
		at += (uint32_t)sizeof(s);
		if (s.function == function)
			return o->settings + at;
		at += s.args;
	}
	return NULL;
}

/* Takes the record of this function out of the settings. */
static void remove_setting(struct qcul_object *o, uint16_t function)
{
	const unsigned char *args = qcul_lib_setting(o, function);
	struct qcu_lib_setting s;
	uint32_t at, len;

	if (!args)
		return;
	at = (uint32_t)(args - o->settings - sizeof(s));
	memcpy(&s, o->settings + at, sizeof(s));
	len = (uint32_t)sizeof(s) + s.args;
	memmove(o->settings + at, o->settings + at + len, o->bytes - at - len);
	o->bytes -= len;
}

/* Where the function's hash is, or would be. */
static unsigned int noted(const struct qcul_object *o, uint16_t function)
{
	unsigned int i = 0;

	while (i < o->set_count && o->set[i].function != function)
		i++;
	return i;
}

void qcul_lib_note(struct qcul_object *o, uint16_t function, uint64_t seen)
{
	unsigned int i = noted(o, function);

	/* A library has fewer functions that set or change something. */
	if (i == QCUL_LIB_SETTINGS)
		return;
	if (i == o->set_count)
		o->set_count++;
	o->set[i].function = function;
	o->set[i].seen = seen;
}

static void drop_note(struct qcul_object *o, uint16_t function)
{
	unsigned int i = noted(o, function);

	if (i < o->set_count)
		o->set[i] = o->set[--o->set_count];
}

void qcul_lib_unset(struct qcul_object *o, uint16_t function)
{
	uint32_t before = o->bytes;

	remove_setting(o, function);
	if (o->bytes == before)
		return;
	drop_note(o, function);
	o->version = atomic_fetch_add(&versions, 1);
}

void qcul_lib_unset_all(struct qcul_object *o)
{
	o->bytes = 0;
	o->set_count = 0;
	o->version = atomic_fetch_add(&versions, 1);
}

int qcul_lib_keep(struct qcul_pack *p)
{
	struct qcul_object *o = p->object;
	struct qcu_lib_setting s = {
		.function = p->function,
		.args = (uint32_t)(p->used - p->settings_end),
	};

	remove_setting(o, p->function);
	drop_note(o, p->function);
	if (sizeof(s) + s.args > sizeof(o->settings) - o->bytes ||
	    o->set_count == QCUL_LIB_SETTINGS)
		return p->lib->memory;
	memcpy(o->settings + o->bytes, &s, sizeof(s));
	memcpy(o->settings + o->bytes + sizeof(s), p->base + p->settings_end, s.args);
	o->bytes += (uint32_t)sizeof(s) + s.args;
	qcul_lib_note(o, p->function, p->seen);
	o->version = atomic_fetch_add(&versions, 1);
	return 0;
}

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

static struct {
	struct qcul_object objects[OBJECTS];
	unsigned int next;
	_Atomic uint64_t versions;
} process;

static void forget_library_objects(int device);
QCUL_AT_FORK(QCUL_FORK_LIBRARY_OBJECTS, .reset = forget_library_objects)

struct qcul_object *qcul_lib_find(const void *handle, uint32_t kind)
{
	uintptr_t off = (uintptr_t)handle - (uintptr_t)process.objects;
	struct qcul_object *o;

	if (off >= sizeof(process.objects) || off % sizeof(*process.objects))
		return NULL;
	o = &process.objects[off / sizeof(*process.objects)];
	if (!o->number || o->epoch != qcul_epoch() || !qcu_lib_kind_fits(o->kind, kind))
		return NULL;
	return o;
}

void *qcul_lib_by_number(int64_t number)
{
	int64_t index = number - QCU_ID_FIRST;

	return index >= 0 && index < (int64_t)OBJECTS ? &process.objects[index] : NULL;
}

struct qcul_object *qcul_lib_reserve(uint32_t kind)
{
	struct qcul_object *o = NULL;
	unsigned int i;

	pthread_mutex_lock(&at_fork.lock);
	for (i = 0; i < OBJECTS && !o; i++) {
		if (!process.objects[process.next].number ||
		    process.objects[process.next].epoch != qcul_epoch())
			o = &process.objects[process.next];
		process.next = (process.next + 1) % OBJECTS;
	}
	if (o) {
		memset(o, 0, sizeof(*o));
		o->number = QCU_ID_FIRST + (uint32_t)(o - process.objects);
		o->epoch = qcul_epoch();
		o->kind = kind;
		o->device = qcul_self.device;
	}
	pthread_mutex_unlock(&at_fork.lock);
	return o;
}

/* A child's session has another number, so all objects are foreign to it. */
static void forget_library_objects(int device)
{
	unsigned int i;

	if (device < 0)
		return;
	pthread_mutex_lock(&at_fork.lock);
	for (i = 0; i < OBJECTS; i++)
		if (process.objects[i].number && !process.objects[i].descriptor &&
		    process.objects[i].device == device)
			process.objects[i].number = 0;
	pthread_mutex_unlock(&at_fork.lock);
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
	o->version = ++process.versions;
}

void qcul_lib_unset_all(struct qcul_object *o)
{
	o->bytes = 0;
	o->set_count = 0;
	o->version = ++process.versions;
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
	o->version = ++process.versions;
	return 0;
}

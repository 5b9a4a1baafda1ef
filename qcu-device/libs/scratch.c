// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Host memory that a library works in during a call. Natively the program provides it, and may free
 * it when the call has returned. Here it belongs to the object. A larger piece replaces a smaller
 * one, which stays until the object ends. All of it counts as queued work.
 */
#include <stdlib.h>

#include "qcu-device/libs/impl.h"

#define SCRATCH_MAX (256u << 20)

struct lib_scratch {
	struct lib_scratch *next;
	uint64_t len;
	unsigned char at[] __attribute__((aligned(64)));
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void *lib_scratch(struct lib_call *c, uint64_t len)
{
	struct lib_scratch *s;

	if (!len || c->bad || !c->object)
		return NULL;
	pthread_mutex_lock(&lock);
	s = c->object->scratch;
	if (!s || s->len < len) {
		uint64_t room = s ? 2 * s->len : 4096;

		room = room < len ? len : room;
		s = NULL;
		if (room <= SCRATCH_MAX && !mir_take(c->c, LIMIT_QUEUED, room)) {
			s = aligned_alloc(64, (sizeof(*s) + room + 63) & ~63ull);
			if (!s)
				mir_give(c->c->m, LIMIT_QUEUED, room);
		}
		if (s) {
			s->len = room;
			s->next = c->object->scratch;
			c->object->scratch = s;
		} else {
			c->rc = QCU_ERR_MemoryAllocation;
			c->bad = true;
		}
	}
	pthread_mutex_unlock(&lock);
	return s ? s->at : NULL;
}

void lib_scratch_free(struct mirror *m, struct lib_object *o)
{
	struct lib_scratch *s;

	while ((s = o->scratch)) {
		o->scratch = s->next;
		mir_give(m, LIMIT_QUEUED, s->len);
		free(s);
	}
}

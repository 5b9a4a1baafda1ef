/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of this folder share. */
#ifndef QCU_LIBS_IMPL_H
#define QCU_LIBS_IMPL_H

#include <stddef.h>
#include <string.h>

#include "qcu-device/libs/libs.h"

/*
 * guard.c: returns run(arg). If the library lets an exception of C++ out, it ends here, and c->rc
 * is set. Frames between must hold nothing.
 */
int lib_guarded(struct lib_call *c, const char *name, int (*run)(void *arg), void *arg);

/* scratch.c: all of an object. */
void lib_scratch_free(struct mirror *m, struct lib_object *o);

/* A call of which nothing has been taken. */
static inline void lib_begin(struct lib_call *l, struct call *c)
{
	memset(l, 0, offsetof(struct lib_call, made));
	l->c = c;
}

/* object.c */
int lib_create(struct lib_call *c);
int lib_destroy(struct lib_call *c);
/*
 * Makes settings in an object of a kind. Where *native is NULL the first of them makes it. False:
 * they are not well-formed.
 */
bool lib_make_settings(struct lib_call *c, void **native, uint32_t kind, const uint8_t *at,
		       const uint8_t *end);
/* done: the library has made the call without an error. Its objects may be used by others. */
void lib_put(struct lib_call *c, bool done);

/*
 * load.c: the library of the host, loaded when it is first used. NULL: it is not there, and `why`
 * says so. lib_named: its function with this name, or NULL.
 */
struct lib_loaded *lib_load(struct mirror *m, const struct lib_library *lib, char *why,
			    size_t size);
void *lib_kind_symbol(struct mirror *m, struct lib_loaded *l, uint32_t kind, bool destroy);
void *lib_named(struct mirror *m, struct lib_loaded *l, const char *name);
/*
 * What the files of the call's library keep for the session: `size` bytes, zeros at first, under a
 * lock of theirs. NULL: there is no memory.
 */
void *lib_own(struct lib_call *c, size_t size);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Descriptors: objects that consist only of the settings that the program has made in them. They
 * live in the guest and are sent whole. The mirror makes the library's object for one call.
 */
#include "qcu-device/libs/impl.h"

/* Room for one that ends with the program's call. It is NULL as long as nothing makes it. */
static void **reserve_descriptor(struct lib_call *c, uint32_t kind)
{
	struct lib_call *root = c->root ? c->root : c;

	if (c->bad || c->refused)
		return NULL;
	if (root->made_count == LIB_DESCRIPTORS) {
		c->bad = true;
		return NULL;
	}
	root->made[root->made_count].kind = kind;
	root->made[root->made_count].native = NULL;
	return &root->made[root->made_count++].native;
}

/* A new one in its first state. */
static void **create_descriptor(struct lib_call *c, uint32_t kind)
{
	void **native = reserve_descriptor(c, kind);
	int (*create)(void **native) = NULL;

	if (!native)
		return NULL;
	*(void **)&create = lib_kind_symbol(c->c->m, c->loaded, kind, false);
	if (create)
		c->refused = create(native);
	else
		c->bad = true;
	return native;
}

void *lib_make(struct lib_call *c, uint32_t kind)
{
	void **native = create_descriptor(c, kind);

	return native && !c->refused ? *native : NULL;
}

void *lib_made(struct lib_call *c, uint32_t kind)
{
	return c->self ? c->self : reserve_descriptor(c, kind);
}

void *lib_descriptor(struct lib_call *c, uint32_t kind)
{
	void **native = NULL;
	const uint8_t *at;
	uint64_t len;

	if (c->self && !c->self_taken) {
		c->self_taken = true;
		return *c->self;
	}
	len = lib_value(c);
	if (!len--)
		return NULL;
	at = lib_bytes(c, len);
	if (at)
		native = c->lib->kinds[kind].create ? create_descriptor(c, kind)
						    : reserve_descriptor(c, kind);
	if (!native)
		return NULL;
	if (!c->bad && !c->refused && !lib_make_settings(c, native, kind, at, at + len))
		c->bad = true;
	return *native;
}

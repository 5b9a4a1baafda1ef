// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Descriptors: objects that are nothing but what the program has set in them. They live in the
 * guest and travel whole, and the mirror makes them for one call.
 */
#include "qcu-device/libs/impl.h"

void *lib_make(struct lib_call *c, uint32_t kind)
{
	struct lib_call *root = c->root ? c->root : c;
	int (*create)(void **native) = NULL;
	void *native = NULL;

	if (c->bad || c->refused)
		return NULL;
	*(void **)&create = lib_kind_symbol(c->c->m, c->loaded, kind, false);
	if (!create || root->made_count == LIB_DESCRIPTORS) {
		c->bad = true;
		return NULL;
	}
	c->refused = create(&native);
	if (c->refused)
		return NULL;
	root->made[root->made_count].kind = kind;
	root->made[root->made_count++].native = native;
	return native;
}

void *lib_descriptor(struct lib_call *c, uint32_t kind)
{
	void *native;
	const uint8_t *at;
	uint64_t len;

	if (c->self && !c->self_taken) {
		c->self_taken = true;
		return c->self;
	}
	len = lib_value(c);
	if (!len--)
		return NULL;
	at = lib_bytes(c, len);
	native = at ? lib_make(c, kind) : NULL;
	if (native && !lib_make_settings(c, native, kind, at, at + len))
		c->bad = true;
	return native;
}

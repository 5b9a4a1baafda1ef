/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Links several images into one: PTX text, as the linked units of a program are. Each image is
 * tried when it is added, so that an error is reported with its own line. The linked text is tried
 * again: then nothing may be missing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/code/code.h"
#include "qcu-device/soft/gpu/soft.h"

struct be_link {
	struct be *be;
	unsigned int dev;
	struct soft_units units;
	uint64_t cost; /* bytes of all texts that count against the limit for modules */
	char *text;
	size_t len;
};

int soft_link_create(struct be *be, unsigned int dev, const struct qcu_jit *options,
		     struct be_link **out)
{
	struct be_link *l;
	int err = atomic_load(&be->sticky);

	(void)options; /* there is no machine code for which they could matter */
	*out = NULL;
	if (err)
		return err;
	l = calloc(1, sizeof(*l));
	if (!l)
		return QCU_ERR_MemoryAllocation;
	l->be = be;
	l->dev = dev;
	*out = l;
	return QCU_ERR_Success;
}

static int charge(struct be_link *l, size_t bytes)
{
	struct be *be = l->be;

	if (!be->charge_module || !bytes)
		return QCU_ERR_Success;
	if (!be->charge_module(be->charge_ctx, (int64_t)bytes))
		return QCU_ERR_MemoryAllocation;
	l->cost += bytes;
	return QCU_ERR_Success;
}

/* missing: report what is missing. */
static int try(struct be_link *l, const char *text, size_t len, bool missing, struct be_jit *jit)
{
	struct ptx_env env = l->be->dev[l->dev].env;
	struct ptx_diag diag = {0};
	struct ptx_module *m;
	enum ptx_status st = ptx_load(text, len, &env, &m, &diag);
	const char *name;

	if (st != PTX_OK)
		return soft_jit_status(l->be, jit, st, &diag);
	name = missing ? ptx_missing(m) : NULL;
	if (name) {
		snprintf(diag.text, sizeof(diag.text), "'%.100s' is not defined", name);
		soft_jit_tell(l->be, jit, 0, "", diag.text);
	}
	ptx_unload(m);
	return name ? (int)QCU_ERR_InvalidPtx : (int)QCU_ERR_Success;
}

/* What has been linked so far lacks a unit that is added later. */
static void drop_linked(struct be_link *l)
{
	if (l->be->charge_module && l->text) {
		l->be->charge_module(l->be->charge_ctx, -(int64_t)l->len);
		l->cost -= l->len;
	}
	free(l->text);
	l->text = NULL;
}

/* Takes over the texts of the units. */
static int append_units(struct be_link *l, struct soft_units *more)
{
	size_t count = l->units.count + more->count;
	struct soft_unit *unit = realloc(l->units.unit, count * sizeof(*unit));

	if (!unit)
		return QCU_ERR_MemoryAllocation;
	memcpy(unit + l->units.count, more->unit, more->count * sizeof(*unit));
	l->units = (struct soft_units){.unit = unit, .count = count};
	free(more->unit);
	*more = (struct soft_units){0};
	return QCU_ERR_Success;
}

int soft_link_add(struct be *be, struct be_link *l, uint32_t type, const void *image, size_t len,
		  struct be_jit *jit)
{
	int err = atomic_load(&be->sticky);
	struct soft_units units;
	char why[256] = "";
	size_t i;

	(void)type; /* the image says it itself */
	if (err)
		return err;
	err = soft_fatbin_read(image, len, be->sm, &units, why, sizeof(why));
	if (err) {
		if (why[0])
			soft_jit_tell(be, jit, 0, "", why);
		return err;
	}
	for (i = 0; i < units.count && !err; i++) {
		err = charge(l, units.unit[i].len);
		if (!err)
			err = try(l, units.unit[i].text, units.unit[i].len, false, jit);
	}
	if (!err)
		err = append_units(l, &units);
	if (!err)
		drop_linked(l);
	soft_units_free(&units);
	return err;
}

int soft_link_complete(struct be *be, struct be_link *l, struct be_jit *jit, const void **image,
		       size_t *len)
{
	int err = atomic_load(&be->sticky);
	char why[256] = "";

	if (err)
		return err;
	if (!l->units.count)
		return QCU_ERR_InvalidValue;
	if (!l->text) {
		err = soft_link(&l->units, &l->text, &l->len, why, sizeof(why));
		if (err && why[0])
			soft_jit_tell(be, jit, 0, "", why);
		if (!err)
			err = charge(l, l->len);
		if (!err)
			err = try(l, l->text, l->len, true, jit);
	}
	/* With its NUL, so that it can be loaded as it is. */
	*image = l->text;
	*len = l->len + 1;
	return err;
}

int soft_link_destroy(struct be *be, struct be_link *l)
{
	if (l->cost)
		be->charge_module(be->charge_ctx, -(int64_t)l->cost);
	soft_units_free(&l->units);
	free(l->text);
	free(l);
	return QCU_ERR_Success;
}

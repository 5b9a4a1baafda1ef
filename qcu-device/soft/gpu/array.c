// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CUDA arrays of the software GPU. An array is rows without gaps in device memory, and its levels
 * follow each other. This file also copies boxes from and to arrays, as work in a stream.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/gpu/soft.h"

/*
 * A copy from unregistered memory first copies up to this many bytes aside. All other copies from
 * or to unregistered memory are done before the call returns.
 */
#define SMALL (64u << 10)

struct box_work {
	struct soft_work work;
	struct be *be;
	struct be_box box;
	unsigned char aside[];
};

/* Checks the sizes against those that props.c announces. */
static bool size_ok(const struct be_array_desc *d)
{
	bool layered = d->flags & BE_ARRAY_LAYERED, cube = d->flags & BE_ARRAY_CUBEMAP;
	uint32_t most = 131072;

	if (!d->width ||
	    d->flags & ~(BE_ARRAY_LAYERED | BE_ARRAY_SURFACE | BE_ARRAY_CUBEMAP | BE_ARRAY_GATHER))
		return false;
	if (layered || cube || d->levels)
		most = 32768;
	if (d->flags & BE_ARRAY_GATHER && (!d->height || (d->depth && !layered && !cube)))
		return false;
	if (cube)
		return d->width == d->height && d->width <= most && d->depth && d->depth % 6 == 0 &&
		       (layered ? d->depth <= 2046 : d->depth == 6);
	if (layered)
		return d->depth && d->depth <= 2048 && d->width <= most && d->height <= most;
	if (d->depth)
		return d->height && d->width <= 16384 && d->height <= 16384 && d->depth <= 16384;
	return d->width <= most && d->height <= 65536;
}

static unsigned int levels_of(const struct be_array_desc *d)
{
	uint32_t size[3], n = 1;

	be_array_extent(d, 0, size);
	while (size[0] > 1 || size[1] > 1 ||
	       (size[2] > 1 && !(d->flags & (BE_ARRAY_LAYERED | BE_ARRAY_CUBEMAP)))) {
		be_array_extent(d, n, size);
		n++;
	}
	return n;
}

static int place_array_on_phys(struct be *be, struct be_array *a, const struct be_phys *p,
			       uint64_t offset)
{
	int sticky = atomic_load(&be->sticky);

	a->placed = true;
	if (offset % a->elem == 0)
		a->addr = soft_phys_place(p, offset, a->bytes);
	return sticky ? sticky : a->addr ? (int)QCU_ERR_Success : (int)QCU_ERR_InvalidValue;
}

int soft_array_create(struct be *be, unsigned int dev, const struct be_array_desc *desc,
		      struct be_phys *p, uint64_t offset, struct be_array **out)
{
	uint32_t elem = be_array_elem(desc), i;
	struct be_array *a;
	int rc;

	if (!elem || desc->kind > 2 || (desc->kind == 2 && desc->bits[0] == 8))
		return QCU_ERR_InvalidChannelDescriptor;
	if (!size_ok(desc) || desc->levels > levels_of(desc) || desc->levels > QCU_LEVELS_MAX)
		return QCU_ERR_InvalidValue;
	a = calloc(1, sizeof(*a));
	if (!a)
		return QCU_ERR_MemoryAllocation;
	a->desc = *desc;
	a->dev = dev;
	a->elem = elem;
	a->levels = desc->levels ? desc->levels : 1;
	for (i = 0; i < a->levels; i++) {
		struct soft_level *l = &a->level[i];

		be_array_extent(desc, i, l->size);
		l->pitch = (uint64_t)l->size[0] * elem;
		l->slice = l->pitch * l->size[1];
		l->addr = a->bytes;
		a->bytes += (l->slice * l->size[2] + 511) / 512 * 512;
	}
	rc = p ? place_array_on_phys(be, a, p, offset)
	       : soft_mem_alloc(be, dev, a->bytes, &a->addr);
	if (rc) {
		free(a);
		return rc;
	}
	/* Surface writes are not tracked, so the whole array counts as written. */
	soft_check_filled(be, a->addr, a->bytes);
	for (i = 0; i < a->levels; i++)
		a->level[i].addr += a->addr;
	*out = a;
	return QCU_ERR_Success;
}

int soft_array_destroy(struct be *be, struct be_array *a)
{
	int rc = QCU_ERR_Success;

	/* Copies that were queued before use the array itself, too. */
	if (a->placed)
		soft_wait(be, NULL);
	else
		rc = soft_mem_end(be, a->addr);

	free(a);
	return rc;
}

/* Returns the first byte of a box, and stores the distance between rows and between slices. */
static unsigned char *first_byte_of_box(const struct be_side *e, uint64_t *pitch, uint64_t *slice)
{
	const struct soft_level *l;

	if (!e->array) {
		*pitch = e->pitch;
		*slice = e->pitch * e->rows;
		return (unsigned char *)(uintptr_t)e->addr;
	}
	l = &e->array->level[e->level];
	*pitch = l->pitch;
	*slice = l->slice;
	return (unsigned char *)(uintptr_t)(l->addr + e->z * l->slice + e->y * l->pitch + e->x);
}

static void move_box(struct be *be, const struct be_box *b)
{
	uint64_t to_pitch, to_slice, from_pitch, from_slice, y, z;
	unsigned char *to = first_byte_of_box(&b->dst, &to_pitch, &to_slice);
	const unsigned char *from = first_byte_of_box(&b->src, &from_pitch, &from_slice);

	for (z = 0; z < b->depth; z++)
		for (y = 0; y < b->height; y++) {
			unsigned char *row = to + z * to_slice + y * to_pitch;

			memmove(row, from + z * from_slice + y * from_pitch, b->width);
			/* Surface writes are not tracked: all of an array counts as written. */
			if (b->src.array)
				soft_check_filled(be, (uintptr_t)row, b->width);
			else
				soft_check_copied(be, row, from + z * from_slice + y * from_pitch,
						  b->width);
		}
}

static uint64_t span(const struct be_side *e, const struct be_box *b)
{
	return e->pitch * (e->rows * (b->depth - 1) + b->height - 1) + b->width;
}

static int box_run(struct soft_work *w)
{
	const struct box_work *b = (struct box_work *)w;
	const struct be_side *dst = &b->box.dst, *src = &b->box.src;

	if ((!dst->array && !soft_work_usable(b->be, w, dst->addr, span(dst, &b->box))) ||
	    (!src->array && src->addr != (uintptr_t)b->aside &&
	     !soft_work_usable(b->be, w, src->addr, span(src, &b->box))))
		return QCU_ERR_IllegalAddress;
	move_box(b->be, &b->box);
	return 0;
}

int soft_copy_box(struct be *be, const struct be_box *box, struct be_stream *s)
{
	const struct be_side *sides[2] = {&box->dst, &box->src};
	uint64_t bytes = box->width * box->height * box->depth;
	int rc = atomic_load(&be->sticky), i;
	enum soft_how how = bytes <= SMALL ? SOFT_SMALL : SOFT_QUEUE;
	bool aside = false;
	struct box_work *w;

	if (rc || !bytes)
		return rc;
	for (i = 0; i < 2; i++) {
		const struct be_side *e = sides[i];

		if (e->array)
			continue;
		if (!e->host && !soft_mem_usable(be, e->addr, span(e, box)))
			return QCU_ERR_InvalidValue;
		if (!e->host || soft_host_registered(be, e->addr, span(e, box)))
			continue;
		if (e == &box->src && bytes <= SMALL)
			aside = true;
		else
			how = SOFT_WAIT;
	}
	w = malloc(sizeof(*w) + (aside ? bytes : 0));
	if (!w)
		return QCU_ERR_MemoryAllocation;
	w->work =
		(struct soft_work){.run = box_run, .busy = BE_BUSY_COPIES, .free = soft_work_free};
	w->be = be;
	w->box = *box;
	if (aside) {
		w->work.bytes = (uint32_t)bytes;
		w->box.dst = (struct be_side){
			.addr = (uintptr_t)w->aside,
			.pitch = box->width,
			.rows = box->height,
		};
		move_box(be, &w->box);
		w->box.src = w->box.dst;
		w->box.dst = box->dst;
	}
	return soft_submit(s, &w->work, how, NULL);
}

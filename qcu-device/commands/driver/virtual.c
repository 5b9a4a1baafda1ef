// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Virtual memory: reservations of addresses, memory without an address, and mappings of the second
 * into the first. The mirror remembers all three, so the backend only sees what fits together: a
 * mapping lies in one reservation and overlaps no other, a reservation is freed when nothing is
 * mapped in it, memory stays as long as something maps it.
 *
 * The lock is not held while an UNMAP waits for the GPU. The mapping is still in the tree then,
 * marked, so that nothing else can be mapped there.
 */
#define _GNU_SOURCE /* twalk_r */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/commands/driver/virtual.h"
#include "qcu-device/commands/made.h"

#define ACCESS_NONE 0u
#define ACCESS_READ 1u
#define ACCESS_BOTH 3u

struct area { /* first in both structures */
	uint64_t addr, size;
};

struct reservation {
	struct area a;
};

struct mapping {
	struct area a;
	struct handle *mem; /* held */
	uint64_t offset;    /* in it */
	bool leaving;
	uint8_t access[MIR_DEVICES_MAX];
};

/* Areas are equal if they overlap, so a search finds one that overlaps the key. */
static int compare_areas(const void *a, const void *b)
{
	const struct area *x = a, *y = b;

	if (x->addr - y->addr < y->size || y->addr - x->addr < x->size)
		return 0;
	return x->addr < y->addr ? -1 : 1;
}

bool mir_range_good(uint64_t addr, uint64_t size)
{
	return size && size - 1 <= UINT64_MAX - addr;
}

static void *find_overlapping_area(void *const *tree, uint64_t addr, uint64_t size)
{
	const struct area key = {.addr = addr, .size = size};
	void **node = tfind(&key, tree, compare_areas);

	return node ? *node : NULL;
}

static bool is_inside_area(uint64_t addr, uint64_t size, const struct area *a)
{
	return addr >= a->addr && addr - a->addr <= a->size && size <= a->size - (addr - a->addr);
}

/* Are these sizes and addresses, or-ed, a multiple of what the device maps at least? */
static int check_grain(struct call *c, uint64_t numbers, uint64_t *bytes)
{
	int rc;

	*bytes = 0;
	rc = c->m->cfg.ops->phys_grain(c->m->be, c->cmd->device, false, bytes);
	if (rc || !*bytes)
		return rc ? rc : QCU_ERR_NotSupported;
	return numbers % *bytes ? QCU_ERR_InvalidValue : QCU_ERR_Success;
}

/* ---- addresses ---- */

static void give_reservation(struct mirror *m, uint64_t size)
{
	mir_give(m, LIMIT_ALLOCATIONS, 1);
	mir_give(m, LIMIT_RESERVED, size);
}

int mir_va_reserve(struct call *c, struct qcu_va_reserve *vr)
{
	struct mirror *m = c->m;
	struct reservation *r;
	uint64_t unit;
	void *node;
	int rc = check_grain(c, vr->size, &unit);

	if (!rc)
		rc = mir_take(c, LIMIT_ALLOCATIONS, 1);
	if (rc)
		return rc;
	rc = mir_take(c, LIMIT_RESERVED, vr->size);
	if (rc) {
		mir_give(m, LIMIT_ALLOCATIONS, 1);
		return rc;
	}
	r = calloc(1, sizeof(*r));
	rc = r ? m->cfg.ops->va_reserve(m->be, vr->size, vr->align > unit ? vr->align : unit,
					&r->a.addr)
	       : (int)QCU_ERR_MemoryAllocation;
	if (rc)
		goto fail;
	r->a.size = vr->size;
	pthread_mutex_lock(&m->va_lock);
	node = tsearch(r, &m->reservations, compare_areas);
	pthread_mutex_unlock(&m->va_lock);
	if (!node || *(struct reservation **)node != r) {
		m->cfg.ops->va_free(m->be, r->a.addr, r->a.size);
		rc = QCU_ERR_MemoryAllocation;
		goto fail;
	}
	vr->addr = r->a.addr;
	return QCU_ERR_Success;
fail:
	give_reservation(m, vr->size);
	free(r);
	return rc;
}

int mir_va_free(struct call *c, struct qcu_va_free *vf)
{
	struct mirror *m = c->m;
	struct reservation *r;
	int rc;

	pthread_mutex_lock(&m->va_lock);
	r = find_overlapping_area(&m->reservations, vf->addr, 1);
	if (!r || r->a.addr != vf->addr || r->a.size != vf->size ||
	    find_overlapping_area(&m->mappings, vf->addr, vf->size))
		r = NULL;
	else
		tdelete(r, &m->reservations, compare_areas);
	pthread_mutex_unlock(&m->va_lock);
	if (!r)
		return QCU_ERR_InvalidValue;
	rc = m->cfg.ops->va_free(m->be, r->a.addr, r->a.size);
	give_reservation(m, r->a.size);
	free(r);
	return rc;
}

/* ---- memory ---- */

void mir_phys_end(struct mirror *m, struct handle *h)
{
	if (h->shared)
		mir_share_end(m, &h->token);
	m->cfg.ops->phys_destroy(m->be, h->phys);
	if (h->imported) {
		mir_share_close(m, &h->token);
		return;
	}
	count_sub(m->counts, COUNT_DEVICE, h->bytes);
	mir_give_memory(m, h->device, h->bytes);
}

int mir_phys_create(struct call *c, struct qcu_phys_create *r, struct handle *h)
{
	struct mirror *m = c->m;
	bool compressible = false;
	uint64_t unit;
	int rc = check_grain(c, r->size, &unit);

	h->bytes = r->size;
	h->shareable = r->flags & QCU_PHYS_SHAREABLE;
	if (!rc)
		rc = mir_take_memory_from_pools(m, h->device, h->bytes);
	if (rc)
		return rc;
	rc = m->cfg.ops->phys_create(m->be, h->device, h->bytes, r->flags, &h->phys, &compressible);
	r->compressible = compressible;
	if (rc)
		mir_give_memory(m, h->device, h->bytes);
	else
		count_add(m->counts, COUNT_DEVICE, h->bytes);
	return rc;
}

/* ---- mappings ---- */

/* The mapping has left the backend. */
static void end_mapping(struct mirror *m, struct mapping *p)
{
	handles_put(&m->handles, p->mem);
	mir_give(m, LIMIT_ALLOCATIONS, 1);
	free(p);
}

/* The caller holds va_lock, and has room for the mapping. */
static int map_into_reservation(struct mirror *m, struct mapping *p, uint64_t offset)
{
	const struct reservation *r = find_overlapping_area(&m->reservations, p->a.addr, 1);
	int rc;

	if (!r || !is_inside_area(p->a.addr, p->a.size, &r->a) ||
	    find_overlapping_area(&m->mappings, p->a.addr, p->a.size))
		return QCU_ERR_InvalidValue;
	if (!tsearch(p, &m->mappings, compare_areas))
		return QCU_ERR_MemoryAllocation;
	rc = m->cfg.ops->phys_map(m->be, p->mem->phys, offset, p->a.addr, p->a.size);
	if (rc)
		tdelete(p, &m->mappings, compare_areas);
	return rc;
}

int mir_phys_map(struct call *c, struct qcu_phys_map *r, struct handle *h)
{
	struct mirror *m = c->m;
	struct mapping *p;
	uint64_t unit;
	int rc = check_grain(c, r->addr | r->size | r->offset, &unit);

	if (!rc && (r->offset > h->bytes || r->size > h->bytes - r->offset))
		rc = QCU_ERR_InvalidValue;
	if (!rc)
		rc = mir_take(c, LIMIT_ALLOCATIONS, 1);
	if (rc)
		return rc;
	p = calloc(1, sizeof(*p));
	if (!p) {
		mir_give(m, LIMIT_ALLOCATIONS, 1);
		return QCU_ERR_MemoryAllocation;
	}
	*p = (struct mapping){.a = {.addr = r->addr, .size = r->size}, .offset = r->offset};
	p->mem = handle_hold(&m->handles, h);
	pthread_mutex_lock(&m->va_lock);
	rc = map_into_reservation(m, p, r->offset);
	pthread_mutex_unlock(&m->va_lock);
	if (rc)
		end_mapping(m, p);
	return rc;
}

/*
 * Does the range consist of whole mappings, none of which is leaving? The caller holds va_lock, and
 * the range does not wrap.
 */
static bool whole(struct mirror *m, uint64_t addr, uint64_t size)
{
	while (size) {
		const struct mapping *p = find_overlapping_area(&m->mappings, addr, 1);

		if (!p || p->leaving || p->a.addr != addr || p->a.size > size)
			return false;
		addr += p->a.size;
		size -= p->a.size;
	}
	return true;
}

/* Reserved addresses at which there is nothing: unmapping them is no error. The lock is held. */
static bool nothing_mapped(struct mirror *m, uint64_t addr, uint64_t size)
{
	const struct reservation *r = find_overlapping_area(&m->reservations, addr, 1);

	return r && is_inside_area(addr, size, &r->a) &&
	       !find_overlapping_area(&m->mappings, addr, size);
}

static int unmap(struct mirror *m, struct mapping *p)
{
	struct held_leaving leaving;
	int rc;

	held_leave(&m->held, &leaving, p->a.addr, p->a.size);
	rc = m->cfg.ops->phys_unmap(m->be, p->a.addr, p->a.size);
	held_gone(&m->held, &leaving);
	pthread_mutex_lock(&m->va_lock);
	tdelete(p, &m->mappings, compare_areas);
	pthread_mutex_unlock(&m->va_lock);
	end_mapping(m, p);
	return rc;
}

int mir_phys_unmap(struct call *c, struct qcu_phys_unmap *pu)
{
	struct mirror *m = c->m;
	uint64_t addr = pu->addr, end = pu->addr + pu->size;
	struct mapping *p;
	int rc = QCU_ERR_Success, err;
	bool ok;

	pthread_mutex_lock(&m->va_lock);
	if (nothing_mapped(m, pu->addr, pu->size)) {
		pthread_mutex_unlock(&m->va_lock);
		return QCU_ERR_Success;
	}
	ok = whole(m, pu->addr, pu->size);
	for (; ok && addr != end; addr += p->a.size) {
		p = find_overlapping_area(&m->mappings, addr, 1);
		p->leaving = true;
	}
	pthread_mutex_unlock(&m->va_lock);
	if (!ok)
		return QCU_ERR_InvalidValue;
	c->waited = true;
	for (addr = pu->addr; addr != end;) {
		pthread_mutex_lock(&m->va_lock);
		p = find_overlapping_area(&m->mappings, addr, 1);
		pthread_mutex_unlock(&m->va_lock);
		addr += p->a.size;
		err = unmap(m, p);
		rc = rc ? rc : err;
	}
	return rc;
}

bool mir_access_known(uint32_t flags)
{
	return flags == ACCESS_NONE || flags == ACCESS_READ || flags == ACCESS_BOTH;
}

int mir_phys_access_set(struct call *c, struct qcu_phys_access_set *as)
{
	struct mirror *m = c->m;
	uint64_t addr = as->addr, size = as->size;
	int rc = QCU_ERR_Success;

	pthread_mutex_lock(&m->va_lock);
	if (!whole(m, addr, size))
		rc = QCU_ERR_InvalidValue;
	while (size && !rc) {
		struct mapping *p = find_overlapping_area(&m->mappings, addr, 1);

		rc = m->cfg.ops->phys_access(m->be, p->a.addr, p->a.size, as->peer, as->flags);
		if (!rc)
			p->access[as->peer] = (uint8_t)as->flags;
		if (!rc && as->flags)
			p->mem->reached = true;
		addr += p->a.size;
		size -= p->a.size;
	}
	pthread_mutex_unlock(&m->va_lock);
	return rc;
}

int mir_phys_access_get(struct call *c, struct qcu_phys_access_get *ag)
{
	struct mirror *m = c->m;
	const struct mapping *p;
	int rc = QCU_ERR_InvalidValue;

	pthread_mutex_lock(&m->va_lock);
	p = find_overlapping_area(&m->mappings, ag->addr, 1);
	if (p && !p->leaving) {
		ag->flags = p->access[ag->peer];
		rc = QCU_ERR_Success;
	}
	pthread_mutex_unlock(&m->va_lock);
	return rc;
}

void mir_virtual_end(struct mirror *m)
{
	struct reservation *r;
	struct mapping *p;

	while (m->mappings) {
		p = *(struct mapping **)m->mappings;
		m->cfg.ops->phys_unmap(m->be, p->a.addr, p->a.size);
		tdelete(p, &m->mappings, compare_areas);
		end_mapping(m, p);
	}
	while (m->reservations) {
		r = *(struct reservation **)m->reservations;
		m->cfg.ops->va_free(m->be, r->a.addr, r->a.size);
		tdelete(r, &m->reservations, compare_areas);
		give_reservation(m, r->a.size);
		free(r);
	}
}

/* ---- what a saved session has of this ---- */

struct area_list {
	struct mir_area *to; /* NULL: only counts */
	size_t count;
	bool mappings;
};

/* In the order of their addresses. */
static void list_area(const void *node, VISIT visit, void *arg)
{
	struct area_list *l = arg;

	if (visit != postorder && visit != leaf)
		return;
	if (l->to && l->mappings) {
		const struct mapping *p = *(const struct mapping *const *)node;

		l->to[l->count] = (struct mir_area){
			.addr = p->a.addr, .size = p->a.size, .mem = p->mem, .offset = p->offset};
		memcpy(l->to[l->count].access, p->access, sizeof(p->access));
	} else if (l->to) {
		const struct reservation *r = *(const struct reservation *const *)node;

		l->to[l->count] = (struct mir_area){.addr = r->a.addr, .size = r->a.size};
	}
	l->count++;
}

struct mir_area *mir_virtual_list(struct mirror *m, bool mappings, size_t *count)
{
	const void *root = mappings ? m->mappings : m->reservations;
	struct area_list l = {.mappings = mappings};

	if (root)
		twalk_r(root, list_area, &l);
	l.to = calloc(l.count + 1, sizeof(*l.to));
	l.count = 0;
	if (l.to && root)
		twalk_r(root, list_area, &l);
	*count = l.count;
	return l.to;
}

/* ---- memory for other processes ---- */

int mir_phys_export(struct call *c, struct qcu_phys_export *px, struct handle *h)
{
	struct mirror *m = c->m;
	struct share share = {.kind = SHARE_PHYS};
	int rc = QCU_ERR_Success;

	if (!m->cfg.shares)
		return QCU_ERR_NotSupported;
	pthread_mutex_lock(&m->import_lock);
	if (h->imported || !h->shareable)
		rc = QCU_ERR_InvalidValue;
	if (!rc && !h->shared) {
		share.size = share.charged = h->bytes;
		share.device = h->device;
		rc = m->cfg.ops->phys_export(m->be, h->phys, share.handle);
		if (!rc)
			rc = mir_share_put(m, &share, &h->token);
		h->shared = !rc;
	}
	if (!rc)
		px->token = h->token;
	pthread_mutex_unlock(&m->import_lock);
	return rc;
}

int mir_phys_import(struct call *c, struct qcu_phys_import *pi, struct handle *h)
{
	struct mirror *m = c->m;
	struct share share;
	int rc;

	if (!m->cfg.shares)
		return QCU_ERR_NotSupported;
	rc = mir_share_open(m, &pi->token, SHARE_PHYS, &share);
	if (rc)
		return rc;
	h->bytes = share.size;
	h->imported = true;
	h->token = pi->token;
	rc = m->cfg.ops->phys_import(m->be, h->device, share.handle, h->bytes, &h->phys);
	if (rc)
		mir_share_close(m, &pi->token);
	else
		pi->size = share.size;
	return rc;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Small pinned allocations share slabs. To map and to register memory costs far more than the rest
 * of an allocation, and hardly depends on how much it is; and each mapping takes the addresses of a
 * whole chunk. NVIDIA's cudaMallocHost shares in the same way.
 *
 * pinned.c makes slabs and gives them back; this file divides them. A block of a slab is given to
 * its next owner only after the GPU is idle, as with all pinned memory (recycle.c).
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/link/fork.h"
#include "qcu-library/malloc/malloc_region.h"
#include "qcu-library/malloc/malloc_tree.h"
#include "qcu-library/memory/memory.h"

/* Empty slabs that are kept. */
#define SPARE 1

struct slab {
	struct qcul_node node; /* the first member, so that a node is a slab */
	struct qcul_region *region;
	unsigned int epoch;
	struct slab *next, **link; /* slabs of this epoch; link: what points to this slab */
};

static struct {
	struct qcul_tree tree;
} process;
/* A forked child makes slabs of its own. Those of the parent go when their last block is freed. */
static struct {
	struct slab *slabs; /* the newest first */
	unsigned int empty;
} session;
QCUL_AT_FORK(QCUL_FORK_SLABS, QCUL_SESSION)

static void put_first(struct slab *s)
{
	s->next = session.slabs;
	s->link = &session.slabs;
	if (session.slabs)
		session.slabs->link = &s->next;
	session.slabs = s;
}

static void take_out(struct slab *s)
{
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
}

/* The slab is empty. The caller holds the lock, and frees the slab's tables with
 * free_slab_tables(). */
static void discard_slab(struct slab *s)
{
	qcul_tree_remove(&process.tree, &s->node);
	if (s->epoch == qcul_epoch()) {
		take_out(s);
		session.empty--;
	}
}

static void free_slab_tables(struct slab *s, struct qcul_range *gone)
{
	*gone = (struct qcul_range){
		.start = s->node.start,
		.len = s->node.len,
		.epoch = s->epoch,
	};
	qcul_region_delete(s->region);
	free(s);
}

void *qcul_slab_take(size_t len)
{
	uint32_t n = (uint32_t)(len / QCUL_PAGE), page = QCUL_REGION_FULL, dirty = 0;
	void *addr = NULL;
	struct slab *s;

	pthread_mutex_lock(&at_fork.lock);
	for (s = session.slabs; s; s = s->next) {
		bool was_empty = !s->region->used;

		page = qcul_region_take(s->region, s->node.start, n, QCUL_PAGE, &dirty);
		if (page == QCUL_REGION_FULL)
			continue;
		session.empty -= was_empty;
		addr = (void *)(uintptr_t)(s->node.start + page * QCUL_PAGE);
		break;
	}
	pthread_mutex_unlock(&at_fork.lock);
	/* Fresh pinned memory is zero, so a block that was used is cleared. */
	if (addr)
		memset(addr, 0, dirty * QCUL_PAGE);
	return addr;
}

bool qcul_slab_add(void *addr)
{
	struct slab *s = calloc(1, sizeof(*s));

	if (s)
		s->region = qcul_region_new(QCUL_SLAB / QCUL_PAGE);
	if (!s || !s->region) {
		free(s);
		return false;
	}
	s->node.start = (uint64_t)(uintptr_t)addr;
	s->node.len = QCUL_SLAB;
	s->epoch = qcul_epoch();
	pthread_mutex_lock(&at_fork.lock);
	qcul_tree_add(&process.tree, &s->node);
	put_first(s);
	session.empty++;
	pthread_mutex_unlock(&at_fork.lock);
	return true;
}

bool qcul_slab_give(void *ptr, struct qcul_range *gone)
{
	uint64_t addr = (uint64_t)(uintptr_t)ptr;
	bool mine;
	struct slab *s;

	gone->len = 0;
	pthread_mutex_lock(&at_fork.lock);
	s = (struct slab *)qcul_tree_find(&process.tree, addr);
	mine = s;
	if (s) {
		qcul_region_give(s->region, (uint32_t)((addr - s->node.start) / QCUL_PAGE));
		/* In a child, slabs of the parent are ordinary memory, and are not used again. */
		if (s->region->used)
			s = NULL;
		else if (s->epoch != qcul_epoch() || ++session.empty > SPARE)
			discard_slab(s);
		else
			s = NULL;
	}
	pthread_mutex_unlock(&at_fork.lock);
	if (s)
		free_slab_tables(s, gone);
	return mine;
}

bool qcul_slab_drop(struct qcul_range *gone)
{
	struct slab *s;

	pthread_mutex_lock(&at_fork.lock);
	for (s = session.slabs; s && s->region->used; s = s->next)
		;
	if (s)
		discard_slab(s);
	pthread_mutex_unlock(&at_fork.lock);
	if (s)
		free_slab_tables(s, gone);
	return s;
}

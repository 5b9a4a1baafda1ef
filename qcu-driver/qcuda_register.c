// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Registered memory of the process that does not lie in chunks. Its pages are pinned for as long as
 * the registration lasts, counted against RLIMIT_MEMLOCK, and mapped in the mirror as chunks are.
 * So commands and kernels use them in place.
 *
 * A registration is a group. Its chunks hold pinned pages. It lasts until HOST_UNREGISTER or the
 * end of the session. The pages are unpinned only after UNMAP has been answered. The mirror maps
 * the memory at the process's own address if that is free there. Else it maps the memory in the
 * annex, and the driver translates the addresses in commands.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "qcuda.h"

/* ---- the pages ---- */

/*
 * As RDMA does: counted in mm->pinned_vm, which the process sees as VmPin. qcud_group_free() takes
 * it back.
 */
static int qcud_account(struct qcud_group *group)
{
	unsigned long pages = (group->mem.end - group->mem.start) >> PAGE_SHIFT;
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;

	if (atomic64_add_return(pages, &group->mm->pinned_vm) > limit && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(pages, &group->mm->pinned_vm);
		return -ENOMEM;
	}
	group->accounted = pages;
	return 0;
}

static int qcud_chunk_pin(struct qcud_chunk *chunk, unsigned long addr, unsigned int want)
{
	while (chunk->nr < want) {
		unsigned int i;
		int got;

		got = pin_user_pages_fast(addr + ((unsigned long)chunk->nr << PAGE_SHIFT),
					  min(want - chunk->nr, 512U), FOLL_WRITE | FOLL_LONGTERM,
					  chunk->pages + chunk->nr);
		if (got <= 0)
			return got ?: -EFAULT;
		for (i = chunk->nr; i < chunk->nr + got; i++)
			if (!i || chunk->pages[i - 1] + 1 != chunk->pages[i])
				chunk->runs++;
		chunk->nr += got;
		qcud_stat_add(QCUD_STAT_PINNED_PAGES, got);
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/*
 * No other thread knows the group's chunks yet. So no lock is needed; none may be held while pages
 * are faulted in.
 */
static int qcud_group_pin(struct qcud_group *group)
{
	unsigned long addr = group->mem.start, index;
	int ret = qcud_account(group);

	for (index = 0; addr < group->mem.end && !ret; index++) {
		unsigned long bytes = qcud_chunk_bytes(&group->mem, index);
		struct qcud_chunk *chunk = qcud_chunk_new(bytes >> PAGE_SHIFT);

		if (!chunk)
			return -ENOMEM;
		chunk->pinned = true;
		ret = xa_err(xa_store(&group->mem.xa, index, chunk, GFP_KERNEL));
		if (ret) {
			qcud_chunk_put(chunk);
			return ret;
		}
		ret = qcud_chunk_pin(chunk, addr, bytes >> PAGE_SHIFT);
		group->nr_chunks++;
		group->nr_pages += chunk->nr;
		addr += bytes;
	}
	return ret;
}

/* ---- the tree, sorted by the exact ranges that were registered ---- */

static int qcud_registered_add(struct qcud_group *group)
{
	struct qcud_session *session = group->session;
	struct rb_node **link = &session->registered.rb_node;
	struct rb_node *parent = NULL;
	int ret = 0;

	spin_lock(&session->lock);
	while (*link) {
		struct qcud_group *other = rb_entry(*link, struct qcud_group, node);

		parent = *link;
		if (group->addr + group->len <= other->addr) {
			link = &parent->rb_left;
		} else if (group->addr >= other->addr + other->len) {
			link = &parent->rb_right;
		} else {
			ret = -EEXIST;
			goto out;
		}
	}
	rb_link_node(&group->node, parent, link);
	rb_insert_color(&group->node, &session->registered);
out:
	spin_unlock(&session->lock);
	return ret;
}

static struct qcud_group *qcud_registered_find(struct qcud_session *session, u64 addr)
{
	struct rb_node *node = session->registered.rb_node;

	lockdep_assert_held(&session->lock);

	while (node) {
		struct qcud_group *group = rb_entry(node, struct qcud_group, node);

		if (addr < group->addr)
			node = node->rb_left;
		else if (addr >= group->addr + group->len)
			node = node->rb_right;
		else
			return group;
	}
	return NULL;
}

/*
 * Finds the registration that contains all of [addr, addr + len), and counts a use of it. Returns
 * NULL if there is none.
 */
struct qcud_group *qcud_registered_use(struct qcud_session *session, u64 addr, u64 len)
{
	struct qcud_group *group;

	spin_lock(&session->lock);
	group = qcud_registered_find(session, addr);
	if (group && group->ready && len <= group->addr + group->len - addr)
		refcount_inc(&group->users);
	else
		group = NULL;
	spin_unlock(&session->lock);
	return group;
}

/* The mirror's address for an address of the registered memory. */
u64 qcud_registered_at(const struct qcud_group *group, u64 addr)
{
	return group->at + (addr - group->mem.start);
}

/* ---- registering ---- */

static bool qcud_gone(const struct qcud_group *group)
{
	return READ_ONCE(group->freed) || READ_ONCE(group->session->queue->dead);
}

/* Waits until the pages of a closed registration are free. A killed caller does not wait. */
void qcud_registered_wait(struct qcud_group *group)
{
	struct qcud_queue *queue = group->session->queue;
	int ret;

	qcud_queue_want(queue);
	ret = wait_event_killable(group->session->wait, qcud_gone(group));
	qcud_queue_unwant(queue);
	if (ret)
		return;
	mutex_lock(&group->mem.lock);
	mutex_unlock(&group->mem.lock);
}

static int qcud_register_at(struct qcud_session *session, u64 addr, u64 len, bool own,
			    struct qcud_group **out)
{
	unsigned long start = addr & PAGE_MASK, end = PAGE_ALIGN(addr + len);
	struct qcud_group *group;
	int ret;

	group = qcud_group_new(session, start, end);
	if (!group)
		return -ENOMEM;
	group->registered = true;
	group->addr = addr;
	group->len = len;
	group->mem.shift = ilog2(QCU_CHUNK_DEFAULT);
	mmgrab(current->mm);
	group->mm = current->mm;
	ret = qcud_registered_add(group);
	if (ret) {
		qcud_group_put(group);
		return ret;
	}
	/* The group has one reference until its pages are freed. This one is for the request. */
	kref_get(&group->refs);
	ret = qcud_group_pin(group);
	if (!ret && !qcud_place(group, own))
		ret = -ENOMEM;
	if (!ret)
		ret = qcud_group_map(group, start, end - start, QCUD_USE_READ);
	if (!ret) {
		*out = group;
		return 0;
	}
	qcud_group_close(group);
	qcud_registered_wait(group);
	qcud_group_put(group);
	return ret;
}

/* Called at the end of a request that begins or ends a registration, answered or not. */
static void qcud_registered_done(struct qcud_request *req)
{
	bool good = !req->error && req->reply.op == req->cmd.op && !req->reply.status;
	struct qcud_group *group = req->registered;

	if (good == (req->cmd.op == QCU_OP_HOST_REGISTER)) {
		spin_lock(&group->session->lock);
		group->ready = true;
		spin_unlock(&group->session->lock);
	} else {
		qcud_group_close(group);
	}
	qcud_group_put(group);
}

/*
 * Changes HOST_REGISTER of memory outside of chunks into a command about memory that the mirror
 * has. Returns the same values as qcud_group_map().
 */
int qcud_register(struct qcud_session *session, struct qcud_request *req)
{
	u64 addr = req->cmd.buf.addr, len = req->cmd.buf.len;
	struct qcud_group *group;
	int ret;

	if (len >> PAGE_SHIFT > totalram_pages())
		return -EINVAL;
	ret = qcud_register_at(session, addr, len, true, &group);
	if (ret == QCU_MAP_TAKEN)
		ret = qcud_register_at(session, addr, len, false, &group);
	if (ret)
		return ret;
	refcount_inc(&group->users);
	qcud_request_use(req, group, false);
	req->registered = group;
	req->release = qcud_registered_done;
	req->cmd.buf.addr = qcud_registered_at(group, addr);
	req->cmd.flags |= QCU_F_WINDOW;
	return 0;
}

/*
 * HOST_UNREGISTER: no new command may use the memory from now on. Chunks have no registration in
 * this tree.
 */
int qcud_unregister(struct qcud_session *session, struct qcud_request *req)
{
	u64 addr = req->cmd.host_unregister.addr;
	struct qcud_group *group;
	int ret = 0;

	spin_lock(&session->lock);
	group = qcud_registered_find(session, addr);
	if (group &&
	    (group->addr != addr || group->len != req->cmd.host_unregister.len || !group->ready))
		ret = -EINVAL;
	if (group && !ret) {
		group->ready = false;
		kref_get(&group->refs);
		req->registered = group;
		req->release = qcud_registered_done;
		req->cmd.host_unregister.addr = qcud_registered_at(group, addr);
	}
	spin_unlock(&session->lock);
	return ret;
}

/* Ends all registrations at the end of the session. */
void qcud_registered_end(struct qcud_session *session)
{
	struct qcud_group *group;
	struct rb_node *node;

	for (;;) {
		spin_lock(&session->lock);
		node = rb_first(&session->registered);
		group = node ? rb_entry(node, struct qcud_group, node) : NULL;
		if (group)
			kref_get(&group->refs);
		spin_unlock(&session->lock);
		if (!group)
			return;
		qcud_group_close(group);
		qcud_group_put(group);
	}
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which chunks of the process the mirror has. Commands may use chunks after MAP has put them into
 * the mirror's window. Their pages may go back to the kernel after UNMAP has taken them out. The
 * driver sends both commands itself (tid 0).
 *
 * The answer to an UNMAP may take as long as the GPU's work, and this work may wait for the
 * program. So no thread waits for an UNMAP, except a mapping at the same addresses, and only a few
 * UNMAPs at a time take room on the ring.
 *
 * A group counts its users: the mapping itself, and each command in flight that uses the group.
 * munmap only takes the group out of the tree, so that no new user can find it. When the last user
 * is gone, the session's work item sends UNMAP. When UNMAP is answered, the work item frees the
 * pages.
 */
#include <linux/slab.h>

#include "qcuda.h"

/* The most UNMAPs on the ring. The mirror carries out one at a time. */
#define QCUD_UNMAPS 16

/* Drops a use of the group. Any context. The last use starts the end of the group. */
void qcud_group_unuse(struct qcud_group *group)
{
	struct qcud_queue *queue = group->session->queue;

	if (refcount_dec_and_test(&group->users))
		queue_work(qcud_wq, &queue->work);
}

/* Drops the use of the group that a request holds. Any context. */
static void qcud_request_unuse(struct qcud_request *req)
{
	struct qcud_group *group = req->group;

	req->group = NULL;
	req->unuse = NULL;
	if (req->writes)
		atomic_dec(&group->writers);
	qcud_group_unuse(group);
}

/* A command uses the group until it has been answered. The caller's use becomes the command's. */
void qcud_request_use(struct qcud_request *req, struct qcud_group *group, bool writes)
{
	req->group = group;
	req->unuse = qcud_request_unuse;
	req->writes = writes;
	if (writes)
		atomic_inc(&group->writers);
}

static bool qcud_group_idle(const struct qcud_group *group)
{
	return refcount_read(&group->users) == 0;
}

/*
 * The caller that gets true frees the group: it has no user left, no mirror has its pages, and it
 * has been moved to `list`.
 */
static bool qcud_group_claim(struct qcud_group *group, struct list_head *list)
{
	lockdep_assert_held(&group->session->lock);

	if (group->claimed || !qcud_group_idle(group) || (group->sent && !group->session->detached))
		return false;
	group->claimed = true;
	list_del_init(&group->managed_node);
	qcud_place_end(group);
	list_move(&group->closing_node, list);
	return true;
}

/*
 * Frees the groups in `list`. They were taken from the session's list of closing groups for good.
 */
static void qcud_groups_free(struct qcud_session *session, struct list_head *list)
{
	struct qcud_group *group, *next;

	if (list_empty(list))
		return;
	list_for_each_entry_safe(group, next, list, closing_node) {
		list_del_init(&group->closing_node);
		qcud_group_free(group);
		qcud_group_put(group);
	}
	wake_up_all(&session->wait);
}

/* The mapping is gone. This function does not wait for the device: munmap and exit call it. */
void qcud_group_close(struct qcud_group *group)
{
	struct qcud_session *session = group->session;
	LIST_HEAD(list);
	bool last;

	spin_lock(&session->lock);
	if (group->closed) {
		spin_unlock(&session->lock);
		return;
	}
	WRITE_ONCE(group->closed, true);
	rb_erase(&group->node, group->registered ? &session->registered : &session->groups);
	list_add_tail(&group->closing_node, &session->closing);
	spin_unlock(&session->lock);

	last = refcount_dec_and_test(&group->users);
	/* A group that the mirror never saw is freed here at once. */
	spin_lock(&session->lock);
	if (!last && !session->detached)
		qcud_queue_expect(session->queue, group);
	else if (last && !qcud_group_claim(group, &list))
		queue_work(qcud_wq, &session->queue->work);
	spin_unlock(&session->lock);
	qcud_groups_free(session, &list);
}

/* An UNMAP has been answered. Called in the work item, which sends further UNMAPs afterwards. */
static void qcud_group_unmapped(struct qcud_request *req)
{
	struct qcud_group *group = req->group;
	struct qcud_session *session = group->session;
	LIST_HEAD(list);

	spin_lock(&session->lock);
	session->unmaps--;
	spin_unlock(&session->lock);
	if (!req->error && req->reply.status) {
		pr_err("qcuda: session %u: the device could not unmap %#lx-%#lx: %d\n", session->id,
		       group->mem.start, group->mem.end, req->reply.status);
		qcud_queue_kill(session->queue, -EIO);
	} else if (!req->error) {
		spin_lock(&session->lock);
		group->sent = false;
		qcud_group_claim(group, &list);
		spin_unlock(&session->lock);
		qcud_groups_free(session, &list);
	}
	qcud_group_put(group);
}

/* Sends UNMAP for groups without users, and frees those that need no UNMAP. */
static void qcud_groups_reap(struct qcud_session *session)
{
	struct qcud_group *group, *next;
	bool sent = false;
	LIST_HEAD(list);

	spin_lock(&session->lock);
	list_for_each_entry_safe(group, next, &session->closing, closing_node) {
		struct qcud_request *req = group->unmap;

		if (qcud_group_claim(group, &list) || !qcud_group_idle(group) || !req ||
		    session->unmaps == QCUD_UNMAPS)
			continue;
		/*
		 * On an error the pages stay until CLOSE is answered. On a full ring the queue
		 * calls this function again later.
		 *
		 * The request has a reference of the group: when the session ends, the group
		 * may be freed before the request.
		 */
		kref_get(&group->refs);
		req->group = group;
		req->release = qcud_group_unmapped;
		group->unmap = NULL;
		if (qcud_queue_send(session->queue, req, QCUD_SEND_WORK)) {
			group->unmap = req;
			req->release = NULL;
			req->group = NULL;
			qcud_group_put(group); /* never the last one */
			break;
		}
		qcud_stat_add(QCUD_STAT_UNMAPS, 1);
		session->unmaps++;
		sent = true;
	}
	spin_unlock(&session->lock);

	qcud_groups_free(session, &list);
	if (sent) {
		qcud_queue_kick(session->queue);
		wake_up_all(&session->wait);
	}
}

/*
 * The work item of a queue: does the work that was left to a context that may sleep. Runs once at a
 * time for each queue.
 */
void qcud_session_reap(struct work_struct *work)
{
	struct qcud_session *session = qcud_queue_reap(container_of(work, struct qcud_queue, work));

	if (session)
		qcud_groups_reap(session);
}

/*
 * Is an earlier group at these addresses still to be mapped or unmapped by another thread? The list
 * is in the order in which mappings ended. So if this group has ended too, groups behind it in the
 * list are later ones, and they wait for this group.
 */
static bool qcud_unmap_pending(const struct qcud_group *mine)
{
	u64 at = mine->at, len = mine->mem.end - mine->mem.start;
	struct qcud_session *session = mine->session;
	struct qcud_group *group;
	bool found = false;

	/* Registered memory only gets addresses that are free. */
	if (mine->registered)
		return false;
	spin_lock(&session->lock);
	list_for_each_entry(group, &session->closing, closing_node) {
		if (group == mine)
			break;
		if (group->at < at + len && at < group->at + (group->mem.end - group->mem.start)) {
			found = true;
			break;
		}
	}
	spin_unlock(&session->lock);
	return found && !READ_ONCE(session->queue->dead);
}

/* Waits for the answer to the session's MAP, if one is outstanding, and records the result. */
int qcud_map_settle(struct qcud_session *session)
{
	struct qcud_request *req = session->map_req;
	struct qcud_group *group;
	unsigned long i;
	int ret;

	lockdep_assert_held(&session->map_lock);

	if (!req)
		return 0;
	ret = qcud_request_wait(session->queue, req);
	if (ret == -EINTR)
		return ret; /* the next caller settles it */

	group = req->group;
	mutex_lock(&group->mem.lock);
	if (!ret && !req->reply.status && !group->freed) {
		for (i = req->first; i <= req->last; i++) {
			struct qcud_chunk *chunk = xa_load(&group->mem.xa, i);

			chunk->mapped = true;
		}
		group->mapped_bytes += req->cmd.map.len;
	} else if (!ret && req->reply.status && !group->mapped_bytes) {
		/* The mirror has no part of the group. Nothing must be unmapped or waited for. */
		spin_lock(&session->lock);
		group->sent = false;
		spin_unlock(&session->lock);
	}
	mutex_unlock(&group->mem.lock);

	/* The backend's error becomes the status of the command that needed the memory. */
	if (!ret && req->reply.status)
		ret = req->reply.status > 0 ? req->reply.status : -EIO;
	session->map_req = NULL;
	qcud_request_put(req);
	return ret;
}

/*
 * Makes a MAP request for the first run of chunks in [*first, last] that the mirror does not have,
 * as many chunks as one table of segments can describe. Returns NULL if the mirror has all of them.
 * A whole chunk always fits: the largest chunk, in single pages, is QCU_SEGS_MAX segments.
 */
static struct qcud_request *qcud_map_request(struct qcud_group *group, unsigned long *first,
					     unsigned long last)
{
	unsigned int nr = 0, max = 0;
	struct qcud_request *req;
	struct qcud_chunk *chunk;
	struct qcu_seg *segs;
	unsigned long i, end;
	u64 len = 0;

	lockdep_assert_held(&group->mem.lock);

	for (i = *first; i <= last; i++) {
		chunk = xa_load(&group->mem.xa, i);
		if (!chunk->mapped)
			break;
	}
	*first = i;
	for (end = i; end <= last; end++) {
		chunk = xa_load(&group->mem.xa, end);
		if (chunk->mapped || max + chunk->runs > QCU_SEGS_MAX)
			break;
		max += chunk->runs;
	}
	if (end == i)
		return NULL;

	req = qcud_request_new(QCU_OP_MAP);
	segs = kvmalloc_array(max, sizeof(*segs), GFP_KERNEL_ACCOUNT);
	if (!req || !segs) {
		kvfree(segs);
		qcud_request_put(req);
		return ERR_PTR(-ENOMEM);
	}
	for (; i < end; i++) {
		chunk = xa_load(&group->mem.xa, i);
		qcud_chunk_segs(chunk, 0, chunk->nr, segs, &nr, max);
		len += (u64)chunk->nr << PAGE_SHIFT;
	}
	if (qcud_request_payload(req, segs, nr * sizeof(*segs))) {
		qcud_request_put(req);
		return ERR_PTR(-ENOMEM);
	}
	req->cmd.flags = QCU_F_SEGS;
	req->cmd.map.va = group->at + (*first << group->mem.shift);
	req->cmd.map.len = len;
	req->cmd.map.chunk_bytes = 1U << group->mem.shift;
	req->first = *first;
	req->last = end - 1;
	/* Not `unuse`: the thread that settles the MAP needs the group after the answer. */
	refcount_inc(&group->users);
	req->group = group;
	req->release = qcud_request_unuse;
	group->sent = true;
	return req;
}

/* Waits until no earlier group at these addresses is still known to the mirror. */
int qcud_group_place_free(struct qcud_group *group)
{
	struct qcud_session *session = group->session;
	int ret;

	if (!qcud_unmap_pending(group))
		return 0;
	qcud_queue_want(session->queue);
	qcud_queue_kick(session->queue);
	ret = wait_event_killable(session->wait, !qcud_unmap_pending(group));
	qcud_queue_unwant(session->queue);
	return ret ? -EINTR : 0;
}

/*
 * Takes map_lock when the group's addresses are free in the mirror. It waits for that without the
 * lock, because the last user of the earlier group may be waiting for the lock, and so that other
 * mappings can go on.
 */
static int qcud_map_lock(struct qcud_group *group)
{
	struct qcud_session *session = group->session;

	for (;;) {
		int ret;

		if (mutex_lock_killable(&session->map_lock))
			return -EINTR;
		if (!qcud_unmap_pending(group))
			return 0;
		mutex_unlock(&session->map_lock);
		ret = qcud_group_place_free(group);
		if (ret)
			return ret;
	}
}

static int qcud_map_missing(struct qcud_group *group, unsigned long first, unsigned long last)
{
	struct qcud_session *session = group->session;
	int ret;

	/* A killed thread may have left a MAP behind, and it may be for these same chunks. */
	ret = qcud_map_settle(session);
	if (ret == -EINTR)
		return ret;

	while (first <= last) {
		struct qcud_request *req;
		u64 began;

		mutex_lock(&group->mem.lock);
		req = qcud_map_request(group, &first, last);
		mutex_unlock(&group->mem.lock);
		if (IS_ERR_OR_NULL(req))
			return PTR_ERR_OR_ZERO(req);

		first = req->last + 1;
		began = READ_ONCE(qcud_trace) ? ktime_get_ns() : 0;
		ret = qcud_queue_send(session->queue, req, QCUD_SEND_KICK | QCUD_SEND_WAIT);
		if (ret) {
			qcud_request_put(req);
			return ret;
		}
		qcud_stat_add(QCUD_STAT_MAPS, 1);
		session->map_req = req;
		ret = qcud_map_settle(session);
		if (ret)
			return ret;
		if (began)
			qcud_stat_add(QCUD_STAT_TIMED_MAP, ktime_get_ns() - began);
	}
	return 0;
}

/*
 * Makes [addr, addr + len) resident and mapped in the mirror. The range lies in the group, and the
 * caller holds a use of the group. Returns 0, -errno, or the cudaError_t with which the mirror
 * refused.
 */
int qcud_group_map(struct qcud_group *group, u64 addr, u64 len, enum qcud_use use)
{
	unsigned long first = (addr - group->mem.start) >> group->mem.shift;
	unsigned long last = (addr + len - 1 - group->mem.start) >> group->mem.shift;
	struct qcud_session *session = group->session;
	bool mapped;
	int ret;

	ret = qcud_group_populate(group, first, last, use, &mapped);
	if (ret || mapped)
		return ret;
	ret = qcud_map_lock(group);
	if (ret)
		return ret;
	ret = qcud_map_missing(group, first, last);
	mutex_unlock(&session->map_lock);
	return ret;
}

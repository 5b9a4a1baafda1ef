// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Managed memory that moves. The GPU has memory of its own for such a group, at the same addresses
 * in the mirror, and the group's chunks lie behind it. Each chunk is in one of two states:
 *
 * - It is here (QCUD_HERE): the process may have it in its page tables. The GPU's copy is as new as
 *   the chunk, except for the pages that the process has written since. The pages' dirty bits show
 *   which ones these are: the hardware sets them in the page tables, and they go from there to the
 *   pages when the chunk is taken out.
 * - It is the GPU's. The chunk is in no page tables, and its content is old. It may not exist at
 *   all.
 *
 * Before a command is sent through which the GPU uses memory, all chunks that are here are given to
 * the GPU: taken out of page tables, and what has been written is moved up. A page fault, of the
 * CPU or of get_user_pages(), brings a chunk back; if the faults run in ascending order, several at
 * once. Before the first such command after the beginning nothing needs to move: both sides have
 * zeros.
 *
 * Between its look for chunks that are here and the moment when it is on the ring, a command must
 * not be overtaken by a move down. So it holds session->launching, or move_lock if there is
 * something to move.
 *
 * A page fault lets go of mmap_lock before it waits, if the kernel allows that. The GPU may be
 * waiting for a host function of the program, and this function may need mmap_lock.
 *
 * If a move down fails, because of a fault of the GPU or the end of the mirror, the process goes on
 * with the chunk's old content. CUDA's error has told it, or will tell it, that its data is lost.
 */
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "qcuda.h"

/* The most that one page fault brings back. */
#define QCUD_AHEAD_BYTES SZ_64M

/* How many moves are on the ring at once. */
#define QCUD_MOVES 16

/* Moves that have been sent and not been waited for. */
struct qcud_moves {
	struct qcud_session *session;
	u32 flags; /* QCU_MOVE_* */
	unsigned int nr;
	int error; /* the first: 0, -errno, or a cudaError_t */
	struct qcud_request *req[QCUD_MOVES];
};

/* A part of a group, in bytes from its start. */
struct qcud_span {
	u64 from, to;
};

static u64 qcud_chunk_start(const struct qcud_group *group, unsigned long index)
{
	return (u64)index << group->mem.shift;
}

/* The number of the last chunk that can be used. */
static unsigned long qcud_last_chunk(const struct qcud_group *group)
{
	return (group->bytes - 1) >> group->mem.shift;
}

/* ---- sending moves; the caller holds move_lock ---- */

static void qcud_moves_wait(struct qcud_moves *mv)
{
	struct qcud_queue *queue = mv->session->queue;
	unsigned int i;

	if (mv->nr && mv->error != -EINTR)
		qcud_queue_kick_and_spin(queue, mv->req[mv->nr - 1],
					 READ_ONCE(mv->session->waiting));
	for (i = 0; i < mv->nr; i++) {
		/* A thread that is being killed leaves its requests to the queue. */
		int ret = mv->error == -EINTR ? -EINTR : qcud_request_wait(queue, mv->req[i]);

		if (ret == -EINTR || !mv->error)
			mv->error = ret ?: mv->req[i]->reply.status;
		qcud_request_put(mv->req[i]);
	}
	mv->nr = 0;
}

static struct qcud_request *qcud_move_new(struct qcud_group *group, u32 flags, unsigned int *max,
					  struct qcu_seg **segs)
{
	struct qcud_request *req = qcud_request_new(QCU_OP_MANAGED_MOVE);

	*max = min_t(unsigned int, *max, QCU_SEGS_MAX);
	*segs = kvmalloc_array(*max, sizeof(**segs), GFP_KERNEL_ACCOUNT);
	if (!req || !*segs) {
		kvfree(*segs);
		qcud_request_put(req);
		return NULL;
	}
	req->cmd.flags = QCU_F_SEGS;
	req->cmd.managed_move.flags = flags;
	refcount_inc(&group->users);
	req->group = group;
	req->writes = flags & QCU_MOVE_DOWN;
	if (req->writes)
		atomic_inc(&group->writers);
	return req;
}

static int qcud_move_send(struct qcud_moves *mv, struct qcud_request *req, struct qcu_seg *segs,
			  unsigned int nr)
{
	int ret = qcud_request_payload(req, segs, nr * sizeof(*segs));

	if (!ret)
		ret = qcud_queue_send(mv->session->queue, req, QCUD_SEND_WAIT);
	if (ret) {
		qcud_request_put(req);
		return ret;
	}
	qcud_stat_add(mv->flags & QCU_MOVE_DOWN ? QCUD_STAT_MOVED_DOWN : QCUD_STAT_MOVED_UP,
		      req->cmd.managed_move.len);
	mv->req[mv->nr++] = req;
	return 0;
}

/*
 * Moves [from, to) of the group, in pages. All chunks there exist, and stay what they are while the
 * caller holds move_lock. Only the last answers are left to wait for.
 */
static void qcud_move(struct qcud_moves *mv, struct qcud_group *group, u64 from, u64 to)
{
	while (from < to && !mv->error) {
		unsigned int nr = 0, max = min_t(u64, (to - from) >> PAGE_SHIFT, QCU_SEGS_MAX);
		struct qcud_request *req;
		struct qcu_seg *segs;
		u64 at = from;

		if (mv->nr == QCUD_MOVES)
			qcud_moves_wait(mv);
		if (mv->error)
			return;
		req = qcud_move_new(group, mv->flags, &max, &segs);
		if (!req) {
			mv->error = -ENOMEM;
			return;
		}
		mutex_lock(&group->mem.lock);
		while (at < to) {
			unsigned long index = at >> group->mem.shift;
			struct qcud_chunk *chunk = xa_load(&group->mem.xa, index);
			u64 page = (at - qcud_chunk_start(group, index)) >> PAGE_SHIFT;

			if (!qcud_seg_add(segs, &nr, max, page_to_phys(chunk->pages[page]),
					  PAGE_SIZE))
				break;
			at += PAGE_SIZE;
		}
		mutex_unlock(&group->mem.lock);
		req->cmd.managed_move.va = group->at + from;
		req->cmd.managed_move.len = at - from;
		mv->error = qcud_move_send(mv, req, segs, nr);
		from = at;
	}
}

/* ---- up ---- */

#define QCUD_SPANS 64

/*
 * Which pages of a chunk have been written since it was last moved? Forgets that. The chunk has
 * been taken out of page tables. What lies between two written pages counts as written, too.
 */
static struct qcud_span qcud_chunk_written(struct qcud_group *group, unsigned long index,
					   struct qcud_chunk *chunk)
{
	u64 start = qcud_chunk_start(group, index);
	struct qcud_span span = {};
	unsigned int i;

	for (i = 0; i < chunk->nr && start + ((u64)i << PAGE_SHIFT) < group->bytes; i++) {
		u64 at = start + ((u64)i << PAGE_SHIFT);

		if (!PageDirty(chunk->pages[i]))
			continue;
		ClearPageDirty(chunk->pages[i]);
		if (!span.to)
			span.from = at;
		span.to = at + PAGE_SIZE;
	}
	return span;
}

/*
 * Gives chunks from *index on to the GPU, as long as there is room for what must be moved. Returns
 * how many spans must be moved. *index is ULONG_MAX when all chunks have been looked at.
 */
static unsigned int qcud_group_give(struct qcud_group *group, unsigned long *index,
				    struct qcud_span *spans)
{
	struct address_space *mapping = group->session->memory->f_mapping;
	struct qcud_chunk *chunk;
	unsigned int nr = 0;
	unsigned long i;

	lockdep_assert_held(&group->mem.lock);

	group->given = true;
	if (!xa_marked(&group->mem.xa, QCUD_HERE)) {
		*index = ULONG_MAX;
		return 0;
	}
	unmap_mapping_range(mapping, group->mem.start, group->mem.end - group->mem.start, 1);
	xa_for_each_marked(&group->mem.xa, i, chunk, QCUD_HERE)
	{
		struct qcud_span span;

		if (nr == QCUD_SPANS) {
			*index = i;
			return nr;
		}
		span = qcud_chunk_written(group, i, chunk);
		xa_clear_mark(&group->mem.xa, i, QCUD_HERE);
		qcud_chunk_count(group, chunk, true);
		if (!span.to)
			continue;
		if (nr && spans[nr - 1].to == span.from)
			spans[nr - 1].to = span.to;
		else
			spans[nr++] = span;
	}
	*index = ULONG_MAX;
	return nr;
}

/* The chunks could not be moved up: they are here again, and written. */
static void qcud_group_take_back(struct qcud_group *group, const struct qcud_span *spans,
				 unsigned int nr)
{
	unsigned int i;
	u64 at;

	mutex_lock(&group->mem.lock);
	for (i = 0; i < nr; i++) {
		for (at = spans[i].from; at < spans[i].to; at += PAGE_SIZE) {
			unsigned long index = at >> group->mem.shift;
			struct qcud_chunk *chunk = xa_load(&group->mem.xa, index);
			u64 page = (at - qcud_chunk_start(group, index)) >> PAGE_SHIFT;

			SetPageDirty(chunk->pages[page]);
			xa_set_mark(&group->mem.xa, index, QCUD_HERE);
		}
	}
	mutex_unlock(&group->mem.lock);
	WRITE_ONCE(group->session->here, true);
}

/* Gives all of the group to the GPU. Returns 0, -errno or a cudaError_t. */
static int qcud_group_up(struct qcud_group *group)
{
	struct qcud_moves mv = {.session = group->session};
	unsigned long index = 0;
	struct qcud_span *spans;
	unsigned int nr, i;

	spans = kmalloc_array(QCUD_SPANS, sizeof(*spans), GFP_KERNEL);
	if (!spans)
		return -ENOMEM;
	while (index != ULONG_MAX && !mv.error) {
		mutex_lock(&group->mem.lock);
		nr = group->freed || !group->moves ? 0 : qcud_group_give(group, &index, spans);
		if (group->freed || !group->moves)
			index = ULONG_MAX;
		mutex_unlock(&group->mem.lock);
		for (i = 0; i < nr; i++)
			qcud_move(&mv, group, spans[i].from, spans[i].to);
		qcud_moves_wait(&mv);
		if (mv.error)
			qcud_group_take_back(group, spans, nr);
	}
	kfree(spans);
	return mv.error;
}

/* Calls fn for each group that moves, until it fails. The caller holds move_lock. */
static int qcud_managed_each(struct qcud_session *session, int (*fn)(struct qcud_group *group))
{
	struct qcud_group *group, *next;
	int ret = 0;

	spin_lock(&session->lock);
	list_for_each_entry_safe(group, next, &session->managed, managed_node) {
		/* Without its mapping, a group is no longer used by anyone. */
		if (group->closed)
			continue;
		refcount_inc(&group->users);
		spin_unlock(&session->lock);
		ret = fn(group);
		spin_lock(&session->lock);
		/* As long as the group is used, only fn takes it out of the list. */
		if (list_empty(&group->managed_node))
			next = list_first_entry(&session->managed, struct qcud_group, managed_node);
		else
			next = list_next_entry(group, managed_node);
		qcud_group_unuse(group);
		if (ret)
			break;
	}
	spin_unlock(&session->lock);
	return ret;
}

/* ---- down ---- */

/* Is the session about to end, or has it ended? Then nothing can be moved any more. */
static bool qcud_session_over(struct qcud_session *session)
{
	bool over;

	spin_lock(&session->lock);
	over = session->ending || session->detached;
	spin_unlock(&session->lock);
	return over;
}

bool qcud_managed_here(struct qcud_group *group, unsigned long index)
{
	struct qcud_chunk *chunk = xa_load(&group->mem.xa, index);

	lockdep_assert_held(&group->mem.lock);

	if (!chunk)
		return !group->given || index > qcud_last_chunk(group);
	return xa_get_mark(&group->mem.xa, index, QCUD_HERE);
}

/* The process has touched the chunk, which was here or did not exist. */
void qcud_managed_touched(struct qcud_group *group, unsigned long index)
{
	lockdep_assert_held(&group->mem.lock);

	xa_set_mark(&group->mem.xa, index, QCUD_HERE);
	WRITE_ONCE(group->session->here, true);
}

/*
 * Makes the chunks from `first` on ready for a move down: they exist, and belong to no child. Stops
 * before a chunk that is here, and if there is no memory for more. *end is where it stopped.
 */
static int qcud_group_prepare(struct qcud_group *group, unsigned long first, unsigned long last,
			      unsigned long *end)
{
	struct qcud_chunk *chunk = NULL;
	unsigned long i;

	for (i = first; i <= last; i++) {
		mutex_lock(&group->mem.lock);
		if (group->freed || !group->moves || qcud_managed_here(group, i)) {
			mutex_unlock(&group->mem.lock);
			break;
		}
		chunk = qcud_group_chunk(group, i, i == first ? QCUD_USE_FAULT : QCUD_USE_WRITE);
		mutex_unlock(&group->mem.lock);
		if (IS_ERR(chunk))
			break;
		cond_resched();
	}
	*end = i;
	return i == first && IS_ERR(chunk) ? PTR_ERR(chunk) : 0;
}

/* The moves of [first, end) have ended. */
static void qcud_group_arrived(struct qcud_group *group, unsigned long first, unsigned long end)
{
	unsigned long i;

	mutex_lock(&group->mem.lock);
	for (i = first; i < end && !group->freed; i++)
		xa_set_mark(&group->mem.xa, i, QCUD_HERE);
	mutex_unlock(&group->mem.lock);
}

/*
 * Brings the chunks from `first` on to the process, up to `last` or to a chunk that is here. *end
 * is where that ended. The caller holds move_lock and a use of the group.
 */
static int qcud_group_down(struct qcud_group *group, unsigned long first, unsigned long last,
			   unsigned long *end)
{
	struct qcud_session *session = group->session;
	struct qcud_moves mv = {.session = session, .flags = QCU_MOVE_DOWN};
	int ret = qcud_group_prepare(group, first, last, end);

	if (ret || *end == first)
		return ret;
	if (qcud_session_over(session)) {
		mv.error = -ESHUTDOWN;
	} else {
		down_write(&session->launching);
		WRITE_ONCE(session->here, true);
		qcud_move(&mv, group, qcud_chunk_start(group, first),
			  min_t(u64, qcud_chunk_start(group, *end), group->bytes));
		up_write(&session->launching);
		qcud_moves_wait(&mv);
	}
	if (mv.error == -EINTR || mv.error == -ENOMEM)
		return mv.error;
	if (mv.error)
		pr_warn_ratelimited(
			"qcuda: process %d: what the GPU has written at %#lx is lost: %d\n",
			task_tgid_nr(current), group->mem.start, mv.error);
	qcud_group_arrived(group, first, *end);
	return 0;
}

/* Brings all of the group to the process. */
static int qcud_group_down_all(struct qcud_group *group)
{
	unsigned long i = 0, end, last = qcud_last_chunk(group);
	int ret = 0;

	while (i <= last && !ret) {
		ret = qcud_group_down(group, i, last, &end);
		i = max(end, i + 1);
		if (fatal_signal_pending(current))
			ret = -EINTR;
	}
	return ret;
}

/*
 * The chunk that a fault wants. Faults that run through the group bring more and more at once: the
 * next one is at the end of what the last one brought.
 */
static int qcud_group_bring(struct qcud_group *group, unsigned long index)
{
	unsigned long most = max_t(unsigned long, QCUD_AHEAD_BYTES >> group->mem.shift, 1);
	unsigned long end;
	int ret;

	if (index == group->next && index)
		group->ahead = min(2 * group->ahead, most);
	else
		group->ahead = 1;
	ret = qcud_group_down(group, index, min(index + group->ahead - 1, qcud_last_chunk(group)),
			      &end);
	group->next = end;
	return ret;
}

/* Counts a use of the group, unless its mapping is gone. */
static bool qcud_group_use(struct qcud_group *group)
{
	bool use;

	spin_lock(&group->session->lock);
	use = !group->closed;
	if (use)
		refcount_inc(&group->users);
	spin_unlock(&group->session->lock);
	return use;
}

static int qcud_managed_bring(struct qcud_group *group, unsigned long index)
{
	struct qcud_session *session = group->session;
	int ret;

	if (!qcud_group_use(group))
		return -EFAULT;
	ret = mutex_lock_killable(&session->move_lock);
	if (!ret) {
		ret = qcud_group_bring(group, index);
		mutex_unlock(&session->move_lock);
	}
	qcud_group_unuse(group);
	return ret;
}

/*
 * A page fault in a chunk that is not here. Returns 0 if it may be here now, and else what the
 * fault handler returns. At the first try the fault gives mmap_lock up; errors then show at the
 * second try. (A mapping without the operation map_pages never faults under the lock of its VMA
 * alone.)
 */
vm_fault_t qcud_managed_fault(struct vm_fault *vmf, struct qcud_group *group, unsigned long index)
{
	bool let_go = vmf->flags & FAULT_FLAG_ALLOW_RETRY && !(vmf->flags & FAULT_FLAG_TRIED);
	int ret;

	if (vmf->flags & FAULT_FLAG_ALLOW_RETRY && vmf->flags & FAULT_FLAG_RETRY_NOWAIT)
		return VM_FAULT_RETRY;
	if (let_go) {
		kref_get(&group->refs);
		mmap_read_unlock(vmf->vma->vm_mm);
		qcud_managed_bring(group, index);
		qcud_group_put(group);
		return VM_FAULT_RETRY;
	}
	ret = qcud_managed_bring(group, index);
	if (!ret)
		return 0;
	/* A thread that is being killed does not get to use what this returns. */
	return ret == -ENOMEM ? VM_FAULT_OOM : VM_FAULT_SIGBUS;
}

/*
 * A fork: the child gets what a CPU would read now, so all of the group is brought back first. If
 * that fails, the content is lost for the child.
 */
void qcud_managed_fork(struct vm_area_struct *vma, struct qcud_group *group)
{
	struct qcud_session *session = group->session;
	bool used = qcud_group_use(group);
	int ret;

	mutex_lock(&session->move_lock);
	ret = used ? qcud_group_down_all(group) : -EFAULT;
	qcud_fork(vma, &group->mem, group, !ret);
	mutex_unlock(&session->move_lock);
	if (used)
		qcud_group_unuse(group);
}

/* ---- the beginning and the end of moving ---- */

/* The program asks for memory of the GPU for a mapping that nothing has used yet. */
int qcud_managed_begin(struct qcud_session *session, struct qcud_request *req)
{
	const struct qcu_managed *m = &req->cmd.managed;
	struct qcud_group *group = qcud_group_find(session, m->va, m->len);
	int ret = -EINVAL;

	if (!group)
		return ret;
	req->group = group;
	if (!group->in_window || group->mem.start != m->va || group->mem.end - m->va != m->len ||
	    !m->bytes || m->bytes > m->len || m->bytes & ~PAGE_MASK)
		return ret;
	ret = qcud_group_place_free(group);
	if (ret)
		return ret;
	mutex_lock(&session->move_lock);
	mutex_lock(&group->mem.lock);
	if (group->moves || group->sent || !xa_empty(&group->mem.xa)) {
		ret = -EBUSY;
	} else {
		group->bytes = m->bytes;
		WRITE_ONCE(group->moves, true);
		group->sent = true;
	}
	mutex_unlock(&group->mem.lock);
	if (!ret) {
		WRITE_ONCE(session->moves, true);
		/* Until the first command that may use the group, it is not `given`. */
		WRITE_ONCE(session->here, true);
		spin_lock(&session->lock);
		if (!group->closed)
			list_add_tail(&group->managed_node, &session->managed);
		spin_unlock(&session->lock);
	}
	mutex_unlock(&session->move_lock);
	return ret;
}

/* The group is ordinary memory from now on. The caller holds move_lock. */
static int qcud_group_settle(struct qcud_group *group)
{
	struct qcud_session *session = group->session;

	mutex_lock(&group->mem.lock);
	WRITE_ONCE(group->moves, false);
	mutex_unlock(&group->mem.lock);
	spin_lock(&session->lock);
	list_del_init(&group->managed_node);
	spin_unlock(&session->lock);
	return 0;
}

/* The device has no memory for it. */
void qcud_managed_refused(struct qcud_session *session, const struct qCUcmd *cmd)
{
	struct qcud_group *group = qcud_group_find(session, cmd->managed.va, cmd->managed.len);

	if (!group)
		return;
	mutex_lock(&session->move_lock);
	if (group->moves && group->mem.start == cmd->managed.va)
		qcud_group_settle(group);
	mutex_unlock(&session->move_lock);
	qcud_group_unuse(group);
}

/*
 * MANAGED_END has been sent, with move_lock held and all of the group here. Waits for the answer,
 * because until then no memory of the process can be mapped there.
 */
int qcud_managed_end(struct qcud_session *session, struct qcud_request *req)
{
	const struct qcu_managed_end *e = &req->cmd.managed_end;
	struct qcud_group *group;
	int ret;

	qcud_queue_kick(session->queue);
	ret = qcud_request_wait(session->queue, req);
	if (ret || req->reply.status)
		return 0; /* the caller waits, too, and finds the same */
	group = qcud_group_find(session, e->va, e->len);
	if (!group)
		return 0;
	qcud_group_settle(group);
	qcud_group_unuse(group);
	return 0;
}

/*
 * The session has been detached from its queue, so no move begins any more. Waits for the thread
 * that is in one; it gets no more answers.
 */
void qcud_managed_lost(struct qcud_session *session)
{
	mutex_lock(&session->move_lock);
	mutex_unlock(&session->move_lock);
}

/* ---- commands that use memory ---- */

static bool qcud_uses_memory(const struct qCUcmd *cmd)
{
	/* A host function may have written memory, and the work behind it is about to begin. */
	if (cmd->op == QCU_OP_HOST_NEXT)
		return cmd->host_next.done;
	return qcu_rule(cmd->op)->traits & QCU_MEMORY;
}

static int qcud_group_leave(struct qcud_group *group)
{
	int ret = qcud_group_down_all(group);

	return ret ?: qcud_group_settle(group);
}

/* Before MANAGED_END. The caller holds move_lock. */
static int qcud_managed_leave(struct qcud_session *session, const struct qcu_managed_end *e)
{
	struct qcud_group *group = qcud_group_find(session, e->va, e->len);
	int ret = -EINVAL;

	if (!group)
		return ret;
	if (group->moves && group->mem.start == e->va && group->mem.end - e->va == e->len)
		ret = qcud_group_down_all(group);
	qcud_group_unuse(group);
	return ret;
}

/*
 * Called before a command is sent, if the session has memory that moves. Until the command has been
 * sent, the caller holds what *held says. Returns 0, or the status that the command gets.
 */
int qcud_managed_take(struct qcud_session *session, const struct qCUcmd *cmd,
		      enum qcud_managed_held *held)
{
	bool reset = cmd->op == QCU_OP_DEVICE_RESET, end = cmd->op == QCU_OP_MANAGED_END;
	int ret;

	if (!reset && !end) {
		if (!qcud_uses_memory(cmd))
			return 0;
		down_read(&session->launching);
		*held = QCUD_HELD_LAUNCHING;
		if (!READ_ONCE(session->here))
			return 0;
		up_read(&session->launching);
		*held = QCUD_HELD_NOTHING;
	}
	if (mutex_lock_killable(&session->move_lock))
		return -EINTR;
	*held = QCUD_HELD_MOVES;
	if (end)
		return qcud_managed_leave(session, &cmd->managed_end);
	if (reset)
		return qcud_managed_each(session, qcud_group_leave);
	ret = qcud_managed_each(session, qcud_group_up);
	/*
	 * Not before all has been moved: other commands look at it. Nothing has come here since,
	 * because a move down needs move_lock, and all groups are `given` now.
	 */
	if (!ret)
		WRITE_ONCE(session->here, false);
	return ret;
}

void qcud_managed_sent(struct qcud_session *session, enum qcud_managed_held held)
{
	if (held == QCUD_HELD_LAUNCHING)
		up_read(&session->launching);
	else if (held == QCUD_HELD_MOVES)
		mutex_unlock(&session->move_lock);
}

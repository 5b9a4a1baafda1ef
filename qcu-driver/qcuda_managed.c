// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Managed memory that moves. The GPU has memory of its own for such a group, at the same addresses
 * in the mirror, and the group's chunks lie behind it. A chunk has up to 64 sectors, of 64 KiB or
 * more. Each sector is in one of two states:
 *
 * - It is here (a bit of chunk->here): the process may have it in its page tables. The GPU's copy
 *   is as new as the sector, except for the pages that the process has written since. The pages'
 *   dirty bits show which ones these are: the hardware sets them in the page tables, and they go
 *   from there to the pages when the chunk is taken out.
 * - It is the GPU's. The sector is in no page tables, and its content is old. The chunk may not
 *   exist at all.
 *
 * Before a command is sent through which the GPU uses memory, all sectors that are here are given
 * to the GPU: taken out of page tables, and what has been written is moved up. While the device
 * moves one batch, the next one is prepared. A page fault, of the CPU or of get_user_pages(),
 * brings sectors back: a few, and more and more if the faults run in ascending order. A run of
 * faults that begins where an earlier one did brings as much as that one at once. Before the first
 * such command after the beginning nothing needs to move: both sides have zeros.
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

/*
 * What one page fault brings back: at first, when it begins like an earlier run of faults, and at
 * most. Each further one of a run brings four times as much as the last.
 */
#define QCUD_FIRST_BYTES SZ_256K
#define QCUD_AGAIN_BYTES SZ_4M
#define QCUD_AHEAD_BYTES SZ_64M

/* The least size of a sector; a chunk has at most 1 << QCUD_SECTORS_SHIFT. */
#define QCUD_SECTOR_SHIFT  16
#define QCUD_SECTORS_SHIFT 6

/* How much is taken out of page tables before it is sent. */
#define QCUD_BATCH_BYTES SZ_16M

/* How many moves are on the ring at once. */
#define QCUD_MOVES 16

/*
 * Moves of a group that have been sent and not been waited for. The group is the caller's: a
 * request has none any more when it has been answered.
 */
struct qcud_moves {
	struct qcud_session *session;
	struct qcud_group *group;
	u32 flags; /* QCU_MOVE_* */
	unsigned int nr;
	int error; /* the first: 0, -errno, or a cudaError_t */
	struct qcud_request *req[QCUD_MOVES];
};

static u64 qcud_chunk_start(const struct qcud_group *group, unsigned long index)
{
	return (u64)index << group->mem.shift;
}

static unsigned int qcud_sector_shift(const struct qcud_group *group)
{
	return max(group->mem.shift - QCUD_SECTORS_SHIFT,
		   min_t(unsigned int, group->mem.shift, QCUD_SECTOR_SHIFT));
}

static u64 qcud_sector_bytes(const struct qcud_group *group)
{
	return 1ULL << qcud_sector_shift(group);
}

/* The bits of the sectors in [from, to), which lies in one chunk. */
static u64 qcud_sector_bits(const struct qcud_group *group, u64 from, u64 to)
{
	u64 start = qcud_chunk_start(group, from >> group->mem.shift);
	unsigned int shift = qcud_sector_shift(group);

	return GENMASK_ULL((to - 1 - start) >> shift, (from - start) >> shift);
}

/* Marks all sectors of [from, to) as here. Its chunks exist. */
static void qcud_group_set_here(struct qcud_group *group, u64 from, u64 to)
{
	lockdep_assert_held(&group->mem.lock);

	while (from < to) {
		unsigned long index = from >> group->mem.shift;
		u64 end = min(to, qcud_chunk_start(group, index + 1));
		struct qcud_chunk *chunk = xa_load(&group->mem.xa, index);

		chunk->here |= qcud_sector_bits(group, from, end);
		xa_set_mark(&group->mem.xa, index, QCUD_HERE);
		from = end;
	}
}

/* [from, to) could not be moved up: its sectors are here again, and written. */
static void qcud_group_take_back(struct qcud_group *group, u64 from, u64 to)
{
	u64 at;

	mutex_lock(&group->mem.lock);
	if (!group->freed) {
		for (at = from; at < to; at += PAGE_SIZE) {
			unsigned long index = at >> group->mem.shift;
			struct qcud_chunk *chunk = xa_load(&group->mem.xa, index);

			SetPageDirty(
				chunk->pages[(at - qcud_chunk_start(group, index)) >> PAGE_SHIFT]);
		}
		qcud_group_set_here(group, from, to);
	}
	mutex_unlock(&group->mem.lock);
	WRITE_ONCE(group->session->here, true);
}

/* ---- sending moves; the caller holds move_lock ---- */

static void qcud_moves_take_back(const struct qcud_moves *mv, const struct qcud_request *req)
{
	u64 from = req->cmd.managed_move.va - mv->group->at;

	qcud_group_take_back(mv->group, from, from + req->cmd.managed_move.len);
}

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
		if (mv->error && !(mv->flags & QCU_MOVE_DOWN))
			qcud_moves_take_back(mv, mv->req[i]);
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
	qcud_request_use(req, group, flags & QCU_MOVE_DOWN);
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

/* Writes the segments of [from, to). Returns where the table was full, or `to`. */
static u64 qcud_move_segs(struct qcud_group *group, u64 from, u64 to, struct qcu_seg *segs,
			  unsigned int *nr, unsigned int max)
{
	unsigned int want, got = 0;

	mutex_lock(&group->mem.lock);
	for (want = 0; from < to && got == want; from += (u64)got << PAGE_SHIFT) {
		unsigned long index = from >> group->mem.shift;
		u64 start = qcud_chunk_start(group, index);
		const struct qcud_chunk *chunk = xa_load(&group->mem.xa, index);

		want = (min(to, start + (1ULL << group->mem.shift)) - from) >> PAGE_SHIFT;
		got = qcud_chunk_segs(chunk, (from - start) >> PAGE_SHIFT, want, segs, nr, max);
	}
	mutex_unlock(&group->mem.lock);
	return from;
}

/*
 * Moves [from, to) of the group, in pages. All chunks there exist, and stay what they are while the
 * caller holds move_lock. Only the last answers are left to wait for. What cannot be moved up is
 * taken back.
 */
static void qcud_move(struct qcud_moves *mv, u64 from, u64 to)
{
	struct qcud_group *group = mv->group;

	while (from < to) {
		unsigned int nr = 0, max = min_t(u64, (to - from) >> PAGE_SHIFT, QCU_SEGS_MAX);
		struct qcud_request *req;
		struct qcu_seg *segs;
		u64 end;

		if (mv->nr == QCUD_MOVES)
			qcud_moves_wait(mv);
		if (mv->error)
			break;
		req = qcud_move_new(group, mv->flags, &max, &segs);
		if (!req) {
			mv->error = -ENOMEM;
			break;
		}
		end = qcud_move_segs(group, from, to, segs, &nr, max);
		req->cmd.managed_move.va = group->at + from;
		req->cmd.managed_move.len = end - from;
		mv->error = qcud_move_send(mv, req, segs, nr);
		if (mv->error)
			break;
		from = end;
	}
	if (from < to && !(mv->flags & QCU_MOVE_DOWN))
		qcud_group_take_back(group, from, to);
}

/* ---- up ---- */

/* Between two spans of a chunk lies a sector that does not move. */
#define QCUD_CHUNK_SPANS ((1 << QCUD_SECTORS_SHIFT) / 2)
#define QCUD_SPANS	 (4 * QCUD_CHUNK_SPANS)

struct qcud_spans {
	unsigned int nr;
	struct qcud_span at[QCUD_SPANS];
};

static void qcud_spans_add(struct qcud_spans *spans, struct qcud_span *span)
{
	if (!span->to)
		return;
	if (spans->nr && spans->at[spans->nr - 1].to == span->from)
		spans->at[spans->nr - 1].to = span->to;
	else
		spans->at[spans->nr++] = *span;
	span->to = 0;
}

/*
 * Adds what has been written in a chunk since it was last moved, and forgets that. The chunk has
 * been taken out of page tables. What lies between two written pages counts as written, too, unless
 * a whole sector lies there.
 */
static void qcud_chunk_written(struct qcud_group *group, unsigned long index,
			       struct qcud_chunk *chunk, struct qcud_spans *spans)
{
	u64 start = qcud_chunk_start(group, index), sector = qcud_sector_bytes(group);
	unsigned int i, each = sector >> PAGE_SHIFT;
	struct qcud_span span = {};

	for (i = 0; i < chunk->nr && start + ((u64)i << PAGE_SHIFT) < group->bytes; i++) {
		u64 at = start + ((u64)i << PAGE_SHIFT);

		if (i % each == 0) {
			bool here = chunk->here >> (i / each) & 1;

			if (!here || span.to + sector <= at)
				qcud_spans_add(spans, &span);
			if (!here) {
				i += each - 1;
				continue;
			}
		}
		if (!PageDirty(chunk->pages[i]))
			continue;
		ClearPageDirty(chunk->pages[i]);
		if (!span.to)
			span.from = at;
		span.to = at + PAGE_SIZE;
	}
	qcud_spans_add(spans, &span);
}

/*
 * Gives a batch of chunks from *index on to the GPU. *index is ULONG_MAX when all chunks have been
 * looked at.
 */
static void qcud_group_give(struct qcud_group *group, unsigned long *index,
			    struct qcud_spans *spans)
{
	struct qcud_chunk *chunk;
	unsigned long last;
	u64 from;

	lockdep_assert_held(&group->mem.lock);

	group->given = true;
	group->ahead = 0;
	chunk = xa_find(&group->mem.xa, index, ULONG_MAX, QCUD_HERE);
	if (!chunk) {
		*index = ULONG_MAX;
		return;
	}
	last = *index + max_t(unsigned long, QCUD_BATCH_BYTES >> group->mem.shift, 1) - 1;
	from = group->mem.start + qcud_chunk_start(group, *index);
	unmap_mapping_range(group->session->memory->f_mapping, from,
			    min_t(u64, group->mem.end,
				  group->mem.start + qcud_chunk_start(group, last + 1)) -
				    from,
			    1);
	while (chunk && spans->nr + QCUD_CHUNK_SPANS <= QCUD_SPANS) {
		qcud_chunk_written(group, *index, chunk, spans);
		chunk->here = 0;
		xa_clear_mark(&group->mem.xa, *index, QCUD_HERE);
		qcud_chunk_count(group, chunk, chunk->nr);
		chunk = xa_find_after(&group->mem.xa, index, last, QCUD_HERE);
	}
	if (!chunk)
		*index = last + 1;
}

/* Gives all of the group to the GPU. Returns 0, -errno or a cudaError_t. */
static int qcud_group_up(struct qcud_group *group)
{
	struct qcud_moves mv = {.session = group->session, .group = group};
	struct qcud_spans *spans = kmalloc(sizeof(*spans), GFP_KERNEL);
	unsigned long index = 0;
	unsigned int i;

	if (!spans)
		return -ENOMEM;
	while (index != ULONG_MAX && !mv.error) {
		spans->nr = 0;
		mutex_lock(&group->mem.lock);
		if (group->freed || !group->moves)
			index = ULONG_MAX;
		else
			qcud_group_give(group, &index, spans);
		mutex_unlock(&group->mem.lock);
		for (i = 0; i < spans->nr; i++)
			qcud_move(&mv, spans->at[i].from, spans->at[i].to);
		if (spans->nr)
			qcud_queue_kick(group->session->queue);
	}
	qcud_moves_wait(&mv);
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

/* Can the process use this part without a move? */
bool qcud_managed_here(struct qcud_group *group, u64 at)
{
	struct qcud_chunk *chunk = xa_load(&group->mem.xa, at >> group->mem.shift);

	lockdep_assert_held(&group->mem.lock);

	/* Nothing behind the end moves. */
	if (at >= round_up(group->bytes, qcud_sector_bytes(group)))
		return true;
	if (!chunk)
		return !group->given;
	return chunk->here & qcud_sector_bits(group, at, at + 1);
}

/*
 * The process has touched this part of a chunk. Returns what can be put into page tables with it:
 * the sectors from there on that are here.
 */
struct qcud_span qcud_managed_touched(struct qcud_group *group, struct qcud_chunk *chunk, u64 at)
{
	unsigned long index = at >> group->mem.shift;
	u64 start = qcud_chunk_start(group, index), sector = qcud_sector_bytes(group);
	struct qcud_span part = {.from = round_down(at, sector)};

	lockdep_assert_held(&group->mem.lock);

	if (!group->given)
		chunk->here = U64_MAX;
	part.to = part.from + sector;
	while (part.to < start + (1ULL << group->mem.shift) && qcud_managed_here(group, part.to))
		part.to += sector;
	part.to = min(part.to, start + ((u64)chunk->nr << PAGE_SHIFT));
	xa_set_mark(&group->mem.xa, index, QCUD_HERE);
	WRITE_ONCE(group->session->here, true);
	return part;
}

/* From `from` on, how much of the chunk there is not here? Makes the chunk. 0: nothing. */
static int qcud_chunk_prepare(struct qcud_group *group, u64 from, u64 to, enum qcud_use use,
			      u64 *end)
{
	unsigned long index = from >> group->mem.shift;
	struct qcud_chunk *chunk = NULL;

	to = min(to, qcud_chunk_start(group, index + 1));
	*end = from;
	mutex_lock(&group->mem.lock);
	while (!group->freed && group->moves && *end < to && !qcud_managed_here(group, *end))
		*end += qcud_sector_bytes(group);
	*end = min(*end, to);
	if (*end > from)
		chunk = qcud_group_chunk(group, index, use);
	mutex_unlock(&group->mem.lock);
	if (!IS_ERR(chunk))
		return 0;
	*end = from;
	return PTR_ERR(chunk);
}

/*
 * Makes the chunks of [from, to) ready for a move down: they exist, and belong to no child. Stops
 * before a sector that is here, and if there is no memory for more. *end is where it stopped.
 */
static int qcud_group_prepare(struct qcud_group *group, u64 from, u64 to, u64 *end)
{
	int ret = qcud_chunk_prepare(group, from, to, QCUD_USE_FAULT, end);

	while (!ret && *end > from && *end < to && !(*end & ((1ULL << group->mem.shift) - 1))) {
		u64 at = *end;

		if (qcud_chunk_prepare(group, at, to, QCUD_USE_WRITE, end) || *end == at)
			break;
		cond_resched();
	}
	return ret;
}

/*
 * Brings [from, to) to the process, or its beginning up to a sector that is here. *end is where
 * that ended. The caller holds move_lock and a use of the group.
 */
static int qcud_group_down(struct qcud_group *group, u64 from, u64 to, u64 *end)
{
	struct qcud_session *session = group->session;
	struct qcud_moves mv = {
		.session = session,
		.group = group,
		.flags = QCU_MOVE_DOWN,
	};
	int ret = qcud_group_prepare(group, from, to, end);

	if (ret || *end == from)
		return ret;
	if (qcud_session_over(session)) {
		mv.error = -ESHUTDOWN;
	} else {
		down_write(&session->launching);
		WRITE_ONCE(session->here, true);
		qcud_move(&mv, from, *end);
		up_write(&session->launching);
		qcud_moves_wait(&mv);
	}
	if (mv.error == -EINTR || mv.error == -ENOMEM)
		return mv.error;
	if (mv.error)
		pr_warn_ratelimited(
			"qcuda: process %d: what the GPU has written at %#lx is lost: %d\n",
			task_tgid_nr(current), group->mem.start, mv.error);
	mutex_lock(&group->mem.lock);
	if (!group->freed)
		qcud_group_set_here(group, from, *end);
	mutex_unlock(&group->mem.lock);
	return 0;
}

/* Brings all of the group to the process. */
static int qcud_group_down_all(struct qcud_group *group)
{
	u64 at = 0, end;
	int ret = 0;

	while (at < group->bytes && !ret) {
		ret = qcud_group_down(group, at, group->bytes, &end);
		at = max(end, at + qcud_sector_bytes(group));
		if (fatal_signal_pending(current))
			ret = -EINTR;
	}
	return ret;
}

/* A run of faults begins at `from`: how much did one bring that began there? Notes the last one. */
static u64 qcud_run_begin(struct qcud_group *group, u64 from)
{
	struct qcud_span last = group->run;
	u64 again = 0;
	unsigned int i;

	for (i = 0; i < QCUD_RUNS; i++)
		if (group->runs[i].from == last.from)
			break;
	if (i == QCUD_RUNS)
		i = group->nr_runs++ % QCUD_RUNS;
	group->runs[i] = last;
	for (i = 0; i < QCUD_RUNS; i++)
		if (group->runs[i].from == from)
			again = group->runs[i].to - from;
	group->run = (struct qcud_span){from, from};
	return clamp_t(u64, again, QCUD_FIRST_BYTES, QCUD_AGAIN_BYTES);
}

/*
 * The sectors that a fault wants. Faults that run through the group bring more and more at once:
 * the next one is at the end of what the last one brought. A run ends at a sector that is here, and
 * when the GPU gets the group.
 */
static int qcud_group_bring(struct qcud_group *group, u64 at)
{
	u64 sector = qcud_sector_bytes(group), to, end;
	int ret;

	at = round_down(at, sector);
	if (group->ahead && at == group->run.to)
		group->ahead = min_t(u64, 4 * group->ahead, QCUD_AHEAD_BYTES);
	else
		group->ahead = qcud_run_begin(group, at);
	to = min(at + max(group->ahead, sector), group->bytes);
	ret = qcud_group_down(group, at, to, &end);
	group->run.to = end;
	if (end < to)
		group->ahead = 0;
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

static int qcud_managed_bring(struct qcud_group *group, u64 at)
{
	struct qcud_session *session = group->session;
	int ret;

	if (!qcud_group_use(group))
		return -EFAULT;
	ret = mutex_lock_killable(&session->move_lock);
	if (!ret) {
		ret = qcud_group_bring(group, at);
		mutex_unlock(&session->move_lock);
	}
	qcud_group_unuse(group);
	return ret;
}

/*
 * A page fault in a sector that is not here. Returns 0 if it may be here now, and else what the
 * fault handler returns. At the first try the fault gives mmap_lock up; errors then show at the
 * second try. (A mapping without the operation map_pages never faults under the lock of its VMA
 * alone.)
 */
vm_fault_t qcud_managed_fault(struct vm_fault *vmf, struct qcud_group *group, u64 at)
{
	bool let_go = vmf->flags & FAULT_FLAG_ALLOW_RETRY && !(vmf->flags & FAULT_FLAG_TRIED);
	int ret;

	if (vmf->flags & FAULT_FLAG_ALLOW_RETRY && vmf->flags & FAULT_FLAG_RETRY_NOWAIT)
		return VM_FAULT_RETRY;
	if (let_go) {
		kref_get(&group->refs);
		mmap_read_unlock(vmf->vma->vm_mm);
		qcud_managed_bring(group, at);
		qcud_group_put(group);
		return VM_FAULT_RETRY;
	}
	ret = qcud_managed_bring(group, at);
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
	qcud_request_use(req, group, false);
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
		group->mem.huge = false;
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
	if (qcu_rule(cmd->op)->traits & QCU_PARKS)
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
	bool reset = qcu_rule(cmd->op)->traits & QCU_ALONE, end = cmd->op == QCU_OP_MANAGED_END;
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

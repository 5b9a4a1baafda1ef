// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the kernel has to know when memory runs out: how much of it a process has in chunks, so that
 * it ends the right one, and that the memory of one that it has ended takes a moment to come back,
 * so that it does not end a second one meanwhile.
 *
 * A page in a process's page tables is counted by the kernel. Chunks that only commands have used
 * are in none, nor are those that a fork has taken out of them, nor those whose mapping is gone and
 * that the mirror still has: these are counted here, as the same kind of memory (RssFile), in the
 * counters of the process, until they are free.
 *
 * Pages that the mirror knows are not freed when their process dies, but when the host has let go
 * of them. The kernel takes a victim without any memory left to free for done, and looks for the
 * next one. It asks us before that: we wait until pages have come back. Whoever waits holds the
 * kernel's oom_lock, so the wait must end by itself: it is for the host's answer and for work that
 * allocates nothing, and it is bounded. A program can keep its memory on the way back for as long
 * as it likes, one session after the other; so after a wait for nothing the next ones are short.
 * That does not shorten the waits for a process that has been ended.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/oom.h>
#include <linux/percpu_counter.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/vmstat.h>

#include "qcuda.h"

/* For how long the kernel is held back; and if that was for nothing, for how long from then on. */
#define QCUD_OOM_WAIT	(10 * HZ)
#define QCUD_OOM_SHORT	HZ
#define QCUD_OOM_FORGET (60 * HZ)

/* So many more free pages, and there is something to try again for. */
#define QCUD_OOM_FREED (SZ_1M >> PAGE_SHIFT)

/* Count up: pages that have come back, sessions whose memory all has, and when the last one's. */
static atomic_long_t qcud_returned;
static atomic_t qcud_ended;
static unsigned long qcud_ended_at;

/* ---- how much a process has ---- */

/* The counters may be changed after the process's end, as long as mm is there. */
void qcud_mm_count(struct mm_struct *mm, long pages)
{
	if (!pages)
		return;
#if defined(QCUD_HAVE_RSS_PERCPU)
	percpu_counter_add(&mm->rss_stat[MM_FILEPAGES], pages);
#elif defined(QCUD_HAVE_RSS_ATOMIC)
	atomic_long_add(pages, &mm->rss_stat.count[MM_FILEPAGES]);
#endif
}

/*
 * Before 6.2's commit f1a7941243c1 a thread keeps what it has added to the process's counters to
 * itself for 64 page faults. That is little where a fault brings a page; ours bring up to 16,384.
 */
void qcud_mm_settle(struct mm_struct *mm)
{
#if defined(QCUD_HAVE_RSS_SPLIT) && defined(QCUD_HAVE_RSS_ATOMIC)
	int *mine = &current->rss_stat.count[MM_FILEPAGES];

	if (current->mm != mm)
		return;
	qcud_mm_count(mm, *mine);
	*mine = 0;
#endif
}

/* The chunk's pages are counted here from now on, or by their page tables. */
void qcud_chunk_count(struct qcud_group *group, struct qcud_chunk *chunk, bool here)
{
	long pages = here ? chunk->nr : -(long)chunk->nr;

	lockdep_assert_held(&group->mem.lock);

	if (chunk->counted == here)
		return;
	chunk->counted = here;
	group->counted += pages;
	qcud_mm_count(group->mm, pages);
}

/* The group is in no page tables any more: all of it is counted here. */
void qcud_group_count(struct qcud_group *group)
{
	struct qcud_chunk *chunk;
	unsigned long index;

	mutex_lock(&group->mem.lock);
	xa_for_each(&group->mem.xa, index, chunk)
		qcud_chunk_count(group, chunk, true);
	mutex_unlock(&group->mem.lock);
}

/* ---- what comes back ---- */

void qcud_memory_returned(unsigned long pages)
{
	atomic_long_add(pages, &qcud_returned);
}

/* Called while the session can still be found: between the two nobody thinks that all is lost. */
void qcud_session_returned(void)
{
	WRITE_ONCE(qcud_ended_at, jiffies);
	atomic_inc(&qcud_ended);
	atomic_long_inc(&qcud_returned);
}

/* Has a session ended since the last call, just now? Its pages may not have been seen yet. */
static bool qcud_just_ended(void)
{
	static int seen; /* under the kernel's oom_lock */
	int ended = atomic_read(&qcud_ended);
	bool just = ended != seen && time_before(jiffies, READ_ONCE(qcud_ended_at) + HZ);

	seen = ended;
	return just;
}

/* The process is being killed, or has gone already. */
static bool qcud_owner_ends(const struct qcud_session *session)
{
	struct task_struct *task;
	bool ends;

	if (!session->owner)
		return false;
	rcu_read_lock();
	task = pid_task(session->owner, PIDTYPE_TGID);
	ends = !task || READ_ONCE(task->signal->flags) & SIGNAL_GROUP_EXIT;
	rcu_read_unlock();
	return ends;
}

/* Whose memory is on its way back. */
enum qcud_returning {
	QCUD_RETURNING_ENDED, /* of a process that ends, or of a session */
	QCUD_RETURNING_FREED, /* of one that goes on and has unmapped it */
	QCUD_RETURNINGS,
};

/* For how long the kernel waits for each of them now, and when it last has for nothing; jiffies. */
static struct {
	unsigned long end, in_vain;
	bool brief;
} qcud_patience[QCUD_RETURNINGS]; /* the kernel's oom_lock */

static unsigned int qcud_session_returns(struct qcud_session *session)
{
	unsigned int which = 0;

	lockdep_assert_held(&qcud_lock);

	if (session->kept)
		return 0;
	spin_lock(&session->lock);
	if (session->ending || qcud_owner_ends(session))
		which = BIT(QCUD_RETURNING_ENDED);
	else if (!list_empty(&session->closing) && !READ_ONCE(session->queue->dead))
		which = BIT(QCUD_RETURNING_FREED);
	spin_unlock(&session->lock);
	return which;
}

static unsigned int qcud_returns(void)
{
	struct qcud_session *session;
	unsigned int which = 0;

	/* Held for moments only, and memory is not allocated under it. */
	if (!mutex_trylock(&qcud_lock))
		return BIT(QCUD_RETURNING_ENDED);
	list_for_each_entry(session, &qcud_sessions, node)
		which |= qcud_session_returns(session);
	mutex_unlock(&qcud_lock);
	return which;
}

static void qcud_patience_begin(void)
{
	unsigned int i;

	for (i = 0; i < QCUD_RETURNINGS; i++) {
		unsigned long in_vain = qcud_patience[i].in_vain;

		qcud_patience[i].brief = in_vain && time_before(jiffies, in_vain + QCUD_OOM_FORGET);
		qcud_patience[i].end =
			jiffies + (qcud_patience[i].brief ? QCUD_OOM_SHORT : QCUD_OOM_WAIT);
	}
}

static bool qcud_patience_left(unsigned int which)
{
	bool left = false;
	unsigned int i;

	for (i = 0; i < QCUD_RETURNINGS; i++) {
		if (!(which & BIT(i)))
			continue;
		if (time_before(jiffies, qcud_patience[i].end))
			left = true;
		else if (!qcud_patience[i].brief)
			qcud_patience[i].in_vain = jiffies ?: 1;
	}
	return left;
}

static unsigned long qcud_free_pages(void)
{
	return global_zone_page_state(NR_FREE_PAGES);
}

/* The kernel is about to choose a process to end, unless *freed says that there are pages again. */
static int qcud_oom(struct notifier_block *unused, unsigned long zero, void *freed)
{
	long before = atomic_long_read(&qcud_returned), pages;
	unsigned long had = qcud_free_pages();
	unsigned int which = qcud_returns();

	/* What we would wait for may be this very thread, which gets memory without that. */
	if (fatal_signal_pending(current) || current->flags & PF_EXITING)
		return NOTIFY_OK;
	if (qcud_just_ended()) {
		*(unsigned long *)freed += 1;
		return NOTIFY_OK;
	}
	if (!which)
		return NOTIFY_OK;
	qcud_stat_add(QCUD_STAT_OOM_WAITS, 1);
	qcud_patience_begin();
	do {
		msleep(10);
		which = qcud_returns();
		pages = atomic_long_read(&qcud_returned) - before;
		/* Other memory counts as well: the kernel does not look again after this. */
		if (!pages && qcud_free_pages() > had + QCUD_OOM_FREED)
			pages = QCUD_OOM_FREED;
	} while (!pages && qcud_patience_left(which));
	*(unsigned long *)freed += pages;
	return NOTIFY_OK;
}

static struct notifier_block qcud_oom_notifier = {
	.notifier_call = qcud_oom,
};

int qcud_oom_register(void)
{
	return register_oom_notifier(&qcud_oom_notifier);
}

void qcud_oom_unregister(void)
{
	unregister_oom_notifier(&qcud_oom_notifier);
}

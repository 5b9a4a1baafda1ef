// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the kernel must know when memory runs out:
 *
 * - how much memory a process has in chunks, so that the kernel kills the right process;
 * - that the memory of a killed process takes a moment to come back, so that the kernel does not
 *   kill a second process meanwhile.
 *
 * The kernel counts a page that is in a process's page tables. Some chunks are in no page tables:
 * those that only commands have used, those that a fork has taken out, and those whose mapping is
 * gone but that the mirror still has. The driver counts these chunks in the counters of the
 * process, as the same kind of memory (RssFile), until they are free.
 *
 * Pages that the mirror knows are not freed when their process dies, but when the host has released
 * them. The kernel thinks that it is done with a victim that has no memory left to free, and looks
 * for the next victim. Before that it calls our notifier, which waits until pages have come back.
 * The waiting thread holds the kernel's oom_lock, so the wait must end by itself: it waits only for
 * the host's answer and for work that allocates nothing, and it is bounded. A program can keep its
 * memory "on the way back" as long as it likes, in one session after the other. So after a wait
 * without result the next waits are short. That does not shorten the waits for a process that has
 * been killed.
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

/*
 * The longest wait; the longest wait after one without result; how long a wait without result
 * counts.
 */
#define QCUD_OOM_WAIT	(10 * HZ)
#define QCUD_OOM_SHORT	HZ
#define QCUD_OOM_FORGET (60 * HZ)

/* With this many more free pages, the kernel can try the allocation again. */
#define QCUD_OOM_FREED (SZ_1M >> PAGE_SHIFT)

/*
 * These only grow: pages that have come back, sessions whose memory has come back completely. The
 * third is the time of the last such session.
 */
static atomic_long_t qcud_returned;
static atomic_t qcud_ended;
static unsigned long qcud_ended_at;

/* ---- how much a process has ---- */

/* The counters may be changed after the process has ended, as long as mm exists. */
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
 * Before 6.2's commit f1a7941243c1 a thread collects its changes to the process's counters for 64
 * page faults before it adds them. That is little when a fault brings one page. A fault of ours
 * brings up to 16,384 pages.
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

/* From now on the driver counts so many of the chunk's pages. Page tables count the others. */
void qcud_chunk_count(struct qcud_group *group, struct qcud_chunk *chunk, unsigned int pages)
{
	long more = (long)pages - (long)chunk->counted;

	lockdep_assert_held(&group->mem.lock);

	if (!more)
		return;
	chunk->counted = pages;
	group->counted += more;
	qcud_mm_count(group->mm, more);
}

/* The group is in no page tables any more: the driver counts all of it. */
void qcud_group_count(struct qcud_group *group)
{
	struct qcud_chunk *chunk;
	unsigned long index;

	mutex_lock(&group->mem.lock);
	xa_for_each(&group->mem.xa, index, chunk)
		qcud_chunk_count(group, chunk, chunk->nr);
	mutex_unlock(&group->mem.lock);
}

/* ---- what comes back ---- */

void qcud_memory_returned(unsigned long pages)
{
	atomic_long_add(pages, &qcud_returned);
}

/*
 * Called while the session is still in the list. So there is no moment in which the notifier sees
 * neither the session nor its memory.
 */
void qcud_session_returned(void)
{
	WRITE_ONCE(qcud_ended_at, jiffies);
	atomic_inc(&qcud_ended);
	atomic_long_inc(&qcud_returned);
}

/*
 * Has a session ended since the last call, and within the last second? The kernel may not have seen
 * its pages yet.
 */
static bool qcud_just_ended(void)
{
	static int seen; /* protected by the kernel's oom_lock */
	int ended = atomic_read(&qcud_ended);
	bool just = ended != seen && time_before(jiffies, READ_ONCE(qcud_ended_at) + HZ);

	seen = ended;
	return just;
}

/* Is the process being killed, or is it gone already? */
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
	QCUD_RETURNING_ENDED, /* of a process that ends, or of a session that ends */
	QCUD_RETURNING_FREED, /* of a process that goes on and has unmapped the memory */
	QCUD_RETURNINGS,
};

/*
 * In jiffies: until when the kernel waits for each kind now, and when it last waited without
 * result.
 */
static struct {
	unsigned long end, in_vain;
	bool brief;
} qcud_patience[QCUD_RETURNINGS]; /* protected by the kernel's oom_lock */

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

	/* Other threads hold qcud_lock only for a moment, and do not allocate memory under it. */
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

/*
 * The kernel is about to choose a process to kill. It does not if *freed says that there are pages
 * again.
 */
static int qcud_oom(struct notifier_block *unused, unsigned long zero, void *freed)
{
	long before = atomic_long_read(&qcud_returned), pages;
	unsigned long had = qcud_free_pages();
	unsigned int which = qcud_returns();

	/* The driver might wait for this very thread. The thread gets memory without that wait. */
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
		/* Other free memory counts, too: the kernel does not check again after this. */
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

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How a caller waits for an answer: it looks for it itself for a moment, without interrupts, and
 * then sleeps. A host that answers within microseconds is so heard at once, and neither side pays
 * for an interrupt; one that takes longer costs no time of this processor.
 *
 * The moment is the parameter spin_us, while that pays. An answer that took longer halves it, down
 * to nothing, and it comes back with the first one that it would have caught. What a sleeper's
 * answer takes has its waking up in it, and the host's, so spin_us is to be more than all of that:
 * else who sleeps once would sleep ever after. With one processor there is nothing to gain: the
 * answer's sender, or its interrupt, may need it.
 *
 * A session may ask for something else (QCU_IOC_WAITING): to look until the answer is there, which
 * saves long waits the time that waking up takes, or to sleep at once.
 */
#include <linux/cpumask.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched/signal.h>

#include "qcuda.h"

#define QCUD_SPIN_MAX_US 10000U
#define QCUD_SPIN_MIN_NS 1000U

static unsigned int spin_us = 200;
module_param(spin_us, uint, 0644);
MODULE_PARM_DESC(spin_us, "microseconds for which a call looks for its answer before it sleeps");

static unsigned int answer_timeout;
module_param(answer_timeout, uint, 0644);
MODULE_PARM_DESC(answer_timeout,
		 "seconds after which a session without an answer is ended; 0: never");

static unsigned int qcud_spin_max_ns(void)
{
	if (num_online_cpus() == 1)
		return 0;
	return min(READ_ONCE(spin_us), QCUD_SPIN_MAX_US) * NSEC_PER_USEC;
}

/* The longest that an answer may take, in jiffies. */
long qcud_answer_timeout(void)
{
	unsigned int seconds = READ_ONCE(answer_timeout);

	return seconds ? min_t(long, seconds, 24 * 3600) * HZ : MAX_SCHEDULE_TIMEOUT;
}

/* The host does not answer, and whoever set answer_timeout does not want to wait for it. */
int qcud_answer_missing(struct qcud_queue *queue)
{
	pr_err_ratelimited("qcuda: a session of process %d has had no answer for %u s: ended\n",
			   task_tgid_nr(current), READ_ONCE(answer_timeout));
	qcud_queue_kill(queue, -ETIMEDOUT);
	return -ETIMEDOUT;
}

/*
 * Interrupts are for those who sleep: there are none while somebody looks for answers. Posted
 * commands have nobody who waits. Those that hold pages of the program get one interrupt for many
 * of them; the end of all others is noticed when there is something else to do on the queue.
 */
void qcud_queue_interrupts(struct qcud_queue *queue)
{
	lockdep_assert_held(&queue->lock);

	if (!queue->vq)
		return;
	for (;;) {
		bool none = queue->spinning || !(queue->wanted || queue->heavy || queue->starved);

		virtqueue_disable_cb(queue->vq);
		qcud_queue_drain(queue);
		if (none || virtqueue_is_broken(queue->vq))
			return;
		if (queue->wanted || queue->starved ? virtqueue_enable_cb(queue->vq)
						    : virtqueue_enable_cb_delayed(queue->vq))
			return;
	}
}

/* The caller is about to sleep until something on the queue has been answered. */
void qcud_queue_want(struct qcud_queue *queue)
{
	unsigned long flags;

	spin_lock_irqsave(&queue->lock, flags);
	queue->wanted++;
	qcud_queue_interrupts(queue);
	spin_unlock_irqrestore(&queue->lock, flags);
}

void qcud_queue_unwant(struct qcud_queue *queue)
{
	unsigned long flags;

	spin_lock_irqsave(&queue->lock, flags);
	queue->wanted--;
	spin_unlock_irqrestore(&queue->lock, flags);
}

static void qcud_spin(struct qcud_queue *queue, struct qcud_request *req, u64 began, u64 limit)
{
	unsigned long flags;

	while (!completion_done(&req->done)) {
		/* Whoever has the lock takes the answers of all. */
		if (spin_trylock_irqsave(&queue->lock, flags)) {
			if (queue->vq)
				qcud_queue_drain(queue);
			spin_unlock_irqrestore(&queue->lock, flags);
		}
		if (need_resched() || fatal_signal_pending(current) ||
		    ktime_get_ns() - began > limit)
			break;
		cpu_relax();
	}
}

/* Tells the device, too, of what is on the ring. */
static void qcud_spin_begin(struct qcud_queue *queue)
{
	unsigned long flags;

	spin_lock_irqsave(&queue->lock, flags);
	queue->spinning++;
	qcud_queue_notify(queue);
	spin_unlock_irqrestore(&queue->lock, flags);
}

static void qcud_spin_end(struct qcud_queue *queue)
{
	unsigned long flags;

	spin_lock_irqsave(&queue->lock, flags);
	queue->spinning--;
	qcud_queue_interrupts(queue);
	spin_unlock_irqrestore(&queue->lock, flags);
}

/* Its answer comes when the program itself has done something: nobody looks out for it. */
static bool qcud_request_parks(const struct qcud_request *req)
{
	return qcu_rule(req->cmd.op)->traits & QCU_PARKS;
}

/* For how long to look for this answer, in nanoseconds. */
static u64 qcud_spin_limit(const struct qcud_queue *queue, const struct qcud_request *req, u32 how)
{
	unsigned int timeout = READ_ONCE(answer_timeout);

	if (how == QCU_WAIT_SLEEP || qcud_request_parks(req))
		return 0;
	if (how == QCU_WAIT_LOOK && num_online_cpus() > 1)
		return timeout ? timeout * (u64)NSEC_PER_SEC : U64_MAX;
	return min(READ_ONCE(queue->spin_ns), qcud_spin_max_ns());
}

/* Tells the device what is on the ring, and looks for the answer to the last of it. */
void qcud_queue_kick_and_spin(struct qcud_queue *queue, struct qcud_request *req, u32 how)
{
	u64 began = ktime_get_ns();
	u64 limit = qcud_spin_limit(queue, req, how);

	req->began = began;
	if (!limit) {
		qcud_queue_kick(queue);
		return;
	}
	qcud_spin_begin(queue);
	qcud_spin(queue, req, began, limit);
	qcud_spin_end(queue);
	/* Whoever else wants this processor gets it, and others on the queue their interrupts. */
	while (how == QCU_WAIT_LOOK && !completion_done(&req->done) &&
	       !fatal_signal_pending(current) && ktime_get_ns() - began <= limit) {
		cond_resched();
		qcud_spin_begin(queue);
		qcud_spin(queue, req, began, limit);
		qcud_spin_end(queue);
	}
	if (completion_done(&req->done))
		qcud_queue_count(queue, QCUD_COUNT_SPINS);
}

/* What an answer took tells how long to look for the next one. Concurrent guesses may get lost. */
static void qcud_spin_adapt(struct qcud_queue *queue, const struct qcud_request *req)
{
	unsigned int max = qcud_spin_max_ns(), now = READ_ONCE(queue->spin_ns);
	u64 took = ktime_get_ns() - req->began;

	now = took <= max ? max : min(now, max) / 2;
	if (now < QCUD_SPIN_MIN_NS)
		now = 0;
	WRITE_ONCE(queue->spin_ns, now);
}

/* 0: the reply is good. -EINTR: the caller is being killed, the request goes on without it. */
int qcud_request_wait(struct qcud_queue *queue, struct qcud_request *req)
{
	long left = qcud_request_parks(req) ? MAX_SCHEDULE_TIMEOUT : qcud_answer_timeout();

	if (!completion_done(&req->done)) {
		if (req->began && left != MAX_SCHEDULE_TIMEOUT)
			left = max(left - (long)nsecs_to_jiffies(ktime_get_ns() - req->began), 1L);
		qcud_queue_count(queue, QCUD_COUNT_WAITS);
		left = wait_for_completion_killable_timeout(&req->done, left);
		if (left < 0)
			return -EINTR;
		if (!left)
			return qcud_answer_missing(queue);
	}
	if (req->began)
		qcud_spin_adapt(queue, req);
	return req->error;
}

void qcud_queue_count(struct qcud_queue *queue, enum qcud_count count)
{
	atomic64_inc(&queue->counts[count]);
	qcud_stat_add(QCUD_STAT_FIRST_COUNT + count, 1);
}

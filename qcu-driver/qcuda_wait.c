// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How a caller waits for an answer: it polls for a short time without interrupts, then it sleeps.
 * If the host answers within microseconds, the caller sees the answer at once, and neither side
 * pays for an interrupt. If the host takes longer, the wait costs no time of this processor.
 *
 * The caller polls for spin_us microseconds (a module parameter), as long as that pays. An answer
 * that took longer halves the time, down to zero. The first answer that would have come within
 * spin_us sets it back to spin_us. The time of an answer to a sleeping caller includes the wake-up
 * of the caller and of the host. So spin_us must be larger than all of that together: else a caller
 * that sleeps once would never poll again. With one processor polling gains nothing: the sender of
 * the answer, or its interrupt, may need the processor.
 *
 * How long a long copy takes is known from those before it. A caller that waits for one sleeps
 * until shortly before its end, and polls then. So it neither polls for long nor pays for the
 * wake-up at the end. If the answer comes earlier, an interrupt wakes it.
 *
 * A session may choose another way (QCU_IOC_WAITING): to poll until the answer comes, which saves
 * the time of the wake-up also on long waits, or to sleep at once.
 */
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/swait.h>

#include "qcuda.h"

#define QCUD_SPIN_MAX_US 1000000U
#define QCUD_SPIN_MIN_NS 1000U
#define QCUD_LONG_COPY	 (16U << 20) /* bytes from which on the time of a copy is learned from */
#define QCUD_NAP_SLACK	 (50U * NSEC_PER_USEC)
#define QCUD_NAP_MARGIN	 (250U * NSEC_PER_USEC)
#define QCUD_NAP_MAX	 NSEC_PER_SEC /* answer_timeout is not looked at meanwhile */

static unsigned int spin_us = 2000;
module_param(spin_us, uint, 0644);
MODULE_PARM_DESC(spin_us, "microseconds for which a call looks for its answer before it sleeps");

static unsigned int qcud_spin_max_ns(void)
{
	if (num_online_cpus() == 1)
		return 0;
	return min(READ_ONCE(spin_us), QCUD_SPIN_MAX_US) * NSEC_PER_USEC;
}

static void qcud_spin(struct qcud_queue *queue, struct qcud_request *req, u64 began, u64 limit)
{
	unsigned long flags;

	while (!completion_done(&req->done)) {
		/* The thread that has the lock takes the answers for all threads. */
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

/* Begins to poll. Also notifies the device of new requests on the ring. */
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

/*
 * Does the answer come only after the program itself has done something? No caller polls for it
 * then.
 */
static bool qcud_request_parks(const struct qcud_request *req)
{
	return qcu_rule(req->cmd.op)->traits & QCU_PARKS;
}

/* How long to poll for this answer, in nanoseconds. */
static u64 qcud_spin_limit(const struct qcud_queue *queue, const struct qcud_request *req, u32 how)
{
	long timeout = qcud_answer_timeout();

	if (how == QCU_WAIT_SLEEP || qcud_request_parks(req))
		return 0;
	if (how == QCU_WAIT_LOOK && num_online_cpus() > 1)
		return timeout == MAX_SCHEDULE_TIMEOUT ? U64_MAX : jiffies_to_nsecs(timeout);
	return min(READ_ONCE(queue->spin_ns), qcud_spin_max_ns());
}

/*
 * How many bytes are copied before the answer comes: what has been sent since the last wait. It
 * need not be exact.
 */
static u64 qcud_copying(struct qcud_queue *queue, const struct qcud_request *req)
{
	u64 bytes = READ_ONCE(queue->copying);

	if (!qcud_is_copy(&req->cmd) && !(qcu_rule(req->cmd.op)->traits & QCU_WAITS))
		return 0;
	WRITE_ONCE(queue->copying, 0);
	return bytes;
}

void qcud_queue_copies(struct qcud_queue *queue, const struct qCUcmd *cmd)
{
	if (qcud_is_copy(cmd))
		WRITE_ONCE(queue->copying, READ_ONCE(queue->copying) + cmd->buf.len);
}

/* How long to sleep before it pays to poll, in nanoseconds. 0: not at all. */
static u64 qcud_nap_time(const struct qcud_queue *queue, u64 bytes)
{
	u64 takes = (bytes >> 20) * READ_ONCE(queue->copy_ns);
	u64 max = qcud_spin_max_ns();

	if (!max || takes <= max + QCUD_NAP_MARGIN)
		return 0;
	return min_t(u64, takes - max_t(u64, takes / 8, QCUD_NAP_MARGIN), QCUD_NAP_MAX);
}

/* Sleeps until the answer has come, but not longer than `ns`. */
static void qcud_nap(struct qcud_request *req, u64 ns)
{
	ktime_t left = ns_to_ktime(ns);
	DECLARE_SWAITQUEUE(wait);

	prepare_to_swait_exclusive(&req->done.wait, &wait, TASK_KILLABLE);
	if (!completion_done(&req->done) && !fatal_signal_pending(current))
		schedule_hrtimeout_range(&left, QCUD_NAP_SLACK, HRTIMER_MODE_REL);
	finish_swait(&req->done.wait, &wait);
}

/* Notifies the device of new requests on the ring, and polls for the answer to the last of them. */
void qcud_queue_kick_and_spin(struct qcud_queue *queue, struct qcud_request *req, u32 how)
{
	u64 began = ktime_get_ns();
	u64 limit = qcud_spin_limit(queue, req, how), nap = 0;

	req->began = began;
	req->copying = qcud_copying(queue, req);
	if (how == QCU_WAIT_ADAPT && num_online_cpus() > 1)
		nap = qcud_nap_time(queue, req->copying);
	if (!limit && !nap) {
		qcud_queue_kick(queue);
		return;
	}
	if (nap) {
		qcud_queue_kick(queue);
		qcud_nap(req, nap);
		if (completion_done(&req->done)) {
			qcud_queue_count(queue, QCUD_COUNT_WAITS);
			return;
		}
		began = ktime_get_ns();
		limit = qcud_spin_max_ns();
	}
	qcud_spin_begin(queue);
	qcud_spin(queue, req, began, limit);
	qcud_spin_end(queue);
	/*
	 * Between rounds other threads get this processor, and other callers on the queue get their
	 * interrupts.
	 */
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

/* A MiB has taken so long. What is faster counts at once; what is slower may have waited first. */
static void qcud_learn(struct qcud_queue *queue, u64 ns)
{
	u64 before = READ_ONCE(queue->copy_ns);

	if (before && ns > before)
		ns = before + (ns - before) / 8;
	WRITE_ONCE(queue->copy_ns, min_t(u64, ns, U32_MAX));
}

/*
 * Sets how long to poll for the next answer from the time of this one. Concurrent updates may get
 * lost; that is harmless.
 */
static void qcud_spin_adapt(struct qcud_queue *queue, const struct qcud_request *req)
{
	unsigned int max = qcud_spin_max_ns(), now = READ_ONCE(queue->spin_ns);
	u64 took = ktime_get_ns() - req->began;

	if (req->copying >= QCUD_LONG_COPY) {
		qcud_learn(queue, div_u64(took, req->copying >> 20));
		if (took > max)
			return;
	}
	now = took <= max ? max : min(now, max) / 2;
	if (now < QCUD_SPIN_MIN_NS)
		now = 0;
	WRITE_ONCE(queue->spin_ns, now);
}

/*
 * Waits for the reply. 0: the reply is valid. -EINTR: the caller is being killed, and the request
 * continues without it.
 */
int qcud_request_wait(struct qcud_queue *queue, struct qcud_request *req)
{
	long left = qcud_request_parks(req) ? MAX_SCHEDULE_TIMEOUT : qcud_answer_timeout(), rc;

	if (!completion_done(&req->done)) {
		if (req->began && left != MAX_SCHEDULE_TIMEOUT)
			left = max(left - (long)nsecs_to_jiffies(ktime_get_ns() - req->began),
				   (long)HZ);
		qcud_queue_count(queue, QCUD_COUNT_WAITS);
		do
			rc = wait_for_completion_killable_timeout(&req->done,
								  qcud_next_second(&left));
		while (!rc && left);
		if (rc < 0)
			return -EINTR;
		if (!rc)
			return qcud_answer_missing(queue);
	}
	if (req->began)
		qcud_spin_adapt(queue, req);
	return req->error;
}

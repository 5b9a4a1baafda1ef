// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests and the virtqueue that carries them. This is the only file that touches a virtqueue. A
 * request goes on the ring with one reference for the queue. The queue drops that reference exactly
 * once, at the device's answer or at a reset. The sender may have given up long before.
 */
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/virtio.h>
#include <linux/virtio_config.h>
#include <linux/vmalloc.h>

#include "qcuda.h"

static unsigned int answer_timeout;
module_param(answer_timeout, uint, 0644);
MODULE_PARM_DESC(answer_timeout,
		 "seconds after which a session without an answer is ended; 0: never");

static struct kmem_cache *qcud_request_cache;

/* The slab constructor. It runs once for memory that many requests use, one after the other. */
static void qcud_request_init(void *memory)
{
	struct qcud_request *req = memory;

	sg_init_one(&req->sg_cmd, &req->cmd, sizeof(req->cmd));
	sg_init_one(&req->sg_reply, &req->reply, sizeof(req->reply));
}

int qcud_request_cache_create(void)
{
	qcud_request_cache =
		kmem_cache_create("qcuda_request", sizeof(struct qcud_request), 64,
				  SLAB_HWCACHE_ALIGN | SLAB_ACCOUNT, qcud_request_init);
	return qcud_request_cache ? 0 : -ENOMEM;
}

void qcud_request_cache_destroy(void)
{
	kmem_cache_destroy(qcud_request_cache);
}

struct qcud_request *qcud_request_new(u16 op)
{
	const size_t begin = offsetof(struct qcud_request, cmd);
	struct qcud_request *req = kmem_cache_alloc(qcud_request_cache, GFP_KERNEL);

	if (!req)
		return NULL;
	memset((void *)req + begin, 0, sizeof(*req) - begin);
	req->cmd.op = op;
	refcount_set(&req->refs, 1);
	INIT_LIST_HEAD(&req->node);
	init_completion(&req->done);
	qcud_stat_add(QCUD_STAT_REQUESTS, 1);
	return req;
}

/* Takes over `payload`, also when this fails. The payload is later freed with kvfree(). */
int qcud_request_payload(struct qcud_request *req, void *payload, size_t bytes)
{
	size_t pages, i;

	req->payload = payload;
	req->payload_bytes = bytes;
	if (!is_vmalloc_addr(payload)) {
		sg_init_one(&req->sg_payload, payload, bytes);
		return 0;
	}

	/* vmalloc memory is page-aligned, so it begins with a whole page. */
	pages = DIV_ROUND_UP(bytes, PAGE_SIZE);
	req->sg = kmalloc_array(pages, sizeof(*req->sg), GFP_KERNEL_ACCOUNT);
	if (!req->sg)
		return -ENOMEM;
	sg_init_table(req->sg, pages);
	for (i = 0; i < pages; i++)
		sg_set_page(&req->sg[i], vmalloc_to_page(payload + i * PAGE_SIZE),
			    min_t(size_t, bytes - i * PAGE_SIZE, PAGE_SIZE), 0);
	return 0;
}

static void qcud_request_free(struct qcud_request *req)
{
	if (req->release)
		req->release(req);
	if (req->unuse)
		req->unuse(req);
	if (req->payload) {
		kvfree(req->payload);
		kfree(req->sg);
	}
	kmem_cache_free(qcud_request_cache, req);
	qcud_stat_add(QCUD_STAT_REQUESTS, -1);
}

/* May sleep when the caller drops the last reference. */
void qcud_request_put(struct qcud_request *req)
{
	if (req && refcount_dec_and_test(&req->refs))
		qcud_request_free(req);
}

static void qcud_queue_kill_locked(struct qcud_queue *queue, int error)
{
	struct qcud_request *req;

	lockdep_assert_held(&queue->lock);

	if (queue->dead)
		return;
	WRITE_ONCE(queue->dead, error);
	/* No caller waits for these requests any more, but the device still has them. */
	list_for_each_entry(req, &queue->inflight, node) {
		req->error = error;
		complete_all(&req->done);
	}
	wake_up_all(&queue->room);
	if (queue->session)
		wake_up_all(&queue->session->wait);
}

void qcud_queue_kill(struct qcud_queue *queue, int error)
{
	unsigned long flags;

	spin_lock_irqsave(&queue->lock, flags);
	qcud_queue_kill_locked(queue, error);
	spin_unlock_irqrestore(&queue->lock, flags);
}

/* The device is no longer used: all requests fail, and nothing more is sent. */
void qcud_device_break(struct qcud_device *dev, int error)
{
	unsigned int i;

	for (i = 0; i < dev->nr_queues; i++)
		qcud_queue_kill(&dev->queue[i], error);
}

/* Adds the times of a copy to the statistics. */
static void qcud_count_time(const struct qcud_request *req)
{
	const struct qCUcmd *reply = &req->reply;
	bool up = qcu_rule(req->cmd.op)->buffer == QCU_BUFFER_IN;

	if (!req->sent || req->error)
		return;
	qcud_stat_add(QCUD_STAT_TIMED_COPIES, 1);
	qcud_stat_add(QCUD_STAT_TIMED_RING, ktime_get_ns() - req->sent);
	qcud_stat_add(QCUD_STAT_TIMED_MIRROR,
		      up ? reply->copy_h2d.mirror_ns : reply->copy_d2h.mirror_ns);
	qcud_stat_add(QCUD_STAT_TIMED_COPY, up ? reply->copy_h2d.copy_ns : reply->copy_d2h.copy_ns);
}

/* Keeps the error of a posted command for the thread that posted it. */
static void qcud_queue_note(struct qcud_queue *queue, const struct qcud_request *req)
{
	unsigned int i;

	for (i = 0; i < queue->nr_late; i++)
		if (queue->late[i].tid == req->cmd.tid)
			return;
	if (i == QCUD_LATE) {
		queue->late[QCUD_LATE - 1].tid = 0;
		return;
	}
	queue->late[i].tid = req->cmd.tid;
	queue->late[i].status = req->reply.status;
	WRITE_ONCE(queue->nr_late, i + 1);
}

/* Returns and forgets the error that is kept for this thread. Usually there is none: 0. */
s32 qcud_queue_late(struct qcud_queue *queue, u32 tid)
{
	unsigned int i;
	s32 status = 0;

	if (!READ_ONCE(queue->nr_late))
		return 0;
	spin_lock_irq(&queue->lock);
	for (i = 0; i < queue->nr_late && !status; i++) {
		if (queue->late[i].tid && queue->late[i].tid != tid)
			continue;
		status = queue->late[i].status;
		WRITE_ONCE(queue->nr_late, queue->nr_late - 1);
		queue->late[i] = queue->late[queue->nr_late];
	}
	spin_unlock_irq(&queue->lock);
	return status;
}

/* Does the request hold nothing whose release may sleep? */
static bool qcud_request_light(const struct qcud_request *req)
{
	return !req->release && !req->sg;
}

/* Is the request posted, and does its end release memory that another thread may wait for? */
static bool qcud_request_heavy(const struct qcud_request *req)
{
	if (!req->posted)
		return false;
	return !qcud_request_light(req) || (req->group && READ_ONCE(req->group->closed));
}

/*
 * A group is closed. The end of the requests that use it releases its memory, so the driver must
 * notice that end. Requests that are not on the ring yet see that the group is closed when they are
 * put there.
 */
void qcud_queue_expect(struct qcud_queue *queue, const struct qcud_group *group)
{
	struct qcud_request *req;
	unsigned long flags;

	spin_lock_irqsave(&queue->lock, flags);
	list_for_each_entry(req, &queue->inflight, node) {
		if (req->group != group || !req->posted || req->heavy)
			continue;
		req->heavy = true;
		queue->heavy++;
	}
	qcud_queue_interrupts(queue);
	spin_unlock_irqrestore(&queue->lock, flags);
}

/* The device is done with a request. Drops the queue's reference. */
static void qcud_queue_answered(struct qcud_queue *queue, struct qcud_request *req)
{
	list_del_init(&req->node);
	if (!req->posted)
		queue->wanted--;
	else if (req->heavy)
		queue->heavy--;
	qcud_count_time(req);
	WRITE_ONCE(queue->answers, queue->answers + 1);
	/*
	 * The request's use of the group ends here, not when the request is freed: a thread that
	 * waits for a closing group may be the thread that would free the request.
	 */
	if (req->unuse)
		req->unuse(req);
	if (req->posted && !req->error && req->reply.status)
		qcud_queue_note(queue, req);
	/* No caller waits for a posted request, except to copy data back from kernel memory. */
	if (!req->posted || req->bounce)
		complete_all(&req->done);
	if (!refcount_dec_and_test(&req->refs))
		return;
	if (qcud_request_light(req)) {
		qcud_request_free(req);
	} else {
		list_add_tail(&req->node, &queue->reap);
		queue_work(qcud_wq, &queue->work);
	}
}

/* A reply must match the record that it answers, and must be exactly one record long. */
static bool qcud_reply_fits(const struct qcud_request *req, unsigned int len)
{
	return len == sizeof(req->reply) && req->reply.op == req->cmd.op &&
	       req->reply.tid == req->cmd.tid && req->reply.seq == req->cmd.seq;
}

/* Takes the answers that have arrived. */
void qcud_queue_drain(struct qcud_queue *queue)
{
	struct qcud_request *req;
	unsigned int len;
	bool any = false;

	lockdep_assert_held(&queue->lock);

	while ((req = virtqueue_get_buf(queue->vq, &len)) != NULL) {
		if (!req->error && !qcud_reply_fits(req, len)) {
			qcud_queue_kill_locked(queue, len ? -EIO : -ESHUTDOWN);
			req->error = queue->dead;
		}
		qcud_queue_answered(queue, req);
		any = true;
	}
	if (virtqueue_is_broken(queue->vq))
		qcud_queue_kill_locked(queue, -EIO);
	if (queue->starved && any) {
		queue->starved = false;
		queue_work(qcud_wq, &queue->work);
	}
	/* Pairs with the condition in qcud_queue_room(), which reads `answers` without the lock. */
	if (any && wq_has_sleeper(&queue->room))
		wake_up_all(&queue->room);
}

/*
 * Turns interrupts on or off. Sleeping callers need interrupts. While a caller polls for answers,
 * interrupts are off. No caller waits for posted commands. Posted commands that hold pages of the
 * program get one interrupt for many of them. The driver notices the end of all other posted
 * commands when it does something else on the queue.
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

/* The caller is about to sleep until a request on the queue has been answered. */
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

void qcud_queue_count(struct qcud_queue *queue, enum qcud_count count)
{
	atomic64_inc(&queue->counts[count]);
	qcud_stat_add(QCUD_STAT_FIRST_COUNT + count, 1);
}

void qcud_queue_callback(struct virtqueue *vq)
{
	/* Not vq->priv, which belongs to the transport. */
	struct qcud_device *dev = vq->vdev->priv;
	struct qcud_queue *queue = &dev->queue[vq->index];
	unsigned long flags;

	qcud_queue_count(queue, QCUD_COUNT_INTERRUPTS);
	spin_lock_irqsave(&queue->lock, flags);
	qcud_queue_interrupts(queue);
	spin_unlock_irqrestore(&queue->lock, flags);
	/* The control queue was given up, and the host answers again: the device can be set up
	 * anew. */
	if (!vq->index && READ_ONCE(queue->dead))
		virtio_config_changed(vq->vdev);
}

/* Takes the answers that have arrived, without an interrupt. */
void qcud_queue_poll(struct qcud_queue *queue)
{
	spin_lock_irq(&queue->lock);
	if (queue->vq)
		qcud_queue_drain(queue);
	spin_unlock_irq(&queue->lock);
	wake_up_all(&queue->room);
}

/*
 * Notifies the device of new requests on the ring, if it wants to be notified. The lock keeps the
 * virtqueue from being deleted meanwhile. On PCI a notification is one write to a register.
 */
void qcud_queue_notify(struct qcud_queue *queue)
{
	lockdep_assert_held(&queue->lock);

	qcud_queue_interrupts(queue);
	if (!queue->vq || !virtqueue_kick_prepare(queue->vq))
		return;
	qcud_queue_count(queue, QCUD_COUNT_KICKS);
	if (!virtqueue_notify(queue->vq))
		qcud_queue_kill_locked(queue, -EIO);
}

void qcud_queue_kick(struct qcud_queue *queue)
{
	unsigned long flags;

	spin_lock_irqsave(&queue->lock, flags);
	qcud_queue_notify(queue);
	spin_unlock_irqrestore(&queue->lock, flags);
}

/* The longest time that an answer may take, in jiffies. */
long qcud_answer_timeout(void)
{
	unsigned int seconds = READ_ONCE(answer_timeout);

	return seconds ? min_t(long, seconds, 24 * 3600) * HZ : MAX_SCHEDULE_TIMEOUT;
}

/* The host has not answered within answer_timeout. Ends the session. */
int qcud_answer_missing(struct qcud_queue *queue)
{
	pr_err_ratelimited("qcuda: a session of process %d has had no answer for %u s: ended\n",
			   task_tgid_nr(current), READ_ONCE(answer_timeout));
	qcud_queue_kill(queue, -ETIMEDOUT);
	return -ETIMEDOUT;
}

static bool qcud_queue_moved(const struct qcud_queue *queue, unsigned int answers)
{
	return READ_ONCE(queue->answers) != answers || READ_ONCE(queue->dead);
}

/* Waits until the queue has had more than `answers` answers, each of which makes room. */
static int qcud_queue_room(struct qcud_queue *queue, unsigned int answers)
{
	long left = qcud_answer_timeout(), rc;

	qcud_queue_want(queue);
	qcud_queue_kick(queue);
	if (!qcud_queue_moved(queue, answers))
		qcud_queue_count(queue, QCUD_COUNT_WAITS);
	do {
		long now = qcud_next_second(&left);

		rc = wait_event_killable_timeout(queue->room, qcud_queue_moved(queue, answers),
						 now);
	} while (!rc && left);
	qcud_queue_unwant(queue);
	if (rc < 0)
		return -EINTR;
	return rc ? 0 : qcud_answer_missing(queue);
}

/*
 * Puts a request on the ring. If there is no room: with QCUD_SEND_WAIT it waits for room, else it
 * returns -ENOSPC. With QCUD_SEND_WORK (the work item): the queue takes over the caller's
 * reference, and if there is no room, the work item runs again when there is.
 */
int qcud_queue_send(struct qcud_queue *queue, struct qcud_request *req, unsigned int how)
{
	struct scatterlist *sgs[3];
	unsigned int answers, out = 0;
	unsigned long flags;
	int ret;

	sgs[out++] = &req->sg_cmd;
	if (req->payload)
		sgs[out++] = req->sg ?: &req->sg_payload;
	sgs[out] = &req->sg_reply;

	do {
		spin_lock_irqsave(&queue->lock, flags);
		answers = queue->answers;
		ret = queue->dead;
		if (!ret)
			ret = virtqueue_add_sgs(queue->vq, sgs, out, 1, req, GFP_ATOMIC);
		if (!ret) {
			if (!(how & QCUD_SEND_WORK))
				refcount_inc(&req->refs);
			list_add_tail(&req->node, &queue->inflight);
			req->heavy = qcud_request_heavy(req);
			if (!req->posted)
				queue->wanted++;
			else if (req->heavy)
				queue->heavy++;
			if (how & QCUD_SEND_KICK)
				qcud_queue_notify(queue);
		} else if (ret == -ENOSPC) {
			if (how & QCUD_SEND_WORK) {
				queue->starved = true;
				qcud_queue_interrupts(queue);
			}
		} else if (!queue->dead) {
			qcud_queue_kill_locked(queue, ret);
		}
		spin_unlock_irqrestore(&queue->lock, flags);
	} while (ret == -ENOSPC && how & QCUD_SEND_WAIT &&
		 !(ret = qcud_queue_room(queue, answers)));
	return ret;
}

/* Called after a reset. The device no longer has any request, and the virtqueue may be deleted. */
void qcud_queue_detach(struct qcud_queue *queue)
{
	struct qcud_request *req;

	spin_lock_irq(&queue->lock);
	qcud_queue_kill_locked(queue, -ENODEV);
	if (queue->vq)
		while ((req = virtqueue_detach_unused_buf(queue->vq)) != NULL)
			qcud_queue_answered(queue, req);
	queue->vq = NULL;
	spin_unlock_irq(&queue->lock);
	wake_up_all(&queue->room);
}

/* Frees the requests that were left to a context that may sleep. Returns the queue's session. */
struct qcud_session *qcud_queue_reap(struct qcud_queue *queue)
{
	struct qcud_request *req, *next;
	struct qcud_session *session;
	LIST_HEAD(reap);

	spin_lock_irq(&queue->lock);
	list_splice_init(&queue->reap, &reap);
	session = queue->session;
	spin_unlock_irq(&queue->lock);

	list_for_each_entry_safe(req, next, &reap, node) {
		list_del_init(&req->node);
		qcud_request_free(req);
	}
	return session;
}

void qcud_queue_init(struct qcud_queue *queue, work_func_t work)
{
	spin_lock_init(&queue->lock);
	INIT_LIST_HEAD(&queue->inflight);
	INIT_LIST_HEAD(&queue->reap);
	init_waitqueue_head(&queue->room);
	INIT_WORK(&queue->work, work);
}

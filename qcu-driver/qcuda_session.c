// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A session: one open file of /dev/qcuda, one virtqueue, one mirror on the host, one address space.
 * This file has its beginning, its end and the ioctls. Data from user space is copied once, then
 * checked against the table of commands. Only the copy is used.
 *
 * Errors: a function returns 0 or -errno. A record's status is what the device answered
 * (cudaError_t), or, if negative, the reason why the driver did not let the device answer.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/log2.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "qcuda.h"

static bool kernel_copy;
module_param(kernel_copy, bool, 0644);
MODULE_PARM_DESC(kernel_copy, "copy through kernel memory; slow, only to compare with");

/*
 * Sends a command on the control queue and waits for the answer. If no answer comes in time, the
 * device is given up. The queue always has room: a session sends only one OPEN and one CLOSE.
 */
static int qcud_control(struct qcud_device *dev, struct qcud_request *req, bool killable)
{
	struct qcud_queue *queue = &dev->queue[0];
	long left = qcud_timeout(), rc;
	int ret;

	ret = qcud_queue_send(queue, req, QCUD_SEND_KICK);
	if (ret == -ENOSPC)
		goto broken;
	if (ret)
		return ret;

	do {
		long now = qcud_next_second(&left);

		rc = killable ? wait_for_completion_killable_timeout(&req->done, now)
			      : (long)wait_for_completion_timeout(&req->done, now);
	} while (!rc && left);
	if (rc > 0)
		return req->error;
	if (rc < 0)
		return -EINTR;
	pr_err("qcuda: the device does not answer\n");
broken:
	qcud_device_break(dev, -EIO);
	return -EIO;
}

/* No process on the host has pages of this session any more. Gives everything back. */
void qcud_session_finish(struct qcud_session *session)
{
	struct qcud_queue *queue = session->queue;
	struct qcud_device *dev = session->dev;
	bool usable;

	spin_lock(&session->lock);
	session->detached = true;
	spin_unlock(&session->lock);
	qcud_managed_lost(session);

	/*
	 * A MAP of a killed thread keeps a group in use. Its answer has come, so this does not
	 * wait.
	 */
	mutex_lock(&session->map_lock);
	qcud_map_settle(session);
	mutex_unlock(&session->map_lock);
	cancel_work_sync(&queue->work);
	qcud_session_reap(&queue->work);
	/* The end of the last requests may have queued the work item once more. */
	cancel_work_sync(&queue->work);
	qcud_session_reap(&queue->work);
	qcud_registered_end(session);

	spin_lock_irq(&queue->lock);
	queue->session = NULL;
	usable = queue->vq && !virtqueue_is_broken(queue->vq);
	spin_unlock_irq(&queue->lock);

	qcud_session_returned();
	mutex_lock(&qcud_lock);
	list_del(&session->node);
	qcud_user_session_end(session->user);
	if (usable)
		__clear_bit(session->id, dev->busy);
	mutex_unlock(&qcud_lock);

	if (session->mm)
		mmdrop(session->mm);
	put_pid(session->owner);
	qcud_user_put(session->user);
	qcud_request_put(session->close_req);
	fput(session->memory);
	/*
	 * No device knows the memory that is still mapped. Its groups keep the session structure.
	 */
	session->queue = NULL;
	session->dev = NULL;
	qcud_session_put(session);
	qcud_stat_add(QCUD_STAT_SESSIONS, -1);
	qcud_device_put(dev);
}

/*
 * Ends the mirror, then the session. The device kills the mirror, answers all outstanding requests,
 * and then answers CLOSE. So after that answer no DMA touches the session's pages. Without that
 * answer the pages must stay.
 */
static void qcud_session_close(struct qcud_session *session)
{
	struct qcud_queue *queue = session->queue;
	struct qcud_device *dev = session->dev;
	bool keep, idle;
	int ret;

	spin_lock(&session->lock);
	session->ending = true;
	spin_unlock(&session->lock);
	qcud_queue_kill(queue, -ESHUTDOWN);
	ret = qcud_control(dev, session->close_req, false);
	qcud_queue_poll(queue);
	spin_lock_irq(&queue->lock);
	idle = list_empty(&queue->inflight);
	spin_unlock_irq(&queue->lock);
	if (!ret && !idle) {
		pr_err("qcuda: session %u: closed, but commands are not answered\n", session->id);
		qcud_device_break(dev, -EIO);
	}

	mutex_lock(&qcud_lock);
	keep = !dev->stopped && (ret || !idle);
	session->kept = keep;
	if (keep && !dev->stopping)
		pr_warn("qcuda: leak: session %u of process %d keeps its pages until a reset\n",
			session->id, session->pid);
	mutex_unlock(&qcud_lock);
	/* From now on a kept session is freed by a reset. */
	if (!keep)
		qcud_session_finish(session);
}

/*
 * Gives the session a free queue of the device. Fails if there is no device that this module can
 * work with (-EPROTO: it has another wire version), no free queue, or if the user has too many
 * sessions.
 */
static int qcud_session_attach(struct qcud_session *session)
{
	struct qcud_device *dev;
	struct qcud_queue *queue;
	unsigned int version;
	int ret = 0;

	mutex_lock(&qcud_lock);
	dev = qcud_dev;
	if (!dev || dev->stopping || !dev->config.sessions) {
		version = READ_ONCE(qcud_device_wire_version);
		ret = version && version != QCU_WIRE_VERSION ? -EPROTO : -ENODEV;
		goto out;
	}
	if (READ_ONCE(dev->queue[0].dead)) {
		ret = -EIO;
		goto out;
	}
	session->id = find_next_zero_bit(dev->busy, dev->nr_queues, 1);
	if (session->id >= dev->nr_queues) {
		ret = -EBUSY;
		goto out;
	}
	if (!qcud_user_session(session->user, dev->nr_queues - 1)) {
		ret = -EDQUOT;
		goto out;
	}
	__set_bit(session->id, dev->busy);
	kref_get(&dev->refs);
	queue = &dev->queue[session->id];
	session->dev = dev;
	session->queue = queue;
	spin_lock_irq(&queue->lock);
	queue->session = session;
	queue->dead = 0;
	queue->starved = false;
	queue->spin_ns = QCUD_SPIN_FIRST_NS;
	queue->copy_ns = 0;
	queue->copying = 0;
	memset(queue->counts, 0, sizeof(queue->counts));
	queue->nr_late = 0;
	queue->wanted = 0;
	queue->heavy = 0;
	spin_unlock_irq(&queue->lock);
	list_add_tail(&session->node, &qcud_sessions);
out:
	mutex_unlock(&qcud_lock);
	return ret;
}

static int qcud_open(struct inode *inode, struct file *file)
{
	struct qcud_session *session;
	struct qcud_request *req;
	int ret = -ENOMEM;

	session = kzalloc(sizeof(*session), GFP_KERNEL_ACCOUNT);
	if (!session)
		return -ENOMEM;
	kref_init(&session->refs);
	session->memory = qcud_memory_file();
	if (IS_ERR(session->memory)) {
		ret = PTR_ERR(session->memory);
		kfree(session);
		return ret;
	}
	session->user = qcud_user_get();
	req = qcud_request_new(QCU_OP_OPEN);
	session->close_req = qcud_request_new(QCU_OP_CLOSE);
	if (!session->user || !req || !session->close_req)
		goto free;
	session->pid = task_tgid_nr(current);
	session->chunk_bytes = READ_ONCE(qcud_chunk_kb) << 10;
	session->groups = RB_ROOT;
	session->registered = RB_ROOT;
	session->own = RB_ROOT;
	session->annex = RB_ROOT;
	spin_lock_init(&session->lock);
	mutex_init(&session->map_lock);
	mutex_init(&session->move_lock);
	init_rwsem(&session->launching);
	INIT_LIST_HEAD(&session->managed);
	INIT_LIST_HEAD(&session->closing);
	init_waitqueue_head(&session->wait);
	ret = qcud_session_attach(session);
	if (ret)
		goto free;
	qcud_stat_add(QCUD_STAT_SESSIONS, 1);

	session->close_req->cmd.close.queue = session->id;
	req->cmd.open.queue = session->id;
	req->cmd.open.pid = session->pid;
	req->cmd.open.chunk_bytes = session->chunk_bytes;
	get_task_comm(req->cmd.open.comm, current);
	ret = qcud_control(session->dev, req, true);
	if (!ret && !req->reply.status) {
		qcud_request_put(req);
		file->private_data = session;
		return 0;
	}
	if (!ret) {
		pr_notice_ratelimited("qcuda: the device refuses a session: %d\n",
				      req->reply.status);
		ret = -EIO;
		qcud_session_finish(session);
	} else if (ret == -EINTR) {
		/* OPEN is on the control queue already; CLOSE is answered after it. */
		qcud_session_close(session);
	} else {
		/* The session has sent no command, so the device has none of its pages. */
		qcud_session_finish(session);
	}
	qcud_request_put(req);
	return ret;

free:
	qcud_request_put(req);
	qcud_request_put(session->close_req);
	qcud_user_put(session->user);
	fput(session->memory);
	kfree(session);
	return ret;
}

/* Mappings of the session may still exist. They belong to another file. */
static int qcud_release(struct inode *inode, struct file *file)
{
	qcud_session_close(file->private_data);
	return 0;
}

/* Is the caller's address space the session's? A session has one, the one that sent HELLO. */
static bool qcud_session_ours(struct qcud_session *session)
{
	return READ_ONCE(session->mm) == current->mm;
}

static int qcud_hello(struct qcud_session *session, struct qcu_hello __user *arg)
{
	const struct qcu_config *config = &session->dev->config;
	struct qcu_hello hello;
	bool match;
	int ret = READ_ONCE(session->queue->dead);

	if (ret)
		return ret;
	if (copy_from_user(&hello, arg, sizeof(hello)))
		return -EFAULT;
	if (memchr_inv(hello.rsvd, 0, sizeof(hello.rsvd)))
		return -EINVAL;
	match = hello.library_version == QCU_WIRE_VERSION;
	hello.driver_version = QCU_WIRE_VERSION;
	hello.device_version = config->version;
	hello.session = session->id;
	hello.window_base = config->window_base;
	hello.window_size = config->window_size;

	spin_lock(&session->lock);
	hello.chunk_bytes = session->chunk_bytes;
	if (session->mm && session->mm != current->mm) {
		ret = -EPERM;
	} else if (match && !session->mm) {
		mmgrab(current->mm);
		session->mm = current->mm;
		session->owner = get_task_pid(current, PIDTYPE_TGID);
	}
	spin_unlock(&session->lock);
	if (ret)
		return ret;

	if (copy_to_user(arg, &hello, sizeof(hello)))
		return -EFAULT;
	return match ? 0 : -EPROTO;
}

static int qcud_set_chunk(struct qcud_session *session, struct qcu_chunk_size __user *arg)
{
	struct qcu_chunk_size chunk;
	int ret = 0;

	if (copy_from_user(&chunk, arg, sizeof(chunk)))
		return -EFAULT;
	if (chunk.rsvd || !is_power_of_2(chunk.bytes) || chunk.bytes < QCU_CHUNK_MIN ||
	    chunk.bytes > QCU_CHUNK_MAX)
		return -EINVAL;

	spin_lock(&session->lock);
	if (session->mm && session->mm != current->mm)
		ret = -EPERM;
	else if (session->mapped_once)
		ret = -EBUSY;
	else
		session->chunk_bytes = chunk.bytes;
	spin_unlock(&session->lock);
	return ret;
}

static int qcud_set_waiting(struct qcud_session *session, struct qcu_waiting __user *arg)
{
	struct qcu_waiting waiting;

	if (!qcud_session_ours(session))
		return -EPERM;
	if (copy_from_user(&waiting, arg, sizeof(waiting)))
		return -EFAULT;
	if (waiting.rsvd || waiting.how > QCU_WAIT_SLEEP)
		return -EINVAL;
	WRITE_ONCE(session->waiting, waiting.how);
	return 0;
}

static int qcud_message(struct qcud_request *req, u64 addr, u64 len)
{
	void *message;

	message = kvmalloc(len, GFP_KERNEL_ACCOUNT);
	if (!message)
		return -ENOMEM;
	if (copy_from_user(message, u64_to_user_ptr(addr), len)) {
		kvfree(message);
		return -EFAULT;
	}
	req->cmd.flags |= QCU_F_MSG;
	qcud_stat_add(QCUD_STAT_MSG_BYTES, len);
	qcud_stat_add(QCUD_STAT_COPIED_IN_GUEST, len);
	return qcud_request_payload(req, message, len);
}

static enum qcud_use qcud_use_of(u8 kind)
{
	switch (kind) {
	case QCU_BUFFER_OUT:
		return QCUD_USE_WRITE;
	case QCU_BUFFER_STAY:
		return QCUD_USE_GPU;
	}
	return QCUD_USE_READ;
}

/*
 * Does KERNEL_COPY apply? It does not apply to pinned memory that is copied in stream order, nor to
 * registered memory. For these the bytes count at the time when the stream reaches the copy, not
 * now.
 */
static bool qcud_bounces(struct qcud_session *session, const struct qcud_request *req)
{
	const struct qCUcmd *cmd = &req->cmd;
	struct qcud_group *group;

	if (!READ_ONCE(kernel_copy) || !qcud_is_copy(cmd))
		return false;
	if (qcu_field(cmd, qcu_rule(cmd->op)->until) & QCU_COPY_QUEUED)
		return false;
	group = qcud_registered_use(session, cmd->buf.addr, cmd->buf.len);
	if (group)
		qcud_group_unuse(group);
	return !group;
}

/*
 * A buffer in memory that moves cannot stay where it is. Nor can it be the target of a command for
 * which the same memory is given to the GPU: what the device writes to its pages would be lost.
 */
static bool qcud_moves_badly(const struct qCUcmd *cmd, u8 kind)
{
	return kind == QCU_BUFFER_STAY ||
	       (kind == QCU_BUFFER_OUT && qcu_rule(cmd->op)->traits & QCU_MEMORY);
}

/* Makes the request's buffer usable for the device. Returns the same values as qcud_group_map(). */
static int qcud_buffer(struct qcud_session *session, struct qcud_request *req, u8 kind)
{
	u64 addr = req->cmd.buf.addr, len = req->cmd.buf.len;
	struct qcud_group *group;
	int ret;

	if (kind == QCU_BUFFER_NONE)
		return 0;
	if (!len)
		return 0;
	if (addr >= TASK_SIZE_MAX || len > TASK_SIZE_MAX - addr)
		return -EFAULT;
	if (kind == QCU_BUFFER_MSG)
		return qcud_message(req, addr, len);
	if (qcud_bounces(session, req))
		return qcud_bounce(req, kind == QCU_BUFFER_OUT);

	group = qcud_group_find(session, addr, len);
	/* Memory that moves is not in the mirror. It is pinned, which brings it back. */
	if (group && (!group->in_window || READ_ONCE(group->moves))) {
		bool refuse = group->in_window && qcud_moves_badly(&req->cmd, kind);

		qcud_group_unuse(group);
		if (refuse)
			return -EINVAL;
		group = NULL;
	}
	if (group) {
		qcud_request_use(req, group, kind == QCU_BUFFER_OUT);
		ret = qcud_group_map(group, addr, len, qcud_use_of(kind));
		if (ret)
			return ret;
		req->cmd.flags |= QCU_F_WINDOW;
		qcud_stat_add(QCUD_STAT_WINDOW_BYTES, len);
		return 0;
	}
	if (kind == QCU_BUFFER_STAY)
		return req->cmd.op == QCU_OP_HOST_REGISTER ? qcud_register(session, req) : -EINVAL;
	group = qcud_registered_use(session, addr, len);
	if (group) {
		qcud_request_use(req, group, false);
		req->cmd.buf.addr = qcud_registered_at(group, addr);
		req->cmd.flags |= QCU_F_WINDOW;
		qcud_stat_add(QCUD_STAT_WINDOW_BYTES, len);
		return 0;
	}

	ret = qcud_pin(session->user, req, addr, len, kind == QCU_BUFFER_OUT);
	if (ret)
		return ret;
	req->cmd.flags |= QCU_F_SEGS;
	qcud_stat_add(QCUD_STAT_PAGES_BYTES, len);
	return 0;
}

/* Counts the driver's part of a copy's time, and asks the device to report its own part. */
static void qcud_time_copy(struct qcud_request *req, u64 began)
{
	if (!began)
		return;
	req->sent = ktime_get_ns();
	qcud_stat_add(QCUD_STAT_TIMED_PIN, req->sent - began);
	req->cmd.words[qcu_rule(req->cmd.op)->until / 4] |= QCU_COPY_TIMED;
}

static bool qcud_timed(const struct qCUcmd *cmd)
{
	return READ_ONCE(qcud_trace) && qcud_is_copy(cmd);
}

/*
 * Checks one record and puts it on the ring. Returns 0, or the status that the record gets instead
 * of a reply. After that only the queue holds a posted request. If the last record is posted, the
 * device is notified.
 */
static int qcud_submit_one(struct qcud_session *session, const struct qCUcmd *cmd, bool last,
			   struct qcud_request **queued)
{
	const struct qcu_rule *rule = qcu_rule(cmd->op);
	enum qcud_managed_held held = QCUD_HELD_NOTHING;
	struct qcud_request *req;
	u64 began;
	int ret = qcu_check_user(cmd);

	if (ret)
		return ret;
	req = qcud_request_new(cmd->op);
	if (!req)
		return -ENOMEM;
	req->cmd = *cmd;
	began = qcud_timed(cmd) ? ktime_get_ns() : 0;
	req->posted = cmd->flags & QCU_F_POSTED;
	ret = qcud_buffer(session, req, rule->buffer);
	qcud_time_copy(req, began);
	if (!ret && cmd->op == QCU_OP_HOST_UNREGISTER)
		ret = qcud_unregister(session, req);
	if (!ret && cmd->op == QCU_OP_MANAGED)
		ret = qcud_managed_begin(session, req);
	if (!ret && READ_ONCE(session->moves))
		ret = qcud_managed_take(session, cmd, &held);
	if (!ret)
		ret = qcud_queue_send(session->queue, req,
				      (last && req->posted ? QCUD_SEND_KICK : 0) | QCUD_SEND_WAIT);
	if (!ret && cmd->op == QCU_OP_MANAGED_END)
		ret = qcud_managed_end(session, req);
	qcud_managed_sent(session, held);
	if (!ret && req->bounce && rule->buffer == QCU_BUFFER_OUT) {
		qcud_queue_kick(session->queue);
		ret = qcud_request_wait(session->queue, req);
		if (!ret && !req->reply.status)
			ret = qcud_bounce_out(req);
	}
	if (ret) {
		qcud_request_put(req);
		return ret;
	}
	qcud_queue_count(session->queue, QCUD_COUNT_COMMANDS);
	qcud_queue_copies(session->queue, cmd);
	if (cmd->flags & QCU_F_POSTED) {
		qcud_queue_count(session->queue, QCUD_COUNT_POSTED);
		qcud_request_put(req);
	} else {
		*queued = req;
	}
	return 0;
}

/*
 * The requests that one SUBMIT call has sent and waits for. `answered` is the first record without
 * an answer yet.
 */
struct qcud_batch {
	struct qcud_session *session;
	struct qCUcmd *cmds;
	u32 answered;
	struct qcud_request *last;
	struct qcud_request *queued[QCU_SUBMIT_MAX];
};

/*
 * Waits for the answers to the records before `end` that are not posted. A thread that is killed
 * meanwhile, or was killed before (`killed`), leaves its requests to the queue: then returns
 * -EINTR. Else returns 0.
 */
static int qcud_batch_answers(struct qcud_batch *batch, u32 end, int killed)
{
	struct qcud_session *session = batch->session;

	batch->last = NULL;
	for (; batch->answered < end; batch->answered++) {
		struct qcud_request *req = batch->queued[batch->answered];
		struct qCUcmd *cmd = &batch->cmds[batch->answered];
		struct qcud_group *ended = NULL;
		int ret;

		if (!req)
			continue;
		ret = killed ?: qcud_request_wait(session->queue, req);
		if (ret == -EINTR)
			killed = ret;
		else if (ret)
			cmd->status = ret;
		else
			qcu_take_answer(cmd, &req->reply);
		if (cmd->op == QCU_OP_MANAGED && cmd->status)
			qcud_managed_refused(session, cmd);
		if (!ret && !cmd->status && cmd->op == QCU_OP_HOST_UNREGISTER)
			ended = req->registered;
		if (ended)
			kref_get(&ended->refs);
		qcud_request_put(req);
		/* The next record may need the room under RLIMIT_MEMLOCK. */
		if (ended) {
			qcud_registered_wait(ended);
			qcud_group_put(ended);
		}
	}
	return killed;
}

/*
 * There is no room for the pages of record `nr` (see qcuda_user.c). First waits for the answers to
 * the records before it, which hold room. Then waits for room.
 */
static int qcud_batch_room(struct qcud_batch *batch, u32 nr)
{
	const struct qcu_buf *buf = &batch->cmds[nr].buf;
	int ret;

	qcud_stat_add(QCUD_STAT_PIN_WAITS, 1);
	qcud_queue_kick(batch->session->queue);
	ret = qcud_batch_answers(batch, nr, 0);
	return ret ?: qcud_pin_wait(batch->session, qcud_pin_pages(buf->addr, buf->len));
}

/* Sends all records in order, then waits for the answers. -EINTR: the thread is being killed. */
static int qcud_submit_all(struct qcud_session *session, struct qCUcmd *cmds, u32 count)
{
	struct qcud_batch batch;
	bool told = false;
	int killed = 0;
	u32 taken;

	/* Not an initializer, which would also clear the array, for every call. */
	batch.session = session;
	batch.cmds = cmds;
	batch.answered = 0;
	batch.last = NULL;
	qcud_queue_count(session->queue, QCUD_COUNT_IOCTLS);
	for (taken = 0; taken < count && !killed; taken++) {
		struct qcud_request **queued = &batch.queued[taken];
		struct qCUcmd *cmd = &cmds[taken];
		int ret;

		*queued = NULL;
		do {
			ret = qcud_submit_one(session, cmd, taken + 1 == count, queued);
		} while (ret == -ENOBUFS && !(ret = qcud_batch_room(&batch, taken)));
		cmd->status = ret;
		batch.last = *queued ?: batch.last;
		told = !ret && !*queued;
		if (fatal_signal_pending(current))
			killed = -EINTR;
	}
	if (batch.last && !killed)
		qcud_queue_kick_and_spin(session->queue, batch.last, READ_ONCE(session->waiting));
	else if (!told || taken < count)
		qcud_queue_kick(session->queue);
	return batch.last ? qcud_batch_answers(&batch, taken, killed) : killed;
}

/*
 * Copies the records one at a time: for a size that the compiler knows, no run-time check of the
 * object's bounds is needed.
 */
static int qcud_records_in(struct qCUcmd *cmds, const struct qCUcmd __user *from, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++)
		if (copy_from_user(&cmds[i], &from[i], sizeof(cmds[i])))
			return -EFAULT;
	return 0;
}

/* A posted record is written back only if it could not be queued. */
static int qcud_records_out(struct qCUcmd __user *to, const struct qCUcmd *cmds, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++) {
		if (cmds[i].flags & QCU_F_POSTED && !cmds[i].status)
			continue;
		if (copy_to_user(&to[i], &cmds[i], sizeof(cmds[i])))
			return -EFAULT;
	}
	return 0;
}

static long qcud_submit(struct qcud_session *session, struct qcu_submit __user *arg)
{
	u64 began = READ_ONCE(qcud_trace) ? ktime_get_ns() : 0;
	struct qCUcmd one, *cmds = &one;
	struct qCUcmd __user *user;
	struct qcu_submit submit;
	s32 late;
	long ret;

	if (!qcud_session_ours(session))
		return -EPERM;
	if (copy_from_user(&submit, arg, sizeof(submit)))
		return -EFAULT;
	if (submit.late || !submit.count || submit.count > QCU_SUBMIT_MAX)
		return -EINVAL;
	user = u64_to_user_ptr(submit.cmds);
	/* Usually there is one record. */
	if (submit.count > 1)
		cmds = kmalloc_array(submit.count, sizeof(*cmds), GFP_KERNEL);
	if (!cmds)
		return -ENOMEM;

	ret = qcud_records_in(cmds, user, submit.count);
	if (!ret)
		ret = qcud_submit_all(session, cmds, submit.count);
	if (!ret)
		ret = qcud_records_out(user, cmds, submit.count);
	late = ret ? 0 : qcud_queue_late(session->queue, cmds[0].tid);
	if (late && put_user(late, &arg->late))
		ret = -EFAULT;
	if (cmds != &one)
		kfree(cmds);
	if (began)
		qcud_stat_add(QCUD_STAT_TIMED_IOCTL, ktime_get_ns() - began);
	return ret ?: submit.count;
}

static long qcud_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct qcud_session *session = file->private_data;
	void __user *user = (void __user *)arg;

	switch (cmd) {
	case QCU_IOC_HELLO:
		return qcud_hello(session, user);
	case QCU_IOC_SUBMIT:
		return qcud_submit(session, user);
	case QCU_IOC_CHUNK:
		return qcud_set_chunk(session, user);
	case QCU_IOC_WAITING:
		return qcud_set_waiting(session, user);
	}
	return -ENOTTY;
}

const struct file_operations qcud_fops = {
	.owner = THIS_MODULE,
	.open = qcud_open,
	.release = qcud_release,
	.unlocked_ioctl = qcud_ioctl,
	.mmap = qcud_mmap,
};

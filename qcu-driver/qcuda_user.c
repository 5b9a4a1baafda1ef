// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Limits for one user of the guest. A user may have only so many sessions that other users can
 * still get one. The user's commands may pin only a part of the memory. Chunks and registered
 * memory have limits of their own: the memory cgroup and RLIMIT_MEMLOCK.
 *
 * Other memory is pinned for as long as a command takes. A command that waits for its stream may
 * take for ever. Meanwhile the program can unmap the pages, and then nothing shows that the program
 * still holds them. RLIMIT_MEMLOCK is no good limit here: it is 8 MiB by default, and a plain
 * cudaMemcpy of more must work. So the limit is a share of all memory. A command that does not fit
 * waits until earlier commands have ended. A command that is alone may pin as much as it likes,
 * because its program has all of that memory mapped anyway.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "qcuda.h"

static unsigned int user_sessions;
module_param(user_sessions, uint, 0644);
MODULE_PARM_DESC(user_sessions,
		 "sessions for one user without CAP_SYS_RESOURCE; 0: all but an eighth");

static unsigned int pin_percent = 50;
module_param(pin_percent, uint, 0644);
MODULE_PARM_DESC(pin_percent, "percent of the memory that commands of one user may have pinned");

struct qcud_user {
	struct list_head node;
	kuid_t uid;
	unsigned int refs, sessions; /* qcud_lock */
	atomic_long_t pinned;	     /* pages */
	wait_queue_head_t room;
};

static LIST_HEAD(qcud_users); /* qcud_lock */

static unsigned int qcud_user_limit(unsigned int all)
{
	return READ_ONCE(user_sessions) ?: max(all - max(all / 8, 1U), 1U);
}

/* Returns the caller's user, to be released with qcud_user_put(). NULL: no memory. */
struct qcud_user *qcud_user_get(void)
{
	struct qcud_user *user, *mine = kzalloc(sizeof(*mine), GFP_KERNEL);

	if (!mine)
		return NULL;
	mine->uid = current_uid();
	init_waitqueue_head(&mine->room);
	mutex_lock(&qcud_lock);
	list_for_each_entry(user, &qcud_users, node)
		if (uid_eq(user->uid, mine->uid))
			goto found;
	user = mine;
	mine = NULL;
	list_add(&user->node, &qcud_users);
found:
	user->refs++;
	mutex_unlock(&qcud_lock);
	kfree(mine);
	return user;
}

void qcud_user_put(struct qcud_user *user)
{
	if (!user)
		return;
	mutex_lock(&qcud_lock);
	if (--user->refs)
		user = NULL;
	else
		list_del(&user->node);
	mutex_unlock(&qcud_lock);
	kfree(user);
}

/* Counts one more session of the caller. `all` is the number of sessions that the device has. */
bool qcud_user_session(struct qcud_user *user, unsigned int all)
{
	lockdep_assert_held(&qcud_lock);

	if (user->sessions >= qcud_user_limit(all) && !capable(CAP_SYS_RESOURCE))
		return false;
	user->sessions++;
	return true;
}

void qcud_user_session_end(struct qcud_user *user)
{
	lockdep_assert_held(&qcud_lock);

	user->sessions--;
}

/* ---- pinned pages ---- */

static bool qcud_pin_fits(const struct qcud_user *user, unsigned long have, unsigned long pages)
{
	unsigned long max = totalram_pages() / 100 * min(READ_ONCE(pin_percent), 100U);

	return !have || (have < max && pages <= max - have);
}

/* Reserves room for the request's pages until qcud_pin_end(). -ENOBUFS: no room now. */
int qcud_pin_begin(struct qcud_user *user, struct qcud_request *req, unsigned long pages)
{
	long have = atomic_long_read(&user->pinned);

	do {
		if (!qcud_pin_fits(user, have, pages))
			return -ENOBUFS;
	} while (!atomic_long_try_cmpxchg(&user->pinned, &have, have + pages));
	req->payer = user;
	req->paid = pages;
	return 0;
}

void qcud_pin_end(struct qcud_request *req)
{
	atomic_long_sub(req->paid, &req->payer->pinned);
	wake_up_all(&req->payer->room);
}

/*
 * Waits for room. The caller must hold no requests that occupy room. Other requests of the user may
 * belong to another program, which does not know about this wait. So the wait takes no longer than
 * the timeout after which a host is given up.
 */
int qcud_pin_wait(struct qcud_session *session, unsigned long pages)
{
	struct qcud_user *user = session->user;
	struct qcud_queue *queue = session->queue;
	long left = qcud_timeout(), rc;

	qcud_queue_want(queue);
	qcud_queue_kick(queue);
	do {
		long now = qcud_next_second(&left);

		rc = wait_event_killable_timeout(
			user->room,
			READ_ONCE(queue->dead) ||
				qcud_pin_fits(user, atomic_long_read(&user->pinned), pages),
			now);
	} while (!rc && left);
	qcud_queue_unwant(queue);
	if (rc < 0)
		return -EINTR;
	return rc ? READ_ONCE(queue->dead) : -ENOMEM;
}

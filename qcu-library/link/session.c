// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The session of this process with its mirror. The first call that needs a device opens it. The
 * library never closes it: the kernel does that when the process ends, so that nothing can hang at
 * exit. After fork() the child has no session. It opens its own when it first uses CUDA.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "qcu-library/link/fork.h"
#include "qcu-library/link/link.h"
#include "qcu-library/link/transport.h"

static struct {
	atomic_bool is_open; /* release: hello and info are filled in before */
	atomic_bool opened;  /* a call of the program has asked for it */
	atomic_int broken;   /* the sticky error */
	struct qcu_hello hello;
	struct qcu_info info;
	atomic_uchar work[UINT8_MAX + 1];	/* index: the mirror's device number */
	atomic_bool nonblocking[UINT8_MAX + 1]; /* the device has had a non-blocking stream */
} session;

static struct {
	atomic_uint epoch;
	uint32_t waiting; /* under the lock */
	pthread_key_t thread_key;
	bool have_thread_key;
	_Atomic(qcul_send_fn *) tracer;
	_Atomic(const struct qcul_mover *) mover;
	struct qcul_session_user *users; /* added before there is a second thread */
} process = {.epoch = 1, .waiting = QCU_WAIT_ADAPT};
QCUL_AT_FORK(QCUL_FORK_SESSION, QCUL_SESSION)

atomic_bool qcul_printed;

/* The mirror keeps a lane for each thread that has sent a command. This ends the lane. */
static void thread_ends(void *unused)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_THREAD_EXIT);

	(void)unused;
	cmd.flags = QCU_F_POSTED;
	if (atomic_load(&session.is_open) && qcul_self.epoch == qcul_epoch() &&
	    !atomic_load(&session.broken))
		(void)qcul_transport_submit(&cmd, 1);
	qcul_transport_thread_ends();
	free(qcul_self.kept);
	qcul_self.kept = NULL;
	qcul_self.epoch = 0;
}

static void after_fork_child(void)
{
	qcul_fork_child();
	qcul_self.tid = 0;
	qcul_self.epoch = 0;
	qcul_transport_close();
	qcul_self.bound = false;
	qcul_self_context(NULL, NULL, NULL);
	qcul_device_unbind(-1);
	atomic_fetch_add(&process.epoch, 1);
	qcul_forget(-1);
}

__attribute__((constructor)) static void register_fork_handlers(void)
{
	pthread_atfork(qcul_fork_before, qcul_fork_parent, after_fork_child);
	process.have_thread_key = pthread_key_create(&process.thread_key, thread_ends) == 0;
}

unsigned int qcul_epoch(void)
{
	return atomic_load_explicit(&process.epoch, memory_order_relaxed);
}

const struct qcu_hello *qcul_hello(void)
{
	return &session.hello;
}

const struct qcu_info *qcul_info(void)
{
	return &session.info;
}

void qcul_break(cudaError_t err)
{
	atomic_store(&session.broken, (int)err);
}

bool qcul_broken(void)
{
	return atomic_load(&session.broken) != 0;
}

static void say_gone(int negative)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	qcul_say_once(&said, "the session with the host has ended (%s); qcu-device says there why",
		      strerror(-negative));
}

/*
 * Keeps a sticky error. The host may have text for it, a failed assertion or where a kernel failed,
 * which is fetched whichever thread got the error. A posted command brings an error without saying
 * that there is text.
 */
static void broken_by(cudaError_t err)
{
	int none = 0;

	if (atomic_compare_exchange_strong(&session.broken, &none, (int)err) &&
	    err != cudaErrorDevicesUnavailable)
		atomic_store(&qcul_printed, true);
}

/* The result of a record as a CUDA error. */
static cudaError_t result_of_record(const struct qCUcmd *cmd)
{
	cudaError_t err = cmd->status < 0 ? qcul_from_errno(cmd->status) : (cudaError_t)cmd->status;

	if (qcul_sticky(err))
		broken_by(err);
	if (cmd->status < 0 && err == cudaErrorDevicesUnavailable)
		say_gone(cmd->status);
	if (cmd->flags & QCU_F_OUTPUT)
		atomic_store(&qcul_printed, true);
	return err;
}

uint32_t qcul_tid(void)
{
	if (!qcul_self.tid)
		qcul_self.tid = (uint32_t)syscall(SYS_gettid);
	return qcul_self.tid;
}

static void begin_thread(void)
{
	qcul_self.epoch = qcul_epoch();
	if (process.have_thread_key)
		pthread_setspecific(process.thread_key, &qcul_self);
}

static inline void fill_cmd(struct qCUcmd *cmd, enum qcu_op op)
{
	if (qcul_self.epoch != qcul_epoch())
		begin_thread();
	memset(cmd, 0, sizeof(*cmd));
	cmd->op = (uint16_t)op;
	cmd->tid = qcul_tid();
}

static inline void name_device(struct qCUcmd *cmd, int device)
{
	cmd->device = qcul_device_ordinal(device);
	qcul_device_used(device);
}

struct qCUcmd qcul_cmd_for(enum qcu_op op, int device)
{
	struct qCUcmd cmd;

	fill_cmd(&cmd, op);
	name_device(&cmd, device);
	return cmd;
}

/* A new thread's device is known only when the thread has begun. */
struct qCUcmd qcul_cmd(enum qcu_op op)
{
	struct qCUcmd cmd;

	fill_cmd(&cmd, op);
	name_device(&cmd, qcul_self.device);
	return cmd;
}

static bool has_trait(const struct qCUcmd *cmd, unsigned int traits)
{
	return qcu_rule(cmd->op)->traits & traits;
}

/* Does the answer to this command report errors of earlier GPU work? */
static bool tells_errors(const struct qCUcmd *cmd)
{
	return has_trait(cmd, QCU_WAITS | QCU_ASKS) && !(cmd->flags & QCU_F_POSTED);
}

/* Collects the errors of posted commands. cudaGetLastError reports such an error, too. */
static cudaError_t take_late(bool tell, cudaError_t err)
{
	int late = qcul_transport_late();

	if (late && qcul_sticky(late))
		broken_by((cudaError_t)late);
	if (late && !qcul_self.late)
		qcul_self.late = (cudaError_t)late;
	if (tell && qcul_self.late && err == cudaSuccess) {
		err = qcul_self.late;
		qcul_self.late = cudaSuccess;
	}
	return err;
}

/*
 * Can there be unfinished work? The bits of a device are set once a command with work for it has
 * been sent. They are cleared like this:
 *
 * - A wait for the legacy stream clears WORK_BLOCKING only, because non-blocking streams go on
 *   meanwhile.
 * - A wait for the whole device clears both.
 *
 * WORK_OTHER is only set on a device that has had a non-blocking stream.
 */
#define WORK_BLOCKING 1u
#define WORK_OTHER    2u
bool qcul_legacy_busy(int device)
{
	return atomic_load(&session.work[qcul_device_ordinal(device)]) & WORK_BLOCKING;
}

bool qcul_device_busy(int device)
{
	return atomic_load(&session.work[qcul_device_ordinal(device)]);
}

/*
 * Called after the record has been sent. A wait of another thread that was sent earlier has not
 * waited for this work.
 */
static void note_work(const struct qCUcmd *cmd)
{
	const struct qcu_rule *rule = qcu_rule(cmd->op);
	unsigned char there = WORK_BLOCKING;

	if (rule->traits & QCU_RECORDS)
		qcul_progress_recorded(qcu_field(cmd, rule->event));
	if (rule->traits & QCU_MAKES && cmd->stream_create.flags & cudaStreamNonBlocking)
		atomic_store(&session.nonblocking[cmd->device], true);
	if (rule->traits & (QCU_WORK | QCU_MEMORY | QCU_MAKES))
		qcul_progress_moved();
	if (!(rule->traits & QCU_WORK))
		return;
	if (atomic_load_explicit(&session.nonblocking[cmd->device], memory_order_relaxed))
		there |= WORK_OTHER;
	if ((atomic_load_explicit(&session.work[cmd->device], memory_order_relaxed) & there) !=
	    there)
		atomic_fetch_or(&session.work[cmd->device], there);
}

/* Which kinds of work are finished once this command has been answered. */
static unsigned char waits_for(const struct qCUcmd *cmd)
{
	const struct qcu_rule *rule = qcu_rule(cmd->op);

	if (rule->until == QCU_FIELD_DEVICE)
		return WORK_BLOCKING | WORK_OTHER;
	return qcu_waits_for_stream(cmd, rule) && qcu_field(cmd, rule->stream) == QCU_STREAM_LEGACY
		       ? WORK_BLOCKING
		       : 0;
}

/* Can the answer to this command tell the program that work is done? */
static bool tells(const struct qCUcmd *cmd)
{
	return !(cmd->flags & QCU_F_POSTED) && !has_trait(cmd, QCU_ASKS);
}

void qcul_session_traced_by(qcul_send_fn *send)
{
	atomic_store(&process.tracer, send);
}

static cudaError_t send_records(struct qCUcmd *cmds, unsigned int count)
{
	qcul_send_fn *traced = atomic_load_explicit(&process.tracer, memory_order_relaxed);
	cudaError_t first = cudaSuccess;
	bool told = false;
	unsigned int i;
	int rc;

	if (traced && !qcul_self.traced)
		return traced(cmds, count);
	for (i = 0; i < count; i++) {
		cmds[i].seq = ++qcul_self.seq;
		told |= tells(&cmds[i]);
	}
	/*
	 * The mirror carries out a thread's commands in order, so an answer brings the errors of
	 * all that the thread has posted before.
	 */
	qcul_self.unheard = cmds[count - 1].flags & QCU_F_POSTED;
	rc = qcul_transport_submit(cmds, count);
	if (rc < 0) {
		first = qcul_from_errno(rc);
		if (qcul_sticky(first)) {
			broken_by(first);
			say_gone(rc);
		}
		return first;
	}
	for (i = 0; i < count; i++) {
		cudaError_t err = result_of_record(&cmds[i]);

		if (first == cudaSuccess)
			first = err;
		if (!waits_for(&cmds[i]))
			note_work(&cmds[i]);
	}
	if (told)
		qcul_progress_waited();
	return first;
}

cudaError_t qcul_send_untraced(struct qCUcmd *cmds, unsigned int count)
{
	return send_records(cmds, count);
}

void qcul_session_moves(const struct qcul_mover *m)
{
	atomic_store(&process.mover, m);
}

static const struct qcul_mover *current_mover(void)
{
	return atomic_load_explicit(&process.mover, memory_order_acquire);
}

static cudaError_t prepare_memory(const struct qCUcmd *cmds, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count && current_mover(); i++)
		if (has_trait(&cmds[i], QCU_MEMORY))
			return current_mover()->to_gpu();
	return cudaSuccess;
}

/* May the program read memory after this command? */
static bool waits(const struct qCUcmd *cmd)
{
	return has_trait(cmd, QCU_AT_ONCE) ||
	       (has_trait(cmd, QCU_WAITS) && !(cmd->flags & QCU_F_POSTED));
}

cudaError_t qcul_send(struct qCUcmd *cmds, unsigned int count)
{
	const struct qCUcmd *last = &cmds[count - 1];
	unsigned char ends = waits_for(last), was = 0;
	bool tell = tells_errors(last);
	cudaError_t err = prepare_memory(cmds, count);
	struct qcul_wait wait;

	if (err)
		return err;
	qcul_wait_begins(&wait, last);
	if (ends)
		was = atomic_fetch_and(&session.work[last->device], (unsigned char)~ends) & ends;
	err = send_records(cmds, count);
	if (err && was)
		atomic_fetch_or(&session.work[last->device], was);
	if (!err && current_mover() && waits(last))
		err = current_mover()->back();
	if (!err)
		qcul_wait_ends(&wait);
	return take_late(tell, err);
}

cudaError_t qcul_known(cudaError_t err)
{
	return take_late(true, err);
}

bool qcul_blocking(void)
{
	static atomic_int wanted; /* 0: not asked yet */
	int w = atomic_load_explicit(&wanted, memory_order_relaxed);

	if (!w) {
		w = qcul_env_on("CUDA_LAUNCH_BLOCKING") ? 1 : -1;
		atomic_store(&wanted, w);
	}
	return w > 0;
}

cudaError_t qcul_post(struct qCUcmd *cmds, unsigned int count)
{
	cudaError_t err;
	unsigned int i;

	if (qcul_blocking())
		return qcul_send(cmds, count);
	err = prepare_memory(cmds, count);
	if (err)
		return err;
	for (i = 0; i < count; i++)
		cmds[i].flags = QCU_F_POSTED;
	err = send_records(cmds, count);
	if (!err && current_mover() && waits(&cmds[count - 1]))
		err = current_mover()->back();
	return take_late(false, err);
}

/* Modules add themselves before there is a second thread. */
void qcul_session_tell(struct qcul_session_user *user)
{
	user->next = process.users;
	process.users = user;
}

static void refused_all(void)
{
	const struct qcul_session_user *user;

	for (user = process.users; user; user = user->next)
		user->refused();
}

static cudaError_t open_locked(void)
{
	const struct qcul_session_user *user;
	struct qCUcmd cmd;
	cudaError_t err;

	err = (cudaError_t)qcul_transport_open(&session.hello);
	if (err)
		return err;
	cmd = qcul_cmd(QCU_OP_INFO);
	err = qcul_send(&cmd, 1);
	if (err) {
		qcul_transport_close();
		atomic_store(&session.broken, 0);
		return err;
	}
	if (process.waiting != QCU_WAIT_ADAPT)
		qcul_transport_waiting(process.waiting);
	session.info = cmd.info;
	session.info.backend[sizeof(session.info.backend) - 1] = 0;
	qcul_devices_start(session.info.devices);
	/* The first wait of each device goes to the mirror, which then makes its context. */
	qcul_progress_moved();
	for (user = process.users; user; user = user->next)
		user->opened();
	return cudaSuccess;
}

cudaError_t qcul_open(void)
{
	cudaError_t err = cudaSuccess;

	if (qcul_self.in_callback)
		return cudaErrorNotPermitted;
	if (!qcul_self.device_chosen)
		qcul_self.device = qcul_device_default();
	if (!atomic_load_explicit(&session.is_open, memory_order_acquire)) {
		pthread_mutex_lock(&at_fork.lock);
		if (!atomic_load(&session.is_open)) {
			err = open_locked();
			if (!err)
				atomic_store_explicit(&session.is_open, true, memory_order_release);
		}
		pthread_mutex_unlock(&at_fork.lock);
		if (err)
			return err;
	}
	/* A call of the driver API says that it need not be counted. */
	if (!qcul_self.counted && !atomic_load_explicit(&session.opened, memory_order_relaxed))
		atomic_store(&session.opened, true);
	return qcul_device_count() > 0 ? cudaSuccess : cudaErrorNoDevice;
}

bool qcul_opened(void)
{
	return atomic_load_explicit(&session.opened, memory_order_relaxed);
}

void qcul_wait_how(uint32_t how)
{
	pthread_mutex_lock(&at_fork.lock);
	if (how != process.waiting && atomic_load(&session.is_open))
		qcul_transport_waiting(how);
	process.waiting = how;
	pthread_mutex_unlock(&at_fork.lock);
}

void qcul_open_quietly(void)
{
	if (atomic_load_explicit(&session.is_open, memory_order_acquire) ||
	    pthread_mutex_trylock(&at_fork.lock))
		return;
	if (!atomic_load(&session.is_open)) {
		qcul_hush(true);
		if (open_locked() == cudaSuccess)
			atomic_store_explicit(&session.is_open, true, memory_order_release);
		else
			refused_all();
		qcul_hush(false);
	}
	pthread_mutex_unlock(&at_fork.lock);
}

cudaError_t qcul_ready(void)
{
	cudaError_t err = qcul_open();

	if (err)
		return err;
	if (qcul_self.counted != atomic_load_explicit(&qcul_bindings, memory_order_relaxed))
		qcul_device_bind();
	return (cudaError_t)atomic_load_explicit(&session.broken, memory_order_relaxed);
}

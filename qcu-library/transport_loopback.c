// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The road to a mirror in this same process, on the soft backend: the whole library is tested on it
 * without a VM. It plays the driver's part: checks records, copies messages, says where buffers
 * are, tells the mirror of chunk memory before it is first used. A guest-physical address is a
 * pointer.
 *
 * QCU_LOOPBACK_GPUS: how many devices; QCU_TRACE: a line per command on stderr.
 */
#include "qcu-library/transport.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "include/qcuerror.h"
#include "qcu-device/mirror.h"
#include "qcu-library/qcul.h"

struct chunk {
	uint64_t addr, len;
	bool mapped;	 /* the mirror knows it */
	bool registered; /* no chunk: the program's own memory */
	struct chunk *next;
};

/* All the records of one submit, or one command of our own. */
struct wait {
	pthread_mutex_t lock;
	pthread_cond_t all_done;
	unsigned int pending;
};

struct job {
	struct mir_request req;
	struct qcu_seg seg;
	struct wait *wait;
	bool sent;
};

static struct mirror *mirror;
static pid_t owner;
static atomic_bool ended; /* a rule of the wire was broken */
static pthread_mutex_t chunk_lock = PTHREAD_MUTEX_INITIALIZER;
static struct chunk *chunks;

int qcul_transport_open(struct qcu_hello *hello)
{
	struct mir_config cfg = {.ops = &be_soft, .trace = qcul_env_on("QCU_TRACE")};
	uint64_t n;

	if (qcul_env_bytes("QCU_LOOPBACK_GPUS", &n))
		cfg.options.gpus = (unsigned int)n;
	if (mir_create(&mirror, &cfg) < 0) {
		mirror = NULL;
		return QCU_ERR_NoDevice;
	}
	owner = getpid();
	atomic_store(&ended, false);
	memset(hello, 0, sizeof(*hello));
	hello->library_version = QCU_WIRE_VERSION;
	hello->driver_version = QCU_WIRE_VERSION;
	hello->device_version = QCU_WIRE_VERSION;
	hello->session = 1;
	hello->window_base = QCU_WINDOW_BASE;
	hello->window_size = QCU_WINDOW_SIZE;
	hello->chunk_bytes = QCU_CHUNK_DEFAULT;
	if (qcul_env_bytes("QCU_CHUNK", &n) && n >= QCU_CHUNK_MIN && n <= QCU_CHUNK_MAX &&
	    !(n & (n - 1)))
		hello->chunk_bytes = (uint32_t)n;
	return QCU_ERR_Success;
}

void qcul_transport_close(void)
{
	struct chunk **at, *c;

	if (!mirror)
		return;
	if (owner == getpid()) {
		mir_destroy(mirror);
	} else {
		static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

		/* The mirror's threads are the parent's; its memory here is a useless copy. */
		chunk_lock = fresh;
	}
	for (at = &chunks; (c = *at);) {
		c->mapped = false;
		if (c->registered) {
			*at = c->next;
			free(c);
		} else {
			at = &c->next;
		}
	}
	mirror = NULL;
}

bool qcul_transport_shares_memory(void)
{
	return true;
}

/* ---- one request and its answer ---- */

static void done(struct mir_request *req)
{
	struct job *job = (struct job *)req;
	struct wait *w = job->wait;

	pthread_mutex_lock(&w->lock);
	if (--w->pending == 0)
		pthread_cond_signal(&w->all_done);
	pthread_mutex_unlock(&w->lock);
}

static void wait_init(struct wait *w)
{
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->all_done, NULL);
	w->pending = 0;
}

static void wait_for_all(struct wait *w)
{
	pthread_mutex_lock(&w->lock);
	while (w->pending > 0)
		pthread_cond_wait(&w->all_done, &w->lock);
	pthread_mutex_unlock(&w->lock);
	pthread_cond_destroy(&w->all_done);
	pthread_mutex_destroy(&w->lock);
}

static bool send(struct job *job, struct wait *w)
{
	job->wait = w;
	job->req.done = done;
	pthread_mutex_lock(&w->lock);
	w->pending++;
	pthread_mutex_unlock(&w->lock);
	job->sent = mir_submit(mirror, &job->req);
	if (!job->sent) {
		atomic_store(&ended, true);
		pthread_mutex_lock(&w->lock);
		w->pending--;
		pthread_mutex_unlock(&w->lock);
	}
	return job->sent;
}

/* A command of the driver's own: MAP or UNMAP. */
static int driver_command(struct job *job)
{
	struct wait w;

	wait_init(&w);
	send(job, &w);
	wait_for_all(&w);
	if (!job->sent || job->req.cmd.status == MIR_RULE_BROKEN) {
		atomic_store(&ended, true);
		return -EIO;
	}
	return job->req.cmd.status ? -ENOMEM : 0;
}

/* ---- chunk memory ---- */

static bool contains(const struct chunk *c, uint64_t addr)
{
	return addr - c->addr < c->len;
}

/* Under chunk_lock: makes the mirror know it. */
static int map_chunk(struct chunk *c)
{
	struct job job = {.seg = {c->addr, c->len}};
	int rc;

	if (c->mapped)
		return 0;
	job.req.cmd.op = QCU_OP_MAP;
	job.req.cmd.flags = QCU_F_SEGS;
	job.req.cmd.map.va = c->addr;
	job.req.cmd.map.len = c->len;
	job.req.cmd.map.chunk_bytes = QCU_CHUNK_DEFAULT;
	job.req.segs = &job.seg;
	job.req.seg_count = 1;
	rc = driver_command(&job);
	c->mapped = !rc;
	return rc;
}

/*
 * 1: [addr, addr + len) is chunk memory or registered, and the mirror has it. 0: no chunk memory.
 * Else -errno.
 */
static int use_chunk(uint64_t addr, uint64_t len)
{
	struct chunk *c;
	int rc = 0;

	pthread_mutex_lock(&chunk_lock);
	for (c = chunks; c && !contains(c, addr); c = c->next)
		;
	if (c && len > c->len - (addr - c->addr)) {
		rc = c->registered ? 0 : -EFAULT;
	} else if (c) {
		rc = map_chunk(c);
		rc = rc ? rc : 1;
	}
	pthread_mutex_unlock(&chunk_lock);
	return rc;
}

/* Is it chunk memory that the mirror does not know yet? */
static bool fresh_chunk(uint64_t addr, uint64_t len)
{
	struct chunk *c;
	bool fresh;

	pthread_mutex_lock(&chunk_lock);
	for (c = chunks; c && !contains(c, addr); c = c->next)
		;
	fresh = c && !c->registered && !c->mapped && len <= c->len - (addr - c->addr);
	pthread_mutex_unlock(&chunk_lock);
	return fresh;
}

/* Memory that is no chunk is known like one from now on. */
static int register_memory(uint64_t addr, uint64_t len)
{
	struct chunk *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return -ENOMEM;
	*c = (struct chunk){.addr = addr, .len = len, .registered = true};
	pthread_mutex_lock(&chunk_lock);
	rc = map_chunk(c);
	if (!rc) {
		c->next = chunks;
		chunks = c;
	}
	pthread_mutex_unlock(&chunk_lock);
	if (rc)
		free(c);
	return rc;
}

/* Takes out what starts there, if it has that length. Its answer means that the GPU is done. */
static struct chunk *remove_chunk(uint64_t addr, uint64_t len, bool is_registered)
{
	struct chunk **at, *c = NULL;

	pthread_mutex_lock(&chunk_lock);
	for (at = &chunks; *at; at = &(*at)->next) {
		if ((*at)->addr == addr && (*at)->len == len &&
		    (*at)->registered == is_registered) {
			c = *at;
			*at = c->next;
			break;
		}
	}
	pthread_mutex_unlock(&chunk_lock);
	if (c && c->mapped && mirror && !atomic_load(&ended)) {
		struct job job = {0};

		job.req.cmd.op = QCU_OP_UNMAP;
		job.req.cmd.unmap.va = c->addr;
		job.req.cmd.unmap.len = c->len;
		(void)driver_command(&job);
	}
	return c;
}

int qcul_transport_map(void *addr, size_t len)
{
	struct chunk *c = calloc(1, sizeof(*c));
	void *p;

	if (!c)
		return -ENOMEM;
	p = mmap(addr, len, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (p != addr) {
		int rc = p == MAP_FAILED ? -errno : -EEXIST;

		if (p != MAP_FAILED)
			munmap(p, len);
		free(c);
		return rc;
	}
	c->addr = (uint64_t)(uintptr_t)addr;
	c->len = len;
	pthread_mutex_lock(&chunk_lock);
	c->next = chunks;
	chunks = c;
	pthread_mutex_unlock(&chunk_lock);
	return 0;
}

int qcul_transport_unmap(void *addr, size_t len)
{
	struct chunk *c = remove_chunk((uint64_t)(uintptr_t)addr, len, false);

	if (!c)
		return -EINVAL;
	free(c);
	return munmap(addr, len) == 0 ? 0 : -errno;
}

/* ---- records ---- */

/* As pinning would: -EFAULT where nothing is mapped. */
static int check_mapped(uint64_t addr, uint64_t len)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t start = addr & ~(page - 1);
	unsigned char *vec;
	int rc = 0;

	if (len - 1 > UINT64_MAX - addr)
		return -EFAULT;
	vec = malloc((addr + len - start + page - 1) / page);
	if (!vec)
		return -ENOMEM;
	if (mincore((void *)(uintptr_t)start, addr + len - start, vec) < 0)
		rc = -EFAULT;
	free(vec);
	return rc;
}

/* As pinning for writing would: -EFAULT where the program may not write. */
static int make_writable(uint64_t addr, uint64_t len)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t start = addr & ~(page - 1);

	if (madvise((void *)(uintptr_t)start, addr + len - start, MADV_POPULATE_WRITE) == 0)
		return 0;
	return errno == ENOMEM ? -ENOMEM : -EFAULT;
}

static int prepare_memory(struct job *job, bool stays)
{
	const struct qcu_buf *buf = &job->req.cmd.buf;
	int rc;

	if (!buf->len)
		return stays ? -EINVAL : 0;
	if (stays && fresh_chunk(buf->addr, buf->len))
		qcul_populate((void *)(uintptr_t)buf->addr, buf->len);
	rc = use_chunk(buf->addr, buf->len);
	if (rc < 0)
		return rc;
	if (rc > 0) {
		job->req.cmd.flags = QCU_F_WINDOW;
		return 0;
	}
	rc = check_mapped(buf->addr, buf->len);
	if (!rc && stays)
		rc = make_writable(buf->addr, buf->len);
	if (!rc && stays)
		rc = register_memory(buf->addr, buf->len);
	if (rc)
		return rc;
	if (stays) {
		job->req.cmd.flags = QCU_F_WINDOW;
		return 0;
	}
	job->seg = (struct qcu_seg){buf->addr, buf->len};
	job->req.segs = &job->seg;
	job->req.seg_count = 1;
	job->req.cmd.flags = QCU_F_SEGS;
	return 0;
}

static int prepare_message(struct job *job)
{
	const struct qcu_buf *buf = &job->req.cmd.buf;
	void *msg;

	if (buf->len > QCU_MSG_MAX)
		return -EINVAL;
	msg = malloc(buf->len + 1);
	if (!msg)
		return -ENOMEM;
	memcpy(msg, (const void *)(uintptr_t)buf->addr, buf->len);
	job->req.msg = msg;
	job->req.cmd.flags = QCU_F_MSG;
	return 0;
}

/* What the driver does with a record from user space. 0 or -errno for its status. */
static int prepare(struct job *job, const struct qCUcmd *cmd)
{
	const struct qcu_rule *rule = qcu_rule(cmd->op);

	job->req.cmd = *cmd;
	if (!rule || !qcu_rule_user(rule) || cmd->flags || !cmd->tid ||
	    !qcu_request_clean(cmd, rule))
		return -EINVAL;
	switch (rule->buffer) {
	case QCU_BUFFER_IN:
	case QCU_BUFFER_OUT:
		return prepare_memory(job, false);
	case QCU_BUFFER_STAY:
		return prepare_memory(job, true);
	case QCU_BUFFER_MSG:
		return prepare_message(job);
	}
	return 0;
}

int qcul_transport_submit(struct qCUcmd *cmds, unsigned int count)
{
	struct job *jobs;
	struct wait w;
	unsigned int i;

	if (!mirror || atomic_load(&ended))
		return -ESHUTDOWN;
	jobs = calloc(count, sizeof(*jobs));
	if (!jobs)
		return -ENOMEM;
	wait_init(&w);
	for (i = 0; i < count; i++) {
		int rc = atomic_load(&ended) ? -ESHUTDOWN : prepare(&jobs[i], &cmds[i]);

		if (rc)
			jobs[i].req.cmd.status = rc;
		else if (!send(&jobs[i], &w))
			jobs[i].req.cmd.status = -EPROTO;
	}
	wait_for_all(&w);
	for (i = 0; i < count; i++) {
		if (jobs[i].req.cmd.status == MIR_RULE_BROKEN)
			atomic_store(&ended, true);
		if (cmds[i].op == QCU_OP_HOST_UNREGISTER && !jobs[i].req.cmd.status)
			free(remove_chunk(cmds[i].host_unregister.addr, cmds[i].host_unregister.len,
					  true));
		cmds[i] = jobs[i].req.cmd;
		free((void *)(uintptr_t)jobs[i].req.msg);
	}
	free(jobs);
	return 0;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A transport to a mirror in this same process, with the soft backend. It lets the whole library be
 * tested without a VM. It does the work of the guest driver: it checks records, copies messages,
 * finds buffers, and tells the mirror of chunk memory before the memory is first used. A
 * guest-physical address is a pointer here.
 */
#include "qcu-library/link/transport.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "include/qcuerror.h"
#include "qcu-device/base/carriers.h"
#include "qcu-device/mirror/mirror.h"
#include "qcu-device/base/spin.h"
#include "qcu-library/link/link.h"
#include "tests/transport/evict.h"
#include "tests/transport/populate.h"
#include "tests/transport/saved.h"
#include "tests/transport/settings.h"
#include "tests/transport/user_memory.h"
#include "tests/transport/waits.h"

/*
 * The most commands that one thread may have posted and the mirror not yet finished. At this limit
 * the thread waits until the number of finished commands reaches the next multiple of ROOM.
 */
#define POSTS 1024
#define ROOM  (POSTS / 4)
#define AHEAD 4 /* a thread fetches the post that it will use after so many others */
/* Messages up to this size lie in the post itself. Most launches' messages do. */
#define SMALL_MSG 256
/*
 * Longer messages of posts lie in a ring of the thread. A message that finds no room there is
 * allocated, and then freed by the lane.
 */
#define RING ((size_t)512 << 10)
/*
 * The mirror is told of a chunk up to the first multiple of this behind what is used: a block that
 * grows has addresses behind it that the program may never use.
 */
#define TELL ((uint64_t)64 << 20)

struct chunk;

struct job {
	struct mir_request req;
	struct qcu_seg seg;
	struct wait *wait;
	bool sent;
	struct chunk *chunk;
	void *message; /* NULL, or to be freed */
};

struct chunk {
	uint64_t addr, len;
	uint64_t told;	   /* the mirror has mapped this many bytes, from the beginning */
	bool mapping;	   /* a thread is telling the mirror of it */
	bool registered;   /* not a chunk, but the program's own memory */
	atomic_uint users; /* the program, and unfinished requests that use it */
	struct chunk *next;
	struct mir_request unmap; /* sent when there is no user left */
};

/*
 * A launch needs only a few cache lines of this, because each line must be copied to the lane's
 * processor.
 */
struct post {
	_Alignas(64) struct job job;
	struct poster *poster;
	uint64_t ring_end; /* the ring is free up to here when this post has ended */
	char message[SMALL_MSG];
};

/*
 * A thread that uses the mirror: what it has posted and how it waits. A poster is never freed,
 * because the mirror may still use it long after the thread has ended. Then another thread takes it
 * over.
 */
struct poster {
	struct wait wait;
	struct wait driver_wait; /* for the driver's own commands, which may come in between */
	atomic_int late;	 /* the first error of its posted commands */
	bool taken;		 /* under poster_lock */
	struct poster *next;
	/* The thread writes these. */
	_Alignas(64) uint64_t count;
	uint64_t seen;	    /* number of finished posts that the thread has seen */
	char *ring;	    /* NULL: not needed yet */
	uint64_t ring_head; /* bytes of the ring that were given out, with those left out */
	uint64_t ring_tail; /* and those of posts that are known to have ended */
	bool refused;
	atomic_bool wants_room;
	/* The lane writes this: the number of finished posts. They finish in order. */
	_Alignas(64) _Atomic uint64_t ended;
	struct post post[POSTS];
};

static struct mirror *mirror;
static struct mir_config config; /* of the mirror */
static pid_t owner;
static atomic_bool ended; /* a rule of the wire was broken */
/*
 * Not held while the mirror is told of a chunk: the GPU driver may allocate memory then. It does so
 * in this process and with this library's malloc, and may get a chunk.
 */
static pthread_mutex_t chunk_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t chunk_mapped = PTHREAD_COND_INITIALIZER,
		      chunk_left = PTHREAD_COND_INITIALIZER;
static struct chunk *chunks;
static struct chunk *leaving; /* given back by the program; the GPU may still use them */
static pthread_mutex_t poster_lock = PTHREAD_MUTEX_INITIALIZER;
static struct poster *posters;
static unsigned int generation; /* counts sessions of this process */

static __thread struct poster *mine;
static __thread unsigned int mine_generation;

/*
 * When the process ends, CUDA shuts itself down, in a function that it registered when it was first
 * called. Lanes must not call CUDA then or later. This function was registered later, so it runs
 * earlier.
 */
static void at_exit(void)
{
	if (mirror && owner == getpid())
		mir_abandon(mirror);
}

int qcul_transport_open(struct qcu_hello *hello)
{
	struct mir_config cfg = {
		.ops = loopback_backend(),
		.trace = qcul_env_on("QCU_TRACE"),
		.poll_us = spin_default_us(),
		.copiers = carriers_fit(CARRIERS_DEFAULT),
	};
	uint64_t n;

	if (!cfg.ops)
		return QCU_ERR_NoDevice;
	if (qcul_env_bytes("QCU_LOOPBACK_GPUS", &n))
		cfg.options.gpus = (unsigned int)n;
	evict_setup(&cfg);
	saved_setup(&cfg);
	loopback_join_others(&cfg);
	loopback_share(&cfg);
	config = cfg;
	if (mir_create(&mirror, &cfg) < 0) {
		mirror = NULL;
		return QCU_ERR_NoDevice;
	}
	if (cfg.ops != &be_soft && !generation)
		atexit(at_exit);
	owner = getpid();
	generation++;
	waits_begin();
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

static struct chunk *chunk_new(uint64_t addr, uint64_t len, bool registered)
{
	struct chunk *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->addr = addr;
	c->len = len;
	c->registered = registered;
	atomic_init(&c->users, 1);
	return c;
}

/* Unmaps the chunk's pages, unless they are the program's own memory. */
static void chunk_free(struct chunk *c)
{
	if (!c->registered)
		munmap((void *)(uintptr_t)c->addr, c->len);
	free(c);
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
		static const pthread_cond_t fresh_cond = PTHREAD_COND_INITIALIZER;

		/*
		 * The mirror's threads run only in the parent. Its memory in the child is a useless
		 * copy.
		 */
		chunk_lock = fresh;
		chunk_mapped = chunk_left = fresh_cond;
		poster_lock = fresh;
		saved_forked();
		posters = NULL;
	}
	while ((c = leaving)) {
		leaving = c->next;
		chunk_free(c);
	}
	for (at = &chunks; (c = *at);) {
		c->told = 0;
		c->mapping = false;
		atomic_store(&c->users, 1);
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

/*
 * Nothing uses the chunk any more. If the mirror could not unmap it (back is false), its pages
 * stay.
 */
static void chunk_gone(struct chunk *c, bool back)
{
	struct chunk **at;

	pthread_mutex_lock(&chunk_lock);
	for (at = &leaving; *at != c; at = &(*at)->next)
		;
	*at = c->next;
	if (back)
		chunk_free(c);
	pthread_cond_broadcast(&chunk_left);
	pthread_mutex_unlock(&chunk_lock);
}

static void unmapped(struct mir_request *req)
{
	struct chunk *c = (struct chunk *)((char *)req - offsetof(struct chunk, unmap));

	if (req->cmd.status == MIR_RULE_BROKEN)
		atomic_store(&ended, true);
	chunk_gone(c, !req->cmd.status);
}

/*
 * Drops a user of the chunk. The last user has the mirror unmap it. When the mirror answers, the
 * GPU has finished with the chunk, because the mirror has put all work that uses the chunk into
 * streams.
 */
static void chunk_unuse(struct chunk *c)
{
	if (atomic_fetch_sub(&c->users, 1) != 1)
		return;
	if (!c->told || !mirror || atomic_load(&ended)) {
		chunk_gone(c, true);
		return;
	}
	c->unmap.cmd.op = QCU_OP_UNMAP;
	c->unmap.cmd.unmap.va = c->addr;
	c->unmap.cmd.unmap.len = c->told;
	c->unmap.done = unmapped;
	if (mir_submit(mirror, &c->unmap))
		return;
	atomic_store(&ended, true);
	chunk_gone(c, false);
}

static void release(struct job *job)
{
	if (job->message)
		free(job->message);
	if (job->chunk)
		chunk_unuse(job->chunk);
}

/* The count must be the last access to the job: after it the waiting thread may free the job. */
static void done(struct mir_request *req)
{
	struct job *job = (struct job *)req;
	struct wait *w = job->wait;

	release(job);
	if (atomic_fetch_sub(&w->pending, 1) != 1)
		return;
	pthread_mutex_lock(&w->lock);
	pthread_cond_signal(&w->all_done);
	pthread_mutex_unlock(&w->lock);
}

static void post_done(struct mir_request *req)
{
	struct post *post = (struct post *)req;
	struct poster *p = post->poster;
	int status = req->cmd.status, none = 0;
	uint64_t count;

	release(&post->job);
	if (status == MIR_RULE_BROKEN)
		atomic_store(&ended, true);
	else if (status)
		atomic_compare_exchange_strong(&p->late, &none, status);
	/* The mirror refused the request in the submitting thread, so no lane has seen it. */
	if (p == mine) {
		p->refused = true;
		return;
	}
	count = atomic_load_explicit(&p->ended, memory_order_relaxed) + 1;
	atomic_store_explicit(&p->ended, count, memory_order_release);
	if (count % ROOM)
		return;
	/* Pairs with the fence in next_post(), which sets wants_room and then reads `ended`. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load(&p->wants_room))
		return;
	pthread_mutex_lock(&p->wait.lock);
	pthread_cond_signal(&p->wait.all_done);
	pthread_mutex_unlock(&p->wait.lock);
}

static bool send(struct job *job, struct wait *w)
{
	job->wait = w;
	job->req.done = done;
	atomic_fetch_add(&w->pending, 1);
	evict_now_and_then(mirror);
	job->sent = mir_submit(mirror, &job->req);
	if (!job->sent) {
		atomic_store(&ended, true);
		release(job);
		atomic_fetch_sub(&w->pending, 1);
	}
	return job->sent;
}

/* Is a post of the previous thread still on its way? Its last post finishes last. */
static bool in_use(const struct poster *p)
{
	return p->taken || atomic_load(&p->ended) != p->count;
}

/* The calling thread's poster. NULL: no memory. */
static struct poster *poster(void)
{
	struct poster *p;
	unsigned int i;

	if (mine && mine_generation == generation)
		return mine;
	pthread_mutex_lock(&poster_lock);
	for (p = posters; p && in_use(p); p = p->next)
		;
	if (!p) {
		p = aligned_alloc(64, sizeof(*p));
		if (p) {
			memset(p, 0, sizeof(*p));
			wait_init(&p->wait);
			wait_init(&p->driver_wait);
			for (i = 0; i < POSTS; i++)
				p->post[i].poster = p;
			p->next = posters;
			posters = p;
		}
	}
	if (p) {
		p->taken = true;
		atomic_store(&p->late, 0);
	}
	pthread_mutex_unlock(&poster_lock);
	mine = p;
	mine_generation = generation;
	return p;
}

void qcul_transport_thread_ends(void)
{
	if (mine && mine_generation == generation) {
		pthread_mutex_lock(&poster_lock);
		mine->taken = false;
		pthread_mutex_unlock(&poster_lock);
	}
	mine = NULL;
}

int qcul_transport_late(void)
{
	struct poster *p = mine;

	if (!p || mine_generation != generation ||
	    !atomic_load_explicit(&p->late, memory_order_relaxed))
		return 0;
	return atomic_exchange(&p->late, 0);
}

/*
 * Returns the next post, once the mirror no longer uses it. If no post is free, the thread sleeps
 * until many are free: to wake it for each post would cost the lane more than the command does.
 */
static struct post *next_post(struct poster *p)
{
	struct post *post = &p->post[p->count % POSTS];
	uint64_t enough;

	if (p->count - p->seen < POSTS)
		return post;
	p->seen = atomic_load_explicit(&p->ended, memory_order_acquire);
	if (p->count - p->seen < POSTS)
		return post;
	enough = (p->seen / ROOM + 1) * ROOM;
	pthread_mutex_lock(&p->wait.lock);
	atomic_store(&p->wants_room, true);
	atomic_thread_fence(memory_order_seq_cst);
	while ((p->seen = atomic_load(&p->ended)) < enough)
		pthread_cond_wait(&p->wait.all_done, &p->wait.lock);
	atomic_store(&p->wants_room, false);
	pthread_mutex_unlock(&p->wait.lock);
	return post;
}

/* Sends a command of the driver's own, and waits for it. */
static int driver_command(struct job *job)
{
	struct poster *p = poster();

	if (!p)
		return -ENOMEM;
	send(job, &p->driver_wait);
	wait_for_all(&p->driver_wait);
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

static int tell_of_chunk(uint64_t addr, uint64_t len)
{
	struct job job = {.seg = {addr, len}};

	job.req.cmd.op = QCU_OP_MAP;
	job.req.cmd.flags = QCU_F_SEGS;
	job.req.cmd.map.va = addr;
	job.req.cmd.map.len = len;
	job.req.cmd.map.chunk_bytes = QCU_CHUNK_DEFAULT;
	job.req.segs = &job.seg;
	job.req.seg_count = 1;
	return driver_command(&job);
}

/*
 * Makes the mirror map the first `end` bytes of the chunk. The caller holds chunk_lock and is a
 * user of the chunk.
 */
static int map_chunk(struct chunk *c, uint64_t end)
{
	uint64_t from, to;
	int rc;

	while (c->mapping)
		pthread_cond_wait(&chunk_mapped, &chunk_lock);
	if (c->told >= end)
		return 0;
	from = c->told;
	to = (end + TELL - 1) & ~(TELL - 1);
	if (to > c->len)
		to = c->len;
	c->mapping = true;
	pthread_mutex_unlock(&chunk_lock);
	rc = tell_of_chunk(c->addr + from, to - from);
	pthread_mutex_lock(&chunk_lock);
	c->mapping = false;
	if (!rc)
		c->told = to;
	pthread_cond_broadcast(&chunk_mapped);
	return rc;
}

/*
 * Returns 1 if [addr, addr + len) is chunk memory or registered, and the mirror has mapped it. The
 * job then uses it until release(). Returns 0 if it is not chunk memory, else -errno.
 */
static int use_chunk(struct job *job, uint64_t addr, uint64_t len)
{
	struct chunk *c;
	int rc = 0;

	pthread_mutex_lock(&chunk_lock);
	for (c = chunks; c && !contains(c, addr); c = c->next)
		;
	if (c && len > c->len - (addr - c->addr)) {
		rc = c->registered ? 0 : -EFAULT;
	} else if (c) {
		/* While the chunk has a user it is not freed. */
		atomic_fetch_add(&c->users, 1);
		job->chunk = c;
		rc = map_chunk(c, addr - c->addr + len);
		if (!rc)
			rc = 1;
	}
	pthread_mutex_unlock(&chunk_lock);
	return rc;
}

/* Is this chunk memory that the mirror has not mapped yet? */
static bool fresh_chunk(uint64_t addr, uint64_t len)
{
	struct chunk *c;
	bool fresh;

	pthread_mutex_lock(&chunk_lock);
	for (c = chunks; c && !contains(c, addr); c = c->next)
		;
	fresh = c && !c->registered && len <= c->len - (addr - c->addr) &&
		c->told < addr - c->addr + len;
	pthread_mutex_unlock(&chunk_lock);
	return fresh;
}

/* Registers memory that is not a chunk. From now on it is handled like a chunk. */
static int register_memory(uint64_t addr, uint64_t len)
{
	struct chunk *c = chunk_new(addr, len, true);
	int rc;

	if (!c)
		return -ENOMEM;
	rc = tell_of_chunk(addr, len);
	if (rc) {
		free(c);
		return rc;
	}
	c->told = len;
	pthread_mutex_lock(&chunk_lock);
	c->next = chunks;
	chunks = c;
	pthread_mutex_unlock(&chunk_lock);
	return 0;
}

/* The caller holds chunk_lock. */
static bool is_leaving(uint64_t addr, uint64_t len)
{
	const struct chunk *c;

	for (c = leaving; c; c = c->next)
		if (c->addr < addr + len && addr < c->addr + c->len)
			return true;
	return false;
}

static void wait_until_left(uint64_t addr, uint64_t len)
{
	pthread_mutex_lock(&chunk_lock);
	while (is_leaving(addr, len))
		pthread_cond_wait(&chunk_left, &chunk_lock);
	pthread_mutex_unlock(&chunk_lock);
}

/*
 * Removes the chunk that starts here, if it has this length. The GPU may still use it for a while.
 */
static bool remove_chunk(uint64_t addr, uint64_t len, bool is_registered)
{
	struct chunk **at, *c;

	pthread_mutex_lock(&chunk_lock);
	for (at = &chunks; (c = *at); at = &c->next)
		if (c->addr == addr && c->len == len && c->registered == is_registered)
			break;
	if (c) {
		*at = c->next;
		c->next = leaving;
		leaving = c;
	}
	pthread_mutex_unlock(&chunk_lock);
	if (c)
		chunk_unuse(c);
	return c;
}

int qcul_transport_map(void *addr, size_t len)
{
	struct chunk *c = chunk_new((uint64_t)(uintptr_t)addr, len, false);
	void *p;

	if (!c)
		return -ENOMEM;
	wait_until_left(c->addr, len);
	p = mmap(addr, len, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (p != addr) {
		int rc = p == MAP_FAILED ? -errno : -EEXIST;

		if (p != MAP_FAILED)
			munmap(p, len);
		free(c);
		return rc;
	}
	pthread_mutex_lock(&chunk_lock);
	c->next = chunks;
	chunks = c;
	pthread_mutex_unlock(&chunk_lock);
	return 0;
}

int qcul_transport_unmap(void *addr, size_t len)
{
	bool removed;

	saved_enter();
	removed = remove_chunk((uint64_t)(uintptr_t)addr, len, false);
	saved_leave();
	return removed ? 0 : -EINVAL;
}

/* ---- records ---- */

static int prepare_memory(struct job *job, bool stays)
{
	const struct qcu_buf *buf = &job->req.cmd.buf;
	int rc;

	if (!buf->len)
		return 0;
	if (stays && fresh_chunk(buf->addr, buf->len))
		populate((void *)(uintptr_t)buf->addr, buf->len);
	rc = use_chunk(job, buf->addr, buf->len);
	if (rc < 0)
		return rc;
	if (rc > 0) {
		job->req.cmd.flags |= QCU_F_WINDOW;
		return 0;
	}
	rc = user_mapped(buf->addr, buf->len);
	if (!rc && stays && job->req.cmd.op != QCU_OP_HOST_REGISTER)
		rc = -EINVAL;
	if (!rc && stays)
		rc = user_writable(buf->addr, buf->len);
	if (!rc && stays)
		rc = register_memory(buf->addr, buf->len);
	if (rc)
		return rc;
	if (stays) {
		job->req.cmd.flags |= QCU_F_WINDOW;
		return 0;
	}
	job->seg = (struct qcu_seg){buf->addr, buf->len};
	job->req.segs = &job->seg;
	job->req.seg_count = 1;
	job->req.cmd.flags |= QCU_F_SEGS;
	return 0;
}

/*
 * Room for a message in the thread's ring; NULL: there is none. Posts end in order, so what was
 * given out before the end of the last post that has ended is free.
 */
static void *ring_room(struct poster *p, size_t len)
{
	uint64_t at = p->ring_head;

	len = (len + 63) & ~(size_t)63;
	if (!p->ring)
		p->ring = aligned_alloc(64, RING);
	if (!p->ring || len > RING)
		return NULL;
	/* A message does not go over the end of the ring. */
	if (at % RING + len > RING)
		at += RING - at % RING;
	if (at + len - p->ring_tail > RING) {
		p->seen = atomic_load_explicit(&p->ended, memory_order_acquire);
		if (p->seen == p->count)
			p->ring_tail = p->ring_head;
		else if (p->seen)
			p->ring_tail = p->post[(p->seen - 1) % POSTS].ring_end;
	}
	if (at + len - p->ring_tail > RING)
		return NULL;
	p->ring_head = at + len;
	return p->ring + at % RING;
}

/*
 * post: for a posted command, whose message has a place of its own; else NULL. A message of any
 * command but COPY_SMALL is the library's own memory, so it is mapped.
 */
static int prepare_message(struct job *job, struct post *post)
{
	const struct qcu_buf *buf = &job->req.cmd.buf;
	void *msg = NULL;
	int rc = 0;

	if (post)
		msg = buf->len <= SMALL_MSG ? post->message : ring_room(post->poster, buf->len);
	if (!msg)
		msg = job->message = malloc(buf->len + 1);
	if (!msg)
		return -ENOMEM;
	if (job->req.cmd.op == QCU_OP_COPY_SMALL)
		rc = user_copy(owner, msg, buf->addr, buf->len);
	else
		memcpy(msg, (const void *)(uintptr_t)buf->addr, buf->len);
	job->req.msg = msg;
	job->req.cmd.flags |= QCU_F_MSG;
	return rc;
}

/*
 * Does what the driver does with a record from user space. Returns 0, or -errno for the record's
 * status.
 */
static int prepare(struct job *job, const struct qCUcmd *cmd, struct post *post)
{
	int rc = qcu_check_user(cmd);

	job->req.cmd = *cmd;
	job->req.segs = NULL;
	job->req.seg_count = 0;
	job->chunk = NULL;
	job->message = NULL;
	if (rc)
		return rc;
	switch (qcu_rule(cmd->op)->buffer) {
	case QCU_BUFFER_IN:
	case QCU_BUFFER_OUT:
		return prepare_memory(job, false);
	case QCU_BUFFER_STAY:
		return prepare_memory(job, true);
	case QCU_BUFFER_MSG:
		return prepare_message(job, post);
	}
	return 0;
}

/*
 * The processor of the lane, which wrote to the post last, has the post's cache lines. This asks
 * for them before they are needed.
 */
static void fetch_ahead(const struct poster *p)
{
	const char *at = (const char *)&p->post[(p->count + AHEAD) % POSTS];
	unsigned int i;

	for (i = 0; i < 4; i++)
		__asm__ volatile("prefetchw %0" : : "m"(at[64 * i]));
}

static int post_one(struct poster *p, const struct qCUcmd *cmd)
{
	struct post *post = next_post(p);
	uint64_t ring_end = post->ring_end;
	int rc = prepare(&post->job, cmd, post);

	if (rc) {
		release(&post->job);
		return rc;
	}
	post->job.req.done = post_done;
	post->ring_end = p->ring_head;
	p->count++;
	p->refused = false;
	fetch_ahead(p);
	evict_now_and_then(mirror);
	if (mir_submit(mirror, &post->job.req)) {
		if (p->refused) {
			/* The post that was here before may be the last one that has ended. */
			post->ring_end = ring_end;
			p->count--;
		}
		return 0;
	}
	p->count--;
	atomic_store(&ended, true);
	release(&post->job);
	return -EPROTO;
}

static int send_one(struct poster *p, struct job *job, const struct qCUcmd *cmd)
{
	int rc = prepare(job, cmd, NULL);

	if (rc) {
		release(job);
		return rc;
	}
	return send(job, &p->wait) ? 0 : -EPROTO;
}

/* Takes the answer of a record that the thread has waited for. */
static void answer(struct qCUcmd *cmd, const struct job *job)
{
	if (job->req.cmd.status == MIR_RULE_BROKEN)
		atomic_store(&ended, true);
	/*
	 * The same memory may be registered again at once, and has no other address in this
	 * process.
	 */
	if (cmd->op == QCU_OP_HOST_UNREGISTER && !job->req.cmd.status) {
		const struct qcu_host_unregister *u = &cmd->host_unregister;
		bool removed;

		saved_enter();
		removed = remove_chunk(u->addr, u->len, true);
		saved_leave();
		if (removed)
			wait_until_left(u->addr, u->len);
	}
	qcu_take_answer(cmd, &job->req.cmd);
}

void qcul_transport_waiting(uint32_t how)
{
	waits_are(how);
}

int qcul_transport_submit(struct qCUcmd *cmds, unsigned int count)
{
	struct poster *p = poster();
	struct job one, *jobs = &one;
	unsigned int i;

	if (!mirror || atomic_load(&ended))
		return -ESHUTDOWN;
	saved_try(&mirror, &config);
	if (p && count > 1)
		jobs = malloc(count * sizeof(*jobs));
	if (!p || !jobs)
		return -ENOMEM;
	saved_enter();
	for (i = 0; i < count; i++) {
		int rc = -ESHUTDOWN;

		jobs[i].sent = false;
		if (atomic_load(&ended))
			;
		else if (cmds[i].flags & QCU_F_POSTED)
			rc = post_one(p, &cmds[i]);
		else
			rc = send_one(p, &jobs[i], &cmds[i]);
		cmds[i].status = rc;
	}
	saved_leave();
	wait_for_all(&p->wait);
	for (i = 0; i < count; i++)
		if (jobs[i].sent)
			answer(&cmds[i], &jobs[i]);
	if (count > 1)
		free(jobs);
	return 0;
}

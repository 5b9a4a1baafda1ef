/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Declarations that the files of qcuda.ko share: its structures, and the rules of locking and
 * lifetime. The files, of which each uses only those below it:
 *
 *	qcuda_main.c	module, /dev/qcuda, virtio probe and remove
 *	qcuda_session.c	open, close, ioctl
 *	qcuda_register.c registration of other user memory
 *	qcuda_vma.c	mmap and page faults
 *	qcuda_managed.c	managed memory that moves between the guest and the GPU
 *	qcuda_fork.c	what a forked child gets of its parent's chunks
 *	qcuda_map.c	MAP and UNMAP: which chunks the mirror has, when their pages are freed
 *	qcuda_group.c	groups: make them and their chunks, and free them
 *	qcuda_bounce.c	KERNEL_COPY: copies through kernel memory, for comparison
 *	qcuda_pin.c	other user memory as a table of segments
 *	qcuda_user.c	limits for one user
 *	qcuda_place.c	the mirror's addresses of registered memory
 *	qcuda_wait.c	waiting for answers: polling, then sleeping
 *	qcuda_queue.c	requests on a virtqueue, from creation to the last reference; interrupts
 *	qcuda_chunk.c	chunks: make, copy, share and free them
 *	qcuda_oom.c	what the kernel must know when memory runs out
 *	qcuda_logger.c	the groups by address, counters, debugfs
 *	qcuda_state.c	what all files share: the device, the list of sessions, parameters
 *
 * Locks, outermost first. A thread that holds a lock may take the locks below it.
 *
 * - qcud_life_lock, mutex: set-up and end of the device, except for suspend and resume. The kernel
 *   never runs those at the same time as the others. Held while the device is reset.
 * - qcud_lock, mutex: qcud_dev, the list of sessions, which queues are taken, and the flags
 *   stopping, stopped, kept. Never held while waiting for the device, never taken under mmap_lock.
 *   Memory is not allocated under it, because the OOM notifier (qcuda_oom.c) takes it.
 * - session->map_lock, mutex: allows one MAP at a time for each session. The MAP is kept in map_req
 *   until it is answered. The lock is held while waiting for the device. So it is never taken under
 *   mmap_lock, and no user memory is touched under it.
 * - mm->mmap_lock, the kernel's: held when the kernel calls our mmap, close and fault.
 * - session->move_lock, mutex: one move of managed memory at a time, and what follows from it. Held
 *   while waiting for the device, and taken in page faults and in fork. So a thread that holds it
 *   never takes mmap_lock and touches no user memory.
 * - session->launching, rw_semaphore: a command that uses managed memory holds it from the moment
 *   when it has found all of this memory on the GPU until it is on the ring. A move down holds it
 *   for writing until it is on the ring itself.
 * - chunks->lock, mutex: the chunks of one mapping and their state. Memory may be allocated under
 *   it. No thread waits for the device under it.
 * - chunk->lock, mutex: the pages of a chunk that has several owners.
 * - session->lock, spinlock, process context: the tree of groups, the list of closing groups, mm
 *   and chunk size.
 * - queue->lock, spinlock, interrupts off: the virtqueue itself, the requests in flight on it, the
 *   reason why the queue is dead.
 *
 * Contexts. The virtqueue's callback (hard interrupt) takes queue->lock only. It marks requests as
 * answered and wakes the waiters. It leaves all work that may sleep (unpinning, freeing pages) to
 * queue->work. munmap and exit (qcud_vma_close) never wait for the device.
 *
 * Lifetimes.
 *	device	  counted: one reference of the probe and one for each session.
 *	session	  ends with the open file. The structure is counted: references of the open file
 *		  and of the session's groups. When the device does not answer CLOSE, the session
 *		  outlives the file as "kept", until a reset of the device makes its pages safe to
 *		  free.
 *	request	  counted: the queue has one reference while the device has the request, the
 *		  sender has one. What a request holds is given back by two hooks: a use of a group
 *		  when the device has answered (unuse), all else with the last reference (release).
 *		  Whoever attaches it sets the hook, which does not fail and allocates nothing.
 *	group	  counted: references of its VMAs and of its UNMAP, and one of its own until its
 *		  pages are freed. group->users counts separately who needs the group mapped in the
 *		  mirror: 1 until munmap, and 1 for each command that uses it. UNMAP is sent when it
 *		  reaches 0.
 *	chunk	  counted by the groups and snapshots that have it.
 *	snapshot  counted by its VMAs.
 */
#ifndef QCUDA_H
#define QCUDA_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/virtio.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "qcucmd.h"
#include "qcuda_probed.h"

/* The largest block that the driver allocates. A larger chunk has several blocks. */
#define QCUD_BLOCK_ORDER (22 - PAGE_SHIFT)

/* A block that page tables can have as one huge page. */
#define QCUD_HUGE_ORDER (PMD_SHIFT - PAGE_SHIFT)

/* Descriptors of the largest request: record, QCU_SEGS_MAX segments page by page, reply. */
#define QCUD_SG_MAX (2 + DIV_ROUND_UP(QCU_SEGS_MAX * sizeof(struct qcu_seg), PAGE_SIZE))

struct qcud_device;
struct qcud_session;
struct qcud_user;

#define QCUD_SPIN_FIRST_NS (200 * NSEC_PER_USEC)

/* Counters of each session, and the same in total. The names are in qcuda_logger.c. */
enum qcud_count {
	QCUD_COUNT_COMMANDS,
	QCUD_COUNT_IOCTLS,     /* SUBMIT */
	QCUD_COUNT_KICKS,      /* notifications sent; the device had asked for them */
	QCUD_COUNT_INTERRUPTS, /* interrupts from the device */
	QCUD_COUNT_WAITS,      /* a caller slept for its answer */
	QCUD_COUNT_SPINS,      /* a caller found its answer by polling */
	QCUD_COUNT_POSTED,     /* commands that no caller waits for */
	QCUD_COUNTS,
};

/*
 * How many late errors are kept until their threads ask. The last entry then stands for the errors
 * of all further threads.
 */
#define QCUD_LATE 32

/* The first error among the commands that a thread has posted. The thread does not know it yet. */
struct qcud_late {
	u32 tid; /* 0: for the first thread that asks */
	s32 status;
};

struct qcud_queue {
	spinlock_t lock;	      /* all fields below, except counts */
	struct virtqueue *vq;	      /* NULL once the device has been reset */
	struct qcud_session *session; /* NULL: control, or free */
	struct list_head inflight;    /* requests that the device has now */
	struct list_head reap;	      /* answered requests that no caller waits for */
	int dead;		      /* 0, or the -errno that all requests fail with */
	bool starved;		      /* the work item found the ring full */
	unsigned int answers;	      /* counted, so that a wait for room misses none */
	unsigned int spinning;	      /* callers that poll for answers; meanwhile no interrupts */
	unsigned int wanted;	      /* answers and waits that need an interrupt at once */
	unsigned int heavy;	      /* posted requests whose end releases memory */
	unsigned int spin_ns;	      /* how long the next caller polls; read without the lock */
	u32 copy_ns;		      /* what a MiB of a long copy takes; the same */
	u64 copying;		      /* bytes of copies since the last wait; the same */
	unsigned int nr_late;	      /* read without the lock */
	struct qcud_late late[QCUD_LATE];
	atomic64_t counts[QCUD_COUNTS];
	wait_queue_head_t room;
	struct work_struct work;
};

struct qcud_device {
	struct kref refs;
	struct virtio_device *vdev; /* valid until `stopped` */
	struct qcu_config config;
	bool stopping, stopped;
	unsigned long busy[BITS_TO_LONGS(QCU_MAX_SESSIONS + 1)];
	unsigned int nr_queues;
	struct qcud_queue queue[];
};

struct qcud_request {
	struct scatterlist sg_cmd, sg_reply; /* set up once; the fields below start as zero */
	struct qCUcmd cmd;		     /* the device reads it */
	struct qCUcmd reply;		     /* the device writes it */
	refcount_t refs;
	struct list_head node; /* queue->inflight, then queue->reap */
	struct completion done;
	int error;   /* valid when done: 0, or why there is no reply */
	bool posted; /* no caller reads the reply */
	bool heavy;  /* posted, and counted in queue->heavy */
	u64 sent;    /* ns: time when it was put on the ring; 0: not timed */
	u64 began;   /* ns: start of the wait for the answer; 0: not timed */
	u64 copying; /* bytes that are copied before the answer comes */

	void *payload; /* kvmalloc: message bytes or segments */
	size_t payload_bytes;
	struct scatterlist *sg; /* if the payload is vmalloc() memory */
	struct scatterlist sg_payload;

	void (*unuse)(struct qcud_request *req);   /* any context; clears itself and `group` */
	void (*release)(struct qcud_request *req); /* may sleep, and may use the payload */

	struct qcud_bounce *bounce; /* the segments are kernel memory (KERNEL_COPY) */
	bool pinned_dirty;	    /* the segments are user pages, and the device writes them */
	struct qcud_user *payer;    /* the user whose pin limit was charged `paid` pages */
	unsigned long paid;
	struct qcud_group *registered; /* the registration that the request begins or ends */
	struct qcud_group *group;      /* a use of the group; for UNMAP the group that it ends */
	bool writes;		       /* the use is also counted in group->writers */
	unsigned long first, last;     /* MAP: numbers of the chunks */
};

struct qcud_session {
	struct kref refs;
	struct qcud_device *dev;
	struct qcud_queue *queue;
	struct qcud_user *user; /* the user who opened the session */
	struct file *memory;	/* the file that the session's mappings belong to */
	struct list_head node;	/* qcud_sessions */
	unsigned int id;
	pid_t pid;
	bool kept; /* the file is closed, but the device did not confirm CLOSE */

	struct qcud_request *close_req; /* allocated at open, so that close cannot fail */

	spinlock_t lock;      /* the fields from mm to unmaps */
	struct mm_struct *mm; /* address space that sent HELLO; only compared, never used */
	struct pid *owner;    /* the process with that address space */
	u32 chunk_bytes;
	u32 waiting; /* QCU_WAIT_* */
	bool mapped_once;
	bool ending;   /* the file is closed */
	bool detached; /* the device has been reset: no mirror has the session's pages */
	struct rb_root groups, registered;
	struct rb_root own, annex; /* registered groups by address, see qcuda_place.c */
	struct list_head closing;
	unsigned int unmaps;	/* of the closing groups, those with UNMAP on the ring */
	wait_queue_head_t wait; /* woken when a closing group makes progress */

	struct mutex map_lock; /* map_req */
	struct qcud_request *map_req;

	struct mutex move_lock;
	struct rw_semaphore launching;
	struct list_head managed; /* session->lock: groups that move */
	bool moves;		  /* there is or was such a group; read without a lock */
	/*
	 * There may be a chunk that the GPU does not have. Set under `launching`, or for a group
	 * that is not `given`; cleared under move_lock, when all has been moved up.
	 */
	bool here;
};

struct qcud_chunk {
	refcount_t refs;
	struct mutex lock; /* nr, runs and pages, while there are several owners */
	unsigned int nr;   /* number of pages; 0: the content is lost */
	unsigned int runs; /* number of physically contiguous runs */
	/* protected by chunks->lock of the group that has the chunk */
	bool pinned;	      /* the chunk holds pinned pages of the process */
	bool huge;	      /* some of its pages are huge pages; no change after it is made */
	bool mapped;	      /* the mirror has it mapped */
	bool gpu;	      /* registered: kernels may write it at any time */
	unsigned int counted; /* pages in mm's counters by the driver, not through page tables */
	u64 here; /* of a group that moves: which sectors of the chunk are here (qcuda_managed.c) */
	struct page *pages[];
};

/*
 * Of a group that moves: sectors of the chunk may be in page tables. All other chunks are the
 * GPU's, and in no page tables.
 */
#define QCUD_HERE XA_MARK_0

/* The chunks of a range of addresses, by number. */
struct qcud_chunks {
	unsigned long start, end;
	unsigned int shift;
	bool huge;	   /* new chunks have huge pages; set before there are any */
	struct mutex lock; /* the fields below */
	struct xarray xa;
};

/* The number of the chunk that contains this page. The page offset of a mapping is its address. */
static inline unsigned long qcud_chunk_index(const struct qcud_chunks *chunks, pgoff_t pgoff)
{
	return ((pgoff << PAGE_SHIFT) - chunks->start) >> chunks->shift;
}

/* What the caller wants to do with a chunk. */
enum qcud_use {
	QCUD_USE_READ,	/* a command reads it */
	QCUD_USE_WRITE, /* a command writes it */
	QCUD_USE_GPU,	/* kernels may write it from now on */
	QCUD_USE_FAULT, /* the CPU touches it (page fault) */
};

/* A part of a group, in bytes from its start. */
struct qcud_span {
	u64 from, to;
};

#define QCUD_RUNS 4

/*
 * G = {chunks B, start S, end E, flags F, pages P}: one mapping of /dev/qcuda, or pinned pages that
 * are registered.
 */
struct qcud_group {
	struct kref refs;
	refcount_t users;
	atomic_t writers; /* how many of the users let the device write */
	struct qcud_session *session;
	struct mm_struct *mm; /* only compared, and its counters changed; never used otherwise */
	u64 at;		      /* the mirror's address of mem.start, also before it is mapped */
	bool in_window;
	bool registered;

	/* protected by session->lock; registered groups, sorted by the mirror's addresses */
	enum { QCUD_PLACED_NOWHERE, QCUD_PLACED_OWN, QCUD_PLACED_ANNEX } placed;
	struct rb_node placed_node;
	u64 gap, most_gap; /* free bytes before the group; the most of the subtree */

	u64 addr, len;		 /* registered: the exact range */
	unsigned long accounted; /* pages counted in mm->pinned_vm */

	/* session->lock */
	struct rb_node node;
	struct list_head closing_node;
	bool closed;		    /* not in the tree any more; read without the lock */
	bool claimed;		    /* a thread is freeing it */
	bool ready;		    /* registered: commands may use it */
	struct qcud_request *unmap; /* allocated at mmap; NULL: sent */

	struct list_head managed_node; /* session->lock: in session->managed */
	/* of a group that moves, under move_lock */
	u64 bytes; /* how much of it can be used; set once */
	/* Page faults that run through the group, in bytes from its start (qcuda_managed.c). */
	struct qcud_span run;
	u64 ahead; /* how much the last of them has brought; 0: the run has ended */
	struct qcud_span runs[QCUD_RUNS]; /* earlier ones */
	unsigned int nr_runs;

	struct qcud_chunks mem;
	/* protected by mem.lock */
	bool moves; /* the GPU has memory of its own for the group; read without the lock */
	bool given; /* since then a command has been sent that may use the group */
	bool freed; /* the pages are freed; a late fault fails */
	bool sent;  /* a MAP was sent; the mirror may have the group */
	unsigned long nr_chunks, nr_pages, mapped_bytes;
	long counted; /* the sum of the chunks' `counted` */
	unsigned long blocks[QCUD_BLOCK_ORDER + 1];
};

/* qcuda_state.c */
extern struct mutex qcud_lock;
extern struct qcud_device *qcud_dev;
extern struct list_head qcud_sessions;
extern struct workqueue_struct *qcud_wq;
extern unsigned int qcud_device_wire_version; /* 0: no host process serves the device */
extern unsigned int qcud_chunk_kb;
extern bool qcud_trace;

long qcud_timeout(void); /* jiffies */

/*
 * Takes the next part of a wait for the host, in jiffies, off *left. A limit is waited for second
 * by second, because the guest's clock jumps when the host has slept. The device has slept, too: a
 * jump costs one second of its time.
 */
static inline long qcud_next_second(long *left)
{
	long now = *left == MAX_SCHEDULE_TIMEOUT ? *left : min(*left, (long)HZ);

	*left -= now;
	return now;
}
void qcud_device_put(struct qcud_device *dev);
void qcud_session_put(struct qcud_session *session);

/* qcuda_session.c */
extern const struct file_operations qcud_fops;

void qcud_session_finish(struct qcud_session *session);

/* qcuda_queue.c */
int qcud_request_cache_create(void);
void qcud_request_cache_destroy(void);
struct qcud_request *qcud_request_new(u16 op);
void qcud_request_put(struct qcud_request *req);
int qcud_request_payload(struct qcud_request *req, void *payload, size_t bytes);
void qcud_queue_init(struct qcud_queue *queue, work_func_t work);
#define QCUD_SEND_KICK 1u /* nothing follows at once: notify the device, if it wants that */
#define QCUD_SEND_WORK 2u /* the sender is the queue's work item */
#define QCUD_SEND_WAIT 4u /* wait for room */
int qcud_queue_send(struct qcud_queue *queue, struct qcud_request *req, unsigned int how);
void qcud_queue_interrupts(struct qcud_queue *queue);
void qcud_queue_want(struct qcud_queue *queue);
void qcud_queue_unwant(struct qcud_queue *queue);
void qcud_queue_count(struct qcud_queue *queue, enum qcud_count count);
void qcud_queue_notify(struct qcud_queue *queue);
void qcud_queue_kick(struct qcud_queue *queue);
void qcud_queue_drain(struct qcud_queue *queue);
void qcud_queue_poll(struct qcud_queue *queue);
void qcud_queue_callback(struct virtqueue *vq);
void qcud_queue_kill(struct qcud_queue *queue, int error);
void qcud_device_break(struct qcud_device *dev, int error);
void qcud_queue_expect(struct qcud_queue *queue, const struct qcud_group *group);
void qcud_queue_detach(struct qcud_queue *queue);
struct qcud_session *qcud_queue_reap(struct qcud_queue *queue);
long qcud_answer_timeout(void);
int qcud_answer_missing(struct qcud_queue *queue);
s32 qcud_queue_late(struct qcud_queue *queue, u32 tid);

/* qcuda_wait.c */
static inline bool qcud_is_copy(const struct qCUcmd *cmd)
{
	return qcu_rule(cmd->op)->traits & QCU_TIMED;
}

/* The command has been sent. If it copies, waits may take long. */
void qcud_queue_copies(struct qcud_queue *queue, const struct qCUcmd *cmd);
void qcud_queue_kick_and_spin(struct qcud_queue *queue, struct qcud_request *req, u32 how);
int qcud_request_wait(struct qcud_queue *queue, struct qcud_request *req);

/* qcuda_chunk.c */
void qcud_chunks_init(struct qcud_chunks *chunks, unsigned long start, unsigned long end);
void qcud_chunks_free(struct qcud_chunks *chunks);
unsigned long qcud_chunk_bytes(const struct qcud_chunks *chunks, unsigned long index);
struct qcud_chunk *qcud_chunk_new(unsigned int want);
struct qcud_chunk *qcud_chunk_make(struct qcud_chunks *chunks, unsigned long index,
				   struct qcud_session *session, unsigned long *blocks, bool fault);
struct qcud_chunk *qcud_chunk_copy(struct qcud_chunk *chunk);
struct qcud_chunk *qcud_chunk_unshare(struct qcud_chunks *chunks, unsigned long index,
				      struct qcud_chunk *chunk, bool keep);
void qcud_chunk_put(struct qcud_chunk *chunk);
vm_fault_t qcud_chunk_insert(struct vm_fault *vmf, const struct qcud_chunks *chunks,
			     unsigned long index, struct qcud_chunk *chunk, struct qcud_span *part);
unsigned int qcud_chunk_segs(const struct qcud_chunk *chunk, unsigned int page, unsigned int pages,
			     struct qcu_seg *segs, unsigned int *nr, unsigned int max);
struct qcud_span qcud_chunk_span(const struct qcud_chunks *chunks, unsigned long index);

/* qcuda_group.c */
struct qcud_group *qcud_group_new(struct qcud_session *session, unsigned long start,
				  unsigned long end);
int qcud_group_populate(struct qcud_group *group, unsigned long first, unsigned long last,
			enum qcud_use use, bool *mapped);
void qcud_group_free(struct qcud_group *group);
void qcud_group_put(struct qcud_group *group);
struct qcud_chunk *qcud_group_chunk(struct qcud_group *group, unsigned long index,
				    enum qcud_use use);

/* qcuda_vma.c */
struct file *qcud_memory_file(void);
int qcud_mmap(struct file *file, struct vm_area_struct *vma);

/* qcuda_managed.c */
/* What qcud_managed_take() holds until qcud_managed_sent(). */
enum qcud_managed_held {
	QCUD_HELD_NOTHING,
	QCUD_HELD_LAUNCHING,
	QCUD_HELD_MOVES,
};
int qcud_managed_begin(struct qcud_session *session, struct qcud_request *req);
void qcud_managed_refused(struct qcud_session *session, const struct qCUcmd *cmd);
int qcud_managed_end(struct qcud_session *session, struct qcud_request *req);
int qcud_managed_take(struct qcud_session *session, const struct qCUcmd *cmd,
		      enum qcud_managed_held *held);
void qcud_managed_sent(struct qcud_session *session, enum qcud_managed_held held);
void qcud_managed_lost(struct qcud_session *session);
bool qcud_managed_here(struct qcud_group *group, u64 at);
struct qcud_span qcud_managed_touched(struct qcud_group *group, struct qcud_chunk *chunk, u64 at);
vm_fault_t qcud_managed_fault(struct vm_fault *vmf, struct qcud_group *group, u64 at);
void qcud_managed_fork(struct vm_area_struct *vma, struct qcud_group *group);

/* qcuda_fork.c */
void qcud_fork(struct vm_area_struct *vma, struct qcud_chunks *from, struct qcud_group *group,
	       bool whole);

/* qcuda_map.c */
int qcud_group_map(struct qcud_group *group, u64 addr, u64 len, enum qcud_use use);
void qcud_group_unuse(struct qcud_group *group);
void qcud_request_use(struct qcud_request *req, struct qcud_group *group, bool writes);
void qcud_group_close(struct qcud_group *group);
void qcud_session_reap(struct work_struct *work);
int qcud_map_settle(struct qcud_session *session);
int qcud_group_place_free(struct qcud_group *group);

/* qcuda_pin.c */
unsigned long qcud_pin_pages(u64 addr, u64 len);
int qcud_pin(struct qcud_user *user, struct qcud_request *req, u64 addr, u64 len, bool write);

/* qcuda_place.c */
bool qcud_place(struct qcud_group *group, bool own);
void qcud_place_end(struct qcud_group *group);

/* qcuda_user.c */
struct qcud_user *qcud_user_get(void);
void qcud_user_put(struct qcud_user *user);
bool qcud_user_session(struct qcud_user *user, unsigned int all);
void qcud_user_session_end(struct qcud_user *user);
int qcud_pin_begin(struct qcud_user *user, struct qcud_request *req, unsigned long pages);
void qcud_pin_end(struct qcud_request *req);
int qcud_pin_wait(struct qcud_session *session, unsigned long pages);

/* qcuda_oom.c */
void qcud_mm_count(struct mm_struct *mm, long pages);
void qcud_mm_settle(struct mm_struct *mm);
void qcud_chunk_count(struct qcud_group *group, struct qcud_chunk *chunk, unsigned int pages);
void qcud_group_count(struct qcud_group *group);
void qcud_memory_returned(unsigned long pages);
void qcud_session_returned(void);
int qcud_oom_register(void);
void qcud_oom_unregister(void);

/* qcuda_bounce.c */
int qcud_bounce(struct qcud_request *req, bool out);
int qcud_bounce_out(const struct qcud_request *req);

/* qcuda_register.c */
int qcud_register(struct qcud_session *session, struct qcud_request *req);
int qcud_unregister(struct qcud_session *session, struct qcud_request *req);
struct qcud_group *qcud_registered_use(struct qcud_session *session, u64 addr, u64 len);
u64 qcud_registered_at(const struct qcud_group *group, u64 addr);
void qcud_registered_wait(struct qcud_group *group);
void qcud_registered_end(struct qcud_session *session);

/* qcuda_logger.c */
enum qcud_stat {
	/* current values */
	QCUD_STAT_SESSIONS,
	QCUD_STAT_GROUPS,
	QCUD_STAT_CHUNK_PAGES,
	QCUD_STAT_PINNED_PAGES,
	QCUD_STAT_REQUESTS,
	QCUD_STAT_SNAPSHOTS,
	/* totals since the module was loaded */
	QCUD_STAT_FIRST_COUNT, /* enum qcud_count */
	QCUD_STAT_LAST_COUNT = QCUD_STAT_FIRST_COUNT + QCUD_COUNTS - 1,
	QCUD_STAT_MAPS,
	QCUD_STAT_MOVED_UP, /* bytes of managed memory */
	QCUD_STAT_MOVED_DOWN,
	QCUD_STAT_UNMAPS,
	QCUD_STAT_WINDOW_BYTES,
	QCUD_STAT_PAGES_BYTES,
	QCUD_STAT_MSG_BYTES,
	QCUD_STAT_COPIED_IN_GUEST,
	QCUD_STAT_FORK_COPIED_PAGES,
	QCUD_STAT_PLACE_STEPS, /* steps of the search for addresses of registered memory */
	QCUD_STAT_PIN_WAITS,   /* commands that waited for others to unpin */
	QCUD_STAT_OOM_WAITS,   /* how often the driver held the OOM killer back */
	/* with trace=1: where the time of copies is spent, in ns */
	QCUD_STAT_TIMED_COPIES,
	QCUD_STAT_TIMED_IOCTL,	/* from entry to exit */
	QCUD_STAT_TIMED_PIN,	/* of IOCTL: to make the buffer known to the device */
	QCUD_STAT_TIMED_MAP,	/* of PIN: to wait for the mirror to map and register chunks */
	QCUD_STAT_TIMED_RING,	/* from the ring to the answer */
	QCUD_STAT_TIMED_MIRROR, /* of RING: in the mirror */
	QCUD_STAT_TIMED_COPY,	/* of RING: in the backend */
	QCUD_STATS,
};

extern atomic64_t qcud_stats[QCUD_STATS];

static inline void qcud_stat_add(enum qcud_stat stat, s64 n)
{
	atomic64_add(n, &qcud_stats[stat]);
}

int qcud_group_log(struct qcud_group *group);
struct qcud_group *qcud_group_find(struct qcud_session *session, u64 addr, u64 len);
void qcud_debugfs_create(void);
void qcud_debugfs_remove(void);
void qcud_stats_check(void);

/*
 * Adds memory to a table of segments. Merges it with the last segment if the two touch. Returns
 * false if the table is full.
 */
static inline bool qcud_seg_add(struct qcu_seg *segs, unsigned int *nr, unsigned int max, u64 gpa,
				u64 len)
{
	if (*nr && segs[*nr - 1].gpa + segs[*nr - 1].len == gpa) {
		segs[*nr - 1].len += len;
		return true;
	}
	if (*nr == max)
		return false;
	segs[*nr].gpa = gpa;
	segs[*nr].len = len;
	(*nr)++;
	return true;
}

#endif

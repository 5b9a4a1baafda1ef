/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of qcuda.ko share: its few structures, and the rules of locking that hold them
 * together. One file each:
 *
 *	qcuda_main.c	module, /dev/qcuda, virtio probe and remove
 *	qcuda_session.c	open, close, ioctl
 *	qcuda_queue.c	requests on a virtqueue, from the first byte to the last reference
 *	qcuda_wait.c	waiting for answers: looking, then sleeping; interrupts
 *	qcuda_chunk.c	chunks: made of pages, copied, shared, freed
 *	qcuda_vma.c	mmap and page faults: groups and their chunks
 *	qcuda_fork.c	what a forked child has of its parent's chunks
 *	qcuda_map.c	MAP and UNMAP: which chunks the mirror has, when their pages may go
 *	qcuda_pin.c	other user memory as a table of segments
 *	qcuda_place.c	where the mirror has registered memory
 *	qcuda_user.c	what one user may have
 *	qcuda_oom.c	what the kernel has to know when memory runs out
 *	qcuda_bounce.c	KERNEL_COPY: a copy's bytes in kernel memory, to compare with
 *	qcuda_register.c other user memory that is registered
 *	qcuda_logger.c	the groups by address, counters, debugfs
 *
 * Locks, outermost first. Whoever holds one may take those below it.
 *
 * - qcud_life_lock, mutex: the device's beginnings and ends, but for suspend and resume, which the
 *   kernel keeps apart from them. Held while the device is reset.
 * - qcud_lock, mutex: qcud_dev, the list of sessions, which queues are taken, and the flags
 *   stopping, stopped, kept. Never held while waiting for the device, never taken under mmap_lock.
 *   Memory is not allocated under it: who waits for memory may want it (qcuda_oom.c).
 * - session->map_lock, mutex: one MAP at a time for each session, kept in map_req until it is
 *   answered. Held while waiting for the device; so it is never taken under mmap_lock, and no user
 *   memory is touched under it.
 * - mm->mmap_lock, the kernel's: held by our mmap, close and fault.
 * - chunks->lock, mutex: the chunks of one mapping and their state. Memory is allocated under it,
 *   the device is never waited for.
 * - chunk->lock, mutex: the pages of a chunk that has several owners.
 * - session->lock, spinlock, process context: the tree of groups, the list of those that are
 *   closing, mm and chunk size.
 * - queue->lock, spinlock, interrupts off: the virtqueue itself, what is in flight on it, why it is
 *   dead.
 *
 * Contexts. The virtqueue's callback (hard interrupt) takes queue->lock only: it marks requests as
 * answered, wakes who waits, and leaves all that may sleep (unpinning, freeing pages) to
 * queue->work. munmap and exit (qcud_vma_close) never wait for the device.
 *
 * Lives.
 *	device	  counted: the probe's reference and one for each session.
 *	session	  ends with the open file; the structure is counted by that and by its groups.
 *		  When the device does not answer CLOSE, the session outlives the file as "kept",
 *		  until a reset of the device makes its pages safe to free.
 *	request	  counted: one reference is the queue's while the device has it, one is the
 *		  sender's. Pins live as long as the request.
 *	group	  counted by its VMAs, by its UNMAP, and by itself until its pages are freed.
 *		  Besides, group->users counts who needs it mapped in the mirror: 1 until munmap,
 *		  and one for each command that uses it. UNMAP is sent when it reaches 0.
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
#include <linux/sched.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/virtio.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "qcucmd.h"
#include "qcuda_probed.h"

/* The largest block asked of the page allocator; larger chunks are made of several. */
#define QCUD_BLOCK_ORDER (22 - PAGE_SHIFT)

/* Descriptors of the largest request: record, QCU_SEGS_MAX segments page by page, reply. */
#define QCUD_SG_MAX (2 + DIV_ROUND_UP(QCU_SEGS_MAX * sizeof(struct qcu_seg), PAGE_SIZE))

struct qcud_device;
struct qcud_session;
struct qcud_user;

#define QCUD_SPIN_FIRST_NS (200 * NSEC_PER_USEC)

/* What is counted for each session, and in total as well; the names are in qcuda_logger.c. */
enum qcud_count {
	QCUD_COUNT_COMMANDS,
	QCUD_COUNT_IOCTLS,     /* SUBMIT */
	QCUD_COUNT_KICKS,      /* notifications that the device had asked for */
	QCUD_COUNT_INTERRUPTS, /* that it has sent */
	QCUD_COUNT_WAITS,      /* a caller has slept */
	QCUD_COUNT_SPINS,      /* a caller found its answer without */
	QCUD_COUNT_POSTED,     /* commands that nobody waits for */
	QCUD_COUNTS,
};

/* How many threads' errors are kept until they ask; the last one stands for all further ones. */
#define QCUD_LATE 32

/* The first error among what a thread has posted and not been told of. */
struct qcud_late {
	u32 tid; /* 0: whoever asks first */
	s32 status;
};

struct qcud_queue {
	spinlock_t lock;	      /* all of the below, except counts */
	struct virtqueue *vq;	      /* NULL once the device has been reset */
	struct qcud_session *session; /* NULL: control, or free */
	struct list_head inflight;    /* requests that the device has */
	struct list_head reap;	      /* answered ones that nobody waits for */
	int dead;		      /* 0, or the -errno that all requests get */
	bool starved;		      /* the work item found the ring full */
	unsigned int answers;	      /* counts, so that a wait for room cannot miss one */
	unsigned int spinning;	      /* callers that look for answers: no interrupts */
	unsigned int wanted;  /* answers and waits for which an interrupt must come at once */
	unsigned int heavy;   /* posted requests whose end lets memory go */
	unsigned int spin_ns; /* how long the next one will; read without the lock */
	unsigned int nr_late; /* read without the lock */
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
	struct scatterlist sg_cmd, sg_reply; /* once and for all; what follows starts as zero */
	struct qCUcmd cmd;		     /* as the device reads it */
	struct qCUcmd reply;		     /* as the device writes it */
	refcount_t refs;
	struct list_head node; /* queue->inflight, then queue->reap */
	struct completion done;
	int error;   /* valid when done: 0, or why there is no reply */
	bool posted; /* nobody reads the reply */
	bool heavy;  /* posted, and counted in queue->heavy */
	u64 sent;    /* ns, when it went on the ring; 0: not timed */
	u64 began;   /* ns; 0: it does not matter how long the answer takes */

	void *payload; /* kvmalloc: message bytes or segments */
	size_t payload_bytes;
	struct scatterlist *sg; /* of a payload that vmalloc() has made */
	struct scatterlist sg_payload;

	struct qcud_bounce *bounce; /* the segments are the kernel's (KERNEL_COPY) */
	bool pinned;		    /* the segments are pinned user pages */
	bool pinned_dirty;
	struct qcud_user *payer; /* who has `paid` pages of what his commands may have pinned */
	unsigned long paid;
	struct qcud_group *registered; /* what the request begins or ends */
	struct qcud_group *group;      /* a use; for UNMAP the group that ends with it */
	bool writes;		       /* the use is counted in group->writers, too */
	unsigned long first, last;     /* MAP: chunks */
};

struct qcud_session {
	struct kref refs;
	struct qcud_device *dev;
	struct qcud_queue *queue;
	struct qcud_user *user; /* who has opened it */
	struct file *memory;	/* what its mappings are of */
	struct list_head node;	/* qcud_sessions */
	unsigned int id;
	pid_t pid;
	bool kept; /* the file is gone, the device did not confirm */

	struct qcud_request *close_req; /* made at open, so that close cannot fail */

	spinlock_t lock;      /* mm to unmaps */
	struct mm_struct *mm; /* who said hello; compared, never entered */
	struct pid *owner;    /* the process that has it */
	u32 chunk_bytes;
	u32 waiting; /* QCU_WAIT_* */
	bool mapped_once;
	bool ending;   /* the file is gone */
	bool detached; /* the device has been reset: no mirror has our pages */
	struct rb_root groups, registered;
	struct rb_root own, annex; /* where the mirror has registered ones, see qcuda_place.c */
	struct list_head closing;
	unsigned int unmaps;	/* of them, UNMAPs on the ring */
	wait_queue_head_t wait; /* a closing group has moved on */

	struct mutex map_lock; /* map_req */
	struct qcud_request *map_req;
};

struct qcud_chunk {
	refcount_t refs;
	struct mutex lock; /* nr, runs and pages, while there are several owners */
	unsigned int nr;   /* pages; 0: the content is lost */
	unsigned int runs; /* physically contiguous ones */
	/* chunks->lock of the group that has it */
	bool pinned;  /* the pages are the process's own */
	bool mapped;  /* in the mirror */
	bool gpu;     /* registered: kernels may write it at any time */
	bool counted; /* in mm's counters, by us and not by page tables */
	struct page *pages[];
};

/* The chunks of a range of addresses, by number. */
struct qcud_chunks {
	unsigned long start, end;
	unsigned int shift;
	struct mutex lock; /* of what follows */
	struct xarray xa;
};

/* The number of the chunk with this page. The mappings' offsets are addresses. */
static inline unsigned long qcud_chunk_index(const struct qcud_chunks *chunks, pgoff_t pgoff)
{
	return ((pgoff << PAGE_SHIFT) - chunks->start) >> chunks->shift;
}

/* What a chunk is wanted for. */
enum qcud_use {
	QCUD_USE_READ,	/* a command reads it */
	QCUD_USE_WRITE, /* a command writes it */
	QCUD_USE_GPU,	/* kernels may write it from now on */
	QCUD_USE_FAULT, /* the program touches it */
};

/*
 * G = {chunks B, start S, end E, flags F, pages P}: one mapping of /dev/qcuda, or pinned pages that
 * are registered.
 */
struct qcud_group {
	struct kref refs;
	refcount_t users;
	atomic_t writers; /* those of the users that let the device write */
	struct qcud_session *session;
	struct mm_struct *mm; /* compared and counted in, never entered */
	u64 at;		      /* where the mirror has, or will have, mem.start */
	bool in_window;
	bool registered;

	/* session->lock; what is registered, by the mirror's addresses */
	enum { QCUD_PLACED_NOWHERE, QCUD_PLACED_OWN, QCUD_PLACED_ANNEX } placed;
	struct rb_node place;
	u64 room, most_room; /* free addresses in front of it, and the most of the subtree */

	u64 addr, len;		 /* registered: exactly what */
	unsigned long accounted; /* pages, in mm->pinned_vm */

	/* session->lock */
	struct rb_node node;
	struct list_head closing_node;
	bool closed;		    /* no longer in the tree; read without the lock */
	bool claimed;		    /* someone is freeing it */
	bool ready;		    /* registered: may be used */
	struct qcud_request *unmap; /* made at mmap; NULL: sent */

	struct qcud_chunks mem;
	/* mem.lock */
	bool freed; /* a late fault finds nothing */
	bool sent;  /* the mirror may have seen it */
	unsigned long nr_chunks, nr_pages, mapped_bytes;
	long counted; /* pages, of the chunks that are */
	unsigned long blocks[QCUD_BLOCK_ORDER + 1];
};

/* qcuda_main.c */
extern struct mutex qcud_lock;
extern struct qcud_device *qcud_dev;
extern struct list_head qcud_sessions;
extern struct workqueue_struct *qcud_wq;
extern unsigned int qcud_chunk_kb;
extern bool qcud_trace;
extern bool qcud_kernel_copy;

unsigned long qcud_timeout(void); /* jiffies */
void qcud_device_break(struct qcud_device *dev);
void qcud_device_put(struct qcud_device *dev);

/* qcuda_session.c */
extern const struct file_operations qcud_fops;

void qcud_session_finish(struct qcud_session *session);
void qcud_session_put(struct qcud_session *session);

/* qcuda_queue.c */
int qcud_request_cache_create(void);
void qcud_request_cache_destroy(void);
struct qcud_request *qcud_request_new(u16 op);
void qcud_request_put(struct qcud_request *req);
int qcud_request_payload(struct qcud_request *req, void *payload, size_t bytes);
void qcud_queue_init(struct qcud_queue *queue);
#define QCUD_SEND_KICK 1u /* nothing follows at once: the device is told, if it wants to be */
#define QCUD_SEND_WORK 2u /* the sender is the queue's work item */
int qcud_queue_try(struct qcud_queue *queue, struct qcud_request *req, unsigned int *answers,
		   unsigned int how);
int qcud_queue_send(struct qcud_queue *queue, struct qcud_request *req, unsigned int how);
void qcud_queue_notify(struct qcud_queue *queue);
void qcud_queue_kick(struct qcud_queue *queue);
void qcud_queue_drain(struct qcud_queue *queue);
void qcud_queue_poll(struct qcud_queue *queue);
void qcud_queue_callback(struct virtqueue *vq);
void qcud_queue_kill(struct qcud_queue *queue, int error);
void qcud_queue_expect(struct qcud_queue *queue, const struct qcud_group *group);
void qcud_queue_detach(struct qcud_queue *queue);
void qcud_queue_reap(struct qcud_queue *queue);
s32 qcud_queue_late(struct qcud_queue *queue, u32 tid);

/* qcuda_wait.c */
long qcud_answer_timeout(void);
int qcud_answer_missing(struct qcud_queue *queue);
void qcud_queue_interrupts(struct qcud_queue *queue);
void qcud_queue_want(struct qcud_queue *queue);
void qcud_queue_unwant(struct qcud_queue *queue);
void qcud_queue_kick_and_spin(struct qcud_queue *queue, struct qcud_request *req, u32 how);
int qcud_request_wait(struct qcud_queue *queue, struct qcud_request *req);
void qcud_queue_count(struct qcud_queue *queue, enum qcud_count count);

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
			     unsigned long index, struct qcud_chunk *chunk);

/* qcuda_vma.c */
struct file *qcud_memory_file(void);
int qcud_mmap(struct file *file, struct vm_area_struct *vma);
struct qcud_group *qcud_group_new(struct qcud_session *session, unsigned long start,
				  unsigned long end);
int qcud_group_populate(struct qcud_group *group, unsigned long first, unsigned long last,
			enum qcud_use use, bool *mapped);
void qcud_group_free(struct qcud_group *group);
void qcud_group_put(struct qcud_group *group);

/* qcuda_fork.c */
void qcud_fork(struct vm_area_struct *vma, struct qcud_chunks *from, struct qcud_group *group);

/* qcuda_map.c */
int qcud_group_map(struct qcud_group *group, u64 addr, u64 len, enum qcud_use use);
void qcud_group_unuse(struct qcud_group *group);
void qcud_request_unuse(struct qcud_request *req);
void qcud_group_close(struct qcud_group *group);
void qcud_group_unmapped(struct qcud_request *req);
void qcud_session_reap(struct qcud_session *session);
int qcud_map_settle(struct qcud_session *session);

/* qcuda_pin.c */
unsigned long qcud_pin_pages(u64 addr, u64 len);
int qcud_pin(struct qcud_user *user, struct qcud_request *req, u64 addr, u64 len, bool write);
void qcud_unpin(struct qcud_request *req);

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
void qcud_chunk_count(struct qcud_group *group, struct qcud_chunk *chunk, bool here);
void qcud_group_count(struct qcud_group *group);
void qcud_memory_returned(unsigned long pages);
void qcud_session_returned(void);
int qcud_oom_register(void);
void qcud_oom_unregister(void);

/* qcuda_bounce.c */
int qcud_bounce(struct qcud_request *req, bool out);
int qcud_bounce_out(const struct qcud_request *req);
void qcud_bounce_free(struct qcud_bounce *bounce);

/* qcuda_register.c */
int qcud_register(struct qcud_session *session, struct qcud_request *req);
int qcud_unregister(struct qcud_session *session, struct qcud_request *req);
struct qcud_group *qcud_registered_use(struct qcud_session *session, u64 addr, u64 len);
u64 qcud_registered_at(const struct qcud_group *group, u64 addr);
void qcud_registered_done(struct qcud_request *req);
void qcud_registered_wait(struct qcud_group *group);
void qcud_registered_end(struct qcud_session *session);
void qcud_unaccount(struct qcud_group *group);

/* qcuda_logger.c */
enum qcud_stat {
	/* what is there now */
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
	QCUD_STAT_UNMAPS,
	QCUD_STAT_WINDOW_BYTES,
	QCUD_STAT_PAGES_BYTES,
	QCUD_STAT_MSG_BYTES,
	QCUD_STAT_COPIED_IN_GUEST,
	QCUD_STAT_FORK_COPIED_PAGES,
	QCUD_STAT_PLACE_STEPS, /* of looking for addresses for what is registered */
	QCUD_STAT_PIN_WAITS,   /* commands that have waited for others to unpin */
	QCUD_STAT_OOM_WAITS,   /* how often the OOM killer has been held back */
	/* with trace=1: where the time of copies goes, in ns */
	QCUD_STAT_TIMED_COPIES,
	QCUD_STAT_TIMED_IOCTL,	/* from entry to exit */
	QCUD_STAT_TIMED_PIN,	/* of it, making the buffer known to the device */
	QCUD_STAT_TIMED_MAP,	/* of that, waiting for the mirror to map and register chunks */
	QCUD_STAT_TIMED_RING,	/* from the ring to its answer */
	QCUD_STAT_TIMED_MIRROR, /* of it, in the mirror */
	QCUD_STAT_TIMED_COPY,	/* of it, in the backend */
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
 * Adds memory to a table of segments, merging it with the last one where they touch. False: the
 * table is full.
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

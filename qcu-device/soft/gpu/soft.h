/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The interfaces between the files of the software GPU's runtime: memory, streams, events, modules
 * and so on. The PTX machine behind ptx.h is a separate part.
 *
 * be->lock protects streams, tickets, events and errors. Each memory table has a lock for writers
 * only, because kernels look addresses up all the time. Lock order: be->lock is never taken while a
 * memory lock is held.
 */
#ifndef QCU_SOFT_H
#define QCU_SOFT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "qcu-device/backend/backend.h"
#include "qcu-device/backend/pass.h"
#include "qcu-device/base/sorted.h"
#include "qcu-device/soft/ptx/base/ptx.h"

#define SOFT_GPUS_MAX 16
#define SOFT_VRAM_MAX (UINT64_C(768) << 30) /* of each */

/* The backend's functions, in the list's order. */
#define BE_OP_OF(type, name, ...) type soft_##name(__VA_ARGS__);
#define BE_CUDA_OP(...)
#include "qcu-device/backend/ops.h"

static inline uint64_t soft_round_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

/* ---- range.c: an ordered table of address ranges; readers take no lock ---- */

struct soft_range_entry {
	_Atomic uint64_t lo, hi;
	_Atomic uint32_t tag; /* the meaning is up to the owner of the table */
};

struct soft_ranges {
	_Atomic uint32_t seq; /* odd while a writer changes the table */
	_Atomic size_t count;
	struct soft_range_entry *entries;
	size_t max;
};

struct soft_range {
	uint64_t lo, hi;
	uint32_t tag;
};

/* Raised after each change of any table. */
extern _Atomic uint64_t soft_mem_gone;

bool soft_ranges_init(struct soft_ranges *t);
void soft_ranges_fini(struct soft_ranges *t);
/* Finds the range that contains addr. */
bool soft_ranges_find(struct soft_ranges *t, uint64_t addr, struct soft_range *out);
/*
 * The functions below are for writers only, one at a time. soft_ranges_upper returns the index of
 * the first range that begins above addr.
 */
size_t soft_ranges_upper(struct soft_ranges *t, uint64_t addr);
bool soft_ranges_at(struct soft_ranges *t, size_t i, struct soft_range *out);
bool soft_ranges_insert(struct soft_ranges *t, size_t i, const struct soft_range *r);
void soft_ranges_remove(struct soft_ranges *t, size_t i);
/* Replaces a range; the order must stay. */
void soft_ranges_set(struct soft_ranges *t, size_t i, const struct soft_range *r);

/* ---- share.c ---- */

/* A part of a file that a process has open. The IPC handles of this backend contain this struct. */
struct soft_file {
	int pid, fd;
	uint64_t dev, ino;
	uint64_t offset, len;
	struct be_pass_handle offer; /* if the process is a mirror */
};
_Static_assert(sizeof(struct soft_file) <= BE_IPC_BYTES, "a handle has room for it");

/* One instance of the backend in a mirror shares files with other mirrors. */
void soft_share_begin(const struct be_options *opt);
void soft_share_end(void);
/* The mirror's seat; 0: the process is none. */
unsigned int soft_share_seat(void);
/* -1: there is no memory for the file, or RLIMIT_FSIZE forbids its size. */
int soft_file_new(uint64_t size);
bool soft_file_tell(int fd, struct soft_file *f);
/* Closes a file that may have been told. */
void soft_file_close(int fd);
/* -1: the file no longer exists, or cannot be opened. */
int soft_file_open(const struct soft_file *f);

/* ---- mem.c ---- */

/* What a range of a device's addresses, or of registered host memory, is for. */
enum {
	SOFT_MEMORY = 1,
	SOFT_VARIABLE = 2,
	SOFT_HOST = 3,
	SOFT_POOL = 4,
	SOFT_IMPORT = 5,
	SOFT_PHYS = 6,	/* may be used only where it is mapped, see virtual.c */
	SOFT_KNOWN = 7, /* as SOFT_MEMORY, but another process may have it open */
};

struct soft_mem {
	pthread_mutex_t lock;
	struct soft_ranges table;
	uint64_t base, size; /* the reserved addresses */
	int fd;		     /* the file that is mapped there; -1: anonymous memory */
	uint64_t usable;     /* how many of the bytes are readable and writable so far */
	/* Where to look for room first. Moves up, so that freed addresses are used again late. */
	uint64_t next;
	uint64_t vram, used;
	uint8_t *written; /* see check.c; NULL: checking is off */
	struct be *be;
	unsigned int index; /* of the device */
	struct sorted away; /* see move.c */
	uint64_t away_bytes;
	const struct be_wanted *wanted; /* of all devices; NULL: any addresses will do */
	size_t wanted_count;
};

struct soft_device;

bool soft_mem_init(struct soft_mem *m, struct be *be, unsigned int index, uint64_t vram);
void soft_mem_fini(struct soft_mem *m);
uint64_t soft_mem_default(void);
/* Frees everything that soft_mem_alloc has allocated, but not variables, pools and imports. */
void soft_mem_reset(struct soft_mem *m);

/* True if the whole range lies in one allocation, or in registered host memory. */
bool soft_mem_usable(struct be *be, uint64_t addr, uint64_t len);
bool soft_host_registered(struct be *be, uint64_t addr, uint64_t len);

/* The device whose address this is, or NULL. */
struct soft_device *soft_mem_device(struct be *be, uint64_t addr);
int soft_mem_end(struct be *be, uint64_t addr); /* not for memory of pools */
/* Is this what soft_mem_alloc has made? */
static inline bool soft_mem_tag(uint32_t tag)
{
	return tag == SOFT_MEMORY || tag == SOFT_KNOWN;
}

/*
 * For pools: these allocate and free memory at once, without waiting for streams. soft_mem_take
 * returns 0 if there is no memory.
 */
uint64_t soft_mem_take(struct soft_mem *m, uint64_t size);
void soft_mem_give(struct soft_mem *m, uint64_t addr);
/* The same for memory that is mapped elsewhere. */
uint64_t soft_phys_take(struct soft_mem *m, uint64_t size);
void soft_phys_give(struct soft_mem *m, uint64_t addr);

/* The next allocations get these addresses, or fail. NULL: any addresses. */
void soft_mem_want(struct soft_mem *m, const struct be_wanted *wanted, size_t count);
/* Is the memory where that of a fresh device would be? */
bool soft_mem_usual(const struct soft_mem *m);
/* How many bytes are taken as memory for variables. */
uint64_t soft_mem_variables(struct soft_mem *m);

/* Callbacks of the PTX machine; ctx is a struct soft_device. */
uint64_t soft_env_alloc(void *ctx, size_t size);
void soft_env_free(void *ctx, uint64_t addr);

/* ---- pool.c ---- */

void soft_pools_init(struct soft_device *d);
void soft_pools_fini(struct soft_device *d);
/* Frees all memory of the pools of a device. */
void soft_pools_reset(struct soft_device *d);
/* Returns cudaMemAccessFlags: how device `dev` may use pool memory of `owner`. */
unsigned int soft_pool_access(struct soft_device *owner, uint64_t addr, unsigned int dev);

/* ---- virtual.c ---- */

/* Addresses that can be reserved. The range is never given back to the process. */
struct soft_virtual {
	pthread_mutex_t lock;
	uint64_t base;
	_Atomic uint64_t size; /* 0: nothing has been reserved yet */
	uint64_t next;	       /* where to look for room first */
	struct soft_ranges reserved;
	const struct be_wanted *wanted; /* NULL: any addresses */
	size_t wanted_count;
};

void soft_virtual_init(struct be *be);
void soft_virtual_fini(struct be *be);
/* The next reservation is at the first one of these, or fails. NULL: anywhere. */
void soft_virtual_want(struct be *be, const struct be_wanted *wanted, size_t count);
/* Another process can have the same addresses. */
bool soft_virtual_usual(const struct be *be);
/* Where these bytes are without a mapping; 0: they are not all in the memory. */
uint64_t soft_phys_place(const struct be_phys *p, uint64_t offset, uint64_t bytes);

/* ---- move.c; m->lock is held ---- */

/* Takes from the memory that all VMs share, or gives it back. */
bool soft_resident(const struct soft_mem *m, int64_t bytes);
void soft_move_init(struct soft_mem *m);
void soft_move_fini(struct soft_mem *m);
/*
 * The range is freed: what is away of it goes. *bytes is how much that was. False: some of its
 * pages cannot be made usable again.
 */
bool soft_move_forget(struct soft_mem *m, const struct soft_range *r, uint64_t *bytes);

/* ---- check.c ---- */

bool soft_check_wanted(void);
bool soft_check_init(struct soft_mem *m);
void soft_check_fini(struct soft_mem *m);
/* Marks bytes as written (on) or as not written. */
void soft_check_set_written(struct soft_mem *m, uint64_t addr, uint64_t len, bool on);
void soft_check_copied(struct be *be, const void *to, const void *from, uint64_t len);
void soft_check_filled(struct be *be, uint64_t addr, uint64_t len);
bool soft_env_written(void *ctx, uint64_t addr, size_t len);
void soft_env_wrote(void *ctx, uint64_t addr, size_t len);

/* ---- print.c ---- */

struct soft_print {
	pthread_mutex_t lock;
	char *buf;
	size_t size;
	size_t head, used; /* the oldest byte, and the number of bytes from there on */
	size_t most;	   /* the largest size that the buffer may get */
	bool ever;	   /* something has been printed */
	bool lost;	   /* some output was lost because it was not fetched in time */
};

/* most: the largest size that the buffer may ever get; 0: no limit. */
bool soft_print_init(struct soft_print *p, uint64_t most);
void soft_print_fini(struct soft_print *p);
/* Fails once something has been printed. */
int soft_print_resize(struct soft_print *p, size_t size);
void soft_env_print(void *ctx, const char *text, size_t len);
void soft_env_complain(void *ctx, const char *text, size_t len);
/*
 * Queues a line for the stderr of the guest program. For example, why its kernels cannot run here,
 * although they may run on another GPU.
 */
void soft_tell(struct be *be, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/*
 * What PRINT_READ fetches: the first fault, and what the checks have found since the program
 * fetched last. Under the lock of be->print.
 */
#define SOFT_FINDINGS 64
struct soft_faults {
	struct qcu_fault first; /* error 0: none */
	bool unread;
	struct qcu_fault *found; /* NULL without checks */
	unsigned int count;
	uint32_t lost;
};

void soft_env_found(void *ctx, const struct ptx_finding *at);
/* Keeps where a kernel has failed, unless one has failed before. */
void soft_fault(struct be *be, int err, const struct ptx_finding *at);

/* ---- watchdog.c ---- */

/* A running kernel. The struct is on the stack of the thread that runs the kernel. */
struct soft_running {
	struct soft_running *next;
	const char *name;
	struct timespec deadline;
};

bool soft_watchdog_limit(unsigned int most, unsigned int *seconds);
bool soft_watchdog_start(struct be *be);
void soft_watchdog_stop(struct be *be);
void soft_watchdog_begin(struct be *be, struct soft_running *r, const char *name);
void soft_watchdog_end(struct be *be, struct soft_running *r);

/* ---- peer.c ---- */

/* On a reset: no device has access to this one any more, and this one has no access to others. */
void soft_peers_reset(struct be *be, unsigned int dev);
bool soft_peer_enabled(const struct soft_device *d, const struct soft_device *owner);
/* Callback of the PTX machine; ctx is a struct soft_device. */
struct ptx_range soft_env_range(void *ctx, uint64_t addr);

/* ---- limits.c ---- */

#define SOFT_LIMITS 7

struct soft_device_limits {
	_Atomic uint64_t value[SOFT_LIMITS]; /* indexed by cudaLimit */
	struct ptx_heap_quota heap;
};

/* Sets all limits to their initial values; also used by a reset. */
void soft_limits_default(struct soft_device *d);

/* ---- texture.c ---- */

struct soft_image;

/* The existing texture and surface objects, by number. Kernels look them up without a lock. */
struct soft_images {
	pthread_mutex_t lock;
	_Atomic(struct soft_image *) *slots;
	uint32_t next, count;		/* how many there are */
	uint32_t made;			/* counts objects, so that a number is used again late */
	const struct be_wanted *wanted; /* its address is the next number; NULL: any number */
	size_t wanted_count;
};

bool soft_images_init(struct soft_images *t);
void soft_images_fini(struct soft_images *t);
const struct ptx_image *soft_env_image(void *ctx, uint64_t number);

/* ---- the instance ---- */

struct soft_device {
	struct be *be;
	unsigned int index;
	struct soft_mem mem;
	struct soft_ranges seen; /* mapped memory that the device may use; the tag is the access */
	struct ptx_env env;
	struct soft_device_limits limits;
	_Atomic uint32_t peers; /* a bit for each device whose memory kernels here may use */
	pthread_mutex_t pool_lock;
	struct soft_allocation *allocations; /* allocations from pools */
	struct be_pool *pool;		     /* the default pool */
	unsigned int freeing;		     /* allocations whose free is queued in a stream */
	/* All streams that have work or are not destroyed yet; linked by next. */
	struct be_stream *streams;
	struct be_stream *legacy;
};

struct be {
	pthread_mutex_t lock;
	pthread_cond_t progress;  /* work is done, an error occurred, or the instance closes */
	uint64_t queued, granted; /* bytes of queued work, and how many are allowed */
	unsigned int calls;	  /* host functions and waits for values that are not done */
	bool (*charge_queue)(void *ctx, int64_t bytes);
	bool (*charge_module)(void *ctx, int64_t bytes);
	void (*busy)(void *ctx, unsigned int dev, enum be_busy kind, bool begins);
	bool movable;
	bool (*resident)(void *ctx, unsigned int dev, int64_t bytes);
	void *charge_ctx;
	uint64_t issued;       /* numbers all work in the order of submission */
	_Atomic int sticky;    /* the error that ended this instance, or 0; set once */
	int pending;	       /* an error of asynchronous work that is reported once */
	int cancel;	       /* 1: running kernels must stop */
	atomic_bool no_values; /* streams must not wait for numbers any more */
	bool closing;
	unsigned int workers;
	struct be_stream *ended; /* streams whose thread has ended and must be joined */
	struct be_event *events;
	struct be_module *modules;
	unsigned int branches; /* of graphs, beyond the first of each */
	struct be_cond *conds;
	uint64_t handles;		/* the last handle given to a conditional */
	const struct be_wanted *wanted; /* the next handle, and its value; NULL: any handle */
	size_t wanted_count;

	unsigned int timeout; /* seconds that a kernel may run; 0: no limit */
	bool watched;
	pthread_t watchdog;
	pthread_cond_t watch; /* `running` has changed, or the instance closes */
	struct soft_running *running;

	pthread_mutex_t host_lock;
	struct soft_ranges host;
	struct soft_virtual virt;
	struct soft_print print, complaints;
	struct soft_faults faults;
	struct soft_images images;

	unsigned int gpus, threads;
	unsigned int sm; /* compute capability, 10 * major + minor */
	bool verbose;
	bool check; /* QCU_SOFT_CHECK */
	struct soft_device dev[SOFT_GPUS_MAX];
	struct soft_mem store; /* of the device that is only for the store; size 0: there is none */
};

/* Is this an address that can be reserved (virtual.c), whether it is now or not? */
static inline bool soft_virtual_holds(struct be *be, uint64_t addr)
{
	/* Pairs with the store after the table is set up: who knows an address sees the base. */
	uint64_t size = atomic_load_explicit(&be->virt.size, memory_order_acquire);

	return size && addr - be->virt.base < size;
}

/* May a device use this mapped memory? */
static inline bool soft_virtual_valid(struct be *be, uint64_t addr, uint64_t len)
{
	struct soft_range r;
	unsigned int i;

	if (!soft_virtual_holds(be, addr))
		return false;
	for (i = 0; i < be->gpus; i++)
		if (soft_ranges_find(&be->dev[i].seen, addr, &r) && len <= r.hi - addr)
			return true;
	return false;
}

/*
 * print.c: prints a line on stderr, through complain(). That limits the rate, because a guest can
 * cause nearly all of these lines.
 */
void soft_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- stream.c ---- */

/* The moment when stream s has done its n-th piece of work. Holds a reference to the stream. */
struct soft_ticket {
	struct be_stream *s;
	uint64_t n;
};

struct soft_work {
	struct soft_work *next;
	uint64_t n;	/* its number in the stream */
	uint64_t order; /* its number in the instance */
	int (*run)(struct soft_work *w);
	void (*free)(struct soft_work *w); /* called with be->lock held */
	enum be_busy busy;		   /* what it keeps the device busy with */
	bool always;			   /* runs after an error, too */
	bool kept;			   /* it is kept in a graph */
	uint32_t bytes;			   /* bytes allocated in addition to the struct */
	uint32_t cost;		   /* bytes that it counts in the queue; 0: it is not queued */
	struct soft_ticket *after; /* work of other streams that must be done first */
	unsigned int after_count;
};

/* Work that is one block and holds nothing. */
static inline void soft_work_free(struct soft_work *w)
{
	free(w);
}

/*
 * True if work may use the memory. Kept work must ask when it runs, because the memory may have
 * been freed since then. So must work on mapped memory, which another thread may have unmapped just
 * before the work was queued. For other work this is always true.
 */
static inline bool soft_work_usable(struct be *be, const struct soft_work *w, uint64_t addr,
				    uint64_t len)
{
	return (!w->kept && !soft_virtual_holds(be, addr)) || soft_mem_usable(be, addr, len);
}

struct soft_stream_attrs {
	uint32_t sync_policy; /* 0: never set */
	uint32_t domain;
};

/* Keeps work that is put into a stream. be->lock is held. */
typedef int soft_keep_fn(struct be_stream *s, struct soft_work *w); /* takes ownership */

struct be_stream {
	struct be *be;
	struct soft_device *dev;
	struct be_stream *next;
	unsigned int refs;
	struct soft_stream_attrs attrs;
	bool blocking; /* it waits for the legacy stream, and the legacy stream for it */
	int priority;
	soft_keep_fn *keep;  /* keeps the work; NULL: work is done */
	uint64_t last, done; /* number of the last work submitted, and of the last work done */
	uint64_t oldest;     /* `order` of the oldest unfinished work; UINT64_MAX: idle */
	struct soft_work *head, **tail;
	pthread_cond_t wake;
	pthread_t thread;
	bool threaded, stop, linked;
};

enum soft_how {
	SOFT_QUEUE, /* always queue the work */
	SOFT_SMALL, /* so little work that the caller may do it if the stream is idle */
	SOFT_WAIT,  /* return when the work is done */
};

/*
 * Puts work into a stream, after everything that CUDA's rules put before it, and after `extra` if
 * that is not NULL. Takes ownership of the work, even on failure.
 */
int soft_submit(struct be_stream *s, struct soft_work *w, enum soft_how how,
		const struct soft_ticket *extra);
/* Runs the work, and tells what it keeps the device busy with. */
int soft_run_work(struct soft_device *dev, struct soft_work *w);
/*
 * Waits for room in the queue; call it before submitting work. If queued work takes too much
 * memory, the caller waits until some of it is done; CUDA's queues have a limited size, too. But if
 * a host function is queued, the result is cudaErrorMemoryAllocation: only the guest can end a host
 * function, and the command for that must get through. be->lock is held, and dropped during the
 * wait.
 */
int soft_queue_wait(struct be_stream *s);
/*
 * Like soft_submit, but the caller holds be->lock and has called soft_queue_wait. If the work is
 * done at once, the lock is dropped while it runs.
 */
int soft_submit_locked(struct be_stream *s, struct soft_work *w, enum soft_how how,
		       const struct soft_ticket *extra, uint64_t *ticket);
bool soft_ticket_done(const struct soft_ticket *t);
void soft_stream_get(struct be_stream *s);
void soft_stream_put(struct be_stream *s); /* be->lock is held, or all streams have ended */
/* Waits for all work submitted so far to a device; NULL: to all devices. */
void soft_wait(struct be *be, const struct soft_device *d);
/*
 * Returns the sticky error; if there is none, returns the pending one and clears it. be->lock is
 * held here and in soft_fail.
 */
int soft_take_error(struct be *be);
void soft_fail(struct be *be, int err);

/*
 * Work that is queued is still done; the stream is released after the last of it. be->lock is held.
 */
void soft_stream_stop(struct be_stream *s);
/* A stream that never has work, only numbers: for tickets of what is no work of its own. */
struct be_stream *soft_stream_counter(struct be *be, unsigned int dev);

bool soft_streams_init(struct soft_device *d);
void soft_streams_stop(struct be *be); /* drops work that has not begun, and ends all threads */

/* soft/libs/libs.c */

/* ---- cell.c: an event that several processes share ---- */

struct soft_cell;
struct soft_cell *soft_cell_new(void);
struct soft_cell *soft_cell_open(const struct soft_file *f);
/* False: another process made the cell. */
bool soft_cell_tell(const struct soft_cell *c, struct soft_file *f);
struct soft_cell *soft_cell_get(struct soft_cell *c);
void soft_cell_put(struct soft_cell *c);
/*
 * A record begins, and ends. soft_cell_last returns the number of the last record that has begun,
 * and soft_cell_done whether a record has ended.
 */
uint64_t soft_cell_begin(struct soft_cell *c);
void soft_cell_end(struct soft_cell *c, uint64_t n);
uint64_t soft_cell_last(const struct soft_cell *c);
bool soft_cell_done(const struct soft_cell *c, uint64_t n);
/* Also returns when *cancel is set. */
void soft_cell_wait(const struct soft_cell *c, uint64_t n, const int *cancel);

/* ---- event.c ---- */

void soft_events_fini(struct be *be);

/*
 * What a launch of a graph has to do with an event: it will record it, or it waits for it. be->lock
 * is held in all of these, and dropped in a wait.
 */
struct soft_mark;
struct soft_promise {
	struct soft_mark *mark; /* NULL: none */
	struct soft_cell *cell; /* NULL: the event belongs to this process only */
	uint64_t n;
	bool records, kept;
};

/* The event is from now on the next number of the counter, until it is recorded again. */
int soft_promise_record(struct be_event *e, struct be_stream *counter, struct soft_promise *p);
/* The event as it is now. */
int soft_promise_look(struct be_event *e, struct soft_promise *p);
/* The graph has reached the record. */
void soft_promise_keep(struct be *be, struct soft_promise *p);
void soft_promise_wait(struct be *be, struct soft_promise *p);
void soft_promise_end(struct be *be, struct soft_promise *p);

/* ---- cond.c ---- */

/* A handle, or an outermost graph, which has no value and no node. */
struct be_cond {
	struct be_cond *next;
	struct be *be;
	unsigned int refs;     /* of the owner, of graphs, and of handles in the same graph */
	struct be_cond *graph; /* the outermost graph; of a handle it is held */
	uint64_t handle;       /* 0: an outermost graph */
	_Atomic uint32_t value;
	uint32_t first;
	bool has_first;
	uint32_t type, size;  /* of the node; size 0: there is none yet */
	unsigned int running; /* launches of an outermost graph */
};

/* A launch of the outermost graph begins or ends. be->lock is held, as for soft_cond_put(). */
void soft_cond_begin(struct be_cond *graph);
void soft_cond_end(struct be_cond *graph);
void soft_cond_put(struct be_cond *c); /* may be NULL */
/* Callback of the PTX machine. False: there is no such handle, or its graph does not run. */
bool soft_env_attribute(void *ctx, uint32_t attr, int32_t *value);
bool soft_env_condition(void *ctx, uint64_t handle, uint32_t value);

/* ---- array.c ---- */

struct soft_level {
	uint64_t addr;
	uint32_t size[3]; /* elements, rows, slices or layers */
	uint64_t pitch, slice;
};

struct be_array {
	struct be_array_desc desc;
	unsigned int dev;
	uint32_t elem; /* bytes */
	uint32_t levels;
	uint64_t addr, bytes;
	bool placed; /* in memory that stays when the array goes */
	struct soft_level level[QCU_LEVELS_MAX];
};

/* ---- module.c, launch.c ---- */

struct soft_kernel_dev {
	const struct ptx_kernel *ptx; /* NULL: not looked up yet */
	int max_dynamic;	      /* -1: the default */
	int carveout;
};

struct be_kernel {
	struct be_kernel *next;
	struct be_module *module;
	char *name;
	struct soft_kernel_dev dev[SOFT_GPUS_MAX];
};

/* Removes the code and variables of all modules from one device. The next use loads them again. */
void soft_modules_reset(struct be *be, unsigned int dev);
void soft_modules_fini(struct be *be);
/* Are variables the only memory of their kind? Kernels may have some that malloc() gave them. */
bool soft_modules_only(struct be *be, unsigned int dev);
/* Is a module on no device, as after a reset? */
bool soft_modules_unplaced(struct be *be);
/* Returns the kernel on a device. Loads the module there if needed. */
int soft_kernel_get(struct be_kernel *k, unsigned int dev, const struct ptx_kernel **ptx,
		    const struct ptx_kernel_info **info);
/* Reports a status of the PTX machine. Returns it as a value of enum qcu_error. */
int soft_ptx_error(struct be *be, enum ptx_status st, const struct ptx_diag *diag);
/* The same for who compiles something; jit may be NULL. */
int soft_jit_status(struct be *be, struct be_jit *jit, enum ptx_status st,
		    const struct ptx_diag *diag);
/*
 * Why an image is of no use: in the program's own text of errors if it wants one, else on its
 * stderr. line 0: not known. what may be empty.
 */
void soft_jit_tell(struct be *be, struct be_jit *jit, unsigned int line, const char *what,
		   const char *why);

/* ---- props.c ---- */

struct soft_limits {
	unsigned int sm;
	unsigned int threads_per_sm, blocks_per_sm;
	unsigned int shared_per_sm, shared_per_block, shared_optin, shared_reserved;
	unsigned int regs;
};

#define SOFT_SM_DEFAULT 90
/* NULL: this capability is not supported. */
const struct soft_limits *soft_limits(unsigned int sm);

#endif

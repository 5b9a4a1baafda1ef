// SPDX-License-Identifier: GPL-2.0-or-later
/* The transparent backend for the tests of the device; test_device_fake.h describes it. */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/unit/device/mirror/test_device_fake.h"

#define RANGES 4096

struct range {
	uintptr_t addr;
	size_t len;
};

struct pending {
	void *dst;
	const void *src;
	size_t len;
	struct pending *next;
};

struct be {
	pthread_mutex_t lock;
	struct range memory[RANGES], registered[RANGES];
	struct be_stream *legacy[8];
	uint8_t var[64];
};

struct be_stream {
	struct pending *first, **last;
	struct course *course;
};
/* How far a stream has come. Lives as long as an event refers to it. */
struct course {
	_Atomic uint64_t queued, done;
	unsigned int refs;
};
struct be_event {
	uint64_t recorded;
	struct be_stream *s; /* may be freed once `upto` is reached */
	struct course *course;
	uint64_t upto;
};
struct be_module {
	size_t len;
};
struct be_kernel {
	int unused;
};

struct fake fake;
static _Thread_local unsigned int current_device;
static struct be_kernel the_kernel;

void fake_reset(void)
{
	fake = (struct fake){
		.devices = 2,
		.text = "",
		.complaint = "",
		.copies_left = INT_MAX,
		.records_left = INT_MAX,
		.registers_left = INT_MAX,
		.other_status = QCU_ERR_NotSupported,
	};
}

/* Returns true if this call must fail. */
static int injected(_Atomic int *left)
{
	if (fake.lost)
		return fake.error;
	if ((*left)--)
		return 0;
	*left = INT_MAX;
	fake.lost = fake.sticky;
	return fake.error;
}

static void course_put(struct course *c)
{
	if (c && !--c->refs)
		free(c);
}

static bool within(const struct range *r, uintptr_t addr, size_t len)
{
	return r->len && addr >= r->addr && addr - r->addr < r->len &&
	       len <= r->len - (addr - r->addr);
}

static bool find(struct be *be, const struct range *table, uintptr_t addr, size_t len)
{
	bool found = false;
	unsigned int i;

	pthread_mutex_lock(&be->lock);
	for (i = 0; i < RANGES && !found; i++)
		found = within(&table[i], addr, len);
	pthread_mutex_unlock(&be->lock);
	return found;
}

static bool add(struct be *be, struct range *table, uintptr_t addr, size_t len)
{
	bool added = false;
	unsigned int i;

	pthread_mutex_lock(&be->lock);
	for (i = 0; i < RANGES && !added; i++) {
		if (!table[i].len) {
			table[i] = (struct range){.addr = addr, .len = len};
			added = true;
		}
	}
	pthread_mutex_unlock(&be->lock);
	return added;
}

static size_t drop(struct be *be, struct range *table, uintptr_t addr)
{
	size_t len = 0;
	unsigned int i;

	pthread_mutex_lock(&be->lock);
	for (i = 0; i < RANGES && !len; i++) {
		if (table[i].len && table[i].addr == addr) {
			len = table[i].len;
			table[i].len = 0;
		}
	}
	pthread_mutex_unlock(&be->lock);
	return len;
}

static int f_stream_create(struct be *be, unsigned int dev, uint32_t flags, int priority,
			   struct be_stream **s)
{
	(void)be;
	(void)dev;
	(void)priority;
	if (flags & ~1u)
		return QCU_ERR_InvalidValue;
	*s = calloc(1, sizeof(**s));
	(*s)->last = &(*s)->first;
	(*s)->course = calloc(1, sizeof(*(*s)->course));
	(*s)->course->refs = 1;
	fake.objects++;
	return 0;
}

/* Does queued work of the stream until the counter has reached `upto`. */
static void advance(struct be *be, struct be_stream *s, uint64_t upto)
{
	struct pending *p;

	pthread_mutex_lock(&be->lock);
	while ((p = s->first) && s->course->done < upto) {
		s->first = p->next;
		if (!s->first)
			s->last = &s->first;
		if (p->len)
			memcpy(p->dst, p->src, p->len);
		s->course->done++;
		free(p);
	}
	pthread_mutex_unlock(&be->lock);
}

static int f_stream_sync(struct be *be, struct be_stream *s)
{
	advance(be, s, UINT64_MAX);
	return fake.lost ? fake.error : 0;
}

static int f_stream_destroy(struct be *be, struct be_stream *s)
{
	advance(be, s, UINT64_MAX);
	course_put(s->course);
	free(s);
	fake.objects--;
	return 0;
}

static int f_open(struct be **out, const struct be_options *opt)
{
	struct be *be = calloc(1, sizeof(*be));
	unsigned int i;

	(void)opt;
	nanosleep(&(struct timespec){.tv_sec = fake.open_ms / 1000,
				     .tv_nsec = fake.open_ms % 1000 * 1000000L},
		  NULL);
	if (fake.open_error) {
		free(be);
		return fake.open_error;
	}
	pthread_mutex_init(&be->lock, NULL);
	for (i = 0; i < 8; i++)
		f_stream_create(be, i, 0, 0, &be->legacy[i]);
	fake.objects -= 8;
	*out = be;
	return 0;
}

static void f_close(struct be *be)
{
	unsigned int i;

	fake.objects += 8;
	for (i = 0; i < 8; i++)
		f_stream_destroy(be, be->legacy[i]);
	pthread_mutex_destroy(&be->lock);
	free(be);
}

static int f_device_count(struct be *be, unsigned int *count)
{
	(void)be;
	*count = fake.devices;
	return 0;
}

static int f_versions(struct be *be, uint32_t *driver, uint32_t *runtime)
{
	(void)be;
	*driver = 13000;
	*runtime = 13000;
	return 0;
}

static int f_device_desc(struct be *be, unsigned int dev, struct qcu_device_desc *desc)
{
	(void)be;
	strcpy(desc->name, "fake");
	desc->total_mem = 1 << 20;
	desc->attr[0] = (int)dev;
	return 0;
}

static void wait_for_gpu(void)
{
	struct timespec ms = {.tv_nsec = 1000000};

	fake.waiting++;
	while (fake.busy)
		nanosleep(&ms, NULL);
	fake.waiting--;
}

static int f_device_sync(struct be *be, unsigned int dev)
{
	if (fake.crash)
		raise(SIGKILL);
	wait_for_gpu();
	return f_stream_sync(be, be->legacy[dev]);
}

static int f_device_reset(struct be *be, unsigned int dev)
{
	(void)be;
	(void)dev;
	return 0;
}

static int f_mem_info(struct be *be, unsigned int dev, uint64_t *free_bytes, uint64_t *total)
{
	(void)be;
	*free_bytes = 1000 + dev;
	*total = 2000;
	return 0;
}

static int f_mem_alloc(struct be *be, unsigned int dev, uint64_t size, uint64_t *addr)
{
	void *p = size > 1ull << 30 ? NULL : calloc(1, size);

	(void)dev;
	if (!p)
		return QCU_ERR_MemoryAllocation;
	if (!add(be, be->memory, (uintptr_t)p, size))
		abort();
	*addr = (uintptr_t)p;
	fake.allocations++;
	return 0;
}

static int f_mem_free(struct be *be, uint64_t addr)
{
	if (!drop(be, be->memory, addr))
		abort(); /* the mirror must not call this */
	free((void *)addr);
	fake.allocations--;
	return 0;
}

static bool f_mem_valid(struct be *be, uint64_t addr, uint64_t len)
{
	return find(be, be->memory, addr, len);
}

static int f_host_register(struct be *be, void *addr, size_t len)
{
	int err = injected(&fake.registers_left);

	if (err)
		return err;
	if (!add(be, be->registered, (uintptr_t)addr, len))
		abort();
	fake.registrations++;
	fake.registered_ever++;
	fake.registered_bytes += len;
	fake.registered_on |= 1u << current_device;
	return 0;
}

static int f_host_unregister(struct be *be, void *addr)
{
	size_t len;

	wait_for_gpu();
	len = drop(be, be->registered, (uintptr_t)addr);
	if (!len)
		abort();
	fake.registrations--;
	fake.registered_bytes -= len;
	return 0;
}

static int copy(struct be *be, struct be_stream *s, void *dst, const void *src, size_t len,
		bool later)
{
	struct pending *p;
	int err = injected(&fake.copies_left);

	if (err)
		return err;
	if (!later) {
		advance(be, s, UINT64_MAX);
		memcpy(dst, src, len);
		return 0;
	}
	p = malloc(sizeof(*p));
	*p = (struct pending){.dst = dst, .src = src, .len = len};
	pthread_mutex_lock(&be->lock);
	*s->last = p;
	s->last = &p->next;
	s->course->queued++;
	if (s->course->queued - s->course->done > fake.waiting_most)
		fake.waiting_most = s->course->queued - s->course->done;
	pthread_mutex_unlock(&be->lock);
	return 0;
}

static int f_copy_h2d(struct be *be, uint64_t dst, const void *src, size_t len, struct be_stream *s)
{
	return copy(be, s, (void *)dst, src, len, find(be, be->registered, (uintptr_t)src, len));
}

static int f_copy_d2h(struct be *be, void *dst, uint64_t src, size_t len, struct be_stream *s)
{
	return copy(be, s, dst, (void *)src, len, true);
}

static int f_copy_d2h_wait(struct be *be, void *dst, uint64_t src, size_t len, struct be_stream *s)
{
	int err = f_copy_d2h(be, dst, src, len, s);

	fake.at_once++;
	return err ? err : f_stream_sync(be, s);
}

static int f_copy_pieces(struct be *be, bool h2d, uint64_t device, const struct iovec *host,
			 size_t count, struct be_stream *s)
{
	int err = 0;
	size_t i;

	fake.batches++;
	for (i = 0; i < count && !err; device += host[i++].iov_len)
		err = h2d ? f_copy_h2d(be, device, host[i].iov_base, host[i].iov_len, s)
			  : f_copy_d2h(be, host[i].iov_base, device, host[i].iov_len, s);
	return err;
}

static int f_copy_d2d(struct be *be, uint64_t dst, uint64_t src, size_t len, unsigned int host,
		      struct be_stream *s)
{
	(void)host;
	return copy(be, s, (void *)dst, (void *)src, len, true);
}

static int f_mem_set(struct be *be, const struct be_memset *m, struct be_stream *s)
{
	uint64_t x, y;

	advance(be, s, UINT64_MAX);
	for (y = 0; y < m->height; y++)
		for (x = 0; x < m->width; x += m->elem)
			memcpy((uint8_t *)m->dst + y * m->pitch + x, &m->value, m->elem);
	return 0;
}

static struct be_stream *f_stream_legacy(struct be *be, unsigned int dev)
{
	return be->legacy[dev];
}

static int f_stream_query(struct be *be, struct be_stream *s)
{
	bool idle;

	pthread_mutex_lock(&be->lock);
	idle = !s->first;
	pthread_mutex_unlock(&be->lock);
	return idle ? QCU_ERR_Success : QCU_ERR_NotReady;
}

static int f_stream_wait_event(struct be *be, struct be_stream *s, struct be_event *e,
			       uint32_t flags)
{
	(void)be;
	(void)s;
	(void)e;
	return flags ? QCU_ERR_InvalidValue : QCU_ERR_Success;
}

static int f_event_create(struct be *be, unsigned int dev, uint32_t flags, struct be_event **e)
{
	(void)be;
	(void)flags;
	current_device = dev;
	*e = calloc(1, sizeof(**e));
	fake.objects++;
	return 0;
}

static int f_event_destroy(struct be *be, struct be_event *e)
{
	(void)be;
	course_put(e->course);
	memset(e, 0xee, sizeof(*e));
	free(e);
	fake.objects--;
	return 0;
}

static int f_event_record(struct be *be, struct be_event *e, struct be_stream *s, uint32_t flags)
{
	int err = injected(&fake.records_left);

	(void)flags;
	if (err)
		return err;
	pthread_mutex_lock(&be->lock);
	course_put(e->course);
	e->s = s;
	e->course = s->course;
	e->course->refs++;
	e->upto = s->course->queued;
	e->recorded++;
	pthread_mutex_unlock(&be->lock);
	return 0;
}

static int f_event_sync(struct be *be, struct be_event *e)
{
	struct timespec ms = {.tv_nsec = 1000000};

	fake.held++;
	while (fake.hold)
		nanosleep(&ms, NULL);
	fake.held--;
	if (e->course && e->course->done < e->upto)
		advance(be, e->s, e->upto);
	if (fake.lost)
		return fake.error;
	/* Reads the event after the wait: the event must still exist. */
	return e->recorded ? QCU_ERR_Success : QCU_ERR_InvalidResourceHandle;
}

static int f_event_query(struct be *be, struct be_event *e)
{
	(void)be;
	if (fake.lost)
		return fake.error;
	return e->recorded && e->course->done >= e->upto ? QCU_ERR_Success : QCU_ERR_NotReady;
}

static int f_event_elapsed(struct be *be, struct be_event *start, struct be_event *end, float *ms)
{
	(void)be;
	*ms = 1.5f;
	return start->recorded && end->recorded ? QCU_ERR_Success : QCU_ERR_InvalidResourceHandle;
}

static int f_module_load(struct be *be, const void *image, size_t len, struct be_jit *jit,
			 struct be_module **m)
{
	(void)be;
	(void)jit;
	fake.images++;
	if (len < sizeof(FAKE_IMAGE) || memcmp(image, FAKE_IMAGE, sizeof(FAKE_IMAGE) - 1))
		return QCU_ERR_InvalidKernelImage;
	*m = calloc(1, sizeof(**m));
	(*m)->len = len;
	fake.objects++;
	return 0;
}

static int f_module_unload(struct be *be, struct be_module *m)
{
	(void)be;
	free(m);
	fake.objects--;
	return 0;
}

static int f_kernel_find(struct be *be, struct be_module *m, const char *name, struct be_kernel **k)
{
	(void)be;
	if (!m->len || strcmp(name, FAKE_KERNEL))
		return QCU_ERR_SymbolNotFound;
	*k = &the_kernel;
	return 0;
}

static int f_kernel_params(struct be *be, struct be_kernel *k, struct qcu_param *params,
			   uint32_t max, uint32_t *count)
{
	static const struct qcu_param list[] = {{0, 4}, {8, 8}, {16, 2}};

	(void)be;
	(void)k;
	*count = 3;
	memcpy(params, list, (max < 3 ? max : 3) * sizeof(list[0]));
	return 0;
}

static int f_kernel_desc(struct be *be, unsigned int dev, struct be_kernel *k,
			 struct qcu_kernel_desc *desc)
{
	(void)be;
	(void)dev;
	(void)k;
	desc->max_threads = 1024;
	return 0;
}

static int f_kernel_set(struct be *be, unsigned int dev, struct be_kernel *k, uint32_t attr,
			int value)
{
	(void)be;
	(void)dev;
	(void)k;
	fake.attr = attr;
	fake.value = value;
	return 0;
}

static int f_var_find(struct be *be, unsigned int dev, struct be_module *m, const char *name,
		      uint64_t *addr, uint64_t *size)
{
	(void)dev;
	(void)m;
	if (strcmp(name, FAKE_VAR))
		return QCU_ERR_InvalidSymbol;
	*addr = (uintptr_t)be->var;
	*size = sizeof(be->var);
	return 0;
}

static int f_managed_find(struct be *be, unsigned int dev, struct be_module *m, const char *name,
			  uint64_t *addr, uint64_t *size)
{
	(void)be;
	(void)dev;
	(void)m;
	(void)name;
	(void)addr;
	(void)size;
	return QCU_ERR_SymbolNotFound;
}

static int f_module_names(struct be *be, struct be_module *m, uint32_t what, char *names,
			  size_t room, size_t *bytes, uint32_t *count)
{
	(void)be;
	(void)m;
	if (what != QCU_NAMES_KERNELS)
		return QCU_ERR_NotSupported;
	*count = 1;
	*bytes = sizeof(FAKE_KERNEL);
	if (room >= *bytes)
		memcpy(names, FAKE_KERNEL, *bytes);
	return 0;
}

static int f_var_bind(struct be *be, struct be_module *m, const char *name, uint64_t addr,
		      uint64_t size)
{
	(void)be;
	(void)m;
	(void)name;
	(void)addr;
	(void)size;
	abort(); /* no test has such memory */
}

static int f_launch(struct be *be, struct be_kernel *k, const struct be_launch *l,
		    struct be_stream *s)
{
	(void)k;
	fake.launches++;
	if (fake.endless)
		copy(be, s, NULL, NULL, 0, true);
	fake.launch = *l;
	memcpy(fake.params, l->params, l->param_bytes);
	return 0;
}

static int read_text(const char **from, void *buf, size_t max, size_t *got)
{
	size_t len = strlen(*from);

	*got = len;
	if (!buf)
		return 0;
	*got = len < max ? len : max;
	memcpy(buf, *from, *got);
	*from += *got;
	return 0;
}

static int f_print_read(struct be *be, void *buf, size_t max, size_t *got)
{
	(void)be;
	return read_text(&fake.text, buf, max, got);
}

static int f_assert_read(struct be *be, void *buf, size_t max, size_t *got)
{
	(void)be;
	return read_text(&fake.complaint, buf, max, got);
}

static int f_fault_read(struct be *be, void *buf, size_t max, size_t *got)
{
	(void)be;
	(void)buf;
	(void)max;
	*got = 0;
	return 0;
}

static int f_host_func(struct be *be, void (*fn)(void *arg, int error), void *arg, bool always,
		       struct be_stream *s)
{
	(void)be;
	(void)s;
	if (fake.lost)
		return fake.error;
	fake.host_fn = fn;
	fake.host_arg = arg;
	fake.host_always = always;
	return 0;
}

static bool f_probe(void)
{
	return true;
}

/* What the fake has no part of. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define BE_OP(name, ...)                  \
	static int no_##name(__VA_ARGS__) \
	{                                 \
		fake.others++;            \
		return fake.other_status; \
	}
#define BE_OP_OF(...)
#include "qcu-device/backend/ops.h"
#pragma GCC diagnostic pop

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
const struct be_ops fake_ops = {
#define BE_OP(name, ...) .name = no_##name,
#define BE_OP_OF(...)
#include "qcu-device/backend/ops.h"
	.abi = BE_ABI,
	.name = "fake",
	.probe = f_probe,
	.open = f_open,
	.close = f_close,
	.device_count = f_device_count,
	.versions = f_versions,
	.device_desc = f_device_desc,
	.device_sync = f_device_sync,
	.device_reset = f_device_reset,
	.mem_info = f_mem_info,
	.mem_alloc = f_mem_alloc,
	.mem_free = f_mem_free,
	.mem_valid = f_mem_valid,
	.host_register = f_host_register,
	.host_unregister = f_host_unregister,
	.copy_h2d = f_copy_h2d,
	.copy_d2h = f_copy_d2h,
	.copy_d2h_wait = f_copy_d2h_wait,
	.copy_pieces = f_copy_pieces,
	.copy_d2d = f_copy_d2d,
	.mem_set = f_mem_set,
	.stream_create = f_stream_create,
	.stream_legacy = f_stream_legacy,
	.stream_destroy = f_stream_destroy,
	.stream_sync = f_stream_sync,
	.stream_query = f_stream_query,
	.stream_wait_event = f_stream_wait_event,
	.host_func = f_host_func,
	.event_create = f_event_create,
	.event_destroy = f_event_destroy,
	.event_record = f_event_record,
	.event_sync = f_event_sync,
	.event_query = f_event_query,
	.event_elapsed = f_event_elapsed,
	.module_load = f_module_load,
	.module_unload = f_module_unload,
	.kernel_find = f_kernel_find,
	.kernel_params = f_kernel_params,
	.kernel_desc = f_kernel_desc,
	.kernel_set = f_kernel_set,
	.var_find = f_var_find,
	.managed_find = f_managed_find,
	.module_names = f_module_names,
	.var_bind = f_var_bind,
	.launch = f_launch,
	.print_read = f_print_read,
	.assert_read = f_assert_read,
	.fault_read = f_fault_read,
};
#pragma GCC diagnostic pop

/* For tests that link the soft backend. */
extern const struct be_ops be_soft __attribute__((alias("fake_ops")));

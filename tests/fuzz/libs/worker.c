// SPDX-License-Identifier: GPL-2.0-or-later
/* Makes random calls through a mirror. Each depends on the seed and its number alone. */
#define _GNU_SOURCE /* RTLD_* */
#include <dlfcn.h>
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "include/qculib_cudnn.h"
#include "qcu-device/libs/libs.h"
#include "tests/fuzz/libs/fence.h"
#include "tests/fuzz/libs/guard.h"
#include "tests/fuzz/libs/worker.h"
#include "tests/unit/device/mirror/test_device_fake.h"

#define DEVICE_BYTES (64u << 20)
#define DECOY_BYTES  (1u << 20)
#define FIRST	     QCU_ID_FIRST
#define BACKENDS_AT  1000u /* numbers of cuDNN's backend descriptors */
#define LARGE	     (3ull << 30)

static const struct fuzz_task *task;
static const struct be_ops *base; /* the backend's own functions */
static struct be_ops ops;
static struct mirror *mirror;
static uint64_t words[FUZZ_WORDS + 64 + FUZZ_OUTS / 8];

/* ---- the libraries' functions by address ---- */

#define FOUND 16384u

static struct {
	void *fn;
	uint16_t library, function;
} found[FOUND];
static void *opened[FUZZ_LIBRARIES];

static void *open_library(struct be *be, const char *soname, char *why, size_t size)
{
	unsigned int i;
	void *l;

	if (task->ops) {
		l = base->lib_open(be, soname, why, size);
	} else {
		l = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
		if (!l)
			snprintf(why, size, "%s", dlerror());
	}
	for (i = 0; i < fuzz_library_count; i++)
		if (!strcmp(fuzz_libraries[i]->lib->soname, soname))
			opened[i] = l;
	return l;
}

static unsigned int slot_of(const void *fn)
{
	unsigned int at = (unsigned int)((uintptr_t)fn >> 4) % FOUND;

	while (found[at].fn && found[at].fn != fn)
		at = (at + 1) % FOUND;
	return at;
}

static void *symbol(struct be *be, void *library, const char *name)
{
	void *fn = task->ops ? base->lib_symbol(be, library, name) : dlsym(library, name);
	unsigned int l, i, at;

	for (l = 0; fn && l < fuzz_library_count; l++) {
		if (opened[l] != library)
			continue;
		for (i = 0; i < fuzz_libraries[l]->lib->count; i++) {
			if (strcmp(fuzz_libraries[l]->lib->functions[i].name, name) != 0)
				continue;
			at = slot_of(fn);
			found[at].fn = fn;
			found[at].library = (uint16_t)l;
			found[at].function = (uint16_t)i;
		}
	}
	return fn;
}

/* Without a GPU a stream is no more than a null pointer. */
static int native(struct be *be, struct be_stream *s, void **stream)
{
	(void)be;
	(void)s;
	*stream = NULL;
	return 0;
}

/* ---- in the linker's way ---- */

bool __real_lib_ready(struct lib_call *c);
bool __wrap_lib_ready(struct lib_call *c);
bool __wrap_lib_ready(struct lib_call *c)
{
	unsigned int at;

	if (!__real_lib_ready(c))
		return false;
	at = slot_of(c->fn);
	if (c->fn && found[at].fn) {
		fuzz_shared->inner_library = found[at].library;
		fuzz_shared->inner_function = found[at].function;
		fuzz_shared->counts[found[at].library][found[at].function].called++;
	}
	return true;
}

int __real_mir_do_lib_ask(struct call *c);
int __wrap_mir_do_lib_ask(struct call *c);
int __real_mir_do_lib_call(struct call *c);
int __wrap_mir_do_lib_call(struct call *c);

static int make(struct call *c, int (*call)(struct call *c))
{
	static _Thread_local bool prepared;
	int rc;

	if (!prepared)
		fuzz_catch_thread();
	prepared = true;
	fuzz_catch_call(true);
	fuzz_fence(task->fence);
	rc = call(c);
	fuzz_fence(false);
	fuzz_catch_call(false);
	if (!fuzz_guard_end())
		fuzz_catch_now(FOUND_FRONT);
	return rc;
}

int __wrap_mir_do_lib_ask(struct call *c)
{
	return make(c, __real_mir_do_lib_ask);
}

int __wrap_mir_do_lib_call(struct call *c)
{
	return make(c, __real_mir_do_lib_call);
}

/* ---- commands ---- */

struct question {
	struct mir_request req;
	sem_t answered;
};

static void answered(struct mir_request *req)
{
	sem_post(&((struct question *)req)->answered);
}

static int submit(struct question *q, struct qCUcmd *cmd)
{
	sem_init(&q->answered, 0, 0);
	q->req.cmd = *cmd;
	q->req.done = answered;
	if (!mir_submit(mirror, &q->req))
		fuzz_catch_now(FOUND_END); /* no call may break a rule of the wire */
	while (sem_wait(&q->answered) && errno == EINTR)
		;
	*cmd = q->req.cmd;
	return cmd->status;
}

static struct qCUcmd record(uint16_t op)
{
	struct qCUcmd cmd;

	memset(&cmd, 0, sizeof(cmd));
	cmd.op = op;
	cmd.tid = 1;
	return cmd;
}

/* Sends words[1..used] as a message with room for `outs` bytes. */
static int ask(uint16_t library, uint16_t function, unsigned int used, uint32_t outs, int *status)
{
	struct qcu_lib_head head = {.args = 8 * (used - 1), .outs = outs};
	struct qcu_lib_answer answer = {0};
	struct qcu_seg seg = {(uintptr_t)words, 8 * used + sizeof(answer) + outs};
	struct question q = {.req = {.segs = &seg, .seg_count = 1}};
	struct qCUcmd cmd = record(QCU_OP_LIB_ASK);
	int rc;

	memcpy(words, &head, sizeof(head));
	memset(words + used, 0, sizeof(answer) + outs);
	cmd.flags = QCU_F_SEGS;
	cmd.lib_ask.buf.addr = 1;
	cmd.lib_ask.buf.len = seg.len;
	cmd.lib_ask.library = library;
	cmd.lib_ask.function = function;
	rc = submit(&q, &cmd);
	memcpy(&answer, words + used, sizeof(answer));
	*status = answer.status;
	return rc;
}

/* The same, posted, for what writes nothing. */
static int post(uint16_t library, uint16_t function, unsigned int used)
{
	struct qcu_lib_head head = {.args = 8 * (used - 1)};
	struct question q = {.req = {.msg = words}};
	struct qCUcmd cmd = record(QCU_OP_LIB_CALL);

	memcpy(words, &head, sizeof(head));
	cmd.flags = QCU_F_MSG;
	cmd.lib_call.buf.len = 8 * used;
	cmd.lib_call.library = library;
	cmd.lib_call.function = function;
	return submit(&q, &cmd);
}

/* ---- what there is ---- */

static int create(unsigned int library, uint32_t kind, unsigned int number, uint64_t with)
{
	int status, rc;

	words[1] = number;
	words[2] = kind;
	words[3] = with;
	rc = ask(fuzz_libraries[library]->number, QCU_LIB_CREATE, 4, 0, &status);
	return rc ? rc : status;
}

static void make_objects(void)
{
	/* Which numbers a generator has: three kinds. */
	static const uint64_t with[FUZZ_OBJECTS] = {100, 161, 201};
	unsigned int l, n, number = FIRST;
	uint32_t kind;

	for (l = 0; l < fuzz_library_count; l++) {
		for (kind = 0; kind < QCU_LIB_KINDS; kind++) {
			if (!fuzz_libraries[l]->lib->kinds[kind].numbered)
				continue;
			for (n = 0; n < FUZZ_OBJECTS; n++, number++) {
				if (create(l, kind, number, with[n]))
					break;
				fuzz_world.object[kind][n] = (uint16_t)number;
				fuzz_shared->has_handle[kind] = true;
				/* It takes the place of one. */
				if (kind == QCU_LIB_CURAND_HOST)
					fuzz_shared->has_handle[QCU_LIB_CURAND_GENERATOR] = true;
			}
		}
	}
}

static uint64_t allocate(uint64_t bytes)
{
	struct question q = {0};
	struct qCUcmd cmd = record(QCU_OP_MALLOC);

	cmd.malloc.size = bytes;
	return submit(&q, &cmd) ? 0 : cmd.malloc.ptr;
}

static void copy(uint64_t to, void *from, uint64_t len)
{
	struct qcu_seg seg = {(uintptr_t)from, len};
	struct question q = {.req = {.segs = &seg, .seg_count = 1}};
	struct qCUcmd cmd = record(QCU_OP_COPY_H2D);

	cmd.flags = QCU_F_SEGS;
	cmd.copy_h2d.buf.addr = 1;
	cmd.copy_h2d.buf.len = len;
	cmd.copy_h2d.dst = to;
	cmd.copy_h2d.flags = QCU_COPY_SYNC;
	submit(&q, &cmd);
}

/*
 * Memory of the GPU, with what the addresses in it point to. Without a GPU nothing of a library may
 * use it.
 */
static void make_memory(void)
{
	const uint64_t table = 2u << 20;
	uint64_t *entries = calloc(1, table), i;

	fuzz_world.bytes = DEVICE_BYTES;
	fuzz_world.zeros = allocate(DEVICE_BYTES);
	fuzz_world.pointers = allocate(table);
	fuzz_world.decoy_bytes = DECOY_BYTES;
	fuzz_world.decoy =
		(uintptr_t)mmap(NULL, DECOY_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!entries || !fuzz_world.zeros || !fuzz_world.pointers)
		fuzz_catch_now(FOUND_END);
	if (task->ops) {
		for (i = 0; i < DEVICE_BYTES; i += table)
			copy(fuzz_world.zeros + i, entries, table);
		for (i = 0; i < table / 8; i++)
			entries[i] = fuzz_world.zeros + i % 16 * (1u << 20);
		copy(fuzz_world.pointers, entries, table);
	} else {
		fuzz_world.zeros = (fuzz_world.zeros + 4095) & ~4095ull;
		fuzz_world.bytes -= 8192;
		if (mprotect((void *)fuzz_world.zeros, fuzz_world.bytes, PROT_NONE))
			abort();
		fuzz_world.pointers = fuzz_world.zeros + (4u << 20);
	}
	free(entries);
}

/* Has a function shown enough of what is wrong with it? Null pointers are left out first. */
static unsigned int count_found(const struct fuzz_library *l, unsigned int function, bool null)
{
	const struct fuzz_counts *c;
	unsigned int i, sum = 0;

	for (i = 0; fuzz_libraries[i] != l; i++)
		;
	c = &fuzz_shared->counts[i][function];
	for (i = 0; i < FOUND_COUNT; i++)
		sum += null == (i == FOUND_ZERO) ? c->found[i] : 0;
	return sum + (null || !task->real ? 0 : c->faults / 2);
}

static bool muted(const struct fuzz_library *l, unsigned int function)
{
	return task->only_function < 0 &&
	       (count_found(l, function, false) >= 6 || count_found(l, function, true) >= 30);
}

static bool without_null(const struct fuzz_library *l, unsigned int function)
{
	return task->only_function < 0 && count_found(l, function, true) >= 3;
}

unsigned int fuzz_backend_pick(struct fuzz_call *f, int type, bool final)
{
	unsigned int i, seen = 0, number = 0;

	for (i = 0; i < FUZZ_BACKENDS; i++) {
		if (!fuzz_world.backend[i].number || (final && !fuzz_world.backend[i].final) ||
		    (type >= 0 && fuzz_world.backend[i].type != type))
			continue;
		if (!fuzz_random(&f->random, ++seen))
			number = fuzz_world.backend[i].number;
	}
	return number;
}

unsigned int fuzz_backend_new(struct fuzz_call *f)
{
	unsigned int i = fuzz_random(&f->random, FUZZ_BACKENDS), n;

	for (n = 0; n < FUZZ_BACKENDS; n++, i = (i + 1) % FUZZ_BACKENDS)
		if (!fuzz_world.backend[i].number && !fuzz_world.backend[i].coming)
			break;
	fuzz_world.backend[i].coming = true;
	return BACKENDS_AT + i;
}

/* Makes room for new descriptors. Others may use those that go. */
static void thin_backends(struct fuzz_call *f)
{
	unsigned int i, there = 0;
	int status;

	for (i = 0; i < FUZZ_BACKENDS; i++)
		there += fuzz_world.backend[i].number != 0;
	for (i = 0; i < FUZZ_BACKENDS && there > FUZZ_BACKENDS / 2; i++) {
		if (!fuzz_world.backend[i].number || fuzz_random(&f->random, 3))
			continue;
		words[1] = BACKENDS_AT + i;
		ask(QCU_LIB_CUDNN, QCU_LIB_DESTROY, 2, 0, &status);
		fuzz_world.backend[i].number = 0;
	}
}

/* The last call has made these descriptors, or not. */
static void keep_backends(int rc, int status)
{
	unsigned int i;

	for (i = 0; i < FUZZ_BACKENDS; i++)
		if (fuzz_world.backend[i].coming) {
			fuzz_world.backend[i].coming = false;
			fuzz_world.backend[i].number =
				!rc && !status ? (uint16_t)(BACKENDS_AT + i) : 0;
		}
}

/* An answer that begins with an algorithm of cuBLASLt. */
static void keep_algorithm(const char *name, const uint64_t *outs, uint32_t bytes)
{
	static unsigned int next;

	if ((strcmp(name, "cublasLtMatmulAlgoInit") != 0 &&
	     strcmp(name, "cublasLtMatmulAlgoGetHeuristic") != 0) ||
	    bytes < sizeof(fuzz_world.algo[0]))
		return;
	memcpy(fuzz_world.algo[next++ % FUZZ_ALGOS], outs, sizeof(fuzz_world.algo[0]));
	fuzz_world.algo_count = next < FUZZ_ALGOS ? next : FUZZ_ALGOS;
}

/* ---- calls ---- */

static bool can_be_called(unsigned int l, unsigned int function)
{
	const struct fuzz_function *f = &fuzz_libraries[l]->functions[function];

	return (!f->handle || fuzz_shared->has_handle[f->handle]) &&
	       (!f->second || fuzz_shared->has_handle[f->second]);
}

/* Mostly a function that is called in the end. */
static void choose(struct fuzz_call *f, unsigned int *library, unsigned int *function)
{
	unsigned int tries, total = 0, l, n;

	*library = (unsigned int)task->only_library;
	*function = (unsigned int)task->only_function;
	if (task->only_function >= 0)
		return;
	for (l = 0; l < fuzz_library_count; l++)
		total += fuzz_libraries[l]->lib->count;
	for (tries = 0; tries < 1000; tries++) {
		n = fuzz_random(&f->random, total);
		for (l = 0; n >= fuzz_libraries[l]->lib->count; l++)
			n -= fuzz_libraries[l]->lib->count;
		*library = l;
		*function = n;
		if (!muted(fuzz_libraries[l], n) && opened[l] &&
		    (can_be_called(l, n) || !fuzz_random(&f->random, 2000)))
			return;
	}
}

static void mood(struct fuzz_call *f)
{
	static const uint64_t usual[] = {1, 2, 3, 4, 4, 4, 4, 5, 6, 8, 8, 16, 32, 64};
	const unsigned int n = fuzz_random(&f->random, 100);

	/* On a GPU a wrong call costs the GPU's context, or much time. */
	f->mood = n < (task->real ? 70 : 40)   ? FUZZ_TAME
		  : n < (task->real ? 94 : 80) ? FUZZ_ODD
					       : FUZZ_WILD;
	f->usual = usual[fuzz_random(&f->random, sizeof(usual) / sizeof(usual[0]))];
	f->scalars_on_gpu = !fuzz_random(&f->random, 8);
}

static void stop_if_lost(unsigned int l, unsigned int function)
{
	struct question q = {0};
	struct qCUcmd cmd = record(QCU_OP_DEVICE_SYNC);

	if (!task->real || !submit(&q, &cmd))
		return;
	fuzz_shared->counts[l][function].faults++;
	fuzz_shared->lost++;
	_exit(WORKER_LOST);
}

static void call(uint64_t number)
{
	struct fuzz_call f = {
		.random = (task->seed * 0x9e3779b97f4a7c15ull) ^ (number * 0xd1342543de82ef95ull),
		.words = words,
		.used = 1,
	};
	unsigned int l, function;
	struct fuzz_counts *c;
	int rc, status = 0;

	fuzz_random(&f.random, 0);
	thin_backends(&f);
	choose(&f, &l, &function);
	mood(&f);
	c = &fuzz_shared->counts[l][function];
	if (c->faults >= 2 && fuzz_random(&f.random, 8))
		f.mood = FUZZ_TAME;
	f.lib = fuzz_libraries[l];
	fuzz_shared->library = fuzz_shared->inner_library = (uint16_t)l;
	fuzz_shared->function = fuzz_shared->inner_function = (uint16_t)function;
	fuzz_pack(&f, function);
	if (f.overflow)
		return;
	fuzz_shared->used = f.used;
	memcpy(fuzz_shared->words, words, sizeof(fuzz_shared->words));
	if (!f.outs && !fuzz_random(&f.random, 8) && 8 * f.used <= QCU_MSG_MAX)
		rc = post(f.lib->number, (uint16_t)function, f.used);
	else
		rc = ask(f.lib->number, (uint16_t)function, f.used, f.outs, &status);
	c->sent++;
	if (rc || status || !c->rc) {
		c->rc = rc;
		c->status = status;
	}
	keep_backends(rc, status);
	if (!rc && !status)
		keep_algorithm(f.lib->lib->functions[function].name, words + f.used + 1, f.outs);
	stop_if_lost(l, function);
}

static uint64_t resident_bytes(void)
{
	unsigned long long all, pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%llu %llu", &all, &pages) != 2)
		pages = 0;
	if (f)
		fclose(f);
	return pages * 4096;
}

int fuzz_work(const struct fuzz_task *t)
{
	uint64_t number = t->from;
	unsigned int l;
	int status;

	task = t;
	fake_reset();
	base = t->ops ? t->ops : &fake_ops;
	ops = *base;
	ops.lib_open = open_library;
	ops.lib_symbol = symbol;
	if (!t->ops)
		ops.native = native;
	fuzz_guard_begin();
	fuzz_catch_begin(&t->limits);
	fuzz_world.real = t->real;
	fuzz_world.muted = muted;
	fuzz_world.without_null = without_null;
	if (mir_create(&mirror, &(struct mir_config){.session = 1, .ops = &ops}))
		fuzz_catch_now(FOUND_END);
	for (l = 0; l < fuzz_library_count; l++) {
		words[1] = fuzz_libraries[l]->lib->table;
		words[2] = QCU_LIB_ROOM;
		words[3] = QCU_LIB_REASON;
		if (ask(fuzz_libraries[l]->number, QCU_LIB_OPEN, 4, QCU_LIB_REASON, &status) ||
		    status)
			opened[l] = NULL;
	}
	make_memory();
	make_objects();
	while (number < t->to && (!t->until || time(NULL) < t->until)) {
		fuzz_shared->number = number;
		call(number);
		number++;
		if (!(number % 256) &&
		    (t->limits.growth && resident_bytes() > LARGE + 4 * t->limits.growth)) {
			fuzz_shared->number = number;
			_exit(WORKER_LARGE);
		}
	}
	fuzz_shared->number = number;
	_exit(WORKER_DONE);
}

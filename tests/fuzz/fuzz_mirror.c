// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzes a mirror as a hostile guest would: any record with any segments or message, on guest
 * memory that the same guest fills, with the software GPU as the backend. The step before
 * mir_submit, which takes a chain off the virtqueue, is done here as in mirror_vq.c. items.h
 * describes an input.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "qcu-device/memory/guestmem.h"
#include "qcu-device/mirror/mirror.h"
#include "tests/fuzz/choose.h"
#include "tests/fuzz/items.h"

#define LOW_BYTES  (1u << 20)
#define HIGH_GPA   (1ull << 32)
#define HIGH_BYTES (256u << 10)
/* A module that is in guest memory for every input. */
#define IMAGE_GPA 0x1000u
#define ITEMS_MAX 64u
#define WAIT_MS	  100

static const char image[] =
	".version 8.0\n.target sm_75\n.address_size 64\n"
	".visible .global .align 4 .u32 v[16];\n"
	".visible .entry k(.param .u64 p, .param .u32 n)\n{\n"
	".reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %d<4>;\n"
	"ld.param.u64 %d1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;\n"
	"setp.ge.u32 %p1, %r2, %r1; @%p1 bra out;\n"
	"mul.wide.u32 %d2, %r2, 4; add.s64 %d3, %d1, %d2;\n"
	"ld.u32 %r3, [%d3]; add.u32 %r3, %r3, 1; st.u32 [%d3], %r3;\nout: ret;\n}\n"
	".visible .entry t()\n{\ntrap;\n}\n";

static struct guestmem mem;
static uint8_t *low, *high;

/* The session of one input. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t answered;
	struct mirror *m;
	unsigned int outstanding, driving; /* driving: how many of them are the driver's */
	bool broken;
	uint64_t pointer[CHOOSE_POINTERS]; /* from MALLOC and VAR_FIND */
	unsigned int pointers;
} s = {.lock = PTHREAD_MUTEX_INITIALIZER, .answered = PTHREAD_COND_INITIALIZER};

struct request {
	struct mir_request req;
	struct qCUcmd sent;
	uint8_t *tail; /* of exactly the data's size: the sanitizer watches its end */
};

static void done(struct mir_request *req)
{
	struct request *r = (struct request *)req;
	const struct qCUcmd *c = &req->cmd;

	if (c->op != r->sent.op || c->tid != r->sent.tid || c->seq != r->sent.seq ||
	    c->flags & ~QCU_F_OUTPUT)
		abort();
	pthread_mutex_lock(&s.lock);
	s.outstanding--;
	s.driving -= !c->tid;
	if (c->status == MIR_RULE_BROKEN)
		s.broken = true;
	else if (c->status < 0)
		abort();
	else if (!c->status && c->op == QCU_OP_MALLOC && c->malloc.ptr)
		s.pointer[s.pointers++ % CHOOSE_POINTERS] = c->malloc.ptr;
	else if (!c->status && c->op == QCU_OP_VA_RESERVE)
		s.pointer[s.pointers++ % CHOOSE_POINTERS] = c->va_reserve.addr;
	else if (!c->status && c->op == QCU_OP_VAR_FIND)
		s.pointer[s.pointers++ % CHOOSE_POINTERS] = c->var_find.addr;
	pthread_cond_broadcast(&s.answered);
	pthread_mutex_unlock(&s.lock);
	free(r->tail);
	free(r);
}

/*
 * Call with the lock held. Returns true if a command of a guest thread, or of the driver, is not
 * answered yet.
 */
static bool busy(bool threads, bool driver)
{
	return (threads && s.outstanding > s.driving) || (driver && s.driving);
}

/*
 * Returns false if some commands are still not answered. They may wait for something that this
 * input never sends.
 */
static bool wait_for(bool threads, bool driver)
{
	struct timespec t;
	bool all;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += WAIT_MS * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	pthread_mutex_lock(&s.lock);
	while (busy(threads, driver) && !pthread_cond_timedwait(&s.answered, &s.lock, &t))
		;
	all = !busy(threads, driver);
	pthread_mutex_unlock(&s.lock);
	return all;
}

/* Grids of millions of blocks are valid, but take too long here. */
static void shrink_grid(uint8_t *tail, size_t len)
{
	struct qcu_launch_msg msg;

	if (len < sizeof(msg))
		return;
	memcpy(&msg, tail, sizeof(msg));
	for (int i = 0; i < 3; i++)
		if (msg.grid[i] > 8 && msg.grid[i] < 0x10000000)
			msg.grid[i] &= 7;
	memcpy(tail, &msg, sizeof(msg));
}

/* Returns false for a chain that mirror_vq.c refuses. */
static bool read_tail(struct request *r, size_t tail)
{
	struct mir_request *req = &r->req;

	switch (req->cmd.flags & (QCU_F_MSG | QCU_F_SEGS)) {
	case 0:
		return !tail;
	case QCU_F_MSG:
		req->msg = r->tail;
		return tail == req->cmd.buf.len;
	case QCU_F_SEGS:
		req->segs = (const struct qcu_seg *)r->tail;
		req->seg_count = tail / sizeof(struct qcu_seg);
		return tail % sizeof(struct qcu_seg) == 0;
	}
	return false;
}

/* Returns false at the end of the session. */
static bool command(const struct item *it, const uint8_t *record, const uint8_t *tail)
{
	struct request *r = calloc(1, sizeof(*r));
	bool driver;

	if (!r)
		abort();
	memcpy(&r->req.cmd, record, sizeof(r->req.cmd));
	r->tail = malloc(it->tail ? it->tail : 1);
	if (!r->tail)
		abort();
	memcpy(r->tail, tail, it->tail);
	pthread_mutex_lock(&s.lock);
	choose_pointers(s.pointer, r->req.cmd.body, QCU_BODY);
	if (r->req.cmd.flags & QCU_F_MSG)
		choose_pointers(s.pointer, r->tail, it->tail);
	pthread_mutex_unlock(&s.lock);
	if (r->req.cmd.op == QCU_OP_LAUNCH)
		shrink_grid(r->tail, it->tail);
	r->req.done = done;
	r->sent = r->req.cmd;
	if (!read_tail(r, it->tail))
		goto refused;
	/*
	 * A process that unmaps pages under a copy ends, and this is the guest's own loss. So the
	 * driver's commands and the guest threads' commands do not run at the same time here. The
	 * driver's own commands may run beside each other.
	 */
	driver = !r->sent.tid;
	if (!wait_for(driver, !driver))
		goto refused;
	pthread_mutex_lock(&s.lock);
	s.outstanding++;
	s.driving += driver;
	pthread_mutex_unlock(&s.lock);
	if (mir_submit(s.m, &r->req))
		return !it->wait || wait_for(true, true);
	pthread_mutex_lock(&s.lock);
	s.outstanding--;
	s.driving -= driver;
	pthread_mutex_unlock(&s.lock);
refused:
	free(r->tail);
	free(r);
	return false;
}

static void write_memory(uint64_t gpa, const uint8_t *bytes, size_t len)
{
	void *p = guestmem_translate(&mem, gpa, len);

	if (!p)
		return;
	memcpy(p, bytes, len);
	pthread_mutex_lock(&s.lock);
	choose_pointers(s.pointer, p, len);
	pthread_mutex_unlock(&s.lock);
}

static void play(const uint8_t *data, size_t size)
{
	unsigned int n;

	for (n = 0; n < ITEMS_MAX && !s.broken; n++) {
		const uint8_t *record = data + sizeof(struct item);
		struct item it;
		size_t head = sizeof(it);

		if (size < sizeof(it))
			return;
		memcpy(&it, data, sizeof(it));
		if (it.kind % ITEM_KINDS == ITEM_COMMAND)
			head += sizeof(struct qCUcmd);
		if (size < head || it.tail > size - head)
			return;
		if (it.kind % ITEM_KINDS == ITEM_WRITE)
			write_memory(it.gpa, data + head, it.tail);
		else if (!command(&it, record, data + head))
			return;
		data += head + it.tail;
		size -= head + it.tail;
	}
}

static void make_memory(void)
{
	/* A kernel of the input need not end by itself. */
	setenv("QCU_SOFT_TIMEOUT", "1", 1);
	low = mmap(NULL, LOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	high = mmap(NULL, HIGH_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (low == MAP_FAILED || high == MAP_FAILED || guestmem_add(&mem, 0, LOW_BYTES, low) ||
	    guestmem_add(&mem, HIGH_GPA, HIGH_BYTES, high))
		abort();
}

FUZZ_ENTRY int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mir_config cfg = {
		.ops = &be_soft,
		.options = {.vram = 16u << 20, .gpus = 1, .threads = 1},
		.mem = &mem,
		.session = 1,
	};

	if (!size)
		return 0;
	if (!low)
		make_memory();
	memset(low, 0, 64u << 10);
	memset(high, 0, 64u << 10);
	memcpy(low + IMAGE_GPA, image, sizeof(image));
	cfg.map = data[0] & 1 ? MIR_MAP_NCVM : MIR_MAP_CVM;
	cfg.pin_limit = data[0] & 4 ? 128u << 10 : 0;
	cfg.options.gpus = data[0] & 8 ? 2 : 1;
	cfg.copiers = data[0] & 16 ? 3 : 1;
	s.broken = false;
	s.pointers = s.driving = 0;
	memset(s.pointer, 0, sizeof(s.pointer));
	if (mir_create(&s.m, &cfg))
		abort();
	play(data + 1, size - 1);
	mir_destroy(s.m);
	if (s.outstanding)
		abort(); /* a request was never answered */
	return 0;
}

/* ---- mutations ---- */

/* Finds the start of each item. */
static unsigned int list_items(const uint8_t *data, size_t size, size_t *at)
{
	unsigned int n = 0;
	size_t p = 1;

	while (n < ITEMS_MAX && size >= p && size - p >= sizeof(struct item)) {
		struct item it;
		size_t len;

		memcpy(&it, data + p, sizeof(it));
		len = sizeof(it) + it.tail;
		if (it.kind % ITEM_KINDS == ITEM_COMMAND)
			len += sizeof(struct qCUcmd);
		if (len > size - p)
			break;
		at[n++] = p;
		p += len;
	}
	at[n] = p;
	return n;
}

/* What a command wants to have in guest memory: the tail of an item. */
static struct {
	uint8_t bytes[CHOOSE_TAIL];
	uint32_t len;
} written;

static void put(const struct chooser *how, const uint8_t *bytes, uint32_t n)
{
	(void)how;
	memcpy(written.bytes, bytes, n);
	written.len = n;
}

static struct chooser chooser(uint64_t *random)
{
	return (struct chooser){
		.random = random,
		.threads = 3,
		.devices = 6,
		.bytes = LOW_BYTES,
		.more = HIGH_GPA,
		.beyond = LOW_BYTES,
		.image = IMAGE_GPA,
		.image_bytes = sizeof(image),
		.message = ITEM_GPA,
		.put = put,
	};
}

/* Makes a command that keeps most rules, and what it has in memory. */
static size_t make_item(uint8_t *out, uint64_t *random)
{
	const struct chooser how = chooser(random);
	struct item it = {.wait = fuzz_random(random, 3) != 0}, memory;
	uint8_t tail[CHOOSE_TAIL];
	struct qCUcmd c;
	size_t at = 0;

	written.len = 0;
	it.tail = (uint16_t)choose_command(&how, &c, tail);
	if (written.len) {
		memory = (struct item){ITEM_WRITE, 0, (uint16_t)written.len, ITEM_GPA};
		memcpy(out, &memory, sizeof(memory));
		memcpy(out + sizeof(memory), written.bytes, written.len);
		at = sizeof(memory) + written.len;
	}
	memcpy(out + at, &it, sizeof(it));
	memcpy(out + at + sizeof(it), &c, sizeof(c));
	memcpy(out + at + sizeof(it) + sizeof(c), tail, it.tail);
	return at + sizeof(it) + sizeof(c) + it.tail;
}

/* Puts another number into one record or its tail. */
static void change_number(uint8_t *data, size_t from, size_t to, uint64_t *random)
{
	const struct chooser how = chooser(random);
	const uint32_t words = (uint32_t)(to - from) / 4;
	size_t off =
		sizeof(struct item) + fuzz_random(random, fuzz_random(random, 2) ? 20 : words) * 4;
	uint64_t v = choose_wide(&how);
	uint32_t x = choose_narrow(&how);

	if (off + 8 > to - from)
		return;
	if (fuzz_random(random, 2))
		memcpy(data + from + off, &x, 4);
	else
		memcpy(data + from + off, &v, 8);
}

static size_t insert(uint8_t *data, size_t size, size_t max, size_t at, const uint8_t *bytes,
		     size_t n)
{
	if (n > max || size > max - n)
		return size;
	memmove(data + at + n, data + at, size - at);
	memcpy(data + at, bytes, n);
	return size + n;
}

FUZZ_ENTRY size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	uint64_t random = seed * 0x9e3779b97f4a7c15ull + 1;
	uint8_t bytes[2 * sizeof(struct item) + sizeof(struct qCUcmd) + 2 * CHOOSE_TAIL];
	size_t at[ITEMS_MAX + 1], len;
	unsigned int n, i, times = 1 + fuzz_random(&random, 4);

	if (!size || !fuzz_random(&random, 10))
		return LLVMFuzzerMutate(data, size, max);
	while (times--) {
		n = list_items(data, size, at);
		i = fuzz_random(&random, n + 1);
		len = i < n ? at[i + 1] - at[i] : 0;
		switch (fuzz_random(&random, 8)) {
		case 0: /* remove an item */
			memmove(data + at[i], data + at[i] + len, size - at[i] - len);
			size -= len;
			break;
		case 1: /* repeat an item */
			if (len && len <= sizeof(bytes)) {
				memcpy(bytes, data + at[i], len);
				i = fuzz_random(&random, n + 1);
				size = insert(data, size, max, at[i], bytes, len);
			}
			break;
		case 2:
		case 3:
		case 4:
			if (i < n)
				change_number(data, at[i], at[i + 1], &random);
			break;
		default:
			if (n < ITEMS_MAX)
				size = insert(data, size, max, at[i], bytes,
					      make_item(bytes, &random));
		}
	}
	return size;
}

/* Appends the items of one input to the first items of the other. */
FUZZ_ENTRY size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b,
					    size_t b_size, uint8_t *out, size_t max,
					    unsigned int seed)
{
	size_t at[ITEMS_MAX + 1], half;
	uint64_t random = seed + 1;
	unsigned int n;

	if (!a_size || a_size > max)
		return 0;
	n = list_items(a, a_size, at);
	half = at[fuzz_random(&random, n + 1)];
	if (!b_size || half > a_size || b_size - 1 > max - half)
		return 0;
	memcpy(out, a, half);
	memcpy(out + half, b + 1, b_size - 1);
	return half + b_size - 1;
}

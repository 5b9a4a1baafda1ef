// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The counts behind usage.h. A session first adds to its own count, and then looks at all counts.
 * If two sessions take the last of something at the same time, at least one of them sees the other.
 * So there is never more than the limit; it may be that neither session gets it.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qcu-device/base/usage.h"

/* No count of a session gets this large, so no sum of counts wraps. */
#define COUNT_MAX (1ull << 57)

struct usage *usage_new(int fd)
{
	int flags = MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0);
	void *p;

	if (fd >= 0 && ftruncate(fd, sizeof(struct usage)))
		return NULL;
	p = mmap(NULL, sizeof(struct usage), PROT_READ | PROT_WRITE, flags, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

void usage_free(struct usage *u)
{
	if (u)
		munmap(u, sizeof(*u));
}

void usage_end(struct usage *u, unsigned int session)
{
	struct session_usage *p = &u->sessions[session];
	unsigned int i, kind;

	for (i = 0; i < LIMIT_KINDS; i++) {
		atomic_store(&p->used[i], 0);
		atomic_store(&p->refused[i], 0);
	}
	for (i = 0; i < USAGE_DEVICES; i++) {
		atomic_store(&p->memory[i], 0);
		atomic_store(&p->opened[i], 0);
		for (kind = 0; kind < BUSY_KINDS; kind++)
			atomic_store(&p->busy[i][kind].v, 0);
	}
	for (i = 0; i < QCU_OP_COUNT; i++)
		atomic_store(&p->counts.calls[i], 0);
	for (i = 0; i < COUNT_KINDS; i++)
		atomic_store(&p->counts.n[i], 0);
	atomic_store(&p->devices, 0);
	atomic_store(&p->pid, 0);
	atomic_store(&p->left_ns, 0);
}

static _Atomic uint64_t *count_of(struct session_usage *p, enum limit what, unsigned int device)
{
	return what == LIMIT_DEVICE_MEMORY ? &p->memory[device] : &p->used[what];
}

uint64_t usage_sum(struct usage *u, enum limit what, unsigned int device)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i <= QCU_MAX_SESSIONS; i++)
		sum += atomic_load(count_of(&u->sessions[i], what, device));
	return sum;
}

void budget_init(struct budget *b, const struct limits *limits, struct usage *vm,
		 unsigned int session)
{
	memset(b, 0, sizeof(*b));
	pthread_mutex_init(&b->busy_lock, NULL);
	b->usage = &b->own;
	b->vm = vm;
	if (limits)
		b->limits = *limits;
	limits_default(&b->limits);
	budget_begin(b, session);
}

void budget_begin(struct budget *b, unsigned int session)
{
	b->session = session;
	if (b->vm)
		b->usage = &b->vm->sessions[session];
}

void budget_program(struct budget *b, uint32_t pid)
{
	atomic_store(&b->usage->pid, pid);
}

void budget_uses(struct budget *b, unsigned int device)
{
	uint64_t bit = 1ull << device;

	if (!(atomic_load_explicit(&b->usage->devices, memory_order_relaxed) & bit))
		atomic_fetch_or(&b->usage->devices, bit);
}

void budget_leaves(struct budget *b, unsigned int device)
{
	atomic_fetch_and(&b->usage->devices, ~(1ull << device));
}

unsigned int budget_users(const struct budget *b, unsigned int device, struct usage_user *users)
{
	unsigned int count = 0, i;

	for (i = b->vm ? 1 : QCU_MAX_SESSIONS; i <= QCU_MAX_SESSIONS; i++) {
		const struct session_usage *p = b->vm ? &b->vm->sessions[i] : b->usage;

		if (!(atomic_load(&p->devices) >> device & 1))
			continue;
		users[count].pid = atomic_load(&p->pid);
		users[count].session = i;
		users[count++].bytes = atomic_load(&p->memory[device]);
	}
	return count;
}

void budget_busy(struct budget *b, unsigned int device, enum busy_kind kind, bool begins)
{
	struct busy_time *t = &b->usage->busy[device][kind];

	pthread_mutex_lock(&b->busy_lock);
	if (begins && !b->running[device][kind]++)
		busy_begin(t, busy_now());
	else if (!begins && !--b->running[device][kind])
		busy_end(t, busy_now());
	pthread_mutex_unlock(&b->busy_lock);
}

void budget_read_busy(const struct budget *b, unsigned int device, struct busy_reading *to)
{
	uint64_t now = busy_now();
	unsigned int i, kind;

	memset(to, 0, BUSY_SESSIONS * sizeof(*to));
	for (i = b->vm ? 1 : QCU_MAX_SESSIONS; i <= QCU_MAX_SESSIONS; i++) {
		const struct session_usage *p = b->vm ? &b->vm->sessions[i] : b->usage;

		to[i].pid = atomic_load(&p->pid);
		for (kind = 0; kind < BUSY_KINDS; kind++)
			to[i].spent[kind] = busy_spent(&p->busy[device][kind], now);
	}
}

/* Memory that its owner has given up, and that this session or all sessions have open. */
static uint64_t count_left_memory(const struct budget *b, unsigned int device, bool all)
{
	uint64_t opened = atomic_load(&b->usage->opened[device]);
	unsigned int i;

	for (i = 0; all && b->vm && !opened && i <= QCU_MAX_SESSIONS; i++)
		opened = atomic_load(&b->vm->sessions[i].opened[device]);
	return b->left && opened ? b->left(b->left_ctx, device, all ? BUDGET_ALL : b->session) : 0;
}

static uint64_t own_memory(const struct budget *b, unsigned int device)
{
	return atomic_load(&b->usage->memory[device]) + count_left_memory(b, device, false);
}

/* Only memory can be left open. */
static uint64_t more(const struct budget *b, enum limit what, unsigned int device, bool all)
{
	return what == LIMIT_DEVICE_MEMORY ? count_left_memory(b, device, all) : 0;
}

static bool take_from_budget(struct budget *b, enum limit what, unsigned int device, uint64_t n)
{
	_Atomic uint64_t *count = count_of(b->usage, what, device);
	uint64_t session = b->limits.session[what], vm = b->limits.vm[what], old, sum;

	if (session > COUNT_MAX)
		session = COUNT_MAX;
	if (n > session)
		goto refused;
	old = atomic_fetch_add(count, n);
	if (session < COUNT_MAX)
		old += more(b, what, device, false);
	if (old <= session - n) {
		if (vm >= COUNT_MAX)
			return true;
		sum = b->vm ? usage_sum(b->vm, what, device) : old + n;
		if (sum <= vm && sum + more(b, what, device, true) <= vm)
			return true;
	}
	atomic_fetch_sub(count, n);
refused:
	atomic_fetch_add_explicit(&b->usage->refused[what], 1, memory_order_relaxed);
	return false;
}

bool budget_take(struct budget *b, enum limit what, uint64_t n)
{
	return take_from_budget(b, what, 0, n);
}

void budget_give(struct budget *b, enum limit what, uint64_t n)
{
	atomic_fetch_sub(&b->usage->used[what], n);
}

uint64_t budget_refused_others(const struct budget *b, enum limit what)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; b->vm && i <= QCU_MAX_SESSIONS; i++)
		if (&b->vm->sessions[i] != b->usage)
			sum += atomic_load(&b->vm->sessions[i].refused[what]);
	return sum;
}

bool budget_has_colder(const struct budget *b)
{
	uint64_t own = atomic_load(&b->usage->left_ns), ns;
	unsigned int i;

	for (i = 0; b->vm && i <= QCU_MAX_SESSIONS; i++) {
		const struct session_usage *p = &b->vm->sessions[i];

		ns = atomic_load(&p->left_ns);
		if (p != b->usage && ns && ns < own && atomic_load(&p->used[LIMIT_SWAP]))
			return true;
	}
	return false;
}

bool budget_set(struct budget *b, enum limit what, uint64_t n)
{
	uint64_t vm = b->limits.vm[what];

	atomic_store(&b->usage->used[what], n);
	if (n <= b->limits.session[what] && (b->vm ? usage_sum(b->vm, what, 0) : n) <= vm)
		return true;
	atomic_fetch_add_explicit(&b->usage->refused[what], 1, memory_order_relaxed);
	return false;
}

bool budget_take_memory(struct budget *b, unsigned int device, uint64_t bytes)
{
	return take_from_budget(b, LIMIT_DEVICE_MEMORY, device, bytes);
}

void budget_give_memory(struct budget *b, unsigned int device, uint64_t bytes)
{
	atomic_fetch_sub(&b->usage->memory[device], bytes);
}

void budget_add_memory(struct budget *b, unsigned int device, uint64_t bytes)
{
	atomic_fetch_add(&b->usage->memory[device], bytes);
}

uint64_t budget_vm_used(const struct budget *b, unsigned int device)
{
	uint64_t sum = b->vm ? usage_sum(b->vm, LIMIT_DEVICE_MEMORY, device)
			     : atomic_load(&b->usage->memory[device]);

	return sum + count_left_memory(b, device, true);
}

void budget_opened(struct budget *b, unsigned int device, uint64_t bytes)
{
	atomic_fetch_add(&b->usage->opened[device], bytes);
}

void budget_closed(struct budget *b, unsigned int device, uint64_t bytes)
{
	atomic_fetch_sub(&b->usage->opened[device], bytes);
}

bool budget_memory_over(const struct budget *b, unsigned int device)
{
	return own_memory(b, device) > b->limits.session[LIMIT_DEVICE_MEMORY] ||
	       budget_vm_used(b, device) > b->limits.vm[LIMIT_DEVICE_MEMORY];
}

uint64_t budget_vm_total(const struct budget *b, uint64_t total)
{
	uint64_t vm = b->limits.vm[LIMIT_DEVICE_MEMORY];

	return total > vm ? vm : total;
}

uint64_t budget_memory_total(const struct budget *b, uint64_t total)
{
	uint64_t session = b->limits.session[LIMIT_DEVICE_MEMORY];

	return budget_vm_total(b, total > session ? session : total);
}

static uint64_t rest_of_limit(uint64_t limit, uint64_t used)
{
	return limit == LIMIT_NONE ? LIMIT_NONE : limit > used ? limit - used : 0;
}

uint64_t budget_memory_left(const struct budget *b, unsigned int device, uint64_t total)
{
	uint64_t own = rest_of_limit(b->limits.session[LIMIT_DEVICE_MEMORY], own_memory(b, device));
	uint64_t all = rest_of_limit(b->limits.vm[LIMIT_DEVICE_MEMORY], budget_vm_used(b, device));

	if (total > own)
		total = own;
	return total > all ? all : total;
}

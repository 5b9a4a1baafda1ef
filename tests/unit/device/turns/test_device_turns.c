// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whose turn it is, with a clock and a GPU of our own: so nothing depends on how fast this machine
 * is. The GPU switches between processes every 2.4 ms, as NVIDIA's driver does, and ends a kernel
 * that it has begun. A program keeps in flight what a mirror would let it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "qcu-device/turns/turns.h"

#define OK(what) assert_true(what)

#define STEP	 50000ull /* ns: of the GPU's time */
#define LOOK	 (TURNS_TICK / STEP)
#define SLICE	 2400000ull
#define FLIGHT	 1500000ull
#define ALONE	 64u /* kernels in flight of a program that is not held back */
#define PROGRAMS 64u
#define MS	 1000000ull
#define SECOND	 1000000000ull

/* What a program does. */
enum way {
	BUSY,  /* as much as it may */
	WAITS, /* launch, wait, think */
	OFF,
	STOPPED, /* its threads were told to go, and do not */
	NOISE,	 /* it says that all its sessions run, and none does */
	LIAR,	 /* it says that it has work, and has none */
};

struct program {
	unsigned int vm;
	enum way way;
	uint64_t kernel_ns, think_ns;
	uint64_t left_ns; /* of the kernel that runs */
	unsigned int flight;
	bool wants;
	uint64_t asked_ns, free_ns; /* WAITS: when it wanted to launch; until then it thinks */
	uint64_t worst_ns;
	uint64_t late; /* launches that took longer than 5 ms, and all */
	uint64_t launches;
};

static struct turns t;
static struct program program[PROGRAMS];
static unsigned int programs, running;
static uint64_t now, slice_end, had[TURNS_VMS];
static bool measured[TURNS_VMS]; /* what the VM has under way is known */

static void begin(void)
{
	turns_init(&t);
	memset(program, 0, sizeof(program));
	memset(had, 0, sizeof(had));
	memset(measured, 0, sizeof(measured));
	programs = running = 0;
	now = SECOND;
	slice_end = 0;
}

static struct program *add_program(unsigned int vm, enum way way, uint64_t kernel_ns)
{
	program[programs] = (struct program){.vm = vm, .way = way, .kernel_ns = kernel_ns};
	return &program[programs++];
}

static unsigned int add_vm(uint32_t weight, unsigned int n, uint64_t kernel_ns)
{
	unsigned int vm = turns_add(&t, weight, 0, false);

	while (n--)
		add_program(vm, BUSY, kernel_ns);
	return vm;
}

static bool may_submit(const struct program *p)
{
	enum turns_order order = t.vm[p->vm].order[TURNS_GPU];

	return order == TURNS_FREE || order == TURNS_GO;
}

static void submit(struct program *p)
{
	bool alone = t.vm[p->vm].order[TURNS_GPU] == TURNS_FREE;
	bool wish = p->way == BUSY
			    ? p->flight < (alone ? ALONE : 2) || p->flight * p->kernel_ns < FLIGHT
			    : p->way == WAITS && !p->flight && now >= p->free_ns;

	if (p->way == STOPPED || p->way == LIAR)
		p->wants = true;
	if (p->way == OFF)
		p->wants = false;
	if (!wish)
		return;
	if (p->way == WAITS && !p->asked_ns)
		p->asked_ns = now;
	p->wants = !may_submit(p);
	if (p->wants)
		return;
	if (!p->flight)
		p->left_ns = p->kernel_ns;
	p->flight++;
}

static void end_kernel(struct program *p)
{
	p->left_ns = --p->flight ? p->kernel_ns : 0;
	if (p->way != WAITS)
		return;
	p->launches++;
	p->late += now - p->asked_ns > 5 * MS;
	if (now - p->asked_ns > p->worst_ns)
		p->worst_ns = now - p->asked_ns;
	p->asked_ns = 0;
	p->free_ns = now + p->think_ns;
}

/* The GPU goes on for one step with the process whose slice it is. */
static void run_gpu(void)
{
	uint64_t left = STEP;
	unsigned int i;
	struct program *p = NULL;

	while (left) {
		if (!program[running].flight || now >= slice_end) {
			for (i = 1; i <= programs; i++)
				if (program[(running + i) % programs].flight)
					break;
			if (i > programs)
				return;
			running = (running + i) % programs;
			slice_end = now + SLICE;
		}
		p = &program[running];
		if (p->left_ns > left)
			break;
		left -= p->left_ns;
		had[p->vm] += p->left_ns;
		end_kernel(p);
		submit(p);
	}
	if (!left)
		return;
	p->left_ns -= left;
	had[p->vm] += left;
}

static void look(void)
{
	unsigned int i, v;

	for (v = 0; v < t.top; v++)
		memset(t.vm[v].use, 0, sizeof(t.vm[v].use));
	for (i = 0; i < programs; i++) {
		struct turns_use *u = &t.vm[program[i].vm].use[TURNS_GPU];

		u->wants += program[i].wants;
		if (measured[program[i].vm])
			u->running += program[i].way == NOISE ? 63 : program[i].flight != 0;
	}
	turns_look(&t, now);
	for (v = 0; v < t.top; v++)
		measured[v] = t.shared && v != t.alone;
	/* Who waits is looked at again, or must ring. */
	for (v = 0; v < t.top; v++)
		OK(!t.vm[v].there || t.shared || t.vm[v].order[TURNS_GPU] == TURNS_RING ||
		   v == t.alone);
}

static void run(uint64_t ns)
{
	uint64_t end = now + ns, n = 0;
	unsigned int i;
	bool rings;

	for (; now < end; now += STEP, n++) {
		rings = false;
		for (i = 0; i < programs; i++) {
			submit(&program[i]);
			rings |= program[i].wants &&
				 t.vm[program[i].vm].order[TURNS_GPU] == TURNS_RING;
		}
		if (rings ||
		    (turns_next_look(&t) && (n % LOOK == 0 || turns_next_look(&t) < TURNS_TICK)))
			look();
		run_gpu();
	}
}

static double share_of(unsigned int vm)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < TURNS_VMS; i++)
		sum += had[i];
	return sum ? (double)had[vm] / (double)sum : 0;
}

#define SHARE(vm, wanted, within)                                                        \
	do {                                                                             \
		double is_ = share_of(vm);                                               \
		if (is_ < (wanted) - (within) || is_ > (wanted) + (within)) {            \
			fail_msg("VM %u has %.3f, not %.3f", vm, is_, (double)(wanted)); \
		}                                                                        \
	} while (0)

static void forget(void)
{
	memset(had, 0, sizeof(had));
}

/* A VM with four programs has no more than one with one. */
static void programs_do_not_count(void **state)
{
	unsigned int a, b;

	(void)state;
	begin();
	a = add_vm(100, 1, 1 * MS);
	b = add_vm(100, 4, 1 * MS);
	run(10 * SECOND);
	SHARE(a, 0.5, 0.03);
	SHARE(b, 0.5, 0.03);
}

static void weights(void **state)
{
	static const uint32_t weights[] = {300, 700, 25, 10000};
	unsigned int i, a;

	(void)state;
	for (i = 0; i < 4; i++) {
		begin();
		a = add_vm(100, 1, 1 * MS);
		add_vm(weights[i], 1, 1 * MS);
		run(20 * SECOND);
		SHARE(a, 100.0 / (100 + weights[i]), 0.03);
	}
}

/* Kernels of 0.05 to 100 ms: what a kernel takes beyond its turn is paid back. */
static void long_kernels(void **state)
{
	static const uint64_t kernels[] = {MS / 20, 5 * MS, 50 * MS, 100 * MS};
	unsigned int i;

	(void)state;
	begin();
	for (i = 0; i < 4; i++)
		add_vm(100, 1, kernels[i]);
	run(10 * SECOND);
	for (i = 0; i < 4; i++)
		SHARE(i, 0.25, 0.05);
	begin();
	for (i = 0; i < 4; i++)
		add_vm(100 << i, 1, kernels[i]);
	run(20 * SECOND);
	for (i = 0; i < 4; i++)
		SHARE(i, (1 << i) / 15.0, 0.05);
}

/* The GPU does not rest while somebody has work. */
static void work_goes_on(void **state)
{
	unsigned int a, b;

	(void)state;
	begin();
	a = add_vm(100, 1, 5 * MS);
	b = add_vm(100, 4, MS / 2);
	run(5 * SECOND);
	OK(had[a] + had[b] > 5 * SECOND * 97 / 100);
}

/* Who launches and waits does not wait long beside kernels of 5 ms. */
static void short_work_is_served_at_once(void **state)
{
	struct program *p;
	unsigned int i, vm;

	(void)state;
	for (i = 0; i < 2; i++) {
		begin();
		add_vm(100, 1, 5 * MS);
		vm = turns_add(&t, 100, 0, i);
		p = add_program(vm, WAITS, MS / 20);
		p->think_ns = i ? MS / 10 : 20 * MS;
		run(10 * SECOND);
		OK(p->launches > 100);
		printf("%s: %llu launches, %llu took longer than 5 ms, the longest %.2f ms\n",
		       i ? "interactive" : "batch", (unsigned long long)p->launches,
		       (unsigned long long)p->late, (double)p->worst_ns / MS);
		OK(p->late * 100 <= p->launches || !i);
	}
}

/* A second of work of an interactive VM, kernel after kernel, is no longer than 1.3 of alone. */
static void a_burst_of_work(void **state)
{
	struct program *p;
	uint64_t alone, beside, i;

	(void)state;
	for (i = alone = beside = 0; i < 2; i++) {
		begin();
		if (i)
			add_vm(100, 1, 5 * MS);
		p = add_program(turns_add(&t, 100, 0, true), WAITS, 1 * MS);
		p->think_ns = MS / 10;
		run(100 * MS);
		p->launches = 0;
		run(400 * MS);
		*(i ? &beside : &alone) = p->launches;
		p->way = OFF;
	}
	printf("launches in 400 ms: alone %llu, beside kernels of 5 ms %llu\n",
	       (unsigned long long)alone, (unsigned long long)beside);
	OK(beside * 13 >= alone * 10);
}

/* Nor can it keep all of the GPU for long. */
static void interactive_has_its_share(void **state)
{
	unsigned int a, b;

	(void)state;
	begin();
	a = add_vm(100, 1, 5 * MS);
	b = turns_add(&t, 100, 0, true);
	add_program(b, BUSY, 1 * MS);
	run(5 * SECOND);
	forget();
	run(20 * SECOND);
	SHARE(a, 0.5, 0.03);
}

/* What one does not use the other has within 20 ms, and gives back as fast. */
static void a_share_that_is_not_used(void **state)
{
	unsigned int a, b, i;

	(void)state;
	begin();
	a = add_vm(100, 1, 1 * MS);
	b = add_vm(100, 1, 1 * MS);
	run(SECOND);
	for (i = 0; i < 20; i++) {
		program[1].way = OFF;
		run(20 * MS);
		forget();
		run(200 * MS + i * MS);
		OK(!had[b]);
		OK(had[a] >= 198 * MS);
		program[1].way = BUSY;
		forget();
		run(20 * MS);
		OK(had[b] > 0);
		run(180 * MS);
		SHARE(a, 0.5, 0.1);
		forget();
		run(SECOND);
		SHARE(a, 0.5, 0.03);
	}
}

static void maximum(void **state)
{
	unsigned int a, b;

	(void)state;
	begin();
	a = turns_add(&t, 100, 30, false);
	add_program(a, BUSY, 1 * MS);
	run(5 * SECOND);
	OK(had[a] > 5 * SECOND * 27 / 100 && had[a] < 5 * SECOND * 33 / 100);
	/* Also beside another one, whose share is then larger. */
	b = add_vm(100, 1, 1 * MS);
	run(SECOND);
	forget();
	run(10 * SECOND);
	SHARE(a, 0.3, 0.03);
	SHARE(b, 0.7, 0.03);
}

/* Alone nothing is charged, and nobody looks. */
static void alone(void **state)
{
	unsigned int a, b;

	(void)state;
	begin();
	a = add_vm(100, 2, 1 * MS);
	b = add_vm(100, 1, 1 * MS);
	program[2].way = OFF;
	run(SECOND);
	OK(t.vm[a].order[TURNS_GPU] == TURNS_FREE && t.vm[a].order[TURNS_UP] == TURNS_FREE);
	OK(t.vm[b].order[TURNS_GPU] == TURNS_RING);
	OK(!t.shared && !t.vm[a].share[TURNS_GPU].had_ns);
	program[2].way = BUSY;
	run(100 * MS);
	OK(t.shared && t.vm[a].order[TURNS_GPU] != TURNS_FREE);
	program[2].way = OFF;
	run(200 * MS);
	OK(!t.shared && t.vm[a].order[TURNS_GPU] == TURNS_FREE);
}

/* Who says that it has work, and has none, costs the others little and gains nothing. */
static void liars(void **state)
{
	static const enum way ways[] = {STOPPED, LIAR};
	unsigned int a, b, i;

	(void)state;
	for (i = 0; i < 2; i++) {
		begin();
		a = add_vm(100, 1, 1 * MS);
		b = turns_add(&t, 100, 0, false);
		add_program(b, ways[i], 1 * MS);
		run(SECOND);
		forget();
		run(10 * SECOND);
		OK(had[a] > 10 * SECOND * 97 / 100);
		/* When it really works again, it has its share. */
		program[1].way = BUSY;
		run(SECOND);
		forget();
		run(10 * SECOND);
		SHARE(b, 0.5, 0.05);
	}
}

/* A VM whose page says that its work never ends is charged for it. */
static void endless_work(void **state)
{
	unsigned int a;

	(void)state;
	begin();
	a = add_vm(100, 1, 1 * MS);
	add_vm(100, 1, 10 * SECOND);
	run(SECOND);
	forget();
	run(10 * SECOND);
	/* The driver gives each half of the time; ours cannot take a kernel off the GPU. */
	SHARE(a, 0.5, 0.05);
}

static void noise(void **state)
{
	unsigned int a, i;

	(void)state;
	begin();
	a = add_vm(100, 1, 1 * MS);
	add_vm(100, 1, 1 * MS);
	run(SECOND);
	/* VMs whose pages say that 63 sessions are at work, and who are not. */
	for (i = 0; i < 10; i++)
		add_program(turns_add(&t, 1, 0, false), NOISE, 0);
	run(SECOND);
	forget();
	run(5 * SECOND);
	SHARE(a, 0.5, 0.03);
	/* Each of the ten has half a percent of the time, and does nothing with it. */
	OK(had[a] + had[a + 1] > 5 * SECOND * 92 / 100);
}

static void clock_jumps(void **state)
{
	unsigned int a, i;

	(void)state;
	begin();
	a = add_vm(100, 1, 1 * MS);
	add_vm(100, 3, 1 * MS);
	for (i = 0; i < 20; i++) {
		run(500 * MS);
		now += i % 3 == 0 ? 3600 * SECOND : i % 3 == 1 ? 1 * SECOND : 0;
		/* Also back: it is not the clock of the day, but a VM host may do that. */
		if (i % 5 == 4)
			now -= 200 * MS;
		slice_end = now;
	}
	SHARE(a, 0.5, 0.05);
}

/* A broker on a busy host looks when it can. */
static void late_looks(void **state)
{
	unsigned int a, n;

	(void)state;
	begin();
	a = add_vm(100, 1, MS / 2);
	add_vm(700, 1, MS / 2);
	run(100 * MS);
	for (n = 0; n < 4000; n++) {
		uint64_t end = now + (uint64_t)rand() % (50 * MS);

		for (; now < end; now += STEP) {
			submit(&program[0]);
			submit(&program[1]);
			run_gpu();
		}
		look();
	}
	SHARE(a, 0.125, 0.03);
}

/* The broker looks late, and the VM that had work then has none: it must ring when it has again. */
static void late_look(void **state)
{
	unsigned int a, b;

	(void)state;
	begin();
	a = add_vm(100, 1, 1 * MS);
	b = add_vm(100, 1, 1 * MS);
	run(100 * MS);
	program[0].flight = 0;
	program[0].wants = false;
	now += 2 * TURNS_CALM;
	look();
	OK(t.alone == b);
	OK(t.vm[a].order[TURNS_GPU] == TURNS_RING);
	run(100 * MS);
	forget();
	run(SECOND);
	SHARE(a, 0.5, 0.03);
}

/* VMs come and go, and nobody waits for longer than the others' turns. */
static void many_that_come_and_go(void **state)
{
	static uint64_t since[TURNS_VMS];
	uint64_t longest = 0;
	unsigned int i, k;

	(void)state;
	begin();
	for (i = 0; i < PROGRAMS; i++)
		add_vm(100, 1, 1 * MS);
	for (k = 0; k < 4000; k++) {
		i = (unsigned int)rand() % PROGRAMS;
		if (k < 3000 && !program[i].flight) {
			if (t.vm[program[i].vm].there) {
				turns_remove(&t, program[i].vm);
				program[i].way = OFF;
				program[i].wants = false;
				since[i] = 0;
			} else {
				program[i].vm = turns_add(&t, 100, 0, false);
				program[i].way = BUSY;
			}
		}
		run(2 * MS);
		for (i = 0; i < PROGRAMS; i++) {
			if (program[i].flight || program[i].way == OFF || !since[i])
				since[i] = now;
			if (now - since[i] > longest)
				longest = now - since[i];
		}
	}
	printf("the longest wait beside up to 63 others: %.0f ms\n", (double)longest / MS);
	/* 64 turns of twice a quantum, and as much for those who came back meanwhile. */
	OK(longest < 2 * 64 * 2 * TURNS_QUANTUM);
	for (i = 0; i < TURNS_VMS; i++)
		if (t.vm[i].there)
			turns_remove(&t, i);
	OK(!t.top);
	for (i = 0; i < TURNS_VMS; i++)
		OK(turns_add(&t, 1, 0, false) == i);
	OK(turns_add(&t, 1, 0, false) == TURNS_NONE);
}

/* The kinds have turns of their own: a VM that copies and one that computes do not wait. */
static void kinds(void **state)
{
	unsigned int a, b, k;

	(void)state;
	begin();
	a = turns_add(&t, 100, 0, false);
	b = turns_add(&t, 100, 0, false);
	for (k = 0; k < 1000; k++) {
		t.vm[a].use[TURNS_GPU] = (struct turns_use){.wants = 1, .running = k > 2};
		t.vm[b].use[TURNS_UP] = (struct turns_use){.wants = 1, .running = k > 2};
		turns_look(&t, now += TURNS_TICK);
		if (k < 2)
			continue;
		OK(t.vm[a].order[TURNS_GPU] == TURNS_GO);
		OK(t.vm[b].order[TURNS_UP] == TURNS_GO);
		OK(t.vm[a].order[TURNS_DOWN] == TURNS_RING);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_do_not_count),
		cmocka_unit_test(weights),
		cmocka_unit_test(long_kernels),
		cmocka_unit_test(work_goes_on),
		cmocka_unit_test(short_work_is_served_at_once),
		cmocka_unit_test(a_burst_of_work),
		cmocka_unit_test(interactive_has_its_share),
		cmocka_unit_test(a_share_that_is_not_used),
		cmocka_unit_test(maximum),
		cmocka_unit_test(alone),
		cmocka_unit_test(liars),
		cmocka_unit_test(endless_work),
		cmocka_unit_test(noise),
		cmocka_unit_test(clock_jumps),
		cmocka_unit_test(late_looks),
		cmocka_unit_test(late_look),
		cmocka_unit_test(many_that_come_and_go),
		cmocka_unit_test(kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* What is said about a guest, and no more of it than somebody may want to read. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#include "qcu-device/complain.h"

#define INTERVAL_NS 1000000000ull

/*
 * The time until which what has been said is paid for, at one interval for each message. It may be
 * ahead of the clock by COMPLAIN_BURST intervals.
 */
struct account {
	_Atomic uint64_t paid_ns;
	_Atomic uint64_t left_out;
};

static struct account own;
static struct account *account = &own;
static bool always;

bool complain_share(void)
{
	void *p = mmap(NULL, sizeof(*account), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);

	if (p == MAP_FAILED)
		return false;
	account = p;
	return true;
}

void complain_always(void)
{
	always = true;
}

static bool may_speak(void)
{
	struct timespec t;
	uint64_t now, paid, next;

	if (always)
		return true;
	clock_gettime(CLOCK_MONOTONIC, &t);
	now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	paid = atomic_load(&account->paid_ns);
	do {
		next = (paid > now ? paid : now) + INTERVAL_NS;
		if (next - now > COMPLAIN_BURST * INTERVAL_NS)
			return false;
	} while (!atomic_compare_exchange_weak(&account->paid_ns, &paid, next));
	return true;
}

void complain(const char *format, ...)
{
	unsigned long long left_out;
	char text[512];
	va_list ap;

	if (!may_speak()) {
		atomic_fetch_add(&account->left_out, 1);
		return;
	}
	left_out = atomic_exchange(&account->left_out, 0);
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (left_out)
		fprintf(stderr, "qcu-device: %llu messages about the guest are left out\n",
			left_out);
	fprintf(stderr, "qcu-device: %s\n", text);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QCU_SOFT_CHECK=1: remembers which bytes of device memory have ever been written, one bit for
 * each. Kernels, copies and fills set the bits, and an allocation clears them. A copy within device
 * memory also copies the bits. The PTX machine asks for them; ptx_check.c says how it uses the
 * answer.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "qcu-device/soft/gpu/soft.h"

bool soft_check_wanted(void)
{
	const char *text = getenv("QCU_SOFT_CHECK");

	return text && !strcmp(text, "1");
}

/* Reserves address space for all bits. A page is allocated when a bit in it is set. */
bool soft_check_init(struct soft_mem *m)
{
	void *p = mmap(NULL, m->size / 8, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	m->written = p == MAP_FAILED ? NULL : p;
	return m->written;
}

void soft_check_fini(struct soft_mem *m)
{
	if (m->written)
		munmap(m->written, m->size / 8);
	m->written = NULL;
}

/*
 * Sets or clears bits [lo, hi) of one byte. Atomic, because threads of other blocks may change the
 * other bits of the byte at the same time.
 */
static void put_bits(uint8_t *p, unsigned int lo, unsigned int hi, bool on)
{
	uint8_t mask = (uint8_t)((1u << hi) - (1u << lo));

	if (on)
		__atomic_fetch_or(p, mask, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(p, (uint8_t)~mask, __ATOMIC_RELAXED);
}

void soft_check_set_written(struct soft_mem *m, uint64_t addr, uint64_t len, bool on)
{
	uint64_t at = addr - m->base, end = at + len;

	if (!m->written || !len)
		return;
	if (at >> 3 == (end - 1) >> 3) {
		put_bits(m->written + (at >> 3), at & 7, (unsigned int)(((end - 1) & 7) + 1), on);
		return;
	}
	if (at & 7) {
		put_bits(m->written + (at >> 3), at & 7, 8, on);
		at = (at | 7) + 1;
	}
	memset(m->written + (at >> 3), on ? 0xff : 0, (end >> 3) - (at >> 3));
	if (end & 7)
		put_bits(m->written + (end >> 3), 0, end & 7, on);
}

static bool is_written(const struct soft_mem *m, uint64_t addr)
{
	uint64_t at = addr - m->base;

	return __atomic_load_n(m->written + (at >> 3), __ATOMIC_RELAXED) >> (at & 7) & 1;
}

static struct soft_mem *mem_of(struct be *be, uint64_t addr)
{
	unsigned int i;

	for (i = 0; i < be->gpus; i++)
		if (addr - be->dev[i].mem.base < be->dev[i].mem.size)
			return &be->dev[i].mem;
	return NULL;
}

/*
 * Call after a copy. Bytes that were never written at the source count as never written at the
 * destination, too.
 */
void soft_check_copied(struct be *be, const void *to, const void *from, uint64_t len)
{
	uint64_t dst = (uintptr_t)to, src = (uintptr_t)from, i, run;
	struct soft_mem *m = be->check ? mem_of(be, dst) : NULL;
	struct soft_mem *n = m ? mem_of(be, src) : NULL;

	if (!m)
		return;
	if (!n) {
		soft_check_set_written(m, dst, len, true);
		return;
	}
	for (i = 0; i < len; i += run) {
		bool on = is_written(n, src + i);

		for (run = 1; i + run < len && is_written(n, src + i + run) == on; run++)
			;
		soft_check_set_written(m, dst + i, run, on);
	}
}

void soft_check_filled(struct be *be, uint64_t addr, uint64_t len)
{
	struct soft_mem *m = be->check ? mem_of(be, addr) : NULL;

	if (m)
		soft_check_set_written(m, addr, len, true);
}

/*
 * True if any of the bytes has been written. Host memory that kernels use in place is not tracked
 * and counts as written.
 */
bool soft_env_written(void *ctx, uint64_t addr, size_t len)
{
	const struct soft_mem *m = &((struct soft_device *)ctx)->mem;
	size_t i;

	if (addr - m->base >= m->size)
		return true;
	for (i = 0; i < len; i++)
		if (is_written(m, addr + i))
			return true;
	return false;
}

void soft_env_wrote(void *ctx, uint64_t addr, size_t len)
{
	struct soft_mem *m = &((struct soft_device *)ctx)->mem;

	if (addr - m->base < m->size)
		soft_check_set_written(m, addr, len, true);
}

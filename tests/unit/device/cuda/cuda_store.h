/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A backend with a stand-in for CUDA, and a store for what leaves its device, DEV. The test says
 * what must be true after something has left: its leave() calls leave_to_store().
 */
#ifndef QCU_TEST_CUDA_STORE_H
#define QCU_TEST_CUDA_STORE_H

#include <string.h>
#include <sys/mman.h>

#include "tests/unit/slow_store.h"
#include "tests/unit/device/cuda/cuda_stand_in.h"

static struct be be;
static uint64_t store_room, stored;

static void *store_take(void *ctx, uint64_t bytes)
{
	void *p;

	assert_ptr_equal(ctx, &stored);
	assert_true(bytes && bytes <= BE_PIECE);
	if (bytes > store_room - stored)
		return NULL;
	p = cu_store_take(&be, bytes);
	if (!p)
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(p != MAP_FAILED);
	stored += bytes;
	return p;
}

static void store_give(void *ctx, void *p, uint64_t bytes)
{
	assert_ptr_equal(ctx, &stored);
	assert_true(bytes <= stored);
	stored -= bytes;
	if (cuda_is_lent(p))
		cu_store_give(&be, p, bytes);
	else
		munmap(p, bytes);
}

static int leave_to_store(uint64_t want, uint64_t *left)
{
	struct be_store s = {.ctx = &stored, .take = store_take, .give = store_give};
	int ret;

	if (slow.each)
		s = slow_store(&s);
	ret = cu_mem_leave(&be, DEV, want, &s, left);
	/* The backend has a copy of it. */
	memset(&s, 0, sizeof(s));
	return ret;
}

static int leave(uint64_t want, uint64_t *left);

static uint64_t must_leave(uint64_t want)
{
	uint64_t left;

	assert_int_equal(leave(want, &left), 0);
	return left;
}

static uint64_t must_return(void)
{
	uint64_t back;

	assert_int_equal(cu_mem_return(&be, DEV, &back), 0);
	assert_int_equal(cu_mem_away(&be, DEV), 0);
	assert_int_equal(stored, 0);
	return back;
}

#endif

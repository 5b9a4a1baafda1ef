// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Device memory at addresses of the caller's choice: does the backend give just these addresses,
 * also after others, and again after the memory was taken away? Do kernels, copies and memsets work
 * there?
 */
#include <string.h>
#include <sys/mman.h>

#include "qcu-device/backend/cuda/check/be_check.h"

#define ROOM ((uint64_t)QCU_MANAGED_ALIGN)
#define LEN  ((uint64_t)3 * QCU_MANAGED_GRAIN)
#define AT   (QCU_WINDOW_BASE + ((uint64_t)1 << 30))

/* The addresses are reserved without access, as in a mirror. */
static bool reserve_without_access(uint64_t addr, int how)
{
	void *p = mmap((void *)addr, ROOM, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | how, -1, 0);

	return check(p == (void *)addr, "addresses at %#llx are reserved",
		     (unsigned long long)addr);
}

static bool reserve_and_place(struct check *c, uint64_t addr)
{
	return reserve_without_access(addr, MAP_FIXED_NOREPLACE) &&
	       want(CALL(c, mem_place, 0, addr, LEN, ROOM), 0, "mem_place");
}

static void unplace(struct check *c, uint64_t addr)
{
	want(CALL(c, mem_unplace, 0, addr, LEN, ROOM), 0, "mem_unplace");
	reserve_without_access(addr, MAP_FIXED);
	munmap((void *)addr, ROOM);
}

static void down(struct check *c, uint64_t addr, size_t len)
{
	want(CALL(c, copy_d2h, c->window, addr, len, c->legacy), 0, "copy_d2h from there");
	want(CALL(c, stream_sync, c->legacy), 0, "stream_sync");
}

static void use_placed_memory(struct check *c, uint64_t a, uint64_t b)
{
	struct be_kernel *k = check_kernel(c, "check_host");
	struct {
		uint64_t words;
		uint32_t n;
	} p = {a, LEN / 4};
	struct be_launch l = {.grid = {(uint32_t)(LEN / 4 / 256), 1, 1},
			      .block = {256, 1, 1},
			      .params = &p,
			      .param_bytes = 12};
	struct be_memset set = {
		.dst = b + 100, .width = LEN - 100, .height = 1, .value = 0x5a, .elem = 1};
	uint32_t *w = c->window, i, bad = 0;

	memset(w, 0xff, LEN);
	down(c, a, LEN);
	for (i = 0; i < LEN / 4; i++)
		bad += w[i] != 0;
	check(!bad, "placed memory is zero");
	for (i = 0; i < LEN / 4; i++)
		w[i] = i ^ 0x5555;
	want(CALL(c, copy_h2d, a, w, LEN, c->legacy), 0, "copy_h2d to there");
	want(CALL(c, launch, k, &l, c->legacy), 0, "launch on placed memory");
	down(c, a, LEN);
	for (i = bad = 0; i < LEN / 4; i++)
		bad += w[i] != (i ^ 0x5555) * 2654435761u + i;
	check(!bad, "a kernel works on placed memory");
	want(CALL(c, mem_set, &set, c->legacy), 0, "mem_set there");
	want(CALL(c, copy_d2d, b, a, 100, 0, c->legacy), 0, "copy_d2d between placed memory");
	down(c, b, LEN);
	check(w[0] == 0x5555u * 2654435761u && w[25] == 0x5a5a5a5a && w[LEN / 4 - 1] == 0x5a5a5a5a,
	      "both have arrived");
}

void check_placed(struct check *c)
{
	if (!reserve_and_place(c, AT))
		return;
	if (reserve_and_place(c, AT + 2 * ROOM)) {
		use_placed_memory(c, AT, AT + 2 * ROOM);
		unplace(c, AT);
		/* The same addresses once more, and between others. */
		if (reserve_and_place(c, AT)) {
			use_placed_memory(c, AT, AT + 2 * ROOM);
			unplace(c, AT + 2 * ROOM);
		}
	}
	unplace(c, AT);
	want(CALL(c, mem_unplace, 0, AT + 4 * ROOM, LEN, ROOM) != 0, 1, "nothing is placed there");
}

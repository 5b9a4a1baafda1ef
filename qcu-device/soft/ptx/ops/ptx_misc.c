// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Handlers that are neither arithmetic nor memory: packing, predicates from comparisons, clocks,
 * and queries about addresses and about other lanes.
 */
#include <sched.h>
#include <string.h>
#include <time.h>

#include "qcu-device/soft/ptx/ops/ptx_handlers.h"
#include "qcu-device/soft/ptx/ops/ptx_fp.h"

void ptx_h_nop(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	(void)w;
	(void)in;
	(void)m;
}

/*
 * nanosleep: a thread that waits lets the others run, and those of other launches and devices, too:
 * what it waits for may be done by a host thread that has no processor. If there are no others in
 * the block and the time is worth it, the host thread sleeps.
 */
#define SLEEP_MIN 50000u   /* ns */
#define SLEEP_MAX 1000000u /* PTX's own limit */
void ptx_h_yield(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	struct timespec t = {0};

	w->yield = true;
	if (m)
		t.tv_nsec = ((const uint32_t *)ptx_at(w, in->a))[__builtin_ctz(m)];
	if (w->blk->nwarps > 1 || t.tv_nsec < SLEEP_MIN) {
		sched_yield();
		return;
	}
	if (t.tv_nsec > SLEEP_MAX)
		t.tv_nsec = SLEEP_MAX;
	nanosleep(&t, NULL);
}

/* Pairs with the fences and atomics of other blocks, grids, and the host. */
void ptx_h_fence(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	(void)in;
	(void)m;
	w->blk->sync++;
	atomic_thread_fence(memory_order_seq_cst);
}

void ptx_h_activemask(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	uint32_t *d = ptx_at(w, in->d);

	for (uint32_t r = m; r; r &= r - 1)
		d[ptx_lane(r)] = m;
}

/* Packs the elements of xops side by side into d. */
void ptx_h_pack(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint32_t *x = w->blk->grid->mod->xops + in->x;
	unsigned int whole = ptx_type_size((enum ptx_type)in->type2), each = whole / in->nx;
	unsigned int stride = each < 2 ? 2 : each;
	uint8_t *d = ptx_at(w, in->d);

	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);
		uint8_t v[16];

		for (unsigned int k = 0; k < in->nx; k++)
			memcpy(v + k * each, (uint8_t *)ptx_at(w, x[k]) + i * stride, each);
		memcpy(d + i * whole, v, whole);
	}
}

void ptx_h_unpack(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint32_t *x = w->blk->grid->mod->xops + in->x;
	unsigned int whole = ptx_type_size((enum ptx_type)in->type2), each = whole / in->nx;
	unsigned int stride = each < 2 ? 2 : each;
	const uint8_t *a = ptx_at(w, in->a);

	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);
		uint8_t v[16], wide[8] = {0};

		memcpy(v, a + i * whole, whole);
		for (unsigned int k = 0; k < in->nx; k++) {
			if (!x[k])
				continue;
			memcpy(wide, v + k * each, each);
			memcpy((uint8_t *)ptx_at(w, x[k]) + i * stride, wide, stride);
		}
	}
}

void ptx_h_mov128(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint8_t *a = ptx_at(w, in->a);
	uint8_t *d = ptx_at(w, in->d);

	for (uint32_t r = m; r; r &= r - 1)
		memmove(d + ptx_lane(r) * 16, a + ptx_lane(r) * 16, 16);
}

/*
 * mapa: the address of a variable in another block of the cluster. A cluster has only one block
 * here.
 */
void ptx_h_mapa(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint32_t *rank = ptx_at(w, in->b), *a = ptx_at(w, in->a);
	const uint64_t *a64 = ptx_at(w, in->a);
	uint32_t *d = ptx_at(w, in->d);
	uint64_t *d64 = ptx_at(w, in->d);

	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);

		if (rank[i]) {
			ptx_fault(w, i, PTX_ILLEGAL_ADDRESS, "mapa: no block %u in the cluster",
				  rank[i]);
			return;
		}
		if (in->type == T_B64)
			d64[i] = a64[i];
		else
			d[i] = a[i];
	}
}

static uint64_t now_ns(clockid_t c)
{
	struct timespec t;

	clock_gettime(c, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* %clock counts nanoseconds, as on a GPU with a clock of 1 GHz. */
void ptx_h_time(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	unsigned int sp = in->sub + SP_COUNT;
	bool timer = sp == PTX_SP_TIMER || sp == PTX_SP_TIMER_LO || sp == PTX_SP_TIMER_HI;
	uint64_t t = now_ns(timer ? CLOCK_REALTIME : CLOCK_MONOTONIC);
	uint64_t *d64 = ptx_at(w, in->d);
	uint32_t *d = ptx_at(w, in->d);

	if (sp == PTX_SP_CLOCK64 || sp == PTX_SP_TIMER) {
		for (uint32_t r = m; r; r &= r - 1)
			d64[ptx_lane(r)] = t;
		return;
	}
	if (sp == PTX_SP_CLOCK_HI || sp == PTX_SP_TIMER_HI)
		t >>= 32;
	for (uint32_t r = m; r; r &= r - 1)
		d[ptx_lane(r)] = (uint32_t)t;
}

static bool test_property(double v, bool subnormal, unsigned int op)
{
	switch (op) {
	case 0:
		return isfinite(v);
	case 1:
		return isinf(v);
	case 2:
		return !isnan(v);
	case 3:
		return isnan(v);
	case 4:
		return isfinite(v) && v != 0 && !subnormal;
	default:
		return subnormal;
	}
}

void ptx_h_testp(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	uint32_t *d = ptx_at(w, in->d), res = 0;
	const double *a64 = ptx_at(w, in->a);
	const float *a32 = ptx_at(w, in->a);

	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);
		double v = in->type == T_F32 ? (double)a32[i] : a64[i];
		bool sub = v != 0 && fabs(v) < (in->type == T_F32 ? 0x1p-126 : 0x1p-1022);

		res |= (uint32_t)test_property(v, sub, in->sub) << i;
	}
	*d = (*d & ~m) | res;
}

static uint32_t with_pred(struct ptx_warp *w, const struct ptx_insn *in, uint32_t r)
{
	switch (in->flags & (IF_AND | IF_OR | IF_XOR)) {
	case IF_AND:
		return r & ptx_pred_c(w, in);
	case IF_OR:
		return r | ptx_pred_c(w, in);
	case IF_XOR:
		return r ^ ptx_pred_c(w, in);
	default:
		return r;
	}
}

void ptx_setp_combine(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m, uint32_t r)
{
	uint32_t *d = ptx_at(w, in->d), *q, inv = ~r;

	r = with_pred(w, in, r);
	inv = with_pred(w, in, inv);
	*d = (*d & ~m) | (r & m);
	if (in->d2) {
		q = ptx_at(w, in->d2);
		*q = (*q & ~m) | (inv & m);
	}
}

static bool compare_floats(float x, float y, unsigned int cmp)
{
	bool unord = x != x || y != y;

	switch (cmp) {
	case CMP_EQ:
		return x == y;
	case CMP_NE:
		return !unord && x != y;
	case CMP_LT:
		return x < y;
	case CMP_LE:
		return x <= y;
	case CMP_GT:
		return x > y;
	case CMP_GE:
		return x >= y;
	case CMP_EQU:
		return unord || x == y;
	case CMP_NEU:
		return unord || x != y;
	case CMP_LTU:
		return unord || x < y;
	case CMP_LEU:
		return unord || x <= y;
	case CMP_GTU:
		return unord || x > y;
	case CMP_GEU:
		return unord || x >= y;
	case CMP_NUM:
		return !unord;
	default:
		return unord;
	}
}

/* setp on pairs: d is the result of the lower elements, d2 that of the upper ones. */
void ptx_h_setp2(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	uint32_t *d = ptx_at(w, in->d), *q = ptx_at(w, in->d2), lo = 0, hi = 0;
	const uint32_t *a = ptx_at(w, in->a), *b = ptx_at(w, in->b);

	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);
		bool v[2];

		for (unsigned int k = 0; k < 2; k++) {
			uint16_t x = (uint16_t)(a[i] >> k * 16), y = (uint16_t)(b[i] >> k * 16);

			if (in->flags & IF_FTZ) {
				x &= x & 0x7c00 ? 0xffff : 0x8000;
				y &= y & 0x7c00 ? 0xffff : 0x8000;
			}
			if (in->type == T_BF16X2)
				v[k] = compare_floats(fp_bf16_widen(x), fp_bf16_widen(y), in->sub);
			else
				v[k] = compare_floats(fp_half_widen(x), fp_half_widen(y), in->sub);
		}
		lo |= (uint32_t)v[0] << i;
		hi |= (uint32_t)v[1] << i;
	}
	lo = with_pred(w, in, lo);
	hi = with_pred(w, in, hi);
	*d = (*d & ~m) | (lo & m);
	*q = (*q & ~m) | (hi & m);
}

static bool in_const(const struct ptx_module *m, uint64_t a)
{
	for (const struct ptx_var *v = m->vars; v; v = v->next)
		if (v->space == SPACE_CONST && a >= v->addr && a - v->addr < v->size)
			return true;
	return false;
}

void ptx_h_isspacep(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint64_t *a = ptx_at(w, in->a);
	uint32_t *d = ptx_at(w, in->d), res = 0;

	for (uint32_t r = m; r; r &= r - 1) {
		uint64_t v = a[ptx_lane(r)], top = v >> PTX_SPACE_SHIFT;
		bool is;

		switch (in->space) {
		case SPACE_SHARED:
			is = top == PTX_SHARED_BASE >> PTX_SPACE_SHIFT;
			break;
		case SPACE_LOCAL:
			is = top == PTX_LOCAL_BASE >> PTX_SPACE_SHIFT;
			break;
		case SPACE_PARAM:
			is = top == PTX_PARAM_BASE >> PTX_SPACE_SHIFT;
			break;
		case SPACE_CONST:
			is = !top && in_const(w->blk->grid->mod, v);
			break;
		default:
			is = !top && !in_const(w->blk->grid->mod, v);
		}
		res |= (uint32_t)is << ptx_lane(r);
	}
	*d = (*d & ~m) | res;
}

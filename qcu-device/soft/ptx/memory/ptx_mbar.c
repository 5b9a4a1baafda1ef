// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mbarrier: a barrier that is an object of 64 bits in shared memory. We choose the meaning of the
 * bits: a kernel only hands them back. All threads of a block run on one host thread, one after
 * another, so nothing here is atomic. Asynchronous copies complete when they are issued.
 */
#include <string.h>

#include "qcu-device/soft/ptx/memory/ptx_mem.h"

#define COUNT_MAX 0xfffffu /* the most arrivals, from the PTX manual */
#define TX_MAX	  0xfffff

struct barrier {
	uint32_t pending, expected;
	int32_t tx; /* bytes that have not come yet */
	unsigned int phase;
	bool valid;
};

static struct barrier unpack_mbarrier(uint64_t v)
{
	uint32_t tx = (uint32_t)(v >> 40) & 0x1fffff;

	return (struct barrier){
		.pending = v & COUNT_MAX,
		.expected = v >> 20 & COUNT_MAX,
		.tx = (int32_t)(tx << 11) >> 11,
		.phase = v >> 61 & 3,
		.valid = v >> 63,
	};
}

static uint64_t pack(const struct barrier *b)
{
	return b->pending | (uint64_t)b->expected << 20 | ((uint64_t)b->tx & 0x1fffff) << 40 |
	       (uint64_t)(b->phase & 3) << 61 | (uint64_t)b->valid << 63;
}

static void end_phase_if_due(struct barrier *b)
{
	if (b->pending || b->tx)
		return;
	b->pending = b->expected;
	b->phase++;
}

static bool transact(struct ptx_warp *w, unsigned int lane, struct barrier *b, int64_t bytes)
{
	int64_t tx = b->tx + bytes;

	if (tx > TX_MAX || tx < -TX_MAX) {
		ptx_fault(w, lane, PTX_TRAP, "mbarrier: %lld bytes are too many", (long long)tx);
		return false;
	}
	b->tx = (int32_t)tx;
	return true;
}

static bool arrive_at_mbarrier(struct ptx_warp *w, unsigned int lane, struct barrier *b, uint32_t n,
			       uint16_t how)
{
	if (!n || n > b->pending || (how & MBAR_DROP && n > b->expected)) {
		ptx_fault(w, lane, PTX_TRAP, "mbarrier: %u arrive where %u are expected", n,
			  b->pending);
		return false;
	}
	if (how & MBAR_NO_COMPLETE && n == b->pending) {
		ptx_fault(w, lane, PTX_TRAP, "mbarrier: .noComplete completes the phase");
		return false;
	}
	b->pending -= n;
	if (how & MBAR_DROP)
		b->expected -= n;
	end_phase_if_due(b);
	return true;
}

/* Does one lane's operation; its result goes to *res. False: a fault. */
static bool operate(struct ptx_warp *w, const struct ptx_insn *in, unsigned int lane, uint8_t *p,
		    uint64_t arg, uint64_t *res)
{
	struct barrier b;
	uint64_t v;

	memcpy(&v, p, 8);
	b = unpack_mbarrier(v);
	*res = v;
	if (in->sub != MBAR_INIT && !b.valid) {
		ptx_fault(w, lane, PTX_TRAP, "mbarrier is not initialised");
		return false;
	}
	switch (in->sub) {
	case MBAR_INIT:
		if (!arg || arg > COUNT_MAX) {
			ptx_fault(w, lane, PTX_TRAP, "mbarrier for %u arrivals", (uint32_t)arg);
			return false;
		}
		b = (struct barrier){
			.pending = (uint32_t)arg, .expected = (uint32_t)arg, .valid = true};
		break;
	case MBAR_INVAL:
		b = (struct barrier){0};
		break;
	case MBAR_EXPECT_TX:
		if (!transact(w, lane, &b, (int64_t)arg))
			return false;
		if (in->flags & MBAR_ARRIVE && !arrive_at_mbarrier(w, lane, &b, 1, in->flags))
			return false;
		break;
	case MBAR_COMPLETE_TX:
		if (!transact(w, lane, &b, -(int64_t)arg))
			return false;
		end_phase_if_due(&b);
		break;
	case MBAR_ARRIVE_ON:
		if (!arrive_at_mbarrier(w, lane, &b, (uint32_t)arg, in->flags))
			return false;
		break;
	case MBAR_TEST:
		*res = in->flags & MBAR_PARITY ? (b.phase & 1) != (arg & 1)
					       : b.phase != unpack_mbarrier(arg).phase;
		return true;
	default: /* MBAR_TRACK: the copies are complete, so they add an arrival and take it away */
		return true;
	}
	if (b.phase != unpack_mbarrier(v).phase)
		w->blk->sync++;
	v = pack(&b);
	memcpy(p, &v, 8);
	return true;
}

void ptx_h_mbarrier(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint64_t *b64 = ptx_at(w, in->b);
	const uint32_t *b32 = ptx_at(w, in->b);
	uint64_t *d = in->d ? ptx_at(w, in->d) : NULL;
	uint32_t *pred = in->d2 ? ptx_at(w, in->d2) : NULL;
	bool wide = in->type == T_B64;

	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);
		uint8_t *p = ptx_resolve_lane(w, in, i, 8, in->sub != MBAR_TEST);
		uint64_t res;

		if (!p)
			return;
		if (p < w->blk->shared || p >= w->blk->shared + w->blk->shared_bytes) {
			ptx_fault(w, i, PTX_ILLEGAL_ADDRESS, "mbarrier outside of shared memory");
			return;
		}
		if (!operate(w, in, i, p, wide ? b64[i] : b32[i], &res))
			return;
		if (d)
			d[i] = res;
		if (pred)
			*pred = (*pred & ~(1u << i)) | (uint32_t)(res & 1) << i;
		if (in->sub == MBAR_TEST && !res)
			w->yield = true;
	}
}

/* mbarrier.pending_count: reads the count from a state that an arrive returned. */
void ptx_h_mbarrier_count(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint64_t *a = ptx_at(w, in->a);
	uint32_t *d = ptx_at(w, in->d);

	for (uint32_t r = m; r; r &= r - 1)
		d[ptx_lane(r)] = unpack_mbarrier(a[ptx_lane(r)]).pending;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cp.async.bulk without tensors: a lane copies a range of 16-byte units between global and shared
 * memory. It copies at once, so groups of such copies are always complete. The builder emits the
 * transaction on the mbarrier as an instruction of its own.
 */
#include <string.h>

#include "qcu-device/soft/ptx/memory/ptx_mem.h"

#define UNIT 16u

/* The generic form of an address in global or shared memory. */
static uint64_t generic(uint64_t addr, bool shared)
{
	if (!shared)
		return addr;
	return PTX_SHARED_BASE + (addr > UINT32_MAX ? UINT32_MAX : addr);
}

static uint64_t read_address(struct ptx_warp *w, uint32_t ref, bool a32, int64_t imm,
			     unsigned int lane)
{
	if (a32)
		return (uint32_t)(((const uint32_t *)ptx_at(w, ref))[lane] + (uint32_t)imm);
	return ((const uint64_t *)ptx_at(w, ref))[lane] + (uint64_t)imm;
}

void ptx_bulk_range(struct ptx_warp *w, const struct ptx_insn *in, unsigned int lane, uint64_t *to,
		    uint64_t *from, uint32_t *len)
{
	const int64_t *imm = ptx_at(w, in->c);

	*from = generic(read_address(w, in->a, in->flags & IF_A32, in->imm, lane),
			in->space == SPACE_SHARED);
	*to = generic(read_address(w, in->b, in->sub & BULK_TO_A32, imm[lane], lane),
		      in->sub & BULK_TO_SHARED);
	*len = ((const uint32_t *)ptx_at(w, in->e))[lane];
}

void ptx_h_bulk(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int lane = ptx_lane(r);
		uint64_t to, from;
		uint32_t len;

		ptx_bulk_range(w, in, lane, &to, &from, &len);
		if (len % UNIT) {
			ptx_fault(w, lane, PTX_MISALIGNED_ADDRESS, "bulk copy of %u bytes", len);
			return;
		}
		for (uint32_t i = 0; i < len; i += UNIT) {
			const uint8_t *s = ptx_resolve_one(w, lane, from + i, UNIT, false);
			uint8_t *d = s ? ptx_resolve_one(w, lane, to + i, UNIT, true) : NULL;

			if (!d)
				return;
			memmove(d, s, UNIT);
		}
	}
}

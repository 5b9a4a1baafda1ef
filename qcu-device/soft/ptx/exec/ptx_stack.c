// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * alloca: memory on a thread's own stack that lives until the function returns, or until
 * stackrestore. Each lane has its own amount; the frame of a call starts behind the largest.
 */
#include "qcu-device/soft/ptx/exec/ptx_exec.h"

void ptx_h_alloca(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint64_t *size = ptx_at(w, in->a), align = (uint64_t)in->imm;
	struct ptx_frame *f = w->frame;
	uint64_t *d = ptx_at(w, in->d);

	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);
		uint64_t top = ptx_frame_top(f, i), at = (top + align - 1) & ~(align - 1);
		uint64_t limit = w->blk->stack_bytes;

		if (at > limit || size[i] > limit - at) {
			ptx_fault(w, i, PTX_STACK_OVERFLOW,
				  "stack overflow in alloca of %llu bytes",
				  (unsigned long long)size[i]);
			return;
		}
		f->dyn[i] += (uint32_t)(at + size[i] - top);
		d[i] = at;
	}
}

void ptx_h_stacksave(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	uint64_t *d = ptx_at(w, in->d);

	for (uint32_t r = m; r; r &= r - 1)
		d[ptx_lane(r)] = ptx_frame_top(w->frame, ptx_lane(r));
}

void ptx_h_stackrestore(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint64_t *a = ptx_at(w, in->a);
	struct ptx_frame *f = w->frame;

	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);
		uint64_t top = ptx_frame_top(f, i), bottom = top - f->dyn[i];

		if (a[i] < bottom || a[i] > top) {
			ptx_fault(w, i, PTX_TRAP, "stackrestore of what is not on the stack");
			return;
		}
		f->dyn[i] = (uint32_t)(a[i] - bottom);
	}
}

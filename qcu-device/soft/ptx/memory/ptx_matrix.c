// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ldmatrix, stmatrix and movmatrix: 8 x 8 matrices of 16-bit elements, spread over the lanes of a
 * warp. Lane i holds two elements of row i / 4, packed: number 2 * (i % 4) and the next one.
 */
#include <string.h>

#include "qcu-device/soft/ptx/memory/ptx_mem.h"

#define SIDE 8u

/* The element of row r and column c, read from the lane that holds it. */
static uint16_t held(const uint32_t *lane, unsigned int r, unsigned int c)
{
	return (uint16_t)(lane[r * 4 + c / 2] >> c % 2 * 16);
}

bool ptx_whole_warp(struct ptx_warp *w, uint32_t m)
{
	if ((m | w->dead) == PTX_FULL && !w->dead)
		return true;
	ptx_fault(w, ptx_lane(m), PTX_TRAP, "a matrix is moved by a part of a warp");
	return false;
}

void ptx_h_ldmatrix(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint32_t *x = w->blk->grid->mod->xops + in->x;
	uint16_t e[SIDE][SIDE];
	uint32_t out[4][PTX_LANES];

	if (!ptx_whole_warp(w, m))
		return;
	for (unsigned int k = 0; k < in->nx; k++) {
		for (unsigned int r = 0; r < SIDE; r++) {
			uint8_t *p = ptx_resolve_lane(w, in, k * SIDE + r, 16, false);

			if (!p)
				return;
			memcpy(e[r], p, 16);
		}
		for (unsigned int i = 0; i < PTX_LANES; i++) {
			unsigned int r = i / 4, c = i % 4 * 2;

			out[k][i] = in->sub ? e[c][r] | (uint32_t)e[c + 1][r] << 16
					    : e[r][c] | (uint32_t)e[r][c + 1] << 16;
		}
	}
	/* Written last: a destination may be the register with the address. */
	for (unsigned int k = 0; k < in->nx; k++)
		if (x[k])
			memcpy(ptx_at(w, x[k]), out[k], sizeof(out[k]));
}

void ptx_h_stmatrix(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint32_t *x = w->blk->grid->mod->xops + in->x;

	if (!ptx_whole_warp(w, m))
		return;
	for (unsigned int k = 0; k < in->nx; k++) {
		const uint32_t *v = ptx_at(w, x[k]);

		for (unsigned int r = 0; r < SIDE; r++) {
			uint8_t *p = ptx_resolve_lane(w, in, k * SIDE + r, 16, true);
			uint16_t row[SIDE];

			if (!p)
				return;
			for (unsigned int c = 0; c < SIDE; c++)
				row[c] = in->sub ? held(v, c, r) : held(v, r, c);
			memcpy(p, row, 16);
		}
	}
}

void ptx_h_movmatrix(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint32_t *a = ptx_at(w, in->a);
	uint32_t *d = ptx_at(w, in->d), v[PTX_LANES];

	if (!ptx_whole_warp(w, m))
		return;
	memcpy(v, a, sizeof(v));
	for (unsigned int i = 0; i < PTX_LANES; i++) {
		unsigned int r = i / 4, c = i % 4 * 2;

		d[i] = held(v, c, r) | (uint32_t)held(v, c + 1, r) << 16;
	}
}

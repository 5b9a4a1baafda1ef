// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Products of matrices by a whole warp: mma and wmma. The layouts are those that the PTX manual
 * gives for mma. It leaves those of wmma open: here a fragment of wmma is made of tiles of mma. So
 * each lane holds the same elements as on a GPU of capability 8.0.
 *
 * A GPU rounds the sums of floats in ways of its own. Here the products of small floats are exact,
 * they are added in double precision, and the sum is rounded once.
 */
#ifndef __clang__
#pragma GCC optimize("O3")
#endif
#include "qcu-device/soft/ptx/memory/ptx_mma.h"
#include "qcu-device/soft/ptx/memory/ptx_mem.h"
#include "qcu-device/soft/ptx/ops/ptx_fp.h"
#include "qcu-device/soft/ptx/ops/ptx_op_loop.h"

#define MOST 1024u /* elements of A or of B; bits count as words */
#define SUMS 256u  /* elements of C */

static const uint8_t elem_bits[E_COUNT] = {
	[E_F16] = 16, [E_BF16] = 16, [E_TF32] = 32, [E_F32] = 32, [E_F64] = 64,
	[E_E4M3] = 8, [E_E5M2] = 8,  [E_S8] = 8,    [E_U8] = 8,	  [E_S4] = 4,
	[E_U4] = 4,   [E_B1] = 1,    [E_S32] = 32,
};

unsigned int ptx_elem_bits(enum ptx_elem e)
{
	return elem_bits[e];
}

/* Elements in one register. The 32 bits of a register of .b1 count as one element. */
static unsigned int per_reg(enum ptx_elem e)
{
	return e == E_F64 || e == E_B1 ? 1 : 32 / elem_bits[e];
}

static unsigned int depth(const struct ptx_mma *s)
{
	return s->elem[MATRIX_A] == E_B1 ? s->k / 32u : s->k;
}

/* Registers without the copies that fragments of wmma have. */
static unsigned int real_regs(const struct ptx_mma *s, enum ptx_matrix matrix)
{
	unsigned int k = depth(s);
	unsigned int n = matrix == MATRIX_A   ? s->m * k
			 : matrix == MATRIX_B ? s->n * k
					      : s->m * s->n;

	return n / PTX_LANES / per_reg((enum ptx_elem)s->elem[matrix]);
}

unsigned int ptx_mma_regs(const struct ptx_mma *s, enum ptx_matrix matrix, uint16_t flags)
{
	if (flags & MMA_QUADS)
		return matrix <= MATRIX_B || s->elem[matrix] == E_F16 ? (matrix <= MATRIX_B ? 2 : 4)
								      : 8;
	if (flags & MMA_WMMA && matrix <= MATRIX_B && s->elem[matrix] == E_F16)
		return 8; /* some or all elements are there more than once */
	return real_regs(s, matrix);
}

struct matrix_index {
	unsigned int row, col;
};

/* Where in its matrix the element is that a lane holds in a register. */
static struct matrix_index index_of_element(const struct ptx_mma *s, enum ptx_matrix matrix,
					    unsigned int reg, unsigned int sub, unsigned int lane)
{
	unsigned int each = per_reg((enum ptx_elem)s->elem[matrix]), high = s->m > 8 ? 2 : 1;
	unsigned int g = lane / 4, t = lane % 4, tile, i;

	if (matrix == MATRIX_A) {
		unsigned int regs = high * (depth(s) / (4 * each));

		tile = reg / regs;
		i = reg % regs;
		return (struct matrix_index){tile * 16 + i % high * 8 + g,
					     i / high * 4 * each + t * each + sub};
	}
	if (matrix == MATRIX_B) {
		unsigned int regs = depth(s) / (4 * each);

		tile = reg / regs;
		i = reg % regs;
		return (struct matrix_index){i * 4 * each + t * each + sub, tile * 8 + g};
	}
	i = reg * each + sub;
	tile = i / (2 * high);
	i %= 2 * high;
	return (struct matrix_index){(s->m > 16 ? tile * 16 : 0) + i / 2 * 8 + g,
				     (s->m > 16 ? 0 : tile * 8) + t * 2 + i % 2};
}

static float e4m3(uint32_t u)
{
	uint32_t e = u >> 3 & 15, m = u & 7;
	float v = e ? ldexpf((float)(m + 8), (int)e - 10) : ldexpf((float)m, -9);

	if ((u & 0x7f) == 0x7f)
		return NAN;
	return u & 0x80 ? -v : v;
}

/* One element of a register: of type float, or an integer that a float holds exactly. */
static float decode_element(enum ptx_elem e, uint32_t reg, unsigned int sub)
{
	uint32_t u = reg >> sub * elem_bits[e] % 32;

	switch (e) {
	case E_F16:
		return fp_half_widen((uint16_t)u);
	case E_BF16:
		return fp_bf16_widen((uint16_t)u);
	case E_TF32:
		return f_from(reg & 0xffffe000u);
	case E_E4M3:
		return e4m3(u & 0xff);
	case E_E5M2:
		return fp_half_widen((uint16_t)(u << 8));
	case E_S8:
		return (int8_t)u;
	case E_U8:
		return (uint8_t)u;
	case E_S4:
		return (int8_t)(u << 4) >> 4;
	case E_U4:
		return u & 15;
	default:
		return f_from(reg);
	}
}

static const void *reg_at(struct ptx_warp *w, const struct ptx_insn *in, unsigned int i)
{
	return ptx_at(w, w->blk->grid->mod->xops[in->x + i]);
}

static void *dest_at(struct ptx_warp *w, const struct ptx_insn *in, unsigned int i)
{
	return ptx_at(w, w->blk->grid->mod->xops[in->x + i]);
}

bool ptx_mma_layout(struct ptx_mma_layout *y)
{
	for (unsigned int matrix = MATRIX_A; matrix <= MATRIX_D; matrix++) {
		enum ptx_elem e = (enum ptx_elem)y->s.elem[matrix];
		unsigned int regs = real_regs(&y->s, (enum ptx_matrix)matrix), each = per_reg(e);
		unsigned int width = matrix == MATRIX_A ? depth(&y->s) : y->s.n;

		if (regs * each > PTX_MMA_LANE_ELEMS)
			return false;
		for (unsigned int i = 0; i < regs * each; i++)
			for (unsigned int l = 0; l < PTX_LANES; l++) {
				struct matrix_index p = index_of_element(
					&y->s, (enum ptx_matrix)matrix, i / each, i % each, l);

				y->at[matrix][i][l] = (uint16_t)(p.row * width + p.col);
			}
	}
	return true;
}

/* ---- floats and small integers ---- */

struct product {
	double a[MOST], b[MOST], sum[SUMS];
};

/* One element of each lane's register. The loops have no branches, so they become vector code. */
static void decode_lanes(enum ptx_elem e, const uint32_t *v, unsigned int sub, double *out)
{
	unsigned int shift = sub * elem_bits[e] % 32;

	switch (e) {
	case E_F16:
		for (unsigned int l = 0; l < PTX_LANES; l++) {
			uint32_t u = v[l] >> shift, mag = (u & 0x7fff) << 13;
			float x = f_from(mag) * 0x1p112f;

			/* infinity and NaN */
			x = f_from(f_bits(x) | (mag >= 0x0f800000u ? 0x7f800000u : 0));
			out[l] = (double)f_from(f_bits(x) | (u & 0x8000) << 16);
		}
		break;
	case E_BF16:
		for (unsigned int l = 0; l < PTX_LANES; l++)
			out[l] = (double)f_from(v[l] >> shift << 16);
		break;
	case E_F32:
		for (unsigned int l = 0; l < PTX_LANES; l++)
			out[l] = (double)f_from(v[l]);
		break;
	case E_S32:
		for (unsigned int l = 0; l < PTX_LANES; l++)
			out[l] = (double)(int32_t)v[l];
		break;
	case E_S8:
		for (unsigned int l = 0; l < PTX_LANES; l++)
			out[l] = (double)(int8_t)(v[l] >> shift);
		break;
	default:
		for (unsigned int l = 0; l < PTX_LANES; l++)
			out[l] = (double)decode_element(e, v[l], sub);
	}
}

/* Reads the registers of a part, from number `first` on. */
static void read_matrix(struct ptx_warp *w, const struct ptx_insn *in,
			const struct ptx_mma_layout *y, enum ptx_matrix matrix, unsigned int first,
			double *to)
{
	enum ptx_elem e = (enum ptx_elem)y->s.elem[matrix];
	unsigned int regs = real_regs(&y->s, matrix), each = per_reg(e);
	double v[PTX_LANES];

	for (unsigned int i = 0; i < regs * each; i++) {
		decode_lanes(e, reg_at(w, in, first + i / each), i % each, v);
		for (unsigned int l = 0; l < PTX_LANES; l++)
			to[y->at[matrix][i][l]] = v[l];
	}
}

static void multiply(struct product *p, unsigned int m, unsigned int n, unsigned int k)
{
	for (unsigned int i = 0; i < m; i++)
		for (unsigned int j = 0; j < k; j++) {
			const double a = p->a[i * k + j], *b = p->b + j * n;
			double *sum = p->sum + i * n;

			PTX_IVDEP
			for (unsigned int c = 0; c < n; c++)
				sum[c] += a * b[c];
		}
}

static float clamp_magnitude(float v, float most)
{
	if (v != v)
		return 0.0f;
	return v > most ? most : v < -most ? -most : v;
}

static uint32_t round_float(double v, enum ptx_elem e, uint16_t flags)
{
	uint32_t u;

	if (e == E_F16) {
		u = fp_half_narrow(v, RND_N);
		if (flags & IF_SAT)
			u = fp_half_narrow((double)clamp_magnitude(fp_half_widen((uint16_t)u),
								   65504.0f),
					   RND_N);
		return u;
	}
	u = f_bits(f_canon((float)v));
	return flags & IF_SAT ? f_bits(clamp_magnitude(f_from(u), 0x1.fffffep127f)) : u;
}

/* The sums of integers are exact: they need less than 53 bits. */
static uint32_t round_int_sum(double v, uint16_t flags)
{
	int64_t x = (int64_t)v;

	if (flags & IF_SAT)
		x = x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : x;
	return (uint32_t)x;
}

static void product_of(struct ptx_warp *w, const struct ptx_insn *in,
		       const struct ptx_mma_layout *y)
{
	enum ptx_elem e = (enum ptx_elem)y->s.elem[MATRIX_D];
	unsigned int b = in->sub + ptx_mma_regs(&y->s, MATRIX_A, in->flags);
	unsigned int c = b + ptx_mma_regs(&y->s, MATRIX_B, in->flags), each = per_reg(e);
	struct product p;

	read_matrix(w, in, y, MATRIX_A, in->sub, p.a);
	read_matrix(w, in, y, MATRIX_B, b, p.b);
	read_matrix(w, in, y, MATRIX_C, c, p.sum);
	multiply(&p, y->s.m, y->s.n, y->s.k);
	for (unsigned int r = 0; r < in->sub; r++) {
		uint32_t *d = dest_at(w, in, r);

		for (unsigned int l = 0; l < PTX_LANES; l++) {
			uint32_t v = 0;

			for (unsigned int k = 0; k < each; k++) {
				double x = p.sum[y->at[MATRIX_D][r * each + k][l]];

				v |= (e == E_S32 ? round_int_sum(x, in->flags)
						 : round_float(x, e, in->flags))
				     << k * 16;
			}
			d[l] = v;
		}
	}
}

/* ---- double precision, and bits ---- */

static void product_of_doubles(struct ptx_warp *w, const struct ptx_insn *in,
			       const struct ptx_mma_layout *y)
{
	const struct ptx_mma *s = &y->s;
	unsigned int first = in->sub;
	double m[3][SUMS];

	for (unsigned int matrix = 0; matrix < 3; first += real_regs(s, (enum ptx_matrix)matrix++))
		for (unsigned int r = 0; r < real_regs(s, (enum ptx_matrix)matrix); r++) {
			const double *v = reg_at(w, in, first + r);

			for (unsigned int l = 0; l < PTX_LANES; l++)
				m[matrix][y->at[matrix][r][l]] = v[l];
		}
	for (unsigned int i = 0; i < s->m; i++)
		for (unsigned int k = 0; k < s->k; k++)
			for (unsigned int c = 0; c < s->n; c++)
				m[2][i * s->n + c] = fma(m[0][i * s->k + k], m[1][k * s->n + c],
							 m[2][i * s->n + c]);
	for (unsigned int r = 0; r < in->sub; r++) {
		double *d = dest_at(w, in, r);

		for (unsigned int l = 0; l < PTX_LANES; l++)
			d[l] = m[2][y->at[MATRIX_D][r][l]];
	}
}

static void product_of_bits(struct ptx_warp *w, const struct ptx_insn *in,
			    const struct ptx_mma_layout *y)
{
	const struct ptx_mma *s = &y->s;
	unsigned int words = depth(s), first = in->sub;
	uint32_t m[3][SUMS];

	for (unsigned int matrix = 0; matrix < 3; first += real_regs(s, (enum ptx_matrix)matrix++))
		for (unsigned int r = 0; r < real_regs(s, (enum ptx_matrix)matrix); r++) {
			const uint32_t *v = reg_at(w, in, first + r);

			for (unsigned int l = 0; l < PTX_LANES; l++)
				m[matrix][y->at[matrix][r][l]] = v[l];
		}
	for (unsigned int i = 0; i < s->m; i++)
		for (unsigned int c = 0; c < s->n; c++)
			for (unsigned int k = 0; k < words; k++) {
				uint32_t a = m[0][i * words + k], b = m[1][k * s->n + c];

				m[2][i * s->n + c] += (uint32_t)__builtin_popcount(
					in->flags & MMA_AND ? a & b : a ^ b);
			}
	for (unsigned int r = 0; r < in->sub; r++) {
		uint32_t *d = dest_at(w, in, r);

		for (unsigned int l = 0; l < PTX_LANES; l++)
			d[l] = m[2][y->at[MATRIX_D][r][l]];
	}
}

/* ---- m8n8k4 of f16: lanes 0 to 3 and 16 to 19 make one product, and so on ---- */

static struct matrix_index quad_index(enum ptx_matrix matrix, bool half, bool turned,
				      unsigned int i, unsigned int lane)
{
	unsigned int four = lane % 4, high = lane >= 16 ? 4 : 0;

	if (matrix == MATRIX_A)
		return turned ? (struct matrix_index){i + high, four}
			      : (struct matrix_index){four + high, i};
	if (matrix == MATRIX_B)
		return turned ? (struct matrix_index){four, i + high}
			      : (struct matrix_index){i, four + high};
	if (half)
		return (struct matrix_index){four + high, i};
	return (struct matrix_index){(lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)};
}

static void product_of_quads(struct ptx_warp *w, const struct ptx_insn *in, const struct ptx_mma *s)
{
	bool half_c = s->elem[MATRIX_C] == E_F16, half_d = s->elem[MATRIX_D] == E_F16;
	unsigned int first = in->sub, regs_c = half_c ? 4 : 8;
	float a[4][8][4], b[4][4][8];
	double sum[4][8][8];

	for (unsigned int l = 0; l < PTX_LANES; l++) {
		unsigned int q = l / 4 % 4;

		for (unsigned int i = 0; i < 4; i++) {
			const uint32_t *va = reg_at(w, in, first + i / 2);
			const uint32_t *vb = reg_at(w, in, first + 2 + i / 2);
			struct matrix_index pa =
				quad_index(MATRIX_A, false, in->flags & MMA_A_COL, i, l);
			struct matrix_index pb =
				quad_index(MATRIX_B, false, in->flags & MMA_B_ROW, i, l);

			a[q][pa.row][pa.col] = decode_element(E_F16, va[l], i % 2);
			b[q][pb.row][pb.col] = decode_element(E_F16, vb[l], i % 2);
		}
		for (unsigned int i = 0; i < 8; i++) {
			const uint32_t *v = reg_at(w, in, first + 4 + i * regs_c / 8);
			struct matrix_index p = quad_index(MATRIX_C, half_c, false, i, l);

			sum[q][p.row][p.col] = half_c ? decode_element(E_F16, v[l], i % 2)
						      : decode_element(E_F32, v[l], 0);
		}
	}
	for (unsigned int q = 0; q < 4; q++)
		for (unsigned int i = 0; i < 8; i++)
			for (unsigned int c = 0; c < 8; c++)
				for (unsigned int k = 0; k < 4; k++)
					sum[q][i][c] += (double)a[q][i][k] * (double)b[q][k][c];
	for (unsigned int r = 0; r < in->sub; r++) {
		uint32_t *d = dest_at(w, in, r);

		for (unsigned int l = 0; l < PTX_LANES; l++) {
			unsigned int q = l / 4 % 4, n = half_d ? 2 : 1;
			uint32_t v = 0;

			for (unsigned int k = 0; k < n; k++) {
				struct matrix_index p =
					quad_index(MATRIX_D, half_d, false, r * n + k, l);

				v |= round_float(sum[q][p.row][p.col],
						 (enum ptx_elem)s->elem[MATRIX_D], in->flags)
				     << k * 16;
			}
			d[l] = v;
		}
	}
}

void ptx_h_mma(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const struct ptx_mma_layout *y = (const void *)(uintptr_t)in->imm;

	if (!ptx_whole_warp(w, m))
		return;
	if (in->flags & MMA_QUADS)
		product_of_quads(w, in, &y->s);
	else if (y->s.elem[MATRIX_A] == E_F64)
		product_of_doubles(w, in, y);
	else if (y->s.elem[MATRIX_A] == E_B1)
		product_of_bits(w, in, y);
	else
		product_of(w, in, y);
}

/* ---- fragments in memory ---- */

static const struct ptx_mma *shape_of(struct ptx_warp *w, const struct ptx_insn *in)
{
	return (const void *)(uintptr_t) * (const uint64_t *)ptx_at(w, in->e);
}

/*
 * A unit is what lies in one piece in memory: an element, or all elements of a register if they are
 * smaller than a byte.
 */
static unsigned int units_per_reg(unsigned int bits)
{
	return bits < 8 || bits == 64 ? 1 : 32 / bits;
}

unsigned int ptx_wmma_units(struct ptx_warp *w, const struct ptx_insn *in, unsigned int *bytes)
{
	const struct ptx_mma *s = shape_of(w, in);
	enum ptx_matrix matrix = (enum ptx_matrix)(in->sub & 3);
	unsigned int bits = elem_bits[s->elem[matrix]];

	*bytes = bits < 8 ? 4 : bits / 8;
	return real_regs(s, matrix) * units_per_reg(bits);
}

uint64_t ptx_wmma_offset(struct ptx_warp *w, const struct ptx_insn *in, unsigned int unit,
			 unsigned int lane)
{
	const struct ptx_mma *s = shape_of(w, in);
	enum ptx_matrix matrix = (enum ptx_matrix)(in->sub & 3);
	unsigned int bits = elem_bits[s->elem[matrix]], each = units_per_reg(bits);
	struct matrix_index p = index_of_element(s, matrix, unit / each, unit % each, lane);
	bool by_column = in->sub & WMMA_BY_COLUMN;
	unsigned int rows = matrix == MATRIX_B ? s->k : s->m,
		     cols = matrix == MATRIX_A ? s->k : s->n;
	uint64_t line = by_column ? p.col : p.row, at = by_column ? p.row : p.col;
	uint64_t far = by_column ? rows : cols;

	if (in->b)
		far = ((const uint32_t *)ptx_at(w, in->b))[lane];
	if (bits == 1)
		at *= 32; /* indices of bits are counted in words */
	return (line * far + at) * bits / 8;
}

void ptx_h_wmma_load(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	unsigned int bytes, units = ptx_wmma_units(w, in, &bytes);
	unsigned int each = bytes < 4 ? 4 / bytes : 1, real = units / each;
	uint64_t out[16][PTX_LANES] = {{0}};

	if (!ptx_whole_warp(w, m))
		return;
	for (unsigned int i = 0; i < units; i++)
		for (unsigned int l = 0; l < PTX_LANES; l++) {
			uint64_t off = ptx_wmma_offset(w, in, i, l), v = 0;
			const uint8_t *p = ptx_resolve_off(w, in, l, off, bytes, false);

			if (!p)
				return;
			memcpy(&v, p, bytes);
			out[i / each][l] |= v << i % each * bytes * 8;
		}
	/* Written last: a destination may be the register with the address. */
	for (unsigned int r = 0; r < in->nx; r++) {
		uint32_t *d32 = dest_at(w, in, r);
		uint64_t *d64 = dest_at(w, in, r);

		for (unsigned int l = 0; l < PTX_LANES; l++)
			if (bytes == 8)
				d64[l] = out[r % real][l];
			else
				d32[l] = (uint32_t)out[r % real][l];
	}
}

void ptx_h_wmma_store(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	unsigned int bytes, units = ptx_wmma_units(w, in, &bytes);
	unsigned int each = bytes < 4 ? 4 / bytes : 1;

	if (!ptx_whole_warp(w, m))
		return;
	for (unsigned int i = 0; i < units; i++) {
		const uint32_t *v32 = reg_at(w, in, i / each);
		const uint64_t *v64 = reg_at(w, in, i / each);

		for (unsigned int l = 0; l < PTX_LANES; l++) {
			uint64_t v = bytes == 8 ? v64[l] : v32[l] >> i % each * bytes * 8;
			uint64_t off = ptx_wmma_offset(w, in, i, l);
			uint8_t *p = ptx_resolve_off(w, in, l, off, bytes, true);

			if (!p)
				return;
			memcpy(p, &v, bytes);
		}
	}
}

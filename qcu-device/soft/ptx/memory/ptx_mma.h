/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Multiplication of matrices that are spread over the lanes of a warp: mma and wmma.
 */
#ifndef QCU_SOFT_PTX_MMA_H
#define QCU_SOFT_PTX_MMA_H

#include "qcu-device/soft/ptx/base/ptx_int.h"

/* Types of elements. */
enum ptx_elem {
	E_NONE,
	E_F16,
	E_BF16,
	E_TF32,
	E_F32,
	E_F64,
	E_E4M3,
	E_E5M2,
	E_S8,
	E_U8,
	E_S4,
	E_U4,
	E_B1,
	E_S32,
	E_COUNT
};

enum ptx_matrix { MATRIX_A, MATRIX_B, MATRIX_C, MATRIX_D };

/* D = A * B + C, where A has m rows and k columns, and B has k rows and n columns. */
struct ptx_mma {
	uint8_t m, n;
	uint16_t k;
	uint8_t elem[4]; /* enum ptx_elem by enum ptx_matrix */
};

#define PTX_MMA_LANE_ELEMS 32u /* the most elements of a matrix that a lane holds */

/* A shape, with the index of each element of each lane in its matrix. */
struct ptx_mma_layout {
	struct ptx_mma s;
	struct ptx_mma_layout *next;
	uint16_t at[4][PTX_MMA_LANE_ELEMS][PTX_LANES];
};

/* For ptx_insn.flags, beside IF_SAT. */
#define MMA_QUADS 0x01u /* m8n8k4 of f16: four products, one for each quarter of the warp */
#define MMA_A_COL 0x02u /* of these: A is by columns */
#define MMA_B_ROW 0x04u
#define MMA_AND	  0x10u /* of bits: and instead of xor */
#define MMA_WMMA  0x20u /* fragments of wmma */

/* wmma.load and wmma.store, in ptx_insn.sub beside enum ptx_matrix. */
#define WMMA_BY_COLUMN 0x04u

unsigned int ptx_elem_bits(enum ptx_elem e);
/* How many registers of a lane hold a part of the matrices. */
unsigned int ptx_mma_regs(const struct ptx_mma *s, enum ptx_matrix matrix, uint16_t flags);

/* Fills y->at from y->s. False: no instruction has this shape. */
bool ptx_mma_layout(struct ptx_mma_layout *y);

/*
 * ptx_insn.x: first the registers of D, ptx_insn.sub of them, then those of A, B and C. imm: the
 * address of the layout.
 */
void ptx_h_mma(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);

/*
 * wmma.load and wmma.store. b: the distance of rows or columns; 0: they lie side by side. e: a
 * constant with the address of the shape.
 */
void ptx_h_wmma_load(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_wmma_store(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
/* How many accesses a lane makes, and where: *bytes each, at an offset from its address. */
unsigned int ptx_wmma_units(struct ptx_warp *w, const struct ptx_insn *in, unsigned int *bytes);
uint64_t ptx_wmma_offset(struct ptx_warp *w, const struct ptx_insn *in, unsigned int unit,
			 unsigned int lane);

#endif

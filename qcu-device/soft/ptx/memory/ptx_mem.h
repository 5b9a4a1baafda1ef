/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory as kernels see it: addresses, the heap, and the handlers of instructions that access it.
 */
#ifndef QCU_SOFT_PTX_MEM_H
#define QCU_SOFT_PTX_MEM_H

#include "qcu-device/soft/ptx/base/ptx_int.h"

/* ptx_addr.c: turns addresses into host pointers and checks them */
enum ptx_shape { SHAPE_FAULT, SHAPE_SCATTER, SHAPE_LINEAR, SHAPE_UNIFORM };
enum ptx_shape ptx_resolve(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m,
			   unsigned int size, bool write, uint8_t **p);
/* The address operand of one lane, as ptx_resolve() reads it; NULL after a fault. */
uint8_t *ptx_resolve_lane(struct ptx_warp *w, const struct ptx_insn *in, unsigned int lane,
			  unsigned int size, bool write);
/* The same, `off` bytes further. */
uint8_t *ptx_resolve_off(struct ptx_warp *w, const struct ptx_insn *in, unsigned int lane,
			 uint64_t off, unsigned int size, bool write);
uint8_t *ptx_resolve_one(struct ptx_warp *w, unsigned int lane, uint64_t addr, unsigned int size,
			 bool write);

/* ptx_heap.c: malloc() and free() in a kernel */
uint64_t ptx_heap_alloc(struct ptx_module *m, uint64_t size);
bool ptx_heap_free(struct ptx_module *m, uint64_t addr);
void ptx_heap_sweep(struct ptx_module *m, bool all);

/* ptx_mem.c */
void ptx_h_ld(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_ld_vec(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_st(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_st_vec(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_ld_area(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_st_area(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_ld_kparam(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_cp_async(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_ld128(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_st128(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
/* ptx_bulk.c. For ptx_insn.sub: where it copies to. */
#define BULK_TO_A32    1u
#define BULK_TO_SHARED 2u
void ptx_h_bulk(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_bulk_range(struct ptx_warp *w, const struct ptx_insn *in, unsigned int lane, uint64_t *to,
		    uint64_t *from, uint32_t *len);
/* ptx_mbar.c */
void ptx_h_mbarrier(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_mbarrier_count(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
/* ptx_matrix.c */
bool ptx_whole_warp(struct ptx_warp *w, uint32_t m);
void ptx_h_ldmatrix(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_stmatrix(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_movmatrix(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
/* ptx_atom.c */
void ptx_h_atom_vec(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_atom128(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_atom(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);

/* Operations of atom and red, in ptx_insn.sub. */
enum ptx_atom {
	ATOM_ADD,
	ATOM_MIN,
	ATOM_MAX,
	ATOM_INC,
	ATOM_DEC,
	ATOM_AND,
	ATOM_OR,
	ATOM_XOR,
	ATOM_EXCH,
	ATOM_CAS,
};

/* Operations on an mbarrier, in ptx_insn.sub. Their variants, MBAR_ARRIVE etc., are in flags. */
enum ptx_mbar_op {
	MBAR_INIT,
	MBAR_INVAL,
	MBAR_EXPECT_TX,
	MBAR_COMPLETE_TX,
	MBAR_ARRIVE_ON,
	MBAR_TEST,
	MBAR_TRACK, /* cp.async.mbarrier.arrive */
};
/* For ptx_insn.flags, which may also hold IF_A32. */
#define MBAR_ARRIVE	 0x01u /* expect_tx that also arrives */
#define MBAR_DROP	 0x02u
#define MBAR_NO_COMPLETE 0x04u
#define MBAR_PARITY	 0x08u

#endif

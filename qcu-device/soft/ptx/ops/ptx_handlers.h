/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Handlers that are not in the table of arithmetic operations.
 */
#ifndef QCU_SOFT_PTX_HANDLERS_H
#define QCU_SOFT_PTX_HANDLERS_H

#include "qcu-device/soft/ptx/ops/ptx_ops.h"

/* ptx_misc.c */
void ptx_h_pack(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_unpack(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_time(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_testp(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_isspacep(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_activemask(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_fence(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_nop(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_yield(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_mapa(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_mov128(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_setp2(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
/* ptx_cvt.c */
void ptx_h_cvt(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_cvt_pack(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_cvt_tf32(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_cvt_to_small(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_cvt_from_small(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_cvt_pair(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
/* ptx_video.c */
void ptx_h_video(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The modifiers of a video instruction, in a form that fits in ptx_insn.imm.
 */
#ifndef QCU_SOFT_PTX_VIDEO_H
#define QCU_SOFT_PTX_VIDEO_H

#include <stdint.h>

enum ptx_video_op {
	VIDEO_ADD,
	VIDEO_SUB,
	VIDEO_ABSDIFF,
	VIDEO_MIN,
	VIDEO_MAX,
	VIDEO_AVRG,
	VIDEO_SET,
	VIDEO_SHL,
	VIDEO_SHR,
	VIDEO_MAD,
};

enum ptx_video_second { SECOND_NONE, SECOND_ADD, SECOND_MIN, SECOND_MAX };

/* The byte or half word of an operand or result of a scalar instruction. */
enum ptx_video_selector {
	SELECT_ALL,
	SELECT_B0,
	SELECT_B1,
	SELECT_B2,
	SELECT_B3,
	SELECT_H0,
	SELECT_H1
};

struct ptx_video {
	uint64_t op : 4, second : 2, cmp : 4;
	uint64_t elements : 3; /* 1, 2 or 4 */
	uint64_t sat : 1, dsigned : 1, asigned : 1, bsigned : 1;
	uint64_t apart : 3, bpart : 3, dpart : 3;
	/*
	 * Packed instructions. asel, bsel: for each element, which element of (b:a) is its operand.
	 * mask: the elements that are written.
	 */
	uint64_t asel : 12, bsel : 12, mask : 4;
	uint64_t wrap : 1;				     /* vshl, vshr */
	uint64_t aneg : 1, bneg : 1, cneg : 1, plus_one : 1; /* vmad */
	uint64_t scale : 4;				     /* vmad: 0, 7 or 15 */
};
_Static_assert(sizeof(struct ptx_video) == 8, "fits in the immediate of an instruction");

#endif

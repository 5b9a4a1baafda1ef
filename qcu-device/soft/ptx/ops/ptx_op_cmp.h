/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * setp for every comparison and type; see ptx_ops.h for why this is a header. The result is a word
 * with one bit per lane. It is computed for all lanes; the mask selects the bits to store.
 */
#include "qcu-device/soft/ptx/ops/ptx_fp.h"
#include "qcu-device/soft/ptx/ops/ptx_op_loop.h"

#define B4(n) 1u << (n), 1u << ((n) + 1), 1u << ((n) + 2), 1u << ((n) + 3)
static const uint32_t lane_bit[PTX_LANES] = {B4(0),  B4(4),  B4(8),  B4(12),
					     B4(16), B4(20), B4(24), B4(28)};

#define SETP(name, T, e)                                                             \
	HANDLER(name)                                                                \
	{                                                                            \
		const T *a = ptx_at(w, in->a), *b = ptx_at(w, in->b);                \
		uint32_t r = 0, *d;                                                  \
		for (unsigned int i = 0; i < PTX_LANES; i++) {                       \
			const T x = a[i], y = b[i];                                  \
			r |= (e) ? lane_bit[i] : 0;                                  \
		}                                                                    \
		if (ptx_unlikely(in->d2 || in->flags & (IF_AND | IF_OR | IF_XOR))) { \
			ptx_setp_combine(w, in, m, r);                               \
			return;                                                      \
		}                                                                    \
		d = ptx_at(w, in->d);                                                \
		*d = (*d & ~m) | (r & m);                                            \
	}
/* With .ftz, and for small formats: `conv` converts the operands first. */
#define SETPC(name, T, conv, e)                                       \
	HANDLER(name)                                                 \
	{                                                             \
		const T *a = ptx_at(w, in->a), *b = ptx_at(w, in->b); \
		uint32_t r = 0;                                       \
		for (unsigned int i = 0; i < PTX_LANES; i++) {        \
			const float x = conv(a[i]), y = conv(b[i]);   \
			r |= (e) ? lane_bit[i] : 0;                   \
		}                                                     \
		ptx_setp_combine(w, in, m, r);                        \
	}

#define CMP_FLUSH(v)  f_flush(v)
#define CMP_HALF(v)   fp_half_widen(in->flags &IF_FTZ && !((v)&0x7c00) ? (v)&0x8000 : (v))
#define UNORD(x, y)   ((x) != (x) || (y) != (y))
#define ORDERED(x, y) ((x) == (x) && (y) == (y))
#define SETP_INT(c, e)                    \
	SETP(setp_##c##_u16, uint16_t, e) \
	SETP(setp_##c##_u32, uint32_t, e) \
	SETP(setp_##c##_u64, uint64_t, e)
#define SETP_SINT(c, e)                  \
	SETP(setp_##c##_s16, int16_t, e) \
	SETP(setp_##c##_s32, int32_t, e) \
	SETP(setp_##c##_s64, int64_t, e)
#define SETP_FLT(c, e)                               \
	SETP(setp_##c##_f32, float, e)               \
	SETP(setp_##c##_f64, double, e)              \
	SETPC(setp_##c##_f32x, float, CMP_FLUSH, e)  \
	SETPC(setp_##c##_f16, uint16_t, CMP_HALF, e) \
	SETPC(setp_##c##_bf16, uint16_t, fp_bf16_widen, e)

SETP_INT(eq, x == y)
SETP_INT(ne, x != y)
SETP_INT(lt, x < y)
SETP_INT(le, x <= y)
SETP_INT(gt, x > y)
SETP_INT(ge, x >= y)
SETP_SINT(lt, x < y)
SETP_SINT(le, x <= y)
SETP_SINT(gt, x > y)
SETP_SINT(ge, x >= y)
SETP_FLT(eq, x == y)
SETP_FLT(ne, x<y || x> y)
SETP_FLT(lt, x < y)
SETP_FLT(le, x <= y)
SETP_FLT(gt, x > y)
SETP_FLT(ge, x >= y)
SETP_FLT(equ, !(x < y || x > y))
SETP_FLT(neu, x != y)
SETP_FLT(ltu, !(x >= y))
SETP_FLT(leu, !(x > y))
SETP_FLT(gtu, !(x <= y))
SETP_FLT(geu, !(x < y))
SETP_FLT(num, ORDERED(x, y))
SETP_FLT(nan, UNORD(x, y))

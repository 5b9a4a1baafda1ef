/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a handler walks the lanes. If all live lanes run, it is a plain loop over 32 elements, which
 * the compiler turns into vector code. This loop also computes lanes that have ended; nothing reads
 * their results. Otherwise the handler visits the set bits of the mask.
 */
#ifndef QCU_SOFT_PTX_OP_LOOP_H
#define QCU_SOFT_PTX_OP_LOOP_H

#include "qcu-device/soft/ptx/ops/ptx_ops.h"

/* A register may be both source and destination, but lanes never depend on each other. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed" /* not every loop can be vector code */
#define PTX_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define PTX_IVDEP _Pragma("GCC ivdep")
#endif

#define FOR_LANES(...)                                                 \
	do {                                                           \
		if (ptx_likely((m | w->dead) == PTX_FULL)) {           \
			PTX_IVDEP                                      \
			for (unsigned int i = 0; i < PTX_LANES; i++) { \
				__VA_ARGS__                            \
			}                                              \
		} else {                                               \
			for (uint32_t r_ = m; r_; r_ &= r_ - 1) {      \
				const unsigned int i = ptx_lane(r_);   \
				__VA_ARGS__                            \
			}                                              \
		}                                                      \
	} while (0)

#define HANDLER(name) static void name(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)

/* Instructions of one, two and three sources; `e` is the result as an expression of x, y, z. */
#define OP1(name, D, T, e)                                   \
	HANDLER(name)                                        \
	{                                                    \
		D *d = ptx_at(w, in->d);                     \
		const T *a = ptx_at(w, in->a);               \
		FOR_LANES(const T x = a[i]; d[i] = (D)(e);); \
	}
#define OP2(name, D, T, U, e)                                                  \
	HANDLER(name)                                                          \
	{                                                                      \
		D *d = ptx_at(w, in->d);                                       \
		const T *a = ptx_at(w, in->a);                                 \
		const U *b = ptx_at(w, in->b);                                 \
		FOR_LANES(const T x = a[i]; const U y = b[i]; d[i] = (D)(e);); \
	}
#define OP3(name, D, T, U, V, e)                                                                 \
	HANDLER(name)                                                                            \
	{                                                                                        \
		D *d = ptx_at(w, in->d);                                                         \
		const T *a = ptx_at(w, in->a);                                                   \
		const U *b = ptx_at(w, in->b);                                                   \
		const V *c = ptx_at(w, in->c);                                                   \
		FOR_LANES(const T x = a[i]; const U y = b[i]; const V z = c[i]; d[i] = (D)(e);); \
	}

#endif

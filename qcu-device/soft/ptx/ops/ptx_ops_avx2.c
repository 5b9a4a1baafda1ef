// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The same handlers for processors with AVX2 and FMA: 8 lanes per register, and fused multiply-add
 * as one instruction. Only ptx_load() may pick this table, after it has checked the processor.
 */
#include <math.h>
#include <string.h>
#include <xmmintrin.h>

#include "qcu-device/soft/ptx/ops/ptx_ops.h"

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,bmi,bmi2,lzcnt,popcnt"))), \
			     apply_to = function)
#else
#pragma GCC optimize("O3")
#pragma GCC target("avx2,fma,bmi,bmi2,lzcnt,popcnt")
#endif

#define PTX_OPS_NAME ptx_ops_avx2
#include "qcu-device/soft/ptx/ops/ptx_ops_table.h"

#ifdef __clang__
#pragma clang attribute pop
#endif

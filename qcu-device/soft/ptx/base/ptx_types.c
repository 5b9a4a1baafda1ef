// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The types of PTX, with names and sizes.
 */
#include <string.h>

#include "qcu-device/soft/ptx/base/ptx_int.h"

static const struct {
	const char *name;
	uint8_t size;
} types[T_COUNT] = {
	[T_NONE] = {"", 0},	      [T_PRED] = {"pred", 1},	  [T_B8] = {"b8", 1},
	[T_U8] = {"u8", 1},	      [T_S8] = {"s8", 1},	  [T_B16] = {"b16", 2},
	[T_U16] = {"u16", 2},	      [T_S16] = {"s16", 2},	  [T_F16] = {"f16", 2},
	[T_BF16] = {"bf16", 2},	      [T_B32] = {"b32", 4},	  [T_U32] = {"u32", 4},
	[T_S32] = {"s32", 4},	      [T_F32] = {"f32", 4},	  [T_F16X2] = {"f16x2", 4},
	[T_U16X2] = {"u16x2", 4},     [T_BF16X2] = {"bf16x2", 4}, [T_S16X2] = {"s16x2", 4},
	[T_B64] = {"b64", 8},	      [T_U64] = {"u64", 8},	  [T_S64] = {"s64", 8},
	[T_F64] = {"f64", 8},	      [T_B128] = {"b128", 16},	  [T_TF32] = {"tf32", 4},
	[T_F32X2] = {"f32x2", 8},     [T_E4M3X2] = {"e4m3x2", 2}, [T_E5M2X2] = {"e5m2x2", 2},
	[T_E2M3X2] = {"e2m3x2", 2},   [T_E3M2X2] = {"e3m2x2", 2}, [T_E2M1X2] = {"e2m1x2", 1},
	[T_UE8M0X2] = {"ue8m0x2", 2},
};

unsigned int ptx_type_size(enum ptx_type t)
{
	return types[t].size;
}

const char *ptx_type_name(enum ptx_type t)
{
	return types[t].name;
}

bool ptx_type_float(enum ptx_type t)
{
	switch (t) {
	case T_F16:
	case T_BF16:
	case T_F32:
	case T_F16X2:
	case T_BF16X2:
	case T_F64:
		return true;
	default:
		return false;
	}
}

bool ptx_type_signed(enum ptx_type t)
{
	return t == T_S8 || t == T_S16 || t == T_S32 || t == T_S64 || t == T_S16X2;
}

enum ptx_type ptx_type_from(const char *s, size_t n)
{
	for (int i = 1; i < T_COUNT; i++)
		if (strlen(types[i].name) == n && !memcmp(types[i].name, s, n))
			return (enum ptx_type)i;
	return T_NONE;
}

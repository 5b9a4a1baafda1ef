// SPDX-License-Identifier: GPL-2.0-or-later
/* Tensor maps, which the driver's own functions encode for its device. */
#include <string.h>

#include "qcu-device/backend/cuda/be_cuda.h"

static int tiled(struct be *be, CUtensorMap *map, const struct qcu_tensor_msg *t)
{
	PFN_cuTensorMapEncodeTiled_v12000 encode;
	int ret = cu_driver_function(be, "cuTensorMapEncodeTiled", &encode);

	return ret ? ret
		   : (int)encode(map, (CUtensorMapDataType)t->type, t->rank,
				 (void *)(uintptr_t)t->addr, (const cuuint64_t *)t->dim,
				 (const cuuint64_t *)t->stride, t->box, t->step,
				 (CUtensorMapInterleave)t->interleave,
				 (CUtensorMapSwizzle)t->swizzle,
				 (CUtensorMapL2promotion)t->promotion,
				 (CUtensorMapFloatOOBfill)t->fill);
}

static int im2col(struct be *be, CUtensorMap *map, const struct qcu_tensor_msg *t)
{
	PFN_cuTensorMapEncodeIm2col_v12000 encode;
	int ret = cu_driver_function(be, "cuTensorMapEncodeIm2col", &encode);

	return ret ? ret
		   : (int)encode(map, (CUtensorMapDataType)t->type, t->rank,
				 (void *)(uintptr_t)t->addr, (const cuuint64_t *)t->dim,
				 (const cuuint64_t *)t->stride, t->lower, t->upper, t->channels,
				 t->pixels, t->step, (CUtensorMapInterleave)t->interleave,
				 (CUtensorMapSwizzle)t->swizzle,
				 (CUtensorMapL2promotion)t->promotion,
				 (CUtensorMapFloatOOBfill)t->fill);
}

static int im2col_wide(struct be *be, CUtensorMap *map, const struct qcu_tensor_msg *t)
{
	PFN_cuTensorMapEncodeIm2colWide_v12080 encode;
	int ret = cu_driver_function(be, "cuTensorMapEncodeIm2colWide", &encode);

	return ret ? ret
		   : (int)encode(map, (CUtensorMapDataType)t->type, t->rank,
				 (void *)(uintptr_t)t->addr, (const cuuint64_t *)t->dim,
				 (const cuuint64_t *)t->stride, t->lower[0], t->upper[0],
				 t->channels, t->pixels, t->step,
				 (CUtensorMapInterleave)t->interleave,
				 (CUtensorMapIm2ColWideMode)t->mode, (CUtensorMapSwizzle)t->swizzle,
				 (CUtensorMapL2promotion)t->promotion,
				 (CUtensorMapFloatOOBfill)t->fill);
}

static int replace_tensor_address(struct be *be, CUtensorMap *map, const struct qcu_tensor_msg *t)
{
	PFN_cuTensorMapReplaceAddress_v12000 replace;
	int ret = cu_driver_function(be, "cuTensorMapReplaceAddress", &replace);

	memcpy(map, t->map, sizeof(*map));
	return ret ? ret : (int)replace(map, (void *)(uintptr_t)t->addr);
}

int cu_tensor_map(struct be *be, unsigned int dev, const struct qcu_tensor_msg *t, void *to)
{
	CUtensorMap map;
	int ret = cu_use(be, dev);

	_Static_assert(sizeof(map) == QCU_TENSOR_MAP_BYTES, "a tensor map");
	if (ret)
		return ret;
	switch (t->what) {
	case QCU_TENSOR_TILED:
		ret = tiled(be, &map, t);
		break;
	case QCU_TENSOR_IM2COL:
		ret = im2col(be, &map, t);
		break;
	case QCU_TENSOR_IM2COL_WIDE:
		ret = im2col_wide(be, &map, t);
		break;
	default:
		ret = replace_tensor_address(be, &map, t);
	}
	if (!ret)
		memcpy(to, &map, sizeof(map));
	return ret;
}

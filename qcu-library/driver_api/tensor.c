// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tensor maps: the device encodes them. Each is a value of 128 bytes that the program keeps. */
#include <string.h>

#include "qcu-library/api/compiling.h"
#include "qcu-library/driver_base/driver.h"

#define ALIGNMENT 64u

_Static_assert(sizeof(CUtensorMap) == QCU_TENSOR_MAP_BYTES, "a tensor map");

/* What all kinds of maps have. */
struct tensor {
	CUtensorMapDataType type;
	cuuint32_t rank;
	void *address;
	const cuuint64_t *dims, *strides;
	const cuuint32_t *steps;
};

static cudaError_t make_tensor_map(CUtensorMap *map, struct qcu_tensor_msg *t)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_TENSOR_MAP);
	cudaError_t err = qcul_ready();

	cmd.tensor_map.buf.addr = (uint64_t)(uintptr_t)t;
	cmd.tensor_map.buf.len = sizeof(*t);
	if (!err)
		err = qcul_send(&cmd, 1);
	if (!err && qcul_result(QCU_RESULT_DATA, map, sizeof(*map), true) != sizeof(*map))
		err = cudaErrorUnknown;
	return err;
}

static bool good(const CUtensorMap *map)
{
	return map && (uintptr_t)map % ALIGNMENT == 0;
}

static cudaError_t begin_tensor_msg(struct qcu_tensor_msg *t, const CUtensorMap *map,
				    const struct tensor *x)
{
	uint32_t i;

	if (!good(map) || !x->rank || x->rank > QCU_TENSOR_DIMS || !x->dims || !x->steps ||
	    !x->strides)
		return cudaErrorInvalidValue;
	t->type = x->type;
	t->rank = x->rank;
	t->addr = (uint64_t)(uintptr_t)x->address;
	for (i = 0; i < x->rank; i++) {
		t->dim[i] = x->dims[i];
		t->step[i] = x->steps[i];
	}
	for (i = 0; i + 1 < x->rank; i++)
		t->stride[i] = x->strides[i];
	return cudaSuccess;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
				void *address, const cuuint64_t *dims, const cuuint64_t *strides,
				const cuuint32_t *box, const cuuint32_t *steps,
				CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
				CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	const struct tensor x = {type, rank, address, dims, strides, steps};
	struct qcu_tensor_msg t = {
		.what = QCU_TENSOR_TILED,
		.interleave = interleave,
		.swizzle = swizzle,
		.promotion = promotion,
		.fill = fill,
	};
	cudaError_t err = box ? begin_tensor_msg(&t, map, &x) : cudaErrorInvalidValue;

	if (!err)
		memcpy(t.box, box, rank * sizeof(*box));
	return QCUL_RUNTIME(err ? err : make_tensor_map(map, &t));
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
				 void *address, const cuuint64_t *dims, const cuuint64_t *strides,
				 const int *lower, const int *upper, cuuint32_t channels,
				 cuuint32_t pixels, const cuuint32_t *steps,
				 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
				 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	const struct tensor x = {type, rank, address, dims, strides, steps};
	struct qcu_tensor_msg t = {
		.what = QCU_TENSOR_IM2COL,
		.channels = channels,
		.pixels = pixels,
		.interleave = interleave,
		.swizzle = swizzle,
		.promotion = promotion,
		.fill = fill,
	};
	cudaError_t err =
		lower && upper && rank >= 3 ? begin_tensor_msg(&t, map, &x) : cudaErrorInvalidValue;

	/* The corners have no channel and no batch. */
	if (!err) {
		memcpy(t.lower, lower, (rank - 2) * sizeof(*lower));
		memcpy(t.upper, upper, (rank - 2) * sizeof(*upper));
	}
	return QCUL_RUNTIME(err ? err : make_tensor_map(map, &t));
}

CUresult cuTensorMapEncodeIm2colWide(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
				     void *address, const cuuint64_t *dims,
				     const cuuint64_t *strides, int lower, int upper,
				     cuuint32_t channels, cuuint32_t pixels,
				     const cuuint32_t *steps, CUtensorMapInterleave interleave,
				     CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
				     CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	const struct tensor x = {type, rank, address, dims, strides, steps};
	struct qcu_tensor_msg t = {
		.what = QCU_TENSOR_IM2COL_WIDE,
		.channels = channels,
		.pixels = pixels,
		.lower = {lower},
		.upper = {upper},
		.interleave = interleave,
		.mode = mode,
		.swizzle = swizzle,
		.promotion = promotion,
		.fill = fill,
	};
	cudaError_t err = begin_tensor_msg(&t, map, &x);

	return QCUL_RUNTIME(err ? err : make_tensor_map(map, &t));
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
	struct qcu_tensor_msg t = {
		.what = QCU_TENSOR_MOVE,
		.addr = (uint64_t)(uintptr_t)address,
	};

	if (good(map))
		memcpy(t.map, map, sizeof(*map));
	return QCUL_RUNTIME(good(map) ? make_tensor_map(map, &t) : cudaErrorInvalidValue);
}

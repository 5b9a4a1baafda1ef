// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory filled with bytes, or with values of two or four bytes. Widths are numbers of values. */
#include "qcu-library/copy/copy.h"
#include "qcu-library/driver_api/sync.h"

static cudaError_t fill_with_values(CUdeviceptr to, size_t pitch, unsigned int value,
				    unsigned int elem, size_t width, size_t height,
				    cudaStream_t stream)
{
	const struct qcul_fill f = {
		.dst = qcul_driver_ptr(to),
		.pitch = pitch,
		.width = width * elem,
		.height = height,
		.value = value,
		.elem = elem,
	};

	if (to % elem || (height > 1 && pitch % elem) || width > SIZE_MAX / elem)
		return cudaErrorInvalidValue;
	return qcul_done(qcul_fill(&f, stream));
}

BOTH(cuMemsetD8_v2, (CUdeviceptr to, unsigned char value, size_t count),
     fill_with_values(to, 0, value, 1, count, 1, stream))
BOTH(cuMemsetD16_v2, (CUdeviceptr to, unsigned short value, size_t count),
     fill_with_values(to, 0, value, 2, count, 1, stream))
BOTH(cuMemsetD32_v2, (CUdeviceptr to, unsigned int value, size_t count),
     fill_with_values(to, 0, value, 4, count, 1, stream))
BOTH(cuMemsetD2D8_v2,
     (CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height),
     fill_with_values(to, pitch, value, 1, width, height, stream))
BOTH(cuMemsetD2D16_v2,
     (CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height),
     fill_with_values(to, pitch, value, 2, width, height, stream))
BOTH(cuMemsetD2D32_v2,
     (CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height),
     fill_with_values(to, pitch, value, 4, width, height, stream))

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
	return QCUL_RUNTIME(fill_with_values(to, 0, value, 1, count, 1, stream));
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream)
{
	return QCUL_RUNTIME(fill_with_values(to, 0, value, 2, count, 1, stream));
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream)
{
	return QCUL_RUNTIME(fill_with_values(to, 0, value, 4, count, 1, stream));
}

CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
			   size_t height, CUstream stream)
{
	return QCUL_RUNTIME(fill_with_values(to, pitch, value, 1, width, height, stream));
}

CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
			    size_t height, CUstream stream)
{
	return QCUL_RUNTIME(fill_with_values(to, pitch, value, 2, width, height, stream));
}

CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
			    size_t height, CUstream stream)
{
	return QCUL_RUNTIME(fill_with_values(to, pitch, value, 4, width, height, stream));
}

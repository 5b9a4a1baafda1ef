/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sizes of scalars of cuBLAS whose type is a parameter: for the shim, and for what the mirror
 * checks. The types are NVIDIA's, by number, because this file is also read without NVIDIA's
 * headers. A size of 0: no such type.
 */
#ifndef QCULIB_CUBLAS_H
#define QCULIB_CUBLAS_H

#include "qcucmd_fields.h"

/* type: cudaDataType */
static inline __u64 qcu_cublas_size(int type)
{
	switch (type) {
	case 3:	 /* CUDA_R_8I */
	case 8:	 /* CUDA_R_8U */
	case 28: /* CUDA_R_8F_E4M3 */
	case 29: /* CUDA_R_8F_E5M2 */
		return 1;
	case 2:	 /* CUDA_R_16F */
	case 14: /* CUDA_R_16BF */
	case 20: /* CUDA_R_16I */
	case 22: /* CUDA_R_16U */
	case 7:	 /* CUDA_C_8I */
	case 9:	 /* CUDA_C_8U */
		return 2;
	case 0:	 /* CUDA_R_32F */
	case 10: /* CUDA_R_32I */
	case 12: /* CUDA_R_32U */
	case 6:	 /* CUDA_C_16F */
	case 15: /* CUDA_C_16BF */
		return 4;
	case 1:	 /* CUDA_R_64F */
	case 24: /* CUDA_R_64I */
	case 26: /* CUDA_R_64U */
	case 4:	 /* CUDA_C_32F */
		return 8;
	case 5: /* CUDA_C_64F */
		return 16;
	}
	return 0;
}

/*
 * The scalars of a product that computes in this way (cublasComputeType_t), and whose result has
 * this type (cudaDataType).
 */
static inline __u64 qcu_cublas_scalar(int compute, int result)
{
	const int complex_result = result == 4 || result == 5;

	switch (compute) {
	case 64: /* CUBLAS_COMPUTE_16F */
	case 65: /* CUBLAS_COMPUTE_16F_PEDANTIC */
		return 2;
	case 72: /* CUBLAS_COMPUTE_32I */
	case 73: /* CUBLAS_COMPUTE_32I_PEDANTIC */
		return 4;
	case 70: /* CUBLAS_COMPUTE_64F */
	case 71: /* CUBLAS_COMPUTE_64F_PEDANTIC */
	case 79: /* CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT */
		return complex_result ? 16 : 8;
	}
	/* All others compute in single precision. */
	return complex_result ? 8 : 4;
}

#endif

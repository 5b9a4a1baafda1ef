/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernels, as cudaLaunchKernel takes them. Each type has a module of its own (reduce.cu), so
 * that a program loads only those that it uses.
 */
#ifndef QCCL_KERNELS_H
#define QCCL_KERNELS_H

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, NVIDIA's number). Beside layout.h: one struct qccl_work is their parameter. */
#define QCCL_TYPES(X) \
	X(int8, 0)    \
	X(uint8, 1)   \
	X(int32, 2)   \
	X(uint32, 3)  \
	X(int64, 4)   \
	X(uint64, 5)  \
	X(float16, 6) \
	X(float32, 7) \
	X(float64, 8) \
	X(bfloat16, 9)

#define X(name, number) const void *qccl_kernel_##name(void);
QCCL_TYPES(X)
#undef X
const void *qccl_kernel_relay(void); /* struct qccl_work */
const void *qccl_kernel_few(void);   /* struct qccl_few */
const void *qccl_kernel_many(void);  /* struct qccl_many */

#ifdef __cplusplus
}
#endif

#endif

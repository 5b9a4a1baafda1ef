// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The second unit of memory_check.cu: its lines must be reported with its own file name.
 */
__device__ int second_unit(int *s, int i)
{
	return s[i];
}

__global__ void reads_shared(int *out)
{
	__shared__ int s[128];

	if (threadIdx.x < 64)
		s[threadIdx.x] = threadIdx.x;
	__syncthreads();
	out[threadIdx.x] = s[threadIdx.x]; // line 17: the upper half was never written
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernels that be_check launches: each shows one thing that a backend must get right.
 */
#include <cstdio>

struct mixed {
	double scale;
	char tag;
	int add[3];
};

__device__ int check_table[64];
__constant__ int check_factor;

/* Parameters of every size, so that a wrong layout gives a wrong result. */
extern "C" __global__ void check_params(float *out, const float *in, int n, char c, mixed m,
					short s)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = in[i] * (float)m.scale + c + m.tag + m.add[i % 3] + s;
}

extern "C" __global__ void check_none()
{
}

/* Variables of the module. */
extern "C" __global__ void check_vars(int *out)
{
	out[threadIdx.x] = check_table[threadIdx.x] * check_factor;
}

/* Memory of the host, in place. */
extern "C" __global__ void check_host(unsigned int *words, unsigned int n)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		words[i] = words[i] * 2654435761u + i;
}

/* An array through a texture, and another one through a surface, in place. */
extern "C" __global__ void check_texture(unsigned int *out, cudaTextureObject_t t,
					 unsigned int width, unsigned int n)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = tex2D<unsigned int>(t, i % width + 0.5f, i / width + 0.5f);
}

extern "C" __global__ void check_surface(cudaSurfaceObject_t s, unsigned int width, unsigned int n)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		surf2Dwrite(surf2Dread<unsigned int>(s, i % width * 4, i / width) * 5 + 1, s,
			    i % width * 4, i / width);
}

/* Dynamic shared memory and a barrier. */
extern "C" __global__ void check_shared(int *out, int n)
{
	extern __shared__ int tile[];

	tile[threadIdx.x] = threadIdx.x * 3;
	__syncthreads();
	out[threadIdx.x] = tile[n - 1 - threadIdx.x];
}

/* One that comes too early or twice changes the result. */
extern "C" __global__ void check_step(unsigned int *p, unsigned int n)
{
	*p = *p * 5 + n;
}

extern "C" __global__ void check_print(int n)
{
	printf("check %d of %d\n", (int)threadIdx.x, n);
}

extern "C" __global__ void check_fault(int *where)
{
	*where = 1;
}

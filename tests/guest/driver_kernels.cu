// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernels of the programs that use the driver API, which load them as PTX text. */
extern "C" {

__device__ unsigned int number = 7;
__constant__ unsigned int table[4] = {10, 20, 30, 40};
__device__ __managed__ unsigned int shared_number = 5;

__global__ void nothing()
{
}

__global__ void fill(unsigned int *to, unsigned int count, unsigned int value)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		to[i] = value + i;
}

__global__ void add(const float *a, const float *b, float *sum, unsigned int count)
{
	unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		sum[i] = a[i] + b[i];
}

/* Parameters of several sizes, which do not lie side by side. */
__global__ void several(unsigned char a, double b, unsigned short c, unsigned long long *to)
{
	to[0] = a;
	to[1] = (unsigned long long)(b * 4);
	to[2] = c;
}

__global__ void use_variables(unsigned int *to)
{
	to[threadIdx.x] = number + table[threadIdx.x % 4];
}

__global__ void use_managed()
{
	atomicAdd(&shared_number, 1);
}

/* Counts the blocks of each multiprocessor, and of all at the end. */
__global__ void count_where(unsigned int *seen, unsigned int most)
{
	unsigned int id;

	if (threadIdx.x)
		return;
	asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
	atomicAdd(&seen[id % most], 1);
	atomicAdd(&seen[most], 1);
}

/* Each block writes the sum of its threads' numbers. */
__global__ void block_sums(unsigned int *to)
{
	extern __shared__ unsigned int words[];
	unsigned int i, sum = 0;

	words[threadIdx.x] = blockIdx.x + threadIdx.x;
	__syncthreads();
	if (threadIdx.x == 0) {
		for (i = 0; i < blockDim.x; i++)
			sum += words[i];
		to[blockIdx.x] = sum;
	}
}

/* Waits until the program sets the flag. */
__global__ void hold(volatile unsigned int *flag)
{
	while (!*flag)
		;
}

__global__ void read_texture(cudaTextureObject_t texture, float *to, unsigned int width)
{
	to[blockIdx.x * width + threadIdx.x] =
		tex2D<float>(texture, threadIdx.x + 0.5f, blockIdx.x + 0.5f);
}

__global__ void write_surface(cudaSurfaceObject_t surface, float value)
{
	surf2Dwrite(value + threadIdx.x + 100 * blockIdx.x, surface, threadIdx.x * 4, blockIdx.x);
}

__global__ void wrong_address(unsigned int *to)
{
	*to = 1;
}

}

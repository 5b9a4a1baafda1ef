// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Each thread interprets a small program: a switch with many cases in a loop (a table of branch
 * targets). The lanes of a warp run different programs and meet again at the end.
 */
#include "check.h"

#define THREADS 96
#define LENGTH	40

__host__ __device__ static unsigned char fetch(int program, int pc)
{
	return (unsigned char)(scramble(pc, program) >> 8);
}

__host__ __device__ static int interpret(int program)
{
	unsigned int stack[16], a = program;
	int top = 0, pc = 0, fuel = 200;

	for (int i = 0; i < 16; i++)
		stack[i] = i;
	while (pc < LENGTH && fuel-- > 0) {
		unsigned char code = fetch(program, pc++);

		switch (code & 15) {
		case 0:
			a += code;
			break;
		case 1:
			a -= stack[top];
			break;
		case 2:
			a *= code | 1;
			break;
		case 3:
			stack[top = (top + 1) & 15] = a;
			break;
		case 4:
			a ^= stack[top];
			top = (top - 1) & 15;
			break;
		case 5:
			a = a << 3 | a >> 29;
			break;
		case 6:
			if (a & 4)
				pc += 2;
			break;
		case 7:
			a = ~a;
			break;
		case 8:
			pc = code & 16 ? pc : pc / 2;
			break;
		case 9:
			a = (int)a / (code | 3);
			break;
		case 10:
			a = (int)a % (int)((stack[top] & 0xffff) | 0x101) + 5;
			break;
		case 11:
			for (int i = code & 7; i; i--)
				a += stack[i];
			break;
		case 12:
			a = (int)a < 0 ? -a : (int)a >> 1;
			break;
		case 13:
			stack[a & 15] += pc;
			break;
		case 14:
			a += fuel;
			break;
		default:
			return (int)(a ^ pc);
		}
	}
	return (int)(a + fuel * 1000);
}

/* Each lane stores its own result and the sum over its warp. */
__global__ void run(int *out, int *sums)
{
	int i = threadIdx.x, x = interpret(i), sum = x;

	for (int step = 16; step; step /= 2)
		sum += __shfl_xor_sync(0xffffffffu, sum, step);
	out[i] = x;
	sums[i] = sum;
}

int main(void)
{
	int out[2 * THREADS], *dev;

	CHECK(cudaMalloc(&dev, sizeof(out)));
	run<<<1, THREADS>>>(dev, dev + THREADS);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < THREADS; i++) {
		unsigned int sum = 0;

		for (int k = i / 32 * 32; k < i / 32 * 32 + 32; k++)
			sum += (unsigned int)interpret(k);
		REQUIRE(out[i] == interpret(i), "program %d: %d, expected %d", i, out[i],
			interpret(i));
		REQUIRE(out[THREADS + i] == (int)sum, "thread %d: sum %d, expected %d", i,
			out[THREADS + i], (int)sum);
	}
	CHECK(cudaFree(dev));
	return verified("%d programs of a small machine", THREADS);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Variables that host and device code use by the same name: of many types, initialised or not,
 * by name and by pointers to them. A pointer means the same on both sides.
 */
#include "check.h"

#define BIG 100000

struct node {
	int value;
	float weight[3];
	struct node *next;
};

__managed__ int first_on_gpu = 41, first_on_host = 17, counter;
static __managed__ unsigned char bytes[5] = {1, 2, 3, 4, 5};
__managed__ struct node head = {1, {2, 3, 4}, NULL}, tail = {5, {6, 7, 8}, NULL};
__managed__ double big[BIG];
__managed__ double *cursor;
__device__ __managed__ long long both = -3;
__device__ int plain = 9;
__managed__ int seen;

__global__ void look(void)
{
	seen = first_on_gpu + plain;
}

__global__ void change(int *through)
{
	counter++;
	*through += 10;
	bytes[2] += bytes[1];
	head.weight[1] += head.next->weight[2];
	head.next->value *= 2;
	both *= 5;
	*cursor = both;
	cursor++;
}

__global__ void fill(double plus)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < BIG)
		big[i] = 2 * big[i] + plus;
}

static void symbols(void)
{
	struct cudaPointerAttributes attr;
	size_t size;
	int value = 1000;
	void *p;

	CHECK(cudaGetSymbolAddress(&p, counter));
	REQUIRE(p == &counter, "%p instead of %p", p, (void *)&counter);
	CHECK(cudaGetSymbolSize(&size, big));
	REQUIRE(size == sizeof(big), "%zu bytes", size);
	CHECK(cudaPointerGetAttributes(&attr, &big[BIG / 2]));
	REQUIRE(attr.type == cudaMemoryTypeManaged, "type %d", (int)attr.type);
	REQUIRE(attr.devicePointer == &big[BIG / 2] && attr.hostPointer == &big[BIG / 2],
		"other addresses");
	CHECK(cudaMemcpyToSymbol(counter, &value, sizeof(value)));
	REQUIRE(counter == 1000, "%d", counter);
	counter = 1001;
	CHECK(cudaMemcpyFromSymbol(&value, counter, sizeof(value)));
	REQUIRE(value == 1001, "%d", value);
	CHECK(cudaMemset(bytes, 0x21, sizeof(bytes)));
	CHECK(cudaDeviceSynchronize());
	REQUIRE(bytes[0] == 0x21 && bytes[4] == 0x21, "%x %x", bytes[0], bytes[4]);
}

int main(void)
{
	cudaStream_t s;

	REQUIRE(first_on_host == 17 && bytes[4] == 5, "%d %d", first_on_host, bytes[4]);
	REQUIRE(counter == 0 && big[BIG - 1] == 0 && !cursor, "not zero");
	look<<<1, 1>>>();
	CHECK_LAUNCH();
	CHECK(cudaDeviceSynchronize());
	REQUIRE(seen == 50, "%d", seen);

	counter = 7;
	head.next = &tail;
	cursor = &big[3];
	for (int i = 0; i < 3; i++) {
		change<<<1, 1>>>(&first_on_host);
		CHECK_LAUNCH();
	}
	CHECK(cudaDeviceSynchronize());
	REQUIRE(counter == 10, "%d", counter);
	REQUIRE(first_on_host == 47, "%d", first_on_host);
	REQUIRE(bytes[1] == 2 && bytes[2] == 9, "%d %d", bytes[1], bytes[2]);
	REQUIRE(head.weight[1] == 3 + 3 * 8 && tail.value == 40, "%g %d", head.weight[1],
		tail.value);
	REQUIRE(cursor == &big[6] && big[3] == -15 && big[4] == -75 && big[5] == -375 &&
			both == -375,
		"%g %g %g", big[3], big[4], big[5]);

	/* After a synchronisation, the next kernel in any stream sees what the host writes. */
	CHECK(cudaStreamCreate(&s));
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < BIG; i++)
			big[i] = i + round;
		fill<<<(BIG + 255) / 256, 256, 0, s>>>(round);
		CHECK_LAUNCH();
		fill<<<(BIG + 255) / 256, 256, 0, s>>>(1);
		CHECK_LAUNCH();
		CHECK(cudaStreamSynchronize(s));
		for (int i = 0; i < BIG; i++)
			REQUIRE(big[i] == 4.0 * (i + round) + 2 * round + 1, "round %d: %d is %g",
				round, i, big[i]);
	}
	CHECK(cudaStreamDestroy(s));
	symbols();
	EXPECT(cudaFree(&counter), cudaErrorInvalidValue);
	counter = 5;
	return verified("host and device code see the same variables");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two devices. With peer access, a kernel on one device uses the memory of the other. Memory of
 * a pool that grants access needs no peer access. Otherwise the access is an illegal address.
 * With one device, the test only checks what the calls return.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define N 4096

__global__ void fetch(int *to, const int *from, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		to[i] = from[i] + 1;
}

static void expect_fetched(int *to, const int *from, int first)
{
	static int back[N];

	fetch<<<N / 128, 128>>>(to, from, N);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(back, to, sizeof(back), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		REQUIRE(back[i] == first + i + 1, "element %d is %d", i, back[i]);
}

/* Allocates memory of device 1 with a sequence in it. */
static int *sequence(int first)
{
	static int host[N];
	int *p;

	CHECK(cudaSetDevice(1));
	CHECK(cudaMalloc(&p, sizeof(host)));
	for (int i = 0; i < N; i++)
		host[i] = first + i;
	CHECK(cudaMemcpy(p, host, sizeof(host), cudaMemcpyHostToDevice));
	CHECK(cudaSetDevice(0));
	return p;
}

static int without(void)
{
	int *far = sequence(1), *near;

	CHECK(cudaMalloc(&near, N * sizeof(int)));
	fetch<<<N / 128, 128>>>(near, far, N);
	CHECK_LAUNCH();
	EXPECT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	return 0;
}

static void with(void)
{
	cudaMemAccessDesc access = {{cudaMemLocationTypeDevice, 0}, cudaMemAccessFlagsProtReadWrite};
	int *far = sequence(7), *near, *pooled, value = -1;
	cudaMemAccessFlags flags;
	cudaMemPool_t pool;

	CHECK(cudaMalloc(&near, N * sizeof(int)));
	CHECK(cudaDeviceEnablePeerAccess(1, 0));
	EXPECT(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
	(void)cudaGetLastError();
	expect_fetched(near, far, 7);
	/* The kernel writes there, too. */
	fetch<<<N / 128, 128>>>(far, near, N);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(&value, far, sizeof(value), cudaMemcpyDeviceToHost));
	REQUIRE(value == 9, "%d", value);
	CHECK(cudaDeviceDisablePeerAccess(1));
	EXPECT(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
	(void)cudaGetLastError();

	CHECK(cudaDeviceGetDefaultMemPool(&pool, 1));
	CHECK(cudaMemPoolGetAccess(&flags, pool, &access.location));
	REQUIRE(flags == cudaMemAccessFlagsProtNone, "access %d", flags);
	CHECK(cudaMemPoolSetAccess(pool, &access, 1));
	CHECK(cudaMemPoolGetAccess(&flags, pool, &access.location));
	REQUIRE(flags == cudaMemAccessFlagsProtReadWrite, "access %d", flags);
	CHECK(cudaSetDevice(1));
	CHECK(cudaMallocAsync(&pooled, N * sizeof(int), NULL));
	CHECK(cudaMemcpyAsync(pooled, far, N * sizeof(int), cudaMemcpyDeviceToDevice, NULL));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaSetDevice(0));
	expect_fetched(near, pooled, 9);
	CHECK(cudaFree(pooled));
	CHECK(cudaFree(far));
	CHECK(cudaFree(near));
}

int main(void)
{
	cudaAtomicOperation add = cudaAtomicOperationIntegerAdd;
	int count, can = -1, value, status;
	unsigned int caps;
	pid_t pid = fork();

	/* Before this process uses CUDA: the child needs a GPU of its own. */
	if (!pid) {
		CHECK(cudaGetDeviceCount(&count));
		if (count > 1)
			CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
		return can == 1 ? without() : 0;
	}
	REQUIRE(waitpid(pid, &status, 0) == pid && !status, "the child ended with %x", status);
	CHECK(cudaGetDeviceCount(&count));
	CHECK(cudaDeviceCanAccessPeer(&can, 0, 0));
	REQUIRE(can == 0, "a device is its own peer");
	EXPECT(cudaDeviceCanAccessPeer(&can, 0, 1000), cudaErrorInvalidDevice);
	EXPECT(cudaDeviceEnablePeerAccess(1000, 0), cudaErrorInvalidDevice);
	(void)cudaGetLastError();
	CHECK(cudaDeviceGetHostAtomicCapabilities(&caps, &add, 1, 0));
	EXPECT(cudaDeviceGetHostAtomicCapabilities(&caps, &add, 0, 0), cudaErrorInvalidValue);
	EXPECT(cudaDeviceGetP2PAtomicCapabilities(&caps, &add, 1, 0, 0), cudaErrorInvalidDevice);
	(void)cudaGetLastError();
	if (count < 2)
		return verified("one device, and no peers");
	CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
	CHECK(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 1));
	REQUIRE(value == can, "can access: %d, attribute: %d", can, value);
	if (can)
		with();
	return verified("two devices, %s", can ? "peers" : "no peers");
}

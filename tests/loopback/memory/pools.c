// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Stream-ordered memory: bad input, and what only the software GPU shows so exactly: a free takes
 * effect when its stream reaches it, and not before.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "include/qcucmd.h"
#include "tests/loopback/check.h"

#define LEN (1u << 20)

static _Atomic int hold;

static void wait_here(void *unused)
{
	(void)unused;
	while (hold)
		usleep(1000);
}

static uint64_t used(cudaMemPool_t pool)
{
	uint64_t value = 0;

	OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));
	return value;
}

/*
 * Makes the current pool one that has the number of `before`, or any. It was not the current one
 * until then, though `before` was. A number is used again as late as possible.
 */
static __attribute__((unused)) cudaMemPool_t expect_default_pool(const char *when,
								 cudaMemPool_t before)
{
	struct cudaMemPoolProps props = {
		.allocType = cudaMemAllocationTypePinned,
		.location = {cudaMemLocationTypeDevice, 0},
	};
	cudaMemPool_t standard, current, made;
	unsigned int i;

	OK(cudaMemPoolCreate(&made, &props));
	for (i = 0; before && made != before && i < QCU_ID_MAX; i++) {
		OK(cudaMemPoolDestroy(made));
		OK(cudaMemPoolCreate(&made, &props));
	}
	REQUIRE(!before || made == before, "%s the number is not used again", when);
	OK(cudaDeviceGetDefaultMemPool(&standard, 0));
	OK(cudaDeviceGetMemPool(&current, 0));
	REQUIRE(current == standard && current != made, "%s another pool is the current one", when);
	OK(cudaDeviceSetMemPool(0, made));
	OK(cudaDeviceGetMemPool(&current, 0));
	REQUIRE(current == made, "%s no pool becomes the current one", when);
	return made;
}

/* Under a sanitizer a child cannot go on beside other threads of the parent. */
static void current_pool_ends(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	cudaMemPool_t pool = expect_default_pool("at first", NULL);
	int status;
	pid_t pid = fork();

	if (!pid) {
		expect_default_pool("in a child", pool);
		exit(0);
	}
	REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid && !status, "the child failed");
	OK(cudaMemPoolDestroy(pool));
#endif
}

static void bad_input(cudaMemPool_t pool)
{
	struct cudaMemPoolProps props = {
		.allocType = cudaMemAllocationTypePinned,
		.location = {cudaMemLocationTypeDevice, 0},
	};
	struct cudaMemLocation host = {cudaMemLocationTypeHost, 0}, dev = {1, 0};
	cudaStream_t stream = (cudaStream_t)&stream;
	cudaMemPool_t none = (cudaMemPool_t)&none, p;
	enum cudaMemAccessFlags flags;
	struct cudaMemAccessDesc desc = {{cudaMemLocationTypeDevice, 9}, 3};
	uint64_t value;
	void *m, *n;

	REFUSED(cudaMallocAsync(&m, LEN, stream), cudaErrorInvalidResourceHandle);
	REFUSED(cudaMallocFromPoolAsync(&m, LEN, none, NULL), cudaErrorInvalidValue);
	REFUSED(cudaMallocFromPoolAsync(&m, LEN, NULL, NULL), cudaErrorInvalidValue);
	REFUSED(cudaMemPoolDestroy(none), cudaErrorInvalidValue);
	REFUSED(cudaMemPoolDestroy(pool), cudaErrorInvalidValue);
	REFUSED(cudaMemPoolTrimTo(none, 0), cudaErrorInvalidValue);
	REFUSED(cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)0, &value),
		cudaErrorInvalidValue);
	value = 1;
	REFUSED(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value),
		cudaErrorInvalidValue);
	REFUSED(cudaMemPoolSetAccess(pool, NULL, 1), cudaErrorInvalidValue);
	REFUSED(cudaMemPoolSetAccess(pool, &desc, 1), cudaErrorInvalidDevice);
	desc = (struct cudaMemAccessDesc){{cudaMemLocationTypeDevice, 0}, 0};
	REFUSED(cudaMemPoolSetAccess(pool, &desc, 1), cudaErrorInvalidValue);
	REFUSED(cudaMemPoolGetAccess(&flags, pool, &host), cudaErrorInvalidValue);
	REFUSED(cudaMemGetDefaultMemPool(&p, &host, cudaMemAllocationTypePinned),
		cudaErrorNotSupported);
	OK(cudaMemGetDefaultMemPool(&p, &dev, cudaMemAllocationTypePinned));
	REQUIRE(p == pool, "another default pool");
	props.location.id = 7;
	REFUSED(cudaMemPoolCreate(&p, &props), cudaErrorInvalidDevice);
	props.location.id = 0;
	props.handleTypes = cudaMemHandleTypeFabric;
	REFUSED(cudaMemPoolCreate(&p, &props), cudaErrorNotSupported);
	props.handleTypes = 0;
	props.maxSize = LEN;
	OK(cudaMemPoolCreate(&p, &props));
	OK(cudaMallocFromPoolAsync(&m, LEN, p, NULL));
	REFUSED(cudaMallocFromPoolAsync(&n, 1, p, NULL), cudaErrorMemoryAllocation);
	OK(cudaFreeAsync(m, NULL));
	OK(cudaDeviceSynchronize());
	OK(cudaMallocFromPoolAsync(&m, LEN, p, NULL));
	OK(cudaDeviceSetMemPool(0, p));
	OK(cudaMemPoolDestroy(p));
	REFUSED(cudaMemPoolDestroy(p), cudaErrorInvalidValue);
	OK(cudaDeviceGetMemPool(&p, 0));
	REQUIRE(p == pool, "a destroyed pool is still the device's");
	OK(cudaFreeAsync(m, NULL));
	REFUSED(cudaFreeAsync(m, NULL), cudaErrorInvalidValue);
	REFUSED(cudaFree(m), cudaErrorInvalidValue);
	OK(cudaFreeAsync(NULL, NULL));
	/* cudaFreeAsync refuses memory of cudaMalloc, and does not harm it. */
	OK(cudaMalloc(&m, LEN));
	REFUSED(cudaFreeAsync(m, NULL), cudaErrorInvalidValue);
	OK(cudaMemset(m, 1, LEN));
	OK(cudaFree(m));
}

int main(void)
{
	struct cudaPointerAttributes attr;
	size_t before, after, total;
	cudaMemPool_t pool;
	cudaStream_t s;
	char back[4];
	void *m, *n;

	OK(cudaMemGetInfo(&before, &total));
	OK(cudaDeviceGetDefaultMemPool(&pool, 0));
	bad_input(pool);
	OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	OK(cudaMallocAsync(&m, LEN, s));
	OK(cudaPointerGetAttributes(&attr, m));
	REQUIRE(attr.type == cudaMemoryTypeDevice && attr.device == 0, "type %d", attr.type);
	hold = 1;
	OK(cudaLaunchHostFunc(s, wait_here, NULL));
	OK(cudaMemsetAsync(m, 3, LEN, s));
	OK(cudaFreeAsync(m, s));
	REQUIRE(used(pool) == LEN, "%llu bytes before the stream is there",
		(unsigned long long)used(pool));
	/* Meanwhile other streams get other memory. */
	OK(cudaMallocAsync(&n, LEN, NULL));
	REQUIRE(n != m, "memory that is in use");
	OK(cudaMemset(n, 5, LEN));
	OK(cudaMemcpy(back, n, sizeof(back), cudaMemcpyDeviceToHost));
	REQUIRE(back[0] == 5, "%d", back[0]);
	hold = 0;
	OK(cudaStreamSynchronize(s));
	REQUIRE(used(pool) == LEN, "%llu bytes after it", (unsigned long long)used(pool));
	OK(cudaFree(n));
	REQUIRE(used(pool) == 0, "%llu bytes left", (unsigned long long)used(pool));
	OK(cudaStreamDestroy(s));
	OK(cudaMemGetInfo(&after, &total));
	REQUIRE(after == before, "%zu bytes are gone", before - after);
	/* Asks for more memory than there is: the call waits for memory that a stream will free. */
	for (int i = 0; i < 6; i++) {
		OK(cudaMallocAsync(&m, before / 2 + LEN, NULL));
		OK(cudaMemsetAsync(m, i, 100, NULL));
		OK(cudaFreeAsync(m, NULL));
	}
	OK(cudaMallocAsync(&m, before / 2 + LEN, NULL));
	REFUSED(cudaMallocAsync(&n, before / 2 + LEN, NULL), cudaErrorMemoryAllocation);
	OK(cudaFree(m));
	/* A reset frees everything. */
	OK(cudaMallocAsync(&m, LEN, NULL));
	OK(cudaDeviceReset());
	REFUSED(cudaFreeAsync(m, NULL), cudaErrorInvalidValue);
	OK(cudaDeviceGetDefaultMemPool(&pool, 0));
	REQUIRE(used(pool) == 0, "%llu bytes after a reset", (unsigned long long)used(pool));
	current_pool_ends();
	return 0;
}

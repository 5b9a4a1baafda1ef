// SPDX-License-Identifier: LGPL-2.1-or-later
/* What devices report about themselves, which devices a program sees, and what a reset leaves. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* Runs in a child, because the library reads the list when the session opens. */
static void sees(const char *list, int want)
{
	pid_t pid = fork();
	int status, count = -1;

	if (pid == 0) {
		setenv("QCU_LOOPBACK_GPUS", "3", 1);
		if (list)
			setenv("CUDA_VISIBLE_DEVICES", list, 1);
		EXPECT(cudaGetDeviceCount(&count), want ? cudaSuccess : cudaErrorNoDevice);
		REQUIRE(count == want, "CUDA_VISIBLE_DEVICES=%s: %d devices, not %d",
			list ? list : "(none)", count, want);
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid && !status, "status %x", status);
}

static void visible_devices(void)
{
	sees(NULL, 3);
	sees("0", 1);
	sees("2,0", 2);
	sees("0,1,2", 3);
	sees("1,9,0", 1);
	sees("", 0);
	sees("-1", 0);
	sees("x", 0);
	sees("1,1", 0);
}

static void properties_agree(void)
{
	struct cudaDeviceProp prop;
	size_t free_bytes, total;
	int v, driver, runtime;
	char bus[32];

	OK(cudaGetDeviceProperties(&prop, 0));
	REQUIRE(prop.name[0] && strlen(prop.name) < sizeof(prop.name), "no name");
#define SAME(field, attr)                                                                      \
	do {                                                                                   \
		OK(cudaDeviceGetAttribute(&v, cudaDevAttr##attr, 0));                          \
		REQUIRE((long long)prop.field == v, "%lld, not %d", (long long)prop.field, v); \
	} while (0)
	SAME(warpSize, WarpSize);
	SAME(major, ComputeCapabilityMajor);
	SAME(maxThreadsPerBlock, MaxThreadsPerBlock);
	SAME(maxGridSize[2], MaxGridDimZ);
	SAME(sharedMemPerBlockOptin, MaxSharedMemoryPerBlockOptin);
	SAME(unifiedAddressing, UnifiedAddressing);
	SAME(maxSurfaceCubemapLayered[1], MaxSurfaceCubemapLayeredLayers);
	SAME(multiProcessorCount, MultiProcessorCount);
	REQUIRE(prop.warpSize == 32 && prop.maxThreadsPerBlock == 1024, "%d %d", prop.warpSize,
		prop.maxThreadsPerBlock);
	OK(cudaMemGetInfo(&free_bytes, &total));
	REQUIRE(free_bytes > 0 && free_bytes <= total && total == prop.totalGlobalMem,
		"%zu %zu %zu", free_bytes, total, prop.totalGlobalMem);
	OK(cudaMemGetInfo(NULL, NULL));
	OK(cudaDriverGetVersion(&driver));
	OK(cudaRuntimeGetVersion(&runtime));
	REQUIRE(runtime == CUDART_VERSION && driver >= runtime, "%d %d", driver, runtime);
	OK(cudaDeviceGetPCIBusId(bus, sizeof(bus), 0));
	OK(cudaDeviceGetByPCIBusId(&v, bus));
	REQUIRE(v == 0, "%s is device %d", bus, v);
}

static void reset_takes_everything(void)
{
	cudaStream_t s;
	char *p, back[100];

	OK(cudaStreamCreate(&s));
	OK(cudaMalloc((void **)&p, 1000));
	OK(cudaDeviceReset());
	REFUSED(cudaStreamSynchronize(s), cudaErrorInvalidResourceHandle);
	REFUSED(cudaFree(p), cudaErrorInvalidValue);
	OK(cudaMalloc((void **)&p, 1000));
	OK(cudaMemset(p, 5, 1000));
	OK(cudaMemcpy(back, p, 100, cudaMemcpyDeviceToHost));
	REQUIRE(back[99] == 5, "%d", back[99]);
	OK(cudaFree(p));
}

static void between_devices(void)
{
	char *a, *b, from[1000], to[1000];
	int can = 0;

	OK(cudaDeviceCanAccessPeer(&can, 0, 1));
	REQUIRE(can == 1, "%d", can);
	fill(from, sizeof(from), 9);
	OK(cudaSetDevice(0));
	OK(cudaMalloc((void **)&a, 1000));
	OK(cudaMemcpy(a, from, 1000, cudaMemcpyHostToDevice));
	OK(cudaSetDevice(1));
	OK(cudaMalloc((void **)&b, 1000));
	OK(cudaMemcpyPeer(b, 1, a, 0, 1000));
	OK(cudaMemcpy(to, b, 1000, cudaMemcpyDeviceToHost));
	REQUIRE(differs(from, to, 1000) == 1000, "byte %zu", differs(from, to, 1000));
	REFUSED(cudaMemcpyPeer(b, 1, a, 63, 1000), cudaErrorInvalidDevice);
	OK(cudaFree(b));
	OK(cudaSetDevice(0));
	OK(cudaFree(a));
}

static int seen[2];

static void *look(void *unused)
{
	(void)unused;
	OK(cudaGetDevice(&seen[0]));
	OK(cudaSetDevice(0));
	OK(cudaGetDevice(&seen[1]));
	return NULL;
}

/* The list of valid devices applies to threads that have not chosen a device. */
static void without_a_choice(void)
{
	int list[] = {1, 0}, device = -1;
	struct cudaDeviceProp prop;
	pthread_t thread;

	OK(cudaSetDevice(0));
	OK(cudaSetValidDevices(list, 2));
	OK(cudaGetDevice(&device));
	REQUIRE(device == 0, "device %d, though another was chosen", device);
	REQUIRE(!pthread_create(&thread, NULL, look, NULL), "no thread");
	pthread_join(thread, NULL);
	REQUIRE(seen[0] == 1 && seen[1] == 0, "device %d, then %d", seen[0], seen[1]);
	OK(cudaSetValidDevices(NULL, 0));
	REQUIRE(!pthread_create(&thread, NULL, look, NULL), "no thread");
	pthread_join(thread, NULL);
	REQUIRE(seen[0] == 0, "device %d", seen[0]);
	memset(&prop, 0, sizeof(prop));
	OK(cudaChooseDevice(&device, &prop));
	REQUIRE(device == 0, "device %d of two alike", device);
}

/* No other device writes into a device's memory, so a flush has nothing to do. */
static void nothing_to_flush(void)
{
	OK(cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
					      cudaFlushGPUDirectRDMAWritesToOwner));
	OK(cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
					      cudaFlushGPUDirectRDMAWritesToAllDevices));
}

int main(void)
{
	visible_devices();
	setenv("QCU_LOOPBACK_GPUS", "2", 1);
	properties_agree();
	reset_takes_everything();
	between_devices();
	without_a_choice();
	nothing_to_flush();
	return 0;
}

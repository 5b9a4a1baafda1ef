// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Everything about a kernel except its run: its name, attributes, parameters and occupancy, the
 * ways to launch it, arguments of every size at their places, and a launch in a child process.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

struct mixed {
	char c;
	double d;
	short s[3];
};

__global__ void take(int *out, char a, double b, struct mixed m, short c, int *const *unused)
{
	out[0] = a;
	out[1] = (int)b;
	out[2] = m.c;
	out[3] = (int)m.d;
	out[4] = m.s[2];
	out[5] = c;
	out[6] = unused == nullptr;
}

#define LONG_WORDS 1000

struct words {
	unsigned int w[LONG_WORDS];
};

/* Adds up its arguments, so that every byte of them counts. */
__global__ void add_up(unsigned long long *sum, struct words a)
{
	unsigned long long s = 0;

	for (int i = threadIdx.x; i < LONG_WORDS; i += blockDim.x)
		s += (unsigned long long)a.w[i] * (i + 1);
	atomicAdd(sum, s);
}

__global__ void nothing()
{
}

__device__ int variable[16];

static int *dev;
static char a = 1;
static double b = 2;
static struct mixed m = {3, 4, {0, 0, 5}};
static short c = 6;
static int *const *null;
static void *args[] = {&dev, &a, &b, &m, &c, &null};

static void came_through(const char *how)
{
	const int want[7] = {1, 2, 3, 4, 5, 6, 1};
	int got[7] = {0};

	OK(cudaGetLastError());
	OK(cudaMemcpy(got, dev, sizeof(got), cudaMemcpyDeviceToHost));
	REQUIRE(differs(got, want, sizeof(got)) == sizeof(got), "%s: %d %d %d %d %d %d %d", how,
		got[0], got[1], got[2], got[3], got[4], got[5], got[6]);
	OK(cudaMemset(dev, 0, sizeof(got)));
}

static void launches()
{
	cudaLaunchConfig_t config = {dim3(1), dim3(1), 0, 0, nullptr, 0};
	cudaLaunchAttribute attr[2] = {};
	cudaKernel_t kernel;

	OK(cudaMalloc((void **)&dev, 1024));
	take<<<1, 1>>>(dev, a, b, m, c, null);
	came_through("<<<>>>");
	OK(cudaLaunchKernel((const void *)take, dim3(1), dim3(1), args, 0, 0));
	came_through("cudaLaunchKernel");
	OK(cudaGetKernel(&kernel, (const void *)take));
	OK(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(1), args, 0, 0));
	came_through("cudaLaunchKernel of a cudaKernel_t");
	OK(cudaLaunchKernelExC(&config, (const void *)take, args));
	came_through("cudaLaunchKernelExC");
	OK(cudaLaunchCooperativeKernel((const void *)take, dim3(1), dim3(1), args, 0, 0));
	came_through("cudaLaunchCooperativeKernel");
	attr[0].id = cudaLaunchAttributeCooperative;
	attr[0].val.cooperative = 1;
	attr[1].id = cudaLaunchAttributeClusterDimension;
	attr[1].val.clusterDim.x = attr[1].val.clusterDim.y = attr[1].val.clusterDim.z = 1;
	config.attrs = attr;
	config.numAttrs = 2;
	OK(cudaLaunchKernelExC(&config, (const void *)take, args));
	came_through("cudaLaunchKernelExC with attributes");
	attr[1].val.clusterDim.x = 2;
	REFUSED(cudaLaunchKernelExC(&config, (const void *)take, args), cudaErrorNotSupported);
	REFUSED(cudaLaunchKernel((const void *)take, dim3(1), dim3(1), nullptr, 0, 0),
		cudaErrorInvalidValue);
	OK(cudaLaunchKernel((const void *)nothing, dim3(3), dim3(5), nullptr, 0, 0));
	OK(cudaDeviceSynchronize());
}

/* A graph launches with the attributes of the captured launch and with those of its nodes. */
static void captured_attributes()
{
	cudaLaunchConfig_t config = {dim3(2), dim3(1), 0, 0, nullptr, 0};
	cudaLaunchAttributeValue value = {}, got;
	cudaLaunchAttribute attr = {};
	cudaGraphExec_t exec;
	cudaGraphNode_t node;
	cudaStream_t stream;
	cudaGraph_t graph;
	size_t count = 1;
	int least, greatest;

	OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	OK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
	attr.id = cudaLaunchAttributeClusterDimension;
	attr.val.clusterDim.x = 2;
	attr.val.clusterDim.y = attr.val.clusterDim.z = 1;
	config.attrs = &attr;
	config.numAttrs = 1;
	config.stream = stream;
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	OK(cudaLaunchKernelExC(&config, (const void *)take, args));
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphGetNodes(graph, &node, &count));
	OK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeClusterDimension, &got));
	REQUIRE(got.clusterDim.x == 2 && got.clusterDim.y == 1, "%u", got.clusterDim.x);
	OK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributePriority, &got));
	REQUIRE(got.priority == greatest, "%d", got.priority);
	OK(cudaGraphInstantiate(&exec, graph, 0));
	/* The software GPU cannot have clusters of two blocks. */
	REFUSED(cudaGraphLaunch(exec, stream), cudaErrorNotSupported);
	OK(cudaGraphExecDestroy(exec));
	value.clusterDim.x = value.clusterDim.y = value.clusterDim.z = 1;
	OK(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeClusterDimension, &value));
	REFUSED(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeSynchronizationPolicy,
						&value),
		cudaErrorInvalidValue);
	OK(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagUseNodePriority));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	came_through("cudaGraphLaunch");
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	OK(cudaStreamDestroy(stream));
}

static void questions()
{
	struct cudaFuncAttributes attr;
	const char *name;
	size_t offset, size;
	int blocks = -1;

	OK(cudaFuncGetName(&name, (const void *)nothing));
	REQUIRE(!strcmp(name, "_Z7nothingv"), "%s", name);
	OK(cudaFuncGetAttributes(&attr, (const void *)take));
	REQUIRE(attr.maxThreadsPerBlock > 0 && attr.maxThreadsPerBlock <= 1024, "%d",
		attr.maxThreadsPerBlock);
	OK(cudaFuncGetParamInfo((const void *)take, 3, &offset, &size));
	REQUIRE(offset == 24 && size == sizeof(struct mixed), "%zu %zu", offset, size);
	REFUSED(cudaFuncGetParamInfo((const void *)take, 6, &offset, &size), cudaErrorInvalidValue);
	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 128, 0));
	REQUIRE(blocks > 0 && blocks <= 64, "%d", blocks);
	REFUSED(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 0, 0),
		cudaErrorInvalidValue);
	REFUSED(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, nothing, 64, 0, 9),
		cudaErrorInvalidValue);
	REFUSED(cudaFuncSetAttribute((const void *)take, (enum cudaFuncAttribute)33, 1),
		cudaErrorInvalidValue);
	OK(cudaFuncSetCacheConfig((const void *)take, cudaFuncCachePreferL1));
}

static void symbols()
{
	int from[16], to[16] = {0};
	char host[64];
	size_t size = 0;
	void *addr;

	fill(from, sizeof(from), 5);
	OK(cudaGetSymbolSize(&size, variable));
	REQUIRE(size == sizeof(variable), "%zu", size);
	OK(cudaMemcpyToSymbol(variable, from, sizeof(from)));
	OK(cudaMemcpyFromSymbol(to, variable, sizeof(int) * 15, sizeof(int)));
	REQUIRE(differs(from + 1, to, sizeof(int) * 15) == sizeof(int) * 15, "wrong bytes");
	OK(cudaGetSymbolAddress(&addr, variable));
	OK(cudaMemcpy(to, addr, sizeof(to), cudaMemcpyDefault));
	REQUIRE(differs(from, to, sizeof(to)) == sizeof(to), "wrong bytes");
	REFUSED(cudaFree(addr), cudaErrorInvalidValue);
	REFUSED(cudaMemcpyToSymbol(variable, host, sizeof(variable), 4), cudaErrorInvalidValue);
	REFUSED(cudaMemcpyToSymbol(variable, host, 4, sizeof(variable) + 1), cudaErrorInvalidValue);
	REFUSED(cudaMemcpyFromSymbol(host, variable, 4, 0, cudaMemcpyHostToDevice),
		cudaErrorInvalidMemcpyDirection);
	/* After a reset, a variable has its first value again, wherever it is then. */
	OK(cudaDeviceReset());
	OK(cudaMemcpyFromSymbol(to, variable, sizeof(to)));
	REQUIRE(to[0] == 0 && to[15] == 0, "%d %d", to[0], to[15]);
}

/*
 * Launches with long arguments, more of them than the transport has room for, with small and large
 * copies in between whose bytes travel in the same way. No thread waits.
 */
static void *long_arguments(void *)
{
	enum { LAUNCHES = 3000, BYTES = 60000 };
	unsigned long long *sum, want = 0, got;
	static __thread unsigned char bytes[BYTES];
	unsigned char *dev, last[2];
	struct words a;
	cudaStream_t s;
	unsigned int x = 1;

	OK(cudaStreamCreate(&s));
	OK(cudaMalloc(&sum, sizeof(*sum)));
	OK(cudaMalloc(&dev, BYTES));
	OK(cudaMemset(sum, 0, sizeof(*sum)));
	OK(cudaDeviceSynchronize());
	for (int i = 0; i < LAUNCHES; i++) {
		size_t len = i % 50 ? (size_t)i % 700 : BYTES;

		for (int k = 0; k < LONG_WORDS; k++) {
			a.w[k] = x = x * 1664525 + 1013904223;
			want += (unsigned long long)a.w[k] * (k + 1);
		}
		add_up<<<1, 32, 0, s>>>(sum, a);
		OK(cudaGetLastError());
		memset(&a, 0xee, sizeof(a));
		if (!len)
			continue;
		memset(bytes, i, len);
		OK(cudaMemcpyAsync(dev, bytes, len, cudaMemcpyHostToDevice, s));
		memset(bytes, 0xee, len);
	}
	OK(cudaStreamSynchronize(s));
	OK(cudaMemcpy(&got, sum, sizeof(got), cudaMemcpyDeviceToHost));
	REQUIRE(got == want, "%llx, not %llx", got, want);
	OK(cudaMemcpy(&last[0], dev, 1, cudaMemcpyDeviceToHost));
	OK(cudaMemcpy(&last[1], dev + BYTES - 1, 1, cudaMemcpyDeviceToHost));
	REQUIRE(last[0] == (unsigned char)(LAUNCHES - 1), "%u", last[0]);
	REQUIRE(last[1] == (unsigned char)(LAUNCHES - 50), "%u", last[1]);
	OK(cudaFree(sum));
	OK(cudaFree(dev));
	OK(cudaStreamDestroy(s));
	return NULL;
}

static void long_arguments_of_threads()
{
	pthread_t t[3];

	for (int i = 0; i < 3; i++)
		REQUIRE(!pthread_create(&t[i], NULL, long_arguments, NULL), "no thread");
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	/* A thread that takes over what one of these has left behind. */
	long_arguments(NULL);
}

int main();

/* CUDA 13.0's header does not declare this function. */
static void parameter_counts()
{
	auto count = (cudaError_t(*)(const void *, size_t *))dlsym(RTLD_DEFAULT, "cudaFuncGetParamCount");
	size_t n = 99;

	REQUIRE(count, "no cudaFuncGetParamCount");
	REFUSED(count((const void *)take, NULL), cudaErrorInvalidValue);
	REFUSED(count((const void *)main, &n), cudaErrorInvalidResourceHandle);
	OK(count((const void *)take, &n));
	REQUIRE(n == 6, "%zu parameters", n);
	OK(count((const void *)nothing, &n));
	REQUIRE(n == 0, "%zu parameters", n);
}

int main()
{
	pid_t pid;
	int status;

	launches();
	captured_attributes();
	questions();
	pid = fork();
	if (pid == 0) {
		launches();
		questions();
		symbols();
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid && !status, "the child's status is %x", status);
	launches();
	symbols();
	launches();
	long_arguments_of_threads();
	parameter_counts();
	return 0;
}

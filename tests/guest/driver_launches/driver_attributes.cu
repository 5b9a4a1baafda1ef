// SPDX-License-Identifier: GPL-2.0-or-later
/* Each attribute of cuLaunchKernelEx that works on all devices, several at once, and wrong values.
 */
#include "driver.h"

#define N 128

static CUfunction fill;
static CUdeviceptr memory;
static CUstream stream;
static unsigned int value;

static CUresult launch(const CUlaunchAttribute *attributes, unsigned int n)
{
	unsigned int count = N;
	void *params[] = {&memory, &count, &value};
	CUlaunchConfig config = {};

	config.gridDimX = 2;
	config.blockDimX = N / 2;
	config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
	config.hStream = stream;
	config.attrs = (CUlaunchAttribute *)attributes;
	config.numAttrs = n;
	value += 1000;
	return cuLaunchKernelEx(&config, fill, params, NULL);
}

static void works(const char *what, const CUlaunchAttribute *attributes, unsigned int n)
{
	unsigned int got[N], i;

	REQUIRE(!launch(attributes, n), "%s", what);
	DCHECK(cuStreamSynchronize(stream));
	DCHECK(cuMemcpyDtoH(got, memory, sizeof(got)));
	for (i = 0; i < N; i++)
		REQUIRE(got[i] == value + i, "%s: %u: %u", what, i, got[i]);
}

static CUlaunchAttribute attribute(CUlaunchAttributeID id)
{
	CUlaunchAttribute a = {};

	a.id = id;
	return a;
}

static void right(void)
{
	CUlaunchAttribute cooperative = attribute(CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
	CUlaunchAttribute cluster = attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
	CUlaunchAttribute priority = attribute(CU_LAUNCH_ATTRIBUTE_PRIORITY);
	CUlaunchAttribute serial = attribute(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
	CUlaunchAttribute domain = attribute(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN);
	CUlaunchAttribute completion = attribute(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
	CUlaunchAttribute carveout =
		attribute(CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
	CUlaunchAttribute ignored = attribute(CU_LAUNCH_ATTRIBUTE_IGNORE);
	CUlaunchAttribute all[4];
	int least, greatest;
	CUevent event;

	works("none", NULL, 0);
	works("ignored", &ignored, 1);
	works("not cooperative", &cooperative, 1);
	cooperative.value.cooperative = 1;
	works("cooperative", &cooperative, 1);
	cluster.value.clusterDim.x = cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1;
	works("a cluster of one block", &cluster, 1);
	DCHECK(cuCtxGetStreamPriorityRange(&least, &greatest));
	priority.value.priority = greatest;
	works("priority", &priority, 1);
	serial.value.programmaticStreamSerializationAllowed = 1;
	works("programmatic serialization", &serial, 1);
	domain.value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
	works("a domain", &domain, 1);
	carveout.value.sharedMemCarveout = 50;
	works("carveout", &carveout, 1);
	DCHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	completion.value.launchCompletionEvent.event = event;
	works("a completion event", &completion, 1);
	DCHECK(cuEventQuery(event));
	all[0] = priority;
	all[1] = ignored;
	all[2] = carveout;
	all[3] = completion;
	works("four", all, 4);
	DCHECK(cuEventDestroy(event));
}

static void wrong(void)
{
	CUlaunchAttribute cluster = attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
	CUlaunchAttribute completion = attribute(CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
	CUlaunchAttribute unknown = attribute((CUlaunchAttributeID)4711);

	DEXPECT(launch(&unknown, 1), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(launch(NULL, 1), CUDA_ERROR_INVALID_VALUE);
	/* Three blocks do not divide two. */
	cluster.value.clusterDim.x = 3;
	cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1;
	REQUIRE(launch(&cluster, 1), "a cluster of three blocks in a grid of two");
	DEXPECT(launch(&completion, 1), CUDA_ERROR_INVALID_HANDLE);
	works("none, after wrong ones", NULL, 0);
}

int main()
{
	CUmodule module;

	driver_start();
	module = driver_module();
	fill = driver_function(module, "fill");
	DCHECK(cuMemAlloc(&memory, N * 4));
	DCHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	wrong();
	right();
	DCHECK(cuStreamDestroy(stream));
	DCHECK(cuMemFree(memory));
	DCHECK(cuModuleUnload(module));
	return verified("attributes of launches");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls functions of the driver API with arguments that they must refuse, or must accept although
 * they look odd: null pointers, wrong flags, stale and foreign handles, huge sizes. The table has
 * the code that NVIDIA's driver returns on a real GPU (`driver_bad_calls --record` prints it
 * there). Where ours returns another one, or NVIDIA's crashes, it says so; `--differences` prints
 * these.
 */
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static char *const junk = (char *)0x123456789abc;
static CUdevice device;
static CUcontext context, made;
static CUmodule module, stale_module;
static CUfunction function;
static CUlibrary library;
static CUkernel kernel;
static CUdeviceptr memory, address;
static CUstream stream, stale_stream;
static CUevent event, stale_event;
static CUarray array;
static CUgraph graph, stale_graph;
static CUgraphNode node;
static CUgraphExec exec;
static CUmemoryPool pool;
static CUtexObject texture;
static CUsurfObject surface;
static CUuserObject object;
static CUuuid uuid;
static CUlaunchConfig config;
static CUDA_ARRAY_DESCRIPTOR flat;
static CUDA_ARRAY3D_DESCRIPTOR box;
static CUDA_RESOURCE_DESC resource;
static CUDA_TEXTURE_DESC sampler;
static CUDA_MEMCPY2D copy_2d;
static CUDA_MEMCPY3D copy_3d;
static CUDA_MEMCPY3D_PEER copy_peer;
static CUDA_KERNEL_NODE_PARAMS kernel_node;
static CUDA_MEMSET_NODE_PARAMS memset_node;
static CUDA_HOST_NODE_PARAMS host_node;
static CUipcMemHandle ipc_memory;
static CUipcEventHandle ipc_event;
static CUmemPoolProps pool_props;
static CUfunction_attribute attribute = CU_FUNC_ATTRIBUTE_NUM_REGS;
static CUgraphNodeType type;
static const char *text;
static const void *table;
static char letters[64];
static void *ptr;
static size_t size, offset;
static unsigned int u32;
static int i32;
static float f32;
static cuuint64_t u64;
static unsigned long long id;
static CUdevprop old_properties;
static CUexecAffinityParam affinity;
static CUmodule other_module;
static CUlibrary other_library;
static CUkernel other_kernel;
static CUfunction other_function, nothing;
static CUlinkState link_state;
static CUfunctionLoadingState loaded;
static CUlaunchConfig unknown_config, no_attributes;
static CUlaunchAttribute unknown_attribute;
static CUlaunchAttributeValue value;
static char *pinned;
static CUdeviceptr managed;
static CUmemLocation here, nowhere;
static CUmemGenericAllocationHandle handle;
static CUmemAllocationProp prop, zero_prop;
static CUmemAccessDesc access_desc;
static CUmemAccess_flags access_flags;
static CUDA_MEMCPY2D typeless_2d, narrow_2d;
static CUstream other_stream;
static CUevent other_event;
static CUgraph other_graph, good_graph;
static CUgraphNode good_node;
static CUgraphExec good_exec;
static CUgraphExecUpdateResultInfo update;
static CUgraphNodeParams zero_node;
static CUgraphConditionalHandle condition;
static CUDA_MEM_ALLOC_NODE_PARAMS alloc_node;
static CUDA_ARRAY_SPARSE_PROPERTIES sparse;
static CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
static CUmipmappedArray mipmap;
static CUmemoryPool default_pool;
static CUmemPoolPtrExportData pool_pointer;
static CUstreamBatchMemOpParams memory_op;
static CUtensorMap tensor_map;
static const cuuint64_t dims[1] = {64};
static const cuuint32_t tile[1] = {16}, steps[1] = {1};

static void CUDA_CB no_work(void *)
{
}

typedef CUresult call_fn(void);

#define CRASH (-1)

struct bad_call {
	const char *text;
	call_fn *call;
	int native, ours;
	const char *why;
};

#define CALL(expr, code)                                                   \
	{                                                                  \
#expr, []() -> CUresult { return expr; }, code, code, NULL \
	}
#define OURS(expr, code, other, why)                                       \
	{                                                                  \
#expr, []() -> CUresult { return expr; }, code, other, why \
	}
/* NVIDIA's driver does not survive this call. */
#define DEADLY(expr, code) \
	{#expr, []() -> CUresult { return expr; }, CRASH, code, "a bad argument is refused"}

#include "driver_mixed/bad_call_table.cuh"

static void set_up(void)
{
	device = driver_start();
	DCHECK(cuCtxGetCurrent(&context));
	DCHECK(cuModuleLoadData(&stale_module, driver_kernels));
	module = driver_module();
	function = driver_function(module, "fill");
	DCHECK(cuLibraryLoadData(&library, driver_kernels, NULL, NULL, 0, NULL, NULL, 0));
	DCHECK(cuLibraryGetKernel(&kernel, library, "fill"));
	DCHECK(cuMemAlloc(&memory, 4096));
	DCHECK(cuStreamCreate(&stale_stream, 0));
	DCHECK(cuStreamCreate(&stream, 0));
	DCHECK(cuStreamDestroy(stale_stream));
	DCHECK(cuEventCreate(&event, 0));
	DCHECK(cuEventCreate(&stale_event, 0));
	DCHECK(cuEventDestroy(stale_event));
	DCHECK(cuGraphCreate(&graph, 0));
	DCHECK(cuGraphCreate(&good_graph, 0));
	DCHECK(cuGraphAddEmptyNode(&good_node, good_graph, NULL, 0));
	DCHECK(cuGraphInstantiate(&good_exec, good_graph, 0));
	DCHECK(cuLinkCreate(0, NULL, NULL, &link_state));
	DCHECK(cuMemAllocHost((void **)&pinned, 4096));
	DCHECK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
	DCHECK(cuDeviceGetDefaultMemPool(&default_pool, device));
	nothing = driver_function(module, "nothing");
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	here.type = nowhere.type = prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	here.id = prop.location.id = device;
	nowhere.id = 4711;
	access_desc.location = here;
	access_desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	typeless_2d.WidthInBytes = typeless_2d.Height = 4;
	narrow_2d = typeless_2d;
	narrow_2d.srcMemoryType = narrow_2d.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	narrow_2d.srcDevice = narrow_2d.dstDevice = memory;
	narrow_2d.srcPitch = narrow_2d.dstPitch = 2;
	memory_op.operation = (CUstreamBatchMemOpType)77;
	unknown_attribute.id = (CUlaunchAttributeID)4711;
	unknown_config.gridDimX = unknown_config.gridDimY = unknown_config.gridDimZ = 1;
	unknown_config.blockDimX = unknown_config.blockDimY = unknown_config.blockDimZ = 1;
	no_attributes = unknown_config;
	unknown_config.attrs = &unknown_attribute;
	unknown_config.numAttrs = no_attributes.numAttrs = 1;
	/* Last, because a module that is loaded later may get the same handle. */
	DCHECK(cuModuleUnload(stale_module));
	config.gridDimX = 1;
}

/*
 * Prints what each call returns, and behind it what the table has. Some calls crash NVIDIA's
 * driver: a child makes the calls, and the next child goes on behind the one that ended it.
 */
static int record(void)
{
	const unsigned int count = sizeof(calls) / sizeof(*calls);
	volatile unsigned int *next;

	next = (volatile unsigned int *)mmap(NULL, sizeof(*next), PROT_READ | PROT_WRITE,
					     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(next != MAP_FAILED, "mmap");
	while (*next < count) {
		int status;
		pid_t pid;

		fflush(stdout);
		pid = fork();
		REQUIRE(pid >= 0, "fork");
		if (!pid) {
			set_up();
			while (*next < count) {
				const struct bad_call *c = &calls[(*next)++];

				printf("%s\t%d\t", c->text, c->native);
				fflush(stdout);
				printf("%d\n", (int)c->call());
			}
			fflush(stdout);
			_exit(0);
		}
		REQUIRE(waitpid(pid, &status, 0) == pid, "waitpid");
		if (WIFSIGNALED(status))
			printf("%d\n", CRASH);
		else
			REQUIRE(!status, "status %d", status);
	}
	return 0;
}

static const char *native_name(int code)
{
	return code == CRASH ? "crashes" : result_name((CUresult)code);
}

/* Prints the table of docs/programs/driver-errors.md. */
static int differences(void)
{
	puts("<!-- SPDX-License-Identifier: GPL-2.0-or-later -->\n"
	     "<!-- Printed by build/tests/guest/driver_bad_calls --differences; do not edit. -->\n"
	     "# Where a code of the driver API differs from NVIDIA's\n\n"
	     "`tests/guest/driver_mixed/driver_bad_calls.cu` makes every call of its table in the "
	     "VM, and\n"
	     "natively those that NVIDIA's driver survives. These differ; all the others are the "
	     "same.\n\n"
	     "| call | native | here | why |\n|---|---|---|---|");
	for (const struct bad_call &c : calls)
		if (c.native != c.ours)
			printf("| `%s` | %s | %s | %s |\n", c.text, native_name(c.native),
			       native_name(c.ours), c.why);
	return 0;
}

int main(int argc, char **argv)
{
	bool ours = is_ours("cuInit");
	int wrong = 0, count = 0;

	if (argc > 1 && !strcmp(argv[1], "--record"))
		return record();
	if (argc > 1 && !strcmp(argv[1], "--differences"))
		return differences();
	set_up();
	for (const struct bad_call &c : calls) {
		int want = ours ? c.ours : c.native, got;

		count++;
		if (want == CRASH)
			continue;
		got = c.call();
		if (got != want) {
			wrong++;
			fprintf(stderr, "%s\n\tgave %d, expected %d\n", c.text, got, want);
		}
	}
	if (wrong)
		return 1;
	return verified("%d bad calls of the driver API gave the right codes", count);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Functions of CUDA 13.5 that 13.0 does not have: bad input, what they return, parts
 * of a device, and that others say that they are not supported. Needs nothing of NVIDIA's
 * CUDA 13.5.
 */
#include <dlfcn.h>

#include "qcu-library/link/later.h"
#include "qcu-library/stream/green.h"
#include "tests/loopback/check.h"

#define LEN 4096

static void host(void *count)
{
	++*(int *)count;
}

/* Does the file that cudaGraphDebugDotPrint writes have this text? */
static bool dot_has(cudaGraph_t graph, const char *text)
{
	static char buf[65536];
	char path[] = "/tmp/qcu-dot.XXXXXX";
	int fd = mkstemp(path);
	ssize_t n;

	REQUIRE(fd >= 0, "mkstemp");
	OK(cudaGraphDebugDotPrint(graph, path, 0));
	n = read(fd, buf, sizeof(buf) - 1);
	REQUIRE(n > 0, "an empty file");
	buf[n] = 0;
	close(fd);
	unlink(path);
	return strstr(buf, text);
}

static void numbers(void)
{
	unsigned long long tools, tools2;
	unsigned int id, other, node;
	cudaGraphNode_t a, b;
	cudaGraph_t graph, in;
	cudaGraphExec_t exec;
	char text[40];

	OK(cudaGraphCreate(&graph, 0));
	OK(cudaGraphAddEmptyNode(&a, graph, NULL, 0));
	OK(cudaGraphAddEmptyNode(&b, graph, &a, 1));
	OK(cudaGraphInstantiate(&exec, graph, 0));
	REFUSED(qcul_GraphGetId(NULL, &id), cudaErrorInvalidValue);
	REFUSED(qcul_GraphGetId(graph, NULL), cudaErrorInvalidValue);
	REFUSED(qcul_GraphExecGetId(NULL, &id), cudaErrorInvalidValue);
	REFUSED(qcul_GraphExecGetId((cudaGraphExec_t)graph, &id), cudaErrorInvalidValue);
	REFUSED(qcul_GraphNodeGetLocalId(NULL, &id), cudaErrorInvalidValue);
	REFUSED(qcul_GraphNodeGetToolsId(a, NULL), cudaErrorInvalidValue);
	REFUSED(qcul_GraphNodeGetContainingGraph((cudaGraphNode_t)graph, &in),
		cudaErrorInvalidValue);
	OK(qcul_GraphGetId(graph, &id));
	OK(qcul_GraphExecGetId(exec, &other));
	REQUIRE(id != other, "graph and instance have the number %u", id);
	OK(qcul_GraphNodeGetLocalId(a, &node));
	snprintf(text, sizeof(text), "\"node_%u\"", node);
	REQUIRE(dot_has(graph, text), "no %s", text);
	snprintf(text, sizeof(text), "\"graph_%u\"", id);
	REQUIRE(dot_has(graph, text), "no %s", text);
	OK(qcul_GraphNodeGetToolsId(a, &tools));
	OK(qcul_GraphNodeGetToolsId(b, &tools2));
	REQUIRE(tools != tools2, "two nodes have the number %llu", tools);
	OK(qcul_GraphNodeGetContainingGraph(b, &in));
	REQUIRE(in == graph, "another graph");
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
}

static void parameters(void)
{
	struct cudaGraphNodeParams p, q = {.type = cudaGraphNodeTypeMemset};
	cudaGraphConditionalHandle handle;
	struct cudaHostNodeParams h;
	cudaGraphNode_t set, copy, call, cond;
	cudaGraph_t graph, child;
	int count = 0;
	char *device, up[LEN];

	h = (struct cudaHostNodeParams){host, &count};
	OK(cudaMalloc((void **)&device, LEN));
	OK(cudaGraphCreate(&graph, 0));
	q.memset = (struct cudaMemsetParamsV2){
		.dst = device, .value = 7, .elementSize = 1, .width = LEN, .height = 1};
	OK(cudaGraphAddNode(&set, graph, NULL, NULL, 0, &q));
	OK(cudaGraphAddMemcpyNode1D(&copy, graph, &set, 1, up, device, LEN, cudaMemcpyDefault));
	OK(cudaGraphAddHostNode(&call, graph, &copy, 1, &h));
	REFUSED(qcul_GraphNodeGetParams(NULL, &p), cudaErrorInvalidValue);
	REFUSED(qcul_GraphNodeGetParams(set, NULL), cudaErrorInvalidValue);
	memset(&p, 0x5a, sizeof(p));
	OK(qcul_GraphNodeGetParams(set, &p));
	REQUIRE(!memcmp(&p, &q, sizeof(p)), "other parameters than at creation");
	OK(qcul_GraphNodeGetParams(copy, &p));
	REQUIRE(p.type == cudaGraphNodeTypeMemcpy && p.memcpy.copyParams.srcPtr.ptr == device &&
			p.memcpy.copyParams.extent.width == LEN,
		"type %d", p.type);
	OK(qcul_GraphNodeGetParams(call, &p));
	REQUIRE(p.type == cudaGraphNodeTypeHost && p.host.fn == host && p.host.userData == &count,
		"type %d", p.type);
	/* What comes back can be used to make the same node again. */
	OK(cudaGraphAddNode(&call, graph, &call, NULL, 1, &p));

	REFUSED(qcul_GraphConditionalHandleCreate_v2(&handle, graph, (void *)&q, 0, 0),
		cudaErrorInvalidResourceHandle);
	OK(qcul_GraphConditionalHandleCreate_v2(&handle, graph, NULL, 0,
						cudaGraphCondAssignDefault));
	q = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeConditional};
	q.conditional.handle = handle;
	q.conditional.type = cudaGraphCondTypeIf;
	q.conditional.size = 1;
	OK(cudaGraphAddNode(&cond, graph, NULL, NULL, 0, &q));
	OK(qcul_GraphNodeGetParams(cond, &p));
	REQUIRE(p.conditional.handle == handle && p.conditional.size == 1 &&
			p.conditional.phGraph_out[0] == q.conditional.phGraph_out[0],
		"another handle");
	/* A child belongs to its node, and the ownership says so. */
	OK(cudaGraphCreate(&child, 0));
	OK(cudaGraphAddChildGraphNode(&call, graph, NULL, 0, child));
	OK(cudaGraphDestroy(child));
	OK(qcul_GraphNodeGetParams(call, &p));
	REQUIRE(p.graph.graph && p.graph.graph != child && (int)p.graph.ownership == -1,
		"ownership %d", (int)p.graph.ownership);
	REFUSED(cudaGraphAddNode(&call, graph, NULL, NULL, 0, &p), cudaErrorInvalidValue);
	OK(cudaGraphDestroy(graph));
	OK(cudaFree(device));
}

static void copies(void)
{
	struct cudaMemcpyAttributes attributes = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
	struct cudaMemcpy3DBatchOp op = {
		.src.type = cudaMemcpyOperandTypePointer,
		.dst.type = cudaMemcpyOperandTypePointer,
		.extent = {LEN, 1, 1},
		.srcAccessOrder = cudaMemcpySrcAccessOrderStream,
	};
	static char up[LEN], down[LEN], again[LEN];
	cudaStream_t stream;
	char *device;
	int count = 0;

	fill(up, LEN, 1);
	OK(cudaMalloc((void **)&device, LEN));
	OK(cudaStreamCreate(&stream));
	REFUSED(qcul_MemcpyWithAttributesAsync(device, up, LEN, NULL, stream),
		cudaErrorInvalidValue);
	REFUSED(qcul_MemcpyWithAttributesAsync(device, up, LEN, &attributes, NULL),
		cudaErrorInvalidValue);
	REFUSED(qcul_Memcpy3DWithAttributesAsync(NULL, 0, stream), cudaErrorInvalidValue);
	REFUSED(qcul_LaunchHostFunc_v2(stream, host, &count, 2), cudaErrorInvalidValue);
	REFUSED(qcul_LaunchHostFunc_v2(stream, NULL, &count, 0), cudaErrorInvalidValue);
	OK(qcul_MemcpyWithAttributesAsync(device, up, LEN, &attributes, stream));
	OK(qcul_MemcpyWithAttributesAsync(down, device, LEN, &attributes, stream));
	op.src.op.ptr.ptr = device;
	op.dst.op.ptr.ptr = again;
	OK(qcul_Memcpy3DWithAttributesAsync(&op, 0, stream));
	OK(qcul_LaunchHostFunc_v2(stream, host, &count, 0));
	OK(qcul_LaunchHostFunc_v2(stream, host, &count, 1));
	OK(cudaStreamSynchronize(stream));
	REQUIRE(differs(up, down, LEN) == LEN, "the copy");
	REQUIRE(differs(up, again, LEN) == LEN, "the copy of a box");
	REQUIRE(count == 2, "%d calls", count);
	memset(down, 0, LEN);
	OK(qcul_MemcpyWithAttributesAsync_ptsz(down, device, LEN, &attributes, NULL));
	memset(again, 0, LEN);
	OK(qcul_Memcpy3DWithAttributesAsync_ptsz(&op, 0, NULL));
	OK(qcul_LaunchHostFunc_v2_ptsz(NULL, host, &count, 0));
	OK(cudaStreamSynchronize(cudaStreamPerThread));
	REQUIRE(differs(up, again, LEN) == LEN, "the copy of a box in the thread's stream");
	REQUIRE(differs(up, down, LEN) == LEN && count == 3, "in the thread's stream");
	OK(cudaStreamDestroy(stream));
	OK(cudaFree(device));
}

static void contexts(void)
{
	struct cudaExecutionContext_st *context;
	unsigned long long id;
	cudaStream_t stream;
	int device = -1;

	REFUSED(qcul_DeviceGetExecutionCtx(NULL, 0), cudaErrorInvalidValue);
	REFUSED(qcul_DeviceGetExecutionCtx(&context, 99), cudaErrorInvalidDevice);
	REFUSED(qcul_ExecutionCtxSynchronize(NULL), cudaErrorInvalidResourceHandle);
	REFUSED(qcul_ExecutionCtxGetDevice(&device, (void *)&device),
		cudaErrorInvalidResourceHandle);
	OK(qcul_DeviceGetExecutionCtx(&context, 0));
	REFUSED(qcul_ExecutionCtxGetDevice(NULL, context), cudaErrorInvalidValue);
	REFUSED(qcul_ExecutionCtxStreamCreate(NULL, context, 0, 0), cudaErrorInvalidValue);
	OK(qcul_ExecutionCtxGetDevice(&device, context));
	REQUIRE(device == 0, "device %d", device);
	OK(qcul_ExecutionCtxGetId(context, &id));
	OK(qcul_ExecutionCtxStreamCreate(&stream, context, cudaStreamNonBlocking, 0));
	OK(cudaStreamGetDevice(stream, &device));
	REQUIRE(device == 0, "device %d", device);
	OK(qcul_ExecutionCtxSynchronize(context));
	OK(cudaStreamDestroy(stream));
}

/* The part of a device as the public functions take it. */
#define RESOURCE(r) ((struct cudaDevResource_st *)(r))

static void parts(void)
{
	struct qcul_resource all, part[2], rest, forged;
	struct cudaExecutionContext_st *context, *device_context;
	struct CUdevResourceDesc_st *desc;
	unsigned long long id, other;
	cudaStream_t stream, next;
	cudaEvent_t event;
	unsigned int n = 1;
	int device = -1;
	char *memory;

	REFUSED(qcul_DeviceGetDevResource(99, RESOURCE(&all), cudaDevResourceTypeSm),
		cudaErrorInvalidDevice);
	REFUSED(qcul_DeviceGetDevResource(0, NULL, cudaDevResourceTypeSm), cudaErrorInvalidValue);
	REFUSED(qcul_DeviceGetDevResource(0, RESOURCE(&all), (enum cudaDevResourceType)1000),
		cudaErrorInvalidResourceType);
	OK(qcul_DeviceGetDevResource(0, RESOURCE(&all), cudaDevResourceTypeSm));
	REFUSED(qcul_DevSmResourceSplitByCount(RESOURCE(part), NULL, RESOURCE(&all), NULL, 0, 1),
		cudaErrorInvalidValue);
	REFUSED(qcul_DevSmResourceSplitByCount(RESOURCE(part), &n, RESOURCE(&all), NULL, 4, 1),
		cudaErrorInvalidValue);
	REFUSED(qcul_DevSmResourceSplitByCount(RESOURCE(part), &n, RESOURCE(&all), NULL, 0,
					       all.sms + 1),
		cudaErrorInvalidValue);
	OK(qcul_DevSmResourceSplitByCount(RESOURCE(part), &n, RESOURCE(&all), RESOURCE(&rest), 0,
					  1));
	REQUIRE(n == 1 && part[0].sms == 1 && rest.sms == all.sms - 1 &&
			rest.type == (rest.sms > 0),
		"%u groups of %u, rest %u", n, part[0].sms, rest.sms);
	/* A group that the split does not make. */
	forged = part[0];
	memcpy(forged.internal + offsetof(struct qcul_part, member), &n, sizeof(n));
	REFUSED(qcul_DevResourceGenerateDesc(NULL, RESOURCE(part), 1), cudaErrorInvalidValue);
	OK(qcul_DevResourceGenerateDesc(&desc, RESOURCE(&forged), 1));
	REFUSED(qcul_GreenCtxCreate(&context, desc, 0, 0), cudaErrorInvalidResourceConfiguration);
	OK(qcul_DevResourceGenerateDesc(&desc, RESOURCE(part), 1));
	REFUSED(qcul_GreenCtxCreate(&context, desc, 0, 1), cudaErrorInvalidValue);
	REFUSED(qcul_GreenCtxCreate(&context, (void *)&all, 0, 0), cudaErrorInvalidValue);
	OK(qcul_GreenCtxCreate(&context, desc, 0, 0));

	OK(qcul_DeviceGetExecutionCtx(&device_context, 0));
	REFUSED(qcul_ExecutionCtxDestroy(device_context), cudaErrorInvalidValue);
	OK(qcul_ExecutionCtxGetDevice(&device, context));
	OK(qcul_ExecutionCtxGetId(context, &id));
	OK(qcul_ExecutionCtxGetId(device_context, &other));
	REQUIRE(device == 0 && id != other, "device %d, number %llu", device, id);
	OK(qcul_ExecutionCtxGetDevResource(device_context, RESOURCE(&rest), cudaDevResourceTypeSm));
	REQUIRE(rest.sms == all.sms, "%u multiprocessors", rest.sms);
	REFUSED(qcul_ExecutionCtxStreamCreate(NULL, context, 0, 0), cudaErrorInvalidValue);
	OK(qcul_ExecutionCtxStreamCreate(&stream, context, cudaStreamDefault, 0));
	OK(cudaStreamGetFlags(stream, &n));
	REQUIRE(n == cudaStreamNonBlocking, "flags %u", n);
	OK(qcul_StreamGetDevResource(stream, RESOURCE(&rest), cudaDevResourceTypeSm));
	REQUIRE(rest.sms == 1, "%u multiprocessors", rest.sms);
	OK(qcul_StreamGetDevResource_ptsz(NULL, RESOURCE(&rest), cudaDevResourceTypeSm));
	REQUIRE(rest.sms == all.sms, "%u multiprocessors", rest.sms);

	OK(cudaMalloc((void **)&memory, LEN));
	OK(cudaEventCreate(&event));
	REFUSED(qcul_ExecutionCtxRecordEvent(device_context, event), cudaErrorNotSupported);
	REFUSED(qcul_ExecutionCtxRecordEvent(context, NULL), cudaErrorInvalidResourceHandle);
	OK(cudaMemsetAsync(memory, 1, LEN, stream));
	OK(qcul_ExecutionCtxRecordEvent(context, event));
	OK(qcul_ExecutionCtxWaitEvent(context, event));
	OK(qcul_ExecutionCtxStreamCreate(&next, context, cudaStreamDefault, 0));
	OK(cudaMemsetAsync(memory, 2, LEN, next));
	OK(qcul_ExecutionCtxSynchronize(context));
	OK(cudaEventQuery(event));
	/* While one of its streams is captured, nothing can be about all of them. */
	OK(cudaStreamBeginCapture(next, cudaStreamCaptureModeRelaxed));
	REFUSED(qcul_ExecutionCtxRecordEvent(context, event), cudaErrorStreamCaptureUnsupported);
	REFUSED(qcul_ExecutionCtxWaitEvent(context, event), cudaErrorStreamCaptureUnsupported);
	OK(qcul_ExecutionCtxDestroy(context));
	REFUSED(cudaMemsetAsync(memory, 1, LEN, stream), cudaErrorInvalidResourceHandle);
	REFUSED(qcul_ExecutionCtxSynchronize(context), cudaErrorInvalidResourceHandle);
	OK(cudaEventDestroy(event));
	OK(cudaFree(memory));

	/* A reset ends it, too. */
	OK(qcul_GreenCtxCreate(&context, desc, 0, 0));
	OK(cudaDeviceReset());
	REFUSED(qcul_ExecutionCtxSynchronize(context), cudaErrorInvalidResourceHandle);
	OK(qcul_GreenCtxCreate(&context, desc, 0, 0));
	OK(qcul_ExecutionCtxDestroy(context));
}

/* Those without a meaning here are refused, with their names on stderr. */
static void refused(void)
{
	static const char *const names[] = {"cudaDevSmResourceSplit",
					    "cudaStreamBeginRecaptureToGraph",
					    "cudaMemGetLocationInfo", "cudaSubgridCreate"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		cudaError_t (*f)(void) = (cudaError_t(*)(void))dlsym(RTLD_DEFAULT, names[i]);

		REQUIRE(f, "no %s", names[i]);
		REFUSED(f(), cudaErrorNotSupported);
	}
}

int main(void)
{
	numbers();
	parameters();
	copies();
	contexts();
	parts();
	refused();
	return 0;
}

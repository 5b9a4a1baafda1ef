// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * External memory and semaphores of two processes of one VM. The memory comes from the driver API
 * and its file descriptor; the semaphores are memfds. What no process of this VM has made is
 * refused.
 */
#include <sys/mman.h>

#include "driver.h"
#include "processes/ipc.h"

static CUmemAllocationProp prop;
static size_t unit;

static unsigned int word_at(const void *ptr)
{
	unsigned int value;

	CHECK(cudaMemcpy(&value, ptr, 4, cudaMemcpyDeviceToHost));
	return value;
}

static int new_memory(CUmemGenericAllocationHandle *handle)
{
	int fd;

	DCHECK(cuMemCreate(handle, unit, &prop, 0));
	DCHECK(cuMemExportToShareableHandle(&fd, *handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					    0));
	return fd;
}

static int new_semaphore(void)
{
	int fd = memfd_create("semaphore", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	REQUIRE(fd >= 0 && !ftruncate(fd, 4096), "memfd");
	return fd;
}

static cudaExternalMemoryHandleDesc memory_desc(int fd, size_t size)
{
	cudaExternalMemoryHandleDesc desc = {};

	desc.type = cudaExternalMemoryHandleTypeOpaqueFd;
	desc.handle.fd = fd;
	desc.size = size;
	return desc;
}

static cudaExternalSemaphoreHandleDesc semaphore_desc(int fd, cudaExternalSemaphoreHandleType type)
{
	cudaExternalSemaphoreHandleDesc desc = {};

	desc.type = type;
	desc.handle.fd = fd;
	return desc;
}

static cudaExternalSemaphore_t semaphore_of(int fd, cudaExternalSemaphoreHandleType type)
{
	const cudaExternalSemaphoreHandleDesc desc = semaphore_desc(fd, type);
	cudaExternalSemaphore_t semaphore;

	CHECK(cudaImportExternalSemaphore(&semaphore, &desc));
	return semaphore;
}

static void wrong_memory(int fd)
{
	cudaExternalMemoryHandleDesc desc = memory_desc(fd, unit);
	cudaExternalMemory_t memory;
	int other;

	EXPECT(cudaImportExternalMemory(NULL, &desc), cudaErrorInvalidValue);
	EXPECT(cudaImportExternalMemory(&memory, NULL), cudaErrorInvalidValue);
	desc.size = 0;
	EXPECT(cudaImportExternalMemory(&memory, &desc), cudaErrorInvalidValue);
	desc.size = unit + 1;
	EXPECT(cudaImportExternalMemory(&memory, &desc), cudaErrorInvalidValue);
	desc = memory_desc(fd, unit);
	desc.flags = 2;
	EXPECT(cudaImportExternalMemory(&memory, &desc), cudaErrorInvalidValue);
	desc = memory_desc(fd, unit);
	desc.reserved[15] = 1;
	EXPECT(cudaImportExternalMemory(&memory, &desc), cudaErrorInvalidValue);
	desc = memory_desc(-1, unit);
	EXPECT(cudaImportExternalMemory(&memory, &desc), cudaErrorInvalidValue);
	desc = memory_desc(fd, unit);
	desc.type = (cudaExternalMemoryHandleType)99;
	EXPECT(cudaImportExternalMemory(&memory, &desc), cudaErrorInvalidValue);
	desc.type = cudaExternalMemoryHandleTypeOpaqueWin32;
	EXPECT(cudaImportExternalMemory(&memory, &desc), cudaErrorNotSupported);
	/* A file descriptor, but of something else. */
	other = new_semaphore();
	desc = memory_desc(other, unit);
	EXPECT(cudaImportExternalMemory(&memory, &desc), cudaErrorNotSupported);
	REQUIRE(!close(other), "a refused file is still the program's");
	EXPECT(cudaDestroyExternalMemory((cudaExternalMemory_t)&desc), cudaErrorInvalidValue);
}

static void wrong_buffers(cudaExternalMemory_t memory)
{
	cudaExternalMemoryBufferDesc desc = {};
	void *ptr;

	EXPECT(cudaExternalMemoryGetMappedBuffer(&ptr, memory, NULL), cudaErrorInvalidValue);
	EXPECT(cudaExternalMemoryGetMappedBuffer(&ptr, memory, &desc), cudaErrorInvalidValue);
	desc.size = unit + 1;
	EXPECT(cudaExternalMemoryGetMappedBuffer(&ptr, memory, &desc), cudaErrorInvalidValue);
	desc.size = 8;
	desc.offset = (unsigned long long)-4;
	EXPECT(cudaExternalMemoryGetMappedBuffer(&ptr, memory, &desc), cudaErrorInvalidValue);
	desc.offset = unit - 4;
	EXPECT(cudaExternalMemoryGetMappedBuffer(&ptr, memory, &desc), cudaErrorInvalidValue);
	desc.offset = 0;
	desc.flags = 1;
	EXPECT(cudaExternalMemoryGetMappedBuffer(&ptr, memory, &desc), cudaErrorInvalidValue);
	desc.flags = 0;
	EXPECT(cudaExternalMemoryGetMappedBuffer(NULL, memory, &desc), cudaErrorInvalidValue);
	EXPECT(cudaExternalMemoryGetMappedBuffer(&ptr, (cudaExternalMemory_t)&desc, &desc),
	       cudaErrorInvalidValue);
}

static void wrong_semaphores(void)
{
	const cudaExternalSemaphoreHandleType timeline =
		cudaExternalSemaphoreHandleTypeTimelineSemaphoreFd;
	cudaExternalSemaphoreSignalParams signal = {};
	cudaExternalSemaphoreWaitParams wait = {};
	cudaExternalSemaphoreHandleDesc desc;
	cudaExternalSemaphore_t semaphore;
	int fd = new_semaphore();

	desc = semaphore_desc(-1, timeline);
	EXPECT(cudaImportExternalSemaphore(&semaphore, &desc), cudaErrorInvalidValue);
	desc = semaphore_desc(0, timeline);
	EXPECT(cudaImportExternalSemaphore(&semaphore, &desc), cudaErrorNotSupported);
	desc = semaphore_desc(fd, cudaExternalSemaphoreHandleTypeD3D12Fence);
	EXPECT(cudaImportExternalSemaphore(&semaphore, &desc), cudaErrorNotSupported);
	desc = semaphore_desc(fd, (cudaExternalSemaphoreHandleType)99);
	EXPECT(cudaImportExternalSemaphore(&semaphore, &desc), cudaErrorInvalidValue);
	desc = semaphore_desc(fd, timeline);
	EXPECT(cudaImportExternalSemaphore(NULL, &desc), cudaErrorInvalidValue);
	EXPECT(cudaImportExternalSemaphore(&semaphore, NULL), cudaErrorInvalidValue);
	desc.flags = 1;
	EXPECT(cudaImportExternalSemaphore(&semaphore, &desc), cudaErrorInvalidValue);
	desc.flags = 0;
	REQUIRE(!ftruncate(fd, 4), "ftruncate");
	EXPECT(cudaImportExternalSemaphore(&semaphore, &desc), cudaErrorInvalidValue);
	REQUIRE(!ftruncate(fd, 4096), "ftruncate");
	semaphore = semaphore_of(dup(fd), timeline);
	EXPECT(cudaSignalExternalSemaphoresAsync(&semaphore, &signal, 0, 0), cudaErrorInvalidValue);
	EXPECT(cudaSignalExternalSemaphoresAsync(NULL, &signal, 1, 0), cudaErrorInvalidValue);
	EXPECT(cudaSignalExternalSemaphoresAsync(&semaphore, NULL, 1, 0), cudaErrorInvalidValue);
	EXPECT(cudaWaitExternalSemaphoresAsync(&semaphore, NULL, 1, 0), cudaErrorInvalidValue);
	signal.flags = wait.flags = 1;
	EXPECT(cudaSignalExternalSemaphoresAsync(&semaphore, &signal, 1, 0), cudaErrorInvalidValue);
	EXPECT(cudaWaitExternalSemaphoresAsync(&semaphore, &wait, 1, 0), cudaErrorInvalidValue);
	CHECK(cudaDestroyExternalSemaphore(semaphore));
	EXPECT(cudaDestroyExternalSemaphore(semaphore), cudaErrorInvalidValue);
	wait.flags = 0;
	EXPECT(cudaWaitExternalSemaphoresAsync(&semaphore, &wait, 1, 0), cudaErrorInvalidValue);
	close(fd);
}

/* What a semaphore says is read and written by this process's own processor, too. */
static void processor(void)
{
	int fd = new_semaphore();
	volatile unsigned long long *number = (volatile unsigned long long *)mmap(
		NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	const cudaExternalSemaphore_t s =
		semaphore_of(fd, cudaExternalSemaphoreHandleTypeTimelineSemaphoreFd);
	cudaExternalSemaphoreSignalParams signal = {};
	cudaExternalSemaphoreWaitParams wait = {};
	cudaStream_t stream;

	REQUIRE(number != MAP_FAILED, "mmap");
	CHECK(cudaStreamCreate(&stream));
	wait.params.fence.value = 5;
	signal.params.fence.value = 7;
	CHECK(cudaWaitExternalSemaphoresAsync(&s, &wait, 1, stream));
	CHECK(cudaSignalExternalSemaphoresAsync(&s, &signal, 1, stream));
	EXPECT(cudaStreamQuery(stream), cudaErrorNotReady);
	*number = 4;
	EXPECT(cudaStreamQuery(stream), cudaErrorNotReady);
	*number = 6;
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(*number == 7, "%llu", *number);
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaDestroyExternalSemaphore(s));
}

static void wrong_nodes(cudaGraph_t graph, cudaExternalSemaphore_t s)
{
	cudaExternalSemaphoreSignalNodeParams signal = {};
	cudaExternalSemaphoreSignalParams number = {};
	cudaGraphNode_t node;

	EXPECT(cudaGraphAddExternalSemaphoresSignalNode(&node, graph, NULL, 0, NULL),
	       cudaErrorInvalidValue);
	EXPECT(cudaGraphAddExternalSemaphoresSignalNode(&node, graph, NULL, 0, &signal),
	       cudaErrorInvalidValue);
	signal.extSemArray = &s;
	signal.paramsArray = &number;
	signal.numExtSems = 1;
	number.flags = 1;
	EXPECT(cudaGraphAddExternalSemaphoresSignalNode(&node, graph, NULL, 0, &signal),
	       cudaErrorInvalidValue);
	number.flags = 0;
	CHECK(cudaGraphAddEmptyNode(&node, graph, NULL, 0));
	EXPECT(cudaGraphExternalSemaphoresSignalNodeSetParams(node, &signal),
	       cudaErrorInvalidValue);
	EXPECT(cudaGraphExternalSemaphoresSignalNodeGetParams(node, &signal),
	       cudaErrorInvalidValue);
	CHECK(cudaGraphDestroyNode(node));
}

/* A graph waits for a number, and then signals the next one; its instance learns other numbers. */
static void nodes(void)
{
	int fd = new_semaphore();
	volatile unsigned long long *number = (volatile unsigned long long *)mmap(
		NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cudaExternalSemaphore_t s =
		semaphore_of(fd, cudaExternalSemaphoreHandleTypeTimelineSemaphoreFd);
	cudaExternalSemaphoreSignalParams signal = {};
	cudaExternalSemaphoreWaitParams wait = {};
	cudaExternalSemaphoreSignalNodeParams signals = {&s, &signal, 1}, seen;
	cudaExternalSemaphoreWaitNodeParams waits = {&s, &wait, 1}, seen_wait;
	cudaGraphNodeType type;
	cudaGraphNode_t first, second;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	cudaStream_t stream;

	REQUIRE(number != MAP_FAILED, "mmap");
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaGraphCreate(&graph, 0));
	wrong_nodes(graph, s);
	wait.params.fence.value = 3;
	signal.params.fence.value = 4;
	CHECK(cudaGraphAddExternalSemaphoresWaitNode(&first, graph, NULL, 0, &waits));
	CHECK(cudaGraphAddExternalSemaphoresSignalNode(&second, graph, &first, 1, &signals));
	CHECK(cudaGraphNodeGetType(first, &type));
	REQUIRE(type == cudaGraphNodeTypeExtSemaphoreWait, "%d", type);
	CHECK(cudaGraphNodeGetType(second, &type));
	REQUIRE(type == cudaGraphNodeTypeExtSemaphoreSignal, "%d", type);
	EXPECT(cudaGraphExternalSemaphoresWaitNodeSetParams(second, &waits), cudaErrorInvalidValue);
	CHECK(cudaGraphExternalSemaphoresSignalNodeGetParams(second, &seen));
	CHECK(cudaGraphExternalSemaphoresWaitNodeGetParams(first, &seen_wait));
	REQUIRE(seen.numExtSems == 1 && seen.extSemArray[0] == s &&
			seen.paramsArray[0].params.fence.value == 4 &&
			seen_wait.paramsArray[0].params.fence.value == 3,
		"%u", seen.numExtSems);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, stream));
	EXPECT(cudaStreamQuery(stream), cudaErrorNotReady);
	*number = 3;
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(*number == 4, "%llu", *number);
	signal.params.fence.value = 6;
	CHECK(cudaGraphExecExternalSemaphoresSignalNodeSetParams(exec, second, &signals));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(*number == 6, "%llu", *number);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));

	/* Captured, they become such nodes. */
	signal.params.fence.value = 9;
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	CHECK(cudaSignalExternalSemaphoresAsync(&s, &signal, 1, stream));
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(*number == 6, "%llu", *number);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(*number == 9, "%llu", *number);
	/* A graph may outlive its semaphores, but cannot be launched then. */
	CHECK(cudaDestroyExternalSemaphore(s));
	EXPECT(cudaGraphLaunch(exec, stream), cudaErrorInvalidValue);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaStreamDestroy(stream));
}

static void start(void)
{
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = driver_start();
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	DCHECK(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
}

static void *map(cudaExternalMemory_t memory, size_t offset, size_t size)
{
	cudaExternalMemoryBufferDesc desc = {};
	void *ptr;

	desc.offset = offset;
	desc.size = size;
	CHECK(cudaExternalMemoryGetMappedBuffer(&ptr, memory, &desc));
	return ptr;
}

static cudaExternalMemory_t import(int fd)
{
	const cudaExternalMemoryHandleDesc desc = memory_desc(fd, unit);
	cudaExternalMemory_t memory;

	CHECK(cudaImportExternalMemory(&memory, &desc));
	return memory;
}

/* The parent writes and signals. The child waits, writes, and signals back. */
static void parent(const struct peer *p)
{
	int to = new_semaphore(), from = new_semaphore(), memory_fd;
	cudaExternalSemaphoreSignalParams signal = {};
	cudaExternalSemaphoreWaitParams wait = {};
	cudaExternalSemaphore_t there, back;
	CUmemGenericAllocationHandle handle;
	cudaExternalMemory_t memory;
	char *ptr;

	wrong_semaphores();
	processor();
	nodes();
	memory_fd = new_memory(&handle);
	tell_file(p, to);
	tell_file(p, from);
	there = semaphore_of(to, cudaExternalSemaphoreHandleTypeTimelineSemaphoreFd);
	back = semaphore_of(from, cudaExternalSemaphoreHandleTypeOpaqueFd);
	wrong_memory(memory_fd);
	tell_file(p, memory_fd);
	memory = import(memory_fd);
	wrong_buffers(memory);
	ptr = (char *)map(memory, 0, unit);
	CHECK(cudaMemsetAsync(ptr, 3, unit, 0));
	meet(p);
	signal.params.fence.value = 1ull << 40;
	CHECK(cudaSignalExternalSemaphoresAsync(&there, &signal, 1, 0));
	CHECK(cudaWaitExternalSemaphoresAsync(&back, &wait, 1, 0));
	CHECK(cudaStreamSynchronize(0));
	REQUIRE(word_at(ptr + 256) == 0x04040404, "%x", word_at(ptr + 256));
	REQUIRE(word_at(ptr) == 0x03030303, "%x", word_at(ptr));
	EXPECT(cudaFree(ptr + 256), cudaErrorInvalidValue);
	CHECK(cudaDestroyExternalMemory(memory));
	CHECK(cudaFree(ptr));
	EXPECT(cudaFree(ptr), cudaErrorInvalidValue);
	CHECK(cudaDestroyExternalSemaphore(there));
	CHECK(cudaDestroyExternalSemaphore(back));
	DCHECK(cuMemRelease(handle));
}

/* A buffer may begin anywhere, and two may lie over the same memory. */
static void child(const struct peer *p)
{
	cudaExternalSemaphoreSignalParams signal = {};
	cudaExternalSemaphoreWaitParams wait = {};
	cudaExternalSemaphore_t there, back;
	cudaExternalMemory_t memory;
	char *part, *all;

	there = semaphore_of(hear_file(p), cudaExternalSemaphoreHandleTypeTimelineSemaphoreFd);
	back = semaphore_of(hear_file(p), cudaExternalSemaphoreHandleTypeOpaqueFd);
	memory = import(hear_file(p));
	part = (char *)map(memory, 256, 256);
	all = (char *)map(memory, 0, unit);
	wait.params.fence.value = 1ull << 40;
	CHECK(cudaWaitExternalSemaphoresAsync(&there, &wait, 1, 0));
	EXPECT(cudaStreamQuery(0), cudaErrorNotReady);
	meet(p);
	CHECK(cudaStreamSynchronize(0));
	REQUIRE(word_at(all + unit - 4) == 0x03030303, "%x", word_at(all + unit - 4));
	CHECK(cudaMemsetAsync(part, 4, 256, 0));
	CHECK(cudaSignalExternalSemaphoresAsync(&back, &signal, 1, 0));
	CHECK(cudaStreamSynchronize(0));
	CHECK(cudaFree(part));
	CHECK(cudaFree(all));
	CHECK(cudaDestroyExternalMemory(memory));
	CHECK(cudaDestroyExternalSemaphore(there));
	CHECK(cudaDestroyExternalSemaphore(back));
}

int main()
{
	const struct peer p = start_peer();

	start();
	if (!p.pid) {
		child(&p);
		return 0;
	}
	parent(&p);
	end_peer(&p);
	return verified("two processes with external memory and semaphores");
}

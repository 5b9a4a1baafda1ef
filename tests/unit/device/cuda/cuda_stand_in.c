// SPDX-License-Identifier: GPL-2.0-or-later
/* See cuda_stand_in.h. */
#define _GNU_SOURCE /* memfd_create */
#include "tests/unit/device/cuda/cuda_stand_in.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/device/cuda/cuda_addresses.h"

#define MIB    (1ull << 20)
#define WHOLE  (8 * MIB) /* copies up to this size are complete */
#define BROKEN 719	 /* what a call returns that fails */

#define MEMORIES 4096u
static struct {
	int fd;
	uint64_t bytes, at; /* at: where it is mapped, or 0 */
	bool exists, lent, released;
} memories[MEMORIES];
struct cuda_stand_in cuda;
static struct {
	void *to;
	const void *from;
	size_t bytes;
} queue[256];
static unsigned int queued, streams;

static bool fails(void)
{
	return ++cuda.calls == cuda.fail_at;
}

static void *no_access(uint64_t at, uint64_t bytes)
{
	void *p = mmap((void *)(uintptr_t)at, bytes, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

static CUresult CUDAAPI reserve(CUdeviceptr *out, size_t bytes, size_t align, CUdeviceptr at,
				unsigned long long flags)
{
	assert_true(!align && !flags);
	if (fails())
		return (CUresult)BROKEN;
	*out = addresses_reserve(bytes, at);
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI unreserve(CUdeviceptr at, size_t bytes)
{
	unsigned int i;

	for (i = 0; i < MEMORIES; i++)
		assert_false(memories[i].at >= at && memories[i].at < at + bytes);
	addresses_free(at, bytes);
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI create(CUmemGenericAllocationHandle *h, size_t bytes,
			       const CUmemAllocationProp *prop, unsigned long long flags)
{
	unsigned int i;

	const bool lent = prop->location.id == (int)CUDA_STORE;

	assert_true((lent || prop->location.id == (int)CUDA_DEVICE) && !flags && bytes &&
		    bytes % CU_UNIT == 0);
	if (fails())
		return (CUresult)BROKEN;
	if (bytes > (lent ? cuda.lent_room - cuda.lent : cuda.room - cuda.used))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (i = 0; memories[i].exists; i++)
		assert_true(i + 1 < MEMORIES);
	memories[i].fd = memfd_create("device", MFD_CLOEXEC);
	assert_false(memories[i].fd < 0 || ftruncate(memories[i].fd, (off_t)bytes));
	memories[i].bytes = bytes;
	memories[i].exists = true;
	memories[i].lent = lent;
	memories[i].released = false;
	*(lent ? &cuda.lent : &cuda.used) += bytes;
	*h = i + 1;
	return CUDA_SUCCESS;
}

static void end_memory(unsigned int i)
{
	close(memories[i].fd);
	*(memories[i].lent ? &cuda.lent : &cuda.used) -= memories[i].bytes;
	memories[i].exists = false;
}

/* What is mapped stays until it is unmapped. The backend relies on that only for the store. */
static CUresult CUDAAPI release(CUmemGenericAllocationHandle h)
{
	assert_true(memories[h - 1].exists && !memories[h - 1].released);
	assert_true(!memories[h - 1].at || memories[h - 1].lent);
	memories[h - 1].released = true;
	if (!memories[h - 1].at)
		end_memory((unsigned int)(h - 1));
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI map(CUdeviceptr at, size_t bytes, size_t offset,
			    CUmemGenericAllocationHandle h, unsigned long long flags)
{
	assert_true(memories[h - 1].exists && memories[h - 1].bytes == bytes && !offset && !flags);
	if (fails())
		return (CUresult)BROKEN;
	assert_true(mmap((void *)(uintptr_t)at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
			 memories[h - 1].fd, 0) != MAP_FAILED);
	memories[h - 1].at = at;
	return CUDA_SUCCESS;
}

/* Copies of what goes have been made. Of the other device's, only copies of it count. */
static void must_be_copied(unsigned int i)
{
	unsigned int k;

	for (k = 0; k < queued; k++)
		assert_true(memories[i].lent &&
			    (uintptr_t)queue[k].to - memories[i].at >= memories[i].bytes &&
			    (uintptr_t)queue[k].from - memories[i].at >= memories[i].bytes);
}

static CUresult CUDAAPI unmap(CUdeviceptr at, size_t bytes)
{
	unsigned int i;

	if (fails())
		return (CUresult)BROKEN;
	for (i = 0; memories[i].at != at; i++)
		assert_true(i + 1 < MEMORIES);
	assert_true(memories[i].bytes == bytes);
	must_be_copied(i);
	memories[i].at = 0;
	if (memories[i].released)
		end_memory(i);
	no_access(at, bytes);
	return CUDA_SUCCESS;
}

bool cuda_is_lent(const void *p)
{
	unsigned int i;

	for (i = 0; i < MEMORIES; i++)
		if (memories[i].exists && memories[i].lent && memories[i].at == (uintptr_t)p)
			return true;
	return false;
}

uint64_t cuda_drop_lent(void)
{
	uint64_t bytes = 0;
	unsigned int i;

	for (i = 0; i < MEMORIES; i++) {
		if (!memories[i].exists || !memories[i].lent)
			continue;
		bytes += memories[i].bytes;
		assert_int_equal(unmap(memories[i].at, memories[i].bytes), CUDA_SUCCESS);
	}
	return bytes;
}

static CUresult CUDAAPI set_access(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *desc,
				   size_t count)
{
	assert_true(count == 1 && desc->location.id == (int)CUDA_DEVICE &&
		    desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	if (fails())
		return (CUresult)BROKEN;
	assert_int_equal(mprotect((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE), 0);
	return CUDA_SUCCESS;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
			    cudaStream_t s)
{
	assert_true(s && kind != cudaMemcpyDeviceToDevice && bytes <= BE_PIECE);
	if (fails())
		return (cudaError_t)BROKEN;
	assert_true(queued < sizeof(queue) / sizeof(*queue));
	queue[queued].to = to;
	queue[queued].from = from;
	queue[queued++].bytes = bytes;
	return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
	bool bad = fails();
	uint64_t at, step;

	assert_non_null(s);
	for (; queued; queued--) {
		const size_t bytes = queue[queued - 1].bytes;

		step = bytes > WHOLE ? MIB : bytes;
		for (at = 0; at < bytes && !bad; at += step)
			memcpy((char *)queue[queued - 1].to + at,
			       (const char *)queue[queued - 1].from + at,
			       bytes > WHOLE ? 8 : bytes);
	}
	return bad ? (cudaError_t)BROKEN : cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned int flags)
{
	assert_int_equal(flags, cudaStreamNonBlocking);
	if (fails())
		return (cudaError_t)BROKEN;
	*s = (cudaStream_t)&streams;
	streams++;
	return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
	assert_non_null(s);
	streams--;
	return cudaSuccess;
}

#define SLOTS 4096u
static struct {
	uint64_t addr, taken;
} slots[SLOTS];
static uint64_t next_addr;

cudaError_t cudaMalloc(void **p, size_t size)
{
	uint64_t taken = cu_units(size);
	unsigned int i;

	assert_false(cuda.plots_only);
	for (i = 0; slots[i].addr; i++)
		assert_true(i + 1 < SLOTS);
	next_addr += taken;
	slots[i].addr = next_addr;
	slots[i].taken = taken;
	cuda.exists += taken;
	*p = (void *)(uintptr_t)next_addr;
	return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
	unsigned int i;

	for (i = 0; slots[i].addr != (uintptr_t)p; i++)
		assert_true(i + 1 < SLOTS);
	cuda.exists -= slots[i].taken;
	slots[i].addr = 0;
	return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
	*free_bytes = cuda.room - cuda.used;
	*total = cuda.room;
	return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t s)
{
	(void)s;
	return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
	cuda.reached = UINT64_MAX;
	return cudaSuccess;
}

int cu_result(const struct be *be, cudaError_t err, const char *call)
{
	(void)be;
	(void)call;
	return err;
}

cudaError_t cudaMemset(void *p, int value, size_t bytes)
{
	const size_t step = bytes > WHOLE ? MIB : bytes;
	size_t at;

	if (fails())
		return (cudaError_t)BROKEN;
	for (at = 0; at < bytes; at += step)
		memset((char *)p + at, value, bytes > WHOLE ? 8 : bytes);
	return cudaSuccess;
}

struct event {
	float ms;	 /* when it was recorded */
	uint64_t number; /* of the record */
};

cudaError_t cudaEventCreate(cudaEvent_t *e)
{
	*e = calloc(1, sizeof(struct event));
	cuda.events += !!*e;
	return *e ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned int flags)
{
	assert_int_equal(flags, cudaEventDisableTiming);
	return fails() ? (cudaError_t)BROKEN : cudaEventCreate(e);
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
	cuda.queries++;
	return ((struct event *)e)->number <= cuda.reached ? cudaSuccess : cudaErrorNotReady;
}

void cuda_hold(void)
{
	cuda.reached = cuda.recorded;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
	struct event *event = (struct event *)e;

	(void)s;
	if (fails())
		return (cudaError_t)BROKEN;
	event->ms = cuda.ms;
	event->number = ++cuda.recorded;
	return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
	(void)e;
	return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	const struct event *first = (struct event *)start, *last = (struct event *)end;

	*ms = last->ms - first->ms;
	return first->ms < 0 ? cudaErrorInvalidResourceHandle : cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
	cuda.events--;
	free(e);
	return cudaSuccess;
}

int cu_event_use(struct be *be, const struct be_event *e)
{
	(void)be;
	return e->life ? (int)QCU_ERR_ContextIsDestroyed : (int)QCU_ERR_Success;
}

int cu_stream_use(struct be *be, const struct be_stream *s)
{
	return cu_use(be, s->dev);
}

/* Pools: CUDA's own have no memory here. */
static uint64_t pool_attrs[16];

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *p, int dev)
{
	(void)dev;
	*p = (cudaMemPool_t)pool_attrs;
	return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *p, const struct cudaMemPoolProps *props)
{
	assert_int_equal(props->location.id, CUDA_DEVICE);
	return cudaDeviceGetDefaultMemPool(p, 0);
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t p)
{
	assert_non_null(p);
	return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t p, enum cudaMemPoolAttr attr, void *value)
{
	(void)p;
	pool_attrs[attr] = attr <= cudaMemPoolReuseAllowInternalDependencies
				   ? (uint64_t) * (int *)value
				   : *(uint64_t *)value;
	return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t p, enum cudaMemPoolAttr attr, void *value)
{
	(void)p;
	*(uint64_t *)value = pool_attrs[attr];
	return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t p, size_t keep)
{
	(void)p;
	(void)keep;
	fail_msg("it has no memory");
	return cudaSuccess;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t p, const struct cudaMemAccessDesc *desc, size_t n)
{
	(void)p;
	(void)desc;
	return n == 1 ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t p,
				 struct cudaMemLocation *at)
{
	(void)p;
	(void)at;
	*flags = cudaMemAccessFlagsProtNone;
	return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void **p, size_t size, cudaMemPool_t pool, cudaStream_t s)
{
	(void)p;
	(void)size;
	(void)pool;
	(void)s;
	fail_msg("CUDA chooses the address");
	return cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeAsync(void *p, cudaStream_t s)
{
	(void)p;
	(void)s;
	fail_msg("it is not CUDA's");
	return cudaErrorInvalidValue;
}

int cu_streams_query(struct be *be, bool *busy)
{
	(void)be;
	*busy = cuda.busy;
	return cuda.error;
}

/* Modules share units of 2 MiB, in which they have the first room that is large enough. */
#define GRAINS (CU_UNIT / CU_GRAIN)
static struct unit {
	uint64_t at;
	unsigned char taken[GRAINS];
} units[64];

static uint64_t take_in_unit(struct unit *u, uint64_t grains)
{
	uint64_t i, free_grains = 0;

	for (i = 0; i < GRAINS && free_grains < grains; i++)
		free_grains = u->taken[i] ? 0 : free_grains + 1;
	if (free_grains < grains)
		return 0;
	memset(u->taken + i - grains, 1, grains);
	return u->at + (i - grains) * CU_GRAIN;
}

static uint64_t take_for_module(uint64_t bytes)
{
	const uint64_t grains = (bytes + CU_GRAIN - 1) / CU_GRAIN;
	uint64_t at = 0;
	unsigned int i;

	if (!bytes)
		return 0;
	if (grains > GRAINS)
		return addresses_reserve(cu_units(bytes), 0);
	for (i = 0; units[i].at && !at; i++)
		at = take_in_unit(&units[i], grains);
	assert_true(i + 1 < sizeof(units) / sizeof(*units));
	if (at)
		return at;
	units[i].at = addresses_reserve(CU_UNIT, 0);
	return take_in_unit(&units[i], grains);
}

static void give_for_module(uint64_t at, uint64_t bytes)
{
	unsigned int i;

	if (!bytes)
		return;
	if (bytes > CU_UNIT) {
		addresses_free(at, cu_units(bytes));
		return;
	}
	for (i = 0; units[i].at != at / CU_UNIT * CU_UNIT; i++)
		;
	memset(units[i].taken + at % CU_UNIT / CU_GRAIN, 0, (bytes + CU_GRAIN - 1) / CU_GRAIN);
	if (memchr(units[i].taken, 1, GRAINS))
		return;
	addresses_free(units[i].at, CU_UNIT);
	for (; units[i].at; i++)
		units[i] = units[i + 1];
}

void cuda_use_module(struct be *be, struct cuda_module *m)
{
	if (be)
		cu_rooms_prefer(be);
	if (m->used)
		return;
	m->used = true;
	m->at[2] = take_for_module(m->other);
	m->at[0] = take_for_module(m->size[0]);
	m->at[1] = take_for_module(m->size[1]);
}

void cuda_end_module(struct cuda_module *m)
{
	if (!m->used)
		return;
	m->used = false;
	give_for_module(m->at[2], m->other);
	give_for_module(m->at[0], m->size[0]);
	give_for_module(m->at[1], m->size[1]);
}

int cu_module_unload_code(struct be *be, struct be_module *m)
{
	(void)be;
	if (fails() || !m->lib)
		return BROKEN;
	cuda_end_module((struct cuda_module *)m->lib);
	return 0;
}

int cu_module_load_code(struct be *be, struct be_module *m)
{
	(void)be;
	assert_non_null(m->lib);
	return fails() ? BROKEN : 0;
}

void cu_module_drop_image(struct be_module *m)
{
	free(m->wanted);
	m->wanted = NULL;
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t *lib, const void *code, enum cudaJitOption *options,
				void **values, unsigned int count, enum cudaLibraryOption *more,
				void **more_values, unsigned int more_count)
{
	const char *bytes = strchr(code, '[');
	struct cuda_module *m;

	(void)options;
	(void)values;
	(void)more;
	(void)more_values;
	assert_true(!count && !more_count && bytes);
	if (fails())
		return (cudaError_t)BROKEN;
	m = calloc(1, sizeof(*m));
	assert_non_null(m);
	m->size[0] = strtoull(bytes + 1, NULL, 10);
	assert_true(m->size[0] && m->size[0] <= CU_UNIT && m->size[0] % CU_GRAIN == 0);
	*lib = (cudaLibrary_t)m;
	return cudaSuccess;
}

cudaError_t cudaLibraryGetGlobal(void **p, size_t *size, cudaLibrary_t lib, const char *name)
{
	struct cuda_module *m = (struct cuda_module *)lib;

	assert_string_equal(name, "filler");
	if (fails())
		return (cudaError_t)BROKEN;
	cuda_use_module(NULL, m);
	*p = (void *)(uintptr_t)m->at[0];
	*size = m->size[0];
	return cudaSuccess;
}

cudaError_t cudaLibraryUnload(cudaLibrary_t lib)
{
	cuda_end_module((struct cuda_module *)lib);
	free(lib);
	return cudaSuccess;
}

static int find_in_module(struct be *be, struct cuda_module *m, const char *name, uint64_t *addr,
			  uint64_t *size)
{
	const size_t i = (size_t)(name[0] - m->name);

	if (i > 1 || !m->size[i])
		return QCU_ERR_SymbolNotFound;
	cuda_use_module(be, m);
	*addr = m->at[i];
	*size = m->size[i];
	return QCU_ERR_Success;
}

int cu_var_find(struct be *be, unsigned int dev, struct be_module *m, const char *name,
		uint64_t *addr, uint64_t *size)
{
	const struct cuda_variable *v = cuda.variables;

	(void)dev;
	if (m->lib)
		return find_in_module(be, (struct cuda_module *)m->lib, name, addr, size);
	for (; v && v->name; v++) {
		*addr = v->addr;
		*size = v->size;
		if (!strcmp(v->name, name))
			return QCU_ERR_Success;
	}
	return QCU_ERR_SymbolNotFound;
}

int cu_use(struct be *be, unsigned int dev)
{
	(void)be;
	assert_int_equal(dev, CUDA_DEVICE);
	return 0;
}

unsigned int cu_current(void)
{
	return CUDA_DEVICE;
}

void cuda_begin(struct be *be, uint64_t room)
{
	be->place = (struct cu_place){.reserve = reserve,
				      .unreserve = unreserve,
				      .create = create,
				      .release = release,
				      .map = map,
				      .unmap = unmap,
				      .access = set_access,
				      .possible = true};
	addresses_begin();
	memset(units, 0, sizeof(units));
	cuda = (struct cuda_stand_in){
		.room = room, .plots_only = be->movable, .reached = UINT64_MAX};
	next_addr = 1ull << 40;
	cuda_forget();
}

int cuda_open_movable(struct be *be, uint64_t room)
{
	int ret;

	be->devices = 2;
	be->movable = true;
	cuda_begin(be, room);
	ret = cu_mem_open(be);
	be->part_bytes = PART;
	return ret;
}

void cuda_forget(void)
{
	memset(slots, 0, sizeof(slots));
	cuda.exists = 0;
}

bool cuda_is_empty(void)
{
	return !cuda.used && !cuda.lent && !cuda.exists && !queued && !streams && !cuda.events &&
	       addresses_are_free();
}

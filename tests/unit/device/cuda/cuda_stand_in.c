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

#define MIB   (1ull << 20)
#define WHOLE (8 * MIB) /* copies up to this size are complete */

#define MEMORIES 4096u
static struct {
	int fd;
	uint64_t bytes, at; /* at: where it is mapped, or 0 */
	bool exists, lent, released;
	bool pool; /* for arrays only */
} memories[MEMORIES];
static unsigned int memories_used; /* none after these has ever been made */
struct cuda_stand_in cuda;
static struct {
	/* A copy of memory; or (array set) of a box: this is its memory; or (maps set) a mapping.
	 */
	void *to;
	const void *from;
	size_t bytes;
	struct array *array;
	struct cudaMemcpy3DParms box;
	bool maps;
	unsigned int memory; /* its number, plus 1; 0: it is unmapped */
} queue[256];
static unsigned int queued, streams, device;

bool cuda_call_fails(void)
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
	if (cuda_call_fails())
		return (CUresult)CUDA_BROKEN;
	*out = addresses_reserve(bytes, at);
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI unreserve(CUdeviceptr at, size_t bytes)
{
	bool mapped = false;
	unsigned int i;

	for (i = 0; i < memories_used; i++)
		mapped |= memories[i].at >= at && memories[i].at < at + bytes;
	assert_false(mapped);
	addresses_free(at, bytes);
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI create(CUmemGenericAllocationHandle *h, size_t bytes,
			       const CUmemAllocationProp *prop, unsigned long long flags)
{
	const bool lent = prop->location.id == (int)device + 1;
	unsigned int i;

	assert_true((lent || prop->location.id == (int)device) && !flags && bytes &&
		    bytes % CU_UNIT == 0);
	if (cuda_call_fails())
		return (CUresult)CUDA_BROKEN;
	if (bytes > (lent ? cuda.lent_room - cuda.lent : cuda.room - cuda.used))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (i = 0; i < MEMORIES && memories[i].exists;)
		i++;
	assert_true(i < MEMORIES);
	if (i >= memories_used)
		memories_used = i + 1;
	memories[i].fd = memfd_create("device", MFD_CLOEXEC);
	assert_false(memories[i].fd < 0 || ftruncate(memories[i].fd, (off_t)bytes));
	memories[i].bytes = bytes;
	memories[i].exists = true;
	memories[i].lent = lent;
	memories[i].pool = prop->allocFlags.usage == CU_MEM_CREATE_USAGE_TILE_POOL;
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
	if (cuda_call_fails())
		return (CUresult)CUDA_BROKEN;
	if (memories[h - 1].pool)
		return CUDA_ERROR_INVALID_VALUE;
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

	if (cuda_call_fails())
		return (CUresult)CUDA_BROKEN;
	for (i = 0; i < MEMORIES && memories[i].at != at;)
		i++;
	assert_true(i < MEMORIES);
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

	for (i = 0; i < memories_used; i++)
		if (memories[i].exists && memories[i].lent && memories[i].at == (uintptr_t)p)
			return true;
	return false;
}

uint64_t cuda_drop_lent(void)
{
	uint64_t bytes = 0;
	unsigned int i;

	for (i = 0; i < memories_used; i++) {
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
	assert_true(count == 1 && desc->location.id == (int)device &&
		    desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	if (cuda_call_fails())
		return (CUresult)CUDA_BROKEN;
	assert_int_equal(mprotect((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE), 0);
	return CUDA_SUCCESS;
}

/* ---- arrays ---- */

#define GOB_BYTES 64u  /* rows begin at a multiple of this, */
#define BLOCK	  128u /* and there are so many of them, or fewer if there are few */
#define PAGE	  (64u << 10)

struct level {
	struct array *of;
	uint32_t size[3];
	uint64_t at, pitch, slice; /* in the array's memory */
};

struct array {
	bool mipmapped, deferred;
	uint32_t elem;
	uint64_t size;
	char *p;	     /* NULL: it has no memory */
	unsigned int memory; /* the number of its memory, plus 1, if it is deferred */
	unsigned int levels;
	struct level level[QCU_LEVELS_MAX];
};

static void lay_out_level(struct array *a, const struct be_array_desc *d, uint32_t n)
{
	struct level *l = &a->level[n];
	uint64_t block = BLOCK;

	l->of = a;
	be_array_extent(d, n, l->size);
	while (block > 8 && block / 2 >= l->size[1])
		block /= 2;
	l->at = a->size;
	l->pitch = ((uint64_t)l->size[0] * a->elem + GOB_BYTES - 1) / GOB_BYTES * GOB_BYTES;
	l->slice = l->pitch * ((l->size[1] + block - 1) / block * block);
	a->size += l->slice * l->size[2];
}

static cudaError_t make_array(const struct cudaChannelFormatDesc *f, struct cudaExtent size,
			      unsigned int levels, unsigned int flags, struct array **out)
{
	const struct be_array_desc d = {.flags = flags,
					.width = (uint32_t)size.width,
					.height = (uint32_t)size.height,
					.depth = (uint32_t)size.depth};
	const bool deferred = flags & cudaArrayDeferredMapping;
	struct array *a;
	uint32_t i;

	if (cuda_call_fails())
		return (cudaError_t)CUDA_BROKEN;
	if (deferred && cuda.deferred_error)
		return (cudaError_t)cuda.deferred_error;
	if (!size.width)
		return cudaErrorInvalidValue;
	a = calloc(1, sizeof(*a));
	assert_non_null(a);
	a->deferred = deferred;
	a->mipmapped = levels;
	a->levels = levels ? levels : 1;
	a->elem = (uint32_t)(f->x + f->y + f->z + f->w) / 8;
	for (i = 0; i < a->levels; i++)
		lay_out_level(a, &d, i);
	a->size = (a->size + PAGE - 1) / PAGE * PAGE;
	if (!a->deferred) {
		a->p = mmap(NULL, a->size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		assert_true(a->p != MAP_FAILED);
		cuda.exists += a->size;
	}
	cuda.arrays++;
	*out = a;
	return cudaSuccess;
}

cudaError_t cudaMalloc3DArray(cudaArray_t *out, const struct cudaChannelFormatDesc *f,
			      struct cudaExtent size, unsigned int flags)
{
	struct array *a;
	cudaError_t ret = make_array(f, size, 0, flags, &a);

	if (!ret)
		*out = (cudaArray_t)&a->level[0];
	return ret;
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *out,
				     const struct cudaChannelFormatDesc *f, struct cudaExtent size,
				     unsigned int levels, unsigned int flags)
{
	return make_array(f, size, levels, flags, (struct array **)out);
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *out, cudaMipmappedArray_const_t mipmap,
				       unsigned int level)
{
	struct array *a = (struct array *)mipmap;

	assert_true(level < a->levels);
	*out = (cudaArray_t)&a->level[level];
	return cuda_call_fails() ? (cudaError_t)CUDA_BROKEN : cudaSuccess;
}

static void unmap_array(struct array *a)
{
	if (!a->memory)
		return;
	munmap(a->p, a->size);
	memories[a->memory - 1].at = 0;
	a->memory = 0;
	a->p = NULL;
}

/* The end of an array ends its mapping, too. So the array goes even if the call fails. */
static cudaError_t free_stand_in(struct array *a)
{
	unmap_array(a);
	if (a->p)
		munmap(a->p, a->size);
	cuda.exists -= a->deferred ? 0 : a->size;
	free(a);
	cuda.arrays--;
	return cuda_call_fails() ? (cudaError_t)CUDA_BROKEN : cudaSuccess;
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
	assert_false(((struct level *)array)->of->mipmapped);
	return free_stand_in(((struct level *)array)->of);
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmap)
{
	assert_true(((struct array *)mipmap)->mipmapped);
	return free_stand_in((struct array *)mipmap);
}

static cudaError_t say_requirements(struct cudaArrayMemoryRequirements *r, const struct array *a,
				    int dev)
{
	assert_true(a->deferred && dev == (int)device);
	r->size = a->size;
	r->alignment = PAGE;
	return cuda_call_fails() ? (cudaError_t)CUDA_BROKEN : cudaSuccess;
}

cudaError_t cudaArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *r, cudaArray_t array,
					   int dev)
{
	return say_requirements(r, ((struct level *)array)->of, dev);
}

cudaError_t cudaMipmappedArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *r,
						    cudaMipmappedArray_t mipmap, int dev)
{
	return say_requirements(r, (struct array *)mipmap, dev);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int dev)
{
	assert_true(attr == cudaDevAttrDeferredMappingCudaArraySupported && dev == (int)device);
	*value = !cuda.no_deferred;
	return cuda_call_fails() ? (cudaError_t)CUDA_BROKEN : cudaSuccess;
}

static CUresult CUDAAPI map_array_async(CUarrayMapInfo *info, unsigned int count, CUstream s)
{
	const bool maps = info->memOperationType == CU_MEM_OPERATION_TYPE_MAP;
	const bool mipmapped = info->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	struct array *a = mipmapped ? (struct array *)info->resource.mipmap
				    : ((struct level *)info->resource.array)->of;
	CUmemGenericAllocationHandle h = info->memHandle.memHandle;

	assert_true(s && count == 1 && info->memHandleType == CU_MEM_HANDLE_TYPE_GENERIC &&
		    info->deviceBitMask == 1u << device && !info->flags && !info->offset &&
		    a->deferred && a->mipmapped == mipmapped && maps == !!h);
	assert_true(queued < sizeof(queue) / sizeof(*queue));
	if (cuda_call_fails())
		return (CUresult)CUDA_BROKEN;
	if (h && (!memories[h - 1].pool || cuda.no_mapping))
		return CUDA_ERROR_INVALID_VALUE;
	memset(&queue[queued], 0, sizeof(queue[queued]));
	queue[queued].array = a;
	queue[queued].maps = true;
	queue[queued++].memory = (unsigned int)h;
	return CUDA_SUCCESS;
}

static void carry_out_mapping(unsigned int n)
{
	struct array *a = queue[n].array;
	const unsigned int memory = queue[n].memory;

	if (!memory) {
		unmap_array(a);
		return;
	}
	assert_true(!a->p && memories[memory - 1].exists && !memories[memory - 1].released &&
		    !memories[memory - 1].at && a->size <= memories[memory - 1].bytes);
	a->p = mmap(NULL, a->size, PROT_READ | PROT_WRITE, MAP_SHARED, memories[memory - 1].fd, 0);
	assert_true(a->p != MAP_FAILED);
	memories[memory - 1].at = (uintptr_t)a->p;
	a->memory = memory;
}

void *cuda_array_row(cudaArray_t array, unsigned int z, unsigned int y)
{
	struct level *l = (struct level *)array;

	assert_true(z < l->size[2] && y < l->size[1]);
	return l->of->p ? l->of->p + l->at + z * l->slice + y * l->pitch : NULL;
}

/* Its first and last eight bytes. */
static void copy_row(char *to, const char *from, size_t bytes, bool whole)
{
	memcpy(to, from, whole || bytes < 16 ? bytes : 8);
	if (!whole && bytes >= 16)
		memcpy(to + bytes - 8, from + bytes - 8, 8);
}

/* Of a large box only some rows, and always the first and the last of each slice. */
static void carry_out_box(unsigned int n)
{
	const struct cudaMemcpy3DParms *p = &queue[n].box;
	const bool out = p->srcArray;
	const struct cudaPitchedPtr *m = out ? &p->dstPtr : &p->srcPtr;
	const struct cudaPos *pos = out ? &p->srcPos : &p->dstPos;
	const uint32_t elem = queue[n].array->elem;
	const size_t bytes = p->extent.width * elem, height = p->extent.height;
	const bool whole = bytes * height * p->extent.depth <= WHOLE;
	size_t y, z;

	for (z = 0; z < p->extent.depth; z++)
		for (y = 0; y < height; y++) {
			char *memory = (char *)m->ptr + (z * m->ysize + y) * m->pitch;
			char *row = (char *)cuda_array_row(out ? p->srcArray : p->dstArray,
							   (unsigned int)(pos->z + z),
							   (unsigned int)(pos->y + y)) +
				    pos->x * elem;

			if (!whole && y && y + 1 < height && (pos->y + y) % CUDA_ROWS)
				continue;
			copy_row(out ? memory : row, out ? row : memory, bytes, whole);
		}
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t s)
{
	const struct level *l = (const struct level *)(p->srcArray ? p->srcArray : p->dstArray);
	const struct cudaPos *pos = p->srcArray ? &p->srcPos : &p->dstPos;

	assert_true(s && l && !p->srcArray != !p->dstArray);
	assert_true(pos->x + p->extent.width <= l->size[0] &&
		    pos->y + p->extent.height <= l->size[1] &&
		    pos->z + p->extent.depth <= l->size[2]);
	if (cuda_call_fails())
		return (cudaError_t)CUDA_BROKEN;
	/* A mapping that is only queued is not relied on. */
	if (!l->of->p)
		return cudaErrorIllegalAddress;
	assert_true(queued < sizeof(queue) / sizeof(*queue));
	memset(&queue[queued], 0, sizeof(queue[queued]));
	queue[queued].array = l->of;
	queue[queued].box = *p;
	queue[queued].to = p->srcArray ? p->dstPtr.ptr : p->srcPtr.ptr;
	queue[queued].from = queue[queued].to;
	queued++;
	return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t pitch,
			      size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t s)
{
	(void)to, (void)to_pitch, (void)from, (void)pitch, (void)width, (void)height, (void)kind;
	(void)s;
	return cudaErrorNotSupported; /* no test copies rows of memory */
}

enum cudaMemcpyKind cu_copy_kind(bool dst_host, bool src_host)
{
	return dst_host	  ? cudaMemcpyDeviceToHost
	       : src_host ? cudaMemcpyHostToDevice
			  : cudaMemcpyDeviceToDevice;
}

int cu_phys_file(struct be *be, struct be_phys *p, int *fd, uint64_t *size)
{
	(void)be, (void)p, (void)fd, (void)size;
	return QCU_ERR_NotSupported;
}

cudaError_t cudaImportExternalMemory(cudaExternalMemory_t *m,
				     const struct cudaExternalMemoryHandleDesc *desc)
{
	(void)m, (void)desc;
	return cudaErrorNotSupported;
}

cudaError_t
cudaExternalMemoryGetMappedMipmappedArray(cudaMipmappedArray_t *a, cudaExternalMemory_t m,
					  const struct cudaExternalMemoryMipmappedArrayDesc *desc)
{
	(void)a, (void)m, (void)desc;
	return cudaErrorNotSupported;
}

cudaError_t cudaDestroyExternalMemory(cudaExternalMemory_t m)
{
	(void)m;
	return cudaErrorNotSupported;
}

/* ---- streams ---- */

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
			    cudaStream_t s)
{
	assert_true(s && kind != cudaMemcpyDeviceToDevice && bytes <= BE_PIECE);
	if (cuda_call_fails())
		return (cudaError_t)CUDA_BROKEN;
	assert_true(queued < sizeof(queue) / sizeof(*queue));
	memset(&queue[queued], 0, sizeof(queue[queued]));
	queue[queued].to = to;
	queue[queued].from = from;
	queue[queued++].bytes = bytes;
	return cudaSuccess;
}

static void carry_out_copy(unsigned int n)
{
	const size_t bytes = queue[n].bytes, step = bytes > WHOLE ? MIB : bytes;
	size_t at;

	for (at = 0; at < bytes; at += step)
		memcpy((char *)queue[n].to + at, (const char *)queue[n].from + at,
		       bytes > WHOLE ? 8 : bytes);
}

/* If it fails, nothing has been done. */
cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
	bool bad = cuda_call_fails();
	unsigned int n;

	assert_non_null(s);
	for (n = 0; n < queued && !bad; n++) {
		if (queue[n].maps)
			carry_out_mapping(n);
		else if (queue[n].array)
			carry_out_box(n);
		else
			carry_out_copy(n);
	}
	queued = 0;
	return bad ? (cudaError_t)CUDA_BROKEN : cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned int flags)
{
	assert_int_equal(flags, cudaStreamNonBlocking);
	if (cuda_call_fails())
		return (cudaError_t)CUDA_BROKEN;
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

	if (cuda_call_fails())
		return (cudaError_t)CUDA_BROKEN;
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
	return cuda_call_fails() ? (cudaError_t)CUDA_BROKEN : cudaEventCreate(e);
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
	if (cuda_call_fails())
		return (cudaError_t)CUDA_BROKEN;
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
	assert_int_equal(props->location.id, device);
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

int cu_use(struct be *be, unsigned int dev)
{
	(void)be;
	assert_int_equal(dev, device);
	return 0;
}

unsigned int cu_current(void)
{
	return device;
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
				      .map_array = map_array_async,
				      .possible = true};
	device = be->devices == 1 ? CUDA_ONLY : CUDA_DEVICE;
	addresses_begin();
	cuda_forget_modules();
	cuda = (struct cuda_stand_in){
		.room = room, .plots_only = be->movable, .reached = UINT64_MAX};
	next_addr = 1ull << 40;
	cuda_forget();
}

static int open_devices(struct be *be, unsigned int devices, uint64_t room)
{
	int ret;

	be->devices = devices;
	be->movable = true;
	cuda_begin(be, room);
	ret = cu_mem_open(be);
	be->part_bytes = PART;
	return ret;
}

int cuda_open_movable(struct be *be, uint64_t room)
{
	return open_devices(be, CUDA_DEVICE + 1, room);
}

int cuda_open_only(struct be *be, uint64_t room)
{
	return open_devices(be, CUDA_ONLY + 1, room);
}

void cuda_forget(void)
{
	memset(slots, 0, sizeof(slots));
	cuda.exists = 0;
}

bool cuda_is_empty(void)
{
	return !cuda.used && !cuda.lent && !cuda.exists && !queued && !streams && !cuda.events &&
	       !cuda.arrays && addresses_are_free();
}

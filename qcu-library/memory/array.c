// SPDX-License-Identifier: LGPL-2.1-or-later
/* CUDA arrays and mipmapped arrays: creation, release and queries. */
#include <string.h>

#include "qcu-library/link/ask.h"
#include "qcu-library/memory/array.h"
#include "qcu-library/memory/memory.h"
#include "qcu-library/link/capture.h"

#define KNOWN_FLAGS                                                            \
	(cudaArrayLayered | cudaArraySurfaceLoadStore | cudaArrayCubemap |     \
	 cudaArrayTextureGather | cudaArrayColorAttachment | cudaArraySparse | \
	 cudaArrayDeferredMapping)
#define SUPPORTED_FLAGS \
	(cudaArrayLayered | cudaArraySurfaceLoadStore | cudaArrayCubemap | cudaArrayTextureGather)

/* Untouched pages of this table cost nothing. */
static struct {
	struct qcul_array arrays[QCU_ID_MAX + 1];
} process;

static const struct qcul_array *lookup(const void *handle)
{
	uint32_t id = qcul_handle_id(&qcul_arrays, handle);

	return id ? &process.arrays[id] : NULL;
}

const struct qcul_array *qcul_array(cudaArray_const_t array)
{
	const struct qcul_array *a = lookup(array);

	return a && a->kind != QCUL_MIPMAP ? a : NULL;
}

const struct qcul_array *qcul_mipmap(cudaMipmappedArray_const_t mipmap)
{
	const struct qcul_array *a = lookup(mipmap);

	return a && a->kind == QCUL_MIPMAP ? a : NULL;
}

uint32_t qcul_format_bytes(const struct cudaChannelFormatDesc *f)
{
	const int bits[4] = {f->x, f->y, f->z, f->w};
	unsigned int channels = 0, i;

	if (f->f != cudaChannelFormatKindSigned && f->f != cudaChannelFormatKindUnsigned &&
	    f->f != cudaChannelFormatKindFloat)
		return 0;
	if (bits[0] != 8 && bits[0] != 16 && bits[0] != 32)
		return 0;
	if (bits[0] == 8 && f->f == cudaChannelFormatKindFloat)
		return 0;
	while (channels < 4 && bits[channels] == bits[0])
		channels++;
	for (i = channels; i < 4; i++)
		if (bits[i])
			return 0;
	return channels == 3 ? 0 : (uint32_t)bits[0] / 8 * channels;
}

static bool has_layers(const struct qcul_array *a)
{
	return a->flags & (cudaArrayLayered | cudaArrayCubemap);
}

struct cudaExtent qcul_array_size(const struct qcul_array *a)
{
	struct cudaExtent e = a->extent;

	e.height = e.height ? e.height : 1;
	e.depth = e.depth ? e.depth : 1;
	return e;
}

/* True for CUDA's compressed, planar and normalized formats. */
static bool other_format(const struct cudaChannelFormatDesc *f)
{
	return f->f > cudaChannelFormatKindNone;
}

static cudaError_t check_array_request(const struct cudaChannelFormatDesc *format,
				       struct cudaExtent extent, unsigned int flags)
{
	static atomic_flag said_format = ATOMIC_FLAG_INIT, said_flags = ATOMIC_FLAG_INIT;

	if (!format || flags & ~KNOWN_FLAGS)
		return cudaErrorInvalidValue;
	if (other_format(format))
		return qcul_unsupported("an array of compressed, planar or normalized format",
					&said_format);
	if (!qcul_format_bytes(format))
		return cudaErrorInvalidChannelDescriptor;
	if (flags & ~SUPPORTED_FLAGS)
		return qcul_unsupported("an array that is sparse, deferred or a color attachment",
					&said_flags);
	/* No dimension of any array is larger than UINT32_MAX. */
	if (!extent.width || extent.width > UINT32_MAX || extent.height > UINT32_MAX ||
	    extent.depth > UINT32_MAX)
		return cudaErrorInvalidValue;
	return cudaSuccess;
}

/* The memory that an array lies in; mem 0: memory of its own. */
struct backing {
	uint32_t mem;
	uint64_t offset;
};

static cudaError_t create_in(struct backing backing, void **out,
			     const struct cudaChannelFormatDesc *format, struct cudaExtent extent,
			     unsigned int levels, unsigned int flags)
{
	struct qcul_handle *slot;
	struct qcul_array *a;
	struct qCUcmd cmd;
	cudaError_t err;
	uint32_t id;

	err = check_array_request(format, extent, flags);
	if (!err)
		err = qcul_ready();
	if (!err)
		err = qcul_capture_unsafe();
	if (err)
		return err;
	slot = qcul_handle_new(&qcul_arrays, &id);
	if (!slot)
		return cudaErrorMemoryAllocation;
	slot->device = qcul_self.device;
	a = &process.arrays[id];
	*a = (struct qcul_array){
		.kind = levels ? QCUL_MIPMAP : QCUL_ARRAY,
		.id = id,
		.levels = levels,
		.format = *format,
		.extent = extent,
		.flags = flags,
		.elem = qcul_format_bytes(format),
	};
	cmd = qcul_cmd(QCU_OP_ARRAY_CREATE);
	cmd.array_create.array = id;
	cmd.array_create.flags = flags;
	cmd.array_create.width = (uint32_t)extent.width;
	cmd.array_create.height = (uint32_t)extent.height;
	cmd.array_create.depth = (uint32_t)extent.depth;
	cmd.array_create.levels = levels;
	cmd.array_create.bits[0] = (uint8_t)format->x;
	cmd.array_create.bits[1] = (uint8_t)format->y;
	cmd.array_create.bits[2] = (uint8_t)format->z;
	cmd.array_create.bits[3] = (uint8_t)format->w;
	cmd.array_create.kind = (uint32_t)format->f;
	cmd.array_create.mem = backing.mem;
	cmd.array_create.offset = backing.offset;
	err = qcul_send(&cmd, 1);
	if (err)
		qcul_handle_drop(&qcul_arrays, id);
	else
		*out = slot;
	return err;
}

static cudaError_t create_array_or_mipmap(void **out, const struct cudaChannelFormatDesc *format,
					  struct cudaExtent extent, unsigned int levels,
					  unsigned int flags)
{
	return create_in((struct backing){0}, out, format, extent, levels, flags);
}

cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *format,
			    size_t width, size_t height, unsigned int flags)
{
	struct cudaExtent extent = {width, height, 0};
	void *handle;
	cudaError_t err = cudaErrorInvalidValue;

	if (array && !(flags & (cudaArrayLayered | cudaArrayCubemap)))
		err = create_array_or_mipmap(&handle, format, extent, 0, flags);
	if (!err)
		*array = handle;
	return qcul_done(err);
}

cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *format,
			      struct cudaExtent extent, unsigned int flags)
{
	void *handle;
	cudaError_t err = array ? create_array_or_mipmap(&handle, format, extent, 0, flags)
				: cudaErrorInvalidValue;

	if (!err)
		*array = handle;
	return qcul_done(err);
}

/* The largest possible number of levels: the last level has one element. */
static unsigned int levels_of(struct cudaExtent e, unsigned int flags)
{
	size_t most = e.width > e.height ? e.width : e.height;
	unsigned int n = 1;

	if (!(flags & (cudaArrayLayered | cudaArrayCubemap)) && e.depth > most)
		most = e.depth;
	for (; most > 1; most >>= 1)
		n++;
	return n;
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *mipmap,
				     const struct cudaChannelFormatDesc *format,
				     struct cudaExtent extent, unsigned int levels,
				     unsigned int flags)
{
	unsigned int most = levels_of(extent, flags);
	void *handle;
	cudaError_t err = cudaErrorInvalidValue;

	if (!levels)
		levels = 1;
	if (levels > most)
		levels = most;
	if (mipmap && levels <= QCU_LEVELS_MAX)
		err = create_array_or_mipmap(&handle, format, extent, levels, flags);
	if (!err)
		*mipmap = handle;
	return qcul_done(err);
}

cudaError_t qcul_mipmap_in(uint32_t mem, uint64_t offset,
			   const struct cudaChannelFormatDesc *format, struct cudaExtent extent,
			   unsigned int levels, unsigned int flags, cudaMipmappedArray_t *mipmap)
{
	struct backing backing = {mem, offset};
	void *handle;
	cudaError_t err;

	if (!levels || levels > levels_of(extent, flags) || levels > QCU_LEVELS_MAX)
		return cudaErrorInvalidValue;
	/* Being a color attachment means nothing here, and nothing to CUDA. */
	err = create_in(backing, &handle, format, extent, levels,
			flags & ~cudaArrayColorAttachment);
	if (!err)
		*mipmap = handle;
	return err;
}

/* A level always has the same handle. If two threads create it at the same time, one of them drops
 * its own slot and uses the other. */
static cudaError_t get_level(struct qcul_array *mipmap, uint32_t level, void **out)
{
	struct qcul_handle *slot;
	struct qcul_array *a;
	uint32_t id, have;

	have = __atomic_load_n(&mipmap->level_slot[level], __ATOMIC_ACQUIRE);
	if (have) {
		*out = &qcul_arrays.slots[have];
		return cudaSuccess;
	}
	slot = qcul_handle_new(&qcul_arrays, &id);
	if (!slot)
		return cudaErrorMemoryAllocation;
	slot->device = qcul_arrays.slots[mipmap->id].device;
	a = &process.arrays[id];
	*a = *mipmap;
	a->kind = QCUL_ARRAY_LEVEL;
	a->level = level;
	a->extent.width = mipmap->extent.width >> level ? mipmap->extent.width >> level : 1;
	if (a->extent.height)
		a->extent.height = a->extent.height >> level ? a->extent.height >> level : 1;
	if (a->extent.depth && !has_layers(mipmap))
		a->extent.depth = a->extent.depth >> level ? a->extent.depth >> level : 1;
	if (!__atomic_compare_exchange_n(&mipmap->level_slot[level], &have, id, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		qcul_handle_drop(&qcul_arrays, id);
		slot = &qcul_arrays.slots[have];
	}
	*out = slot;
	return cudaSuccess;
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *array, cudaMipmappedArray_const_t mipmap,
				       unsigned int level)
{
	const struct qcul_array *a;
	void *handle;
	cudaError_t err = array ? qcul_ready() : cudaErrorInvalidValue;

	if (err)
		return qcul_done(err);
	a = qcul_mipmap(mipmap);
	if (!a)
		return qcul_done(cudaErrorInvalidResourceHandle);
	if (level >= a->levels)
		return qcul_done(cudaErrorInvalidValue);
	err = get_level(&process.arrays[a->id], level, &handle);
	if (!err)
		*array = handle;
	return qcul_done(err);
}

static cudaError_t destroy_array_or_mipmap(const void *handle, enum qcul_array_kind kind)
{
	cudaError_t err = qcul_ready();
	uint32_t id, i;

	if (!err && handle)
		err = qcul_capture_unsafe();
	if (err || !handle)
		return err;
	id = qcul_handle_id(&qcul_arrays, handle);
	if (!id || process.arrays[id].kind != kind)
		return cudaErrorInvalidResourceHandle;
	for (i = 0; i < process.arrays[id].levels; i++)
		if (process.arrays[id].level_slot[i])
			qcul_handle_drop(&qcul_arrays, process.arrays[id].level_slot[i]);
	err = qcul_ask_array_destroy(qcul_self.device, id);
	qcul_handle_drop(&qcul_arrays, id);
	qcul_print_flush();
	return err;
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
	return qcul_done(destroy_array_or_mipmap(array, QCUL_ARRAY));
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmap)
{
	return qcul_done(destroy_array_or_mipmap(mipmap, QCUL_MIPMAP));
}

static cudaError_t find_valid_array(cudaArray_const_t array, const struct qcul_array **a)
{
	cudaError_t err = qcul_ready();

	if (err)
		return err;
	*a = qcul_array(array);
	return *a ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *format, struct cudaExtent *extent,
			     unsigned int *flags, cudaArray_t array)
{
	const struct qcul_array *a;
	cudaError_t err = find_valid_array(array, &a);

	if (err)
		return qcul_done(err);
	if (format)
		*format = a->format;
	if (extent)
		*extent = a->extent;
	if (flags)
		*flags = a->flags;
	return qcul_done(cudaSuccess);
}

cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *format, cudaArray_const_t array)
{
	const struct qcul_array *a;
	cudaError_t err = format ? find_valid_array(array, &a) : cudaErrorInvalidValue;

	if (!err)
		*format = a->format;
	return qcul_done(err);
}

/*
 * For queries that apply only to arrays of several planes, sparse arrays and arrays without memory
 * of their own. The library cannot create any of these. For any other array, CUDA returns
 * cudaErrorInvalidValue.
 */
static cudaError_t has_none(const void *out, cudaArray_const_t array)
{
	const struct qcul_array *a;
	cudaError_t err = out ? find_valid_array(array, &a) : cudaErrorInvalidValue;

	return qcul_done(err ? err : cudaErrorInvalidValue);
}

static cudaError_t mipmap_has_none(const void *out, cudaMipmappedArray_const_t mipmap)
{
	cudaError_t err = out ? qcul_ready() : cudaErrorInvalidValue;

	if (!err)
		err = qcul_mipmap(mipmap) ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
	return qcul_done(err);
}

cudaError_t cudaArrayGetPlane(cudaArray_t *plane, cudaArray_t array, unsigned int index)
{
	(void)index;
	return has_none(plane, array);
}

cudaError_t cudaArrayGetSparseProperties(struct cudaArraySparseProperties *properties,
					 cudaArray_t array)
{
	return has_none(properties, array);
}

cudaError_t cudaArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *requirements,
					   cudaArray_t array, int device)
{
	(void)device;
	return has_none(requirements, array);
}

cudaError_t cudaMipmappedArrayGetSparseProperties(struct cudaArraySparseProperties *properties,
						  cudaMipmappedArray_t mipmap)
{
	return mipmap_has_none(properties, mipmap);
}

cudaError_t
cudaMipmappedArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *requirements,
					cudaMipmappedArray_t mipmap, int device)
{
	(void)device;
	return mipmap_has_none(requirements, mipmap);
}

/*
 * The largest number of elements in a linear 1D texture. The attribute is the number of those of 16
 * bytes. Smaller ones may be as many as fill the same memory, but at most four times as many.
 */
cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *width,
						 const struct cudaChannelFormatDesc *format,
						 int device)
{
	const size_t bytes = format ? qcul_format_bytes(format) : 0;
	int value = 0;
	cudaError_t err = width && format ? cudaSuccess : cudaErrorInvalidValue;

	if (!err && !bytes)
		err = cudaErrorInvalidChannelDescriptor;
	if (!err)
		err = qcul_device_attr(device, cudaDevAttrMaxTexture1DLinearWidth, &value);
	if (!err)
		*width = (size_t)value * (bytes < 4 ? 4 : 16 / bytes);
	return qcul_done(err);
}

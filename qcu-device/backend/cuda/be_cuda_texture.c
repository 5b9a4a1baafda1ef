// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Texture and surface objects and tensor maps of the cuda backend. Fills in CUDA's own descriptors.
 */
#include <string.h>

#include "qcu-device/backend/cuda/be_cuda.h"

static float float_from_bits(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

static struct cudaResourceDesc resource(const struct qcu_texture_msg *t, const struct be_array *a)
{
	struct cudaChannelFormatDesc format = {
		.x = t->bits[0],
		.y = t->bits[1],
		.z = t->bits[2],
		.w = t->bits[3],
		.f = (enum cudaChannelFormatKind)t->format,
	};
	struct cudaResourceDesc r;

	memset(&r, 0, sizeof(r));
	switch (t->kind) {
	case QCU_TEXTURE_ARRAY:
		r.resType = cudaResourceTypeArray;
		r.res.array.array = a->level[t->level];
		break;
	case QCU_TEXTURE_MIPMAP:
		r.resType = cudaResourceTypeMipmappedArray;
		r.res.mipmap.mipmap = a->mipmap;
		break;
	case QCU_TEXTURE_LINEAR:
		r.resType = cudaResourceTypeLinear;
		r.res.linear.devPtr = (void *)(uintptr_t)t->addr;
		r.res.linear.desc = format;
		r.res.linear.sizeInBytes = t->bytes;
		break;
	default:
		r.resType = cudaResourceTypePitch2D;
		r.res.pitch2D.devPtr = (void *)(uintptr_t)t->addr;
		r.res.pitch2D.desc = format;
		r.res.pitch2D.width = t->width;
		r.res.pitch2D.height = t->height;
		r.res.pitch2D.pitchInBytes = t->pitch;
	}
	return r;
}

static struct cudaTextureDesc sampler(const struct qcu_texture_msg *t)
{
	struct cudaTextureDesc d;
	unsigned int i;

	memset(&d, 0, sizeof(d));
	for (i = 0; i < 3; i++)
		d.addressMode[i] = (enum cudaTextureAddressMode)t->address[i];
	for (i = 0; i < 4; i++)
		d.borderColor[i] = float_from_bits(t->border[i]);
	d.filterMode = (enum cudaTextureFilterMode)t->filter;
	d.readMode = (enum cudaTextureReadMode)t->read;
	d.sRGB = (int)t->srgb;
	d.normalizedCoords = (int)t->normalized;
	d.maxAnisotropy = t->anisotropy;
	d.mipmapFilterMode = (enum cudaTextureFilterMode)t->mip_filter;
	d.mipmapLevelBias = float_from_bits(t->mip_bias);
	d.minMipmapLevelClamp = float_from_bits(t->mip_min);
	d.maxMipmapLevelClamp = float_from_bits(t->mip_max);
	d.disableTrilinearOptimization = (int)t->no_trilinear_optimization;
	d.seamlessCubemap = (int)t->seamless;
	return d;
}

int cu_texture_create(struct be *be, unsigned int dev, const struct qcu_texture_msg *t,
		      struct be_array *a, uint64_t *object)
{
	struct cudaResourceDesc r = resource(t, a);
	struct cudaTextureDesc d = sampler(t);
	struct cudaResourceViewDesc view = {
		.format = (enum cudaResourceViewFormat)t->view_format,
		.width = t->view_width,
		.height = t->view_height,
		.depth = t->view_depth,
		.firstMipmapLevel = t->first_level,
		.lastMipmapLevel = t->last_level,
		.firstLayer = t->first_layer,
		.lastLayer = t->last_layer,
	};
	cudaTextureObject_t tex = 0;
	int ret = cu_use(be, dev);

	if (!ret)
		ret = CU(be, cudaCreateTextureObject, &tex, &r, &d, t->view ? &view : NULL);
	*object = tex;
	return ret;
}

int cu_texture_destroy(struct be *be, unsigned int dev, uint64_t object)
{
	int ret = cu_use(be, dev);

	return ret ? ret : CU(be, cudaDestroyTextureObject, object);
}

int cu_surface_create(struct be *be, unsigned int dev, struct be_array *a, uint32_t level,
		      uint64_t *object)
{
	struct cudaResourceDesc r;
	cudaSurfaceObject_t surface = 0;
	int ret = cu_use(be, dev);

	memset(&r, 0, sizeof(r));
	r.resType = cudaResourceTypeArray;
	r.res.array.array = a->level[level];
	if (!ret)
		ret = CU(be, cudaCreateSurfaceObject, &surface, &r);
	*object = surface;
	return ret;
}

int cu_surface_destroy(struct be *be, unsigned int dev, uint64_t object)
{
	int ret = cu_use(be, dev);

	return ret ? ret : CU(be, cudaDestroySurfaceObject, object);
}

/* ---- tensor maps, which the driver's own functions encode for its device ---- */

static int tiled(struct be *be, CUtensorMap *map, const struct qcu_tensor_msg *t)
{
	PFN_cuTensorMapEncodeTiled_v12000 encode;
	int ret = cu_driver_function(be, "cuTensorMapEncodeTiled", &encode);

	return ret ? ret
		   : (int)encode(map, (CUtensorMapDataType)t->type, t->rank,
				 (void *)(uintptr_t)t->addr, (const cuuint64_t *)t->dim,
				 (const cuuint64_t *)t->stride, t->box, t->step,
				 (CUtensorMapInterleave)t->interleave,
				 (CUtensorMapSwizzle)t->swizzle,
				 (CUtensorMapL2promotion)t->promotion,
				 (CUtensorMapFloatOOBfill)t->fill);
}

static int im2col(struct be *be, CUtensorMap *map, const struct qcu_tensor_msg *t)
{
	PFN_cuTensorMapEncodeIm2col_v12000 encode;
	int ret = cu_driver_function(be, "cuTensorMapEncodeIm2col", &encode);

	return ret ? ret
		   : (int)encode(map, (CUtensorMapDataType)t->type, t->rank,
				 (void *)(uintptr_t)t->addr, (const cuuint64_t *)t->dim,
				 (const cuuint64_t *)t->stride, t->lower, t->upper, t->channels,
				 t->pixels, t->step, (CUtensorMapInterleave)t->interleave,
				 (CUtensorMapSwizzle)t->swizzle,
				 (CUtensorMapL2promotion)t->promotion,
				 (CUtensorMapFloatOOBfill)t->fill);
}

static int im2col_wide(struct be *be, CUtensorMap *map, const struct qcu_tensor_msg *t)
{
	PFN_cuTensorMapEncodeIm2colWide_v12080 encode;
	int ret = cu_driver_function(be, "cuTensorMapEncodeIm2colWide", &encode);

	return ret ? ret
		   : (int)encode(map, (CUtensorMapDataType)t->type, t->rank,
				 (void *)(uintptr_t)t->addr, (const cuuint64_t *)t->dim,
				 (const cuuint64_t *)t->stride, t->lower[0], t->upper[0],
				 t->channels, t->pixels, t->step,
				 (CUtensorMapInterleave)t->interleave,
				 (CUtensorMapIm2ColWideMode)t->mode, (CUtensorMapSwizzle)t->swizzle,
				 (CUtensorMapL2promotion)t->promotion,
				 (CUtensorMapFloatOOBfill)t->fill);
}

static int replace_tensor_address(struct be *be, CUtensorMap *map, const struct qcu_tensor_msg *t)
{
	PFN_cuTensorMapReplaceAddress_v12000 replace;
	int ret = cu_driver_function(be, "cuTensorMapReplaceAddress", &replace);

	memcpy(map, t->map, sizeof(*map));
	return ret ? ret : (int)replace(map, (void *)(uintptr_t)t->addr);
}

int cu_tensor_map(struct be *be, unsigned int dev, const struct qcu_tensor_msg *t, void *to)
{
	CUtensorMap map;
	int ret = cu_use(be, dev);

	_Static_assert(sizeof(map) == QCU_TENSOR_MAP_BYTES, "a tensor map");
	if (ret)
		return ret;
	switch (t->what) {
	case QCU_TENSOR_TILED:
		ret = tiled(be, &map, t);
		break;
	case QCU_TENSOR_IM2COL:
		ret = im2col(be, &map, t);
		break;
	case QCU_TENSOR_IM2COL_WIDE:
		ret = im2col_wide(be, &map, t);
		break;
	default:
		ret = replace_tensor_address(be, &map, t);
	}
	if (!ret)
		memcpy(to, &map, sizeof(map));
	return ret;
}

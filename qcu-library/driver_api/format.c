// SPDX-License-Identifier: LGPL-2.1-or-later
/* Formats: the runtime counts the bits of each channel, the driver API has a name for each type. */
#include "qcu-library/driver_api/array.h"

static const struct {
	CUarray_format format;
	int bits;
	enum cudaChannelFormatKind kind;
} types[] = {
	{CU_AD_FORMAT_UNSIGNED_INT8, 8, cudaChannelFormatKindUnsigned},
	{CU_AD_FORMAT_UNSIGNED_INT16, 16, cudaChannelFormatKindUnsigned},
	{CU_AD_FORMAT_UNSIGNED_INT32, 32, cudaChannelFormatKindUnsigned},
	{CU_AD_FORMAT_SIGNED_INT8, 8, cudaChannelFormatKindSigned},
	{CU_AD_FORMAT_SIGNED_INT16, 16, cudaChannelFormatKindSigned},
	{CU_AD_FORMAT_SIGNED_INT32, 32, cudaChannelFormatKindSigned},
	{CU_AD_FORMAT_HALF, 16, cudaChannelFormatKindFloat},
	{CU_AD_FORMAT_FLOAT, 32, cudaChannelFormatKindFloat},
};

#define TYPES (sizeof(types) / sizeof(types[0]))

/* The numbers of the formats for video, of compressed and of normalized ones. */
static bool special(CUarray_format format)
{
	return format == CU_AD_FORMAT_NV12 || format == CU_AD_FORMAT_UNORM_INT_101010_2 ||
	       (format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_SNORM_INT16X4);
}

cudaError_t qcul_format_from(struct cudaChannelFormatDesc *to, CUarray_format format,
			     unsigned int channels)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	int bits;
	size_t i;

	if (special(format))
		return qcul_unsupported("an array of compressed, planar or normalized format",
					&said);
	for (i = 0; i < TYPES && types[i].format != format; i++)
		;
	if (i == TYPES || (channels != 1 && channels != 2 && channels != 4))
		return cudaErrorInvalidValue;
	bits = types[i].bits;
	*to = (struct cudaChannelFormatDesc){
		.x = bits,
		.y = channels > 1 ? bits : 0,
		.z = channels > 2 ? bits : 0,
		.w = channels > 3 ? bits : 0,
		.f = types[i].kind,
	};
	return cudaSuccess;
}

void qcul_format_to(CUarray_format *format, unsigned int *channels,
		    const struct cudaChannelFormatDesc *from)
{
	size_t i;

	for (i = 0; i < TYPES - 1; i++)
		if (types[i].bits == from->x && types[i].kind == from->f)
			break;
	*format = types[i].format;
	*channels = from->w ? 4 : from->y ? 2 : 1;
}

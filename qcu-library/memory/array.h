/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * CUDA arrays as the library knows them. A cudaArray_t or cudaMipmappedArray_t is the address of a
 * slot in a table, like other handles. The library answers a program's questions about an array
 * from this table.
 */
#ifndef QCU_LIBRARY_ARRAY_H
#define QCU_LIBRARY_ARRAY_H

#include "qcu-library/memory/memory.h"

enum qcul_array_kind { QCUL_ARRAY, QCUL_ARRAY_LEVEL, QCUL_MIPMAP };

struct qcul_array {
	enum qcul_array_kind kind;
	uint32_t id; /* on the wire; a level has the id of its mipmapped array */
	uint32_t level, levels;
	struct cudaChannelFormatDesc format;
	struct cudaExtent extent; /* as the program gave it; of a level: the size of the level */
	unsigned int flags;
	uint32_t elem; /* bytes */
	uint32_t
		level_slot[QCU_LEVELS_MAX]; /* of a mipmapped array: its levels, 0: not asked for */
};

/* The array behind a handle; NULL: the handle is not valid. */
const struct qcul_array *qcul_array(cudaArray_const_t array);
const struct qcul_array *qcul_mipmap(cudaMipmappedArray_const_t mipmap);
/* A mipmapped array in memory that PHYS_CREATE or PHYS_IMPORT has made. */
cudaError_t qcul_mipmap_in(uint32_t mem, uint64_t offset,
			   const struct cudaChannelFormatDesc *format, struct cudaExtent extent,
			   unsigned int levels, unsigned int flags, cudaMipmappedArray_t *mipmap);
/* Bytes of an element; 0: CUDA has no such format. */
uint32_t qcul_format_bytes(const struct cudaChannelFormatDesc *format);
/* Rows, slices or layers of an array, at least 1. */
struct cudaExtent qcul_array_size(const struct qcul_array *a);

#endif

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Descriptions of matrices, products, transforms and preferences. They are plain data in memory of
 * the library or of the program (the Init functions). They are sent only when a call uses them.
 * Only then the library checks the values of attributes.
 *
 * The description of a product had fewer bytes in CUDA 12.1. In a program's memory of that size
 * it has no last attribute.
 *
 * A layout of groups of matrices, which CUDA 13.0 does not have, has more attributes than others.
 * It can be made and read, and no call takes it.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/shims/cublaslt.h"

struct attribute {
	int number;
	size_t offset, size;
};

/* The library's own structure must have room for ours. */
#define FITS(ours, theirs) _Static_assert(sizeof(struct ours) <= sizeof(theirs), "there is room")
FITS(qcu_lt_layout, cublasLtMatrixLayoutOpaque_t);
FITS(qcu_lt_matmul, cublasLtMatmulDescOpaque_t);
FITS(qcu_lt_transform, cublasLtMatrixTransformDescOpaque_t);
FITS(qcu_lt_preference, cublasLtMatmulPreferenceOpaque_t);

/* Every description begins with what it is, and with what has been set. */
struct form {
	uint32_t is, set;
};

#define LAYOUT(n, field, type) \
	{n, offsetof(struct qcul_lt_layouts, field), sizeof(((struct qcul_lt_layouts *)0)->field)},
static const struct attribute layout_all[] = {QCUL_LT_GROUPS(LAYOUT)};
#define LAYOUT_PLAIN 9u /* of these, in a layout of one matrix */
_Static_assert(offsetof(struct qcul_lt_layouts, width) == sizeof(struct qcu_lt_layout),
	       "both begin in the same way");

/* Is it what `is` says? *count: of its attributes. */
static bool is_or_is_short(const struct form *form, uint32_t is, unsigned int *count)
{
	if (is == QCU_LT_IS_LAYOUT && form->is == QCUL_LT_IS_GROUPS)
		return true;
	if (is == QCU_LT_IS_LAYOUT)
		*count = LAYOUT_PLAIN;
	if (form->is == is)
		return true;
	if (is != QCU_LT_IS_MATMUL || form->is != QCUL_LT_IS_SHORT)
		return false;
	--*count;
	return true;
}

static cublasStatus_t set_desc_attribute(void *desc, uint32_t is, const struct attribute *all,
					 unsigned int count, int number, const void *value,
					 size_t size)
{
	struct form *form = desc;
	unsigned int i;

	if (!form || !value || !is_or_is_short(form, is, &count))
		return CUBLAS_STATUS_INVALID_VALUE;
	for (i = 0; i < count; i++)
		if (all[i].number == number)
			break;
	if (i == count || size != all[i].size)
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy((char *)desc + all[i].offset, value, size);
	form->set |= 1u << i;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get_desc_attribute(const void *desc, uint32_t is, const struct attribute *all,
					 unsigned int count, int number, void *value, size_t size,
					 size_t *written)
{
	const struct form *form = desc;
	unsigned int i;

	if (!form || (!size && !written) || !is_or_is_short(form, is, &count))
		return CUBLAS_STATUS_INVALID_VALUE;
	for (i = 0; i < count; i++)
		if (all[i].number == number)
			break;
	if (i == count || (size && (!value || size != all[i].size)))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (size)
		memcpy(value, (const char *)desc + all[i].offset, size);
	if (written)
		*written = all[i].size;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t copy_of(const void *ours, size_t size, size_t room, void **desc)
{
	if (!desc)
		return CUBLAS_STATUS_INVALID_VALUE;
	*desc = calloc(1, room);
	if (!*desc)
		return CUBLAS_STATUS_ALLOC_FAILED;
	memcpy(*desc, ours, size);
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t destroy_description(void *desc, uint32_t is)
{
	struct form *form = desc;
	const bool groups = is == QCU_LT_IS_LAYOUT && form && form->is == QCUL_LT_IS_GROUPS;

	if (form && (form->is == is || groups)) {
		form->is = 0;
		free(form);
	}
	return CUBLAS_STATUS_SUCCESS;
}

#define MATMUL(n, field, type) \
	{n, offsetof(struct qcu_lt_matmul, field), sizeof(((struct qcu_lt_matmul *)0)->field)},
#define TRANSFORM(n, field, type)                     \
	{n, offsetof(struct qcu_lt_transform, field), \
	 sizeof(((struct qcu_lt_transform *)0)->field)},
#define PREFERENCE(n, field, type)                     \
	{n, offsetof(struct qcu_lt_preference, field), \
	 sizeof(((struct qcu_lt_preference *)0)->field)},

static const struct attribute matmul_all[] = {QCU_LT_MATMUL(MATMUL)};
static const struct attribute transform_all[] = {QCU_LT_TRANSFORM(TRANSFORM)};
static const struct attribute preference_all[] = {QCU_LT_PREFERENCE(PREFERENCE)};

/* Setting, reading and destroying are the same for all. */
#define FUNCTIONS(Name, IS, all)                                                                   \
	cublasStatus_t cublasLt##Name##SetAttribute(                                               \
		cublasLt##Name##_t desc, ATTRIBUTES_##Name number, const void *value, size_t size) \
	{                                                                                          \
		return set_desc_attribute(desc, IS, all, sizeof(all) / sizeof(all[0]),             \
					  (int)number, value, size);                               \
	}                                                                                          \
	cublasStatus_t cublasLt##Name##GetAttribute(cublasLt##Name##_t desc,                       \
						    ATTRIBUTES_##Name number, void *value,         \
						    size_t size, size_t *written)                  \
	{                                                                                          \
		return get_desc_attribute(desc, IS, all, sizeof(all) / sizeof(all[0]),             \
					  (int)number, value, size, written);                      \
	}                                                                                          \
	cublasStatus_t cublasLt##Name##Destroy(cublasLt##Name##_t desc)                            \
	{                                                                                          \
		return destroy_description(desc, IS);                                              \
	}

#define ATTRIBUTES_MatrixLayout	       cublasLtMatrixLayoutAttribute_t
#define ATTRIBUTES_MatmulDesc	       cublasLtMatmulDescAttributes_t
#define ATTRIBUTES_MatrixTransformDesc cublasLtMatrixTransformDescAttributes_t
#define ATTRIBUTES_MatmulPreference    cublasLtMatmulPreferenceAttributes_t
FUNCTIONS(MatrixLayout, QCU_LT_IS_LAYOUT, layout_all)
FUNCTIONS(MatmulDesc, QCU_LT_IS_MATMUL, matmul_all)
FUNCTIONS(MatrixTransformDesc, QCU_LT_IS_TRANSFORM, transform_all)
FUNCTIONS(MatmulPreference, QCU_LT_IS_PREFERENCE, preference_all)

/* ---- new ones, with the library's defaults ---- */

static cublasStatus_t init(void *desc, size_t room, const void *ours, size_t size)
{
	if (!desc)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (room < size)
		return CUBLAS_STATUS_ALLOC_FAILED;
	memset(desc, 0, room);
	memcpy(desc, ours, size);
	return CUBLAS_STATUS_SUCCESS;
}

static struct qcu_lt_layout layout(cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld)
{
	return (struct qcu_lt_layout){
		.is = QCU_LT_IS_LAYOUT,
		.type = (uint32_t)type,
		.rows = rows,
		.cols = cols,
		.ld = ld,
		.batch = 1,
	};
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t desc, size_t size,
						 cudaDataType type, uint64_t rows, uint64_t cols,
						 int64_t ld)
{
	const struct qcu_lt_layout l = layout(type, rows, cols, ld);

	return init(desc, size, &l, sizeof(l));
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *desc, cudaDataType type,
					  uint64_t rows, uint64_t cols, int64_t ld)
{
	const struct qcu_lt_layout l = layout(type, rows, cols, ld);

	return copy_of(&l, sizeof(l), sizeof(**desc), (void **)desc);
}

static struct qcul_lt_layouts groups_layout(cudaDataType type, int groups, const void *rows,
					    const void *cols, const void *ld)
{
	return (struct qcul_lt_layouts){
		.is = QCUL_LT_IS_GROUPS,
		.type = (uint32_t)type,
		.batch = groups,
		.mode = 2, /* CUBLASLT_BATCH_MODE_GROUPED */
		.all_rows = (uintptr_t)rows,
		.all_cols = (uintptr_t)cols,
		.all_ld = (uintptr_t)ld,
	};
}

cublasStatus_t cublasLtGroupedMatrixLayoutInit_internal(cublasLtMatrixLayout_t desc, size_t size,
							cudaDataType type, int groups,
							const void *rows, const void *cols,
							const void *ld)
{
	const struct qcul_lt_layouts g = groups_layout(type, groups, rows, cols, ld);

	return init(desc, size, &g, sizeof(g));
}

cublasStatus_t cublasLtGroupedMatrixLayoutCreate(cublasLtMatrixLayout_t *desc, cudaDataType type,
						 int groups, const void *rows, const void *cols,
						 const void *ld)
{
	const struct qcul_lt_layouts g = groups_layout(type, groups, rows, cols, ld);

	return copy_of(&g, sizeof(g), sizeof(g), (void **)desc);
}

bool qcul_lt_any_groups(const void *const *layouts, unsigned int count)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	const struct form *form;

	while (count--) {
		form = layouts[count];
		if (form && form->is == QCUL_LT_IS_GROUPS) {
			(void)qcul_lib_unserved(&qcul_cublaslt, "a product of groups of matrices",
						&said);
			return true;
		}
	}
	return false;
}

static struct qcu_lt_matmul matmul(cublasComputeType_t compute, cudaDataType_t scale)
{
	return (struct qcu_lt_matmul){
		.is = QCU_LT_IS_MATMUL,
		.compute = compute,
		.scale = scale,
		.fill = CUBLAS_FILL_MODE_FULL,
		.epilogue = CUBLASLT_EPILOGUE_DEFAULT,
		.aux_type = -1,
		.bias_type = -1,
	};
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t desc, size_t size,
					       cublasComputeType_t compute, cudaDataType_t scale)
{
	struct qcu_lt_matmul m = matmul(compute, scale);

	if (size >= sizeof(m))
		return init(desc, size, &m, sizeof(m));
	m.is = QCUL_LT_IS_SHORT;
	return init(desc, size, &m, QCUL_LT_SHORT);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
					cudaDataType_t scale)
{
	const struct qcu_lt_matmul m = matmul(compute, scale);

	return copy_of(&m, sizeof(m), sizeof(**desc), (void **)desc);
}

cublasStatus_t cublasLtMatrixTransformDescInit_internal(cublasLtMatrixTransformDesc_t desc,
							size_t size, cudaDataType scale)
{
	const struct qcu_lt_transform t = {.is = QCU_LT_IS_TRANSFORM, .scale = scale};

	return init(desc, size, &t, sizeof(t));
}

cublasStatus_t cublasLtMatrixTransformDescCreate(cublasLtMatrixTransformDesc_t *desc,
						 cudaDataType scale)
{
	const struct qcu_lt_transform t = {.is = QCU_LT_IS_TRANSFORM, .scale = scale};

	return copy_of(&t, sizeof(t), sizeof(**desc), (void **)desc);
}

static struct qcu_lt_preference preference(void)
{
	return (struct qcu_lt_preference){
		.is = QCU_LT_IS_PREFERENCE,
		.reductions = CUBLASLT_REDUCTION_SCHEME_MASK,
		.align_a = 256,
		.align_b = 256,
		.align_c = 256,
		.align_d = 256,
		.kinds = ~0ull,
	};
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t desc, size_t size)
{
	const struct qcu_lt_preference p = preference();

	return init(desc, size, &p, sizeof(p));
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *desc)
{
	const struct qcu_lt_preference p = preference();

	return copy_of(&p, sizeof(p), sizeof(**desc), (void **)desc);
}

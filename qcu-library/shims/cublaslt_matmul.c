// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Products, transforms, and the choice of an algorithm. The descriptions are sent with the call.
 *
 * Frameworks ask for an algorithm before each product, always with the same descriptions. The
 * answer depends only on these. So it is kept here, and only the first question waits.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-library/shims/cublaslt.h"

static bool is_description_of(const void *desc, uint32_t what)
{
	uint32_t have;

	if (!desc)
		return false;
	memcpy(&have, desc, sizeof(have));
	return have == what;
}

/* Copies the description of a product. False: it is none. */
static bool copy_matmul(struct qcu_lt_matmul *m, const void *desc)
{
	const bool whole = is_description_of(desc, QCU_LT_IS_MATMUL);

	if (!whole && !is_description_of(desc, QCUL_LT_IS_SHORT))
		return false;
	memset(m, 0, sizeof(*m));
	memcpy(m, desc, whole ? sizeof(*m) : QCUL_LT_SHORT);
	m->is = QCU_LT_IS_MATMUL;
	return true;
}

/* A description of a product in which each address has become its alignment. */
static struct qcu_lt_matmul without_addresses(const struct qcu_lt_matmul *m)
{
	struct qcu_lt_matmul same = *m;
	qcu_lt_address *const all[] = {&same.bias,	 &same.aux,	  &same.scale_a,
				       &same.scale_b,	 &same.scale_c,	  &same.scale_d,
				       &same.amax_d,	 &same.aux_scale, &same.aux_amax,
				       &same.scale_d_out};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		*all[i] = *all[i] ? 1 + (*all[i] & 255) : 0;
	return same;
}

static void pack_matmul(struct qcul_pack *p, const struct qcu_lt_matmul *m)
{
	const struct qcu_lt_matmul same = without_addresses(m);

	qcul_lib_in_like(p, m, sizeof(*m), &same);
}

/* The library may be given a null pointer for a layout; it then says what is wrong. */
static bool pack_layout(struct qcul_pack *p, const void *desc)
{
	if (desc && !is_description_of(desc, QCU_LT_IS_LAYOUT))
		return false;
	qcul_lib_in(p, desc, sizeof(struct qcu_lt_layout));
	return true;
}

static size_t scale_size(int scale)
{
	return qcu_cublas_size(scale);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
			      const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
			      cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
			      cublasLtMatrixLayout_t c_layout, void *d,
			      cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
			      void *workspace, size_t workspace_size, cudaStream_t stream)
{
	const void *const layouts[4] = {a_layout, b_layout, c_layout, d_layout};
	struct qcu_lt_matmul m;
	struct qcul_pack p;

	qcul_lib_begin(&p, &qcul_cublaslt, qcul_number_cublasLtMatmul);
	qcul_lib_object(&p, handle, KIND_cublasLtHandle_t);
	if (qcul_lt_any_groups(layouts, 4))
		return qcul_lib_drop(&p, CUBLAS_STATUS_NOT_SUPPORTED);
	if (!copy_matmul(&m, desc))
		return qcul_lib_drop(&p, CUBLAS_STATUS_INVALID_VALUE);
	pack_matmul(&p, &m);
	qcul_lib_scalar_at(&p, (void *)alpha, scale_size(m.scale), 16, QCUL_LIB_IN,
			   qcu_lt_alpha_on_gpu(m.pointers));
	qcul_lib_device(&p, a);
	if (!pack_layout(&p, a_layout))
		return qcul_lib_drop(&p, CUBLAS_STATUS_INVALID_VALUE);
	qcul_lib_device(&p, b);
	if (!pack_layout(&p, b_layout))
		return qcul_lib_drop(&p, CUBLAS_STATUS_INVALID_VALUE);
	/* With this mode beta is not read. */
	if (m.pointers == QCU_LT_VECTOR_BETA_ZERO)
		beta = NULL;
	qcul_lib_scalar_at(&p, (void *)beta, scale_size(m.scale), 16, QCUL_LIB_IN,
			   qcu_lt_beta_on_gpu(m.pointers));
	qcul_lib_device(&p, c);
	if (!pack_layout(&p, c_layout))
		return qcul_lib_drop(&p, CUBLAS_STATUS_INVALID_VALUE);
	qcul_lib_device(&p, d);
	if (!pack_layout(&p, d_layout))
		return qcul_lib_drop(&p, CUBLAS_STATUS_INVALID_VALUE);
	qcul_lib_in(&p, algo, sizeof(*algo));
	qcul_lib_device(&p, workspace);
	qcul_lib_value(&p, workspace_size);
	qcul_lib_stream(&p, stream);
	return (cublasStatus_t)qcul_lib_call(&p);
}

cublasStatus_t cublasLtMatrixTransform(cublasLtHandle_t handle, cublasLtMatrixTransformDesc_t desc,
				       const void *alpha, const void *a,
				       cublasLtMatrixLayout_t a_layout, const void *beta,
				       const void *b, cublasLtMatrixLayout_t b_layout, void *c,
				       cublasLtMatrixLayout_t c_layout, cudaStream_t stream)
{
	const struct qcu_lt_transform *t = (const struct qcu_lt_transform *)desc;
	const void *const layouts[3] = {a_layout, b_layout, c_layout};
	bool device;
	struct qcul_pack p;

	qcul_lib_begin(&p, &qcul_cublaslt, qcul_number_cublasLtMatrixTransform);
	qcul_lib_object(&p, handle, KIND_cublasLtHandle_t);
	if (qcul_lt_any_groups(layouts, 3))
		return qcul_lib_drop(&p, CUBLAS_STATUS_NOT_SUPPORTED);
	if (!is_description_of(t, QCU_LT_IS_TRANSFORM))
		return qcul_lib_drop(&p, CUBLAS_STATUS_INVALID_VALUE);
	device = t->pointers != QCU_LT_HOST;
	qcul_lib_in(&p, t, sizeof(*t));
	qcul_lib_scalar_at(&p, (void *)alpha, scale_size(t->scale), 16, QCUL_LIB_IN, device);
	qcul_lib_device(&p, a);
	if (!pack_layout(&p, a_layout))
		return qcul_lib_drop(&p, CUBLAS_STATUS_INVALID_VALUE);
	qcul_lib_scalar_at(&p, (void *)beta, scale_size(t->scale), 16, QCUL_LIB_IN, device);
	qcul_lib_device(&p, b);
	if (!pack_layout(&p, b_layout))
		return qcul_lib_drop(&p, CUBLAS_STATUS_INVALID_VALUE);
	qcul_lib_device(&p, c);
	if (!pack_layout(&p, c_layout))
		return qcul_lib_drop(&p, CUBLAS_STATUS_INVALID_VALUE);
	qcul_lib_stream(&p, stream);
	return (cublasStatus_t)qcul_lib_call(&p);
}

/* ---- the choice of an algorithm ---- */

#define KEPT	 256u
#define KEPT_MAX 8 /* results of one question */

/* What the answer depends on. No padding: it is compared byte by byte. */
struct question {
	uint64_t device, requested;
	struct qcu_lt_matmul matmul;
	struct qcu_lt_layout layout[4];
	struct qcu_lt_preference preference;
};

static struct kept {
	bool used;
	struct question question;
	int count;
	cublasLtMatmulHeuristicResult_t result[KEPT_MAX];
} * kept[KEPT];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned int hash_question(const struct question *q)
{
	uint64_t hash = 0xcbf29ce484222325ull, word;
	size_t i;

	for (i = 0; i < sizeof(*q); i += sizeof(word)) {
		memcpy(&word, (const char *)q + i, sizeof(word));
		hash = (hash ^ word) * 0x100000001b3ull;
		hash ^= hash >> 29;
	}
	return (unsigned int)(hash % KEPT);
}

static bool look_up(const struct question *q, cublasLtMatmulHeuristicResult_t *results, int *count)
{
	const struct kept *k;
	bool found;

	pthread_mutex_lock(&lock);
	k = kept[hash_question(q)];
	found = k && k->used && !memcmp(&k->question, q, sizeof(*q));
	if (found) {
		*count = k->count;
		memcpy(results, k->result, (size_t)k->count * sizeof(*results));
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static void keep_heuristic_answer(const struct question *q,
				  const cublasLtMatmulHeuristicResult_t *results, int count)
{
	unsigned int at = hash_question(q);

	pthread_mutex_lock(&lock);
	if (!kept[at])
		kept[at] = calloc(1, sizeof(*kept[at]));
	if (kept[at]) {
		kept[at]->used = true;
		kept[at]->question = *q;
		kept[at]->count = count;
		memcpy(kept[at]->result, results, (size_t)count * sizeof(*results));
	}
	pthread_mutex_unlock(&lock);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
					      cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
					      cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
					      cublasLtMatmulPreference_t preference, int requested,
					      cublasLtMatmulHeuristicResult_t results[],
					      int *returned)
{
	const void *const layouts[4] = {a, b, c, d};
	const struct qcul_object *o = qcul_lib_find(handle, KIND_cublasLtHandle_t);
	cublasStatus_t status;
	struct qcu_lt_matmul m;
	struct question q;
	struct qcul_pack p;
	unsigned int i;

	if (!o)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (qcul_lt_any_groups(layouts, 4))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (!copy_matmul(&m, desc) || !is_description_of(preference, QCU_LT_IS_PREFERENCE) ||
	    requested <= 0 || !results || !returned)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (requested > QCU_LT_RESULTS)
		requested = QCU_LT_RESULTS;
	memset(&q, 0, sizeof(q));
	q.device = (uint64_t)o->device;
	q.requested = (uint64_t)requested;
	q.matmul = without_addresses(&m);
	memcpy(&q.preference, preference, sizeof(q.preference));
	for (i = 0; i < 4; i++) {
		if (!is_description_of(layouts[i], QCU_LT_IS_LAYOUT))
			return CUBLAS_STATUS_INVALID_VALUE;
		memcpy(&q.layout[i], layouts[i], sizeof(q.layout[i]));
	}
	if (look_up(&q, results, returned))
		return CUBLAS_STATUS_SUCCESS;
	*returned = 0;
	qcul_lib_begin(&p, &qcul_cublaslt, qcul_number_cublasLtMatmulAlgoGetHeuristic);
	qcul_lib_object(&p, handle, KIND_cublasLtHandle_t);
	pack_matmul(&p, &m);
	for (i = 0; i < 4; i++)
		qcul_lib_in(&p, &q.layout[i], sizeof(q.layout[i]));
	qcul_lib_in(&p, &q.preference, sizeof(q.preference));
	qcul_lib_value(&p, (uint64_t)requested);
	qcul_lib_out(&p, results, (uint64_t)requested * sizeof(*results));
	qcul_lib_out(&p, returned, sizeof(*returned));
	status = (cublasStatus_t)qcul_lib_call(&p);
	if (status == CUBLAS_STATUS_SUCCESS && *returned > 0 && *returned <= KEPT_MAX &&
	    *returned <= requested)
		keep_heuristic_answer(&q, results, *returned);
	return status;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
				       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
				       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
				       const cublasLtMatmulAlgo_t *algo,
				       cublasLtMatmulHeuristicResult_t *result)
{
	const void *const layouts[4] = {a, b, c, d};
	struct qcu_lt_matmul m;
	struct qcul_pack p;
	unsigned int i;

	qcul_lib_begin(&p, &qcul_cublaslt, qcul_number_cublasLtMatmulAlgoCheck);
	qcul_lib_object(&p, handle, KIND_cublasLtHandle_t);
	if (qcul_lt_any_groups(layouts, 4))
		return qcul_lib_drop(&p, CUBLAS_STATUS_NOT_SUPPORTED);
	if (!copy_matmul(&m, desc) || !algo || !result)
		return qcul_lib_drop(&p, CUBLAS_STATUS_INVALID_VALUE);
	pack_matmul(&p, &m);
	for (i = 0; i < 4; i++)
		if (!is_description_of(layouts[i], QCU_LT_IS_LAYOUT) ||
		    !pack_layout(&p, layouts[i]))
			return qcul_lib_drop(&p, CUBLAS_STATUS_INVALID_VALUE);
	qcul_lib_in(&p, algo, sizeof(*algo));
	qcul_lib_out(&p, result, sizeof(*result));
	return (cublasStatus_t)qcul_lib_call(&p);
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle, cublasComputeType_t compute,
				      cudaDataType_t scale, cudaDataType_t a, cudaDataType_t b,
				      cudaDataType_t c, cudaDataType_t d, int id,
				      cublasLtMatmulAlgo_t *algo)
{
	struct qcul_pack p;

	qcul_lib_begin(&p, &qcul_cublaslt, qcul_number_cublasLtMatmulAlgoInit);
	qcul_lib_object(&p, handle, KIND_cublasLtHandle_t);
	qcul_lib_value(&p, (uint64_t)compute);
	qcul_lib_value(&p, (uint64_t)scale);
	qcul_lib_value(&p, (uint64_t)a);
	qcul_lib_value(&p, (uint64_t)b);
	qcul_lib_value(&p, (uint64_t)c);
	qcul_lib_value(&p, (uint64_t)d);
	qcul_lib_value(&p, (uint64_t)id);
	qcul_lib_out(&p, algo, sizeof(*algo));
	return (cublasStatus_t)qcul_lib_call(&p);
}

/* What an algorithm can do, and how it is configured. */
static cublasStatus_t get_attribute(uint16_t function, const cublasLtMatmulAlgo_t *algo,
				    int attribute, void *to, size_t size, size_t *written)
{
	struct qcul_pack p;

	qcul_lib_begin(&p, &qcul_cublaslt, function);
	if (size > QCU_LT_ATTRIBUTE || (size && !to))
		return (cublasStatus_t)qcul_lib_drop(&p, CUBLAS_STATUS_INVALID_VALUE);
	qcul_lib_in(&p, algo, sizeof(*algo));
	qcul_lib_value(&p, (uint64_t)attribute);
	qcul_lib_out(&p, to, size);
	qcul_lib_value(&p, size);
	qcul_lib_out(&p, written, sizeof(*written));
	return (cublasStatus_t)qcul_lib_call(&p);
}

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t *algo,
						 cublasLtMatmulAlgoCapAttributes_t attribute,
						 void *to, size_t size, size_t *written)
{
	return get_attribute(qcul_number_cublasLtMatmulAlgoCapGetAttribute, algo, (int)attribute,
			     to, size, written);
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
						    cublasLtMatmulAlgoConfigAttributes_t attribute,
						    void *to, size_t size, size_t *written)
{
	return get_attribute(qcul_number_cublasLtMatmulAlgoConfigGetAttribute, algo, (int)attribute,
			     to, size, written);
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *algo,
						    cublasLtMatmulAlgoConfigAttributes_t attribute,
						    const void *from, size_t size)
{
	struct qcul_pack p;

	qcul_lib_begin(&p, &qcul_cublaslt, qcul_number_cublasLtMatmulAlgoConfigSetAttribute);
	if (size > QCU_LT_ATTRIBUTE || (size && !from))
		return (cublasStatus_t)qcul_lib_drop(&p, CUBLAS_STATUS_INVALID_VALUE);
	qcul_lib_inout(&p, algo, sizeof(*algo));
	qcul_lib_value(&p, (uint64_t)attribute);
	qcul_lib_in(&p, from, size);
	qcul_lib_value(&p, size);
	return (cublasStatus_t)qcul_lib_call(&p);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Calls that the mirror unpacks by hand: cuBLASLt, cuRAND, cuSOLVER, cuSPARSE. */
#include <cublasLt.h>
#include <curand.h>
#include <string.h>

#include "include/qculib_cublaslt.h"
#include "include/qculib_curand.h"
#include "include/qculib_cusparse.h"
#include "tests/fuzz/libs/pack.h"

void fuzz_hand_cublasLtMatmul(struct fuzz_call *f);
void fuzz_hand_cublasLtMatrixTransform(struct fuzz_call *f);
void fuzz_hand_cublasLtMatmulAlgoGetHeuristic(struct fuzz_call *f);
void fuzz_hand_cublasLtMatmulAlgoCheck(struct fuzz_call *f);
void fuzz_hand_cublasLtMatmulAlgoInit(struct fuzz_call *f);
void fuzz_hand_cublasLtMatmulAlgoCapGetAttribute(struct fuzz_call *f);
void fuzz_hand_cublasLtMatmulAlgoConfigGetAttribute(struct fuzz_call *f);
void fuzz_hand_cublasLtMatmulAlgoConfigSetAttribute(struct fuzz_call *f);
void fuzz_hand_cusparseSpMatSetAttribute(struct fuzz_call *f);
void fuzz_hand_cusolverRfBatchSetupHost(struct fuzz_call *f);
void fuzz_hand_cusolverRfBatchZeroPivot(struct fuzz_call *f);
void fuzz_hand_cusolverRfExtractBundledFactorsHost(struct fuzz_call *f);
void fuzz_hand_cusolverRfExtractSplitFactorsHost(struct fuzz_call *f);
void fuzz_hand_curandGetDirectionVectors32(struct fuzz_call *f);
void fuzz_hand_curandGetDirectionVectors64(struct fuzz_call *f);
void fuzz_hand_curandGetScrambleConstants32(struct fuzz_call *f);
void fuzz_hand_curandGetScrambleConstants64(struct fuzz_call *f);

/* A field that is set in some calls: by its type. */
static uint64_t field___u32(struct fuzz_call *f)
{
	return fuzz_random(&f->random, 4);
}

static uint64_t field___s32(struct fuzz_call *f)
{
	return fuzz_is_odd(f) ? fuzz_number(f, 32) : fuzz_random(&f->random, 3);
}

static uint64_t field___u64(struct fuzz_call *f)
{
	return fuzz_number(f, 64);
}

static uint64_t field___s64(struct fuzz_call *f)
{
	return fuzz_number(f, 64);
}

static uint64_t field___s8(struct fuzz_call *f)
{
	return fuzz_random(&f->random, 2);
}

static uint64_t field_float(struct fuzz_call *f)
{
	return fuzz_random(&f->random, 4);
}

static uint64_t field_qcu_lt_address(struct fuzz_call *f)
{
	return fuzz_address(f, false);
}

#define FILL(number, field, type) d.field = (type)field_##type(f);

/* Which attributes are set: mostly few. */
static uint32_t choose_set(struct fuzz_call *f, unsigned int count)
{
	uint32_t set = 0;
	unsigned int n = fuzz_random(&f->random, f->mood == FUZZ_TAME ? 3 : 8);

	while (n--)
		set |= 1u << fuzz_random(&f->random, fuzz_is_odd(f) ? 32 : count);
	return set;
}

static uint32_t is(struct fuzz_call *f, uint32_t right)
{
	return fuzz_is_odd(f) && !fuzz_random(&f->random, 16) ? right ^ 1 : right;
}

static int32_t choose_type(struct fuzz_call *f)
{
	static const int32_t types[] = {CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF,
					CUDA_R_64F, CUDA_R_8I,	CUDA_C_32F};

	if (fuzz_is_odd(f))
		return (int32_t)fuzz_number(f, 32);
	/* Mostly that of all matrices of the call. */
	return types[fuzz_random(&f->random, 4) ? 0 : fuzz_random(&f->random, 6)];
}

static void layout(struct fuzz_call *f)
{
	struct qcu_lt_layout d = {0};

	if (fuzz_is_odd(f) && !fuzz_random(&f->random, 4)) {
		fuzz_word(f, QCU_LIB_NULL);
		return;
	}
	QCU_LT_LAYOUT(FILL)
	d.is = is(f, QCU_LT_IS_LAYOUT);
	d.set = choose_set(f, 9) & (f->mood == FUZZ_TAME ? 0x20 : ~0u);
	d.type = (uint32_t)choose_type(f);
	d.rows = fuzz_is_odd(f) ? fuzz_number(f, 64) : f->usual;
	d.cols = fuzz_is_odd(f) ? fuzz_number(f, 64) : f->usual;
	d.ld = (int64_t)(fuzz_is_odd(f) ? fuzz_number(f, 64) : f->usual);
	d.batch = 1 + (int32_t)fuzz_random(&f->random, 2);
	fuzz_in_bytes(f, &d, sizeof(d));
}

static void matmul(struct fuzz_call *f)
{
	struct qcu_lt_matmul d = {0};

	QCU_LT_MATMUL(FILL)
	d.is = is(f, QCU_LT_IS_MATMUL);
	d.set = choose_set(f, 32);
	d.compute = fuzz_is_odd(f) ? (int32_t)fuzz_number(f, 32) : CUBLAS_COMPUTE_32F;
	d.scale = choose_type(f);
	if (f->mood == FUZZ_TAME)
		d.epilogue = 1u << fuzz_random(&f->random, 8);
	if (f->scalars_on_gpu) {
		d.set |= 1u << 2;
		d.pointers = QCU_LT_DEVICE;
	} else if (f->mood == FUZZ_TAME) {
		d.set &= ~(1u << 2);
	}
	fuzz_in_bytes(f, &d, sizeof(d));
}

static void matrix(struct fuzz_call *f)
{
	fuzz_device(f, false);
	layout(f);
}

/* One that the library has told, mostly; or any bytes. */
static void choose_algorithm(struct fuzz_call *f, uint64_t algo[FUZZ_ALGO])
{
	unsigned int i;

	if (fuzz_world.algo_count && !fuzz_is_odd(f)) {
		i = fuzz_random(&f->random, fuzz_world.algo_count);
		memcpy(algo, fuzz_world.algo[i], sizeof(fuzz_world.algo[i]));
		return;
	}
	for (i = 0; i < FUZZ_ALGO; i++)
		algo[i] = fuzz_random(&f->random, 2) ? fuzz_number(f, 64)
						     : fuzz_random(&f->random, 1u << 20);
}

static void algorithm(struct fuzz_call *f)
{
	uint64_t algo[FUZZ_ALGO];

	if (!fuzz_random(&f->random, 3)) {
		fuzz_word(f, QCU_LIB_NULL);
		return;
	}
	choose_algorithm(f, algo);
	fuzz_in_bytes(f, algo, sizeof(algo));
}

void fuzz_hand_cublasLtMatmul(struct fuzz_call *f)
{
	fuzz_object(f, QCU_LIB_CUBLASLT_HANDLE);
	matmul(f);
	fuzz_scalar(f, 16, 4, true, LIB_IN);
	matrix(f);
	matrix(f);
	fuzz_scalar(f, 16, 4, true, LIB_IN);
	matrix(f);
	matrix(f);
	algorithm(f);
	fuzz_device(f, false);
	fuzz_word(f, fuzz_is_odd(f) ? fuzz_number(f, 64) : 1u << 20);
}

void fuzz_hand_cublasLtMatrixTransform(struct fuzz_call *f)
{
	struct qcu_lt_transform d = {0};

	QCU_LT_TRANSFORM(FILL)
	d.is = is(f, QCU_LT_IS_TRANSFORM);
	d.set = choose_set(f, 4);
	d.scale = choose_type(f);
	if (f->scalars_on_gpu) {
		d.set |= 1u << 1;
		d.pointers = QCU_LT_DEVICE;
	} else if (f->mood == FUZZ_TAME) {
		d.set &= ~(1u << 1);
	}
	fuzz_object(f, QCU_LIB_CUBLASLT_HANDLE);
	fuzz_in_bytes(f, &d, sizeof(d));
	fuzz_scalar(f, 16, 4, true, LIB_IN);
	matrix(f);
	fuzz_scalar(f, 16, 4, true, LIB_IN);
	matrix(f);
	matrix(f);
}

static void matmul_layouts(struct fuzz_call *f)
{
	unsigned int i;

	fuzz_object(f, QCU_LIB_CUBLASLT_HANDLE);
	matmul(f);
	for (i = 0; i < 4; i++)
		layout(f);
}

void fuzz_hand_cublasLtMatmulAlgoGetHeuristic(struct fuzz_call *f)
{
	const uint64_t requested =
		fuzz_is_odd(f) ? fuzz_number(f, 32) : 1 + fuzz_random(&f->random, 8);
	struct qcu_lt_preference d = {0};

	QCU_LT_PREFERENCE(FILL)
	d.is = is(f, QCU_LT_IS_PREFERENCE);
	d.set = choose_set(f, 9);
	matmul_layouts(f);
	fuzz_in_bytes(f, &d, sizeof(d));
	fuzz_word(f, requested);
	fuzz_out(f, (uint64_t)(int)requested * sizeof(cublasLtMatmulHeuristicResult_t));
	fuzz_out(f, sizeof(int));
}

void fuzz_hand_cublasLtMatmulAlgoCheck(struct fuzz_call *f)
{
	matmul_layouts(f);
	algorithm(f);
	fuzz_out(f, sizeof(cublasLtMatmulHeuristicResult_t));
}

void fuzz_hand_cublasLtMatmulAlgoInit(struct fuzz_call *f)
{
	unsigned int i;

	fuzz_object(f, QCU_LIB_CUBLASLT_HANDLE);
	fuzz_word(f, fuzz_is_odd(f) ? fuzz_number(f, 32) : CUBLAS_COMPUTE_32F);
	for (i = 0; i < 5; i++)
		fuzz_word(f, (uint64_t)choose_type(f));
	fuzz_word(f, fuzz_is_odd(f) ? fuzz_number(f, 32) : fuzz_random(&f->random, 80));
	fuzz_out(f, sizeof(cublasLtMatmulAlgo_t));
}

static void ask_algorithm(struct fuzz_call *f)
{
	const uint64_t size =
		fuzz_is_odd(f) ? fuzz_number(f, 64) : 4u << fuzz_random(&f->random, 2);

	algorithm(f);
	fuzz_word(f, fuzz_is_odd(f) ? fuzz_number(f, 32) : fuzz_random(&f->random, 26));
	fuzz_out(f, size);
	fuzz_word(f, size);
	fuzz_out(f, sizeof(size_t));
}

void fuzz_hand_cublasLtMatmulAlgoCapGetAttribute(struct fuzz_call *f)
{
	ask_algorithm(f);
}

void fuzz_hand_cublasLtMatmulAlgoConfigGetAttribute(struct fuzz_call *f)
{
	ask_algorithm(f);
}

void fuzz_hand_cublasLtMatmulAlgoConfigSetAttribute(struct fuzz_call *f)
{
	const uint64_t size = fuzz_is_odd(f) ? fuzz_number(f, 64) : 4;
	uint64_t algo[FUZZ_ALGO];

	choose_algorithm(f, algo);
	fuzz_word(f, QCU_LIB_BOTH);
	fuzz_word(f, sizeof(algo));
	fuzz_bytes(f, algo, sizeof(algo));
	f->outs += sizeof(algo);
	fuzz_word(f, fuzz_is_odd(f) ? fuzz_number(f, 32) : fuzz_random(&f->random, 10));
	fuzz_in(f, size, 4, false);
	fuzz_word(f, size);
}

void fuzz_hand_cusparseSpMatSetAttribute(struct fuzz_call *f)
{
	unsigned int i;

	fuzz_descriptor(f, QCU_LIB_CUSPARSE_SP_MAT);
	fuzz_word(f, fuzz_random(&f->random, 4));
	for (i = 0; i < QCU_CUSPARSE_ATTRIBUTES; i++)
		fuzz_word(f, fuzz_is_odd(f) ? fuzz_number(f, 32) : fuzz_random(&f->random, 2));
}

/* ---- cuRAND ---- */

static void table(struct fuzz_call *f, uint64_t first_set, uint64_t size)
{
	fuzz_word(f, fuzz_is_odd(f) ? fuzz_number(f, 32) : first_set + fuzz_random(&f->random, 2));
	fuzz_out(f, size);
}

void fuzz_hand_curandGetDirectionVectors32(struct fuzz_call *f)
{
	table(f, CURAND_DIRECTION_VECTORS_32_JOEKUO6, QCU_CURAND_VECTORS_32);
}

void fuzz_hand_curandGetDirectionVectors64(struct fuzz_call *f)
{
	table(f, CURAND_DIRECTION_VECTORS_64_JOEKUO6, QCU_CURAND_VECTORS_64);
}

void fuzz_hand_curandGetScrambleConstants32(struct fuzz_call *f)
{
	table(f, 0, QCU_CURAND_CONSTANTS_32);
}

void fuzz_hand_curandGetScrambleConstants64(struct fuzz_call *f)
{
	table(f, 0, QCU_CURAND_CONSTANTS_64);
}

static void add_matrix(struct fuzz_call *f, int64_t n, int64_t nnz, int64_t matrices)
{
	fuzz_csr(f, n, nnz, false);
	fuzz_csr(f, n, nnz, true);
	fuzz_in(f, (uint64_t)(nnz * matrices) * sizeof(double), sizeof(double), true);
}

void fuzz_hand_cusolverRfBatchSetupHost(struct fuzz_call *f)
{
	const int64_t batch = (int64_t)fuzz_bounded(f, 32, 1, 65536);
	const int64_t n = (int64_t)fuzz_bounded(f, 32, 1, 131072);
	const int64_t a = (int64_t)fuzz_bounded(f, 32, 1, 262144);
	const int64_t l = (int64_t)fuzz_bounded(f, 32, 0, 262144);
	const int64_t u = (int64_t)fuzz_bounded(f, 32, 0, 262144);

	fuzz_object(f, QCU_LIB_CUSOLVER_RF);
	fuzz_word(f, (uint64_t)batch);
	fuzz_word(f, (uint64_t)n);
	fuzz_word(f, (uint64_t)a);
	fuzz_word(f, (uint64_t)l);
	fuzz_word(f, (uint64_t)u);
	add_matrix(f, n, a, batch);
	add_matrix(f, n, l, 1);
	add_matrix(f, n, u, 1);
	fuzz_csr(f, n, n, true);
	fuzz_csr(f, n, n, true);
}

void fuzz_hand_cusolverRfBatchZeroPivot(struct fuzz_call *f)
{
	fuzz_object(f, QCU_LIB_CUSOLVER_RF);
	fuzz_out(f, fuzz_bounded(f, 32, 0, 64) * sizeof(int));
}

static void ask_for_factors(struct fuzz_call *f, unsigned int matrices)
{
	fuzz_object(f, QCU_LIB_CUSOLVER_RF);
	fuzz_out(f, 3 * sizeof(int64_t));
	while (matrices--) {
		fuzz_out(f, fuzz_bounded(f, 32, 0, 64) * sizeof(int));
		fuzz_out(f, fuzz_bounded(f, 32, 0, 64) * sizeof(int));
		fuzz_out(f, fuzz_bounded(f, 32, 0, 64) * sizeof(double));
	}
}

void fuzz_hand_cusolverRfExtractBundledFactorsHost(struct fuzz_call *f)
{
	ask_for_factors(f, 1);
}

void fuzz_hand_cusolverRfExtractSplitFactorsHost(struct fuzz_call *f)
{
	ask_for_factors(f, 2);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writes down what the shims of cuBLAS, cuBLASLt, cuFFT and cuRAND send: they are linked here to
 * the packing of the library, but what is packed is not sent. The addresses of device memory are
 * numbers that stand for the session's allocations (choose.h).
 *
 *   record         prints C: the messages, for choose.c
 *   record FOLDER  writes seeds for fuzz_mirror, a few messages in each
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cufft.h>
#include <cufftXt.h>
#include <curand.h>

#include "qcu-library/libs/impl.h"
#include "qcu-library/link/fork.h"
#include "tests/fuzz/choose.h"
#include "tests/fuzz/items.h"
#include "tests/fuzz/recorded.h"

#define MESSAGES 128u
#define AT(n)	 ((void *)((uint64_t)CHOOSE_POINTER << 32 | (n)*4096u))

static struct recorded messages[MESSAGES];
static uint64_t words[MESSAGES][RECORDED_MAX / 8];
static unsigned int count;

/* ---- what the shims and the packing call ---- */

__thread struct qcul_thread qcul_self;

unsigned int qcul_epoch(void)
{
	return 1;
}

void qcul_at_fork(struct qcul_fork_entry *handlers)
{
	(void)handlers;
}

int qcul_lib_open(const struct qcul_lib *lib)
{
	(void)lib;
	return 0;
}

int qcul_lib_unserved(const struct qcul_lib *lib, const char *name, atomic_flag *said)
{
	(void)said;
	fprintf(stderr, "%s: %s\n", lib->soname, name);
	exit(1);
}

int qcul_lib_drop(struct qcul_pack *p, int status)
{
	if (p->base != p->small)
		free(p->base);
	p->base = p->small;
	return status;
}

/* The library would have written zeros. */
static void record(struct qcul_pack *p)
{
	uint64_t *args = words[count];
	struct recorded *r = &messages[count++];

	r->bytes = (uint32_t)(p->used - sizeof(struct qcu_lib_head));
	if (p->failed || count == MESSAGES || r->bytes > RECORDED_MAX) {
		fprintf(stderr, "message %u, function %u: %u bytes, status %d\n", count,
			p->function, r->bytes, p->status);
		exit(1);
	}
	memcpy(args, p->base + sizeof(struct qcu_lib_head), r->bytes);
	*r = (struct recorded){args, r->bytes, p->outs, p->lib->number, p->function};
	while (p->out_count--)
		memset(p->out[p->out_count].to, 0, p->out[p->out_count].len);
}

int qcul_lib_call(struct qcul_pack *p)
{
	record(p);
	return qcul_lib_drop(p, 0);
}

int qcul_lib_set(struct qcul_pack *p)
{
	record(p);
	return qcul_lib_drop(p, qcul_lib_keep(p));
}

/* ---- a program ---- */

static void vectors(cublasHandle_t h)
{
	const cuDoubleComplex z = {1, 2};
	const float two = 2;
	double result;
	float small;
	int index;

	cublasSdot(h, 100, AT(0), 1, AT(1), 2, &small);
	cublasDnrm2(h, 50, AT(0), 1, &result);
	cublasIsamax(h, 100, AT(0), 1, &index);
	cublasSasum(h, 100, AT(0), 1, &small);
	cublasSscal(h, 100, &two, AT(0), 1);
	cublasZscal(h, 10, &z, AT(0), 1);
	cublasSaxpy(h, 100, &two, AT(0), 1, AT(1), 1);
	cublasDcopy(h, 100, AT(0), 1, AT(2), 1);
	cublasSswap(h, 100, AT(0), 1, AT(1), 1);
	cublasSrot(h, 100, AT(0), 1, AT(1), 1, &two, &two);
	cublasSetPointerMode(h, CUBLAS_POINTER_MODE_DEVICE);
	cublasSdot(h, 100, AT(0), 1, AT(1), 2, AT(5));
	cublasSscal(h, 100, AT(5), AT(0), 1);
	cublasSetPointerMode(h, CUBLAS_POINTER_MODE_HOST);
}

static void matrices(cublasHandle_t h)
{
	const cublasOperation_t ops[] = {CUBLAS_OP_N, CUBLAS_OP_T};
	const int sizes[] = {4, 5}, two[] = {1, 1};
	const float one = 1, zero = 0, ones[] = {1, 1};
	const cuComplex c = {1, 0};
	const double d = 1;

	cublasSgemv(h, CUBLAS_OP_T, 8, 8, &one, AT(0), 8, AT(1), 1, &zero, AT(2), 1);
	cublasDger(h, 8, 8, &d, AT(0), 1, AT(1), 1, AT(2), 8);
	cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_T, 8, 9, 10, &one, AT(0), 8, AT(1), 9, &zero, AT(2),
		    8);
	cublasDgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &d, AT(0), 8, AT(1), 8, &d, AT(2), 8);
	cublasCgemm(h, CUBLAS_OP_C, CUBLAS_OP_N, 8, 8, 8, &c, AT(0), 8, AT(1), 8, &c, AT(2), 8);
	cublasStrsm(h, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, 8,
		    8, &one, AT(0), 8, AT(1), 8);
	cublasDsyrk(h, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, 8, 8, &d, AT(0), 8, &d, AT(1), 8);
	cublasSgemmStridedBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, AT(0), 4, 16, AT(1),
				  4, 16, &zero, AT(2), 4, 16, 3);
	cublasSgemmBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, AT(6), 4, AT(7), 4, &zero,
			   AT(8), 4, 2);
	cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &one, AT(0), CUDA_R_32F, 8, AT(1),
		     CUDA_R_32F, 8, &zero, AT(2), CUDA_R_32F, 8, CUBLAS_COMPUTE_32F,
		     CUBLAS_GEMM_DEFAULT);
	cublasSgemmGroupedBatched(h, ops, ops, sizes, sizes, sizes, ones, AT(6), sizes, AT(7),
				  sizes, ones, AT(8), sizes, 2, two);
}

static void described(cublasLtHandle_t h)
{
	const cublasOperation_t transposed = CUBLAS_OP_T;
	const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
	const float one = 1, zero = 0;
	const uint64_t room = 4096;
	const void *bias = AT(4);
	cublasLtMatmulHeuristicResult_t result;
	cublasLtMatrixTransformDesc_t transform;
	cublasLtMatmulPreference_t preference;
	cublasLtMatrixLayout_t layout;
	cublasLtMatmulAlgo_t algo = {{0}};
	cublasLtMatmulDesc_t desc;
	int found;

	cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
	cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
				       sizeof(transposed));
	cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
				       sizeof(epilogue));
	cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
				       sizeof(bias));
	cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 8, 8, 8);
	cublasLtMatmulPreferenceCreate(&preference);
	cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
					     &room, sizeof(room));
	cublasLtMatmulAlgoGetHeuristic(h, desc, layout, layout, layout, layout, preference, 1,
				       &result, &found);
	cublasLtMatmul(h, desc, &one, AT(0), layout, AT(1), layout, &zero, AT(2), layout, AT(2),
		       layout, NULL, AT(5), room, NULL);
	cublasLtMatmul(h, desc, &one, AT(0), layout, AT(1), layout, &zero, AT(2), layout, AT(2),
		       layout, &algo, NULL, 0, NULL);
	cublasLtMatmulAlgoCheck(h, desc, layout, layout, layout, layout, &algo, &result);
	cublasLtMatrixTransformDescCreate(&transform, CUDA_R_32F);
	cublasLtMatrixTransform(h, transform, &one, AT(0), layout, &zero, AT(1), layout, AT(2),
				layout, NULL);
	cublasLtMatrixTransformDescDestroy(transform);
	cublasLtMatmulPreferenceDestroy(preference);
	cublasLtMatrixLayoutDestroy(layout);
	cublasLtMatmulDescDestroy(desc);
}

static void transforms(cufftHandle plan, cufftHandle real)
{
	long long n[] = {4, 6}, room[] = {4, 8};
	size_t size;
	int version;

	cufftGetVersion(&version);
	cufftMakePlan1d(plan, 16, CUFFT_C2C, 3, &size);
	cufftExecC2C(plan, AT(0), AT(0), CUFFT_FORWARD);
	cufftExecC2C(plan, AT(0), AT(2), CUFFT_INVERSE);
	cufftXtMakePlanMany(real, 2, n, room, 1, 32, CUDA_R_64F, room, 1, 32, CUDA_C_64F, 2, &size,
			    CUDA_C_64F);
	cufftSetWorkArea(real, AT(5));
	cufftExecD2Z(real, AT(0), AT(3));
	cufftXtExec(real, AT(0), AT(3), CUFFT_FORWARD);
}

static void numbers(curandGenerator_t g)
{
	curandSetPseudoRandomGeneratorSeed(g, 5);
	curandSetGeneratorOffset(g, 9);
	curandGenerate(g, AT(0), 100);
	curandGenerateUniform(g, AT(0), 100);
	curandGenerateUniformDouble(g, AT(0), 100);
	curandGenerateNormal(g, AT(0), 100, 0, 1);
	curandGenerateLogNormalDouble(g, AT(0), 100, 0, 1);
}

static void program(void)
{
	cufftHandle plan, real;
	curandGenerator_t g;
	cublasLtHandle_t lt;
	cublasHandle_t h, set;
	int version;

	cublasCreate(&h);
	cublasCreate(&set);
	cublasLtCreate(&lt);
	cufftCreate(&plan);
	cufftCreate(&real);
	curandCreateGenerator(&g, CURAND_RNG_PSEUDO_DEFAULT);
	cublasGetVersion(h, &version);
	vectors(h);
	matrices(h);
	/* With something set. */
	cublasSetMathMode(set, CUBLAS_TF32_TENSOR_OP_MATH);
	cublasSetAtomicsMode(set, CUBLAS_ATOMICS_ALLOWED);
	cublasSetWorkspace(set, AT(9), 4096);
	vectors(set);
	matrices(set);
	described(lt);
	described((cublasLtHandle_t)h);
	transforms(plan, real);
	numbers(g);
	cufftDestroy(real);
	cublasDestroy(set);
	cublasLtDestroy(lt);
}

/* ---- what comes out ---- */

static void print(void)
{
	unsigned int i, w;

	printf("/* SPDX-License-Identifier: GPL-2.0-or-later */\n/* Made by tests/fuzz/record.c. "
	       "*/\n"
	       "#include \"tests/fuzz/recorded.h\"\n\n");
	for (i = 0; i < count; i++) {
		printf("static const uint64_t m%u[] = {", i);
		for (w = 0; w < messages[i].bytes / 8; w++)
			printf("%#llxull, ", (unsigned long long)messages[i].args[w]);
		printf("0};\n");
	}
	printf("const struct recorded recorded[] = {\n");
	for (i = 0; i < count; i++)
		printf("\t{m%u, %u, %u, %u, %u},\n", i, messages[i].bytes, messages[i].outs,
		       messages[i].library, messages[i].function);
	printf("};\nconst unsigned int recorded_count = %u;\n", count);
}

static void put_message(FILE *f, const struct recorded *r)
{
	const struct qcu_lib_head head = {r->bytes, r->outs};
	const struct qcu_seg seg = {ITEM_GPA, sizeof(head) + r->bytes +
						      sizeof(struct qcu_lib_answer) + r->outs};
	struct item memory = {ITEM_WRITE, 0, (uint16_t)(sizeof(head) + r->bytes), ITEM_GPA};
	struct item item = {ITEM_COMMAND, 1, sizeof(seg), 0};
	struct qCUcmd c = {.op = QCU_OP_LIB_ASK, .tid = 1, .flags = QCU_F_SEGS};

	c.lib_ask.buf.len = seg.len;
	c.lib_ask.library = r->library;
	c.lib_ask.function = r->function;
	fwrite(&memory, sizeof(memory), 1, f);
	fwrite(&head, sizeof(head), 1, f);
	fwrite(r->args, 1, r->bytes, f);
	fwrite(&item, sizeof(item), 1, f);
	fwrite(&c, sizeof(c), 1, f);
	fwrite(&seg, sizeof(seg), 1, f);
	if (r->outs || r->function >= QCU_LIB_DESTROY)
		return;
	/* Once more, posted. */
	item = (struct item){ITEM_COMMAND, 0, memory.tail, 0};
	memset(&c, 0, sizeof(c));
	c.op = QCU_OP_LIB_CALL;
	c.tid = 1;
	c.flags = QCU_F_MSG | QCU_F_POSTED;
	c.lib_call.buf.len = item.tail;
	c.lib_call.library = r->library;
	c.lib_call.function = r->function;
	fwrite(&item, sizeof(item), 1, f);
	fwrite(&c, sizeof(c), 1, f);
	fwrite(&head, sizeof(head), 1, f);
	fwrite(r->args, 1, r->bytes, f);
}

/* An allocation, the objects, and some of the messages. */
static void put_seed(const char *folder, unsigned int from, unsigned int to)
{
	struct item item = {.kind = ITEM_COMMAND, .wait = 1};
	struct qCUcmd c = {.op = QCU_OP_MALLOC, .tid = 1};
	char path[4096];
	unsigned int i;
	FILE *f;

	snprintf(path, sizeof(path), "%s/library-%u", folder, from);
	f = fopen(path, "wb");
	if (!f) {
		perror(path);
		exit(1);
	}
	c.malloc.size = 1 << 20;
	fputc(0, f); /* the byte of settings */
	fwrite(&item, sizeof(item), 1, f);
	fwrite(&c, sizeof(c), 1, f);
	for (i = 0; i < RECORDED_OBJECTS; i++)
		put_message(f, &messages[i]);
	for (i = from; i < to; i++)
		put_message(f, &messages[i]);
	if (ferror(f) | fclose(f)) {
		perror(path);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	const unsigned int each = 6;
	unsigned int i;

	program();
	if (argc < 2)
		print();
	for (i = RECORDED_OBJECTS; argc > 1 && i < count; i += each)
		put_seed(argv[1], i, i + each < count ? i + each : count);
	return ferror(stdout) || fflush(stdout);
}

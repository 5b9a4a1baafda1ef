// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls of libraries, with a cuBLAS that only writes down what it gets. Messages that are cut
 * short, lie about lengths, or name objects that are not there must not reach it; what does reach
 * it must be the mirror's own memory.
 */
#include <stdio.h>

#include <cublasLt.h>
#include <cublas_v2.h>

#include "include/qculib_cublaslt.h"
#include "qcu-device/libs/impl.h"
#include "tests/unit/device/libs/test_device_addresses.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

static struct be_ops ops;
static struct limits limits;

/* ---- a cuBLAS ---- */

static struct {
	int objects, calls, modes, streams, maths;
	cublasPointerMode_t mode;
	cublasMath_t math;
	void *stream;
	float alpha, beta;
	const void *a;
	int status; /* the next function's */
} lib;

static cublasStatus_t create(cublasHandle_t *handle)
{
	*handle = (cublasHandle_t)&lib;
	lib.objects++;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t destroy(cublasHandle_t handle)
{
	(void)handle;
	lib.objects--;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_stream(cublasHandle_t handle, cudaStream_t stream)
{
	assert_ptr_equal(handle, &lib);
	lib.streams++;
	lib.stream = stream;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_mode(cublasHandle_t handle, cublasPointerMode_t mode)
{
	assert_ptr_equal(handle, &lib);
	lib.modes++;
	lib.mode = mode;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_math(cublasHandle_t handle, cublasMath_t math)
{
	assert_ptr_equal(handle, &lib);
	lib.maths++;
	lib.math = math;
	return math == (cublasMath_t)77 ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

/* Libraries read a complex number of two doubles at once, which needs such an address. */
static void aligned(const void *scalar)
{
	assert_int_equal((uintptr_t)scalar % 16, 0);
}

static cublasStatus_t sgemm(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,
			    int m, int n, int k, const float *alpha, const float *a, int lda,
			    const float *b, int ldb, const float *beta, float *c, int ldc)
{
	assert_ptr_equal(handle, &lib);
	assert_int_equal(ta, 0);
	assert_int_equal(tb, 1);
	assert_int_equal(m, 2);
	assert_int_equal(n, 3);
	assert_int_equal(k, -4);
	assert_int_equal(lda + ldb + ldc, 18);
	assert_ptr_equal(b, (void *)0x2000);
	assert_ptr_equal(c, (void *)0x3000);
	lib.calls++;
	lib.a = a;
	if (lib.mode == CUBLAS_POINTER_MODE_HOST) {
		aligned(alpha);
		aligned(beta);
		lib.alpha = *alpha;
		lib.beta = *beta;
	} else {
		assert_ptr_equal(alpha, (void *)0x4000);
		assert_ptr_equal(beta, (void *)0x5000);
	}
	return (cublasStatus_t)lib.status;
}

static cublasStatus_t sdot(cublasHandle_t handle, int n, const float *x, int incx, const float *y,
			   int incy, float *result)
{
	assert_ptr_equal(handle, &lib);
	lib.calls++;
	if (lib.mode == CUBLAS_POINTER_MODE_HOST) {
		aligned(result);
		*result = (float)(n + incx + incy) + (x == y);
	}
	return (cublasStatus_t)lib.status;
}

static cublasStatus_t get_property(libraryPropertyType type, int *value)
{
	lib.calls += type == MAJOR_VERSION && !value;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t grouped(cublasHandle_t handle, const cublasOperation_t ta[],
			      const cublasOperation_t tb[], const int m[], const int n[],
			      const int k[], const float alpha[], const float *const a[],
			      const int lda[], const float *const b[], const int ldb[],
			      const float beta[], float *const c[], const int ldc[], int groups,
			      const int size[])
{
	assert_ptr_equal(handle, &lib);
	assert_int_equal(lib.mode, CUBLAS_POINTER_MODE_HOST);
	assert_int_equal(groups, 2);
	assert_int_equal(m[1] + n[1] + k[1] + lda[1] + ldb[1] + ldc[1] + size[1] + ta[1] + tb[1],
			 0);
	assert_true(alpha[1] == 0 && beta[1] == 0);
	assert_true(!a && !b && !c);
	lib.calls++;
	return CUBLAS_STATUS_SUCCESS;
}

/* ---- a cuBLASLt ---- */

static cublasStatus_t lt_layout(cublasLtMatrixLayout_t desc, size_t size, cudaDataType type,
				uint64_t rows, uint64_t cols, int64_t ld)
{
	assert_int_equal(size, sizeof(*desc));
	assert_int_equal(type, CUDA_R_32F);
	desc->data[0] = rows + cols + (uint64_t)ld;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t lt_layout_set(cublasLtMatrixLayout_t desc,
				    cublasLtMatrixLayoutAttribute_t attr, const void *value,
				    size_t size)
{
	(void)desc;
	assert_int_equal(attr, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
	assert_int_equal(size, 4);
	assert_int_equal(*(const int *)value, 5);
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t lt_matmul(cublasLtMatmulDesc_t desc, size_t size, cublasComputeType_t compute,
				cudaDataType_t scale)
{
	assert_int_equal(size, sizeof(*desc));
	assert_int_equal(compute, CUBLAS_COMPUTE_32F);
	assert_int_equal(scale, CUDA_R_32F);
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t lt_matmul_set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attr,
				    const void *value, size_t size)
{
	(void)desc;
	assert_int_equal(attr, CUBLASLT_MATMUL_DESC_POINTER_MODE);
	assert_int_equal(size, 4);
	lib.mode = (cublasPointerMode_t) * (const int *)value;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t matmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
			     const void *a, cublasLtMatrixLayout_t la, const void *b,
			     cublasLtMatrixLayout_t lb, const void *beta, const void *c,
			     cublasLtMatrixLayout_t lc, void *d, cublasLtMatrixLayout_t ld,
			     const cublasLtMatmulAlgo_t *algo, void *workspace, size_t size,
			     cudaStream_t stream)
{
	assert_ptr_equal(handle, &lib);
	assert_non_null(desc);
	assert_true(a == (void *)0x1000 && b == (void *)0x2000 && c == (void *)0x3000);
	assert_true(d == (void *)0x4000 && workspace == (void *)0x5000 && size == 4096);
	assert_int_equal(la->data[0] + lb->data[0] + lc->data[0], 72);
	assert_true(!ld && !algo && stream);
	if (lib.mode == CUBLAS_POINTER_MODE_HOST) {
		aligned(alpha);
		aligned(beta);
		assert_true(*(const float *)alpha == 2 && *(const float *)beta == 0.5f);
	} else {
		assert_true(alpha == (void *)0x4000 && beta == (void *)0x5000);
	}
	lib.calls++;
	return CUBLAS_STATUS_SUCCESS;
}

static void *open_library(struct be *be, const char *soname, char *why, size_t size)
{
	(void)be;
	if (!strcmp(soname, "libcublas.so.13") || !strcmp(soname, "libcublasLt.so.13"))
		return &lib;
	snprintf(why, size, "no %s", soname);
	return NULL;
}

static void *symbol(struct be *be, void *library, const char *name)
{
	static const struct {
		const char *name;
		void *fn;
	} all[] = {
		{"cublasCreate_v2", (void *)create},
		{"cublasDestroy_v2", (void *)destroy},
		{"cublasSetStream_v2", (void *)set_stream},
		{"cublasSetPointerMode_v2", (void *)set_mode},
		{"cublasSetMathMode", (void *)set_math},
		{"cublasSgemm_v2", (void *)sgemm},
		{"cublasSdot_v2", (void *)sdot},
		{"cublasSgemmGroupedBatched", (void *)grouped},
		{"cublasGetProperty", (void *)get_property},
		{"cublasLtCreate", (void *)create},
		{"cublasLtDestroy", (void *)destroy},
		{"cublasLtMatrixLayoutInit_internal", (void *)lt_layout},
		{"cublasLtMatrixLayoutSetAttribute", (void *)lt_layout_set},
		{"cublasLtMatmulDescInit_internal", (void *)lt_matmul},
		{"cublasLtMatmulDescSetAttribute", (void *)lt_matmul_set},
		{"cublasLtMatmul", (void *)matmul},
	};
	size_t i;

	(void)be;
	assert_ptr_equal(library, &lib);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i].name, name))
			return all[i].fn;
	return NULL;
}

static int native(struct be *be, struct be_stream *s, void **stream)
{
	(void)be;
	*stream = s;
	return 0;
}

static int start(void **state)
{
	struct mir_config cfg = {.session = 1};

	(void)state;
	fake_reset();
	memset(&lib, 0, sizeof(lib));
	ops = fake_ops;
	ops.lib_open = open_library;
	ops.lib_symbol = symbol;
	ops.native = native;
	ops.mem_valid = low_address_valid;
	cfg.ops = &ops;
	limits_default(&limits);
	cfg.limits = &limits;
	return mir_create(&mirror, &cfg);
}

static int stop(void **state)
{
	return mirror_stop(state) || lib.objects;
}

/* ---- messages ---- */

#define ROOM 512u
static uint64_t words[ROOM];
static unsigned int count;

static uint16_t number(const char *name)
{
	uint16_t i = 0;

	while (strcmp(lib_cublas.functions[i].name, name) != 0)
		assert_true(++i < lib_cublas.count);
	return i;
}

static void begin(void)
{
	count = 1; /* the head */
}

static void word(uint64_t w)
{
	words[count++] = w;
}

static void object(uint64_t id, uint64_t version)
{
	word(id);
	word(version);
	word(0);
}

static void host_scalar(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	word(QCU_LIB_HOST);
	word(16);
	word(bits);
	word(0);
}

static void device_scalar(uint64_t at)
{
	word(QCU_LIB_DEVICE);
	word(at);
}

static int post_as(uint16_t library, uint16_t function, uint32_t stream, uint64_t len,
		   uint32_t args)
{
	struct qcu_lib_head head = {.args = args};
	struct qCUcmd c = CMD(LIB_CALL, lib_call, .buf = {1, len}, .stream = stream,
			      .library = library, .function = function);

	memcpy(words, &head, sizeof(head));
	c.flags = QCU_F_MSG | QCU_F_POSTED;
	return ask_with(&c, words, NULL, 0);
}

static int post(uint16_t function)
{
	return post_as(QCU_LIB_CUBLAS, function, QCU_STREAM_LEGACY, 8 * count, 8 * (count - 1));
}

/* Returns the mirror's status. *status: the library's. */
static int ask_library(uint16_t function, uint32_t outs, int *status)
{
	struct qcu_lib_head head = {.args = 8 * (count - 1), .outs = outs};
	struct qcu_lib_answer answer;
	const struct qcu_seg seg = {(uintptr_t)words, 8 * count + sizeof(answer) + outs};
	struct qCUcmd c = CMD(LIB_ASK, lib_ask, .buf = {1, seg.len}, .library = QCU_LIB_CUBLAS,
			      .function = function);
	int rc;

	assert_true(seg.len <= sizeof(words));
	memcpy(words, &head, sizeof(head));
	memset(words + count, 0xee, sizeof(answer) + outs);
	c.flags = QCU_F_SEGS;
	rc = ask_with(&c, NULL, &seg, 1);
	memcpy(&answer, words + count, sizeof(answer));
	*status = rc ? -1 : answer.status;
	return rc;
}

static void make(uint64_t id)
{
	int status;

	begin();
	word(id);
	word(QCU_LIB_CUBLAS_HANDLE);
	word(0);
	assert_int_equal(ask_library(QCU_LIB_CREATE, 0, &status), 0);
	assert_int_equal(status, 0);
}

static void product(uint64_t id, uint64_t version, void (*scalars)(int which))
{
	begin();
	object(id, version);
	word(0);
	word(1);
	word(2);
	word(3);
	word((uint64_t)-4);
	scalars(0);
	word(0x1000);
	word(5);
	word(0x2000);
	word(6);
	scalars(1);
	word(0x3000);
	word(7);
}

static void in_host(int which)
{
	host_scalar(which ? 0.5f : 2.0f);
}

static void in_device(int which)
{
	device_scalar(which ? 0x5000 : 0x4000);
}

static void mixed(int which)
{
	which ? in_device(1) : in_host(0);
}

static void too_short(int which)
{
	in_host(which);
	words[count - 3] = 8;
}

static void no_form(int which)
{
	in_host(which);
	words[count - 4] = 9;
}

static void written(int which)
{
	(void)which;
	word(QCU_LIB_ROOM);
	word(16);
}

/* ---- bad input ---- */

static void records(void **state)
{
	const uint16_t gemm = number("cublasSgemm_v2");

	(void)state;
	make(2);
	product(2, 1, in_host);
	assert_int_equal(post_as(0, gemm, 0, 8 * count, 8 * count - 8), QCU_ERR_InvalidValue);
	assert_int_equal(post_as(QCU_LIBS, gemm, 0, 8 * count, 8 * count - 8),
			 QCU_ERR_InvalidValue);
	assert_int_equal(post_as(999, gemm, 0, 8 * count, 8 * count - 8), QCU_ERR_InvalidValue);
	assert_int_equal(post_as(1, gemm, 77, 8 * count, 8 * count - 8),
			 QCU_ERR_InvalidResourceHandle);
	assert_int_equal(post(lib_cublas.count), QCU_ERR_InvalidValue);
	assert_int_equal(post(0xfff0), QCU_ERR_InvalidValue);
	/* Lengths that are not those of the message. */
	assert_int_equal(post_as(1, gemm, 0, 4, 0), QCU_ERR_InvalidValue);
	assert_int_equal(post_as(1, gemm, 0, 8 * count, 8 * count), QCU_ERR_InvalidValue);
	assert_int_equal(post_as(1, gemm, 0, 8 * count, 0xfffffff8), QCU_ERR_InvalidValue);
	assert_int_equal(post_as(1, gemm, 0, 8 * count - 4, 8 * count - 12), QCU_ERR_InvalidValue);
	assert_int_equal(lib.calls, 0);
}

static void every_cut(void **state)
{
	unsigned int whole, n;

	(void)state;
	make(2);
	product(2, 1, in_host);
	whole = count;
	for (n = 1; n < whole; n++) {
		count = n;
		assert_int_equal(post(number("cublasSgemm_v2")), QCU_ERR_InvalidValue);
	}
	count = whole + 1;
	assert_int_equal(post(number("cublasSgemm_v2")), QCU_ERR_InvalidValue);
	assert_int_equal(lib.calls, 0);
	count = whole;
	assert_int_equal(post(number("cublasSgemm_v2")), 0);
	assert_int_equal(lib.calls, 1);
}

static void objects(void **state)
{
	static const uint64_t none[] = {0, 1, 3, 0x10002, 0x100000002ull, UINT64_MAX};
	int status;
	size_t i;

	(void)state;
	make(2);
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		product(none[i], 1, in_host);
		assert_int_equal(post(number("cublasSgemm_v2")), QCU_ERR_InvalidResourceHandle);
	}
	/* A number that is taken, numbers that cannot be, kinds that do not exist. */
	begin();
	word(2);
	word(QCU_LIB_CUBLAS_HANDLE);
	word(0);
	assert_int_equal(ask_library(QCU_LIB_CREATE, 0, &status), QCU_ERR_InvalidResourceHandle);
	words[1] = 0;
	assert_int_equal(ask_library(QCU_LIB_CREATE, 0, &status), QCU_ERR_InvalidValue);
	words[1] = 0x10003;
	assert_int_equal(ask_library(QCU_LIB_CREATE, 0, &status), QCU_ERR_InvalidValue);
	words[1] = 3;
	words[2] = 0;
	assert_int_equal(ask_library(QCU_LIB_CREATE, 0, &status), QCU_ERR_InvalidValue);
	words[2] = QCU_LIB_KINDS;
	assert_int_equal(ask_library(QCU_LIB_CREATE, 0, &status), QCU_ERR_InvalidValue);
	/* One that the guest makes in another way. */
	words[2] = QCU_LIB_CUDNN_TENSOR;
	assert_int_equal(ask_library(QCU_LIB_CREATE, 0, &status), QCU_ERR_InvalidValue);
	begin();
	word(2);
	assert_int_equal(ask_library(QCU_LIB_DESTROY, 0, &status), 0);
	assert_int_equal(ask_library(QCU_LIB_DESTROY, 0, &status), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(lib.objects, 0);
	product(2, 1, in_host);
	assert_int_equal(post(number("cublasSgemm_v2")), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(lib.calls, 0);
}

static void scalars(void **state)
{
	void (*const bad[])(int which) = {mixed, too_short, no_form, written};
	size_t i;

	(void)state;
	make(2);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		product(2, 1, bad[i]);
		assert_int_equal(post(number("cublasSgemm_v2")), QCU_ERR_InvalidValue);
	}
	assert_int_equal(lib.calls, 0);
}

static void settings(void **state)
{
	const uint16_t gemm = number("cublasSgemm_v2"), math = number("cublasSetMathMode");
	const struct {
		uint16_t function, rsvd;
		uint32_t args;
		uint64_t bytes;
	} bad[] = {
		{gemm, 0, 8, 16},	      /* it does not set anything */
		{lib_cublas.count, 0, 8, 16}, /* there is no such function */
		{math, 1, 8, 16},
		{math, 0, 16, 16}, /* longer than what is there */
		{math, 0, 0, 8},   /* no argument */
		{math, 0, 0xfffffff8, 16},
		{math, 0, 8, 12}, /* cut within */
		{math, 0, 8, 0xfffffffffffffff8ull},
	};
	unsigned int args;
	size_t i;

	(void)state;
	make(2);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct qcu_lib_setting s = {bad[i].function, bad[i].rsvd, bad[i].args};

		product(2, 1, in_host);
		args = count - 4;
		memmove(words + 6, words + 4, 8 * args);
		words[3] = bad[i].bytes;
		memcpy(words + 4, &s, sizeof(s));
		words[5] = 3;
		count += 2;
		assert_int_equal(post(gemm), QCU_ERR_InvalidValue);
	}
	assert_int_equal(lib.calls, 0);
}

static void group(uint64_t groups, uint64_t bytes)
{
	int i;

	begin();
	object(2, 1);
	for (i = 0; i < 14; i++) {
		/* a, b and c are addresses; the number of groups is before the last array */
		if (i == 6 || i == 8 || i == 11) {
			word(0);
			continue;
		}
		if (i == 13)
			word(groups);
		word(QCU_LIB_HOST);
		word(bytes);
		word(0);
	}
}

static void arrays(void **state)
{
	const uint16_t fn = number("cublasSgemmGroupedBatched");

	(void)state;
	make(2);
	group(2, 4);
	assert_int_equal(post(fn), QCU_ERR_InvalidValue);
	group(3, 8);
	assert_int_equal(post(fn), QCU_ERR_InvalidValue);
	group(0x80000002, 8); /* a negative number */
	assert_int_equal(post(fn), QCU_ERR_InvalidValue);
	group(2, 1ull << 40);
	assert_int_equal(post(fn), QCU_ERR_InvalidValue);
	group(2, UINT64_MAX);
	assert_int_equal(post(fn), QCU_ERR_InvalidValue);
	assert_int_equal(lib.calls, 0);
	group(2, 8);
	assert_int_equal(post(fn), 0);
	assert_int_equal(lib.calls, 1);
}

static void dot(uint64_t room)
{
	begin();
	object(2, 1);
	word(10);
	word(0x1000);
	word(1);
	word(0x1000);
	word(2);
	word(QCU_LIB_ROOM);
	word(room);
}

static void results(void **state)
{
	const uint16_t fn = number("cublasSdot_v2");
	float result;
	int status;

	(void)state;
	make(2);
	dot(16);
	assert_int_equal(ask_library(fn, 0, &status), QCU_ERR_InvalidValue);
	assert_int_equal(ask_library(fn, 8, &status), QCU_ERR_InvalidValue);
	assert_int_equal(ask_library(fn, 12, &status), QCU_ERR_InvalidValue);
	/* A posted call has no room for a result. */
	assert_int_equal(post(fn), QCU_ERR_InvalidValue);
	dot(8);
	assert_int_equal(ask_library(fn, 16, &status), QCU_ERR_InvalidValue);
	dot(1ull << 33);
	assert_int_equal(ask_library(fn, 16, &status), QCU_ERR_InvalidValue);
	assert_int_equal(lib.calls, 0);
	begin();
	word(MAJOR_VERSION);
	word(QCU_LIB_ROOM);
	word(0);
	assert_int_equal(post(number("cublasGetProperty")), 0);
	assert_int_equal(lib.calls, 1);
	dot(16);
	assert_int_equal(ask_library(fn, 16, &status), 0);
	assert_int_equal(status, 0);
	memcpy(&result, words + count + 1, sizeof(result));
	assert_true(result == 14);
	/* What the library did not write is zero, not what was there. */
	assert_int_equal(words[count + 2], 0);
	lib.status = CUBLAS_STATUS_INVALID_VALUE;
	assert_int_equal(ask_library(fn, 16, &status), 0);
	assert_int_equal(status, CUBLAS_STATUS_INVALID_VALUE);
}

static void limit(void **state)
{
	int status;

	(void)state;
	mir_destroy(mirror);
	assert_int_equal(start(NULL), 0);
	mir_destroy(mirror);
	limits.session[LIMIT_LIBRARY_OBJECTS] = 2;
	assert_int_equal(
		mir_create(&mirror,
			   &(struct mir_config){.ops = &ops, .session = 1, .limits = &limits}),
		0);
	make(2);
	make(3);
	begin();
	word(4);
	word(QCU_LIB_CUBLAS_HANDLE);
	word(0);
	assert_int_equal(ask_library(QCU_LIB_CREATE, 0, &status), QCU_ERR_MemoryAllocation);
	assert_int_equal(lib.objects, 2);
}

static void other_headers(void **state)
{
	int status;

	(void)state;
	begin();
	word(lib_cublas.table ^ 1);
	word(QCU_LIB_ROOM);
	word(QCU_LIB_REASON);
	assert_int_equal(ask_library(QCU_LIB_OPEN, QCU_LIB_REASON, &status), 0);
	assert_int_equal(status, QCU_LIB_MISSING);
	assert_non_null(strstr((char *)(words + count + 1), "other headers"));
	words[1] = lib_cublas.table;
	assert_int_equal(ask_library(QCU_LIB_OPEN, QCU_LIB_REASON, &status), 0);
	assert_int_equal(status, 0);
	words[3] = 8;
	assert_int_equal(ask_library(QCU_LIB_OPEN, QCU_LIB_REASON, &status), QCU_ERR_InvalidValue);
}

/* ---- the good path ---- */

static void state_of_a_handle(void **state)
{
	const uint16_t gemm = number("cublasSgemm_v2"), math = number("cublasSetMathMode");
	const struct qcu_lib_setting s = {.function = math, .args = 8};
	unsigned int args;
	uint64_t version;

	(void)state;
	make(2);
	product(2, 1, in_host);
	assert_int_equal(post(gemm), 0);
	assert_true(lib.alpha == 2.0f && lib.beta == 0.5f);
	assert_int_equal(lib.streams, 1);
	product(2, 1, in_device);
	assert_int_equal(post(gemm), 0);
	assert_int_equal(post(gemm), 0);
	assert_int_equal(lib.mode, CUBLAS_POINTER_MODE_DEVICE);
	assert_int_equal(lib.modes, 1);
	for (version = 2; version < 4; version++) {
		product(2, version, in_host);
		args = count - 4;
		memmove(words + 6, words + 4, 8 * args);
		words[3] = 16;
		memcpy(words + 4, &s, sizeof(s));
		words[5] = version + 1;
		count += 2;
		assert_int_equal(post(gemm), 0);
		assert_int_equal(post(gemm), 0);
		assert_int_equal(lib.math, version + 1);
		assert_int_equal(lib.maths, version - 1);
	}
	/* What the library refuses is its status, and is tried again with the next call. */
	words[2] = 9;
	words[5] = 77;
	assert_int_equal(post(gemm), QCU_ERR_Unknown);
	assert_int_equal(post(gemm), QCU_ERR_Unknown);
	assert_int_equal(lib.calls, 7);
	assert_int_equal(lib.streams, 1);
	/* A failure of a posted call. */
	words[5] = 1;
	lib.status = CUBLAS_STATUS_EXECUTION_FAILED;
	assert_int_equal(post(gemm), QCU_ERR_Unknown);
	/* A function that the library does not have. */
	begin();
	object(2, 1);
	assert_int_equal(post(number("cublasDgemm_v2")), QCU_ERR_Unknown);
}

/* ---- descriptions ---- */

static void block(const void *bytes, uint64_t len, uint64_t said)
{
	word(QCU_LIB_HOST);
	word(said);
	memcpy(words + count, bytes, len);
	count += (unsigned int)((len + 7) / 8);
}

static struct qcu_lt_matmul description(int mode, bool set)
{
	return (struct qcu_lt_matmul){
		.is = QCU_LT_IS_MATMUL,
		.set = set ? 4 : 0,
		.compute = CUBLAS_COMPUTE_32F,
		.pointers = mode,
	};
}

static const struct qcu_lt_layout square = {
	.is = QCU_LT_IS_LAYOUT,
	.set = 1u << 5,
	.rows = 8,
	.cols = 8,
	.ld = 8,
	.batch = 5,
};

static void lt_product(const struct qcu_lt_matmul *m, const struct qcu_lt_layout *l,
		       void (*scalars)(int which))
{
	begin();
	object(2, 1);
	block(m, sizeof(*m), sizeof(*m));
	scalars(0);
	word(0x1000);
	block(l, sizeof(*l), sizeof(*l));
	word(0x2000);
	block(l, sizeof(*l), sizeof(*l));
	scalars(1);
	word(0x3000);
	block(l, sizeof(*l), sizeof(*l));
	word(0x4000);
	word(QCU_LIB_NULL);
	word(QCU_LIB_NULL);
	word(0x5000);
	word(4096);
}

static uint16_t lt_number(const char *name)
{
	uint16_t i = 0;

	while (strcmp(lib_cublaslt.functions[i].name, name) != 0)
		assert_true(++i < lib_cublaslt.count);
	return i;
}

static int lt_post(void)
{
	return post_as(QCU_LIB_CUBLASLT, lt_number("cublasLtMatmul"), 0, 8 * count,
		       8 * (count - 1));
}

/* A handle of cuBLAS serves, too: its stream and mode are not touched. */
static void descriptions(void **state)
{
	const struct qcu_lt_matmul host = description(0, false), device = description(1, true);
	const struct qcu_lt_matmul unset = description(1, false);
	struct qcu_lt_matmul wrong = host;
	struct qcu_lt_layout other = square;
	unsigned int n, whole;

	(void)state;
	make(2);
	/* Scalars where the description does not say. The library would read them all the same. */
	lt_product(&host, &square, in_device);
	assert_int_equal(lt_post(), QCU_ERR_InvalidValue);
	lt_product(&device, &square, in_host);
	assert_int_equal(lt_post(), QCU_ERR_InvalidValue);
	lt_product(&unset, &square, in_device);
	assert_int_equal(lt_post(), QCU_ERR_InvalidValue);
	lt_product(&host, &square, mixed);
	assert_int_equal(lt_post(), QCU_ERR_InvalidValue);
	lt_product(&host, &square, too_short);
	assert_int_equal(lt_post(), QCU_ERR_InvalidValue);
	/* Something else, and other sizes. */
	wrong.is = QCU_LT_IS_LAYOUT;
	lt_product(&wrong, &square, in_host);
	assert_int_equal(lt_post(), QCU_ERR_InvalidValue);
	other.is = QCU_LT_IS_MATMUL;
	lt_product(&host, &other, in_host);
	assert_int_equal(lt_post(), QCU_ERR_InvalidValue);
	lt_product(&host, &square, in_host);
	words[5] = sizeof(host) - 8;
	assert_int_equal(lt_post(), QCU_ERR_InvalidValue);
	words[5] = UINT64_MAX - 3;
	assert_int_equal(lt_post(), QCU_ERR_InvalidValue);
	words[4] = QCU_LIB_NULL;
	assert_int_equal(lt_post(), QCU_ERR_InvalidValue);
	lt_product(&host, &square, in_host);
	whole = count;
	for (n = 1; n < whole; n++) {
		count = n;
		assert_int_equal(lt_post(), QCU_ERR_InvalidValue);
	}
	assert_int_equal(lib.calls, 0);
	count = whole;
	assert_int_equal(lt_post(), 0);
	lt_product(&device, &square, in_device);
	assert_int_equal(lt_post(), 0);
	assert_int_equal(lib.calls, 2);
	assert_int_equal(lib.streams + lib.modes, 0);
}

/* Host memory that a library works in counts, and is given back. */
static void scratch(void **state)
{
	struct call call = {0};
	struct lib_object o = {0};
	struct lib_call c = {.c = &call, .object = &o};
	unsigned int i;

	(void)state;
	mir_destroy(mirror);
	limits.session[LIMIT_QUEUED] = 16 << 20;
	assert_int_equal(
		mir_create(&mirror,
			   &(struct mir_config){.ops = &ops, .session = 1, .limits = &limits}),
		0);
	call.m = mirror;
	for (i = 0; i < 3; i++) {
		c.bad = false;
		assert_non_null(lib_scratch(&c, 10 << 20));
		assert_non_null(lib_scratch(&c, 10 << 20));
		assert_null(lib_scratch(&c, 11 << 20));
		assert_true(c.bad && c.rc == QCU_ERR_MemoryAllocation);
		lib_scratch_free(mirror, &o);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(records),	     TEST(every_cut),	 TEST(objects),		  TEST(scalars),
		TEST(settings),	     TEST(arrays),	 TEST(results),		  TEST(limit),
		TEST(other_headers), TEST(descriptions), TEST(state_of_a_handle), TEST(scratch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Numbers of a call that make a library allocate, or that decide how much memory it reads: those
 * out of bounds do not reach it. And calls without an object, where the library answers those.
 */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <curand.h>
#include <cusolverDn.h>

#include "include/qculib_curand.h"
#include "tests/unit/device/libs/test_device_stand_in.h"

#define HANDLE 2

/* What cuSOLVER says that it needs, and what it has got. */
static uint64_t wanted, got;
static void *work;

static cusolverStatus_t getrf_size(cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m,
				   int64_t n, cudaDataType type, const void *a, int64_t lda,
				   cudaDataType compute, size_t *on_device, size_t *on_host)
{
	assert_non_null(handle);
	assert_true(params && m == 3 && n == 4 && !type && !a && lda == 3 && !compute);
	*on_device = 1;
	*on_host = wanted;
	return wanted == 1 ? CUSOLVER_STATUS_INVALID_VALUE : CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t getrf(cusolverDnHandle_t handle, cusolverDnParams_t params, int64_t m,
			      int64_t n, cudaDataType type, void *a, int64_t lda, int64_t *ipiv,
			      cudaDataType compute, void *on_device, size_t device_bytes,
			      void *on_host, size_t host_bytes, int *info)
{
	assert_non_null(handle);
	assert_true(params && m == 3 && n == 4 && !type && !a && lda == 3 && !ipiv && !compute);
	assert_true(!on_device && device_bytes == 5 && !info);
	got = host_bytes;
	work = on_host;
	if (on_host)
		memset(on_host, 1, host_bytes);
	calls++;
	return CUSOLVER_STATUS_SUCCESS;
}

/* What cuBLAS has got as addresses. */
static const void *x_got, *y_got, *alpha_got, *workspace_got;

static cublasStatus_t axpy(cublasHandle_t handle, int n, const float *alpha, const float *x,
			   int incx, float *y, int incy)
{
	assert_true(handle && n == 1 && incx == 1 && incy == 1);
	alpha_got = alpha;
	x_got = x;
	y_got = y;
	calls++;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_workspace(cublasHandle_t handle, void *workspace, size_t size)
{
	assert_true(handle && size == 64);
	workspace_got = workspace;
	return CUBLAS_STATUS_SUCCESS;
}

/* It writes whether it has got a handle. */
static int get_version(void *handle, int *version)
{
	calls++;
	*version = handle ? 17 : 16;
	return 0;
}

/* Where cuRAND is told to write, and how much. */
static unsigned int *numbers_to;
static size_t numbers_got;

static curandStatus_t poisson(curandGenerator_t generator, unsigned int *to, size_t n,
			      double lambda)
{
	assert_true(generator && lambda > 0);
	numbers_to = to;
	numbers_got = n;
	calls++;
	return CURAND_STATUS_SUCCESS;
}

static curandStatus_t constants(unsigned int **to)
{
	static unsigned int table[QCU_CURAND_CONSTANTS_32 / 4] = {[QCU_CURAND_DIMENSIONS - 1] = 7};

	*to = table;
	calls++;
	return CURAND_STATUS_SUCCESS;
}

static void *own_function(const char *name)
{
	if (!strcmp(name, "curandGeneratePoisson"))
		return (void *)poisson;
	if (!strcmp(name, "curandGetScrambleConstants32"))
		return (void *)constants;
	if (!strcmp(name, "cublasGetVersion_v2"))
		return (void *)get_version;
	if (!strcmp(name, "cublasSaxpy_v2"))
		return (void *)axpy;
	if (!strcmp(name, "cublasSetWorkspace_v2"))
		return (void *)set_workspace;
	if (!strcmp(name, "cusolverDnXgetrf_bufferSize"))
		return (void *)getrf_size;
	return strcmp(name, "cusolverDnXgetrf") ? NULL : (void *)getrf;
}

/* The heuristics cache grows to its capacity at once. */
static void cache(void **state)
{
	static const uint64_t bad[] = {65537, 1ull << 32, 1ull << 40, 1ull << 63, UINT64_MAX};
	const uint16_t fn = number(&lib_cublaslt, "cublasLtHeuristicsCacheSetCapacity");
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		begin();
		word(bad[i]);
		assert_int_equal(send_to(QCU_LIB_CUBLASLT, fn), QCU_ERR_InvalidValue);
	}
	assert_int_equal(calls, 0);
	begin();
	word(65536);
	assert_int_equal(send_to(QCU_LIB_CUBLASLT, fn), 0);
	assert_int_equal(calls, 1);
}

/* cublasSgemmGroupedBatched_64, whose arrays have `groups` elements modulo 2^62. */
static int grouped(uint64_t groups)
{
	/* in the order of the parameters: the size of an array's element, or 0 for an address */
	static const unsigned int element[] = {4, 4, 8, 8, 8, 4, 0, 8, 0, 8, 4, 0, 8};
	size_t i;

	begin();
	object(HANDLE);
	for (i = 0; i < sizeof(element) / sizeof(element[0]); i++)
		if (element[i])
			array_of(element[i] * groups);
		else
			word(0);
	word(groups);
	array_of(8 * groups);
	return send_to(QCU_LIB_CUBLAS, number(&lib_cublas, "cublasSgemmGroupedBatched_64"));
}

static void groups(void **state)
{
	(void)state;
	make_object(QCU_LIB_CUBLAS, HANDLE, QCU_LIB_CUBLAS_HANDLE);
	/* In 64 bits, 4 times the first and 8 times both are as for one group. */
	assert_int_equal(grouped((1ull << 62) + 1), QCU_ERR_InvalidValue);
	assert_int_equal(grouped((1ull << 61) * 6 + 1), QCU_ERR_InvalidValue);
	assert_int_equal(calls, 0);
	assert_int_equal(grouped(1), 0);
	assert_int_equal(grouped(0), 0);
	assert_int_equal(grouped(100), 0);
	assert_int_equal(calls, 3);
}

/* Scalars whose type is a number of the message. */
static int scaled(uint64_t type)
{
	begin();
	object(HANDLE);
	word(1);
	array_of(16);
	word(type);
	word(0);
	word(CUDA_R_32F);
	word(1);
	word(CUDA_R_32F);
	return send_to(QCU_LIB_CUBLAS, number(&lib_cublas, "cublasScalEx"));
}

static int rotated(uint64_t type)
{
	begin();
	object(HANDLE);
	word(1);
	word(0);
	word(CUDA_R_32F);
	word(1);
	word(0);
	word(CUDA_R_32F);
	word(1);
	array_of(40);
	word(type);
	word(CUDA_R_32F);
	return send_to(QCU_LIB_CUBLAS, number(&lib_cublas, "cublasRotmEx"));
}

static void types(void **state)
{
	(void)state;
	make_object(QCU_LIB_CUBLAS, HANDLE, QCU_LIB_CUBLAS_HANDLE);
	assert_int_equal(scaled(77), QCU_ERR_InvalidValue);
	assert_int_equal(rotated(77), QCU_ERR_InvalidValue);
	/* Five of these take 80 bytes. */
	assert_int_equal(rotated(CUDA_C_64F), QCU_ERR_InvalidValue);
	assert_int_equal(calls, 0);
	assert_int_equal(scaled(CUDA_C_64F), 0);
	assert_int_equal(rotated(CUDA_R_64F), 0);
	assert_int_equal(calls, 2);
}

/* A guest says that the library has this much host memory to work in. */
static int factors(uint64_t said)
{
	begin();
	object(HANDLE);
	word(1);
	word(3);
	word(4);
	word(0);
	word(0);
	word(3);
	word(0);
	word(0);
	word(0);
	word(5);
	word(said);
	word(0);
	return send_to(QCU_LIB_CUSOLVER, number(&lib_cusolver, "cusolverDnXgetrf"));
}

/* It has what the library needs, whatever the guest says. */
static void host_memory(void **state)
{
	(void)state;
	make_object(QCU_LIB_CUSOLVER, HANDLE, QCU_LIB_CUSOLVER_DN);
	wanted = 1 << 20;
	assert_int_equal(factors(8), 0);
	assert_int_equal(got, 1 << 20);
	assert_int_equal(factors(0), 0);
	assert_int_equal(got, 1 << 20);
	assert_int_equal(factors(UINT64_MAX), 0);
	assert_int_equal(got, 1 << 20);
	assert_int_equal(calls, 3);
	wanted = 0;
	assert_int_equal(factors(8), 0);
	assert_int_equal(got, 0);
	assert_null(work);
	assert_int_equal(calls, 4);
	/* More than a mirror gives, and a library that refuses the question. */
	wanted = 1ull << 40;
	assert_int_equal(factors(8), QCU_ERR_MemoryAllocation);
	wanted = 1;
	assert_int_equal(factors(8), -1);
	assert_int_equal(calls, 4);
}

/* A product that names the same address wherever it can. */
static int at(uint64_t address)
{
	static uint64_t version;
	struct qcu_lib_setting s = {
		.function = number(&lib_cublas, "cublasSetWorkspace_v2"),
		.args = 16,
	};

	begin();
	word(HANDLE);
	word(++version);
	word(24);
	word(0);
	memcpy(&words[count - 1], &s, sizeof(s));
	word(address);
	word(64);
	word(1);
	word(QCU_LIB_DEVICE);
	word(address);
	word(address);
	word(1);
	word(address);
	word(1);
	return send_to(QCU_LIB_CUBLAS, number(&lib_cublas, "cublasSaxpy_v2"));
}

static void all_are(uint64_t address)
{
	assert_int_equal((uintptr_t)x_got, address);
	assert_int_equal((uintptr_t)y_got, address);
	assert_int_equal((uintptr_t)alpha_got, address);
	assert_int_equal((uintptr_t)workspace_got, address);
}

/* No address of the mirror's own memory reaches a library, and none of nothing. */
static void addresses(void **state)
{
	uint64_t on_stack = 0;
	void *on_heap = malloc(64);
	const uint64_t bad[] = {(uintptr_t)&on_stack,
				(uintptr_t)on_heap,
				(uintptr_t)&ops,
				(uintptr_t)&strcmp,
				0x10000,
				UINT64_MAX};
	size_t i;

	(void)state;
	make_object(QCU_LIB_CUBLAS, HANDLE, QCU_LIB_CUBLAS_HANDLE);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(at(bad[i]), 0);
		all_are(LIB_NOWHERE | (bad[i] & 255));
	}
	free(on_heap);
	/* None at all, and one of device memory. */
	assert_int_equal(at(0), 0);
	all_are(0);
	assert_int_equal(at(0xffff), 0);
	all_are(0xffff);
}

static _Atomic uint64_t gone;
static bool ended;

static bool valid_until_ended(struct be *be, uint64_t addr, uint64_t len)
{
	return !ended && low_address_valid(be, addr, len);
}

/* An address that was right before is looked up again when memory has gone. */
static void freed(void **state)
{
	(void)state;
	ops.mem_valid = valid_until_ended;
	ops.mem_gone = &gone;
	ended = false;
	make_object(QCU_LIB_CUBLAS, HANDLE, QCU_LIB_CUBLAS_HANDLE);
	assert_int_equal(at(0x1000), 0);
	all_are(0x1000);
	assert_int_equal(at(0x1000), 0);
	all_are(0x1000);
	ended = true;
	gone++;
	assert_int_equal(at(0x1000), 0);
	all_are(LIB_NOWHERE);
	ended = false;
	assert_int_equal(at(0x1000), 0);
	all_are(0x1000);
}

/* Asks for the version with this object, or with none. */
static int ask_version(uint64_t id)
{
	begin();
	if (id)
		object(id);
	else
		word(0);
	room_of(sizeof(int));
	return send_to(QCU_LIB_CUBLAS, number(&lib_cublas, "cublasGetVersion_v2"));
}

/* A function that answers without an object gets none, or its own. All others need one. */
static void bare(void **state)
{
	static const uint64_t none[] = {1, 3, 0x10002, 0x100000002ull, UINT64_MAX};
	size_t i;

	(void)state;
	make_object(QCU_LIB_CUBLAS, HANDLE, QCU_LIB_CUBLAS_HANDLE);
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_int_equal(ask_version(none[i]), QCU_ERR_InvalidResourceHandle);
	begin();
	word(0);
	room_of(sizeof(int));
	assert_int_equal(send_to(QCU_LIB_CUBLAS, number(&lib_cublas, "cublasGetMathMode")),
			 QCU_ERR_InvalidResourceHandle);
	assert_int_equal(calls, 0);
	assert_int_equal(ask_version(0), 0);
	assert_int_equal((int)words[count + 1], 16);
	assert_int_equal(ask_version(HANDLE), 0);
	assert_int_equal((int)words[count + 1], 17);
	assert_int_equal(calls, 2);
}

/* `to`: room of so many bytes if `host`, or an address. */
static int ask_numbers(uint64_t id, bool host, uint64_t to, uint64_t n, double lambda)
{
	uint64_t bits;

	memcpy(&bits, &lambda, sizeof(bits));
	begin();
	object(id);
	if (host)
		room_of(to);
	else
		word(to);
	word(n);
	word(bits);
	return send_to(QCU_LIB_CURAND, number(&lib_curand, "curandGeneratePoisson"));
}

/* A generator of the host writes only into the mirror's own memory, and one of the GPU never. */
static void on_host(void **state)
{
	const double nan = strtod("nan", NULL), inf = strtod("inf", NULL);
	const double wrong[] = {nan, -nan, inf, -inf, 400001, -1e-300};
	size_t i;

	(void)state;
	make_object(QCU_LIB_CURAND, HANDLE, QCU_LIB_CURAND_GENERATOR);
	make_object(QCU_LIB_CURAND, HANDLE + 1, QCU_LIB_CURAND_HOST);
	assert_int_equal(ask_numbers(HANDLE + 1, false, 0x1000, 4, 2), QCU_ERR_InvalidValue);
	assert_int_equal(ask_numbers(HANDLE + 1, false, 0, 4, 2), QCU_ERR_InvalidValue);
	assert_int_equal(ask_numbers(HANDLE, true, 16, 4, 2), QCU_ERR_InvalidValue);
	assert_int_equal(ask_numbers(HANDLE + 1, true, 16, 5, 2), QCU_ERR_InvalidValue);
	assert_int_equal(ask_numbers(HANDLE + 1, true, 16, 3, 2), QCU_ERR_InvalidValue);
	assert_int_equal(ask_numbers(HANDLE + 1, true, 16, (1ull << 62) + 4, 2),
			 QCU_ERR_InvalidValue);
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(ask_numbers(HANDLE + 1, true, 16, 4, wrong[i]),
				 QCU_ERR_InvalidValue);
	assert_int_equal(calls, 0);
	assert_int_equal(ask_numbers(HANDLE + 1, true, 16, 4, 2), 0);
	assert_true(numbers_got == 4 && numbers_to);
	assert_int_equal(ask_numbers(HANDLE + 1, false, 0, 0, 2), 0);
	assert_int_equal(ask_numbers(HANDLE, false, 0x1000, 1u << 30, 2), 0);
	assert_true(numbers_got == 1u << 30);
	assert_int_equal(calls, 3);
}

static int ask_constants(uint64_t set, uint64_t bytes)
{
	begin();
	word(set);
	if (bytes)
		room_of(bytes);
	else
		word(0);
	return send_to(QCU_LIB_CURAND, number(&lib_curand, "curandGetScrambleConstants32"));
}

/* A table comes whole, or not at all. */
static void table(void **state)
{
	(void)state;
	assert_int_equal(ask_constants(0, 0), QCU_ERR_InvalidValue);
	assert_int_equal(ask_constants(0, QCU_CURAND_CONSTANTS_32 - 8), QCU_ERR_InvalidValue);
	assert_int_equal(ask_constants(0, QCU_CURAND_CONSTANTS_32 + 8), QCU_ERR_InvalidValue);
	assert_int_equal(calls, 0);
	assert_int_equal(ask_constants(0, QCU_CURAND_CONSTANTS_32), 0);
	assert_int_equal(calls, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(cache),	      TEST(groups),    TEST(types),
					   TEST(host_memory), TEST(addresses), TEST(freed),
					   TEST(bare),	      TEST(on_host),   TEST(table)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

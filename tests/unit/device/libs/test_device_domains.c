// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Numbers of a call that make a library allocate, or that decide how much memory it reads: those
 * out of bounds do not reach it.
 */
#include <cublasLt.h>
#include <cublas_v2.h>

#include "tests/unit/device/libs/test_device_stand_in.h"

#define HANDLE 2

static void *own_function(const char *name)
{
	(void)name;
	return NULL;
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

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(cache), TEST(groups), TEST(types)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

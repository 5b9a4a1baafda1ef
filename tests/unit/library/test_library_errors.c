// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Names and texts of all error codes are the same as NVIDIA's, if NVIDIA's library is there for
 * comparison.
 */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "include/qcuerror.h"
#include "qcu-library/link/link.h"

__thread struct qcul_thread qcul_self;

static int flushed;

static void print(void)
{
	flushed++;
}

typedef const char *text_fn(cudaError_t err);

static void compare(text_fn *ours, text_fn *theirs)
{
	int code;

	for (code = -2; code <= 1100; code++)
		assert_string_equal(ours((cudaError_t)code), theirs((cudaError_t)code));
}

static void texts_are_nvidias(void **state)
{
	void *lib = dlopen(CUDART_NVIDIA, RTLD_NOW | RTLD_LOCAL);
	text_fn *name, *text;

	(void)state;
	if (!lib) {
		printf("skipped: %s\n", dlerror());
		skip();
	}
	name = (text_fn *)(uintptr_t)dlsym(lib, "cudaGetErrorName");
	text = (text_fn *)(uintptr_t)dlsym(lib, "cudaGetErrorString");
	assert_non_null(name);
	assert_non_null(text);
	assert_ptr_not_equal(name, cudaGetErrorName);
	compare(cudaGetErrorName, name);
	compare(cudaGetErrorString, text);
}

static void values_are_those_of_the_header(void **state)
{
	(void)state;
	assert_int_equal(QCU_ERR_InvalidValue, cudaErrorInvalidValue);
	assert_int_equal(QCU_ERR_NoDevice, cudaErrorNoDevice);
	assert_int_equal(QCU_ERR_IllegalAddress, cudaErrorIllegalAddress);
	assert_int_equal(QCU_ERR_ExternalDevice, cudaErrorExternalDevice);
	assert_int_equal(QCU_ERR_Unknown, cudaErrorUnknown);
}

static void last_error_is_kept_once(void **state)
{
	(void)state;
	assert_int_equal(cudaGetLastError(), cudaSuccess);
	assert_int_equal(qcul_done(cudaErrorInvalidValue), cudaErrorInvalidValue);
	assert_int_equal(qcul_done(cudaSuccess), cudaSuccess);
	/* NVIDIA's runtime 13 does not record this error. */
	assert_int_equal(qcul_done(cudaErrorNotReady), cudaErrorNotReady);
	assert_int_equal(cudaPeekAtLastError(), cudaErrorInvalidValue);
	assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
	assert_int_equal(cudaGetLastError(), cudaSuccess);
}

static void errno_reads_in_cudas_terms(void **state)
{
	(void)state;
	assert_int_equal(qcul_from_errno(-EFAULT), cudaErrorInvalidValue);
	assert_int_equal(qcul_from_errno(-ENOMEM), cudaErrorMemoryAllocation);
	assert_int_equal(qcul_from_errno(-ESHUTDOWN), cudaErrorDevicesUnavailable);
	assert_int_equal(qcul_from_errno(-ENODEV), cudaErrorDevicesUnavailable);
	assert_int_equal(qcul_from_errno(-EIO), cudaErrorDevicesUnavailable);
	assert_int_equal(qcul_from_errno(-EXDEV), cudaErrorUnknown);
	assert_true(qcul_sticky(cudaErrorDevicesUnavailable));
	assert_true(qcul_sticky(cudaErrorIllegalAddress));
	assert_true(qcul_sticky(cudaErrorLaunchFailure));
	assert_false(qcul_sticky(cudaErrorInvalidValue));
	assert_false(qcul_sticky(cudaErrorCooperativeLaunchTooLarge));
	assert_false(qcul_sticky(cudaErrorNotReady));
}

static void what_ends_all_work_is_told(void **state)
{
	(void)state;
	flushed = 0;
	assert_int_equal(qcul_done(cudaSuccess), cudaSuccess);
	assert_int_equal(qcul_done(cudaErrorInvalidValue), cudaErrorInvalidValue);
	assert_int_equal(flushed, 0);
	assert_int_equal(qcul_done(cudaErrorIllegalAddress), cudaErrorIllegalAddress);
	assert_int_equal(flushed, 1);
	assert_int_equal(qcul_done(cudaErrorAssert), cudaErrorAssert);
	assert_int_equal(flushed, 2);
	assert_int_equal(cudaGetLastError(), cudaErrorAssert);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_ends_all_work_is_told),
		cmocka_unit_test(texts_are_nvidias),
		cmocka_unit_test(values_are_those_of_the_header),
		cmocka_unit_test(last_error_is_kept_once),
		cmocka_unit_test(errno_reads_in_cudas_terms),
	};

	qcul_errors_explained_by(print);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Without /dev/qcuda the library prints once what to do about it, and returns cudaErrorNoDevice.
 * Calls that need no device work and print nothing.
 */
#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

static int saved = -1, ends[2];

static void catch_stderr(void)
{
	fflush(stderr);
	assert_int_equal(pipe(ends), 0);
	saved = dup(2);
	dup2(ends[1], 2);
	close(ends[1]);
}

static void release_stderr(char *text, size_t room)
{
	ssize_t n;

	fflush(stderr);
	dup2(saved, 2);
	close(saved);
	n = read(ends[0], text, room - 1);
	text[n > 0 ? n : 0] = 0;
	close(ends[0]);
}

static bool have_device(void)
{
	if (access("/dev/qcuda", F_OK) != 0)
		return false;
	printf("skipped: there is a /dev/qcuda here\n");
	return true;
}

static void silent_without_a_device_call(void **state)
{
	char text[1000];
	int version = 0;

	(void)state;
	catch_stderr();
	assert_int_equal(cudaRuntimeGetVersion(&version), cudaSuccess);
	assert_int_equal(version, CUDART_VERSION);
	assert_int_equal(cudaGetLastError(), cudaSuccess);
	assert_string_equal(cudaGetErrorName(cudaErrorNoDevice), "cudaErrorNoDevice");
	release_stderr(text, sizeof(text));
	assert_string_equal(text, "");
}

static void says_once_which_module_to_load(void **state)
{
	char text[1000];
	void *p = NULL;
	int count = 5, i;

	(void)state;
	if (have_device())
		skip();
	catch_stderr();
	for (i = 0; i < 3; i++) {
		assert_int_equal(cudaMalloc(&p, 16), cudaErrorNoDevice);
		assert_int_equal(cudaGetLastError(), cudaErrorNoDevice);
		assert_int_equal(cudaGetDeviceCount(&count), cudaErrorNoDevice);
		assert_int_equal(count, 0);
	}
	release_stderr(text, sizeof(text));
	assert_non_null(strstr(text, "modprobe qcuda"));
	assert_non_null(strstr(text, "/dev/qcuda"));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void no_driver_is_version_0(void **state)
{
	int version = 5;

	(void)state;
	if (have_device())
		skip();
	assert_int_equal(cudaDriverGetVersion(&version), cudaSuccess);
	assert_int_equal(version, 0);
}

/* A program links with all functions. A function that is not implemented reports its name, once. */
static void unsupported_says_its_name(void **state)
{
	char text[1000];

	(void)state;
	(void)cudaGetLastError();
	catch_stderr();
	assert_int_equal(cudaGraphicsUnregisterResource(NULL), cudaErrorNotSupported);
	assert_int_equal(cudaGraphicsUnregisterResource(NULL), cudaErrorNotSupported);
	release_stderr(text, sizeof(text));
	assert_string_equal(text, "qcuda: cudaGraphicsUnregisterResource is not supported\n");
	assert_int_equal(cudaGetLastError(), cudaErrorNotSupported);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silent_without_a_device_call),
		cmocka_unit_test(says_once_which_module_to_load),
		cmocka_unit_test(no_driver_is_version_0),
		cmocka_unit_test(unsupported_says_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

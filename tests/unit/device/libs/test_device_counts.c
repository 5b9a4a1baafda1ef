// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How many dimensions, results or elements a guest names to cuDNN, and where it says that scalars
 * are. The library trusts many of these numbers, and reads scalars in host memory. So what is out
 * of bounds must not reach it, whatever else the message says.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qcu-device/libs/cudnn.h"
#include "tests/unit/device/libs/test_device_stand_in.h"

static void *real; /* NVIDIA's own, or NULL */

static void *own_function(const char *name)
{
	return real ? dlsym(real, name) : NULL;
}

/*
 * A function that takes a count. form: d a descriptor, h the handle, v the number 1, N the count, a
 * an array of as many ints for the library to read, b of two less, A an array that the library
 * writes, r room for as many results, n a null pointer, x a null pointer of the GPU's, s a scalar,
 * S a scalar in the GPU's memory, as the message says.
 */
struct counting {
	const char *name, *form;
	int least, greatest;
};

static const struct counting all[] = {
	{"cudnnSetTensorNdDescriptor", "dvNaa", 2, 8},
	{"cudnnSetTensorNdDescriptorEx", "dvvNa", 2, 8},
	{"cudnnSetFilterNdDescriptor", "dvvNa", 3, 8},
	{"cudnnSetPoolingNdDescriptor", "dvvNaaa", 1, 8},
	{"cudnnSetConvolutionNdDescriptor", "dNaaavv", 0, 8},
	{"cudnnSetTensorTransformDescriptor", "dNvaabv", 2, 8},
	{"cudnnSetSpatialTransformerNdDescriptor", "dvvNa", 1, 4},
	{"cudnnSetRNNDataDescriptor", "dvvvNvas", 1, 256},
	{"cudnnGetTensorNdDescriptor", "dNnnAA", 0, 64},
	{"cudnnGetFilterNdDescriptor", "dNnnnA", 0, 8},
	{"cudnnGetPoolingNdDescriptor", "dNnnnAAA", 0, 8},
	{"cudnnGetConvolutionNdDescriptor", "dNnAAAnn", 0, 8},
	{"cudnnGetConvolutionNdForwardOutputDim", "dddNA", 2, 8},
	{"cudnnGetPoolingNdForwardOutputDim", "ddNA", 1, 8},
	{"cudnnGetConvolutionForwardAlgorithm_v7", "hddddNnr", 1, 256},
	{"cudnnFindConvolutionForwardAlgorithm", "hddddNnr", 1, 256},
	{"cudnnFindConvolutionBackwardDataAlgorithmEx", "hdxdxddxNnrxv", 1, 256},
};

#define HANDLE	2
#define ADDRESS 0x414141410000 /* of nothing */

/* The arrays are as long as the lower half of the count says. */
static void pack(const char *form, uint64_t n)
{
	const uint64_t ints = (uint32_t)n < 4096 ? (uint32_t)n : 0;

	for (; *form; form++) {
		switch (*form) {
		case 'd':
			word(1);
			break;
		case 'h':
			object(HANDLE);
			break;
		case 'v':
			word(1);
			break;
		case 'x':
			word(0);
			break;
		case 'n':
			word(QCU_LIB_NULL);
			break;
		case 'N':
			word(n);
			break;
		case 'a':
			array_of(4 * ints);
			break;
		case 'b':
			array_of(ints < 2 ? 0 : 4 * (ints - 2));
			break;
		case 'A':
			room_of(4 * ints);
			break;
		case 'r':
			room_of(sizeof(cudnnConvolutionFwdAlgoPerf_t) * ints);
			break;
		case 's':
			array_of(16);
			break;
		case 'S':
			word(QCU_LIB_DEVICE);
			word(ADDRESS);
			break;
		default:
			fail_msg("%c", *form);
		}
	}
}

static int call_with(const struct counting *f, uint64_t n)
{
	begin();
	pack(f->form, n);
	return send_to(QCU_LIB_CUDNN, number(&lib_cudnn, f->name));
}

static void refused(const struct counting *f, uint64_t n)
{
	int rc = call_with(f, n);

	if (rc != QCU_ERR_InvalidValue || calls)
		fail_msg("%s with %lld: %d, and the library was called %u times", f->name,
			 (long long)n, rc, calls);
}

static void out_of_bounds(void **state)
{
	size_t i;

	(void)state;
	make_object(QCU_LIB_CUDNN, HANDLE, QCU_LIB_CUDNN_HANDLE);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const struct counting *f = &all[i];

		refused(f, (uint64_t)(f->least - 1));
		refused(f, (uint64_t)(f->greatest + 1));
		refused(f, 1000);
		refused(f, UINT64_MAX);
		refused(f, UINT32_MAX);
		/* Nothing of the word is left out. */
		refused(f, (1ull << 32) + (uint64_t)f->greatest);
		refused(f, (1ull << 62) + (uint64_t)f->greatest);
		refused(f, (1ull << 63) + (uint64_t)f->greatest);
	}
}

static void within_bounds(void **state)
{
	unsigned int n = 0;
	size_t i;

	(void)state;
	make_object(QCU_LIB_CUDNN, HANDLE, QCU_LIB_CUDNN_HANDLE);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_int_equal(call_with(&all[i], (uint64_t)all[i].least), 0);
		assert_int_equal(call_with(&all[i], (uint64_t)all[i].greatest), 0);
		n += 2;
		assert_int_equal(calls, n);
	}
}

/* Scalars of cuDNN are always in host memory: it has no pointer mode. */
static const struct counting scalars[] = {
	{"cudnnSetRNNDataDescriptor", "dvvvNvaS", 0, 0},
	{"cudnnSetTensor", "hdxS", 0, 0},
	{"cudnnScaleTensor", "hdxS", 0, 0},
	{"cudnnAddTensor", "hSdxSdx", 0, 0},
	{"cudnnConvolutionForward", "hSdxdxdvxvSdx", 0, 0},
};

/* A function that takes a descriptor which the guest has set so. */
static int setting_with(char scalar)
{
	const uint16_t set = number(&lib_cudnn, "cudnnSetRNNDataDescriptor");
	struct qcu_lib_setting s = {.function = set};
	unsigned int at;

	begin();
	pack("hdv", 0);
	at = count;
	word(0);
	word(0);
	pack("vvvNva", 1);
	pack(scalar == 's' ? "s" : "S", 0);
	s.args = 8 * (count - at - 2);
	words[at] = 1 + 8 * (count - at - 1);
	memcpy(words + at + 1, &s, sizeof(s));
	pack("nn", 0);
	return send_to(QCU_LIB_CUDNN, number(&lib_cudnn, "cudnnGetRNNTempSpaceSizes"));
}

static void scalars_on_the_gpu(void **state)
{
	size_t i;

	(void)state;
	make_object(QCU_LIB_CUDNN, HANDLE, QCU_LIB_CUDNN_HANDLE);
	for (i = 0; i < sizeof(scalars) / sizeof(scalars[0]); i++)
		refused(&scalars[i], 1);
	assert_int_equal(setting_with('S'), QCU_ERR_InvalidValue);
	assert_int_equal(calls, 0);
	assert_int_equal(setting_with('s'), 0);
	assert_int_equal(calls, 2);
}

/*
 * With NVIDIA's own library, in a process that may fall: each count that it has trusted, from a
 * program that owns nothing but a session. What it does with 100 dimensions is its own affair.
 */
static int survives(const struct counting *f, uint64_t n)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		/* cmocka's handlers would hide the fall. */
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		if (start(NULL))
			_exit(2);
		_exit(call_with(f, n) == QCU_ERR_InvalidValue ? 0 : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		print_message("%s with %lld ends the mirror with signal %d\n", f->name,
			      (long long)n, WTERMSIG(status));
	else if (WEXITSTATUS(status))
		print_message("%s with %lld reaches the library\n", f->name, (long long)n);
	return status;
}

static void real_library(void **state)
{
	static const uint64_t counts[] = {0, 1, 9, 17, 28, 64, 1000, UINT64_MAX};
	int fallen = 0;
	char path[256];
	size_t i, n;

	(void)state;
	snprintf(path, sizeof(path), "%s/lib64/libcudnn.so.9",
		 getenv("CUDA_HOME") ? getenv("CUDA_HOME") : "/usr/local/cuda");
	real = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!real) {
		print_message("skipped: %s\n", dlerror());
		skip();
	}
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (n = 0; n < sizeof(counts) / sizeof(counts[0]) && all[i].form[0] == 'd'; n++)
			if ((int64_t)counts[n] < all[i].least ||
			    (int64_t)counts[n] > all[i].greatest)
				fallen += survives(&all[i], counts[n]) != 0;
	fallen += survives(&scalars[0], 1) != 0;
	assert_int_equal(fallen, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(out_of_bounds), TEST(within_bounds),
					   TEST(scalars_on_the_gpu),
					   cmocka_unit_test(real_library)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

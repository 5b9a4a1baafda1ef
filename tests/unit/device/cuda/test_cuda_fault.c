// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where a kernel has failed on a real GPU: the reader of the dump that CUDA writes, with dumps by
 * the structures of its public header, and what the cuda backend asks the driver for, with a
 * stand-in for the driver.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "qcu-device/backend/cuda/be_cuda.h"
#include "qcu-device/backend/fault_dump.h"
#include "tests/unit/device/cuda/cuda_dump.h"

int cu_fault_read(struct be *be, void *buf, size_t max, size_t *got);

/* ---- the driver's stand-in ---- */

static struct {
	CUcoredumpSettings refused;
	unsigned int calls;
	bool flags_first, on;
	char file[1024];
	char said[256];
} driver;

static CUresult CUDAAPI set_dump(CUcoredumpSettings what, void *value, size_t *size)
{
	driver.calls++;
	if (what == driver.refused)
		return CUDA_ERROR_NOT_PERMITTED;
	switch (what) {
	case CU_COREDUMP_GENERATION_FLAGS:
		assert_int_equal(*size, sizeof(int));
		/* Else CUDA ends the process, and writes all memory of the GPU. */
		assert_true(*(int *)value & CU_COREDUMP_SKIP_ABORT);
		assert_true(*(int *)value & CU_COREDUMP_SKIP_GLOBAL_MEMORY);
		driver.flags_first = !driver.on;
		break;
	case CU_COREDUMP_FILE:
		assert_in_range(*size, 2, sizeof(driver.file));
		memcpy(driver.file, value, *size);
		break;
	case CU_COREDUMP_ENABLE_ON_EXCEPTION:
		assert_int_equal(*size, sizeof(bool));
		driver.on = *(bool *)value;
		break;
	default:
		fail();
	}
	return CUDA_SUCCESS;
}

/* ---- CUDA's: a kernel that begins after a fault waits until the dump is written ---- */

static struct {
	bool no_compiler, failed, prepared;
	unsigned int loads, launches;
	unsigned int works; /* so many looks find that the kernel has not ended */
	unsigned int late;  /* so many looks say success after the dump */
} gpu;

cudaError_t cudaGetLastError(void)
{
	return cudaSuccess;
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t *lib, const void *code, enum cudaJitOption *jit,
				void **values, unsigned int count, enum cudaLibraryOption *options,
				void **option_values, unsigned int options_count)
{
	(void)jit;
	(void)values;
	(void)options;
	(void)option_values;
	assert_int_equal(count | options_count, 0);
	assert_non_null(strstr(code, ".entry qcu_nothing()"));
	gpu.loads++;
	*lib = (cudaLibrary_t)&gpu;
	return gpu.no_compiler ? cudaErrorJitCompilerNotFound : cudaSuccess;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *k, cudaLibrary_t lib, const char *name)
{
	assert_ptr_equal(lib, &gpu);
	assert_string_equal(name, "qcu_nothing");
	*k = (cudaKernel_t)&gpu;
	return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned int flags, int priority)
{
	assert_false(gpu.prepared);
	assert_int_equal(flags, cudaStreamNonBlocking);
	assert_int_equal(priority, 0);
	*s = (cudaStream_t)&gpu;
	return cudaSuccess;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *k, void **args)
{
	assert_ptr_equal(config->stream, &gpu);
	assert_ptr_equal(k, &gpu);
	assert_null(args);
	gpu.launches++;
	return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t s)
{
	FILE *dump;

	assert_ptr_equal(s, &gpu);
	if (gpu.works) {
		gpu.works--;
		return cudaErrorNotReady;
	}
	dump = gpu.failed ? fopen(driver.file, "w") : NULL;
	if (dump) {
		fputs("a dump", dump);
		fclose(dump);
	}
	return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
	assert_true(gpu.failed);
	return gpu.late && gpu.late-- ? cudaSuccess : cudaErrorIllegalAddress;
}

static void keep_words(const char *who, const char *text, size_t len)
{
	assert_string_equal(who, "cuda");
	snprintf(driver.said, sizeof(driver.said), "%.*s", (int)len, text);
}

/* ---- the reader ---- */

static const struct dump_parts usual = {.exception = 14, .warp_has_pc = 1, .pc = 0x1b0};

static void expect_unchanged(const struct qcu_fault *f)
{
	static const struct qcu_fault none;

	assert_memory_equal(f, &none, sizeof(none));
}

static void cut_short(void **state)
{
	struct qcu_fault f = {.error = 0};
	static struct cuda_dump d;
	uint8_t *copy;
	size_t len;

	(void)state;
	dump_make(&d, &usual);
	/* In memory of exactly this size, so that the sanitizer sees what lies behind it. */
	for (len = 0; len < d.len; len++) {
		copy = malloc(len + 1);
		assert_non_null(copy);
		memcpy(copy, d.p, len);
		assert_string_equal(fault_dump_read(copy, len, &f), "the GPU's dump is damaged");
		free(copy);
	}
	expect_unchanged(&f);
}

/* Each number of the dump becomes others. What the reader says must end, whatever it is. */
static void damaged(void **state)
{
	static const uint32_t numbers[] = {0, 1, 8, 0xffff, 0x7fffffff, 0x80000000, UINT32_MAX};
	static struct cuda_dump d, bad;
	struct qcu_fault f;
	uint8_t *copy;
	size_t at, i;

	(void)state;
	dump_make(&d, &usual);
	copy = malloc(d.len);
	assert_non_null(copy);
	for (at = 0; at + 4 <= d.len; at += 4)
		for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
			bad = d;
			put32(bad.p, at, numbers[i]);
			memcpy(copy, bad.p, d.len);
			memset(&f, 0, sizeof(f));
			if (fault_dump_read(copy, d.len, &f)) {
				expect_unchanged(&f);
				continue;
			}
			assert_true(memchr(f.what, 0, sizeof(f.what)) != NULL);
			assert_true(memchr(f.kernel, 0, sizeof(f.kernel)) != NULL);
		}
	free(copy);
}

/* Very many sections that all say to be the whole file cost no more than the limit. */
static void endless(void **state)
{
	const size_t sections = 2500, len = sizeof(Elf64_Ehdr) + sections * sizeof(Elf64_Shdr);
	const size_t room = 2 << 20;
	uint8_t *p = calloc(1, room);
	Elf64_Shdr s = {.sh_type = 0x8000000fu, .sh_size = room, .sh_entsize = 48};
	struct qcu_fault f = {.error = 0};
	struct cuda_dump d;
	size_t i;

	(void)state;
	assert_non_null(p);
	assert_true(len < room);
	dump_begin(&d);
	dump_end(&d, ET_CORE, 0);
	memcpy(p, d.p, sizeof(Elf64_Ehdr));
	((Elf64_Ehdr *)(void *)p)->e_shnum = (uint16_t)sections;
	/* The headers have no exception where a row would have one, but all of them are rows. */
	s.sh_offset = len;
	s.sh_size = room - len;
	for (i = 0; i < sections; i++)
		memcpy(p + sizeof(Elf64_Ehdr) + i * sizeof(s), &s, sizeof(s));
	assert_string_equal(fault_dump_read(p, room, &f), "the GPU's dump is too large");
	expect_unchanged(&f);
	free(p);
}

static void no_fault(void **state)
{
	struct dump_parts with = usual;
	struct qcu_fault f = {.error = 0};
	struct cuda_dump d;

	(void)state;
	with.exception = 0;
	dump_make(&d, &with);
	assert_string_equal(fault_dump_read(d.p, d.len, &f),
			    "the GPU's dump has no thread that failed");
	expect_unchanged(&f);
}

static void expect_thread(const struct qcu_fault *f)
{
	assert_int_equal(f->flags, QCU_FAULT_THREAD);
	assert_int_equal(f->block[0], 4);
	assert_int_equal(f->block[1], 5);
	assert_int_equal(f->block[2], 6);
	assert_int_equal(f->thread[0], 10);
	assert_int_equal(f->thread[1], 11);
	assert_int_equal(f->thread[2], 12);
}

static void place(void **state)
{
	struct qcu_fault f = {.error = QCU_ERR_IllegalAddress};
	struct dump_parts with = usual;
	struct cuda_dump d;

	(void)state;
	dump_make(&d, &with);
	assert_null(fault_dump_read(d.p, d.len, &f));
	expect_thread(&f);
	assert_string_equal(f.kernel, DUMP_KERNEL);
	assert_string_equal(f.what, "an illegal address (exception 14), at +0x1b0");
	assert_int_equal(f.error, QCU_ERR_IllegalAddress);
	assert_int_equal(f.size | f.line | f.more | f.rsvd, 0);

	/* In a function that the kernel calls; the sections' number is in the first one. */
	with.pc = 0x410;
	with.many = 1;
	memset(&f, 0, sizeof(f));
	dump_make(&d, &with);
	assert_null(fault_dump_read(d.p, d.len, &f));
	expect_thread(&f);
	assert_string_equal(f.kernel, DUMP_KERNEL);
	assert_string_equal(f.what, "an illegal address (exception 14), at +0x10 of " DUMP_HELPER);
}

static void less_known(void **state)
{
	struct qcu_fault f = {.error = 0};
	struct dump_parts with = usual;
	struct cuda_dump d;

	(void)state;
	/* The warp does not know the instruction, but the thread does. */
	with.warp_has_pc = 0;
	dump_make(&d, &with);
	assert_null(fault_dump_read(d.p, d.len, &f));
	expect_thread(&f);
	assert_string_equal(f.what, "an illegal address (exception 14), at +0x20");

	/* Without code there are no names; the exception is a new one. */
	with = usual;
	with.no_code = 1;
	with.exception = 99;
	memset(&f, 0, sizeof(f));
	dump_make(&d, &with);
	assert_null(fault_dump_read(d.p, d.len, &f));
	expect_thread(&f);
	assert_string_equal(f.kernel, "");
	assert_string_equal(f.what, "the GPU stopped (exception 99)");

	/* The warps have ended before the dump. */
	with = usual;
	with.no_threads = 1;
	memset(&f, 0, sizeof(f));
	dump_make(&d, &with);
	assert_null(fault_dump_read(d.p, d.len, &f));
	assert_int_equal(f.flags, 0);
	assert_string_equal(f.kernel, DUMP_KERNEL);
	assert_string_equal(f.what, "an illegal address (exception 14), at +0x1b0");
}

/* ---- the backend ---- */

/* The backend remembers one fault in the life of a process, so each case has a process. */
static void in_a_process(void (*run)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		run();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void read_fault(struct qcu_fault *f)
{
	size_t got = 0;

	memset(f, 0xff, sizeof(*f));
	assert_int_equal(cu_fault_read(NULL, f, sizeof(*f), &got), QCU_ERR_Success);
	assert_int_equal(got, sizeof(*f));
}

static void run_without(void)
{
	static const int none[] = {QCU_ERR_Success, QCU_ERR_InvalidValue, QCU_ERR_NotReady,
				   QCU_ERR_Assert,  QCU_ERR_Unknown,	  -QCU_ERR_IllegalAddress};
	struct qcu_fault f;
	size_t got, i;

	for (i = 0; i < sizeof(none) / sizeof(*none); i++) {
		cu_note_fault(none[i]);
		assert_int_equal(cu_fault_read(NULL, &f, sizeof(f), &got), QCU_ERR_Success);
		assert_int_equal(got, 0);
	}
	cu_note_fault(QCU_ERR_IllegalAddress);
	cu_note_fault(QCU_ERR_LaunchFailure);
	assert_int_equal(cu_fault_read(NULL, NULL, 0, &got), QCU_ERR_Success);
	assert_int_equal(got, sizeof(f));
	assert_int_equal(cu_fault_read(NULL, &f, sizeof(f) - 1, &got), QCU_ERR_Success);
	assert_int_equal(got, 0);
	read_fault(&f);
	assert_int_equal(f.error, QCU_ERR_IllegalAddress);
	assert_string_equal(f.what, "the GPU does not say where; on the software GPU, qcu run "
				    "--check does");
	assert_int_equal(f.flags | f.line | f.more | f.rsvd, 0);
	assert_int_equal(f.kernel[0] | f.file[0], 0);
	cu_note_fault(QCU_ERR_LaunchFailure);
	assert_int_equal(cu_fault_read(NULL, &f, sizeof(f), &got), QCU_ERR_Success);
	assert_int_equal(got, 0);
}

static void run_believed(void)
{
	struct be be = {.complain = keep_words};

	/* Without dumps the GPU is asked nothing. */
	cu_fault_prepare(0);
	gpu.failed = true;
	assert_int_equal(cu_believe(0, QCU_ERR_Success), QCU_ERR_Success);
	assert_int_equal(gpu.launches, 0);

	cu_fault_open(&be, set_dump);
	gpu.failed = false;
	/* Before the device is used, and then all is there before a kernel may fail. */
	assert_int_equal(cu_believe(0, QCU_ERR_Success), QCU_ERR_Success);
	assert_int_equal(gpu.launches, 0);
	cu_fault_prepare(0);
	assert_int_equal(gpu.launches, 1);
	gpu.prepared = true;
	assert_int_equal(cu_believe(0, QCU_ERR_NotReady), QCU_ERR_NotReady);
	assert_int_equal(gpu.launches, 1);
	assert_int_equal(cu_believe(0, QCU_ERR_Success), QCU_ERR_Success);
	assert_int_equal(cu_believe(0, QCU_ERR_Success), QCU_ERR_Success);
	assert_int_equal(gpu.launches, 3);
	assert_int_equal(gpu.loads, 1);

	gpu.failed = true;
	gpu.works = 20;
	gpu.late = 5;
	assert_int_equal(cu_believe(0, QCU_ERR_Success), QCU_ERR_IllegalAddress);
	assert_int_equal(gpu.late, 0);
}

static void run_never_said(void)
{
	struct be be = {.complain = keep_words};
	struct qcu_fault f;

	cu_fault_open(&be, set_dump);
	cu_fault_prepare(0);
	gpu.failed = true;
	gpu.late = UINT_MAX;
	assert_int_equal(cu_believe(0, QCU_ERR_Success), QCU_ERR_LaunchFailure);
	read_fault(&f);
	assert_int_equal(f.error, QCU_ERR_LaunchFailure);
}

static void run_no_compiler(void)
{
	struct be be = {.complain = keep_words};

	cu_fault_open(&be, set_dump);
	gpu.no_compiler = true;
	cu_fault_prepare(0);
	assert_int_equal(cu_believe(0, QCU_ERR_Success), QCU_ERR_Success);
	assert_int_equal(gpu.launches, 0);
}

static void run_old_driver(void)
{
	struct be be = {.complain = keep_words};
	struct qcu_fault f;

	cu_fault_open(&be, NULL);
	assert_non_null(strstr(driver.said, "--fault-place"));
	cu_note_fault(QCU_ERR_IllegalAddress);
	read_fault(&f);
	assert_non_null(strstr(f.what, "the GPU does not say where"));
}

static void run_refused(void)
{
	struct be be = {.complain = keep_words};

	driver.refused = CU_COREDUMP_GENERATION_FLAGS;
	cu_fault_open(&be, set_dump);
	assert_non_null(strstr(driver.said, "--fault-place"));
	assert_false(driver.on);
}

static void run_empty(void)
{
	struct be be = {.complain = keep_words};
	struct qcu_fault f;

	cu_fault_open(&be, set_dump);
	assert_string_equal(driver.said, "");
	assert_true(driver.on && driver.flags_first);
	cu_note_fault(QCU_ERR_IllegalAddress);
	read_fault(&f);
	assert_string_equal(f.what, "CUDA has written no dump of the GPU; on the software GPU, qcu "
				    "run --check does");
	assert_int_equal(f.flags, 0);
}

static void run_dump(void)
{
	struct be be = {.complain = keep_words};
	struct cuda_dump d;
	struct qcu_fault f;
	FILE *to;

	cu_fault_open(&be, set_dump);
	assert_int_equal(driver.calls, 3);
	dump_make(&d, &usual);
	to = fopen(driver.file, "wb");
	assert_non_null(to);
	assert_int_equal(fwrite(d.p, 1, d.len, to), d.len);
	assert_int_equal(fclose(to), 0);
	cu_note_fault(QCU_ERR_IllegalAddress);
	read_fault(&f);
	assert_int_equal(f.error, QCU_ERR_IllegalAddress);
	expect_thread(&f);
	assert_string_equal(f.kernel, DUMP_KERNEL);
	/* The dump is gone. */
	assert_int_not_equal(access(driver.file, F_OK), 0);
}

static void backend(void **state)
{
	(void)state;
	in_a_process(run_without);
	in_a_process(run_old_driver);
	in_a_process(run_refused);
	in_a_process(run_empty);
	in_a_process(run_dump);
	in_a_process(run_believed);
	in_a_process(run_never_said);
	in_a_process(run_no_compiler);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_short), cmocka_unit_test(damaged),
		cmocka_unit_test(endless),   cmocka_unit_test(no_fault),
		cmocka_unit_test(place),     cmocka_unit_test(less_known),
		cmocka_unit_test(backend),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A kernel that fails is explained on the program's stderr, once: what it did, the kernel, block
 * and thread, the line of the source, and which memory lies there. Stdout and error codes stay as
 * they are. The test runs itself for each fault, because a fault ends all work of a process.
 */
#include <assert.h>
#include <cuda.h>
#include <sys/wait.h>

#include "tests/loopback/check.h"

#define N 256

/* A name as libraries have them. */
template <typename T, int A, int B, int C> struct a_tile_that_is_as_long_as_those_of_libraries {
	T *to;
};

#define LINE(kernel) static const int kernel##_line = __LINE__

LINE(store) + 3;
template <typename Tile> __global__ void store(Tile t, int first)
{
	t.to[first + threadIdx.x] = 1;
}

LINE(asserts) + 3;
__global__ void asserts(int n)
{
	assert(n + (int)threadIdx.x < 5);
}

__global__ void traps(int n)
{
	if ((int)threadIdx.x == n)
		__trap();
}

using tile = a_tile_that_is_as_long_as_those_of_libraries<float, 128, 256, 64>;

static float *allocate(void)
{
	float *p;

	OK(cudaMalloc((void **)&p, 4 * N));
	/* Nothing that the test does not know about is nearer to the first. */
	return p;
}

static int ends_with(cudaError_t want)
{
	cudaError_t first = cudaDeviceSynchronize(), second = cudaDeviceSynchronize();

	printf("%s %s\n", cudaGetErrorName(first), cudaGetErrorName(second));
	return first == want && second == want ? 0 : 1;
}

static int write_after_the_end(void)
{
	store<<<3, N>>>(tile{allocate()}, 1);
	return ends_with(cudaErrorIllegalAddress);
}

static int write_misaligned(void)
{
	store<<<1, 1>>>(tile{(float *)((char *)allocate() + 2)}, 0);
	return ends_with(cudaErrorMisalignedAddress);
}

static int assertion(void)
{
	asserts<<<1, 8>>>(0);
	return ends_with(cudaErrorAssert);
}

static int trap(void)
{
	traps<<<1, 8>>>(6);
	return ends_with(cudaErrorLaunchFailure);
}

static int null_pointer(void)
{
	store<<<1, 1>>>(tile{NULL}, 3);
	return ends_with(cudaErrorIllegalAddress);
}

static int malloc_memory(void)
{
	float here[2] = {};

	store<<<1, 1>>>(tile{here}, 1);
	return ends_with(cudaErrorIllegalAddress);
}

static int freed_memory(void)
{
	float *p = allocate(), *other = allocate();

	OK(cudaFree(p));
	store<<<1, 1>>>(tile{p}, 2);
	return ends_with(other ? cudaErrorIllegalAddress : cudaSuccess);
}

static int in_a_graph(void)
{
	cudaGraphExec_t exec;
	cudaStream_t stream;
	cudaGraph_t graph;
	float *p = allocate();

	OK(cudaStreamCreate(&stream));
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	store<<<1, N, 0, stream>>>(tile{p}, 0);
	store<<<1, 1, 0, stream>>>(tile{p}, 2 * N);
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphInstantiate(&exec, graph, 0));
	OK(cudaGraphLaunch(exec, stream));
	return ends_with(cudaErrorIllegalAddress);
}

static int two_faults(void)
{
	cudaStream_t one, two;
	float *p = allocate();

	OK(cudaStreamCreate(&one));
	OK(cudaStreamCreate(&two));
	store<<<64, N, 0, one>>>(tile{p}, N);
	store<<<64, N, 0, two>>>(tile{p}, 2 * N);
	store<<<1, 1, 0, two>>>(tile{NULL}, 0);
	return ends_with(cudaErrorIllegalAddress);
}

/* Nothing waits: the program hears of the error by a launch that nobody answers. */
static int heard_by_launches(void)
{
	float *p = allocate();

	store<<<1, 1>>>(tile{NULL}, 0);
	while (!cudaPeekAtLastError())
		store<<<1, 1>>>(tile{p}, 0);
	return ends_with(cudaErrorIllegalAddress);
}

/* The file of a module's source is text of the program, too. */
static int strange_names(void)
{
	static const char ptx[] =
		".version 8.3\n.target sm_75\n.address_size 64\n"
		".file 1 \"a\033[2J\033]0;title\007.cu\"\n"
		".visible .entry fault ()\n{\n.reg .b64 %d<2>;\n.reg .b32 %r<2>;\n"
		"mov.u64 %d1, 64;\n.loc 1 3 1\nld.global.u32 %r1, [%d1];\n"
		"st.global.u32 [%d1], %r1;\nret;\n}\n";
	cudaLibrary_t library;
	cudaKernel_t kernel;

	OK(cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cudaLibraryGetKernel(&kernel, library, "fault"));
	OK(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(1), NULL, 0, 0));
	return ends_with(cudaErrorIllegalAddress);
}

struct fault {
	int (*run)(void);
	const char *codes, *says[5];
	int line;
};

#define ILLEGAL "cudaErrorIllegalAddress cudaErrorIllegalAddress\n"
#define LONG_NAME                                                                             \
	"in kernel void store<a_tile_that_is_as_long_as_those_of_libraries<float, 128, 256, " \
	"64> >(a_tile_that_is_as_long_as_those_of_libraries<float, 128, 256, 64>, int)\n"

static const struct fault faults[] = {
	{write_after_the_end,
	 ILLEGAL,
	 {"qcuda: an illegal memory access was encountered: write of 4 bytes at global address 0x",
	  LONG_NAME, ", thread (255,0,0)\n", "qcuda:   right after the 1 KiB at 0x",
	  " made by cudaMalloc\n"},
	 store_line},
	{write_misaligned,
	 "cudaErrorMisalignedAddress cudaErrorMisalignedAddress\n",
	 {"qcuda: misaligned address: write of 4 bytes at misaligned global address 0x", LONG_NAME,
	  "block (0,0,0), thread (0,0,0)\n", "qcuda:   inside the 1 KiB at 0x"},
	 store_line},
	{assertion,
	 "cudaErrorAssert cudaErrorAssert\n",
	 {"Assertion `n + (int)threadIdx.x < 5` failed.\n", "qcuda: device-side assert triggered",
	  "in kernel asserts(int)\n", "block (0,0,0), thread (5,0,0)\n"},
	 asserts_line},
	{trap,
	 "cudaErrorLaunchFailure cudaErrorLaunchFailure\n",
	 {"qcuda: unspecified launch failure: trap\n", "in kernel traps(int)\n",
	  "block (0,0,0), thread (6,0,0)\n"},
	 0},
	{null_pointer,
	 ILLEGAL,
	 {"global address 0xc\n", LONG_NAME, "qcuda:   a null pointer, or an offset from one\n"},
	 store_line},
	{malloc_memory,
	 ILLEGAL,
	 {LONG_NAME, "qcuda:   memory of the program that the GPU cannot use"},
	 store_line},
	{freed_memory,
	 ILLEGAL,
	 {LONG_NAME, "qcuda:   inside the 1 KiB at 0x", " made by cudaMalloc and freed since\n"},
	 store_line},
	{in_a_graph,
	 ILLEGAL,
	 {LONG_NAME, "block (0,0,0), thread (0,0,0)\n", "qcuda:   1 KiB after the 1 KiB at 0x"},
	 store_line},
	{two_faults, ILLEGAL, {LONG_NAME}, store_line},
	{heard_by_launches, ILLEGAL, {LONG_NAME}, store_line},
	{strange_names,
	 ILLEGAL,
	 {"in kernel fault\n", "qcuda:   at a\\x1b[2J\\x1b]0;title\\x07.cu:3\n"},
	 0},
};

static char out[4096], err[1 << 16];

static void read_all(FILE *f, char *text, size_t size)
{
	rewind(f);
	text[fread(text, 1, size - 1, f)] = '\0';
	fclose(f);
}

static void run_self(const char *program, unsigned int number, const char *setting)
{
	FILE *to = tmpfile(), *errors = tmpfile();
	char text[16];
	int status;
	pid_t pid;

	REQUIRE(to && errors, "no files");
	snprintf(text, sizeof(text), "%u", number);
	pid = fork();
	if (!pid) {
		dup2(fileno(to), 1);
		dup2(fileno(errors), 2);
		setenv("QCU_FAULTS", setting, 1);
		execl(program, program, text, (char *)NULL);
		_exit(127);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid && !status, "fault %u: status %x", number, status);
	read_all(to, out, sizeof(out));
	read_all(errors, err, sizeof(err));
	REQUIRE(!strcmp(out, faults[number].codes), "fault %u: stdout: %s", number, out);
}

static unsigned int lines_that_begin(const char *with)
{
	unsigned int n = 0;

	for (const char *s = err; *s; s += strcspn(s, "\n"), s += *s == '\n')
		n += !strncmp(s, with, strlen(with));
	return n;
}

int main(int argc, char **argv)
{
	const unsigned int count = sizeof(faults) / sizeof(*faults);
	char where[64];

	if (argc == 2)
		return faults[atoi(argv[1])].run();
	for (unsigned int i = 0; i < count; i++) {
		const struct fault *f = &faults[i];

		run_self("/proc/self/exe", i, "1");
		REQUIRE(lines_that_begin("qcuda: ") - lines_that_begin("qcuda:   ") == 1,
			"fault %u: not one text: %s", i, err);
		for (unsigned int k = 0; k < 5 && f->says[k]; k++)
			REQUIRE(strstr(err, f->says[k]), "fault %u: no '%s' in: %s", i, f->says[k],
				err);
		snprintf(where, sizeof(where), "qcuda:   at fault_places.cu:%d\n", f->line);
		REQUIRE(!f->line || strstr(err, where), "fault %u: no '%s' in: %s", i, where, err);
		REQUIRE(!strchr(err, '\033'), "fault %u: a control character", i);
		run_self("/proc/self/exe", i, "0");
		REQUIRE(!lines_that_begin("qcuda: "), "fault %u: not off: %s", i, err);
	}
	printf("fault_places: %u kinds\n", count);
	return 0;
}

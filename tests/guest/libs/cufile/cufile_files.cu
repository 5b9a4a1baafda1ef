// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cuFile: what a program may get wrong, with native's answers; files that are read into the GPU's memory
 * and written from it, at any offset, more than a piece of it, also past the end, with O_DIRECT, in
 * batches, by threads, and in the order of a stream with kernels before and behind.
 */
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

#include "../libs.h"
#include "ours.h"
#include "qcu-library/cufile/api.h"

#define N (5 << 20) /* more than the library moves at a time */

#define IS(call, want)                                                                                 \
	do {                                                                                           \
		CUfileError_t e_ = (call);                                                             \
		REQUIRE(e_.err == (want), "%s: %d (%d), not %d", #call, e_.err, (int)e_.cu_err, want); \
	} while (0)
#define DONE(call) IS(call, CU_FILE_SUCCESS)
#define MOVED(call, want)                                                                       \
	do {                                                                                    \
		ssize_t n_ = (call);                                                            \
		REQUIRE(n_ == (ssize_t)(want), "%s: %zd, errno %d", #call, n_, n_ < 0 ? errno : 0); \
	} while (0)
#define WRONG(call, number)                                                                \
	do {                                                                               \
		errno = 0;                                                                 \
		ssize_t n_ = (call);                                                       \
		REQUIRE(n_ == -1 && errno == (number), "%s: %zd, errno %d", #call, n_, errno); \
	} while (0)

static char path[] = "/tmp/cufile-XXXXXX";
static std::vector<unsigned char> pattern(N);

static CUfileError_t enter(CUfileHandle_t *h, int fd)
{
	CUfileDescr_t d = {};

	d.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
	d.handle.fd = fd;
	return cuFileHandleRegister(h, &d);
}

static void wrong(int fd, unsigned char *gpu)
{
	int pipes[2], folder = open("/tmp", O_RDONLY), more = open(path, O_RDWR | O_APPEND);
	int in = open(path, O_RDONLY), out = open(path, O_WRONLY);
	CUfileHandle_t h, only;
	CUfileDescr_t d = {};

	REQUIRE(!pipe(pipes) && folder >= 0 && more >= 0 && in >= 0 && out >= 0, "no files");
	IS(cuFileHandleRegister(NULL, &d), CU_FILE_INVALID_VALUE);
	IS(cuFileHandleRegister(&h, NULL), CU_FILE_INVALID_VALUE);
	IS(cuFileHandleRegister(&h, &d), CU_FILE_IO_NOT_SUPPORTED);
	IS(enter(&h, -1), CU_FILE_INVALID_VALUE);
	IS(enter(&h, 999), CU_FILE_INVALID_VALUE);
	IS(enter(&h, pipes[0]), CU_FILE_INVALID_FILE_TYPE);
	IS(enter(&h, folder), CU_FILE_INVALID_FILE_TYPE);
	IS(enter(&h, more), CU_FILE_INVALID_FILE_OPEN_FLAG);
	DONE(enter(&h, fd));
	IS(enter(&only, fd), CU_FILE_HANDLE_ALREADY_REGISTERED);
	IS(cuFileBufRegister(NULL, 10, 0), CU_FILE_INVALID_VALUE);
	IS(cuFileBufRegister(gpu, 0, 0), CU_FILE_INVALID_VALUE);
	IS(cuFileBufRegister(gpu, 1ull << 40, 0), CU_FILE_CUDA_POINTER_RANGE_ERROR);
	DONE(cuFileBufRegister(gpu, N, 0));
	IS(cuFileBufRegister(gpu, N, 0), CU_FILE_MEMORY_ALREADY_REGISTERED);
	IS(cuFileBufDeregister(gpu + 4096), CU_FILE_MEMORY_NOT_REGISTERED);
	DONE(cuFileBufDeregister(gpu));
	IS(cuFileBufDeregister(gpu), CU_FILE_MEMORY_NOT_REGISTERED);
	IS(cuFileBufDeregister(NULL), CU_FILE_INVALID_VALUE);
	WRONG(cuFileRead(NULL, gpu, 10, 0, 0), EINVAL);
	WRONG(cuFileRead(h, NULL, 10, 0, 0), EINVAL);
	WRONG(cuFileRead((CUfileHandle_t)0x77777, gpu, 10, 0, 0), CU_FILE_HANDLE_NOT_REGISTERED);
	WRONG(cuFileRead(h, gpu, 10, -1, 0), CU_FILE_INVALID_VALUE);
	WRONG(cuFileWrite(h, gpu, 10, 0, 1ll << 40), EIO);
	WRONG(cuFileWrite(h, gpu, 1ull << 40, 0, 0), cudaErrorInvalidValue);
	WRONG(cuFileReadv(h, NULL, 1, 0, 0), EINVAL);
	DONE(enter(&only, in));
	WRONG(cuFileWrite(only, gpu, 10, 0, 0), CU_FILE_INVALID_FILE_OPEN_FLAG);
	MOVED(cuFileRead(only, gpu, 10, 0, 0), 0);
	cuFileHandleDeregister(only);
	DONE(enter(&only, out));
	WRONG(cuFileRead(only, gpu, 10, 0, 0), CU_FILE_INVALID_FILE_OPEN_FLAG);
	cuFileHandleDeregister(only);
	cuFileHandleDeregister(h);
	cuFileHandleDeregister(h);
	WRONG(cuFileRead(h, gpu, 10, 0, 0), CU_FILE_HANDLE_NOT_REGISTERED);
	for (int f : {pipes[0], pipes[1], folder, more, in, out})
		close(f);
}

static void driver(void)
{
	CUfileDrvProps_t props;
	size_t size;
	bool flag;
	int version;

	IS(cuFileDriverGetProperties(NULL), CU_FILE_INVALID_VALUE);
	DONE(cuFileDriverGetProperties(&props));
	REQUIRE(props.nvfs.dcontrolflags >> CU_FILE_ALLOW_COMPAT_MODE & 1, "no compatibility mode");
	REQUIRE(props.max_batch_io_size == 128, "batches of %u", props.max_batch_io_size);
	IS(cuFileDriverSetPollMode(true, 5), CU_FILE_INVALID_VALUE);
	IS(cuFileDriverSetMaxDirectIOSize(0), CU_FILE_INVALID_VALUE);
	DONE(cuFileDriverSetMaxDirectIOSize(1024));
	IS(cuFileGetParameterSizeT((CUFileSizeTConfigParameter_t)12, &size), CU_FILE_INVALID_VALUE);
	IS(cuFileSetParameterBool(CUFILE_PARAM_PROFILE_NVTX, true), CU_FILE_INVALID_VALUE);
	IS(cuFileSetParameterSizeT(CUFILE_PARAM_EXECUTION_MAX_IO_THREADS, 2), CU_FILE_DRIVER_ALREADY_OPEN);
	DONE(cuFileGetParameterSizeT(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE, &size));
	DONE(cuFileGetParameterBool(CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE, &flag));
	DONE(cuFileGetVersion(&version));
	REQUIRE(size == 128 && flag && version >= 1000, "%zu, %d, version %d", size, flag, version);
}

/* cuFileRead() does not wait for work that has been queued. */
static void clear(unsigned char *gpu, size_t n)
{
	CHECK(cudaMemset(gpu, 0, n));
	CHECK(cudaDeviceSynchronize());
}

static std::vector<unsigned char> content(int fd, size_t n)
{
	std::vector<unsigned char> all(n);

	REQUIRE(pread(fd, all.data(), n, 0) == (ssize_t)n, "the file is short");
	return all;
}

static void both_ways(int fd, CUfileHandle_t h, unsigned char *gpu)
{
	std::vector<unsigned char> want = pattern, host(100);
	CUfileIOVec_t pieces[3] = {{gpu, 100}, {gpu + 5000, 50}, {host.data(), 100}};

	MOVED(cuFileWrite(h, gpu, N, 0, 0), N);
	REQUIRE(content(fd, N) == pattern, "the file has other data");
	MOVED(cuFileWrite(h, gpu, 1001, 50, 3), 1001);
	memcpy(want.data() + 50, pattern.data() + 3, 1001);
	REQUIRE(content(fd, N) == want, "wrong data at an odd offset");
	clear(gpu, N);
	MOVED(cuFileRead(h, gpu, N - 12, 7, 5), N - 12);
	REQUIRE(down(gpu + 5, N - 12) == std::vector<unsigned char>(want.begin() + 7, want.end() - 5),
		"wrong data in the GPU");
	/* Up to the end, and behind it. */
	MOVED(cuFileRead(h, gpu, N, N - 10, 0), 10);
	MOVED(cuFileRead(h, gpu, 10, N, 0), 0);
	MOVED(cuFileRead(h, gpu, 10, 2 * N, 0), 0);
	MOVED(cuFileRead(h, gpu, 0, 0, 0), 0);
	/* Host memory is as good. */
	MOVED(cuFileRead(h, host.data(), 100, 50, 0), 100);
	REQUIRE(std::equal(host.begin(), host.end(), want.begin() + 50), "wrong data in the host");
	MOVED(cuFileRead(h, gpu, N, 0, 0), N);
	MOVED(cuFileReadv(h, pieces, 3, 1000, 0), 250);
	REQUIRE(down(gpu + 5000, 50) == std::vector<unsigned char>(want.begin() + 1100, want.begin() + 1150),
		"wrong data in the second piece");
	REQUIRE(std::equal(host.begin(), host.end(), want.begin() + 1150), "wrong data in the third");
	MOVED(cuFileWritev(h, pieces, 3, 0, 0), 250);
	MOVED(cuFileRead(h, gpu, 250, 0, 0), 250);
	REQUIRE(down(gpu, 250) == std::vector<unsigned char>(want.begin() + 1000, want.begin() + 1250),
		"the pieces went elsewhere");
}

/* The file does not take such an offset, and cuFile does. Some file systems have no O_DIRECT. */
static void direct(void)
{
	int fd = open(path, O_RDWR | O_DIRECT);
	unsigned char *gpu = up(std::vector<unsigned char>(1000, 9));
	CUfileHandle_t h;

	if (fd < 0) {
		printf("no O_DIRECT here\n");
		return;
	}
	DONE(enter(&h, fd));
	MOVED(cuFileWrite(h, gpu, 999, 7, 1), 999);
	clear(gpu, 1000);
	MOVED(cuFileRead(h, gpu, 997, 8, 3), 997);
	REQUIRE(down(gpu + 3, 997) == std::vector<unsigned char>(997, 9), "wrong data");
	cuFileHandleDeregister(h);
	close(fd);
	CHECK(cudaFree(gpu));
}

static void threads(CUfileHandle_t h, unsigned char *gpu)
{
	std::vector<std::thread> all;
	const size_t part = N / 8;

	CHECK(cudaMemcpy(gpu, pattern.data(), N, cudaMemcpyHostToDevice));
	for (size_t i = 0; i < 8; i++)
		all.emplace_back([=] {
			MOVED(cuFileWrite(h, gpu, part, i * part, i * part), part);
			MOVED(cuFileRead(h, gpu, part, i * part, i * part), part);
		});
	for (std::thread &t : all)
		t.join();
	REQUIRE(down(gpu, N) == pattern, "the threads mix up their data");
}

static void batch(CUfileHandle_t h, unsigned char *gpu)
{
	CUfileIOEvents_t events[4] = {};
	CUfileIOParams_t io[3] = {};
	struct timespec wait = {60, 0};
	CUfileBatchHandle_t b;
	unsigned int n = 4, seen = 0;

	IS(cuFileBatchIOSetUp(NULL, 4), CU_FILE_INVALID_VALUE);
	IS(cuFileBatchIOSetUp(&b, 0), CU_FILE_INVALID_VALUE);
	IS(cuFileBatchIOSetUp(&b, 129), CU_FILE_INVALID_VALUE);
	IS(cuFileBatchIOSubmit(NULL, 1, io, 0), CU_FILE_INVALID_CONTEXT_ERROR);
	DONE(cuFileBatchIOSetUp(&b, 3));
	for (int i = 0; i < 3; i++) {
		io[i].mode = CUFILE_BATCH;
		io[i].fh = h;
		io[i].opcode = CUFILE_READ;
		io[i].cookie = &io[i];
		io[i].u.batch.devPtr_base = gpu;
		io[i].u.batch.size = 4096;
		io[i].u.batch.file_offset = 8192 * i;
		io[i].u.batch.devPtr_offset = 4096 * i;
	}
	io[2].u.batch.file_offset = 2 * N;
	IS(cuFileBatchIOSubmit(b, 0, io, 0), CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR);
	IS(cuFileBatchIOSubmit(b, 4, io, 0), CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR);
	IS(cuFileBatchIOSubmit(b, 1, NULL, 0), CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR);
	io[0].fh = NULL;
	IS(cuFileBatchIOSubmit(b, 3, io, 0), CU_FILE_HANDLE_NOT_REGISTERED);
	io[0].fh = h;
	DONE(cuFileBatchIOSubmit(b, 3, io, 0));
	IS(cuFileBatchIOGetStatus(b, 1, NULL, events, &wait), CU_FILE_INVALID_VALUE);
	while (seen < 3) {
		n = 4;
		DONE(cuFileBatchIOGetStatus(b, 1, &n, events, &wait));
		for (unsigned int i = 0; i < n; i++, seen++)
			REQUIRE(events[i].status == CUFILE_COMPLETE && events[i].ret == (events[i].cookie == &io[2] ? 0 : 4096),
				"a transfer: status %d, %zd bytes", events[i].status, (ssize_t)events[i].ret);
	}
	REQUIRE(down(gpu + 4096, 4096) == std::vector<unsigned char>(pattern.begin() + 8192, pattern.begin() + 12288),
		"the batch reads other data");
	/* What has ended makes room. */
	DONE(cuFileBatchIOSubmit(b, 3, io, 0));
	DONE(cuFileBatchIOCancel(b));
	cuFileBatchIODestroy(b);
}

__global__ void increase(unsigned char *p, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i]++;
}

/* Read, computed, written, and sizes that are set while the calls are queued. */
static void in_a_stream(int fd, CUfileHandle_t h, unsigned char *gpu)
{
	static size_t size = 1;
	static off_t from = 0, to = N, at = 16;
	static ssize_t got = -7, put = -7;
	const int n = 100000;
	cudaStream_t s;
	std::vector<unsigned char> want(pattern.begin(), pattern.begin() + n), is(n);

	CHECK(cudaStreamCreate(&s));
	DONE(cuFileStreamRegister(s, 0));
	IS(cuFileStreamRegister(s, 0), CU_FILE_INVALID_VALUE);
	IS(cuFileReadAsync(NULL, gpu, &size, &from, &at, &got, s), CU_FILE_INVALID_VALUE);
	IS(cuFileReadAsync(h, gpu, NULL, &from, &at, &got, s), CU_FILE_INVALID_VALUE);
	IS(cuFileReadAsync(h, gpu, &size, &from, &at, NULL, s), CU_FILE_INVALID_VALUE);
	CHECK(cudaLaunchHostFunc(s, [](void *) { size = 100000; }, NULL));
	DONE(cuFileReadAsync(h, gpu, &size, &from, &at, &got, s));
	increase<<<(n + 255) / 256, 256, 0, s>>>(gpu + at, n);
	DONE(cuFileWriteAsync(h, gpu, &size, &to, &at, &put, s));
	CHECK(cudaStreamSynchronize(s));
	REQUIRE(got == n && put == n, "%zd bytes read, %zd written", got, put);
	REQUIRE(pread(fd, is.data(), n, N) == n, "the file is short");
	for (unsigned char &c : want)
		c++;
	REQUIRE(is == want, "the stream's order is lost");
	from = 4 * N;
	DONE(cuFileReadAsync(h, gpu, &size, &from, &at, &got, s));
	CHECK(cudaStreamSynchronize(s));
	REQUIRE(got == 0, "%zd bytes behind the end", got);
	DONE(cuFileStreamDeregister(s));
	IS(cuFileStreamDeregister(s), CU_FILE_INVALID_VALUE);
	CHECK(cudaStreamDestroy(s));
}

int main(void)
{
	int fd = mkstemp(path);
	CUfileHandle_t h;
	unsigned char *gpu;

	REQUIRE(fd >= 0, "no file");
	for (size_t i = 0; i < N; i++)
		pattern[i] = (unsigned char)(i * 7 + i / 251);
	gpu = up(pattern);
	IS(cuFileDriverClose(), CU_FILE_DRIVER_NOT_INITIALIZED);
	DONE(cuFileDriverOpen());
	if (!is_ours("cudaMalloc")) {
		if (enter(&h, fd).err == CU_FILE_IO_NOT_SUPPORTED) {
			unlink(path);
			printf("skipped: NVIDIA's library cannot do without its module for files here\n");
			return 77;
		}
		cuFileHandleDeregister(h);
	}
	DONE(cuFileDriverOpen());
	REQUIRE(cuFileUseCount() == 2, "used %ld times", cuFileUseCount());
	wrong(fd, gpu);
	driver();
	DONE(enter(&h, fd));
	CHECK(cudaMemcpy(gpu, pattern.data(), N, cudaMemcpyHostToDevice));
	both_ways(fd, h, gpu);
	direct();
	threads(h, gpu);
	batch(h, gpu);
	in_a_stream(fd, h, gpu);
	cuFileHandleDeregister(h);
	DONE(cuFileDriverClose());
	DONE(cuFileDriverClose());
	IS(cuFileDriverClose(), CU_FILE_DRIVER_NOT_INITIALIZED);
	unlink(path);
	CHECK(cudaFree(gpu));
	printf("files in the GPU's memory\n");
	return 0;
}

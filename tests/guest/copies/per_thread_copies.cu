// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compiled with --default-stream per-thread: every copy and memset on stream 0, also the
 * synchronous ones, is in the thread's own stream. All of them are made once, and a second time
 * while another stream is held up. The legacy stream waits for that stream; none of the calls
 * here may wait for it.
 */
#include <semaphore.h>

#include "check.h"

/* Some of the functions are deprecated; they are still tested. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define W     60
#define H     9
#define D     3
#define PITCH 512
#define BYTES (PITCH * H * D)

__device__ unsigned char symbol[BYTES];

static unsigned char *dev, *other, *pinned, *pinned_back;
static unsigned char host[BYTES], back[BYTES];
static cudaArray_t array, array2;
static bool is_held;

static void same(const void *got, const void *want, size_t bytes, const char *what)
{
	size_t at = first_difference(got, want, bytes);

	REQUIRE(at == bytes, "%s: byte %zu of %zu differs", what, at, bytes);
}

/* Rows of W bytes, PITCH apart. Nothing may be written between them. */
static void same_rows(const unsigned char *got, const unsigned char *want, size_t rows,
		      const char *what)
{
	for (size_t y = 0; y < rows; y++) {
		same(got + y * PITCH, want + y * PITCH, W, what);
		REQUIRE(!got[y * PITCH + W], "%s: row %zu is written too far", what, y);
	}
}

static void fresh(uint32_t seed)
{
	fill_words(host, BYTES, seed);
	memcpy(pinned, host, BYTES);
	memset(back, 0, BYTES);
	memset(pinned_back, 0, BYTES);
}

static void flat(uint32_t seed)
{
	fresh(seed);
	CHECK(cudaMemcpy(dev, host, BYTES, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(back, dev, BYTES, cudaMemcpyDeviceToHost));
	same(back, host, BYTES, "cudaMemcpy");

	fresh(seed + 1);
	CHECK(cudaMemcpyAsync(dev, pinned, BYTES, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpyAsync(other, dev, BYTES, cudaMemcpyDeviceToDevice));
	CHECK(cudaMemcpyAsync(pinned_back, other, BYTES, cudaMemcpyDeviceToHost));
	CHECK(cudaStreamSynchronize(0));
	same(pinned_back, host, BYTES, "cudaMemcpyAsync");

	fresh(seed + 2);
	CHECK(cudaMemcpyToSymbol(symbol, host, BYTES - 100, 100));
	CHECK(cudaMemcpyFromSymbol(back, symbol, BYTES - 200, 200));
	same(back, host + 100, BYTES - 200, "cudaMemcpyFromSymbol");
	fresh(seed + 3);
	CHECK(cudaMemcpyToSymbolAsync(symbol, pinned, BYTES, 0, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpyFromSymbolAsync(pinned_back, symbol, BYTES, 0, cudaMemcpyDeviceToHost));
	CHECK(cudaStreamSynchronize(0));
	same(pinned_back, host, BYTES, "cudaMemcpyFromSymbolAsync");
}

static cudaMemcpy3DParms whole_box(void *dst, void *src, cudaMemcpyKind kind)
{
	cudaMemcpy3DParms p = {};

	p.srcPtr = make_cudaPitchedPtr(src, PITCH, W, H);
	p.dstPtr = make_cudaPitchedPtr(dst, PITCH, W, H);
	p.extent = make_cudaExtent(W, H, D);
	p.kind = kind;
	return p;
}

static void rows(uint32_t seed)
{
	cudaMemcpy3DParms up = whole_box(dev, host, cudaMemcpyHostToDevice);
	cudaMemcpy3DParms down = whole_box(back, dev, cudaMemcpyDeviceToHost);

	fresh(seed);
	CHECK(cudaMemcpy2D(dev, PITCH, host, PITCH, W, H, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2D(back, PITCH, dev, PITCH, W, H, cudaMemcpyDeviceToHost));
	same_rows(back, host, H, "cudaMemcpy2D");
	fresh(seed + 1);
	CHECK(cudaMemcpy2DAsync(dev, PITCH, pinned, PITCH, W, H, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2DAsync(pinned_back, PITCH, dev, PITCH, W, H, cudaMemcpyDeviceToHost));
	CHECK(cudaStreamSynchronize(0));
	same_rows(pinned_back, host, H, "cudaMemcpy2DAsync");

	fresh(seed + 2);
	CHECK(cudaMemcpy3D(&up));
	CHECK(cudaMemcpy3D(&down));
	same_rows(back, host, H * D, "cudaMemcpy3D");
	fresh(seed + 3);
	up = whole_box(dev, pinned, cudaMemcpyHostToDevice);
	down = whole_box(pinned_back, dev, cudaMemcpyDeviceToHost);
	CHECK(cudaMemcpy3DAsync(&up));
	CHECK(cudaMemcpy3DAsync(&down));
	CHECK(cudaStreamSynchronize(0));
	same_rows(pinned_back, host, H * D, "cudaMemcpy3DAsync");
}

static void arrays(uint32_t seed)
{
	const size_t bytes = W * H;

	fresh(seed);
	CHECK(cudaMemcpy2DToArray(array, 0, 0, host, PITCH, W, H, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2DArrayToArray(array2, 0, 0, array, 0, 0, W, H, cudaMemcpyDeviceToDevice));
	CHECK(cudaMemcpy2DFromArray(back, PITCH, array2, 0, 0, W, H, cudaMemcpyDeviceToHost));
	same_rows(back, host, H, "cudaMemcpy2DFromArray");
	fresh(seed + 1);
	CHECK(cudaMemcpy2DToArrayAsync(array, 0, 0, pinned, PITCH, W, H, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2DFromArrayAsync(pinned_back, PITCH, array, 0, 0, W, H,
					 cudaMemcpyDeviceToHost));
	CHECK(cudaStreamSynchronize(0));
	same_rows(pinned_back, host, H, "cudaMemcpy2DFromArrayAsync");

	fresh(seed + 2);
	CHECK(cudaMemcpyToArray(array, 0, 0, host, bytes, cudaMemcpyHostToDevice));
	/* CUDA's own call waits for the legacy stream all the same. */
	if (is_held)
		CHECK(cudaMemcpy2DArrayToArray(array2, 0, 0, array, 0, 0, W, H,
					       cudaMemcpyDeviceToDevice));
	else
		CHECK(cudaMemcpyArrayToArray(array2, 0, 0, array, 0, 0, bytes,
					     cudaMemcpyDeviceToDevice));
	CHECK(cudaMemcpyFromArray(back, array2, 0, 0, bytes, cudaMemcpyDeviceToHost));
	same(back, host, bytes, "cudaMemcpyFromArray");
	fresh(seed + 3);
	CHECK(cudaMemcpyToArrayAsync(array, 4, 1, pinned, bytes - W - 4, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpyFromArrayAsync(pinned_back, array, 4, 1, bytes - W - 4,
				       cudaMemcpyDeviceToHost));
	CHECK(cudaStreamSynchronize(0));
	same(pinned_back, host, bytes - W - 4, "cudaMemcpyFromArrayAsync");
}

static void set_to(const unsigned char *got, int value, size_t width, size_t rows, const char *what)
{
	for (size_t y = 0; y < rows; y++)
		for (size_t x = 0; x < PITCH; x++) {
			int want = x < width ? value : 0xee;

			REQUIRE(got[y * PITCH + x] == want, "%s: %d, not %d, at %zu, %zu", what,
				got[y * PITCH + x], want, x, y);
		}
}

static void check_set(int value, size_t width, size_t rows, const char *what)
{
	CHECK(cudaMemcpy(back, dev, rows * PITCH, cudaMemcpyDeviceToHost));
	set_to(back, value, width, rows, what);
	CHECK(cudaMemset(dev, 0xee, BYTES));
}

static void memsets(int value)
{
	cudaPitchedPtr p = make_cudaPitchedPtr(dev, PITCH, W, H);

	CHECK(cudaMemset(dev, 0xee, BYTES));
	check_set(0xee, PITCH, H * D, "cudaMemset");
	CHECK(cudaMemsetAsync(dev, value, BYTES));
	check_set(value, PITCH, H * D, "cudaMemsetAsync");
	CHECK(cudaMemset2D(dev, PITCH, value + 1, W, H));
	check_set(value + 1, W, H, "cudaMemset2D");
	CHECK(cudaMemset2DAsync(dev, PITCH, value + 2, W, H));
	check_set(value + 2, W, H, "cudaMemset2DAsync");
	CHECK(cudaMemset3D(p, value + 3, make_cudaExtent(W, H, D)));
	check_set(value + 3, W, H * D, "cudaMemset3D");
	CHECK(cudaMemset3DAsync(p, value + 4, make_cudaExtent(W, H, D)));
	check_set(value + 4, W, H * D, "cudaMemset3DAsync");
}

/*
 * A batch cannot use the legacy stream, and the meaning of 0 is not defined. So the test names
 * the stream.
 */
static void batches(uint32_t seed)
{
	void *dsts[] = {dev, dev + BYTES / 2};
	const void *srcs[] = {pinned, pinned + BYTES / 2};
	size_t sizes[] = {BYTES / 2, BYTES / 2 - 8}, first = 0;
	cudaMemcpyAttributes attr = {};
	cudaMemcpy3DBatchOp op = {};

	fresh(seed);
	attr.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	CHECK(cudaMemcpyBatchAsync(dsts, srcs, sizes, 2, &attr, &first, 1, cudaStreamPerThread));
	op.src.type = op.dst.type = cudaMemcpyOperandTypePointer;
	op.src.op.ptr.ptr = dev;
	op.src.op.ptr.rowLength = PITCH;
	op.src.op.ptr.layerHeight = H;
	op.dst = op.src;
	op.dst.op.ptr.ptr = pinned_back;
	op.extent = make_cudaExtent(W, H, D);
	op.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	CHECK(cudaMemcpy3DBatchAsync(1, &op, 0, cudaStreamPerThread));
	CHECK(cudaStreamSynchronize(cudaStreamPerThread));
	same_rows(pinned_back, host, H * D, "cudaMemcpy3DBatchAsync");
}

static void everything(uint32_t seed)
{
	flat(seed);
	rows(seed + 10);
	arrays(seed + 20);
	memsets((int)seed % 100);
	batches(seed + 30);
}

/*
 * Copies between devices, where both are the same device. The synchronous call waits for all of
 * a device.
 */
static void peers(uint32_t seed)
{
	cudaMemcpy3DPeerParms p = {};

	fresh(seed);
	CHECK(cudaMemcpy(dev, host, BYTES, cudaMemcpyHostToDevice));
	CHECK(cudaMemset(other, 0, BYTES));
	p.srcPtr = make_cudaPitchedPtr(dev, PITCH, W, H);
	p.dstPtr = make_cudaPitchedPtr(other, PITCH, W, H);
	p.extent = make_cudaExtent(W, H, D);
	CHECK(cudaMemcpy3DPeer(&p));
	CHECK(cudaMemcpy(back, other, BYTES, cudaMemcpyDeviceToHost));
	same_rows(back, host, H * D, "cudaMemcpy3DPeer");
	CHECK(cudaMemset(other, 0, BYTES));
	CHECK(cudaMemcpy3DPeerAsync(&p));
	CHECK(cudaMemcpy(back, other, BYTES, cudaMemcpyDeviceToHost));
	same_rows(back, host, H * D, "cudaMemcpy3DPeerAsync");
}

static sem_t gate;

static void CUDART_CB wait_at_gate(void *)
{
	while (sem_wait(&gate))
		;
}

int main(void)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned char>();
	cudaStream_t held;

	CHECK(cudaMalloc(&dev, BYTES));
	CHECK(cudaMalloc(&other, BYTES));
	CHECK(cudaMallocHost(&pinned, BYTES));
	CHECK(cudaMallocHost(&pinned_back, BYTES));
	CHECK(cudaMallocArray(&array, &format, W, H));
	CHECK(cudaMallocArray(&array2, &format, W, H));
	CHECK(cudaStreamCreate(&held));
	REQUIRE(!sem_init(&gate, 0, 0), "semaphore");

	/* Loads now what is loaded at first use. */
	everything(100);
	peers(200);

	CHECK(cudaLaunchHostFunc(held, wait_at_gate, NULL));
	is_held = true;
	everything(300);
	EXPECT(cudaStreamQuery(held), cudaErrorNotReady);
	/*
	 * The legacy stream does wait for the held stream. From then on, this thread's own
	 * stream waits for the legacy stream.
	 */
	memset(pinned_back, 0, BYTES);
	CHECK(cudaMemsetAsync(dev, 77, BYTES, cudaStreamLegacy));
	CHECK(cudaMemcpyAsync(pinned_back, dev, BYTES, cudaMemcpyDeviceToHost));
	EXPECT(cudaStreamQuery(cudaStreamLegacy), cudaErrorNotReady);
	EXPECT(cudaStreamQuery(0), cudaErrorNotReady);
	REQUIRE(!pinned_back[0], "copied before what it waits for");
	sem_post(&gate);
	CHECK(cudaStreamSynchronize(0));
	REQUIRE(pinned_back[0] == 77 && pinned_back[BYTES - 1] == 77, "%d", pinned_back[0]);
	CHECK(cudaStreamSynchronize(held));

	CHECK(cudaFreeArray(array));
	CHECK(cudaFreeArray(array2));
	CHECK(cudaFree(dev));
	CHECK(cudaFree(other));
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFreeHost(pinned_back));
	CHECK(cudaStreamDestroy(held));
	return verified("30 kinds of copies and memsets in a thread's own stream");
}

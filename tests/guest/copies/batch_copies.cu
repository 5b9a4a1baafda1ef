// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Many copies in one call: from the host, between places on the device, and back; boxes with a
 * pitch, and arrays. Also boxes copied between devices, where both devices are the same.
 */
#include "check.h"

#define COUNT 12
#define LEN   (64 << 10)
#define W     96
#define H     10
#define D     3

static void flat(cudaStream_t stream)
{
	static char host[COUNT][LEN], back[COUNT][LEN];
	void *dsts[COUNT], *out[COUNT], *dev, *middle;
	const void *srcs[COUNT], *from[COUNT];
	size_t sizes[COUNT], first[] = {0, 5};
	cudaMemcpyAttributes attrs[2] = {};

	CHECK(cudaMalloc(&dev, COUNT * LEN));
	CHECK(cudaMalloc(&middle, COUNT * LEN));
	for (int i = 0; i < COUNT; i++) {
		fill_words(host[i], LEN, i);
		sizes[i] = LEN - i * 100;
		srcs[i] = host[i];
		dsts[i] = (char *)dev + i * LEN;
	}
	attrs[0].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	attrs[1].srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;
	CHECK(cudaMemcpyBatchAsync(dsts, srcs, sizes, COUNT, attrs, first, 2, stream));
	for (int i = 0; i < COUNT; i++) {
		from[i] = dsts[i];
		out[i] = (char *)middle + i * LEN;
	}
	CHECK(cudaMemcpyBatchAsync(out, from, sizes, COUNT, attrs, first, 1, stream));
	for (int i = 0; i < COUNT; i++) {
		from[i] = out[i];
		out[i] = back[i];
	}
	CHECK(cudaMemcpyBatchAsync(out, from, sizes, COUNT, attrs, first, 1, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (int i = 0; i < COUNT; i++)
		REQUIRE(first_difference(back[i], host[i], sizes[i]) == sizes[i],
			"copy %d differs at byte %zu", i,
			first_difference(back[i], host[i], sizes[i]));

	/*
	 * No copies, attributes that begin at another index or out of order, no order, no
	 * stream.
	 */
	size_t wrong[] = {1, 5}, back_again[] = {0, 0};
	cudaMemcpyAttributes none = {};

	EXPECT(cudaMemcpyBatchAsync(out, from, sizes, 0, attrs, first, 1, stream),
	       cudaErrorInvalidValue);
	EXPECT(cudaMemcpyBatchAsync(out, from, sizes, COUNT, attrs, wrong, 2, stream),
	       cudaErrorInvalidValue);
	EXPECT(cudaMemcpyBatchAsync(out, from, sizes, COUNT, attrs, back_again, 2, stream),
	       cudaErrorInvalidValue);
	EXPECT(cudaMemcpyBatchAsync(out, from, sizes, COUNT, &none, first, 1, stream),
	       cudaErrorInvalidValue);
	EXPECT(cudaMemcpyBatchAsync(out, from, sizes, COUNT, attrs, first, 1, NULL),
	       cudaErrorInvalidValue);
	(void)cudaGetLastError();
	CHECK(cudaFree(dev));
	CHECK(cudaFree(middle));
}

static void boxes(cudaStream_t stream)
{
	static unsigned char host[D][H][W], back[D][H][W];
	cudaMemcpy3DBatchOp op[2] = {};
	cudaMemcpy3DPeerParms peer = {};
	cudaPitchedPtr dev, other;
	void *third;

	fill_words(host, sizeof(host), 77);
	CHECK(cudaMalloc3D(&dev, make_cudaExtent(W, H, D)));
	CHECK(cudaMalloc3D(&other, make_cudaExtent(W, H, D)));
	op[0].src.type = op[0].dst.type = cudaMemcpyOperandTypePointer;
	op[0].src.op.ptr.ptr = host;
	op[0].src.op.ptr.rowLength = W;
	op[0].src.op.ptr.layerHeight = H;
	op[0].dst.op.ptr.ptr = dev.ptr;
	op[0].dst.op.ptr.rowLength = dev.pitch;
	op[0].dst.op.ptr.layerHeight = H;
	op[0].extent = make_cudaExtent(W, H, D);
	op[0].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	CHECK(cudaMemcpy3DBatchAsync(1, op, 0, stream));
	peer.srcPtr = dev;
	peer.dstPtr = other;
	peer.extent = make_cudaExtent(W, H, D);
	CHECK(cudaMemcpy3DPeerAsync(&peer, stream));
	/* From there to a third place that has no pitch. */
	CHECK(cudaMalloc(&third, other.pitch * H * D));
	CHECK(cudaMemcpyPeerAsync(third, 0, other.ptr, 0, other.pitch * H * D, stream));
	op[0].src.op.ptr = op[0].dst.op.ptr;
	op[0].src.op.ptr.ptr = third;
	op[0].dst.op.ptr.ptr = back;
	op[0].dst.op.ptr.rowLength = W;
	/* The lower two slices in one copy, the upper slice in another. */
	op[0].extent.depth = 2;
	op[1] = op[0];
	op[1].src.op.ptr.ptr = (char *)third + 2 * H * other.pitch;
	op[1].dst.op.ptr.ptr = back[2];
	op[1].extent.depth = 1;
	CHECK(cudaMemcpy3DBatchAsync(2, op, 0, stream));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(first_difference(back, host, sizeof(host)) == sizeof(host), "byte %zu differs",
		first_difference(back, host, sizeof(host)));
	EXPECT(cudaMemcpy3DBatchAsync(1, op, 1, stream), cudaErrorInvalidValue);
	op[0].extent.width = 0;
	EXPECT(cudaMemcpy3DBatchAsync(1, op, 0, stream), cudaErrorInvalidValue);
	peer.srcDevice = 1000;
	EXPECT(cudaMemcpy3DPeer(&peer), cudaErrorInvalidDevice);
	(void)cudaGetLastError();
	CHECK(cudaFree(dev.ptr));
	CHECK(cudaFree(other.ptr));
	CHECK(cudaFree(third));
}

static void arrays(cudaStream_t stream)
{
	static float host[H][W], back[H][W];
	cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaMemcpy3DBatchOp op[2] = {};
	cudaArray_t array;

	fill_words(host, sizeof(host), 5);
	CHECK(cudaMallocArray(&array, &format, W, H));
	op[0].src.type = cudaMemcpyOperandTypePointer;
	op[0].src.op.ptr.ptr = host;
	op[0].dst.type = cudaMemcpyOperandTypeArray;
	op[0].dst.op.array.array = array;
	op[0].extent = make_cudaExtent(W, H, 1);
	op[0].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	op[1] = op[0];
	op[1].src = op[0].dst;
	op[1].dst = op[0].src;
	op[1].dst.op.ptr.ptr = back;
	CHECK(cudaMemcpy3DBatchAsync(1, &op[0], 0, stream));
	CHECK(cudaMemcpy3DBatchAsync(1, &op[1], 0, stream));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(first_difference(back, host, sizeof(host)) == sizeof(host), "byte %zu differs",
		first_difference(back, host, sizeof(host)));
	CHECK(cudaFreeArray(array));
}

int main(void)
{
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	flat(stream);
	boxes(stream);
	arrays(stream);
	CHECK(cudaStreamDestroy(stream));
	return verified("%d copies and boxes in batches", COUNT);
}

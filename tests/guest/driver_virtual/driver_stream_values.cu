// SPDX-License-Identifier: GPL-2.0-or-later
/* Streams that write numbers and wait for numbers in device memory and in pinned memory. */
#include "driver.h"

static CUstream a, b;

static void wrong(CUdeviceptr at)
{
	CUstreamBatchMemOpParams op;

	DEXPECT(cuStreamWriteValue32(a, 0, 1, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuStreamWriteValue32(a, at + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuStreamWriteValue64(a, at + 4, 1, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuStreamWriteValue32(a, at, 1, 2), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuStreamWaitValue32(a, at, 1, 4), CUDA_ERROR_INVALID_VALUE);
	ONLY_OURS(DEXPECT(cuStreamWaitValue32((CUstream)&op, at, 1, 0), CUDA_ERROR_INVALID_HANDLE));
	memset(&op, 0, sizeof(op));
	op.operation = (CUstreamBatchMemOpType)99;
	DEXPECT(cuStreamBatchMemOp(a, 1, &op, 0), CUDA_ERROR_INVALID_VALUE);
	ONLY_OURS(DEXPECT(cuStreamBatchMemOp(a, 1, NULL, 0), CUDA_ERROR_INVALID_VALUE));
	DEXPECT(cuStreamBatchMemOp(a, 257, &op, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuStreamBatchMemOp(a, 1, &op, 1), CUDA_ERROR_INVALID_VALUE);
}

static void between_streams(CUdeviceptr at, CUdeviceptr data)
{
	unsigned int got[4];

	DCHECK(cuMemsetD32(at, 0, 4));
	DCHECK(cuMemsetD32(data, 0, 4));
	DCHECK(cuStreamSynchronize(NULL));
	DCHECK(cuStreamWaitValue32(b, at, 2, CU_STREAM_WAIT_VALUE_GEQ));
	DCHECK(cuMemcpyDtoDAsync(data + 8, data, 8, b));
	DEXPECT(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
	DCHECK(cuStreamWriteValue32(a, at, 1, 0));
	DCHECK(cuStreamSynchronize(a));
	DEXPECT(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
	DCHECK(cuStreamWriteValue64(a, data, 0x700000006, 0));
	DCHECK(cuStreamWriteValue32(a, at, 3, CU_STREAM_WRITE_VALUE_DEFAULT));
	DCHECK(cuStreamSynchronize(b));
	DCHECK(cuMemcpyDtoH(got, data, 16));
	REQUIRE(got[2] == 6 && got[3] == 7, "%u %u", got[2], got[3]);
}

/* The CPU writes what the stream waits for, and reads what the stream writes. */
static void pinned(void)
{
	volatile unsigned long long *host;
	CUdeviceptr at;

	DCHECK(cuMemHostAlloc((void **)&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	DCHECK(cuMemHostGetDevicePointer(&at, (void *)host, 0));
	host[0] = 0x10;
	host[1] = 0;
	DCHECK(cuStreamWaitValue64(a, at, 0x3, CU_STREAM_WAIT_VALUE_AND));
	DCHECK(cuStreamWriteValue64(a, at + 8, 42, 0));
	DEXPECT(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
	REQUIRE(host[1] == 0, "%llu", host[1]);
	host[0] = 0x12;
	DCHECK(cuStreamSynchronize(a));
	REQUIRE(host[1] == 42, "%llu", host[1]);
	host[0] = ~5ull;
	DCHECK(cuStreamWaitValue64(a, at, 5, CU_STREAM_WAIT_VALUE_NOR));
	DEXPECT(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
	host[0] = ~7ull;
	DCHECK(cuStreamSynchronize(a));
	DCHECK(cuMemFreeHost((void *)host));
}

static void batches(CUdeviceptr at)
{
	CUstreamBatchMemOpParams op[4];
	unsigned int got[4];

	DCHECK(cuMemsetD32(at, 0, 4));
	DCHECK(cuStreamSynchronize(NULL));
	memset(op, 0, sizeof(op));
	op[0].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	op[0].waitValue.address = at;
	op[0].waitValue.value = 9;
	op[0].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	op[1].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op[1].writeValue.address = at + 4;
	op[1].writeValue.value = 10;
	op[2].operation = CU_STREAM_MEM_OP_BARRIER;
	op[3].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
	op[3].writeValue.address = at + 8;
	op[3].writeValue.value64 = 0xc0000000b;
	DCHECK(cuStreamBatchMemOp(b, 4, op, 0));
	DEXPECT(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
	DCHECK(cuStreamWriteValue32(a, at, 9, 0));
	DCHECK(cuStreamSynchronize(b));
	DCHECK(cuMemcpyDtoH(got, at, 16));
	REQUIRE(got[1] == 10 && got[2] == 11 && got[3] == 12, "%u %u %u", got[1], got[2], got[3]);
	/* One that is not valid: none is done. */
	op[0].waitValue.flags = 8;
	DEXPECT(cuStreamBatchMemOp(b, 4, op, 0), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuStreamQuery(b));
}

int main()
{
	CUdeviceptr at;

	driver_start();
	DCHECK(cuMemAlloc(&at, 4096));
	DCHECK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	DCHECK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	wrong(at);
	between_streams(at, at + 1024);
	pinned();
	batches(at);
	return verified("streams wait for numbers and write them");
}

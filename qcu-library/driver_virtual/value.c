// SPDX-License-Identifier: LGPL-2.1-or-later
/* Streams that write numbers to memory, and wait for numbers there. */
#include "qcu-library/driver_virtual/value.h"
#include "qcu-library/link/capture.h"

/* A stream that is being captured would need a node for this, which graphs here do not have. */
static cudaError_t not_captured(cudaStream_t stream)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	enum cudaStreamCaptureStatus status;
	cudaError_t err = cudaStreamIsCapturing(stream, &status);

	if (err)
		return err == cudaErrorStreamCaptureImplicit ? cudaSuccess : err;
	return status == cudaStreamCaptureStatusNone
		       ? cudaSuccess
		       : qcul_unsupported("a graph node that waits for a value or writes one",
					  &said);
}

static bool write_record(struct qcu_stream_value *v, CUdeviceptr addr, uint64_t value,
			 unsigned int bytes, unsigned int flags)
{
	*v = (struct qcu_stream_value){
		.addr = addr,
		.value = value,
		.stream = v->stream,
		.what = QCU_VALUE_WRITE,
		.bytes = (uint8_t)bytes,
		.flags = flags & CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER ? QCU_VALUE_UNORDERED : 0,
	};
	return !(flags & ~(unsigned int)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER);
}

static bool wait_record(struct qcu_stream_value *v, CUdeviceptr addr, uint64_t value,
			unsigned int bytes, unsigned int flags)
{
	unsigned int how = flags & ~(unsigned int)CU_STREAM_WAIT_VALUE_FLUSH;

	*v = (struct qcu_stream_value){
		.addr = addr,
		.value = value,
		.stream = v->stream,
		.what = QCU_VALUE_WAIT,
		.bytes = (uint8_t)bytes,
		.flags = (uint16_t)(how | (how != flags ? QCU_VALUE_FLUSH : 0)),
	};
	return how <= CU_STREAM_WAIT_VALUE_NOR;
}
_Static_assert(CU_STREAM_WAIT_VALUE_GEQ == QCU_VALUE_GEQ &&
		       CU_STREAM_WAIT_VALUE_EQ == QCU_VALUE_EQ &&
		       CU_STREAM_WAIT_VALUE_AND == QCU_VALUE_AND &&
		       CU_STREAM_WAIT_VALUE_NOR == QCU_VALUE_NOR,
	       "comparisons");

static cudaError_t begin(cudaStream_t stream, uint32_t *id)
{
	cudaError_t err = qcul_ready();

	if (!err)
		err = qcul_stream_id(stream, id);
	return err ? err : not_captured(stream);
}

static cudaError_t one(cudaStream_t stream, CUdeviceptr addr, uint64_t value, unsigned int bytes,
		       unsigned int flags, bool wait)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_STREAM_VALUE);
	uint32_t id;
	cudaError_t err = begin(stream, &id);
	bool good;

	if (err)
		return err;
	cmd.device = qcul_device_ordinal(qcul_stream_device(id));
	cmd.stream_value.stream = id;
	good = wait ? wait_record(&cmd.stream_value, addr, value, bytes, flags)
		    : write_record(&cmd.stream_value, addr, value, bytes, flags);
	if (!good || !addr || addr % bytes)
		return cudaErrorInvalidValue;
	err = qcul_post(&cmd, 1);
	if (!err)
		qcul_progress_moved();
	return err;
}

cudaError_t qcul_stream_values(cudaStream_t stream, const struct qcu_stream_value *values,
			       unsigned int count)
{
	struct qCUcmd cmds[QCUL_VALUES];
	unsigned int i;
	uint32_t id;
	cudaError_t err = begin(stream, &id);

	if (err)
		return err;
	for (i = 0; i < count; i++) {
		cmds[i] = qcul_cmd(QCU_OP_STREAM_VALUE);
		cmds[i].device = qcul_device_ordinal(qcul_stream_device(id));
		cmds[i].stream_value = values[i];
		cmds[i].stream_value.stream = id;
	}
	err = qcul_post(cmds, count);
	if (!err)
		qcul_progress_moved();
	return err;
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
				 unsigned int flags)
{
	return QCUL_READY(one(stream, addr, value, 4, flags, false));
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
				 unsigned int flags)
{
	return QCUL_READY(one(stream, addr, value, 8, flags, false));
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
				unsigned int flags)
{
	return QCUL_READY(one(stream, addr, value, 4, flags, true));
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
				unsigned int flags)
{
	return QCUL_READY(one(stream, addr, value, 8, flags, true));
}

/* 0: it needs no record. Negative: it is not valid. */
static int record_of(const CUstreamBatchMemOpParams *p, struct qcu_stream_value *v)
{
	bool good = false;

	switch (p->operation) {
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		good = write_record(v, p->writeValue.address, p->writeValue.value, 4,
				    p->writeValue.flags);
		break;
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		good = write_record(v, p->writeValue.address, p->writeValue.value64, 8,
				    p->writeValue.flags);
		break;
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		good = wait_record(v, p->waitValue.address, p->waitValue.value, 4,
				   p->waitValue.flags);
		break;
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		good = wait_record(v, p->waitValue.address, p->waitValue.value64, 8,
				   p->waitValue.flags);
		break;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		return p->flushRemoteWrites.flags ? -1 : 0; /* there is no remote writer */
	case CU_STREAM_MEM_OP_BARRIER:
		/* Work of one stream is in order, and its writes are visible, anyway. */
		return p->memoryBarrier.flags > CU_STREAM_MEMORY_BARRIER_TYPE_GPU ? -1 : 0;
	default:
		return -1;
	}
	return good && v->addr && v->addr % v->bytes == 0 ? 1 : -1;
}

static cudaError_t batch(cudaStream_t stream, unsigned int count,
			 const CUstreamBatchMemOpParams *params)
{
	struct qCUcmd cmds[QCUL_VALUES];
	unsigned int i, n = 0;
	uint32_t id;
	cudaError_t err = begin(stream, &id);

	if (err)
		return err;
	/* None of them is queued if one is not valid. */
	for (i = 0; i < count; i++) {
		struct qcu_stream_value v = {.stream = id};

		if (record_of(&params[i], &v) < 0)
			return cudaErrorInvalidValue;
	}
	for (i = 0; i < count && !err; i++) {
		cmds[n] = qcul_cmd(QCU_OP_STREAM_VALUE);
		cmds[n].device = qcul_device_ordinal(qcul_stream_device(id));
		cmds[n].stream_value.stream = id;
		n += record_of(&params[i], &cmds[n].stream_value) > 0;
		if (n == QCUL_VALUES || (i + 1 == count && n)) {
			err = qcul_post(cmds, n);
			n = 0;
		}
	}
	if (!err)
		qcul_progress_moved();
	return err;
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
			       CUstreamBatchMemOpParams *params, unsigned int flags)
{
	/* CUDA takes up to 256 at once. */
	if (count > 256 || (count && !params) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	return QCUL_READY(count ? batch(stream, count, params) : cudaSuccess);
}

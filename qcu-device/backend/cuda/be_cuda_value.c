// SPDX-License-Identifier: GPL-2.0-or-later
/* Numbers that streams write to memory or wait for, by the driver's own functions. */
#include "qcu-device/backend/cuda/be_cuda.h"

static int write_value(struct be *be, CUstream s, const struct qcu_stream_value *v)
{
	unsigned int flags = v->flags & QCU_VALUE_UNORDERED
				     ? CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER
				     : CU_STREAM_WRITE_VALUE_DEFAULT;
	PFN_cuStreamWriteValue32_v11070 write32;
	PFN_cuStreamWriteValue64_v11070 write64;
	int ret;

	if (v->bytes == 8) {
		ret = cu_driver_function(be, "cuStreamWriteValue64", &write64);
		return ret ? ret : (int)write64(s, v->addr, v->value, flags);
	}
	ret = cu_driver_function(be, "cuStreamWriteValue32", &write32);
	return ret ? ret : (int)write32(s, v->addr, (cuuint32_t)v->value, flags);
}

static int wait_value(struct be *be, CUstream s, const struct qcu_stream_value *v)
{
	static const unsigned int how[] = {
		[QCU_VALUE_GEQ] = CU_STREAM_WAIT_VALUE_GEQ,
		[QCU_VALUE_EQ] = CU_STREAM_WAIT_VALUE_EQ,
		[QCU_VALUE_AND] = CU_STREAM_WAIT_VALUE_AND,
		[QCU_VALUE_NOR] = CU_STREAM_WAIT_VALUE_NOR,
	};
	unsigned int flags =
		how[v->flags & 3] | (v->flags & QCU_VALUE_FLUSH ? CU_STREAM_WAIT_VALUE_FLUSH : 0);
	PFN_cuStreamWaitValue32_v11070 wait32;
	PFN_cuStreamWaitValue64_v11070 wait64;
	int ret;

	if (v->bytes == 8) {
		ret = cu_driver_function(be, "cuStreamWaitValue64", &wait64);
		return ret ? ret : (int)wait64(s, v->addr, v->value, flags);
	}
	ret = cu_driver_function(be, "cuStreamWaitValue32", &wait32);
	return ret ? ret : (int)wait32(s, v->addr, (cuuint32_t)v->value, flags);
}

int cu_stream_value(struct be *be, struct be_stream *s, const struct qcu_stream_value *v)
{
	int ret = cu_stream_use(be, s);

	if (ret)
		return ret;
	return v->what == QCU_VALUE_WRITE ? write_value(be, s->s, v) : wait_value(be, s->s, v);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Streams that write numbers to memory, and wait for numbers there (value.c). */
#ifndef QCUL_VALUE_H
#define QCUL_VALUE_H

#include "qcu-library/driver_base/driver.h"

#define QCUL_VALUES 64u /* records in one message */

/* Queues up to QCUL_VALUES records, one after the other. The stream is filled in. */
cudaError_t qcul_stream_values(cudaStream_t stream, const struct qcu_stream_value *values,
			       unsigned int count);

#endif

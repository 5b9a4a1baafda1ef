/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Work in streams: is it done? */
#ifndef QCUL_STREAM_H
#define QCUL_STREAM_H

#include "qcu-library/module/module.h"

cudaError_t qcul_stream_wait(uint32_t stream);
cudaError_t qcul_query_event(uint32_t event);
cudaError_t qcul_query_stream(uint32_t stream);

#endif

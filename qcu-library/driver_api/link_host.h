/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Device code in the host's object files and archives. */
#ifndef QCUL_LINK_HOST_H
#define QCUL_LINK_HOST_H

#include <cuda_runtime_api.h>

/* Gets each fat binary. An error ends the search, and is its result. */
struct qcul_fatbin_sink {
	cudaError_t (*add)(void *ctx, const void *fatbin, size_t bytes);
	void *ctx;
};

/* cudaErrorInvalidKernelImage: it is no such file, is damaged, or has no device code. */
cudaError_t qcul_host_object(const void *data, size_t size, const struct qcul_fatbin_sink *to);
cudaError_t qcul_host_library(const void *data, size_t size, const struct qcul_fatbin_sink *to);

#endif

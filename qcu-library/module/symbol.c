// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where __device__ and __constant__ variables are. */
#include "qcu-library/module/module.h"

cudaError_t qcul_symbol_address(const void *symbol, size_t count, size_t offset, void **addr)
{
	void *base;
	size_t size;
	cudaError_t err = qcul_ready();

	if (!err)
		err = qcul_variable(symbol, &base, &size);
	if (err)
		return err;
	if (offset > size || count > size - offset)
		return cudaErrorInvalidValue;
	*addr = (char *)base + offset;
	return cudaSuccess;
}

bool qcul_symbol_kind_ok(enum cudaMemcpyKind kind, enum cudaMemcpyKind way)
{
	return kind == way || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
}

cudaError_t cudaGetSymbolAddress(void **addr, const void *symbol)
{
	size_t size;
	cudaError_t err = addr ? qcul_ready() : cudaErrorInvalidValue;

	return qcul_done(err ? err : qcul_variable(symbol, addr, &size));
}

cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol)
{
	void *addr;
	cudaError_t err = size ? qcul_ready() : cudaErrorInvalidValue;

	return qcul_done(err ? err : qcul_variable(symbol, &addr, size));
}

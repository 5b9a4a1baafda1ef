// SPDX-License-Identifier: LGPL-2.1-or-later
/* Copies to and from __device__ and __constant__ variables. */
#include "qcu-library/copy/copy.h"

cudaError_t qcul_copy_to_symbol(const void *symbol, const void *src, size_t count, size_t offset,
				enum cudaMemcpyKind kind, cudaStream_t stream, bool sync)
{
	struct qcul_copy c = {
		.src = src,
		.width = count,
		.height = 1,
		.kind = kind,
		.sync = sync,
	};
	void *addr;
	cudaError_t err;

	if (!qcul_symbol_kind_ok(kind, cudaMemcpyHostToDevice))
		return cudaErrorInvalidMemcpyDirection;
	err = qcul_symbol_address(symbol, count, offset, &addr);
	if (err)
		return err;
	c.dst = addr;
	return qcul_copy(&c, stream);
}

cudaError_t qcul_copy_from_symbol(void *dst, const void *symbol, size_t count, size_t offset,
				  enum cudaMemcpyKind kind, cudaStream_t stream, bool sync)
{
	struct qcul_copy c = {
		.dst = dst,
		.width = count,
		.height = 1,
		.kind = kind,
		.sync = sync,
	};
	void *addr;
	cudaError_t err;

	if (!qcul_symbol_kind_ok(kind, cudaMemcpyDeviceToHost))
		return cudaErrorInvalidMemcpyDirection;
	err = qcul_symbol_address(symbol, count, offset, &addr);
	if (err)
		return err;
	c.src = addr;
	return qcul_copy(&c, stream);
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count, size_t offset,
			       enum cudaMemcpyKind kind)
{
	return qcul_done(
		qcul_copy_to_symbol(symbol, src, count, offset, kind, cudaStreamLegacy, true));
}

cudaError_t cudaMemcpyToSymbol_ptds(const void *symbol, const void *src, size_t count,
				    size_t offset, enum cudaMemcpyKind kind)
{
	return qcul_done(
		qcul_copy_to_symbol(symbol, src, count, offset, kind, cudaStreamPerThread, true));
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count,
				    size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return qcul_done(qcul_copy_to_symbol(symbol, src, count, offset, kind, stream, false));
}

cudaError_t cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count, size_t offset,
				 enum cudaMemcpyKind kind)
{
	return qcul_done(
		qcul_copy_from_symbol(dst, symbol, count, offset, kind, cudaStreamLegacy, true));
}

cudaError_t cudaMemcpyFromSymbol_ptds(void *dst, const void *symbol, size_t count, size_t offset,
				      enum cudaMemcpyKind kind)
{
	return qcul_done(
		qcul_copy_from_symbol(dst, symbol, count, offset, kind, cudaStreamPerThread, true));
}

cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t count, size_t offset,
				      enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return qcul_done(qcul_copy_from_symbol(dst, symbol, count, offset, kind, stream, false));
}

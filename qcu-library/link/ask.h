/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Made by scripts/commands/generate from include/commands.list; do not edit. */
/* One call for each command. An answer is stored if there is no error. */
#ifndef QCUL_ASK_H
#define QCUL_ASK_H

#include "qcu-library/link/link.h"

cudaError_t qcul_ask_stream_attr_set(int device, uint32_t stream, uint32_t attr, const void *value);
cudaError_t qcul_ask_stream_attr_get(int device, uint32_t stream, uint32_t attr, void *value);
cudaError_t qcul_ask_stream_attr_copy(int device, uint32_t to, uint32_t from);
cudaError_t qcul_ask_peer_access(int device, uint32_t peer, uint32_t enable);
cudaError_t qcul_ask_peer_info(int device, uint32_t peer, uint32_t attr, int32_t *value);
cudaError_t qcul_ask_occupancy(int device, uint32_t kernel, uint32_t block_threads,
			       uint64_t dynamic_shared, uint32_t flags, uint32_t *blocks);
cudaError_t qcul_ask_occupancy_shared(int device, uint32_t kernel, uint32_t blocks,
				      uint32_t block_threads, uint64_t *bytes);
cudaError_t qcul_ask_func_set(int device, uint32_t kernel, uint32_t attr, int32_t value);
cudaError_t qcul_ask_limit_set(int device, uint32_t limit, uint64_t value);
cudaError_t qcul_ask_limit_get(int device, uint32_t limit, uint64_t *value);
cudaError_t qcul_ask_pool_create(int device, uint32_t pool, uint64_t max_size);
cudaError_t qcul_ask_pool_destroy(int device, uint32_t pool);
cudaError_t qcul_ask_pool_set(int device, uint32_t pool, uint32_t attr, uint64_t value);
cudaError_t qcul_ask_pool_get(int device, uint32_t pool, uint32_t attr, uint64_t *value);
cudaError_t qcul_ask_pool_trim(int device, uint32_t pool, uint64_t keep);
cudaError_t qcul_ask_pool_access_set(int device, uint32_t pool, uint32_t peer, uint32_t flags);
cudaError_t qcul_ask_pool_access_get(int device, uint32_t pool, uint32_t peer, uint32_t *flags);
cudaError_t qcul_ask_array_destroy(int device, uint32_t array);
cudaError_t qcul_ask_va_reserve(int device, uint64_t size, uint64_t align, uint64_t *addr);
cudaError_t qcul_ask_va_free(int device, uint64_t addr, uint64_t size);
cudaError_t qcul_ask_phys_create(int device, uint64_t size, uint32_t mem, uint32_t flags,
				 uint32_t *compressible);
cudaError_t qcul_ask_phys_release(int device, uint32_t mem);
cudaError_t qcul_ask_phys_map(int device, uint64_t addr, uint64_t size, uint64_t offset,
			      uint32_t mem);
cudaError_t qcul_ask_phys_unmap(int device, uint64_t addr, uint64_t size);
cudaError_t qcul_ask_phys_access_set(int device, uint64_t addr, uint64_t size, uint32_t peer,
				     uint32_t flags);
cudaError_t qcul_ask_phys_access_get(int device, uint64_t addr, uint32_t peer, uint32_t *flags);
cudaError_t qcul_ask_phys_grain(int device, uint32_t recommended, uint64_t *bytes);
cudaError_t qcul_ask_phys_export(int device, uint32_t mem, struct qcu_ipc_token *token);
cudaError_t qcul_ask_phys_import(int device, const struct qcu_ipc_token *token, uint32_t mem,
				 uint64_t *size);
cudaError_t qcul_ask_green_parts(int device, uint32_t parent, uint32_t groups, uint32_t flags,
				 uint32_t least, uint32_t *made, uint32_t *sms, uint32_t *least_sms,
				 uint32_t *align, uint32_t *rest_sms, uint32_t *rest_least,
				 uint32_t *rest_align);
cudaError_t qcul_ask_green_create(int device, uint32_t green, uint32_t parent, uint32_t groups,
				  uint32_t flags, uint32_t least, const void *members);
cudaError_t qcul_ask_green_destroy(int device, uint32_t green);
cudaError_t qcul_ask_green_stream(int device, uint32_t stream, uint32_t flags, int32_t priority,
				  uint32_t green);

#endif

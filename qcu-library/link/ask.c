// SPDX-License-Identifier: LGPL-2.1-or-later
/* Made by scripts/commands/generate from include/commands.list; do not edit. */
#include <string.h>

#include "qcu-library/link/ask.h"

cudaError_t qcul_ask_stream_attr_set(int device, uint32_t stream, uint32_t attr, const void *value)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_STREAM_ATTR_SET, device);

	cmd.stream_attr_set.stream = stream;
	cmd.stream_attr_set.attr = attr;
	memcpy(cmd.stream_attr_set.value, value, sizeof(cmd.stream_attr_set.value));
	return qcul_send(&cmd, 1);
}

cudaError_t qcul_ask_stream_attr_get(int device, uint32_t stream, uint32_t attr, void *value)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_STREAM_ATTR_GET, device);
	cudaError_t err;

	cmd.stream_attr_get.stream = stream;
	cmd.stream_attr_get.attr = attr;
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	memcpy(value, cmd.stream_attr_get.value, sizeof(cmd.stream_attr_get.value));
	return cudaSuccess;
}

cudaError_t qcul_ask_stream_attr_copy(int device, uint32_t to, uint32_t from)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_STREAM_ATTR_COPY, device);

	cmd.stream_attr_copy.to = to;
	cmd.stream_attr_copy.from = from;
	return qcul_send(&cmd, 1);
}

cudaError_t qcul_ask_peer_access(int device, uint32_t peer, uint32_t enable)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_PEER_ACCESS, device);

	cmd.peer_access.peer = peer;
	cmd.peer_access.enable = enable;
	return qcul_send(&cmd, 1);
}

cudaError_t qcul_ask_peer_info(int device, uint32_t peer, uint32_t attr, int32_t *value)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_PEER_INFO, device);
	cudaError_t err;

	cmd.peer_info.peer = peer;
	cmd.peer_info.attr = attr;
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	*value = cmd.peer_info.value;
	return cudaSuccess;
}

cudaError_t qcul_ask_occupancy(int device, uint32_t kernel, uint32_t block_threads,
			       uint64_t dynamic_shared, uint32_t flags, uint32_t *blocks)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_OCCUPANCY, device);
	cudaError_t err;

	cmd.occupancy.kernel = kernel;
	cmd.occupancy.block_threads = block_threads;
	cmd.occupancy.dynamic_shared = dynamic_shared;
	cmd.occupancy.flags = flags;
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	*blocks = cmd.occupancy.blocks;
	return cudaSuccess;
}

cudaError_t qcul_ask_occupancy_shared(int device, uint32_t kernel, uint32_t blocks,
				      uint32_t block_threads, uint64_t *bytes)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_OCCUPANCY_SHARED, device);
	cudaError_t err;

	cmd.occupancy_shared.kernel = kernel;
	cmd.occupancy_shared.blocks = blocks;
	cmd.occupancy_shared.block_threads = block_threads;
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	*bytes = cmd.occupancy_shared.bytes;
	return cudaSuccess;
}

cudaError_t qcul_ask_func_set(int device, uint32_t kernel, uint32_t attr, int32_t value)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_FUNC_SET, device);

	cmd.func_set.kernel = kernel;
	cmd.func_set.attr = attr;
	cmd.func_set.value = value;
	return qcul_send(&cmd, 1);
}

cudaError_t qcul_ask_limit_set(int device, uint32_t limit, uint64_t value)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_LIMIT_SET, device);

	cmd.limit_set.limit = limit;
	cmd.limit_set.value = value;
	return qcul_send(&cmd, 1);
}

cudaError_t qcul_ask_limit_get(int device, uint32_t limit, uint64_t *value)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_LIMIT_GET, device);
	cudaError_t err;

	cmd.limit_get.limit = limit;
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	*value = cmd.limit_get.value;
	return cudaSuccess;
}

cudaError_t qcul_ask_pool_create(int device, uint32_t pool, uint64_t max_size)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_POOL_CREATE, device);

	cmd.pool_create.pool = pool;
	cmd.pool_create.max_size = max_size;
	return qcul_send(&cmd, 1);
}

cudaError_t qcul_ask_pool_destroy(int device, uint32_t pool)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_POOL_DESTROY, device);

	cmd.pool_destroy.pool = pool;
	return qcul_send(&cmd, 1);
}

cudaError_t qcul_ask_pool_set(int device, uint32_t pool, uint32_t attr, uint64_t value)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_POOL_SET, device);

	cmd.pool_set.pool = pool;
	cmd.pool_set.attr = attr;
	cmd.pool_set.value = value;
	return qcul_send(&cmd, 1);
}

cudaError_t qcul_ask_pool_get(int device, uint32_t pool, uint32_t attr, uint64_t *value)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_POOL_GET, device);
	cudaError_t err;

	cmd.pool_get.pool = pool;
	cmd.pool_get.attr = attr;
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	*value = cmd.pool_get.value;
	return cudaSuccess;
}

cudaError_t qcul_ask_pool_trim(int device, uint32_t pool, uint64_t keep)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_POOL_TRIM, device);

	cmd.pool_trim.pool = pool;
	cmd.pool_trim.keep = keep;
	return qcul_send(&cmd, 1);
}

cudaError_t qcul_ask_pool_access_set(int device, uint32_t pool, uint32_t peer, uint32_t flags)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_POOL_ACCESS_SET, device);

	cmd.pool_access_set.pool = pool;
	cmd.pool_access_set.peer = peer;
	cmd.pool_access_set.flags = flags;
	return qcul_send(&cmd, 1);
}

cudaError_t qcul_ask_pool_access_get(int device, uint32_t pool, uint32_t peer, uint32_t *flags)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_POOL_ACCESS_GET, device);
	cudaError_t err;

	cmd.pool_access_get.pool = pool;
	cmd.pool_access_get.peer = peer;
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	*flags = cmd.pool_access_get.flags;
	return cudaSuccess;
}

cudaError_t qcul_ask_array_destroy(int device, uint32_t array)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_ARRAY_DESTROY, device);

	cmd.array_destroy.array = array;
	return qcul_send(&cmd, 1);
}

cudaError_t qcul_ask_va_reserve(int device, uint64_t size, uint64_t align, uint64_t *addr)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_VA_RESERVE, device);
	cudaError_t err;

	cmd.va_reserve.size = size;
	cmd.va_reserve.align = align;
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	*addr = cmd.va_reserve.addr;
	return cudaSuccess;
}

cudaError_t qcul_ask_va_free(int device, uint64_t addr, uint64_t size)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_VA_FREE, device);

	cmd.va_free.addr = addr;
	cmd.va_free.size = size;
	return qcul_send(&cmd, 1);
}

cudaError_t qcul_ask_phys_create(int device, uint64_t size, uint32_t mem, uint32_t flags,
				 uint32_t *compressible)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_PHYS_CREATE, device);
	cudaError_t err;

	cmd.phys_create.size = size;
	cmd.phys_create.mem = mem;
	cmd.phys_create.flags = flags;
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	*compressible = cmd.phys_create.compressible;
	return cudaSuccess;
}

cudaError_t qcul_ask_phys_release(int device, uint32_t mem)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_PHYS_RELEASE, device);

	cmd.phys_release.mem = mem;
	return qcul_send(&cmd, 1);
}

cudaError_t qcul_ask_phys_map(int device, uint64_t addr, uint64_t size, uint64_t offset,
			      uint32_t mem)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_PHYS_MAP, device);

	cmd.phys_map.addr = addr;
	cmd.phys_map.size = size;
	cmd.phys_map.offset = offset;
	cmd.phys_map.mem = mem;
	return qcul_send(&cmd, 1);
}

cudaError_t qcul_ask_phys_unmap(int device, uint64_t addr, uint64_t size)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_PHYS_UNMAP, device);

	cmd.phys_unmap.addr = addr;
	cmd.phys_unmap.size = size;
	return qcul_send(&cmd, 1);
}

cudaError_t qcul_ask_phys_access_set(int device, uint64_t addr, uint64_t size, uint32_t peer,
				     uint32_t flags)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_PHYS_ACCESS_SET, device);

	cmd.phys_access_set.addr = addr;
	cmd.phys_access_set.size = size;
	cmd.phys_access_set.peer = peer;
	cmd.phys_access_set.flags = flags;
	return qcul_send(&cmd, 1);
}

cudaError_t qcul_ask_phys_access_get(int device, uint64_t addr, uint32_t peer, uint32_t *flags)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_PHYS_ACCESS_GET, device);
	cudaError_t err;

	cmd.phys_access_get.addr = addr;
	cmd.phys_access_get.peer = peer;
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	*flags = cmd.phys_access_get.flags;
	return cudaSuccess;
}

cudaError_t qcul_ask_phys_grain(int device, uint32_t recommended, uint64_t *bytes)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_PHYS_GRAIN, device);
	cudaError_t err;

	cmd.phys_grain.recommended = recommended;
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	*bytes = cmd.phys_grain.bytes;
	return cudaSuccess;
}

cudaError_t qcul_ask_phys_export(int device, uint32_t mem, struct qcu_ipc_token *token)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_PHYS_EXPORT, device);
	cudaError_t err;

	cmd.phys_export.mem = mem;
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	*token = cmd.phys_export.token;
	return cudaSuccess;
}

cudaError_t qcul_ask_phys_import(int device, const struct qcu_ipc_token *token, uint32_t mem,
				 uint64_t *size)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_PHYS_IMPORT, device);
	cudaError_t err;

	cmd.phys_import.token = *token;
	cmd.phys_import.mem = mem;
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	*size = cmd.phys_import.size;
	return cudaSuccess;
}

cudaError_t qcul_ask_green_parts(int device, uint32_t parent, uint32_t groups, uint32_t flags,
				 uint32_t least, uint32_t *made, uint32_t *sms, uint32_t *least_sms,
				 uint32_t *align, uint32_t *rest_sms, uint32_t *rest_least,
				 uint32_t *rest_align)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_GREEN_PARTS, device);
	cudaError_t err;

	cmd.green_parts.parent = parent;
	cmd.green_parts.groups = groups;
	cmd.green_parts.flags = flags;
	cmd.green_parts.least = least;
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	*made = cmd.green_parts.made;
	*sms = cmd.green_parts.sms;
	*least_sms = cmd.green_parts.least_sms;
	*align = cmd.green_parts.align;
	*rest_sms = cmd.green_parts.rest_sms;
	*rest_least = cmd.green_parts.rest_least;
	*rest_align = cmd.green_parts.rest_align;
	return cudaSuccess;
}

cudaError_t qcul_ask_green_create(int device, uint32_t green, uint32_t parent, uint32_t groups,
				  uint32_t flags, uint32_t least, const void *members)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_GREEN_CREATE, device);

	cmd.green_create.green = green;
	cmd.green_create.parent = parent;
	cmd.green_create.groups = groups;
	cmd.green_create.flags = flags;
	cmd.green_create.least = least;
	memcpy(cmd.green_create.members, members, sizeof(cmd.green_create.members));
	return qcul_send(&cmd, 1);
}

cudaError_t qcul_ask_green_destroy(int device, uint32_t green)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_GREEN_DESTROY, device);

	cmd.green_destroy.green = green;
	return qcul_send(&cmd, 1);
}

cudaError_t qcul_ask_green_stream(int device, uint32_t stream, uint32_t flags, int32_t priority,
				  uint32_t green)
{
	struct qCUcmd cmd = qcul_cmd_for(QCU_OP_GREEN_STREAM, device);

	cmd.green_stream.stream = stream;
	cmd.green_stream.flags = flags;
	cmd.green_stream.priority = priority;
	cmd.green_stream.green = green;
	return qcul_send(&cmd, 1);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which commands make, set or end an object of a session, and so are kept (lanes/kept.h). A command
 * that is not here leaves nothing behind but contents, which are saved from where they are, or
 * something that cannot be saved yet; save.c finds the latter.
 */
#ifndef QCU_KEEPING_H
#define QCU_KEEPING_H

#include "qcu-device/commands/commands.h"

/*
 * X(NAME, name, does, kind, id, key, of): the command does this to the object of this kind with the
 * number, or address, in the field `id`. A setting is of the field `key` of it; `message`: of the
 * thing that the message names; `each`: it overtakes none. The object depends on the one that the
 * field `of` names; `message`: a texture on the array in its description.
 */
/* clang-format off */
#define KEPT_COMMANDS(X) \
	X(STREAM_CREATE, stream_create, MAKES, HANDLE_STREAM, stream, none, none) \
	X(STREAM_ATTR_SET, stream_attr_set, SETS, HANDLE_STREAM, stream, attr, none) \
	X(STREAM_ATTR_COPY, stream_attr_copy, COPIES, HANDLE_STREAM, to, none, none) \
	X(STREAM_DESTROY, stream_destroy, ENDS, HANDLE_STREAM, stream, none, none) \
	X(GREEN_CREATE, green_create, MAKES, HANDLE_GREEN, green, none, parent) \
	X(GREEN_DESTROY, green_destroy, ENDS, HANDLE_GREEN, green, none, none) \
	X(GREEN_STREAM, green_stream, MAKES, HANDLE_STREAM, stream, none, green) \
	X(EVENT_CREATE, event_create, MAKES, HANDLE_EVENT, event, none, none) \
	X(EVENT_DESTROY, event_destroy, ENDS, HANDLE_EVENT, event, none, none) \
	X(MODULE_LOAD, module_load, MAKES, HANDLE_MODULE, module, none, none) \
	X(VAR_FIND, var_find, SETS, HANDLE_MODULE, module, message, none) \
	X(VAR_BIND, var_bind, SETS, HANDLE_MODULE, module, message, none) \
	X(MODULE_UNLOAD, module_unload, ENDS, HANDLE_MODULE, module, none, none) \
	X(KERNEL_FIND, kernel_find, MAKES, HANDLE_KERNEL, kernel, none, module) \
	X(FUNC_SET, func_set, SETS, HANDLE_KERNEL, kernel, attr, none) \
	X(POOL_CREATE, pool_create, MAKES, HANDLE_POOL, pool, none, none) \
	X(POOL_SET, pool_set, SETS, HANDLE_POOL, pool, attr, none) \
	X(POOL_ACCESS_SET, pool_access_set, SETS, HANDLE_POOL, pool, peer, none) \
	X(POOL_DESTROY, pool_destroy, ENDS, HANDLE_POOL, pool, none, none) \
	X(MALLOC, malloc, MAKES, KEPT_MEMORY, ptr, none, none) \
	X(MALLOC_ASYNC, malloc_async, MAKES, KEPT_MEMORY, ptr, none, pool) \
	X(FREE, free, ENDS, KEPT_MEMORY, ptr, none, none) \
	X(FREE_ASYNC, free_async, ENDS, KEPT_MEMORY, ptr, none, none) \
	X(ARRAY_CREATE, array_create, MAKES, HANDLE_ARRAY, array, none, mem) \
	X(ARRAY_DESTROY, array_destroy, ENDS, HANDLE_ARRAY, array, none, none) \
	X(TEXTURE_CREATE, texture_create, MAKES, KEPT_TEXTURE, object, none, message) \
	X(TEXTURE_DESTROY, texture_destroy, ENDS, KEPT_TEXTURE, object, none, none) \
	X(SURFACE_CREATE, surface_create, MAKES, KEPT_SURFACE, object, none, array) \
	X(SURFACE_DESTROY, surface_destroy, ENDS, KEPT_SURFACE, object, none, none) \
	X(LINK_CREATE, link_create, MAKES, HANDLE_LINK, link, none, none) \
	X(LINK_ADD, link_add, SETS, HANDLE_LINK, link, each, none) \
	X(LINK_DESTROY, link_destroy, ENDS, HANDLE_LINK, link, none, none) \
	X(COND_CREATE, cond_create, MAKES, HANDLE_COND, cond, none, graph) \
	X(COND_DESTROY, cond_destroy, ENDS, HANDLE_COND, cond, none, none) \
	X(GRAPH_MAKE, graph_make, MAKES, HANDLE_GRAPH, graph, none, none) \
	X(GRAPH_UPDATE, graph_update, SETS_NODES, HANDLE_GRAPH, graph, none, none) \
	X(GRAPH_DESTROY, graph_destroy, ENDS, HANDLE_GRAPH, graph, none, none) \
	X(LIMIT_SET, limit_set, MAKES, KEPT_SETTING, limit, none, none) \
	X(PEER_ACCESS, peer_access, MAKES, KEPT_SETTING, peer, none, none) \
	X(DEVICE_RESET, device_reset, RESETS, KEPT_SETTING, rsvd, none, none) \
	X(MAP, map, MAKES, KEPT_MAP, va, none, none) \
	X(UNMAP, unmap, ENDS_RANGE, KEPT_MAP, va, none, none) \
	X(WATCH, watch, MAKES, KEPT_PAGE, buf.addr, none, none) \
	X(THREAD_EXIT, thread_exit, ENDS_THREAD, HANDLE_STREAM, rsvd, none, none) \
	X(LIB_ASK, lib_ask, LIBRARY, HANDLE_LIBRARY, stream, none, none) \
	X(LIB_CALL, lib_call, LIBRARY, HANDLE_LIBRARY, stream, none, none)
/* clang-format on */

/*
 * All other commands, X(NAME, why): why the command need not be kept. keeping.c is not compiled if
 * a command is in neither of the two lists, or in both.
 *
 * WORK: it changes contents, which are saved from where they are, or is done when nothing works.
 * ASKS: it leaves nothing behind.
 * WRITTEN: save.c writes on its own what it has left.
 * DEVICE: it never comes to a mirror that exists.
 * REFUSED: what it makes is found by save.c, and the session is not saved.
 */
/* clang-format off */
#define UNKEPT_COMMANDS(X) \
	X(COPY_H2D, WORK) X(COPY_D2H, WORK) X(COPY_D2D, WORK) X(COPY_SMALL, WORK) X(MEMSET, WORK) \
	X(ARRAY_WRITE, WORK) X(ARRAY_READ, WORK) X(ARRAY_DEVICE, WORK) X(ARRAY_COPY, WORK) \
	X(RECT_H2D, WORK) X(RECT_D2H, WORK) X(RECT_D2D, WORK) X(LAUNCH, WORK) \
	X(GRAPH_LAUNCH, WORK) X(STREAM_WAIT_EVENT, WORK) X(STREAM_VALUE, WORK) X(HOST_FUNC, WORK) \
	X(POOL_TRIM, WORK) \
	X(INFO, ASKS) X(DEVICE_INFO, ASKS) X(DEVICE_SYNC, ASKS) X(MEM_INFO, ASKS) \
	X(PEER_INFO, ASKS) X(VM_USE, ASKS) X(SENSORS, ASKS) X(STREAM_SYNC, ASKS) \
	X(STREAM_QUERY, ASKS) X(STREAM_ATTR_GET, ASKS) X(EVENT_SYNC, ASKS) X(EVENT_QUERY, ASKS) \
	X(EVENT_ELAPSED, ASKS) X(KERNEL_INFO, ASKS) X(OCCUPANCY, ASKS) X(OCCUPANCY_SHARED, ASKS) \
	X(OCCUPANCY_CLUSTER, ASKS) X(STATS, ASKS) X(MODULE_NAMES, ASKS) X(LIMIT_GET, ASKS) \
	X(POOL_GET, ASKS) X(POOL_ACCESS_GET, ASKS) X(PHYS_ACCESS_GET, ASKS) X(PHYS_GRAIN, ASKS) \
	X(TENSOR_MAP, ASKS) X(GREEN_PARTS, ASKS) X(LINK_COMPLETE, ASKS) \
	X(HOST_REGISTER, WRITTEN) X(HOST_UNREGISTER, WRITTEN) X(EVENT_RECORD, WRITTEN) \
	X(PRINT_READ, WRITTEN) X(HOST_NEXT, WRITTEN) \
	X(OPEN, DEVICE) X(CLOSE, DEVICE) \
	X(MANAGED, WRITTEN) X(MANAGED_END, WRITTEN) X(MANAGED_MOVE, WORK) \
	X(IPC_MEM_EXPORT, REFUSED) X(IPC_MEM_OPEN, REFUSED) X(IPC_MEM_CLOSE, REFUSED) \
	X(IPC_EVENT_EXPORT, REFUSED) X(IPC_EVENT_OPEN, REFUSED) X(RESULT_READ, REFUSED) \
	X(VA_RESERVE, WRITTEN) X(VA_FREE, WRITTEN) X(PHYS_CREATE, WRITTEN) \
	X(PHYS_RELEASE, WRITTEN) X(PHYS_MAP, WRITTEN) X(PHYS_UNMAP, WRITTEN) \
	X(PHYS_ACCESS_SET, WRITTEN) X(PHYS_EXPORT, REFUSED) X(PHYS_IMPORT, REFUSED)
/* clang-format on */

/* The object of a library to which calls are kept that are repeated (lib_repeats). */
#define MIR_REPEATED 0u

/* What a command does. It may be asked about any number. */
enum kept_does mir_kept_does(uint16_t op);

/* The kind of object that the command is about, and its number, as an answer has it. */
bool mir_kept_name(const struct qCUcmd *cmd, struct kept_name *name);

/* The key of a kept update: of the node with this number, or of its parameters alone. */
static inline uint64_t mir_kept_node(uint32_t index, bool args)
{
	return (uint64_t)index << 1 | args;
}

/* The command has been carried out: keeps it, or drops what it has ended. */
void mir_keep(struct call *c);

#endif

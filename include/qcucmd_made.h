/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Made by scripts/commands/generate from include/commands.list; do not edit. */
#ifndef QCUCMD_MADE_H
#define QCUCMD_MADE_H

#include "qcucmd_fields.h"

struct qcu_stream_create {
	__u32 stream;
	__u32 flags;
	__s32 priority;
};

struct qcu_stream_destroy {
	__u32 stream;
};

struct qcu_stream_wait_event {
	__u32 stream;
	__u32 event;
	__u32 flags;
};

/* attr: cudaStreamAttrID. value: the first bytes of a cudaStreamAttrValue. */
struct qcu_stream_attr_set {
	__u32 stream;
	__u32 attr;
	__u8 value[QCU_STREAM_ATTR];
};

struct qcu_stream_attr_get {
	__u32 stream;
	__u32 attr;
	__u8 value[QCU_STREAM_ATTR]; /* out */
};

struct qcu_stream_attr_copy {
	__u32 to;
	__u32 from;
};

struct qcu_event_create {
	__u32 event;
	__u32 flags;
};

struct qcu_event_destroy {
	__u32 event;
};

struct qcu_event_sync {
	__u32 event;
};

/* May kernels of the command's device use the memory of another device, the peer? */
struct qcu_peer_access {
	__u32 peer;
	__u32 enable;
};

/* attr: QCU_PEER_*. */
struct qcu_peer_info {
	__u32 peer;
	__u32 attr;
	__s32 value; /* out */
};

struct qcu_occupancy {
	__u32 kernel;
	__u32 block_threads;
	__u64 dynamic_shared;
	__u32 flags;
	__u32 blocks; /* out */
};

/* The largest dynamic shared memory size with which this many blocks fit on a multiprocessor. */
struct qcu_occupancy_shared {
	__u32 kernel;
	__u32 blocks;
	__u32 block_threads;
	__u32 rsvd;
	__u64 bytes; /* out */
};

/* attr: cudaFuncAttribute. */
struct qcu_func_set {
	__u32 kernel;
	__u32 attr;
	__s32 value;
};

struct qcu_cond_destroy {
	__u32 cond;
};

struct qcu_graph_destroy {
	__u32 graph;
};

/* limit: cudaLimit. */
struct qcu_limit_set {
	__u32 limit;
	__u32 rsvd;
	__u64 value;
};

struct qcu_limit_get {
	__u32 limit;
	__u32 rsvd;
	__u64 value; /* out */
};

/*
 * Stream-ordered memory. Each pool belongs to the command's device. max_size 0: the pool has no
 * limit of its own.
 */
struct qcu_pool_create {
	__u32 pool;
	__u32 rsvd;
	__u64 max_size;
};

struct qcu_pool_destroy {
	__u32 pool;
};

/*
 * attr: cudaMemPoolAttr. All attributes up to the last are int or uint64_t, as the backends take
 * them.
 */
struct qcu_pool_set {
	__u32 pool;
	__u32 attr;
	__u64 value;
};

struct qcu_pool_get {
	__u32 pool;
	__u32 attr;
	__u64 value; /* out */
};

struct qcu_pool_trim {
	__u32 pool;
	__u32 rsvd;
	__u64 keep;
};

/* flags: cudaMemAccessFlags. */
struct qcu_pool_access_set {
	__u32 pool;
	__u32 peer;
	__u32 flags;
};

struct qcu_pool_access_get {
	__u32 pool;
	__u32 peer;
	__u32 flags; /* out */
};

struct qcu_array_destroy {
	__u32 array;
};

struct qcu_link_destroy {
	__u32 link;
};

/*
 * Virtual memory. Addresses are reserved on their own (VA_*); the mirror chooses them. Memory
 * without an address (PHYS_*) has a number that the guest chooses, and belongs to the command's
 * device. It can be mapped at several addresses; it stays until its number and all its mappings are
 * gone. PHYS_UNMAP and PHYS_ACCESS_SET are about one or several whole mappings without a gap. align
 * 0: as the device wants it.
 */
struct qcu_va_reserve {
	__u64 size;
	__u64 align;
	__u64 addr; /* out */
};

/* A whole reservation, in which nothing is mapped. */
struct qcu_va_free {
	__u64 addr;
	__u64 size;
};

/* size: a multiple of what PHYS_GRAIN says. compressible: the memory is. */
struct qcu_phys_create {
	__u64 size;
	__u32 mem;
	__u32 flags;
	__u32 compressible; /* out */
	__u32 rsvd;
};

struct qcu_phys_release {
	__u32 mem;
};

struct qcu_phys_map {
	__u64 addr;
	__u64 size;
	__u64 offset;
	__u32 mem;
	__u32 rsvd;
};

struct qcu_phys_unmap {
	__u64 addr;
	__u64 size;
};

/* peer: the device that gets the access. flags: CUmemAccess_flags. */
struct qcu_phys_access_set {
	__u64 addr;
	__u64 size;
	__u32 peer;
	__u32 flags;
};

struct qcu_phys_access_get {
	__u64 addr;
	__u32 peer;
	__u32 flags; /* out */
};

/* recommended 0: the least that is possible. */
struct qcu_phys_grain {
	__u32 recommended;
	__u32 rsvd;
	__u64 bytes; /* out */
};

/* Other processes of the VM may have the memory, too. */
struct qcu_phys_export {
	__u32 mem;
	__u32 rsvd;
	struct qcu_ipc_token token; /* out */
};

struct qcu_phys_import {
	struct qcu_ipc_token token;
	__u32 mem;
	__u32 rsvd;
	__u64 size; /* out */
};

/*
 * Green contexts. A part of a device's multiprocessors has no number: it is said anew how it comes
 * about. `parent` (0: the device) is split into at most `groups` groups of `least` multiprocessors
 * or more, and a rest. groups 0: it is not split, and is the only group. flags:
 * CUdevSmResourceSplit_flags. sms, least_sms, align: of the first group, as CUdevSmResource has
 * them. rest_*: the same of the rest.
 */
struct qcu_green_parts {
	__u32 parent;
	__u32 groups;
	__u32 flags;
	__u32 least;
	__u32 made;	  /* out */
	__u32 sms;	  /* out */
	__u32 least_sms;  /* out */
	__u32 align;	  /* out */
	__u32 rest_sms;	  /* out */
	__u32 rest_least; /* out */
	__u32 rest_align; /* out */
};

/* members: a bit for each group that the context gets; QCU_GREEN_GROUPS: the rest. */
struct qcu_green_create {
	__u32 green;
	__u32 parent;
	__u32 groups;
	__u32 flags;
	__u32 least;
	__u8 members[QCU_GREEN_MEMBERS];
};

/* Its streams can be used until they are destroyed. */
struct qcu_green_destroy {
	__u32 green;
};

/* As stream_create, in whose place flags and priority are. All such streams are non-blocking. */
struct qcu_green_stream {
	__u32 stream;
	__u32 flags;
	__s32 priority;
	__u32 green;
};

/* clang-format off */
#define QCU_COMMANDS_MADE(X) \
	X(48, STREAM_CREATE, stream_create, POST, NONE, QCU_UPTO(qcu_stream_create, priority), ABOUT, stream, none, none, QCU_MAKES) \
	X(49, STREAM_DESTROY, stream_destroy, POST, NONE, QCU_UPTO(qcu_stream_destroy, stream), ABOUT, stream, none, none, 0) \
	X(52, STREAM_WAIT_EVENT, stream_wait_event, POST, NONE, QCU_UPTO(qcu_stream_wait_event, flags), ABOUT, stream, event, none, QCU_WORK) \
	X(53, STREAM_ATTR_SET, stream_attr_set, USR, NONE, QCU_UPTO(qcu_stream_attr_set, value), ALL, none, none, none, QCU_WORK) \
	X(54, STREAM_ATTR_GET, stream_attr_get, USR, NONE, QCU_UPTO(qcu_stream_attr_get, attr), ALL, none, none, none, 0) \
	X(55, STREAM_ATTR_COPY, stream_attr_copy, USR, NONE, QCU_UPTO(qcu_stream_attr_copy, from), ALL, none, none, none, QCU_WORK) \
	X(56, EVENT_CREATE, event_create, POST, NONE, QCU_UPTO(qcu_event_create, flags), ABOUT, none, event, none, 0) \
	X(57, EVENT_DESTROY, event_destroy, POST, NONE, QCU_UPTO(qcu_event_destroy, event), ABOUT, none, event, none, 0) \
	X(59, EVENT_SYNC, event_sync, USR, NONE, QCU_UPTO(qcu_event_sync, event), ABOUT, none, event, recorded, QCU_WAITS) \
	X(22, PEER_ACCESS, peer_access, USR, NONE, QCU_UPTO(qcu_peer_access, enable), ALL, none, none, none, QCU_WORK) \
	X(23, PEER_INFO, peer_info, USR, NONE, QCU_UPTO(qcu_peer_info, attr), ALL, none, none, none, QCU_LOOKS) \
	X(70, OCCUPANCY, occupancy, USR, NONE, QCU_UPTO(qcu_occupancy, flags), FREE, none, none, none, 0) \
	X(100, OCCUPANCY_SHARED, occupancy_shared, USR, NONE, QCU_UPTO(qcu_occupancy_shared, rsvd), ALL, none, none, none, 0) \
	X(71, FUNC_SET, func_set, USR, NONE, QCU_UPTO(qcu_func_set, value), ALL, none, none, none, QCU_WORK) \
	X(94, COND_DESTROY, cond_destroy, POST, NONE, QCU_UPTO(qcu_cond_destroy, cond), ALL, none, none, none, QCU_WORK) \
	X(95, GRAPH_DESTROY, graph_destroy, POST, NONE, QCU_UPTO(qcu_graph_destroy, graph), ALL, none, none, none, QCU_WORK) \
	X(98, LIMIT_SET, limit_set, USR, NONE, QCU_UPTO(qcu_limit_set, value), ALL, none, none, none, QCU_WORK) \
	X(99, LIMIT_GET, limit_get, USR, NONE, QCU_UPTO(qcu_limit_get, rsvd), ALL, none, none, none, 0) \
	X(102, POOL_CREATE, pool_create, USR, NONE, QCU_UPTO(qcu_pool_create, max_size), ALL, none, none, none, QCU_WORK) \
	X(103, POOL_DESTROY, pool_destroy, USR, NONE, QCU_UPTO(qcu_pool_destroy, pool), ALL, none, none, none, QCU_WORK) \
	X(104, POOL_SET, pool_set, USR, NONE, QCU_UPTO(qcu_pool_set, value), ALL, none, none, none, QCU_WORK) \
	X(105, POOL_GET, pool_get, USR, NONE, QCU_UPTO(qcu_pool_get, attr), ALL, none, none, none, 0) \
	X(106, POOL_TRIM, pool_trim, USR, NONE, QCU_UPTO(qcu_pool_trim, keep), ALL, none, none, none, QCU_WORK) \
	X(107, POOL_ACCESS_SET, pool_access_set, USR, NONE, QCU_UPTO(qcu_pool_access_set, flags), ALL, none, none, none, QCU_WORK) \
	X(108, POOL_ACCESS_GET, pool_access_get, USR, NONE, QCU_UPTO(qcu_pool_access_get, peer), ALL, none, none, none, 0) \
	X(113, ARRAY_DESTROY, array_destroy, USR, NONE, QCU_UPTO(qcu_array_destroy, array), ALL, none, none, none, QCU_WORK) \
	X(129, LINK_DESTROY, link_destroy, POST, NONE, QCU_UPTO(qcu_link_destroy, link), ALL, none, none, none, QCU_WORK) \
	X(130, VA_RESERVE, va_reserve, USR, NONE, QCU_UPTO(qcu_va_reserve, align), ALL, none, none, none, QCU_WORK) \
	X(131, VA_FREE, va_free, USR, NONE, QCU_UPTO(qcu_va_free, size), ALL, none, none, none, QCU_WORK) \
	X(132, PHYS_CREATE, phys_create, USR, NONE, QCU_UPTO(qcu_phys_create, flags), ALL, none, none, none, QCU_WORK) \
	X(133, PHYS_RELEASE, phys_release, USR, NONE, QCU_UPTO(qcu_phys_release, mem), ALL, none, none, none, QCU_WORK) \
	X(134, PHYS_MAP, phys_map, USR, NONE, QCU_UPTO(qcu_phys_map, rsvd), ALL, none, none, none, QCU_WORK) \
	X(135, PHYS_UNMAP, phys_unmap, USR, NONE, QCU_UPTO(qcu_phys_unmap, size), ALL, none, none, none, QCU_WORK) \
	X(136, PHYS_ACCESS_SET, phys_access_set, USR, NONE, QCU_UPTO(qcu_phys_access_set, flags), ALL, none, none, none, QCU_WORK) \
	X(137, PHYS_ACCESS_GET, phys_access_get, USR, NONE, QCU_UPTO(qcu_phys_access_get, peer), ALL, none, none, none, 0) \
	X(138, PHYS_GRAIN, phys_grain, USR, NONE, QCU_UPTO(qcu_phys_grain, rsvd), ALL, none, none, none, 0) \
	X(139, PHYS_EXPORT, phys_export, USR, NONE, QCU_UPTO(qcu_phys_export, rsvd), ALL, none, none, none, 0) \
	X(140, PHYS_IMPORT, phys_import, USR, NONE, QCU_UPTO(qcu_phys_import, rsvd), ALL, none, none, none, QCU_WORK) \
	X(145, GREEN_PARTS, green_parts, USR, NONE, QCU_UPTO(qcu_green_parts, least), ALL, none, none, none, QCU_LOOKS) \
	X(146, GREEN_CREATE, green_create, USR, NONE, QCU_UPTO(qcu_green_create, members), ALL, none, none, none, 0) \
	X(147, GREEN_DESTROY, green_destroy, USR, NONE, QCU_UPTO(qcu_green_destroy, green), ALL, none, none, none, 0) \
	X(148, GREEN_STREAM, green_stream, USR, NONE, QCU_UPTO(qcu_green_stream, green), ABOUT, stream, none, none, QCU_MAKES)
/* clang-format on */

#endif

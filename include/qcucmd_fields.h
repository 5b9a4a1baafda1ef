/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The body of each command's record, and the messages and descriptions that commands point to. A
 * field marked "out" is filled in by the answer. qcucmd.h has the record around it, and includes
 * this file.
 */
#ifndef QCUCMD_FIELDS_H
#define QCUCMD_FIELDS_H

#include <linux/types.h>
#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#else
#include <stddef.h>
#endif

#ifdef __cplusplus
#define QCU_ASSERT(cond, text) static_assert(cond, text)
#else
#define QCU_ASSERT(cond, text) _Static_assert(cond, text)
#endif

#ifdef __BYTE_ORDER__
QCU_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little-endian");
#endif

/* ---- records ---- */

/* Memory of the guest process. It is the first member of every command that has a buffer. */
struct qcu_buf {
	__u64 addr;
	__u64 len;
};

/*
 * qCUcmd.flags of a request. The driver sets all of them except POSTED; from user space those must
 * be zero.
 */
#define QCU_F_MSG    0x01 /* message bytes follow */
#define QCU_F_SEGS   0x02 /* a segment table follows */
#define QCU_F_WINDOW 0x04 /* buf is an address in the mirror: in chunks or in registered memory */
#define QCU_F_POSTED 0x08 /* no caller waits for the reply */
#define QCU_F_ALL    0x0f
/* qCUcmd.flags of a reply. */
#define QCU_F_OUTPUT 0x80 /* kernels have printed; PRINT_READ fetches the text */

/* Stream and event numbers. The guest library chooses them. These two streams always exist. */
#define QCU_STREAM_LEGACY     0u
#define QCU_STREAM_PER_THREAD 1u /* one for each (guest thread, device) */
#define QCU_ID_FIRST	      2u
#define QCU_ID_MAX	      0xffffu

#define QCU_ATTRS 160 /* how many cudaDeviceAttr values a device description carries */

/* Control queue: a session begins and ends. */
struct qcu_open {
	__u32 queue; /* 1 .. sessions */
	__u32 pid;
	__u32 chunk_bytes;
	__u32 rsvd;
	char comm[16];
};
struct qcu_close {
	__u32 queue;
};

/*
 * Sent by the driver only: MAP adds pages to the mirror's address space, UNMAP takes them out. The
 * pages lie in the window, in the annex, or elsewhere. Every mirror sets address ranges aside for
 * the last case; for an address outside of these ranges MAP's status is QCU_MAP_TAKEN.
 *
 * UNMAP is answered when the GPU and all commands have finished with the pages. Later MAPs of other
 * addresses are answered before that.
 */
#define QCU_MAP_TAKEN 208 /* cudaErrorAlreadyMapped */
struct qcu_map {
	__u64 va;
	__u64 len; /* the sum of the segments */
	__u32 chunk_bytes;
	__u32 rsvd;
};
struct qcu_unmap {
	__u64 va;
	__u64 len;
};

struct qcu_info {
	__u32 devices;	       /* out */
	__u32 driver_version;  /* out, as cudaDriverGetVersion returns it */
	__u32 runtime_version; /* out */
	__u32 rsvd;
	char backend[16]; /* out */
};
struct qcu_device_info {
	struct qcu_buf buf; /* out: struct qcu_device_desc */
};
struct qcu_device_sync {
	__u32 rsvd;
};
struct qcu_device_reset {
	__u32 rsvd;
};
struct qcu_mem_info {
	__u64 free;  /* out */
	__u64 total; /* out */
};
/* PEER_INFO. */
#define QCU_PEER_POSSIBLE     0u     /* 0: can access be enabled? 1 to 255: a cudaDeviceP2PAttr */
#define QCU_PEER_ATOMICS      0x100u /* plus a cudaAtomicOperation: capabilities towards the peer */
#define QCU_PEER_HOST_ATOMICS 0x200u /* the same towards the host; the peer is ignored */
/* What all programs of the VM use of the command's device. */
struct qcu_vm_use {
	struct qcu_buf buf; /* out: struct qcu_vm_use_desc */
};
/*
 * What the VM may know of the command's device now. X(name, greatest, whose): a larger number is
 * not believed; OWN: by default, ALL: only if the operator lets it, because it shows what all
 * programs of the host do. Clocks are in MHz. driver: NVIDIA's, of three numbers (QCU_DRIVER). busy
 * and busy_memory: percent of the time.
 */
#define QCU_SENSORS(X)                \
	X(clock_sm, 100000, OWN)      \
	X(clock_memory, 100000, OWN)  \
	X(clock_video, 100000, OWN)   \
	X(app_sm, 100000, OWN)        \
	X(app_memory, 100000, OWN)    \
	X(driver, 0xffffffff, OWN)    \
	X(busy, 100, OWN)             \
	X(busy_memory, 100, OWN)      \
	X(celsius, 250, ALL)          \
	X(milliwatts, 100000000, ALL) \
	X(power_limit, 100000000, ALL)
#define QCU_DRIVER(major, minor, patch) ((__u32)(major) << 20 | (__u32)(minor) << 10 | (patch))
enum qcu_sensor {
#define X(name, greatest, whose) QCU_SENSOR_##name,
	QCU_SENSORS(X)
#undef X
		QCU_SENSOR_COUNT
};
#define QCU_SENSORS_SOON 0x80000000u
struct qcu_sensors {
	__u32 known; /* out: a bit for each value; or QCU_SENSORS_SOON: they are on their way */
#define X(name, greatest, whose) __u32 name;
	QCU_SENSORS(X)
#undef X
};
struct qcu_thread_exit {
	__u32 rsvd;
};

struct qcu_malloc {
	__u64 size;
	__u64 ptr; /* out */
};
struct qcu_free {
	__u64 ptr;
};
/* Kernels and asynchronous copies will use the range. The flags are those of cudaHostAlloc. */
struct qcu_host_register {
	struct qcu_buf buf;
	__u32 flags;
	__u32 rsvd;
	__u64 device; /* out: the address that kernels use for it */
};
struct qcu_host_unregister {
	__u64 addr;
	__u64 len;
};

/*
 * Managed memory that moves (docs/managed.md). MANAGED makes device memory, all zero, at a mapping
 * of the window that no command has used yet. MANAGED_END takes it away; the driver has brought the
 * content back. MANAGED_MOVE copies between it and the pages of the segments. A move down waits for
 * the GPU's work, but not while a host function is in the guest, which may need the memory.
 */
#define QCU_MANAGED_ALIGN (32u << 20)
#define QCU_MANAGED_GRAIN (2u << 20)
struct qcu_managed {
	__u64 va, len; /* the mapping's: multiples of QCU_MANAGED_ALIGN */
	__u64 bytes;   /* that can be used: a multiple of QCU_MANAGED_GRAIN */
};
struct qcu_managed_end {
	__u64 va, len;
};
#define QCU_MOVE_DOWN 1u /* from the device to the guest */
struct qcu_managed_move {
	__u64 va, len; /* len: the sum of the segments */
	__u32 flags, rsvd;
};

/*
 * Copies. Without flags, the answer comes when the guest may reuse `buf`.
 *
 * - QCU_COPY_QUEUED: buf is pinned memory. The answer comes as soon as the copy is in its stream.
 * - QCU_COPY_SYNC: the answer comes when the copy is complete on the device, as with cudaMemcpy.
 * - QCU_COPY_TIMED: the driver sets this flag when it measures where time goes. The answer says how
 *   long the mirror had the command (mirror_ns), and how much of that time it spent copying
 *   (copy_ns), either in the backend or between guest memory and its own memory. Each value is at
 *   most 0xffffffff ns.
 */
#define QCU_COPY_QUEUED 1u
#define QCU_COPY_SYNC	2u
#define QCU_COPY_FLAGS	3u
#define QCU_COPY_TIMED	4u /* COPY_H2D and COPY_D2H only */
struct qcu_copy_h2d {
	struct qcu_buf buf;
	__u64 dst;
	__u32 stream;
	__u32 flags;
	__u32 mirror_ns; /* out */
	__u32 copy_ns;	 /* out */
};
/* At most QCU_MSG_MAX bytes. They travel with the record. */
struct qcu_copy_small {
	struct qcu_buf buf; /* message: the bytes */
	__u64 dst;
	__u32 stream;
	__u32 rsvd;
};
struct qcu_copy_d2h {
	struct qcu_buf buf;
	__u64 src;
	__u32 stream;
	__u32 flags;
	__u32 mirror_ns; /* out */
	__u32 copy_ns;	 /* out */
};
struct qcu_copy_d2d { /* either address may also lie in registered window memory */
	__u64 dst;
	__u64 src;
	__u64 len;
	__u32 stream;
	__u32 flags;
};
/* The same copies for rows with gaps between them; buf ends with the last row. */
struct qcu_rect_h2d {
	struct qcu_buf buf;
	__u64 dst;
	__u32 pitch;	 /* of buf */
	__u32 dst_pitch; /* pitches are at least the width */
	__u32 width;
	__u32 height;
	__u32 stream;
	__u32 flags; /* QCU_COPY_FLAGS */
};
struct qcu_rect_d2h {
	struct qcu_buf buf;
	__u64 src;
	__u32 pitch;
	__u32 src_pitch;
	__u32 width;
	__u32 height;
	__u32 stream;
	__u32 flags;
};
struct qcu_rect_d2d {
	__u64 dst;
	__u64 src;
	__u32 dst_pitch;
	__u32 src_pitch;
	__u32 width;
	__u32 height;
	__u32 stream;
	__u32 flags; /* QCU_COPY_SYNC or 0 */
};
struct qcu_memset {
	__u64 dst;
	__u64 pitch; /* 0 when height is 1 */
	__u64 width; /* bytes */
	__u64 height;
	__u32 value; /* low 8, 16 or 32 bits */
	__u32 stream;
	__u32 elem;  /* 1, 2 or 4 bytes */
	__u32 flags; /* QCU_COPY_SYNC or 0 */
};

struct qcu_stream_sync {
	__u32 stream;
};
/*
 * A library thread that polls a stream or an event and gets cudaErrorNotReady can wait without
 * further queries.
 *
 * - WATCH names a page of guest memory. It holds one word for each of QCU_WATCH_SLOTS slots. The
 *   mirror writes these words and never reads them.
 * - A query may carry a token: any number except 0, below QCU_WATCH_ASK.
 * - If the answer sets `watched`, the mirror later writes to the slot. It writes the token when
 *   all work is done. It writes the token plus QCU_WATCH_ASK when something else has happened; then
 *   the same query, sent again, says what.
 * - A slot serves the last query that named it.
 */
#define QCU_WATCH_BYTES 4096u
#define QCU_WATCH_SLOTS (QCU_WATCH_BYTES / 8)
#define QCU_WATCH_ASK	(1ull << 63)
struct qcu_watch {
	struct qcu_buf buf;
};
struct qcu_stream_query {
	__u32 stream;
	__u32 slot;
	__u64 token;   /* 0: do not watch, only answer */
	__u32 watched; /* out */
	__u32 rsvd;
};
/* Attributes of a stream: the value is the first bytes of a cudaStreamAttrValue. */
#define QCU_STREAM_ATTR 32u

/* Green contexts: the most groups of a split, a bit for each of them, and one for what is left. */
#define QCU_GREEN_GROUPS  223u
#define QCU_GREEN_MEMBERS ((QCU_GREEN_GROUPS + 1) / 8)
struct qcu_event_record {
	__u32 event;
	__u32 stream;
	__u32 flags;
};
struct qcu_event_query { /* as qcu_stream_query */
	__u32 event;
	__u32 slot;
	__u64 token;
	__u32 watched; /* out */
	__u32 rsvd;
};
struct qcu_event_elapsed {
	__u32 start;
	__u32 end;
	__u32 ms; /* out: the bits of a float */
};

/*
 * Memory and events that processes of one VM share with each other. They pass on a token. It names
 * an entry in a table on the host, and holds a secret that cannot be guessed.
 */
struct qcu_ipc_token {
	__u64 secret[2];
	__u32 slot;
	__u32 rsvd;
};
struct qcu_ipc_mem_export {
	__u64 ptr;		    /* as MALLOC returned it */
	struct qcu_ipc_token token; /* out */
};
/*
 * If the same process opens the memory again, it gets the same memory. It must close the memory as
 * often as it opened it.
 */
struct qcu_ipc_mem_open {
	struct qcu_ipc_token token;
	__u64 ptr;  /* out */
	__u64 size; /* out */
};
struct qcu_ipc_mem_close {
	__u64 ptr;
	__u32 left; /* out: how many opens are not closed yet */
	__u32 rsvd;
};
struct qcu_ipc_event_export {
	__u32 event;
	__u32 rsvd;
	struct qcu_ipc_token token; /* out */
};
struct qcu_ipc_event_open {
	struct qcu_ipc_token token;
	__u32 event; /* the number that it gets */
	__u32 rsvd;
};

/*
 * How code is compiled, if it must be. All zero: as if nothing had been said. The values are those
 * of the driver API's options.
 */
#define QCU_JIT_LOGS	 0x01u /* RESULT_READ fetches what the compiler said */
#define QCU_JIT_VERBOSE	 0x02u
#define QCU_JIT_DEBUG	 0x04u
#define QCU_JIT_LINES	 0x08u
#define QCU_JIT_OPTIMIZE 0x10u /* optimize is valid */
#define QCU_JIT_CACHE	 0x20u /* cache is valid */
#define QCU_JIT_FALLBACK 0x40u /* fallback is valid */
#define QCU_JIT_FLAGS	 0x7fu
struct qcu_jit {
	__u32 flags;
	__u32 target;	/* CUjit_target; 0: that of the device */
	__u32 max_regs; /* registers per thread; 0: no limit */
	__u32 threads;	/* of a block, for which there must be enough registers; 0: not said */
	__u8 optimize;	/* 0 to 4 */
	__u8 cache;	/* CUjit_cacheMode */
	__u8 fallback;	/* CUjit_fallback */
	__u8 rsvd;
};
struct qcu_module_load {
	struct qcu_buf buf; /* a fat binary, whole */
	__u32 module;
	struct qcu_jit jit;
	__u32 threads; /* out: for blocks of how many threads the code was made; 0: not known */
	__u32 micros;  /* out: how long the load took */
};
struct qcu_module_unload {
	__u32 module;
};
/* The names of a module's kernels or of its managed variables. A NUL follows each name. */
#define QCU_NAMES_KERNELS 0u
#define QCU_NAMES_MANAGED 1u
struct qcu_module_names {
	struct qcu_buf buf; /* out: as many bytes as fit */
	__u32 module;
	__u32 what;
	__u32 count; /* out */
	__u32 bytes; /* out: length of all names */
};
struct qcu_kernel_find {
	struct qcu_buf buf; /* message: the mangled name, no NUL */
	__u32 module;
	__u32 kernel;	   /* the number that it gets */
	__u32 params;	   /* out: number of parameters */
	__u32 param_bytes; /* out */
};
struct qcu_kernel_info {
	struct qcu_buf buf; /* out: struct qcu_kernel_desc, then `params` of struct qcu_param */
	__u32 kernel;
	__u32 rsvd;
};
struct qcu_var_find {
	struct qcu_buf buf; /* message: the mangled name, no NUL */
	__u32 module;
	__u32 managed; /* 1: find it only if it is managed */
	__u64 addr;    /* out */
	__u64 size;    /* out */
};
/*
 * From now on this variable is guest memory that has been registered. The guest must send VAR_BIND
 * before it looks for a kernel of the module. A backend that cannot bind variables answers "not
 * supported".
 */
struct qcu_var_bind {
	struct qcu_buf buf; /* message: the mangled name, no NUL */
	__u32 module;
	__u32 rsvd;
	__u64 addr;
	__u64 size;
};
struct qcu_launch {
	struct qcu_buf buf; /* message: struct qcu_launch_msg, then the packed parameters */
	__u32 kernel;
	__u32 stream;
};
#define QCU_CLUSTERS_ACTIVE  0u /* how many clusters of this launch fit on the device */
#define QCU_CLUSTERS_LARGEST 1u /* blocks in the largest cluster */
struct qcu_occupancy_cluster {
	struct qcu_buf buf; /* message: struct qcu_launch_msg, without parameters */
	__u32 kernel;
	__u32 what;
	__u32 count; /* out */
	__u32 rsvd;
};
/*
 * A function of the guest program. The guest program runs it when the stream reaches it. The stream
 * continues when a HOST_NEXT has said that the function is done.
 *
 * With `wait`, HOST_NEXT is answered when there is a next function to run, and the answer names it.
 * Without `wait`, it is answered at once and the answer names no function.
 *
 * QCU_HOST_ALWAYS: the function runs also after an error in the stream. The error is then its
 * status.
 */
#define QCU_HOST_ALWAYS 1u
struct qcu_host_func {
	__u64 token; /* not 0; comes back in HOST_NEXT */
	__u32 stream;
	__u32 flags;
};
struct qcu_host_next {
	__u64 done; /* token of the function that has been run; 0: none */
	__u32 wait;
	__u32 rsvd;
	__u64 token; /* out */
	__u32 error; /* out: 0 or a cudaError_t that the stream has met */
	__u32 rsvd1;
};
/* Stream-ordered memory, of a pool. Pool 0 is the device's default pool. */
struct qcu_malloc_async {
	__u64 size;
	__u32 pool;
	__u32 stream;
	__u64 ptr; /* out */
};
struct qcu_free_async {
	__u64 ptr;
	__u32 stream;
	__u32 rsvd;
};
/*
 * Graphs. An instance is described once, with all its nodes and what each of them depends on. From
 * then on a launch is one command. Graphs have numbers that the guest chooses.
 *
 * - GRAPH_MAKE makes an instance of the description in `buf`: `nodes` times a struct
 *   qcu_graph_node, with what follows it. A node may only depend on nodes before it.
 * - GRAPH_UPDATE changes some nodes. Each record says in `index` which one. It has no dependencies,
 *   and its type is that of the node. Launches that are under way are not changed. If one of the
 *   nodes cannot be changed, the answer is cudaErrorGraphExecUpdateFailure, and the instance must
 *   not be launched any more: the guest makes a new one.
 * - GRAPH_LAUNCH puts the graph into a stream, and records `event` behind it. Launches of one
 *   instance run one after the other.
 */
#define QCU_GRAPH_UPLOAD    1u /* of a launch: do not run it, only prepare the next launch */
#define QCU_GRAPH_AFTER_ALL 2u /* it comes after all that other threads have posted */
#define QCU_GRAPH_RECORDS   4u /* its nodes record events; it comes after all, too */
#define QCU_GRAPH_FLAGS	    7u
#define QCU_GRAPH_NO_EVENT  0xffffffffu
#define QCU_GRAPH_BYTES_MAX (63u << 20) /* of a description */
struct qcu_graph_make {
	struct qcu_buf buf;
	__u32 graph; /* the number that it gets */
	__u32 nodes;
};
struct qcu_graph_update {
	struct qcu_buf buf;
	__u32 graph;
	__u32 nodes;
};
struct qcu_graph_launch {
	__u32 graph;
	__u32 stream;
	__u32 event; /* QCU_GRAPH_NO_EVENT: none */
	__u32 flags; /* QCU_GRAPH_* */
};
/*
 * Handles of conditional nodes. Kernels get a handle as an argument, so it exists before a graph is
 * made that uses it. Handles have numbers that the guest chooses.
 *
 * COND_CREATE with `graph` 0 makes an outermost graph. Otherwise it makes a handle. `graph` and
 * `body` say where its node will be: in an outermost graph, with body 0, or in a body of the node
 * of another handle. That node has this `type` and `size`.
 *
 * There is one instance of an outermost graph at a time. GRAPH_MAKE makes it.
 */
#define QCU_COND_IF	 0u /* runs body 0, or 1 if the value is 0 and there are two */
#define QCU_COND_WHILE	 1u
#define QCU_COND_SWITCH	 2u /* runs the body with that number */
#define QCU_COND_BODIES	 256u
#define QCU_COND_DEPTH	 64u /* how deep conditional nodes may lie in one another */
#define QCU_COND_DEFAULT 1u  /* each launch begins with `value` */
struct qcu_cond_create {
	__u32 cond;
	__u32 graph;
	__u32 body;
	__u32 value;
	__u32 flags;  /* QCU_COND_DEFAULT */
	__u16 type;   /* QCU_COND_*; 0 if `graph` is an outermost graph */
	__u16 size;   /* how many bodies; 0 if `graph` is an outermost graph */
	__u64 handle; /* out */
};
#define QCU_PRINT_OUT	0u /* what kernels print, for stdout */
#define QCU_PRINT_ERR	1u /* the text of failed assertions, for stderr */
#define QCU_PRINT_FAULT 2u /* as many struct qcu_fault as there are and there is room for */
struct qcu_print_read {
	struct qcu_buf buf; /* out */
	__u32 channel;
	__u32 rsvd;
	__u64 got; /* out */
};
struct qcu_stats {
	struct qcu_buf buf; /* out: struct qcu_stats_desc */
};

/*
 * CUDA arrays and mipmapped arrays. They have numbers that the guest chooses. A position in an
 * array consists of a level (0 if there is only one), a byte in a row, a row, and a slice or layer.
 * A size of 0 means that the array does not have this dimension.
 */
#define QCU_LEVELS_MAX 18u
struct qcu_array_create {
	__u32 array; /* the number that it gets */
	__u32 flags; /* as of cudaMalloc3DArray */
	__u32 width, height, depth;
	__u32 levels; /* 0: not a mipmapped array */
	__u8 bits[4]; /* of each channel */
	__u32 kind;   /* cudaChannelFormatKind */
	__u32 mem; /* 0: memory of its own; else a mipmapped array in this memory (PHYS_CREATE) */
	__u32 rsvd;
	__u64 offset; /* in that memory */
};
#define QCU_COPY_DOWN 4u /* from the array to memory */
/* Rows of one slice, copied from or to guest memory. buf ends with the last row. */
struct qcu_array_write {
	struct qcu_buf buf;
	__u16 array;
	__u8 level;
	__u8 flags; /* QCU_COPY_QUEUED, QCU_COPY_SYNC */
	__u32 x, y, z;
	__u32 width, height; /* bytes, rows */
	__u32 pitch;	     /* of buf */
	__u32 stream;
};
struct qcu_array_read {
	struct qcu_buf buf;
	__u16 array;
	__u8 level;
	__u8 flags;
	__u32 x, y, z;
	__u32 width, height;
	__u32 pitch;
	__u32 stream;
};
/* A box, copied from or to memory that the GPU can use. */
struct qcu_array_device {
	__u64 addr;
	__u16 array;
	__u8 level;
	__u8 flags; /* QCU_COPY_SYNC, QCU_COPY_DOWN */
	__u32 x, y, z;
	__u32 width, height, depth;
	__u32 pitch, rows; /* layout of the memory: bytes of a row, rows of a slice */
	__u32 stream;
};
/* A box, copied from one array to another. */
struct qcu_array_copy {
	__u16 dst, src;
	__u8 dst_level, src_level;
	__u8 flags; /* QCU_COPY_SYNC */
	__u8 rsvd;
	__u32 stream;
	__u32 dx, dy, dz;
	__u32 sx, sy, sz;
	__u32 width, height, depth;
};

/*
 * Texture and surface objects. Kernels take their numbers as arguments, so the numbers are the
 * GPU's own. The mirror compares the numbers in commands with those that it has given out.
 */
struct qcu_texture_create {
	struct qcu_buf buf; /* message: struct qcu_texture_msg */
	__u64 object;	    /* out */
};
struct qcu_texture_destroy {
	__u64 object;
};
struct qcu_surface_create {
	__u32 array;
	__u32 level;
	__u64 object; /* out */
};
struct qcu_surface_destroy {
	__u64 object;
};

/* ---- messages and descriptions that commands point to ---- */

#define QCU_TEXTURE_ARRAY  0u /* a level of an array */
#define QCU_TEXTURE_MIPMAP 1u
#define QCU_TEXTURE_LINEAR 2u
#define QCU_TEXTURE_PITCH  3u /* rows with a pitch */

/*
 * What a texture reads and how. The numbers are those of CUDA's descriptors. Floats are passed as
 * their bits.
 */
struct qcu_texture_msg {
	__u32 kind;
	__u32 array, level;
	__u32 format; /* cudaChannelFormatKind; memory only, as the next two lines */
	__u8 bits[4];
	__u32 width, height;
	__u32 pitch;
	__u64 addr, bytes;
	__u32 address[3];
	__u32 filter, read, srgb;
	__u32 border[4];
	__u32 normalized, anisotropy;
	__u32 mip_filter, mip_bias, mip_min, mip_max;
	__u32 no_trilinear_optimization, seamless;
	__u32 view; /* 1: the fields below are valid; 0: they are not */
	__u32 view_format;
	__u32 view_width, view_height, view_depth;
	__u32 first_level, last_level, first_layer, last_layer;
	__u32 rsvd;
};
QCU_ASSERT(sizeof(struct qcu_texture_msg) == 160, "texture message");

struct qcu_device_desc {
	char name[256];
	__u8 uuid[16];
	__u64 total_mem;
	__u64 rsvd[5];
	__s32 attr[QCU_ATTRS]; /* by cudaDeviceAttr */
};
QCU_ASSERT(sizeof(struct qcu_device_desc) == 256 + 16 + 48 + 4 * QCU_ATTRS, "device description");

struct qcu_kernel_desc {
	__u64 shared_bytes;
	__u64 const_bytes;
	__u64 local_bytes;
	__u32 max_threads;
	__u32 regs;
	__u32 ptx_version;
	__u32 binary_version;
	__u32 max_dynamic_shared;
	__u32 params;
	__s32 carveout;
	__u32 cache_mode;
	__u32 cluster_must_be_set;
	__u32 cluster[3]; /* the size that it was compiled for; 0: any */
	__u32 cluster_policy;
	__u32 cluster_any_size;
};
QCU_ASSERT(sizeof(struct qcu_kernel_desc) == 80, "kernel description");

struct qcu_param {
	__u32 offset;
	__u32 size;
};

#define QCU_LAUNCH_COOPERATIVE 0x1u
#define QCU_LAUNCH_CLUSTER     0x2u /* cluster and cluster_policy are valid */
#define QCU_LAUNCH_PRIORITY    0x4u /* priority is valid */
#define QCU_LAUNCH_OVERLAP     0x8u /* may begin before the previous launch has ended */
#define QCU_LAUNCH_FLAGS       0xfu
struct qcu_launch_msg {
	__u32 grid[3];
	__u32 block[3];
	__u32 dynamic_shared;
	__u32 flags;
	__u32 param_bytes;
	__u32 cluster[3];
	__u32 cluster_policy; /* cudaClusterSchedulingPolicy */
	__s32 priority;
	__u32 rsvd[2];
};
QCU_ASSERT(sizeof(struct qcu_launch_msg) == 64, "launch message");

/* What one mirror has done. "staged" bytes are those that a CPU copied on the way. */
struct qcu_stats_desc {
	__u64 commands;
	__u64 h2d_bytes, d2h_bytes, d2d_bytes;
	__u64 window_bytes; /* moved directly from or to chunks */
	__u64 pages_bytes;  /* moved directly from or to other guest memory */
	__u64 staged_bytes;
	__u64 copies; /* calls to the backend */
	__u64 mapped_bytes, registered_bytes;
	__u64 device_bytes;	   /* allocated now */
	__u64 away_bytes;	   /* and of that not on a GPU now */
	__u64 out_bytes, in_bytes; /* memory that has left a GPU, and has come back */
	__u64 room_us;		   /* so long the program has waited for room */
	__u64 file_bytes;	   /* of out_bytes: what has been written to a file */
};
QCU_ASSERT(sizeof(struct qcu_stats_desc) == 128, "statistics");

/*
 * Where a kernel did something wrong, as far as the backend knows it: the first kernel that failed,
 * and each finding of a check. Texts end with a 0 and are cut to the room that there is; they are
 * the program's own, so they may contain any other byte.
 */
#define QCU_FAULT_THREAD 1u /* block and thread are known */
#define QCU_FAULT_ACCESS 2u /* addr is the address of an access to global memory */
struct qcu_fault {
	__u32 error; /* enum qcu_error; 0: a check has found it, and the kernel went on */
	__u32 flags; /* QCU_FAULT_* */
	__u64 addr;
	__u32 size; /* of the access; 0: not known */
	__u32 line; /* of the file, or of the PTX text if there is no file; 0: not known */
	__u32 block[3];
	__u32 thread[3];
	__u32 more; /* findings before this one that were not kept */
	__u32 rsvd;
	char what[256];	   /* "write of 4 bytes at global address 0x10"; may be empty */
	char file[256];	   /* may be empty */
	char kernel[1024]; /* as in the object code; may be empty */
};
QCU_ASSERT(sizeof(struct qcu_fault) == 1592, "faults");

/*
 * A program that has used a device, its memory there, and in percent of the time how busy it has
 * kept the device (kernels) and its memory.
 */
struct qcu_vm_user {
	__u32 pid;
	__u8 busy, busy_memory;
	__u16 rsvd;
	__u64 bytes;
};
#define QCU_VM_USERS 63u
struct qcu_vm_use_desc {
	__u64 total; /* what all programs of the VM may have of the device */
	__u64 used;
	__u32 count;	/* of users */
	__u32 busy_age; /* how busy they were so many milliseconds ago, and 1 more; 0: not known */
	struct qcu_vm_user user[QCU_VM_USERS];
};
QCU_ASSERT(sizeof(struct qcu_vm_use_desc) == 24 + 16 * QCU_VM_USERS, "what the VM uses");

/*
 * A function of a library, qculib.h. A posted call takes its arguments along. LIB_ASK names the
 * guest's memory with the arguments, and the answer is written behind them.
 */
struct qcu_lib_call {
	struct qcu_buf buf;
	__u32 stream;
	__u16 library;	/* QCU_LIB_* */
	__u16 function; /* its number in the library's table, or QCU_LIB_OPEN and so on */
};
struct qcu_lib_ask {
	struct qcu_buf buf;
	__u32 stream;
	__u16 library;
	__u16 function;
};

#include "qcucmd_driver.h"
#include "qcucmd_graph.h"
#include "qcucmd_made.h"

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The description of a graph: the buffer of GRAPH_MAKE and GRAPH_UPDATE. qcucmd_fields.h includes
 * this file. */
#ifndef QCUCMD_GRAPH_H
#define QCUCMD_GRAPH_H

#include "qcucmd_fields.h"

/* One node of a graph. */
#define QCU_NODE_EMPTY	0u
#define QCU_NODE_KERNEL 1u
#define QCU_NODE_MEMSET 2u
#define QCU_NODE_COPY	3u
#define QCU_NODE_RECORD 4u  /* records an event */
#define QCU_NODE_WAIT	5u  /* waits for an event, as it is when the graph is launched */
#define QCU_NODE_HOST	6u  /* runs a function of the guest program */
#define QCU_NODE_COND	7u  /* a conditional node */
#define QCU_NODE_BODY	8u  /* not a node: the nodes after it are in a body of such a node */
#define QCU_NODE_ARGS	9u  /* in an update: other parameters for a kernel that stays as it is */
#define QCU_NODE_CALL	10u /* a call of a library */
#define QCU_NODE_TYPES	11u
#define QCU_NODE_OFF	1u /* a kernel, memset or copy that a launch leaves out */
/*
 * It is followed by the struct of its type, then by `deps` numbers of 32 bits: the nodes that it
 * depends on, then, for a kernel, QCU_NODE_ARGS and QCU_NODE_CALL, by the packed parameters. Each
 * of the three parts is filled up with zeros to a multiple of 8 bytes.
 */
struct qcu_graph_node {
	__u32 bytes; /* of all this */
	__u8 type;
	__u8 device;
	__u8 flags;
	__u8 rsvd;
	__u32 index; /* its own number */
	__u32 deps;
};
QCU_ASSERT(sizeof(struct qcu_graph_node) == 16, "node of a graph");

struct qcu_graph_kernel {
	__u32 kernel;
	__u32 rsvd;
	struct qcu_launch_msg msg;
};
QCU_ASSERT(sizeof(struct qcu_graph_kernel) == 72, "kernel node");

struct qcu_graph_memset {
	__u64 dst;
	__u64 pitch; /* 0 when height is 1 */
	__u64 width; /* bytes */
	__u64 height;
	__u32 value;
	__u32 elem;
};
QCU_ASSERT(sizeof(struct qcu_graph_memset) == 40, "memset node");

/*
 * One side of a copy: a position in an array, or memory that the GPU can use, device memory or
 * registered memory. The fields of the other kind are zero.
 */
struct qcu_graph_side {
	__u64 addr;
	__u64 pitch;
	__u64 rows;  /* from one slice to the next */
	__u32 array; /* 0: memory */
	__u32 level;
	__u32 x, y, z; /* x in bytes */
	__u32 rsvd;
};
struct qcu_graph_copy {
	struct qcu_graph_side dst, src;
	__u64 width, height, depth; /* width in bytes */
};
QCU_ASSERT(sizeof(struct qcu_graph_copy) == 120, "copy node");

struct qcu_graph_event {
	__u32 event;
	__u32 rsvd;
};

struct qcu_graph_host {
	__u64 token; /* as in HOST_FUNC; the same for each launch */
};

/* The parameters are `bytes` of arguments, as in LIB_CALL behind the head. */
struct qcu_graph_call {
	__u16 library;
	__u16 function;
	__u32 bytes; /* a multiple of 8 */
};
QCU_ASSERT(sizeof(struct qcu_graph_call) == 8, "call node");

/*
 * Conditional nodes. A graph with such nodes is described from outside to inside: first the nodes
 * of the outermost graph, then each body, with a QCU_NODE_BODY before its nodes. These records come
 * in the order of their nodes, and of the bodies of a node. A body without a record is empty.
 *
 * A node depends only on nodes of its own graph or body. A body holds kernels, memsets, copies, and
 * empty and conditional nodes.
 */
struct qcu_graph_cond {
	__u32 cond;
	__u32 type; /* QCU_COND_* */
	__u32 size; /* how many bodies */
	__u32 rsvd;
};
struct qcu_graph_body {
	__u32 node; /* the number of the conditional node */
	__u32 body;
};

#endif

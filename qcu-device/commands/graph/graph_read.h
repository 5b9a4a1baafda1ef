/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the mirror keeps of a graph, and the reading of a description.
 */
#ifndef QCU_GRAPH_READ_H
#define QCU_GRAPH_READ_H

#include "qcu-device/commands/commands.h"

/* Memory that a node reads or writes. Length 0: none. */
struct graph_range {
	uint64_t addr, len;
};

/* A node as the guest has described it. */
struct graph_node {
	uint8_t type;
	uint8_t dev;
	bool off;
	uint32_t parts;	     /* nodes of the backend */
	uint32_t last;	     /* the number of the last of them, which others depend on */
	uint32_t bodies;     /* of a conditional node */
	struct handle *h;    /* the kernel, event or array to copy to, held; NULL: none */
	struct handle *from; /* the array to copy from, held */
	struct graph_host *host;
	struct graph_call *call;
	struct graph_range dst, src;
	struct be_launch launch; /* of a kernel, without its parameters */
};

/* What a description becomes. */
struct graph_reading {
	/* The outermost graph of its conditional nodes, claimed and held; NULL: there are none. */
	struct handle *outermost;
	uint64_t stamp; /* of the conditionals that it uses */
	/* The body whose nodes are being read, and its first node. */
	struct handle *in;	  /* NULL: the outermost graph */
	uint32_t at, body, first; /* `at` is the number of its node */
	uint8_t *bytes;		  /* our copy of the description */
	uint32_t count;
	struct graph_node *nodes; /* the nodes of the description */
	struct be_node *be_nodes; /* one for each */
	uint32_t total;
	struct be_node *parts; /* the nodes of the backend; may be be_nodes */
	uint64_t charged;      /* graph-nodes for the parts; who keeps them clears it */
	uint32_t *before;      /* what the parts of one node depend on */
};

/*
 * Reads `count` nodes from the command's buffer. `old` are the nodes of the graph that is updated,
 * of which there are old_count; NULL: this is a new graph. The numbers in the backend's nodes are
 * those of the description, except in `parts`.
 */
int graph_read(struct call *c, uint32_t count, const struct graph_node *old, uint32_t old_count,
	       struct graph_reading *r);
/* Drops what the reading still has. */
void graph_read_end(struct call *c, struct graph_reading *r);
/* There is no instance of the outermost graph any more. It may be NULL. */
void graph_unclaim(struct mirror *m, struct handle *outermost);
/* Drops the objects of a call, which may be NULL. */
void graph_call_release(struct mirror *m, struct graph_call *call);
/* Drops what a node holds. */
void graph_node_drop(struct mirror *m, struct graph_node *n);

#endif

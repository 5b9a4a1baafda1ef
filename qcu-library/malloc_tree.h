/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mappings of the arena by address: free() has nothing but a pointer to go by. A treap, whose nodes
 * are part of what they describe, so that a change never needs memory. No locks: the arena has one.
 */
#ifndef QCUL_MALLOC_TREE_H
#define QCUL_MALLOC_TREE_H

#include <stddef.h>
#include <stdint.h>

struct qcul_node {
	uint64_t start, len;
	struct qcul_node *left, *right;
	uint32_t rank; /* of a node, not below that of its children */
};

struct qcul_tree {
	struct qcul_node *root;
	uint32_t seed;
};

/* Ranges do not overlap, the caller sees to that. */
void qcul_tree_add(struct qcul_tree *t, struct qcul_node *node);
void qcul_tree_remove(struct qcul_tree *t, struct qcul_node *node);
/* The range around addr, or NULL. */
struct qcul_node *qcul_tree_find(const struct qcul_tree *t, uint64_t addr);

#endif

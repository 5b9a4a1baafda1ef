/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The mappings of the arena, by address: free() knows only a pointer. The tree is a treap. Each
 * node is part of the mapping that it describes, so a change never needs memory. No locks here: the
 * arena has one.
 */
#ifndef QCUL_MALLOC_TREE_H
#define QCUL_MALLOC_TREE_H

#include <stddef.h>
#include <stdint.h>

struct qcul_node {
	uint64_t start, len;
	struct qcul_node *left, *right;
	uint32_t rank; /* not lower than the rank of a child */
};

struct qcul_tree {
	struct qcul_node *root;
	uint32_t seed;
};

/* The caller makes sure that ranges do not overlap. */
void qcul_tree_add(struct qcul_tree *t, struct qcul_node *node);
void qcul_tree_remove(struct qcul_tree *t, struct qcul_node *node);
/* The range that contains addr, or NULL. */
struct qcul_node *qcul_tree_find(const struct qcul_tree *t, uint64_t addr);

#endif

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A search tree by address that is also a heap by random ranks, which keeps it balanced well
 * enough. Programs hold up to some ten thousand mappings, the most that Linux gives a process.
 */
#include "qcu-library/malloc/malloc_tree.h"

/* Splits a tree into the nodes that start below addr and the others. */
static void split_tree(struct qcul_node *node, uint64_t addr, struct qcul_node **below,
		       struct qcul_node **above)
{
	while (node) {
		if (node->start < addr) {
			*below = node;
			below = &node->right;
			node = node->right;
		} else {
			*above = node;
			above = &node->left;
			node = node->left;
		}
	}
	*below = NULL;
	*above = NULL;
}

void qcul_tree_add(struct qcul_tree *t, struct qcul_node *node)
{
	struct qcul_node **at = &t->root;

	t->seed = t->seed * 1664525u + 1013904223u;
	node->rank = t->seed ^ t->seed >> 16;
	while (*at && (*at)->rank >= node->rank)
		at = node->start < (*at)->start ? &(*at)->left : &(*at)->right;
	split_tree(*at, node->start, &node->left, &node->right);
	*at = node;
}

void qcul_tree_remove(struct qcul_tree *t, struct qcul_node *node)
{
	struct qcul_node *left = node->left, *right = node->right;
	struct qcul_node **at = &t->root;

	while (*at != node)
		at = node->start < (*at)->start ? &(*at)->left : &(*at)->right;
	while (left && right) {
		if (left->rank >= right->rank) {
			*at = left;
			at = &left->right;
			left = left->right;
		} else {
			*at = right;
			at = &right->left;
			right = right->left;
		}
	}
	*at = left ? left : right;
}

struct qcul_node *qcul_tree_find(const struct qcul_tree *t, uint64_t addr)
{
	struct qcul_node *node = t->root;

	while (node) {
		if (addr < node->start)
			node = node->left;
		else if (addr - node->start < node->len)
			return node;
		else
			node = node->right;
	}
	return NULL;
}

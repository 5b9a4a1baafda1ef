/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of be_check share: the checks, those of graphs, and the timings.
 */
#ifndef QCU_BE_CHECK_H
#define QCU_BE_CHECK_H

#include <stdio.h>

#include "qcu-device/backend/backend.h"

#define CHECK_BYTES  (4u << 20)	 /* of device memory that each check may overwrite */
#define CHECK_WINDOW (64u << 20) /* of registered memory, at the start of the window */

struct check {
	const struct be_ops *ops;
	struct be *be;
	struct be_stream *legacy;
	struct be_module *module;
	const void *image;
	size_t image_len;
	void *window;
	uint64_t scratch; /* CHECK_BYTES of device memory */
	unsigned int devices;
	double seconds; /* for each timing; 0: none */
	bool verbose, movable;
	uint64_t gib; /* of device memory that the timings of moves may use; 0: none */
};

/* NULL: there is no kernel of that name. */
static inline struct be_kernel *check_kernel(struct check *c, const char *name)
{
	struct be_kernel *k = NULL;

	return !c->ops->kernel_find || c->ops->kernel_find(c->be, c->module, name, &k) ? NULL : k;
}

/* be_check_report.c */
extern unsigned int passed, failed;
/* Results go here, because stdout may have been taken for what kernels print. */
extern FILE *report;
/* Report a result, and return whether it is good. */
bool check(bool good, const char *fmt, ...);
bool want(int got, int wanted, const char *what);

/* An op that the backend leaves out is a failure with a name here, and not a crash. */
#define CALL(c, op, ...) \
	((c)->ops->op ? (c)->ops->op((c)->be, ##__VA_ARGS__) : QCU_ERR_NotSupported)

/* be_check_graph.c */
void check_graphs(struct check *c);
void check_conditional(struct check *c);

/* be_check_place.c */
void check_placed(struct check *c);

/* be_check_move.c */
void check_moves(struct check *c);
void time_moves(struct check *c);
/* NVIDIA's, of other processes. Not in a process that has called CUDA. */
void time_checkpoints(uint64_t most);

/* be_check_saved.c: in processes of its own, so before this one calls CUDA. */
void check_saved(struct check *c, void (*in_child)(struct check *c, void (*fn)(struct check *c)));

/* be_check_driver.c */
void check_driver(struct check *c);

/* be_check_time.c */
void check_timings(struct check *c, FILE *out);

#endif

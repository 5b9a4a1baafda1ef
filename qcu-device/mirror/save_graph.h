/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The description of a graph with all its updates, for save.c. */
#ifndef QCU_SAVE_GRAPH_H
#define QCU_SAVE_GRAPH_H

#include "qcu-device/mirror/keeping.h"

/* NULL: it can be described; else what is in the way, after "it has". */
const char *save_graph_check(struct mirror *m, const struct kept_object *o, const struct handle *h);

/* Makes one GRAPH_MAKE of a graph that has been checked. The caller frees *data. False: no memory.
 */
bool save_graph(const struct kept_object *o, struct qCUcmd *cmd, uint8_t **data);

#endif

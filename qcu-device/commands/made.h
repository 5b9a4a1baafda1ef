/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Made by scripts/commands/generate from include/commands.list; do not edit. */
/* What is special about a command, written by hand; and conditions on parameters. */
#ifndef QCU_MADE_H
#define QCU_MADE_H

#include "qcu-device/commands/commands.h"

int mir_limit_set(struct call *c, struct qcu_limit_set *r);
int mir_va_reserve(struct call *c, struct qcu_va_reserve *r);
int mir_va_free(struct call *c, struct qcu_va_free *r);
int mir_phys_create(struct call *c, struct qcu_phys_create *r, struct handle *mem);
int mir_phys_map(struct call *c, struct qcu_phys_map *r, struct handle *mem);
int mir_phys_unmap(struct call *c, struct qcu_phys_unmap *r);
int mir_phys_access_set(struct call *c, struct qcu_phys_access_set *r);
int mir_phys_access_get(struct call *c, struct qcu_phys_access_get *r);
int mir_phys_export(struct call *c, struct qcu_phys_export *r, struct handle *mem);
int mir_phys_import(struct call *c, struct qcu_phys_import *r, struct handle *mem);
int mir_green_parts(struct call *c, struct qcu_green_parts *r);
int mir_green_create(struct call *c, struct qcu_green_create *r, struct handle *green);
int mir_green_stream(struct call *c, struct qcu_green_stream *r, struct handle *stream);

#endif

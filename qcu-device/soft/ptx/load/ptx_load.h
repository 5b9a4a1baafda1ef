/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The grammar of PTX: a module, its variables and functions, and their bodies.
 */
#ifndef QCU_SOFT_PTX_LOAD_H
#define QCU_SOFT_PTX_LOAD_H

#include "qcu-device/soft/ptx/text/ptx_parse.h"

/* ptx_body.c */
void ptx_parse_body(struct ptx_parser *P, struct ptx_func *f);
void ptx_parse_file(struct ptx_parser *P);

/* ptx_var.c */
void ptx_parse_var(struct ptx_parser *P, enum ptx_space space, bool is_extern);
bool ptx_init_vars(struct ptx_module *m, struct ptx_diag *diag, enum ptx_status *st);

/* ptx_parse.c */
void ptx_parse_module(struct ptx_parser *P);

#endif

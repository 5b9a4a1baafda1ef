/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What solver_calls expects of its cuSOLVER. */
#ifndef SOLVER_H
#define SOLVER_H

#define SOLVER_SINGULAR (-1)
#define SOLVER_SWEEPS	7
#define SOLVER_RESIDUAL 0.25

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What solver_calls expects of its cuSOLVER, and how it and factor_calls check answers. */
#ifndef SOLVER_H
#define SOLVER_H

#define SOLVER_SINGULAR (-1)
#define SOLVER_SWEEPS	7
#define SOLVER_RESIDUAL 0.25

#define IS(call, want)                                                                    \
	do {                                                                              \
		cusolverStatus_t got_ = (call);                                           \
		REQUIRE(got_ == (want), "%s: %d, not %d", #call, (int)got_, (int)(want)); \
	} while (0)
#define RIGHT(call) IS(call, CUSOLVER_STATUS_SUCCESS)
#define WRONG(call) IS(call, CUSOLVER_STATUS_INVALID_VALUE)

#endif

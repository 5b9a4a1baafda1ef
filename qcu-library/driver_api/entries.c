// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Where a program's calls come in: what a function needs (cuda.syms) is checked here, and here
 * only, before the function sees its arguments. The functions call one another without that.
 *
 * Usually it is known already that all is there. The entry is a test and a jump then.
 */
#include "qcu-library/driver_base/needs.h"

#define KNOWN_cuInit  qcul_driver_known_started
#define KNOWN_context qcul_driver_known_ready
#define KNOWN_stream  qcul_driver_known_ready

#define CHECK(missing, call)                       \
	({                                         \
		const CUresult missing_ = missing; \
                                                   \
		missing_ ? missing_ : (call);      \
	})
#define CHECK_cuInit(stream, call)  CHECK(qcul_driver_started(), call)
#define CHECK_context(stream, call) CHECK(qcul_driver_ready(), call)
#define CHECK_stream(stream, call)                                             \
	({                                                                     \
		struct qcul_driver_home home;                                  \
		CUresult result = qcul_driver_move_to_stream((stream), &home); \
                                                                               \
		if (!result) {                                                 \
			result = (call);                                       \
			(void)qcul_driver_move(home);                          \
		}                                                              \
		result;                                                        \
	})

#define SAME(type, other)
#define FORWARD(name, other, parameters, ...)
#define ENTRY(name, needs, stream, parameters, ...)                                     \
	extern __typeof__(name) qcul_enter_##name __asm__("qcul_drv_" #name)            \
		__attribute__((visibility("default")));                                 \
	static __attribute__((noinline, cold)) CUresult check_##name parameters         \
	{                                                                               \
		return CHECK_##needs(stream, name(__VA_ARGS__));                        \
	}                                                                               \
	CUresult qcul_enter_##name parameters                                           \
	{                                                                               \
		return KNOWN_##needs() ? name(__VA_ARGS__) : check_##name(__VA_ARGS__); \
	}

#include "driver_calls.inc"

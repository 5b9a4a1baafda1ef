// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Calls of CUDA and of its libraries, as the program made them. libqcuda-loader.so has put itself
 * between the program and them (loader/traced.c), and only if there is a trace. What a call calls
 * itself is not the program's.
 */
#include <stddef.h>

#include "qcu-library/link/trace.h"

#define PUBLIC __attribute__((visibility("default")))

PUBLIC bool qcul_call_begins(const char *name);
PUBLIC void qcul_call_ends(void);

/* The name stays as long as the process. */
PUBLIC bool qcul_call_begins(const char *name)
{
	struct qcul_traced_thread *t = qcul_traced_thread();

	if (!t || t->call)
		return false;
	t->call = name;
	t->call_begin = qcul_trace_now();
	return true;
}

PUBLIC void qcul_call_ends(void)
{
	struct qcul_traced_thread *t = qcul_traced_thread();

	/* A fork has ended the trace meanwhile, and this is the child. */
	if (!t || !t->call)
		return;
	qcul_trace_span("api", t->call, NULL, t->call_begin);
	t->call = NULL;
}

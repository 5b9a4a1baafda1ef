/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the trace (QCU_TRACE_FILE) have in common. */
#ifndef QCUL_TRACE_H
#define QCUL_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <wchar.h>

struct qCUcmd;

/* Names come from the program. A longer one is cut. */
#define QCUL_TRACE_NAME 256

/* A range of the program's that has begun (trace_ranges.c). */
struct qcul_traced_range {
	struct qcul_traced_range *below;
	const void *domain;
	uint64_t begin;
	char name[QCUL_TRACE_NAME];
};

/* What the trace knows of a thread. */
struct qcul_traced_thread {
	const char *call; /* the call of the program's that it is in, or NULL */
	uint64_t call_begin;
	struct qcul_traced_range *ranges; /* the innermost first */
	unsigned int depth;		  /* of the ranges */
	unsigned int too_deep;		  /* more have begun, which are not traced */
};

/* NULL: this process is not traced, or there is no memory. */
struct qcul_traced_thread *qcul_traced_thread(void);
/* The clock of all times in a trace, in ns. */
uint64_t qcul_trace_now(void);
/* Writes something that the calling thread has done since `begin`. `domain` may be NULL. */
void qcul_trace_span(const char *category, const char *name, const char *domain, uint64_t begin);
/* Writes the begin or the end of something that is not bound to a thread. */
void qcul_trace_bound(bool begins, const char *name, const char *domain, uint64_t id);
/* Writes a moment. */
void qcul_trace_mark(const char *name, const char *domain);
void qcul_trace_name_thread(uint32_t tid, const char *name);

/* ---- trace_about.c: what a command is about ---- */

/* Which memory of the device a command gives or takes: addresses, numbers, or 0, none. */
char qcul_trace_memory_kind(uint16_t op);
/* Its address or number. */
uint64_t qcul_trace_memory(const struct qCUcmd *cmd);
/* The bytes that it copies, sets or allocates. */
uint64_t qcul_trace_bytes(const struct qCUcmd *cmd);
/* Does it copy memory that the GPU cannot use where it is? */
bool qcul_trace_pageable(const struct qCUcmd *cmd);
/* The command has been carried out. Keeps what later ones are about. Call it without a lock. */
void qcul_trace_note(const struct qCUcmd *cmd);
/* Copies a name, as far as it fits into QCUL_TRACE_NAME bytes. */
void qcul_trace_cut_name(char *to, const char *name);
/* A copy of a name, cut, that free() takes. NULL: there is no memory. */
char *qcul_trace_keep_name(const char *name);
/* The name of a kernel, QCUL_TRACE_NAME bytes. False: it has none. */
bool qcul_trace_kernel(uint32_t id, char *name);

#endif

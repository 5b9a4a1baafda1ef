// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a command is about, for a trace: bytes, memory of the device, names of kernels. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-library/link/fork.h"
#include "qcu-library/link/link.h"
#include "qcu-library/link/trace.h"

#define PINNED_MAX    256  /* registrations that are known at a time */
#define DEMANGLED_MAX 1024 /* longer names of kernels stay as they are */

/* Memory that the program has registered, outside of the window. */
struct pinned_range {
	uint64_t addr, len;
};

static struct {
	char **kernels; /* names by number: QCU_ID_MAX + 1 */
	struct pinned_range pinned[PINNED_MAX];
	unsigned int pinned_count;
	bool pinned_unknown; /* there were more: nothing is called pageable */
} process;
QCUL_AT_FORK(QCUL_FORK_TRACE_ABOUT)

char qcul_trace_memory_kind(uint16_t op)
{
	switch (op) {
	case QCU_OP_MALLOC:
	case QCU_OP_FREE:
	case QCU_OP_MALLOC_ASYNC:
	case QCU_OP_FREE_ASYNC:
		return 'm';
	case QCU_OP_PHYS_CREATE:
	case QCU_OP_PHYS_RELEASE:
		return 'p';
	default:
		return 0;
	}
}

uint64_t qcul_trace_bytes(const struct qCUcmd *cmd)
{
	switch (cmd->op) {
	case QCU_OP_COPY_D2D:
		return cmd->copy_d2d.len;
	case QCU_OP_MALLOC:
		return cmd->malloc.size;
	case QCU_OP_MALLOC_ASYNC:
		return cmd->malloc_async.size;
	case QCU_OP_PHYS_CREATE:
		return cmd->phys_create.size;
	}
	return cmd->op != QCU_OP_LAUNCH && qcu_rule(cmd->op)->buffer != QCU_BUFFER_NONE
		       ? cmd->buf.len
		       : 0;
}

uint64_t qcul_trace_memory(const struct qCUcmd *cmd)
{
	switch (cmd->op) {
	case QCU_OP_MALLOC:
		return cmd->malloc.ptr;
	case QCU_OP_FREE:
		return cmd->free.ptr;
	case QCU_OP_MALLOC_ASYNC:
		return cmd->malloc_async.ptr;
	case QCU_OP_FREE_ASYNC:
		return cmd->free_async.ptr;
	case QCU_OP_PHYS_CREATE:
		return cmd->phys_create.mem;
	case QCU_OP_PHYS_RELEASE:
		return cmd->phys_release.mem;
	default:
		return 0;
	}
}

/* The caller holds the lock. */
static void note_registration(const struct qCUcmd *cmd)
{
	unsigned int i;

	if (cmd->op == QCU_OP_HOST_REGISTER) {
		process.pinned_unknown |= process.pinned_count == PINNED_MAX;
		if (process.pinned_count < PINNED_MAX)
			process.pinned[process.pinned_count++] =
				(struct pinned_range){cmd->buf.addr, cmd->buf.len};
	}
	for (i = 0; cmd->op == QCU_OP_HOST_UNREGISTER && i < process.pinned_count; i++)
		if (process.pinned[i].addr == cmd->host_unregister.addr) {
			process.pinned[i] = process.pinned[--process.pinned_count];
			return;
		}
}

/* The caller holds the lock. */
static bool is_registered_or_unknown(uint64_t addr)
{
	unsigned int i;

	for (i = 0; i < process.pinned_count; i++)
		if (addr - process.pinned[i].addr < process.pinned[i].len)
			return true;
	return process.pinned_unknown;
}

bool qcul_trace_pageable(const struct qCUcmd *cmd)
{
	const struct qcu_rule *rule = qcu_rule(cmd->op);
	const struct qcu_hello *h = qcul_hello();
	bool registered;

	if (!(rule->traits & QCU_MEMORY) || cmd->op == QCU_OP_LIB_ASK ||
	    (rule->buffer != QCU_BUFFER_IN && rule->buffer != QCU_BUFFER_OUT &&
	     cmd->op != QCU_OP_COPY_SMALL) ||
	    cmd->buf.addr - h->window_base < h->window_size)
		return false;
	pthread_mutex_lock(&at_fork.lock);
	registered = is_registered_or_unknown(cmd->buf.addr);
	pthread_mutex_unlock(&at_fork.lock);
	return !registered;
}

char *qcul_demangle(const char *name)
{
	char *(*demangle)(const char *, char *, size_t *, int *);
	/* One that is loaded with a module of Python's is found by its name only. */
	void *lib = strncmp(name, "_Z", 2) ? NULL : dlopen("libstdc++.so.6", RTLD_LAZY);
	int status;

	if (!lib)
		return NULL;
	demangle = (char *(*)(const char *, char *, size_t *, int *))dlsym(lib, "__cxa_demangle");
	return demangle ? demangle(name, NULL, NULL, &status) : NULL;
}

void qcul_trace_cut_name(char *to, const char *name)
{
	size_t n = strnlen(name, QCUL_TRACE_NAME - 1);

	memcpy(to, name, n);
	to[n] = '\0';
}

char *qcul_trace_keep_name(const char *name)
{
	char *copy = malloc(QCUL_TRACE_NAME);

	if (copy)
		qcul_trace_cut_name(copy, name);
	return copy;
}

/* A kernel gets its number: keeps its name. Nothing is locked: the demangler allocates memory. */
static void note_kernel(const struct qCUcmd *cmd)
{
	void (*release)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "free");
	const char *mangled = (const char *)(uintptr_t)cmd->buf.addr;
	char *name, *shown, *old, whole[DEMANGLED_MAX];

	snprintf(whole, sizeof(whole), "%.*s", (int)cmd->buf.len, mangled);
	shown = cmd->buf.len < sizeof(whole) ? qcul_demangle(whole) : NULL;
	name = qcul_trace_keep_name(shown ? shown : whole);
	if (shown)
		release(shown);
	pthread_mutex_lock(&at_fork.lock);
	if (!process.kernels)
		process.kernels = calloc(QCU_ID_MAX + 1, sizeof(*process.kernels));
	old = name;
	if (process.kernels && cmd->kernel_find.kernel <= QCU_ID_MAX) {
		old = process.kernels[cmd->kernel_find.kernel];
		process.kernels[cmd->kernel_find.kernel] = name;
	}
	pthread_mutex_unlock(&at_fork.lock);
	free(old);
}

void qcul_trace_note(const struct qCUcmd *cmd)
{
	if (cmd->op == QCU_OP_KERNEL_FIND) {
		note_kernel(cmd);
		return;
	}
	pthread_mutex_lock(&at_fork.lock);
	note_registration(cmd);
	pthread_mutex_unlock(&at_fork.lock);
}

bool qcul_trace_kernel(uint32_t id, char *name)
{
	bool known;

	pthread_mutex_lock(&at_fork.lock);
	known = process.kernels && id <= QCU_ID_MAX && process.kernels[id];
	if (known)
		qcul_trace_cut_name(name, process.kernels[id]);
	pthread_mutex_unlock(&at_fork.lock);
	return known;
}

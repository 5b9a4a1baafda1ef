// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copies of managed variables. A second copy, the twin, holds the content that both sides last
 * agreed on. A block that differs from the twin was written by the program or by the GPU.
 *
 * At any time, either the program or the GPU owns the variables. Before the first work after a
 * wait, the program's changes go to the GPU. The first wait after work waits for the whole device
 * and then brings the GPU's changes. This is the rule that CUDA has for devices where
 * concurrentManagedAccess is 0.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qcu-library/link/fork.h"
#include "qcu-library/memory/managed_copy.h"

#define BLOCK 4096u

struct copy {
	uint64_t addr;
	size_t bytes;
	unsigned int epoch;
	char *twin, *fresh;
	struct copy *next;
};

static struct {
	struct copy *copies;
	atomic_bool gpu_has; /* GPU work may be under way */
} process;
QCUL_AT_FORK(QCUL_FORK_MANAGED_COPIES)

static QCUL_NEAR bool busy; /* this thread is moving or adding copies */

static char *program(const struct copy *c)
{
	return (char *)(uintptr_t)c->addr;
}

/* ---- moving bytes; the lock is held ---- */

static cudaError_t fetch_gpu_copy(const struct copy *c)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_COPY_D2H);

	cmd.copy_d2h.buf.addr = (uint64_t)(uintptr_t)c->fresh;
	cmd.copy_d2h.buf.len = c->bytes;
	cmd.copy_d2h.src = c->addr;
	cmd.copy_d2h.stream = QCU_STREAM_LEGACY;
	cmd.copy_d2h.flags = QCU_COPY_SYNC;
	return qcul_send(&cmd, 1);
}

static cudaError_t store(const struct copy *c, size_t at, size_t len)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_COPY_H2D);

	cmd.copy_h2d.buf.addr = (uint64_t)(uintptr_t)(c->twin + at);
	cmd.copy_h2d.buf.len = len;
	cmd.copy_h2d.dst = c->addr + at;
	cmd.copy_h2d.stream = QCU_STREAM_LEGACY;
	cmd.copy_h2d.flags = QCU_COPY_SYNC;
	return qcul_send(&cmd, 1);
}

/* Finds the next run of blocks from *at on that differ. Returns its length, 0 if there is none. */
static size_t differ(const char *a, const char *b, size_t bytes, size_t *at)
{
	size_t end;

	for (; *at < bytes; *at += BLOCK) {
		size_t len = bytes - *at < BLOCK ? bytes - *at : BLOCK;

		if (memcmp(a + *at, b + *at, len))
			break;
	}
	for (end = *at; end < bytes; end += BLOCK) {
		size_t len = bytes - end < BLOCK ? bytes - end : BLOCK;

		if (!memcmp(a + end, b + end, len))
			break;
	}
	if (*at >= bytes)
		return 0;
	return (end < bytes ? end : bytes) - *at;
}

static cudaError_t push_program_changes(const struct copy *c)
{
	cudaError_t err = cudaSuccess;
	size_t at = 0, len;

	for (; !err && (len = differ(program(c), c->twin, c->bytes, &at)); at += len) {
		memcpy(c->twin + at, program(c) + at, len);
		err = store(c, at, len);
	}
	return err;
}

static cudaError_t pull(const struct copy *c)
{
	cudaError_t err = fetch_gpu_copy(c);
	size_t at = 0, len;

	for (; !err && (len = differ(c->fresh, c->twin, c->bytes, &at)); at += len) {
		memcpy(c->twin + at, c->fresh + at, len);
		memcpy(program(c) + at, c->fresh + at, len);
	}
	return err;
}

static cudaError_t move_all_copies(cudaError_t (*move)(const struct copy *c))
{
	cudaError_t err = cudaSuccess;
	const struct copy *c;

	for (c = process.copies; c && !err; c = c->next)
		if (c->epoch == qcul_epoch())
			err = move(c);
	return err;
}

static bool mine(void)
{
	if (busy)
		return false;
	busy = true;
	pthread_mutex_lock(&at_fork.lock);
	return true;
}

static void unlock_copies(void)
{
	pthread_mutex_unlock(&at_fork.lock);
	busy = false;
}

/* ---- called by session.c ---- */

static cudaError_t to_gpu(void)
{
	cudaError_t err = cudaSuccess;

	if (!mine())
		return cudaSuccess;
	if (!atomic_load(&process.gpu_has))
		err = move_all_copies(push_program_changes);
	if (!err)
		atomic_store(&process.gpu_has, true);
	unlock_copies();
	return err;
}

static cudaError_t back(void)
{
	cudaError_t err = cudaSuccess;

	if (!mine())
		return cudaSuccess;
	if (atomic_load(&process.gpu_has)) {
		err = qcul_devices_idle();
		if (!err)
			err = move_all_copies(pull);
		if (!err)
			atomic_store(&process.gpu_has, false);
	}
	unlock_copies();
	return err;
}

static const struct qcul_mover mover = {to_gpu, back};

/* ---- adding and removing copies ---- */

/*
 * Gives the program writable memory at the addresses of the variable. Pages that other variables
 * share are already writable.
 */
static bool make_variable_writable(uint64_t addr, size_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = addr & ~(page - 1);
	const struct copy *c;

	if (!qcul_reserve(addr, bytes))
		return false;
	for (; at < addr + bytes; at += page) {
		for (c = process.copies; c; c = c->next)
			if (c->addr < at + page && at < c->addr + c->bytes)
				break;
		if (!c && mprotect((void *)(uintptr_t)at, page, PROT_READ | PROT_WRITE))
			return false;
	}
	return true;
}

static void free_copy(struct copy *c)
{
	if (c) {
		free(c->twin);
		free(c->fresh);
	}
	free(c);
}

static cudaError_t add_variable_copy(struct copy *c, const void *values)
{
	struct qcul_range range = {
		.kind = QCUL_MEM_VARIABLE,
		.flags = QCUL_MEM_COPIED,
		.start = c->addr,
		.len = c->bytes,
		.device = qcul_self.device,
		.epoch = qcul_epoch(),
	};
	cudaError_t err;

	if (!make_variable_writable(c->addr, c->bytes))
		return cudaErrorNotSupported;
	err = fetch_gpu_copy(c);
	if (err)
		return err;
	memcpy(c->twin, c->fresh, c->bytes);
	if (!values)
		memcpy(program(c), c->fresh, c->bytes);
	else if (values != program(c))
		memcpy(program(c), values, c->bytes);
	(void)qcul_mem_add(&range);
	c->next = process.copies;
	process.copies = c;
	qcul_session_moves(&mover);
	atomic_store(&process.gpu_has, false);
	return cudaSuccess;
}

cudaError_t qcul_managed_copy_new(uint64_t addr, size_t bytes, const void *values)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	struct copy *c = calloc(1, sizeof(*c));
	cudaError_t err = cudaErrorMemoryAllocation;

	if (c) {
		*c = (struct copy){.addr = addr, .bytes = bytes, .epoch = qcul_epoch()};
		c->twin = malloc(bytes);
		c->fresh = malloc(bytes);
	}
	if (c && c->twin && c->fresh) {
		busy = true;
		pthread_mutex_lock(&at_fork.lock);
		err = add_variable_copy(c, values);
		unlock_copies();
	}
	if (err == cudaErrorNotSupported)
		qcul_say_once(&said,
			      "a __managed__ variable of the GPU lies where this process has "
			      "something else");
	if (err)
		free_copy(c);
	return err;
}

void qcul_managed_copy_drop(uint64_t addr)
{
	struct qcul_range range;
	struct copy **at, *c;

	pthread_mutex_lock(&at_fork.lock);
	for (at = &process.copies; *at && (*at)->addr != addr; at = &(*at)->next)
		;
	c = *at;
	if (c) {
		*at = c->next;
		(void)qcul_mem_take(addr, QCUL_MEM_VARIABLE, &range);
	}
	pthread_mutex_unlock(&at_fork.lock);
	free_copy(c);
}

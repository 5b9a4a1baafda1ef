// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Many small allocations in a row. Each has to be asked of the mirror, and the wait for the answer
 * takes longer than the allocation. NVIDIA's library divides blocks of 2 MiB instead. Here, from
 * the eighth allocation of one size on, one wait brings several. They are allocations like all
 * others; those that nobody has asked for yet are kept for the next calls.
 *
 * They are freed when the program frees anything, allocates another size, or asks how much memory
 * is free. So a program that counts its memory does not see them.
 */
#include "qcu-library/link/fork.h"
#include "qcu-library/memory/memory.h"

#define LARGEST ((size_t)256 << 10)
#define ALL	((size_t)2 << 20) /* the most memory that is kept */
#define FROM	8		  /* the allocation that is the first to bring others */
#define MOST	32

struct pieces {
	unsigned int n;
	uint64_t addr[MOST];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* What was allocated last, how often in a row, and what is kept of it. */
static size_t size;
static int device;
static unsigned int row;
static struct pieces kept;

static void free_all(const struct pieces *p)
{
	struct qCUcmd cmds[MOST];
	unsigned int i;

	for (i = 0; i < p->n; i++) {
		cmds[i] = qcul_cmd(QCU_OP_FREE);
		cmds[i].free.ptr = p->addr[i];
	}
	if (p->n)
		(void)qcul_post(cmds, p->n);
}

/* Ends the row. The caller holds the lock, and frees what is returned without it. */
static struct pieces end_row(void)
{
	struct pieces old = kept;

	row = kept.n = 0;
	return old;
}

void qcul_ahead_drop(void)
{
	struct pieces old;

	pthread_mutex_lock(&lock);
	old = end_row();
	pthread_mutex_unlock(&lock);
	free_all(&old);
}

/* Returns an allocation that is kept. Else 0, and *ask is how many to ask for. */
static uint64_t next_kept_allocation(size_t len, int dev, unsigned int *ask)
{
	struct pieces old = {0};
	uint64_t addr = 0;

	pthread_mutex_lock(&lock);
	if (len != size || dev != device) {
		old = end_row();
		size = len;
		device = dev;
	}
	if (kept.n)
		addr = kept.addr[--kept.n];
	row++;
	*ask = row < FROM || len > LARGEST ? 1 : row < MOST ? row : MOST;
	if (*ask > 1 && *ask > ALL / len)
		*ask = (unsigned int)(ALL / len);
	pthread_mutex_unlock(&lock);
	free_all(&old);
	return addr;
}

/* Keeps the pieces for the next calls. If there is no room, or the row has ended, frees them. */
static void keep_pieces(size_t len, int dev, struct pieces *more)
{
	pthread_mutex_lock(&lock);
	if (row && len == size && dev == device)
		while (more->n && kept.n < MOST)
			kept.addr[kept.n++] = more->addr[--more->n];
	pthread_mutex_unlock(&lock);
	free_all(more);
}

cudaError_t qcul_ahead_alloc(size_t len, uint64_t *addr)
{
	int dev = qcul_self.device;
	struct pieces got = {0};
	struct qCUcmd cmds[MOST];
	unsigned int ask, i;
	cudaError_t err;

	*addr = next_kept_allocation(len, dev, &ask);
	if (*addr)
		return cudaSuccess;
	for (i = 0; i < ask; i++) {
		cmds[i] = qcul_cmd(QCU_OP_MALLOC);
		cmds[i].malloc.size = len;
	}
	err = qcul_send(cmds, ask);
	for (i = 0; i < ask; i++)
		if (cmds[i].malloc.ptr)
			got.addr[got.n++] = cmds[i].malloc.ptr;
	/* What fits is given, also if not all that was asked for does. */
	if (!got.n || (err && err != cudaErrorMemoryAllocation))
		return err;
	*addr = got.addr[--got.n];
	keep_pieces(len, dev, &got);
	return cudaSuccess;
}

static void forget_kept_pieces(bool had_session)
{
	(void)had_session;
	(void)end_row();
}

QCUL_AT_FORK(QCUL_FORK_AHEAD, .lock = &lock, .forget = forget_kept_pieces)

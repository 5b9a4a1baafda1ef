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

struct address_list {
	unsigned int n;
	uint64_t addr[MOST];
};

/* What was allocated last, how often in a row, and what is kept of it. */
static struct {
	size_t size;
	int device;
	unsigned int row;
	struct address_list kept;
} session;
QCUL_AT_FORK(QCUL_FORK_AHEAD, QCUL_SESSION)

static void free_all(const struct address_list *p)
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
static struct address_list end_row(void)
{
	struct address_list old = session.kept;

	session.row = session.kept.n = 0;
	return old;
}

void qcul_ahead_drop(void)
{
	struct address_list old;

	pthread_mutex_lock(&at_fork.lock);
	old = end_row();
	pthread_mutex_unlock(&at_fork.lock);
	free_all(&old);
}

/* Returns an allocation that is kept. Else 0, and *ask is how many to ask for. */
static uint64_t next_kept_allocation(size_t len, int dev, unsigned int *ask)
{
	struct address_list old = {0};
	uint64_t addr = 0;

	pthread_mutex_lock(&at_fork.lock);
	if (len != session.size || dev != session.device) {
		old = end_row();
		session.size = len;
		session.device = dev;
	}
	if (session.kept.n)
		addr = session.kept.addr[--session.kept.n];
	session.row++;
	*ask = session.row < FROM || len > LARGEST ? 1 : session.row < MOST ? session.row : MOST;
	if (*ask > 1 && *ask > ALL / len)
		*ask = (unsigned int)(ALL / len);
	pthread_mutex_unlock(&at_fork.lock);
	free_all(&old);
	return addr;
}

/*
 * Keeps the allocations for the next calls. If there is no room, or the row has ended, frees them.
 */
static void keep_addresses(size_t len, int dev, struct address_list *more)
{
	pthread_mutex_lock(&at_fork.lock);
	if (session.row && len == session.size && dev == session.device)
		while (more->n && session.kept.n < MOST)
			session.kept.addr[session.kept.n++] = more->addr[--more->n];
	pthread_mutex_unlock(&at_fork.lock);
	free_all(more);
}

cudaError_t qcul_ahead_alloc(size_t len, uint64_t *addr)
{
	int dev = qcul_self.device;
	struct address_list got = {0};
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
	keep_addresses(len, dev, &got);
	return cudaSuccess;
}

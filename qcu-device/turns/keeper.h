/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The keeper of a VM: a process that keeps the VM known to the brokers of its GPUs, and starts a
 * broker where there is none. While there is no broker, the VM's orders say that it is alone.
 *
 * It reads nothing that a guest or a mirror has written.
 */
#ifndef QCU_TURNS_KEEPER_H
#define QCU_TURNS_KEEPER_H

#include <sys/un.h>

#include "qcu-device/turns/pages.h"

#define KEEPER_GPU_NAME 64u

struct keeper_gpu {
	char name[KEEPER_GPU_NAME];
	uint64_t memory; /* bytes; 0: not known */
	/* So many bytes of it are for the VM's store, and nothing else; 0: it is one of the VM's.
	 */
	uint64_t store;
};

struct keeper {
	bool on;
	unsigned int gpus;
	int orders;  /* can only be read */
	int reports; /* each session writes its pages */
	int bell;
	int life; /* the keeper ends when the last copy of this file is closed */
};

/*
 * `hello` is what to announce; its `gpu` and `memory` do not matter. The brokers' sockets lie in
 * `folder`, by the names of the GPUs. program: a qcu-share to start; NULL: none. Returns why there
 * is no keeper, or NULL. A VM that wants a guarantee waits for the brokers' answers: one may refuse
 * it.
 */
const char *keeper_start(struct keeper *k, const struct turns_hello *hello, const char *folder,
			 const struct keeper_gpu *gpu, unsigned int gpus, const char *program);

/* Maps the files as a mirror has them. False: no memory. */
bool turns_map(struct turns_view *v, unsigned int gpus, int orders, int reports, int bell);
/* The session is over, and its mirror is gone. */
void turns_session_ended(const struct turns_view *v, unsigned int session);

/* Where the broker's socket lies. False, with errno: the path is too long. */
bool turns_address(struct sockaddr_un *addr, const char *folder, const char *gpu);
/* Connects to the broker's socket, which never blocks. Returns -1 with errno. */
int turns_connect(const char *folder, const char *gpu);

#endif

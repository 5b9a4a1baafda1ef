/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* TCP, for ranks that no Unix socket and no memory handle reaches: addresses and connections. */
#ifndef QCCL_NET_H
#define QCCL_NET_H

#include <stdbool.h>
#include <stdint.h>

/* As it is told to other ranks. */
struct qccl_address {
	uint16_t family; /* 0: none; 4 or 6 */
	uint16_t port;
	unsigned char ip[16];
};

/*
 * Chooses this machine's address, by NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY. The one of the
 * loopback interface is chosen only if there is no other and `loopback`, or if it is asked for.
 * False: there is none.
 */
bool qccl_net_choose(struct qccl_address *a, bool loopback);

/* NCCL_P2P_DISABLE=1: ranks of this process use TCP, also with ranks of the same machine. */
bool qccl_net_alone(void);

/* A socket that listens at a free port of the address, whose port is set then; or -1 and errno. */
int qccl_net_listen(struct qccl_address *a);

/* A connection, or -1 and errno. Waits for some time. */
int qccl_net_connect(const struct qccl_address *a);

/* Closes a socket that is of no use, keeps errno, and returns -1. */
int qccl_net_give_up(int fd);

/* What every connection needs: small messages go at once, and a machine that is gone is noticed. */
void qccl_net_prepare(int fd);

#endif

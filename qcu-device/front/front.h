/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which messages a front end may send. It is QEMU, or a user who speaks in QEMU's place: with
 * Slurm, a job's user reaches the device of his job. libvhost-user serves messages of other
 * devices, too, and trusts what QEMU says of its memory.
 */
#ifndef QCU_FRONT_H
#define QCU_FRONT_H

#include <libvhost-user.h>

/*
 * Why a message must end the connection before the library sees it; NULL: it need not. Looks at the
 * kind, the number of files, and memory. Queues are the caller's, who knows where memory is mapped.
 */
const char *front_refuses(const VhostUserMsg *msg);

#endif

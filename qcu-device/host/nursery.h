/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The nursery: a process that makes the mirrors' processes for the main process, which itself may
 * not. It has the capabilities for that, in the VM's user namespace; it reads nothing but the main
 * process's orders, and has no memory of the guest.
 *
 * What it makes are children of the main process. Where the host gives process namespaces, a child
 * is the first process of one. It starts the mirror, waits for it, and ends with its exit code, or
 * with 128 and the number of the signal that killed it.
 */
#ifndef QCU_NURSERY_H
#define QCU_NURSERY_H

#include <stdbool.h>
#include <sys/types.h>

#include "qcu-device/jail/jail.h"

#define NURSERY_FILES 600u

/*
 * Starts the nursery, which keeps these two files, and changes their numbers for itself. `become`
 * executes a mirror; its files are those of the order, an entry of -1 was not there. False: an
 * error was printed on stderr.
 */
bool nursery_begin(const struct jail *j, int *program, int *plugin,
		   void (*become)(int *fd, unsigned int n) __attribute__((noreturn)));

/*
 * Orders a mirror for this seat, which gets the files, up to NURSERY_FILES; -1: no file. Returns
 * the pid of the child, or -1 with errno.
 */
pid_t nursery_order(unsigned int seat, const int *fd, unsigned int n);

/* The status of a mirror, from the status of the child. */
int nursery_status(int status);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A new qcu-device takes the VM over from an old one, under programs that run (docs/lifecycle.md).
 * QEMU and the guest do not notice it: the old one gives its connection to QEMU away, and tells the
 * new one what QEMU has told, as messages of vhost-user.
 *
 * The old one gives up nothing before the new one has all. Until then its mirrors are held, not
 * ended. Thus at each moment exactly one of the two may let the sessions go on.
 */
#ifndef QCU_TAKE_OVER_H
#define QCU_TAKE_OVER_H

#include <stdbool.h>

struct device;

/* What main() has prepared. */
struct take_over {
	int listener; /* where the next one asks; -1: nobody may take the VM over */
	bool taking;  /* the socket that is served leads to the old one, and not to QEMU */
};

/* For the new one, before it goes to jail: connects to the old one. */
enum take_over_found {
	TAKE_OVER_FAILED, /* a reason has been printed */
	TAKE_OVER_VM,	  /* *sock leads to a qcu-device that has a VM */
	TAKE_OVER_IDLE,	  /* it waited for QEMU; *sock listens for QEMU now, and *listener is set */
};
enum take_over_found take_over_connect(const char *path, unsigned int sessions, int *sock,
				       int *listener);
/*
 * For an old one that waits for QEMU at `qemu`. True: the new one waits there now, and this process
 * must end without a trace.
 */
bool take_over_idle(int listener, int qemu, unsigned int sessions);

/* Reads one message of vhost-user from the device's socket, and does what it says. */
typedef void take_over_message_fn(struct device *d);
/* For the new one: takes the VM. False: the old one goes on, and a reason has been printed. */
bool take_over_vm(struct device *d, struct take_over *t, take_over_message_fn *take_message);
/* For the old one: lets others ask. */
void take_over_listen(struct device *d, int listener);
/* Closes what is left of it. */
void take_over_end(struct device *d);

#endif

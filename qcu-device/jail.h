/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The jail: what qcu-device and its mirrors give up before they look at anything that comes from a
 * guest. docs/SECURITY.md says what it promises; docs/sandbox.md how the lists in it came about.
 *
 * One user, one set of namespaces and one Landlock domain for all processes of a VM, taken by the
 * main process; a filter of system calls for each process, the mirrors' being the narrower one.
 */
#ifndef QCU_JAIL_H
#define QCU_JAIL_H

#include <stdbool.h>
#include <sys/types.h>

struct jail {
	bool off;   /* --no-sandbox */
	bool named; /* --user: `uid` and `gid` are the operator's choice */
	bool verbose;
	uid_t uid;
	gid_t gid;
};

/* --user: a name or a number. False: there is no such user, or it is root. */
bool jail_user(struct jail *j, const char *name);

/* The main process, with one thread, after it has opened what it needs. False: said on stderr. */
bool jail_main(const struct jail *j);

/* A mirror has ended: removes what it has left in the VM's own shared memory. */
void jail_sweep(pid_t pid);

/* A mirror, with one thread. False: said on stderr. */
bool jail_mirror(const struct jail *j);

#endif

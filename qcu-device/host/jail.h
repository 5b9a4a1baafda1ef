/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The jail: what qcu-device and its mirrors give up before they read anything from a guest.
 * docs/SECURITY.md says what the jail promises; docs/sandbox.md says how its lists were made.
 *
 * All processes of a VM share one user, one set of namespaces and one Landlock domain, which the
 * main process sets up. Each process has a system call filter; that of the mirrors allows less.
 */
#ifndef QCU_JAIL_H
#define QCU_JAIL_H

#include <stdbool.h>
#include <sys/types.h>

struct jail {
	bool off;   /* --no-sandbox */
	bool named; /* --user: the operator chose `uid` and `gid` */
	bool verbose;
	uid_t uid;
	gid_t gid;
};

/* --user: parses a name or a number. False: there is no such user, or it is root. */
bool jail_user(struct jail *j, const char *name);

/*
 * The files that mirrors are executed from: the main process opens them before it goes to jail, and
 * they are all that a mirror may execute or load.
 */
struct jail_opened {
	int program, plugin; /* -1: there is no plugin */
	const char *loader;  /* the path of the program loader */
};

/*
 * For the main process, while it has one thread and after it has opened what it needs. False: an
 * error was printed on stderr.
 */
bool jail_main(const struct jail *j, const struct jail_opened *opened);

/*
 * For the metrics process: it keeps its user, who owns the socket that it removes at its end, but
 * may open nothing. False: it must not serve.
 */
bool jail_metrics(const struct jail *j);

/*
 * For the process that asks NVML what each process uses: it has loaded NVML, keeps its user, and
 * may do little more than open files and talk to NVIDIA's driver. False: it must not go on.
 */
bool jail_memwatch(const struct jail *j);

/* Removes the files that an ended mirror has left in the VM's own shared memory. */
void jail_sweep(pid_t pid);

/* For a mirror, while it has one thread. False: an error was printed on stderr. */
bool jail_mirror(const struct jail *j);

#endif

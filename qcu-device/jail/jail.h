/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The jail: what qcu-device and its mirrors give up before they read anything from a guest.
 * docs/SECURITY.md says what the jail promises; docs/sandbox.md says how its lists were made.
 *
 * All processes of a VM share a user namespace and namespaces for the network, IPC and mounts,
 * which jail_enter() makes. Each mirror is a domain of its own in them: it has a seat, and with
 * the seat a process namespace, a user, a Landlock domain and a filter of system calls.
 */
#ifndef QCU_JAIL_H
#define QCU_JAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The seats of mirrors are numbered from 1 on. There are more than mirrors at one time, so that a
 * seat is not used again at once.
 */
#define JAIL_SEATS 128u

#define JAIL_GPUS      64
#define GPU_NAME_BYTES 41u /* "MIG-" or "GPU-", a UUID, and the end */

struct jail_gpus {
	/* What the operator has chosen (gpus.h); the rest is found. */
	unsigned int named; /* 0: all that CUDA shows */
	unsigned char chosen[JAIL_GPUS][16];
	char part[GPU_NAME_BYTES]; /* the name of the one part of a GPU, or empty */
	bool store;		   /* the last one is only for what leaves the others */
	unsigned int soft_store;   /* the same of software GPUs: its number */

	bool known;	    /* false: which GPUs are the VM's cannot be told */
	unsigned int count; /* of /dev/nvidiaN */
	unsigned int minor[JAIL_GPUS];
	bool split[JAIL_GPUS]; /* the VM has a part of it (MIG) */
	bool part_known;       /* of which these are the driver's numbers: */
	unsigned int part_instance, part_compute;
	unsigned int devices; /* as programs count them, at most JAIL_GPUS */
	unsigned char uuid[JAIL_GPUS][16];
	uint64_t memory[JAIL_GPUS]; /* bytes */
	bool store_unreached;	    /* the others cannot use its memory */
};

struct jail {
	bool off;   /* --no-sandbox */
	bool weak;  /* --weak-sandbox: go on without what the host does not give */
	bool named; /* --user: the operator chose `uid` and `gid` */
	bool told;  /* jail_check() has said what the sandbox lacks */
	/*
	 * CUDA's debugger is used, which listens at a port (--fault-place). False from jail_enter()
	 * on if the VM has no network of its own, in which nobody can connect to it.
	 */
	bool ports;
	bool gpu; /* mirrors use the host's GPUs, these: */
	struct jail_gpus gpus;
	uid_t uid; /* of the main process, from jail_enter() on */
	gid_t gid;
	/* What the host has given: */
	bool own_shm;	/* the VM has shared memory of its own */
	bool own_pids;	/* each mirror has a process namespace, where its pid is its seat + 1 */
	bool own_users; /* each mirror has a user: uid + seat */
};

/* --user: parses a name or a number. False: there is no such user, or it is root. */
bool jail_user(struct jail *j, const char *name);

/*
 * Finds out, in a process of its own, what the host does not give, and prints it on stderr. False:
 * the device must not start.
 */
bool jail_check(struct jail *j);

/*
 * For the main process, while it has one thread and after it has opened what it needs: enters the
 * namespaces and becomes the VM's user. It keeps capabilities, which count only in the VM's user
 * namespace. False: an error was printed on stderr.
 */
bool jail_enter(struct jail *j);

/* For the main process, when the nursery has begun: gives up everything else. */
bool jail_main(const struct jail *j);

/*
 * For the nursery (birth.h): it keeps the capabilities with which it makes mirrors. A filter takes
 * the system calls that neither it nor a mirror needs.
 */
bool jail_nursery(const struct jail *j);

/*
 * For a child of the nursery. Makes a process, in new namespaces if mirrors have them. Returns as
 * fork() does; the process is a child of the nursery's parent.
 */
pid_t jail_child(const struct jail *j);
/*
 * For the first process of a mirror's namespaces: mounts /proc, and makes the mirror's process.
 * Returns as fork() does.
 */
pid_t jail_second(unsigned int seat);
/* For that first process, which then waits for the mirror: it can do nothing else. */
bool jail_first(const struct jail *j);
/* For a mirror's process, before it executes the mirror: takes the user of its seat. */
bool jail_take_seat(const struct jail *j, unsigned int seat);

/* For a mirror, while it has one thread. plugin: the backend's file, or -1. */
bool jail_mirror(const struct jail *j, int plugin);

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

/*
 * Removes the files that an ended mirror has left in the VM's own shared memory. pid: as the mirror
 * saw it.
 */
void jail_sweep(const struct jail *j, pid_t pid);

#endif

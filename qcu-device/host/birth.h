/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Starting a mirror: as a process of its own that executes this same program anew, so that it
 * shares its address layout with no other process. Both sides are here: the main process passes
 * files by fixed numbers, and the new program takes them.
 *
 * The main process starts it through the program loader, with the kernel's older address layout and
 * without a brk heap. Then all of the mirror's memory except its stack lies in one area of the
 * address space, at random addresses, and the ranges that guest programs use are free (window.c).
 */
#ifndef QCU_BIRTH_H
#define QCU_BIRTH_H

#include "qcu-device/host/device.h"
#include "qcu-device/memory/guestmem.h"

/* The command line word that makes the program a mirror. main() then calls birth_mirror(). */
#define BIRTH_WORD "--mirror"

struct ramfiles;

struct birth_shared {
	int states, shares, usage, account; /* memory files that all processes of the VM share */
	int named;			    /* the same, of named.h; -1: there is none */
	int board;			    /* not for mirrors; -1: it has been shown */
};

/*
 * The main process calls this once, while it may still open files. Opens the program and, if there
 * is one, the plugin; finds the loader. argv: its options also appear on the command line of each
 * mirror. False: an error was printed on stderr.
 */
bool birth_prepare(const struct device_options *opt, char *const *argv);
/*
 * Then it calls this, while it may still make processes: the nursery begins. The options must stay
 * where they are.
 */
bool birth_begin(const struct device_options *opt);

/* A mirror's own files. */
struct birth_files {
	int ctl, letters; /* its ends of the control socket, and of the one for letters */
	int group;	  /* of its control group (groups.h); -1: it has none */
	int store;	  /* for memory that has left (store_pool.h); -1: it has none */
};

/*
 * Executes a mirror at this seat, which gets these files. Returns the pid of the child whose status
 * nursery_status() turns into the mirror's; or -1 with errno.
 */
pid_t birth_give(const struct device_options *opt, const struct ramfiles *ram,
		 const struct birth_shared *shared, unsigned int seat,
		 const struct birth_files *own, bool warm);

/* The new process: becomes a mirror. */
void birth_mirror(void) __attribute__((noreturn));

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a mirror comes into the world: as a program of its own, this same one executed anew, so that
 * its addresses are nobody else's. Both sides are here: the main process hands over files by fixed
 * numbers, the new program takes them.
 *
 * It is started through the program loader, with the kernel's older layout of addresses and without
 * a heap by brk: then all that it has, its stack aside, lies in one area of the address space, at
 * random places, and the ranges in which guest programs have their memory are free (window.c).
 */
#ifndef QCU_BIRTH_H
#define QCU_BIRTH_H

#include "qcu-device/device.h"
#include "qcu-device/guestmem.h"

/* The word on its command line that makes the program a mirror; main() calls birth_mirror(). */
#define BIRTH_WORD "--mirror"

struct ramfiles;

struct birth_shared {
	int states, shares, usage, account; /* files of memory that all processes of the VM share */
};

/*
 * The main process, once, while it may still open files: the program, its loader, and the plugin
 * if there is one. argv is what a mirror shows as its command line, too. False: said on stderr.
 */
bool birth_prepare(const struct device_options *opt, char *const *argv);
/* Files that a mirror opens: the program, the plugin (-1: none); and the loader's path. */
int birth_program(void);
int birth_plugin(void);
const char *birth_loader(void);

/* Executes a mirror with its end of the control socket; its pid, or -1 with errno. */
pid_t birth_give(const struct device_options *opt, const struct ramfiles *ram,
		 const struct birth_shared *shared, int ctl_fd, bool warm);

/* The mirror. */
void birth_mirror(void) __attribute__((noreturn));

#endif

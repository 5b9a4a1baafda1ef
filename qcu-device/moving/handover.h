/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How two qcu-devices talk to each other when the new one takes a VM over from the old one
 * (docs/lifecycle.md). This is the socket and its words; host/take_over.c says them.
 *
 * The old one listens, the new one connects. Both belong to one user. Nevertheless the two may be
 * of different releases: each word says its version first, and each value is checked.
 *
 *	old  GREETING  it has a VM, or none; then the socket where it waits for QEMU comes along
 *	new  READY     it could start
 *	old  VM        the connection to QEMU, this socket's listener and the sessions' archive
 *	     then what QEMU has told the old one, as messages of vhost-user
 *	new  HAVE      it has the VM and all sessions, and does nothing with them
 *	old  YOURS     from here on the VM is the new one's
 *
 * Instead of any of its words, each of them may say NO with a reason. After NO the VM is the old
 * one's.
 */
#ifndef QCU_HANDOVER_H
#define QCU_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define HANDOVER_MAGIC	 0x7265766f646e6168ull /* "handover" */
#define HANDOVER_VERSION 1u

/* For what only a process that hangs reaches. The guest's driver waits for longer. */
#define HANDOVER_SECONDS 20

enum handover_what {
	HANDOVER_GREETING = 1,
	HANDOVER_READY,
	HANDOVER_VM,
	HANDOVER_HAVE,
	HANDOVER_YOURS,
	HANDOVER_NO,
};

#define HANDOVER_FILES 3
/* More messages than a front end with all queues and all memory has told. */
#define HANDOVER_MESSAGES 2048u

struct handover_word {
	uint64_t magic;
	uint32_t version;
	uint32_t what;
	uint32_t wire_version;
	uint32_t sessions; /* how many the device can have */
	uint64_t window_base;
	uint64_t window_size;
	uint32_t has_vm;   /* GREETING */
	uint32_t messages; /* VM: how many follow */
	uint32_t asked;	   /* VM: QEMU has just asked whether it can be saved */
	uint32_t rsvd[3];
	char why[192]; /* NO: a sentence without a full stop; else empty */
};
_Static_assert(sizeof(struct handover_word) == 256, "a word has no holes");

void handover_make(struct handover_word *w, enum handover_what what, unsigned int sessions);
void handover_make_no(struct handover_word *w, const char *why);
/*
 * Is this a word that a device with so many sessions can use, and the expected one? False: `why`
 * says why not; if the other side said NO, it is its reason, with only printable ASCII.
 */
bool handover_fits(const struct handover_word *w, enum handover_what what, unsigned int sessions,
		   char *why, size_t size);

/*
 * Makes the socket at this path, for this user only. Nothing may be there. Returns a listener that
 * does not block, or -1 with errno.
 */
int handover_listen(const char *path);
/* Returns a connection of this user or of root; -1 if there is none, or from somebody else. */
int handover_accept(int listener);
/* Connects to an old one, if it belongs to this user or to root. -1: `why` is a sentence. */
int handover_connect(const char *path, char *why, size_t size);

/* One word, with files. Entries of -1 are left out at the end only. False: the other has gone. */
bool handover_send(int sock, const struct handover_word *w, const int *fds, unsigned int n);
/*
 * Reads a word and its files. Entries of `fds` are -1 where there is none; too many files are an
 * error. False: the other has gone, or hangs, or sent something else; no file is left open.
 */
bool handover_receive(int sock, struct handover_word *w, int fds[HANDOVER_FILES]);
void handover_close(int fds[HANDOVER_FILES]);

#endif

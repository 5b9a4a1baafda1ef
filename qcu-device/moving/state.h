/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a qcu-device tells the one that continues its VM: after savevm, a migration, or a restart.
 * Rings and features are QEMU's to save. What is left is what the guest has read in the config
 * space, which must not change under its driver, and the open sessions: for each an entry, then
 * memory that had gone ahead to the device before (memory/ahead.h), if that one is saved, too, and
 * the archive that its mirror has written (mirror/archive.h), in pieces, as it writes it.
 *
 * The bytes come from QEMU, which has read them from a file or from the network. So each value has
 * bounds here, and nothing is used before all of them have been checked. Archives are read by the
 * mirrors that are made from them.
 */
#ifndef QCU_STATE_H
#define QCU_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/qcucmd.h"
#include "qcu-device/memory/ahead.h"

#define STATE_MAGIC   0x65746174732d7571ull /* "qu-state" */
#define STATE_VERSION 4

struct state {
	uint64_t magic;
	uint32_t version;      /* STATE_VERSION */
	uint32_t bytes;	       /* of this structure */
	uint32_t wire_version; /* QCU_WIRE_VERSION of the device that wrote it */
	uint32_t sessions;     /* how many the device can have */
	uint64_t window_base;
	uint64_t window_size;
	uint32_t open; /* sessions that follow */
	uint32_t gpus; /* in software; 0: they are NVIDIA's */
};
_Static_assert(sizeof(struct state) == 48, "the state has no holes");

#define STATE_GPUS	  64u
#define STATE_NONE	  0xffffu /* instead of a head: no command waits */
#define STATE_HEADS	  1024u
#define STATE_ARCHIVE_MIN 152u /* a head and the last entry */
#define STATE_ARCHIVE_MAX (1ull << 42)

struct state_entry {
	uint32_t queue;	 /* its number. They go up. */
	uint32_t pid;	 /* of the program in the VM */
	char name[16];	 /* of the program; ends with a zero, and zeros follow */
	uint32_t dead;	 /* 1: its mirror has gone, and the guest has not closed it. No archive. */
	uint16_t popped; /* index of the next command in its queue */
	uint16_t waits;	 /* head of the command that waits for a host function, or STATE_NONE */
	uint64_t memory[STATE_GPUS]; /* what it has on each GPU */
};
_Static_assert(sizeof(struct state_entry) == 32 + 8 * STATE_GPUS, "an entry has no holes");

/* The state of a device that can have this many sessions, of which `open` follow. */
void state_make(struct state *s, unsigned int sessions, unsigned int gpus, unsigned int open);

/* A device, and what is known while the entries are checked one after another. */
struct state_check {
	unsigned int sessions;		    /* the device can have so many */
	unsigned int gpus;		    /* as in `struct state` */
	uint64_t session_memory, vm_memory; /* limits for each GPU; UINT64_MAX: none */
	unsigned int last;		    /* the session before; 0: there is none */
	uint64_t memory[STATE_GPUS];	    /* of those before */
};
/* False: this device cannot go on from the state, and `why` says it. */
bool state_fits(const struct state_check *c, const struct state *s, char *why, size_t size);
bool state_entry_fits(struct state_check *c, const struct state_entry *s, char *why, size_t size);
/*
 * An archive's piece: 8 bytes with its length, at most STATE_PIECE, and as many bytes. A length of
 * 0 ends the archive. All pieces but the last are full.
 */
#define STATE_PIECE ((size_t)1 << 20)
/*
 * A state ends with a sum of all its bytes but those of the archives, which have sums of their own.
 * It finds what got damaged on the way, and is no protection against anybody. It goes on with the
 * head, and with each entry and length.
 */
uint64_t state_sum(uint64_t sum, const void *bytes, size_t len);

/* A session that has been read, and the file with its archive; -1: it has died. */
struct state_session {
	struct state_entry entry;
	int file;
};

/* A state that is read bit by bit, as it comes. */
struct state_reader {
	struct state_check check;
	struct ahead_reader *came; /* NULL: nothing may come ahead */
	struct state head;
	struct state_session session[QCU_MAX_SESSIONS];
	unsigned int count; /* sessions, of which the last one's archive may not be whole */
	enum state_part {
		STATE_HEAD,
		STATE_ENTRY,
		STATE_LENGTH,
		STATE_BYTES,
		STATE_SUM,
		STATE_END
	} part;
	uint8_t some[sizeof(struct state_entry)]; /* of the head, an entry, a length or the sum */
	size_t have;				  /* bytes of it */
	bool ahead;				  /* what comes went ahead before */
	uint64_t bytes;				  /* of it, or of the archive, until now */
	uint64_t left;				  /* of the piece */
	uint64_t sum;
	bool bad;
	char why[256]; /* if it is bad */
};

/* What had gone ahead goes into `came`, which stays the caller's. */
void state_begin(struct state_reader *r, const struct state_check *check,
		 struct ahead_reader *came);
/* The next bytes. Nothing happens once it is bad. */
void state_read(struct state_reader *r, const void *bytes, size_t len);
/* Was that all of it, and is it good? What is in the archives is not looked at. */
bool state_is_whole(const struct state_reader *r, char *why, size_t size);
/* Closes its files. */
void state_end(struct state_reader *r);
/* Reads a file from where it stands to its end. The result is that of state_is_whole(). */
bool state_read_file(struct state_reader *r, int fd, char *why, size_t size);

#endif

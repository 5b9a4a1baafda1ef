/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What vhost.c, which talks to QEMU, and sessions.c, which answers the control queue, share. */
#ifndef QCU_VHOST_H
#define QCU_VHOST_H

#include <libvhost-user.h>

#include "qcu-device/base/usage.h"
#include "qcu-device/host/birth.h"
#include "qcu-device/host/board.h"
#include "qcu-device/host/device.h"
#include "qcu-device/host/passes.h"
#include "qcu-device/front/ramfiles.h"
#include "qcu-device/memory/ahead.h"
#include "qcu-device/memory/shares.h"
#include "qcu-device/moving/state.h"

enum session_state {
	SESSION_NONE,
	SESSION_LIVE,	 /* a mirror works the queue */
	SESSION_CLOSING, /* its mirror has been killed for CLOSE, which is not answered yet */
	SESSION_ENDING,	 /* its mirror has been killed, and the reason has been reported */
	SESSION_DEAD,	 /* its mirror is gone; all chains are returned with length 0 */
};

struct mirror_process {
	pid_t pid; /* of the child that starts it, or its own (nursery.h) */
	unsigned int seat;
	int pidfd;
	int ctl_fd;	      /* our end */
	int group;	      /* of groups.h; -1: none */
	int store;	      /* of store_pool.h; -1: none */
	bool spare;	      /* made before there was a session for it */
	unsigned int expects; /* a spare: memory of this session has come ahead; 0: of none */
	bool owes;	      /* an answer about memory that goes ahead */
};

struct session {
	enum session_state state;
	struct mirror_process mirror;
	uint32_t guest_pid;
	char comm[17];
	bool held;	     /* its mirror takes no commands; or, if dead, its queue does not run */
	bool restored;	     /* and its mirror has never had this queue */
	uint16_t popped;     /* held: index of the next command */
	uint16_t waits;	     /* restored: as in state_entry */
	uint16_t close_head; /* SESSION_CLOSING: the chain to answer */
	struct qCUcmd close_cmd;
	struct iovec close_in;
};

/* Memory that goes ahead (ahead.c). */
struct ahead_out {
	int fd;				/* to QEMU; -1: none goes */
	int buffer;			/* in which mirrors put pieces */
	uint8_t *shared;		/* the same here */
	uint8_t *frame;			/* a piece on its way */
	size_t bytes, done;		/* of it, and how many of them QEMU has */
	uint64_t went;			/* bytes of all pieces that QEMU has */
	unsigned int session;		/* whose memory goes */
	bool begun;			/* its mirror has the buffer */
	unsigned int looks;		/* how often it was looked what has been written since */
	uint64_t late_until_ns;		/* so long the look when the VM stands may take */
	bool looking;			/* its mirror does that now, and has no piece yet */
	uint64_t left;			/* bytes that its mirror may still send */
	unsigned int pieces;		/* that its mirror has sent in this look */
	bool asked;			/* and has been asked for a piece, */
	uint64_t asked_ns;		/* at this moment */
	struct mirror_answer heard;	/* its answer, for the poll loop; what 0: none */
	bool ends;			/* no more pieces */
	int sent[QCU_MAX_SESSIONS + 1]; /* files with what QEMU has; 0: nothing */
	off_t sent_bytes[QCU_MAX_SESSIONS + 1];
	/* Bytes of each session in this look, or before the first one; and in the look before. */
	uint64_t gone[QCU_MAX_SESSIONS + 1], before[QCU_MAX_SESSIONS + 1];
};

struct device {
	const struct device_options *opt;
	VuDev vu;
	bool over;   /* QEMU has gone, or we were told to end */
	bool failed; /* the end was not in good order */
	bool left;   /* another qcu-device has taken the VM over */
	bool mem_changed;
	struct guestmem mem;
	struct ramfiles ram;	    /* the files behind `mem` */
	struct birth_shared shared; /* the files of states, shares, usage and the message limit */
	struct ring ring[QCU_MAX_SESSIONS + 1];
	struct ring_address {
		uint64_t desc, avail, used;
	} ring_at[QCU_MAX_SESSIONS + 1]; /* where the rings lie, in guest-physical addresses */
	struct session session[QCU_MAX_SESSIONS + 1]; /* by queue; [0] is not a session */
	struct mirror_process spare[PREWARM_MAX];     /* the oldest first */
	unsigned int spares;
	bool seat_taken[JAIL_SEATS];
	struct passes passes; /* of letters between mirrors, by seat */
	unsigned int last_seat;
	bool spares_fail;	   /* the last spare failed */
	struct ring_state *states; /* shared with mirrors, by queue */
	struct shares *shares;	   /* what mirrors share with one another */
	struct usage *usage;	   /* what mirrors use of the host */
	struct turns_view turns;   /* how the VM shares its GPUs with others */
	struct board *board;	   /* shared with the metrics process */
	struct ring_chain chain;   /* the control command that is being carried out */
	int listener;		   /* where another qcu-device asks for the VM; -1: nowhere */
	int peer;		   /* the one that has asked; -1: none */
	/* Saving and loading the VM (transfer.c). */
	bool asked;	      /* QEMU's last message asks whether the VM can be saved */
	bool stands;	      /* the device stops to be saved: all sessions are held */
	char against[256];    /* then: why they cannot be saved; empty: they can */
	uint64_t refused;     /* when a reason that may pass was last in the way; 0: never */
	bool wrote;	      /* there has been a session since QEMU began to log written pages */
	bool moved;	      /* the last state was saved, or loaded, without an error */
	bool made;	      /* the sessions of `loaded` are there, and wait for their queues */
	char not_loaded[256]; /* why the last state was not loaded; QEMU reads it next. Or empty */
	int saving;	      /* the pipe for the state that is to be written; -1: none */
	int loading;	      /* the pipe with a saved state; -1: none */
	struct state_reader *loaded; /* what has come from there; NULL: nothing */
	uint64_t loaded_bytes;
	struct ahead_out ahead;
	int coming;		   /* a socket from which memory comes ahead; -1: none */
	struct ahead_reader *came; /* what has come so, or with the state; NULL: nothing */
	uint64_t expected[QCU_MAX_SESSIONS + 1]; /* bytes of it that a spare has been told of */
};

/* QEMU copies the VM's memory, and wants to know what is written meanwhile. */
static inline bool device_logs(const struct device *d)
{
	return d->vu.features >> VHOST_F_LOG_ALL & 1;
}

/* poll.c: what the poll loop watches. One callback for each fd. */
typedef void watch_fn(struct device *d, unsigned int queue);
void device_watch_nothing(void);
void device_watch(struct device *d, int fd, watch_fn *fn, unsigned int queue);
/* The same for a file to which something is to be written. */
void device_watch_writable(struct device *d, int fd, watch_fn *fn);
void device_unwatch(struct device *d, int fd);
/*
 * Waits until a watched file is ready, for so many milliseconds at most (-1: for any time), and
 * calls the callbacks of all that are.
 */
void device_poll(struct device *d, int ms);

/* spares.c */
void spares_fill(struct device *d);
void spares_end(struct device *d);
/* Ends those that do not live on: see MIRROR_REGION. */
void spares_memory_changes(struct device *d);
/*
 * Gives this queue's session to a mirror, a spare or a new one. It begins to work the queue; or, if
 * `saved` is not NULL, it restores that session and is held. False: this failed, and the reason has
 * been reported.
 */
struct saved_files {
	int archive;
	int ahead; /* -1: nothing has come ahead */
};
bool spares_take(struct device *d, unsigned int queue, const struct saved_files *saved,
		 struct mirror_process *out);
/*
 * Memory of this session has come ahead, so many bytes of the file: a spare makes them ready, and
 * is kept for the session. Without it spares_take() gives the session another mirror.
 */
void spares_expect(struct device *d, unsigned int queue, int ahead, uint64_t bytes);
/* Ends those that are kept. */
void spares_expect_nothing(struct device *d);
/* Sends a message with up to two files. False: with errno. */
bool mirror_tell(const struct mirror_process *p, const struct mirror_message *m, const int *fds,
		 unsigned int n, int flags);
/* Tells the mirror to work this queue. goes_on: it was held, and may rest at first (MIRROR_BEGIN).
 */
bool mirror_begin(struct device *d, unsigned int queue, const struct mirror_process *p,
		  bool goes_on);
/* The mirror's process has been reaped: closes what is left of it, and frees its seat. */
void mirror_gone(struct device *d, const struct mirror_process *p);

/*
 * memwatch.c: ends a session that uses more memory of a GPU than its limit and the allowance.
 * memwatch_ask() asks for numbers, if there are sessions and none are on their way.
 */
void memwatch_begin(struct device *d);
void memwatch_ask(struct device *d);

/* status.c: what each session uses of its limits, on stderr. */
void status_print(struct device *d);

/* sessions.c */
void sessions_control(struct device *d, unsigned int queue); /* queue 0 has been kicked */
/* Kills all mirrors, waits, and returns the chains that they had. why: NULL says nothing. */
void sessions_end_all(struct device *d, const char *why);
/*
 * How many sessions the guest has open. *queue is the first one's, or 0. Those that are being
 * closed are closed first.
 */
unsigned int sessions_open(struct device *d, unsigned int *queue);
/* Kills the mirror of a live session; the rest comes when it is gone. */
void sessions_kill(struct device *d, unsigned int queue, const char *why);
/* Called before a queue stops: no chain of it may be outstanding. */
void sessions_queue_stops(struct device *d, unsigned int queue);
/* QEMU gives a queue another interrupt (-1: none). The fd stays the caller's. */
void sessions_new_call_fd(struct device *d, unsigned int queue, int fd);
/* The guest has this session, and the mirror carries it. A mirror of 0: it has died. */
void sessions_adopt(struct device *d, unsigned int queue, const struct mirror_process *mirror);
/* Ends all held sessions. The guest does not know them any more. */
void sessions_drop_held(struct device *d, const char *why);
/* Reaps the mirrors of all sessions that are being closed or ended. */
void sessions_settle(struct device *d);
/*
 * The queue of a held session runs again. It goes on if the queue is at the command where it was;
 * else it has ended, because the guest has set its device up anew.
 */
void sessions_queue_starts(struct device *d, unsigned int queue);

/*
 * hold.c: all sessions stand still, are saved, and go on, here or in another qcu-device.
 *
 * sessions_hold(): no mirror takes commands any more, and their GPUs do nothing. wait_ms: how long
 * work may take to end. vm_stands: a host function of a program cannot end, so nothing waits for
 * it. False: one of the sessions cannot be saved, and `why` names it. All are held in any case.
 * *passes: the reason may pass.
 */
bool sessions_hold(struct device *d, unsigned int wait_ms, bool vm_stands, bool *passes, char *why,
		   size_t size);
/* All held sessions go on with their queues, which have not stopped. */
void sessions_go_on(struct device *d);
/*
 * Writes a state (moving/state.h) with all sessions, which are held, into a file, pipe or socket,
 * from where it stands on. They stay held, and can go on.
 */
bool sessions_save(struct device *d, int fd, char *why, size_t size);
/*
 * Makes all sessions of a state, in a device that has none and knows the VM's memory. They are held
 * until sessions_queue_starts(). False: `why` says what is wrong with the state, or which session
 * could not be made; such a session has died, and the caller may end the others. *lost: that is all
 * that is wrong, and the other sessions are there.
 */
bool sessions_restore(struct device *d, const struct state_reader *state, bool *lost, char *why,
		      size_t size);
/* Writes a state once more, as it was read, with what had come ahead. */
bool sessions_save_again(const struct device *d, int fd, char *why, size_t size);

/* What this device asks of a state. */
struct state_check device_check(const struct device *d);

/*
 * ahead.c: memory goes ahead, and comes. Sockets are not waited for, but for what QEMU has written
 * before another message. They are closed here.
 */
bool ahead_start(struct device *d, int fd);
void ahead_stop(struct device *d); /* the device stops */
/*
 * The device has stopped, and what went ahead has gone: what has been written since goes through
 * this socket. False: nothing does.
 */
bool ahead_last(struct device *d, int fd);
/* An answer that came while another one was waited for. False: the mirror owes none. */
bool ahead_heard(struct device *d, unsigned int queue, const struct mirror_answer *a);
int ahead_wait_ms(const struct device *d);
void ahead_look(struct device *d); /* from the poll loop */
/* A file with what has gone ahead, for the session that is saved; -1: nothing. */
int ahead_sent(struct device *d, unsigned int queue);
void ahead_mirror_gone(struct device *d, unsigned int queue);
bool ahead_expect(struct device *d, int fd, uint64_t most);
/* Makes d->came, if there is none. most: bytes that may come. False: there is no memory. */
bool ahead_prepare(struct device *d, uint64_t most);
void ahead_arrives(struct device *d); /* reads all that QEMU has written */
void ahead_forget_came(struct device *d);
void ahead_over(struct device *d); /* the device ends */

/*
 * transfer.c: the state of the device goes to QEMU or comes from there. These are called for each
 * message, for those of the device's state, after each message, and at the end.
 */
void transfer_message(struct device *d, unsigned int request);
void transfer_state(struct device *d, VhostUserMsg *vmsg, int *do_reply);
void transfer_check(struct device *d, VhostUserMsg *vmsg, int *do_reply);
void transfer_write(struct device *d);
void transfer_end(struct device *d);
/* Why the VM cannot be saved now; empty: it can. */
void transfer_reason(struct device *d, char *why, size_t size);
/* The VM's memory is about to change. */
void transfer_memory_changes(struct device *d);
/* The first queue starts: the sessions of a state that has been loaded go on. */
void transfer_starts(struct device *d);
/* A queue has stopped: marks the pages that have been written. */
void transfer_mark_written(struct device *d);

#endif

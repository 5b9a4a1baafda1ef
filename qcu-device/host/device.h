/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of the qcu-device process share: the options, and the functions that its files
 * call in each other.
 */
#ifndef QCU_DEVICE_H
#define QCU_DEVICE_H

#include <stdbool.h>
#include <sys/types.h>

#include "qcu-device/base/limits.h"
#include "qcu-device/jail/jail.h"
#include "qcu-device/memory/ring.h"
#include "qcu-device/mirror/mirror.h"
#include "qcu-device/turns/keeper.h"

#define PREWARM_MAX 16

struct device_options {
	struct be_options be;
	enum mir_map map;
	struct limits limits;
	uint32_t refused_libraries; /* as in mir_config */
	enum sensors_for sensors;   /* as in mir_config */
	uint64_t pin_limit;	    /* as in mir_config */
	unsigned int sessions;
	unsigned int prewarm; /* spare mirrors, up to PREWARM_MAX */
	unsigned int poll_us; /* how long a mirror polls for commands before it sleeps */
	unsigned int copiers; /* threads for one large copy, at most one per processor */
	struct keeper keeper; /* off: the GPUs are not shared by agreement */
	struct jail jail;
	bool swap_file;	    /* mirrors have files for memory that has left (store_pool.h) */
	bool lose_sessions; /* a VM is loaded without the sessions that cannot be made */
	bool gpu_time;	    /* it is counted how long sessions keep GPUs busy */
	bool plugin;	    /* mirrors load the cuda backend; false: soft, which is linked in */
	bool verbose;
	bool trace;
};

/* Exit codes of the program. */
enum {
	DEVICE_EXIT_OK = 0,
	DEVICE_EXIT_FAILURE = 1, /* an error was printed on stderr */
	DEVICE_EXIT_USAGE = 2,	 /* bad options, or the backend is not there */
};

/* Exit codes of a mirror. The main process prints what they mean. */
enum {
	MIRROR_EXIT_RULE = 3,	 /* the guest broke a rule of the wire */
	MIRROR_EXIT_TIMEOUT = 5, /* a kernel did not end */
	MIRROR_EXIT_SETUP = 4,	 /* no backend, no window, … */
};

/* plugin.c */
enum plugin_probe {
	PLUGIN_GPU,
	PLUGIN_OPEN_GPU, /* its kernels can use memory that is not registered: HMM, ATS */
	PLUGIN_NO_GPU,
	PLUGIN_MISSING,
};
/*
 * Runs the plugin's probe in a process of its own, and finds the GPUs that mirrors will use.
 * `quiet`: prints nothing.
 */
enum plugin_probe plugin_probe(bool quiet, struct jail_gpus *gpus);
/*
 * Finds the number N of /dev/nvidiaN for a GPU by its place on the bus. proc: the folder with a
 * folder for each GPU, NVIDIA_GPUS but in tests. False: nothing is known about this GPU.
 */
#define NVIDIA_GPUS "/proc/driver/nvidia/gpus"
bool plugin_minor(const char *proc, unsigned int domain, unsigned int bus, unsigned int slot,
		  unsigned int *minor);
/* The path of the plugin. Returns 0 or -errno. */
#define PLUGIN_PATH_MAX (4096 + 32)
int plugin_path(char *path, size_t size);
/* For mirrors: loads the plugin from an open file. NULL: an error was printed on stderr. */
const struct be_ops *plugin_load(int fd);

/*
 * vhost.c: serves one QEMU until it disconnects. t: NULL if no other qcu-device is ever asked, or
 * asks (take_over.h). Returns an exit code.
 */
struct take_over;
int vhost_serve(int sock, const struct device_options *opt, struct take_over *t);

/*
 * memwatch.c: starts the process that asks how much memory of the GPUs each mirror uses, if it has
 * a purpose. Called before the main process goes to jail. Returns why it does not start, or NULL.
 */
const char *memwatch_start(const struct device_options *opt);
void memwatch_stop(void);

/* mirror_vq.c: the life of a mirror process. */
struct mirror_args {
	const struct device_options *opt;
	const struct be_ops *ops;
	struct guestmem *mem;
	int named;		   /* the file of named.h; -1: none */
	struct ring_state *states; /* indexed by queue */
	struct shares *shares;
	struct usage *usage;
	struct turns_view turns;
	int store; /* a file for memory that has left; 0: none */
	bool warm; /* get ready before the session arrives */
	/*
	 * The control socket: it brings the session, and later what mirror_tells lists. The main
	 * process's end closes when that process ends.
	 */
	int ctl_fd;
};
void mirror_vq_run(const struct mirror_args *args) __attribute__((noreturn));

/*
 * What the main process tells a mirror on ctl_fd. The first message is MIRROR_BEGIN or
 * MIRROR_RESTORE. Each of those marked with (answer) is answered with a mirror_answer; nothing else
 * is sent until the answer is there.
 */
enum mirror_tells {
	/*
	 * Work this queue, or go on with it; with the kick fd and the call fd. For wait_ms at first
	 * take commands only as long as a host function of the program needs them.
	 */
	MIRROR_BEGIN = 1,
	MIRROR_CALL, /* another call fd, or none */
	/*
	 * Finish the commands that were taken, and take only those that a host function of the
	 * program needs. When none is left, or after wait_ms, take no more (answer).
	 */
	MIRROR_HOLD,
	/*
	 * Held: write the session into the first file (answer). The second one, if there is one,
	 * says what has gone ahead.
	 */
	MIRROR_SAVE,
	/*
	 * Make the session that is in the first file, and be held (answer). The second one, if
	 * there is one, is what has come ahead.
	 */
	MIRROR_RESTORE,
	/*
	 * Copy the next piece of memory that goes ahead into the buffer. With a buffer: begin with
	 * the first one. The answer may come at any time, also after others.
	 */
	MIRROR_AHEAD,
	/*
	 * Unless it is held, stand still for a moment (wait_ms). Begin once more, with what is
	 * otherwise than the second file says, if that is no more than `bytes`. The answer, to
	 * MIRROR_AHEAD, has its size in place of an address.
	 */
	MIRROR_AGAIN,
	/*
	 * To a spare: so much of this file has come ahead for the session that it will get, and
	 * more will.
	 */
	MIRROR_COMES,
	/*
	 * To such a spare: a part of the VM's memory, in this file. The first one makes void what
	 * there was.
	 */
	MIRROR_REGION,
};

/* The addresses of the queue's parts are guest-physical: the sender has them mapped elsewhere. */
struct mirror_message {
	uint32_t what;
	unsigned int wait_ms; /* how long commands may take to end */
	bool vm_stands;	      /* the VM's processors have stopped: no host function ends */
	unsigned int session;
	uint32_t guest_pid;
	bool event_idx;
	unsigned int num;
	uint64_t desc, avail, used;
	uint64_t bytes;	      /* for MIRROR_AGAIN and MIRROR_COMES, and the size of a region */
	uint64_t gpa, offset; /* of a region */
	bool first;	      /* region */
};

/* A guest may have broken into the mirror: nothing in it is trusted. */
struct mirror_answer {
	uint32_t what; /* it answers this */
	bool ok;
	bool passes; /* if not ok: the reason may pass */
	char why[160];
	/* The piece that went ahead. */
	uint64_t addr;
	uint32_t len;
};

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The state of the device goes to QEMU when the VM is saved or migrated, and comes from QEMU where
 * the VM goes on. QEMU asks first whether that is possible (GET_CONFIG), stops the queues, copies
 * the last of the memory, and then reads the state from a pipe. If something fails on the way, it
 * starts the queues again: so sessions are held until then, and end with the connection.
 *
 * Where the VM goes on, QEMU announces its memory before the state. So all sessions are made before
 * QEMU hears that the state is loaded, and the source gives the VM up after that. They wait for the
 * first queue. The state is kept until then: the VM may be saved once more, or its memory may
 * change.
 */
#define _GNU_SOURCE /* F_SETPIPE_SZ */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/base/spin.h"
#include "qcu-device/host/vhost.h"
#include "qcu-device/memory/named.h"
#include "qcu-device/moving/dirty.h"

#define MSG_STATE_NO_FILE (1u << 8) /* in the answer: the file that came is used */
#define MSG_STATE_FAILED  1u
enum { DIRECTION_SAVE, DIRECTION_LOAD };
/* The VM may run. The second is our QEMU's own: memory goes ahead (ahead.c). */
enum { PHASE_STOPPED, PHASE_AHEAD };

/*
 * How long work may take to end. When QEMU only asks, the VM runs on, and work that takes longer
 * is no reason against saving yet.
 */
#define ASK_MS	200
#define STOP_MS 5000

/* A log that could not be mapped is no log. */
static bool has_log(const struct device *d)
{
	return d->vu.log_table && d->vu.log_table != MAP_FAILED;
}

/* ---- may it, and when does it stop ---- */

/* QEMU reads the reason behind the guest's part of the config space. */
void transfer_reason(struct device *d, char *why, size_t size)
{
	bool passes;

	d->asked = true;
	*why = '\0';
	if (*d->not_loaded) {
		snprintf(why, size, "%s", d->not_loaded);
		*d->not_loaded = '\0';
		return;
	}
	if (d->stands) {
		snprintf(why, size, "%s", d->against);
	} else if (!d->loaded && sessions_open(d, NULL)) {
		if (!sessions_hold(d, ASK_MS, false, &passes, why, size) && passes)
			*why = '\0';
		sessions_go_on(d);
	}
	if (!*why && device_logs(d) && !has_log(d))
		snprintf(why, size, "the log of written pages cannot be mapped");
}

/*
 * Queues also stop when the guest resets its device, and then its sessions end. They stop to be
 * saved if QEMU has just asked whether that is possible.
 */
void transfer_message(struct device *d, unsigned int request)
{
	bool passes;

	if (request != VHOST_USER_GET_CONFIG)
		*d->not_loaded = '\0';
	if (request == VHOST_USER_SET_VRING_ENABLE)
		return;
	if (request == VHOST_USER_GET_VRING_BASE && d->asked && !d->stands && !d->loaded) {
		d->stands = true;
		ahead_stop(d);
		d->against[0] = '\0';
		if (!sessions_hold(d, STOP_MS, true, &passes, d->against, sizeof(d->against)) &&
		    passes)
			d->refused = spin_clock();
	}
	if (request != VHOST_USER_GET_VRING_BASE)
		d->asked = false;
}

/* Here this process writes without a session: it returns the chains of mirrors that have died. */
static bool mark_rings(struct device *d)
{
	bool all = true;
	unsigned int q;

	for (q = 0; q <= d->opt->sessions; q++)
		if (d->ring[q].num)
			all &= dirty_mark(d->vu.log_table, d->vu.log_size, d->ring_at[q].used,
					  ring_used_bytes(d->ring[q].num));
	return all;
}

/* Kernels write when they like, so what sessions have named counts as written. */
static bool mark_written(struct device *d)
{
	uint8_t *log = d->vu.log_table;
	const uint64_t bytes = d->vu.log_size;
	bool known, all;

	if (!has_log(d))
		return false;
	known = dirty_mark_named(log, bytes, d->shared.named, d->opt->sessions + 1);
	all = dirty_mark_from(log, bytes, &d->mem, known ? NAMED_END : 0);
	return mark_rings(d) && all;
}

/* If there has been no session since QEMU began to copy the memory, nothing has been written. */
void transfer_mark_written(struct device *d)
{
	if (!device_logs(d) || !d->wrote)
		return;
	if (!mark_written(d))
		complain("the log of written pages is too small for the VM's memory");
	d->wrote = sessions_open(d, NULL);
}

/* ---- loading ---- */

static void end_loading(struct device *d)
{
	if (d->loading < 0)
		return;
	device_unwatch(d, d->loading);
	close(d->loading);
	d->loading = -1;
}

static void drop_made(struct device *d, const char *why)
{
	if (d->made)
		sessions_drop_held(d, why);
	d->made = false;
}

static void forget_loaded(struct device *d)
{
	drop_made(d, "ended, because the VM does not go on from its state");
	if (d->loaded)
		state_end(d->loaded);
	free(d->loaded);
	d->loaded = NULL;
	d->loaded_bytes = 0;
}

/* A state may take half of the host's memory. */
static uint64_t most_bytes(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) / 2 * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* After a state that is too long, QEMU's write fails. */
static void read_state(struct device *d, unsigned int queue)
{
	static uint8_t piece[STATE_PIECE];
	ssize_t n;

	(void)queue;
	/* After what is wrong nothing is read. */
	if (!d->loaded || !d->came) {
		end_loading(d);
		return;
	}
	do {
		n = read(d->loading, piece, sizeof(piece));
		if (n <= 0)
			continue;
		d->loaded_bytes += (uint64_t)n;
		if (d->loaded_bytes > most_bytes() - d->came->bytes) {
			forget_loaded(d);
			n = 0;
		} else {
			state_read(d->loaded, piece, (size_t)n);
		}
	} while (n > 0 || (n < 0 && errno == EINTR));
	if (!n || errno != EAGAIN)
		end_loading(d);
}

/* QEMU has written all of it, and asks for the result. */
static bool is_loaded(struct device *d, char *why, size_t size)
{
	bool ends;

	if (d->came && d->came->bad) {
		end_loading(d);
		snprintf(why, size, "%s", d->came->why);
		return false;
	}
	if (d->loading >= 0)
		read_state(d, 0);
	ends = d->loading < 0;
	end_loading(d);
	if (!ends || !d->loaded || !d->loaded_bytes) {
		snprintf(why, size, "%s",
			 !ends	      ? "it does not end"
			 : !d->loaded ? "it is too long"
				      : "it is empty");
		return false;
	}
	return state_is_whole(d->loaded, why, size);
}

static bool queues_run(const struct device *d)
{
	unsigned int q;

	for (q = 0; q <= d->opt->sessions; q++)
		if (d->ring[q].num)
			return true;
	return false;
}

/* Makes the sessions of a state that has been checked. False: the VM cannot go on here. */
static bool make_loaded(struct device *d, char *why, size_t size)
{
	bool lost;

	if (queues_run(d)) {
		snprintf(why, size, "the device runs");
		return false;
	}
	sessions_drop_held(d, "ended, because another state of the VM is loaded");
	/* An older QEMU announces the memory when the device starts. */
	if (!d->ram.count)
		return true;
	d->made = true;
	if (sessions_restore(d, d->loaded, &lost, why, size))
		return true;
	if (!lost || !d->opt->lose_sessions)
		return false;
	complain("the VM goes on without programs: %s", why);
	return true;
}

/* Sessions were made with the VM's memory as it was. They are made again when the VM starts. */
void transfer_memory_changes(struct device *d)
{
	drop_made(d, "is made anew, because the VM's memory layout changes");
}

void transfer_starts(struct device *d)
{
	char why[256];
	bool lost;

	d->stands = false;
	if (!d->loaded)
		return;
	if (!d->made && !sessions_restore(d, d->loaded, &lost, why, sizeof(why)))
		complain("not all sessions of the saved state could be made: %s", why);
	d->made = false;
	forget_loaded(d);
	ahead_forget_came(d);
}

/* ---- QEMU's messages ---- */

static void answer_state(VhostUserMsg *vmsg, int *do_reply, uint64_t answer)
{
	vmsg->payload.u64 = answer;
	vmsg->size = sizeof(vmsg->payload.u64);
	vmsg->fd_num = 0;
	*do_reply = 1;
}

/* Larger than it is by itself, if that may be: then the two sides wait for each other less often.
 */
static void enlarge_pipe(int fd)
{
	(void)fcntl(fd, F_SETPIPE_SZ, STATE_PIECE);
}

static bool begin_saving(struct device *d, int fd)
{
	char why[256];

	if (!d->stands && !d->loaded && sessions_open(d, NULL))
		snprintf(why, sizeof(why), "programs use CUDA");
	else
		transfer_reason(d, why, sizeof(why));
	if (*why) {
		complain("the VM cannot be saved, because %s", why);
		close(fd);
		return false;
	}
	enlarge_pipe(fd);
	d->saving = fd;
	return true;
}

static bool begin_loading(struct device *d, int fd)
{
	struct state_check check = device_check(d);

	forget_loaded(d);
	ahead_arrives(d);
	if (ahead_prepare(d, most_bytes()))
		d->loaded = malloc(sizeof(*d->loaded));
	if (!d->loaded) {
		complain("there is no memory for the device's state");
		close(fd);
		return false;
	}
	state_begin(d->loaded, &check, d->came);
	enlarge_pipe(fd);
	d->loading = fd;
	device_watch(d, fd, read_state, 0);
	return true;
}

/* Of a VM that stands already nothing goes ahead: all of it goes with the state. */
static bool begin_ahead(struct device *d, unsigned int direction, int fd)
{
	if (direction == DIRECTION_LOAD)
		return ahead_expect(d, fd, most_bytes());
	if (d->stands && !*d->against)
		return ahead_last(d, fd);
	if (!d->stands && !d->loaded)
		return ahead_start(d, fd);
	close(fd);
	return false;
}

/* QEMU has a pipe for the device's state. The device does not run, or the state is not saved. */
void transfer_state(struct device *d, VhostUserMsg *vmsg, int *do_reply)
{
	const struct vhost_vring_state what = vmsg->payload.state; /* has the same two fields */
	int fd = vmsg->fd_num == 1 ? vmsg->fds[0] : -1, i;
	bool ok = false;

	end_loading(d);
	d->moved = false;
	if (fd < 0 || vmsg->size != 2 * sizeof(uint32_t) || what.num > PHASE_AHEAD ||
	    what.index > DIRECTION_LOAD || fcntl(fd, F_SETFL, O_NONBLOCK)) {
		complain("QEMU asks for the device's state in an unknown way");
		for (i = 0; i < vmsg->fd_num; i++)
			close(vmsg->fds[i]);
	} else if (what.num == PHASE_AHEAD) {
		ok = begin_ahead(d, what.index, fd);
	} else if (what.index == DIRECTION_SAVE) {
		ok = begin_saving(d, fd);
	} else {
		ok = begin_loading(d, fd);
	}
	answer_state(vmsg, do_reply, MSG_STATE_NO_FILE | (ok ? 0 : MSG_STATE_FAILED));
}

/* QEMU reads the pipe when it has the answer. */
void transfer_write(struct device *d)
{
	char why[256] = "the state cannot be written";

	if (d->saving < 0)
		return;
	/* Sessions that have been loaded may not have begun yet. */
	if (d->loaded)
		d->moved = sessions_save_again(d, d->saving, why, sizeof(why));
	else
		d->moved = sessions_save(d, d->saving, why, sizeof(why));
	if (!d->moved)
		complain("the VM cannot be saved, because %s", why);
	close(d->saving);
	d->saving = -1;
}

/* QEMU has written or read all of it, and asks for the result. */
void transfer_check(struct device *d, VhostUserMsg *vmsg, int *do_reply)
{
	const bool loads = d->loading >= 0 || (d->loaded && !d->made);
	char why[256] = "nothing was saved or loaded";

	if (loads)
		d->moved = is_loaded(d, why, sizeof(why)) && make_loaded(d, why, sizeof(why));
	if (!d->moved) {
		forget_loaded(d);
		ahead_forget_came(d);
		if (loads)
			snprintf(d->not_loaded, sizeof(d->not_loaded), "%s", why);
		complain("the saved state of the device cannot be used: %s", why);
	}
	answer_state(vmsg, do_reply, d->moved ? 0 : MSG_STATE_FAILED);
}

void transfer_end(struct device *d)
{
	end_loading(d);
	forget_loaded(d);
	ahead_over(d);
	if (d->saving >= 0)
		close(d->saving);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where mirrors come from. A mirror is a program of its own (birth.h), opens its backend, and
 * carries a session. With --prewarm it starts and opens its backend before there is a session,
 * because making a GPU context takes longer than the first call of most programs may take. Such a
 * mirror is a spare. It waits on the socket on which it will get its session. It has the VM's
 * memory as that was when the spare began, so when the memory changes, spares are ended like
 * sessions.
 */
#define _GNU_SOURCE /* SYS_pidfd_open */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/base/send_files.h"
#include "qcu-device/base/spin.h"
#include "qcu-device/jail/groups.h"
#include "qcu-device/memory/store_pool.h"
#include "qcu-device/host/nursery.h"
#include "qcu-device/host/vhost.h"

/* Returns a seat that was not in use for long; 0: there is none. */
static unsigned int take_seat(struct device *d)
{
	unsigned int i, seat = d->last_seat;

	for (i = 1; i < JAIL_SEATS; i++) {
		seat = seat % (JAIL_SEATS - 1) + 1;
		if (d->seat_taken[seat])
			continue;
		d->seat_taken[seat] = true;
		d->last_seat = seat;
		return seat;
	}
	errno = EAGAIN;
	return 0;
}

void mirror_gone(struct device *d, const struct mirror_process *p)
{
	const struct jail *j = &d->opt->jail;

	if (p->pidfd >= 0)
		close(p->pidfd);
	close(p->ctl_fd);
	device_unwatch(d, d->passes.mirror[p->seat].fd);
	passes_remove(&d->passes, p->seat);
	jail_sweep(j, j->own_pids ? (pid_t)p->seat + 1 : p->pid);
	d->seat_taken[p->seat] = false;
	groups_give_back(p->group);
	store_pool_give_back(p->store);
}

/* Kills and reaps a process. It may have ended before. */
static int kill_and_reap(struct device *d, struct mirror_process *p)
{
	int status = 0;

	kill(p->pid, SIGKILL);
	while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
		;
	mirror_gone(d, p);
	return nursery_status(status);
}

static void end_seat(struct device *d, unsigned int seat)
{
	unsigned int i;

	for (i = 1; i <= d->opt->sessions; i++)
		if (d->session[i].mirror.pid && d->session[i].mirror.seat == seat)
			kill(d->session[i].mirror.pid, SIGKILL);
	for (i = 0; i < d->spares; i++)
		if (d->spare[i].seat == seat)
			kill(d->spare[i].pid, SIGKILL);
}

static void letter_came(struct device *d, unsigned int seat)
{
	enum passes_result r = passes_carry(&d->passes, seat);

	if (r == PASSES_CARRIED)
		return;
	/* The seat stays taken until the mirror has been reaped. */
	device_unwatch(d, d->passes.mirror[seat].fd);
	passes_remove(&d->passes, seat);
	if (r == PASSES_BAD) {
		complain("a mirror sends others what it may not, or too much");
		end_seat(d, seat);
	}
}

/* How much memory of the host a mirror may use. The VM's counts for the process that uses it first.
 */
static uint64_t bound_memory(const struct device *d)
{
	uint64_t most = d->opt->limits.session[LIMIT_HOST_MEMORY];
	unsigned int i;

	if (most != LIMIT_NONE && d->opt->be.movable)
		most += d->opt->limits.vm[LIMIT_SWAP] + (d->opt->swap_file ? BE_PIECE : 0) +
			(d->opt->plugin ? 0 : d->opt->be.store);
	for (i = 0; most != LIMIT_NONE && i < d->ram.count; i++)
		most += d->ram.file[i].size;
	return most;
}

static bool new_mirror(struct device *d, struct mirror_process *p, bool warm)
{
	int ctl[2], letters[2];
	struct birth_files own;

	*p = (struct mirror_process){.spare = warm};
	p->seat = take_seat(d);
	if (!p->seat || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ctl)) {
		complain("no socket for a mirror: %s", strerror(errno));
		d->seat_taken[p->seat] = false;
		return false;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, letters))
		letters[0] = letters[1] = -1;
	p->group = groups_take(bound_memory(d));
	p->store = store_pool_take();
	own = (struct birth_files){ctl[1], letters[1], groups_file(p->group), p->store};
	p->pid = letters[0] < 0 ? -1 : birth_give(d->opt, &d->ram, &d->shared, p->seat, &own, warm);
	close(ctl[1]);
	close(letters[1]);
	if (p->pid < 0) {
		complain("no process for a mirror: %s", strerror(errno));
		close(ctl[0]);
		close(letters[0]);
		d->seat_taken[p->seat] = false;
		groups_give_back(p->group);
		store_pool_give_back(p->store);
		return false;
	}
	passes_add(&d->passes, p->seat, letters[0]);
	device_watch(d, letters[0], letter_came, p->seat);
	p->ctl_fd = ctl[0];
	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (p->pidfd < 0) {
		complain("pidfd_open: %s", strerror(errno));
		kill_and_reap(d, p);
		return false;
	}
	return true;
}

static void remove_spare(struct device *d, unsigned int i)
{
	device_unwatch(d, d->spare[i].pidfd);
	d->spares--;
	memmove(&d->spare[i], &d->spare[i + 1], (d->spares - i) * sizeof(d->spare[0]));
}

/* A spare died before it had a session. No other spare is made until a guest program asks for a
 * mirror. */
static void spare_died(struct device *d, unsigned int unused)
{
	siginfo_t info;
	unsigned int i;

	(void)unused;
	for (i = 0; i < d->spares;) {
		struct mirror_process p = d->spare[i];
		int status;

		info.si_pid = 0;
		if (waitid(P_PID, p.pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid) {
			i++;
			continue;
		}
		remove_spare(d, i);
		status = kill_and_reap(d, &p);
		d->spares_fail = true;
		if (WIFSIGNALED(status))
			complain("a spare mirror was killed by signal %d (%s)", WTERMSIG(status),
				 strsignal(WTERMSIG(status)));
		else
			complain("a spare mirror could not start");
	}
}

static void keep_spare(struct device *d, const struct mirror_process *p)
{
	d->spare[d->spares++] = *p;
	device_watch(d, p->pidfd, spare_died, 0);
}

/* The first spare that expects memory of this session. 0: that expects none. d->spares: there is
 * none. */
static unsigned int find_spare(const struct device *d, unsigned int queue)
{
	unsigned int i;

	for (i = 0; i < d->spares && d->spare[i].expects != queue; i++)
		;
	return i;
}

static unsigned int count_expecting(const struct device *d)
{
	unsigned int i, n = 0;

	for (i = 0; i < d->spares; i++)
		n += d->spare[i].expects != 0;
	return n;
}

void spares_fill(struct device *d)
{
	struct mirror_process p;

	/*
	 * If the control queue is up, the guest has a driver, and QEMU has settled the VM's memory.
	 */
	while (!d->over && !d->spares_fail && d->ring[0].num && d->spares < PREWARM_MAX &&
	       d->spares - count_expecting(d) < d->opt->prewarm) {
		if (!new_mirror(d, &p, true)) {
			d->spares_fail = true;
			return;
		}
		keep_spare(d, &p);
	}
}

static bool ends_with_memory(const struct mirror_process *p)
{
	return !p->expects;
}

static bool expects_memory(const struct mirror_process *p)
{
	return p->expects;
}

static bool is_any(const struct mirror_process *p)
{
	(void)p;
	return true;
}

static void end_spares(struct device *d, bool (*ends)(const struct mirror_process *p))
{
	unsigned int i;

	/* Kill all of them first, as with sessions. */
	for (i = 0; i < d->spares; i++)
		if (ends(&d->spare[i]))
			kill(d->spare[i].pid, SIGKILL);
	for (i = 0; i < d->spares;) {
		struct mirror_process p = d->spare[i];

		if (!ends(&p)) {
			i++;
			continue;
		}
		remove_spare(d, i);
		kill_and_reap(d, &p);
	}
}

void spares_end(struct device *d)
{
	end_spares(d, is_any);
}

void spares_memory_changes(struct device *d)
{
	end_spares(d, ends_with_memory);
}

void spares_expect_nothing(struct device *d)
{
	end_spares(d, expects_memory);
}

bool mirror_tell(const struct mirror_process *p, const struct mirror_message *m, const int *fds,
		 unsigned int n, int flags)
{
	return send_files(p->ctl_fd, m, sizeof(*m), fds, n, MSG_NOSIGNAL | flags) == sizeof(*m);
}

/*
 * A program that is in a host function when the processors stop is in the way. QEMU lets the VM go
 * on then, and is likely to be told soon to try again. So after such a refusal, and after each
 * question that soon follows it, sessions rest: they begin no work but that of a host function. If
 * the VM stops meanwhile, it finds them idle.
 */
#define REST_MS	   1000
#define REFUSED_MS 10000

static unsigned int find_rest_ms(const struct device *d)
{
	return d->refused && spin_clock() - d->refused < REFUSED_MS * 1000000ull ? REST_MS : 0;
}

bool mirror_begin(struct device *d, unsigned int queue, const struct mirror_process *p,
		  bool goes_on)
{
	const VuVirtq *vq = &d->vu.vq[queue];
	const struct mirror_message m = {
		.what = MIRROR_BEGIN,
		.wait_ms = goes_on ? find_rest_ms(d) : 0,
		.session = queue,
		.guest_pid = d->session[queue].guest_pid,
		.event_idx = d->ring[queue].event_idx,
		.num = d->ring[queue].num,
		.desc = d->ring_at[queue].desc,
		.avail = d->ring_at[queue].avail,
		.used = d->ring_at[queue].used,
	};
	const int fds[2] = {vq->kick_fd, vq->call_fd};

	return mirror_tell(p, &m, fds, vq->call_fd >= 0 ? 2 : 1, 0);
}

/* The VM's memory may have been laid out anew since the spare was made. */
static bool tell_where_memory_is(const struct device *d, const struct mirror_process *p)
{
	struct mirror_message m = {.what = MIRROR_REGION, .first = true};
	unsigned int i;

	for (i = 0; i < d->ram.count; i++, m.first = false) {
		const struct ramfile *f = &d->ram.file[i];

		m.gpa = f->gpa;
		m.bytes = f->size;
		m.offset = f->offset;
		if (!mirror_tell(p, &m, &f->fd, 1, 0))
			return false;
	}
	return true;
}

static bool give_session(struct device *d, unsigned int queue, const struct mirror_process *p,
			 const struct saved_files *saved)
{
	const struct mirror_message m = {
		.what = MIRROR_RESTORE,
		.session = queue,
		.guest_pid = d->session[queue].guest_pid,
	};

	if (p->expects && !tell_where_memory_is(d, p))
		return false;
	return saved ? mirror_tell(p, &m, (const int[]){saved->archive, saved->ahead},
				   saved->ahead < 0 ? 1 : 2, 0)
		     : mirror_begin(d, queue, p, false);
}

bool spares_take(struct device *d, unsigned int queue, const struct saved_files *saved,
		 struct mirror_process *out)
{
	unsigned int i;

	d->spares_fail = false;
	d->states[queue].begun = false;
	for (;;) {
		i = saved ? find_spare(d, queue) : d->spares;
		/* The oldest spare is the most likely one to be ready. */
		if (i == d->spares)
			i = find_spare(d, 0);
		if (i == d->spares)
			break;
		*out = d->spare[i];
		remove_spare(d, i);
		if (give_session(d, queue, out, saved))
			return true;
		/* The spare has died, and the poll loop has not seen it yet. */
		kill_and_reap(d, out);
	}
	if (!new_mirror(d, out, false))
		return false;
	if (give_session(d, queue, out, saved))
		return true;
	complain("session %u: its mirror does not take it: %s", queue, strerror(errno));
	kill_and_reap(d, out);
	return false;
}

/* ---- memory that comes ahead ---- */

/* So many sessions have a spare of their own. What has come for others is made ready later. */
#define EXPECTING_MAX 8

void spares_expect(struct device *d, unsigned int queue, int ahead, uint64_t bytes)
{
	const struct mirror_message m = {.what = MIRROR_COMES, .bytes = bytes};
	struct mirror_process new = {.pid = 0};
	unsigned int i = find_spare(d, queue);

	if (i == d->spares) {
		/* An older QEMU announces the VM's memory later, and no mirror is made without. */
		if (!d->ram.count || count_expecting(d) == EXPECTING_MAX ||
		    d->spares == PREWARM_MAX || !new_mirror(d, &new, true))
			return;
		new.expects = queue;
		keep_spare(d, &new);
	}
	/* If it is busy, it hears of more soon. */
	(void)mirror_tell(&d->spare[i], &m, &ahead, 1, MSG_DONTWAIT);
}

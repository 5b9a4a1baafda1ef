// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The broker (broker.h). While several VMs have work it looks at their pages every TURNS_TICK;
 * otherwise it sleeps until one of them rings its bell.
 *
 * It trusts nothing that it reads. A VM's files must be sealed, so that their size stays. A VM's
 * page says what waits and what runs: a lie changes how the VM itself is charged and when it has
 * its turn, and no more. A bell that has rung is not listened to before the next tick.
 */
#define _GNU_SOURCE /* struct ucred, accept4 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "qcu-device/base/spin.h"
#include "qcu-device/turns/broker.h"
#include "qcu-device/turns/pages.h"
#include "qcu-device/turns/room.h"

#define FILES	  3 /* orders, reports, bell */
#define HELLO_NS  2000000000ull
#define PENDING	  64u /* connections that have not said hello */
#define LINE	  256
#define LOOK_PART 4 /* it looks for no more than so manyth of the time */
#define EVENTS	  64
#define NS_PER_S  1000000000ull
#define NEW_FIRST TURNS_VMS

/* One connection. The first TURNS_VMS are VMs, by their number in `turns`; the rest are new. */
struct connection {
	int sock; /* -1: none */
	int bell;
	bool deaf;  /* the bell has rung, and is not listened to before the next tick */
	bool quiet; /* it has had no work since it rang last: not looked at */
	uint64_t since_ns;
	struct turns_orders *orders; /* its page of them */
	const struct turns_report *reports;
	char name[TURNS_NAME];
};

static struct broker {
	struct turns turns;
	struct room room;
	bool rung; /* since the last look at who needs room */
	struct connection c[TURNS_VMS + PENDING];
	unsigned int vms;
	int poll, listener, timer;
	bool ticking;
	uid_t owner;
	uint64_t empty_since_ns;
} broker;

enum { LISTENER, TIMER, SOCKET, BELL };

static bool watch_fd(int op, int fd, unsigned int what, unsigned int i, bool once)
{
	struct epoll_event e = {.events = EPOLLIN | (once ? EPOLLONESHOT : 0),
				.data.u64 = (uint64_t)i << 2 | what};

	return !epoll_ctl(broker.poll, op, fd, &e);
}

static void start_tick(uint64_t ns)
{
	const struct itimerspec t = {.it_value.tv_nsec = (long)ns};

	if (!broker.ticking)
		broker.ticking = !timerfd_settime(broker.timer, 0, &t, NULL);
}

/* ---- the pages ---- */

static void set_word(_Atomic uint32_t *word, uint32_t value)
{
	if (atomic_load_explicit(word, memory_order_relaxed) == value)
		return;
	atomic_store_explicit(word, value, memory_order_release);
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Adds what one session says. Every value of its page is possible. */
static void read_report(const struct turns_report *r, uint32_t measured, struct turns_use *use)
{
	uint32_t n = atomic_load_explicit(&r->slots, memory_order_relaxed), i;
	unsigned int runs = 0, k;

	if (!atomic_load_explicit(&r->live, memory_order_relaxed))
		return;
	for (i = 0; i < n && i < TURNS_SLOTS; i++) {
		uint32_t begun = atomic_load_explicit(&r->slot[i].begun, memory_order_relaxed);
		uint32_t done = atomic_load_explicit(&r->slot[i].done, memory_order_relaxed);

		if ((begun ^ done) & TURNS_COUNT)
			runs |= 1u << (begun >> TURNS_KIND);
	}
	/* What it submitted unmarked may still run. */
	if (measured & 1 && atomic_load_explicit(&r->settled, memory_order_relaxed) != measured)
		runs |= 1u << TURNS_GPU;
	for (k = 0; k < TURNS_KINDS; k++) {
		use[k].running += runs >> k & 1;
		use[k].wants += atomic_load_explicit(&r->wants[k], memory_order_relaxed) != 0;
	}
}

static void read_vm(unsigned int i)
{
	struct connection *c = &broker.c[i];
	struct turns_use *use = broker.turns.vm[i].use;
	uint32_t measured = atomic_load_explicit(&c->orders->measured, memory_order_relaxed);
	unsigned int s;

	memset(use, 0, TURNS_KINDS * sizeof(*use));
	for (s = 1; !c->quiet && s < TURNS_SESSIONS; s++)
		read_report(&c->reports[s], measured, use);
}

static bool has_running(const struct turns_vm *v)
{
	unsigned int k;

	for (k = 0; k < TURNS_KINDS; k++)
		if (v->use[k].running)
			return true;
	return false;
}

/* busy: how many VMs have work under way. */
static void write_orders(unsigned int i, unsigned int busy)
{
	struct connection *c = &broker.c[i];
	const struct turns_vm *v = &broker.turns.vm[i];
	uint32_t measured = atomic_load_explicit(&c->orders->measured, memory_order_relaxed);
	bool measure = broker.turns.shared && broker.turns.alone != i;
	unsigned int k;

	if ((measured & 1) != measure)
		set_word(&c->orders->measured, measured + 1);
	atomic_fetch_add_explicit(&c->orders->looks, 1, memory_order_relaxed);
	if (busy > has_running(v))
		atomic_fetch_add_explicit(&c->orders->crowded, 1, memory_order_relaxed);
	c->quiet = true;
	for (k = 0; k < TURNS_KINDS; k++) {
		c->quiet &= v->order[k] == TURNS_RING && !v->use[k].wants;
		set_word(&c->orders->order[k], v->order[k]);
		atomic_store_explicit(&c->orders->had_ns[k], v->share[k].had_ns,
				      memory_order_relaxed);
		atomic_store_explicit(&c->orders->waited_ns[k], v->share[k].waited_ns,
				      memory_order_relaxed);
	}
}

/*
 * A look at very many VMs takes longer than a tick. Then the broker looks less often, so that it
 * does not keep a processor busy.
 */
static void look(void)
{
	struct turns *t = &broker.turns;
	uint64_t began = spin_clock(), next;
	unsigned int i, busy = 0;

	for (i = 0; i < t->top; i++)
		if (t->vm[i].there) {
			read_vm(i);
			busy += has_running(&t->vm[i]);
		}
	turns_look(t, spin_clock());
	for (i = 0; i < t->top; i++)
		if (t->vm[i].there)
			write_orders(i, busy);
	if (!t->shared)
		return;
	next = turns_next_look(t);
	began = (spin_clock() - began) * LOOK_PART;
	start_tick(next > began ? next : began);
}

/* ---- memory ---- */

static void read_claims(unsigned int vm, uint64_t now)
{
	const struct connection *c = &broker.c[vm];
	unsigned int s;

	for (s = 1; s < TURNS_SESSIONS; s++) {
		const struct turns_memory *m = &c->reports[s].memory;
		/* These come before what was written earlier. */
		uint32_t ask = atomic_load(&m->ask), number = atomic_load(&m->number);
		struct room_claim claim = {
			.live = atomic_load_explicit(&c->reports[s].live, memory_order_relaxed),
			.ask = ask & TURNS_NUMBER,
			.back = ask & TURNS_BACK,
			.now = ask & TURNS_NOW,
			.number = number,
			.held = atomic_load(&m->held),
			.fixed = atomic_load(&m->fixed),
			.away = atomic_load(&m->away),
			.kept = atomic_load(&m->kept),
			.need = atomic_load(&m->need),
			.left = atomic_load(&m->left),
			.worked_ns = atomic_load(&m->worked_ns),
			.told = atomic_load(&c->orders->room[s].number),
			.told_store = atomic_load(&c->orders->room[s].store),
		};

		room_claim(&broker.room, now, vm, s, &claim);
	}
}

static void write_answers(unsigned int vm)
{
	struct turns_orders *o = broker.c[vm].orders;
	bool ordered = false;
	unsigned int s;

	for (s = 1; s < TURNS_SESSIONS; s++) {
		const struct room_program *p = &broker.room.vm[vm].program[s];
		struct turns_room *to = &o->room[s];

		atomic_store(&to->store, p->live ? p->store : 0);
		if (p->live && p->ordered && atomic_load(&to->number) != p->number) {
			atomic_store(&to->bytes, p->bytes);
			atomic_store(&to->number, p->number);
			ordered = true;
		}
		if (p->live && p->answer && !p->asks)
			set_word(&to->answer, p->answer | (p->yes ? TURNS_GRANTED : 0));
	}
	if (ordered)
		set_word(&o->leaves, atomic_load(&o->leaves) + 1);
}

static void look_at_room(void)
{
	uint64_t now = spin_clock();
	unsigned int i;

	if (!broker.rung && (!broker.room.waits || now - broker.room.looked_ns < ROOM_TICK))
		return;
	broker.rung = false;
	for (i = 0; i < broker.room.top; i++)
		if (broker.room.vm[i].moves)
			read_claims(i, now);
	room_look(&broker.room, now);
	for (i = 0; i < broker.room.top; i++)
		if (broker.room.vm[i].moves)
			write_answers(i);
}

/* What a VM may have depends on what others are guaranteed. */
static void tell_memory(void)
{
	unsigned int i;

	for (i = 0; i < broker.room.top; i++) {
		if (!broker.room.vm[i].moves)
			continue;
		atomic_store(&broker.c[i].orders->most, room_most(&broker.room, i));
		atomic_store(&broker.c[i].orders->memory, broker.room.memory);
		atomic_store(&broker.c[i].orders->stores, room_stores(&broker.room));
	}
}

static void look_at_turns_and_room(void)
{
	look_at_room();
	look();
	if (broker.room.waits)
		start_tick(ROOM_TICK);
}

static void handle_tick(void)
{
	uint64_t times;
	unsigned int i;

	if (read(broker.timer, &times, sizeof(times)) < 0)
		return;
	broker.ticking = false;
	for (i = 0; i < TURNS_VMS; i++) {
		if (broker.c[i].sock < 0 || !broker.c[i].deaf)
			continue;
		broker.c[i].deaf = false;
		watch_fd(EPOLL_CTL_MOD, broker.c[i].bell, BELL, i, true);
	}
	look_at_turns_and_room();
}

static void hear_bell(unsigned int i)
{
	uint64_t times;

	if (read(broker.c[i].bell, &times, sizeof(times)) < 0 && errno != EAGAIN)
		return;
	broker.c[i].deaf = true;
	broker.c[i].quiet = false;
	broker.rung = true;
	look_at_turns_and_room();
	start_tick(TURNS_TICK);
}

/* ---- connections ---- */

static void close_connection(unsigned int i)
{
	struct connection *c = &broker.c[i];

	close(c->sock);
	if (i < TURNS_VMS) {
		turns_remove(&broker.turns, i);
		room_remove(&broker.room, i);
		tell_memory();
		broker.rung = true; /* its memory is free */
		munmap(c->orders, TURNS_PAGE);
		munmap((void *)(uintptr_t)c->reports, TURNS_SESSIONS * TURNS_PAGE);
		close(c->bell);
		if (!--broker.vms)
			broker.empty_since_ns = spin_clock();
	}
	*c = (struct connection){.sock = -1, .bell = -1};
}

static void accept_keeper(void)
{
	int sock = accept4(broker.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	unsigned int i = NEW_FIRST;
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (sock < 0)
		return;
	while (i < NEW_FIRST + PENDING && broker.c[i].sock >= 0)
		i++;
	if (i == NEW_FIRST + PENDING || getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) ||
	    (peer.uid && peer.uid != broker.owner) ||
	    !watch_fd(EPOLL_CTL_ADD, sock, SOCKET, i, false)) {
		close(sock);
		return;
	}
	broker.c[i] = (struct connection){.sock = sock, .bell = -1, .since_ns = spin_clock()};
}

/* Only a file that cannot shrink may be read without fear. */
static bool is_sealed(int fd, uint64_t size)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_SHRINK && !fstat(fd, &st) &&
	       (uint64_t)st.st_size == size;
}

static bool is_good_hello(const struct turns_hello *h)
{
	size_t n = strnlen(h->name, sizeof(h->name)), i;

	for (i = 0; i < n; i++)
		if (h->name[i] <= ' ' || h->name[i] > '~')
			return false;
	return h->gpu < TURNS_GPUS && h->weight >= 1 && h->weight <= TURNS_WEIGHT_MAX &&
	       h->max <= 100 && h->interactive <= 1 && h->moves <= 1 && h->stays <= h->moves && n &&
	       n < sizeof(h->name);
}

static bool map_pages(struct connection *c, const struct turns_hello *h, const int *fd)
{
	size_t reports = TURNS_SESSIONS * TURNS_PAGE;
	void *p;

	if (!is_sealed(fd[0], TURNS_ORDERS_BYTES) || !is_sealed(fd[1], TURNS_REPORTS_BYTES))
		return false;
	p = mmap(NULL, TURNS_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd[0],
		 (off_t)h->gpu * TURNS_PAGE);
	if (p == MAP_FAILED)
		return false;
	c->orders = p;
	p = mmap(NULL, reports, PROT_READ, MAP_SHARED, fd[1], (off_t)(h->gpu * reports));
	if (p != MAP_FAILED) {
		c->reports = p;
		return true;
	}
	munmap(c->orders, TURNS_PAGE);
	return false;
}

/* For the operator. */
static void tell_refusal(int sock, const struct turns_hello *h)
{
	const char *option = h->stays ? "--swap-gpu" : "--resident";
	char text[TURNS_WHY];
	uint64_t all, left = room_left(&broker.room, h->memory, &all);

	if (all)
		snprintf(text, sizeof(text),
			 "%s: %s %llu MiB is more than is left: the GPU has %llu MiB, and "
			 "other VMs are guaranteed %llu of them",
			 h->name, option, (unsigned long long)h->resident >> 20,
			 (unsigned long long)all >> 20, (unsigned long long)(all - left) >> 20);
	else
		snprintf(text, sizeof(text), "%s: %s is more than a GPU can have", h->name, option);
	(void)!send(sock, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool add_to_room(unsigned int vm, int sock, const struct turns_hello *h)
{
	if (!room_add(&broker.room, vm, h->moves, h->resident, h->memory)) {
		tell_refusal(sock, h);
		return false;
	}
	room_bound(&broker.room, vm, h->swap, h->stores);
	if (h->stays)
		room_stays(&broker.room, vm);
	return true;
}

/* The new connection becomes a VM. False: it may not. */
static bool add_vm(unsigned int from, const struct turns_hello *h, const int *fd)
{
	struct connection c = broker.c[from];
	unsigned int i;

	if (!is_good_hello(h) || fcntl(fd[2], F_SETFL, O_NONBLOCK) || !map_pages(&c, h, fd))
		return false;
	i = turns_add(&broker.turns, h->weight, h->max, h->interactive);
	c.bell = fd[2];
	strcpy(c.name, h->name);
	if (i == TURNS_NONE || !add_to_room(i, c.sock, h) ||
	    !watch_fd(EPOLL_CTL_ADD, c.bell, BELL, i, true) ||
	    !watch_fd(EPOLL_CTL_MOD, c.sock, SOCKET, i, false)) {
		if (i != TURNS_NONE) {
			turns_remove(&broker.turns, i);
			room_remove(&broker.room, i);
		}
		munmap(c.orders, TURNS_PAGE);
		munmap((void *)(uintptr_t)c.reports, TURNS_SESSIONS * TURNS_PAGE);
		return false;
	}
	broker.c[i] = c;
	tell_memory();
	broker.c[from] = (struct connection){.sock = -1, .bell = -1};
	broker.vms++;
	close(fd[0]);
	close(fd[1]);
	look_at_turns_and_room();
	return true;
}

/* As the VM's programs claim. */
static uint64_t sum_memory(unsigned int vm, bool away)
{
	const struct connection *c = &broker.c[vm];
	uint64_t sum = 0;
	unsigned int s;

	for (s = 1; s < TURNS_SESSIONS; s++)
		if (atomic_load(&c->reports[s].live))
			sum += atomic_load(away ? &c->reports[s].memory.away
						: &c->reports[s].memory.held);
	return sum;
}

static void tell_shares(int sock)
{
	static const char *const words[] = {"free", "idle", "go", "hold"};
	static char text[(TURNS_VMS + 1) * LINE];
	size_t n = 0;
	unsigned int i;

	for (i = 0; i < broker.turns.top; i++) {
		const struct turns_vm *v = &broker.turns.vm[i];
		const struct turns_account *s = v->share;

		if (!v->there)
			continue;
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "%s weight %u max %u %s %s gpu_ms %llu waited_ms %llu up_ms "
				      "%llu down_ms %llu held_mib %llu away_mib %llu "
				      "resident_mib %llu\n",
				      broker.c[i].name, v->weight, v->max,
				      v->interactive ? "interactive" : "batch",
				      words[v->order[TURNS_GPU]],
				      (unsigned long long)s[TURNS_GPU].had_ns / 1000000,
				      (unsigned long long)s[TURNS_GPU].waited_ns / 1000000,
				      (unsigned long long)s[TURNS_UP].had_ns / 1000000,
				      (unsigned long long)s[TURNS_DOWN].had_ns / 1000000,
				      (unsigned long long)sum_memory(i, false) >> 20,
				      (unsigned long long)sum_memory(i, true) >> 20,
				      (unsigned long long)broker.room.vm[i].resident >> 20);
	}
	if (broker.room.evict_ns)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "evicted %llu MiB\n",
				      (unsigned long long)broker.room.evicted >> 20);
	(void)!send(sock, text, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Returns the number of files that came with the message. */
static unsigned int take_files(struct msghdr *msg, int *fd)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	size_t bytes;

	if (!cmsg || cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
		return 0;
	bytes = cmsg->cmsg_len - CMSG_LEN(0);
	memcpy(fd, CMSG_DATA(cmsg), bytes);
	return (unsigned int)(bytes / sizeof(*fd));
}

static void hear_socket(unsigned int i)
{
	struct turns_hello h;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(FILES * sizeof(int))];
	struct iovec iov = {.iov_base = &h, .iov_len = sizeof(h)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     /* Not CMSG_SPACE: that has room for a fourth file. */
			     .msg_controllen = CMSG_LEN(FILES * sizeof(int))};
	int fd[FILES] = {-1, -1, -1};
	unsigned int files = 0;
	ssize_t n = recvmsg(broker.c[i].sock, &msg, MSG_CMSG_CLOEXEC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* An empty message looks like the end, but may have files. */
	if (n >= 0)
		files = take_files(&msg, fd);
	if (i >= NEW_FIRST && n == sizeof(h) && !(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) &&
	    h.magic == TURNS_MAGIC) {
		if (h.version == TURNS_VERSION && files == FILES && add_vm(i, &h, fd))
			return;
		if (h.version == TURNS_ASK && !files)
			tell_shares(broker.c[i].sock);
	}
	while (files)
		close(fd[--files]);
	close_connection(i);
	look_at_turns_and_room();
}

static void drop_silent(void)
{
	uint64_t now = spin_clock();
	unsigned int i;

	for (i = NEW_FIRST; i < NEW_FIRST + PENDING; i++)
		if (broker.c[i].sock >= 0 && now - broker.c[i].since_ns > HELLO_NS)
			close_connection(i);
}

static void handle_event(const struct epoll_event *e)
{
	unsigned int what = e->data.u64 & 3, i = (unsigned int)(e->data.u64 >> 2);

	if (what == LISTENER)
		accept_keeper();
	else if (what == TIMER)
		handle_tick();
	else if (broker.c[i].sock >= 0 && what == SOCKET)
		hear_socket(i);
	else if (broker.c[i].sock >= 0)
		hear_bell(i);
}

bool broker_serve(int listener, uid_t owner, unsigned int idle_seconds, uint64_t memory,
		  unsigned int evict_ms)
{
	struct epoll_event e[EVENTS];
	unsigned int i;
	int n, k;

	turns_init(&broker.turns);
	room_init(&broker.room, memory);
	broker.room.evict_ns = evict_ms * 1000000ull;
	for (i = 0; i < TURNS_VMS + PENDING; i++)
		broker.c[i].sock = broker.c[i].bell = -1;
	broker.listener = listener;
	broker.owner = owner;
	broker.poll = epoll_create1(EPOLL_CLOEXEC);
	broker.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (broker.poll < 0 || broker.timer < 0 ||
	    !watch_fd(EPOLL_CTL_ADD, listener, LISTENER, 0, false) ||
	    !watch_fd(EPOLL_CTL_ADD, broker.timer, TIMER, 0, false))
		return false;
	broker.empty_since_ns = spin_clock();
	for (;;) {
		n = epoll_wait(broker.poll, e, EVENTS, 1000);
		for (k = 0; k < n; k++)
			handle_event(&e[k]);
		drop_silent();
		if (idle_seconds && !broker.vms &&
		    spin_clock() - broker.empty_since_ns > idle_seconds * NS_PER_S)
			return true;
	}
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* The guest's and QEMU's side of the protocol; guest.h describes it. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/hostile/guest.h"

/* Where a queue has its rings, its records, and the data of its commands. */
#define RINGS(q)	 ((q)*0x4000ull)
#define RECORDS(q, slot) (0x100000ull + (q)*0x10000ull + (slot)*0x100ull)
#define TAILS(q, slot)	 (0x400000ull + (q)*0x40000ull + (slot) * (uint64_t)GUEST_TAIL)

enum request {
	GET_FEATURES = 1,
	SET_FEATURES = 2,
	SET_MEM_TABLE = 5,
	SET_VRING_NUM = 8,
	SET_VRING_ADDR = 9,
	SET_VRING_BASE = 10,
	GET_VRING_BASE = 11,
	SET_VRING_KICK = 12,
	SET_VRING_CALL = 13,
	GET_PROTOCOL_FEATURES = 15,
	SET_PROTOCOL_FEATURES = 16,
	GET_QUEUE_NUM = 17,
	SET_VRING_ENABLE = 18,
};

/* VERSION_1, protocol features, event indices, indirect descriptors. */
#define FEATURES (1ull << 32 | 1ull << 30 | 1ull << 29 | 1ull << 28)
/* MQ, REPLY_ACK, CONFIG, CONFIGURE_MEM_SLOTS. */
#define PROTOCOL (1ull << 0 | 1ull << 3 | 1ull << 9 | 1ull << 15)

struct message {
	uint32_t request, flags, size;
	uint8_t payload[272];
} __attribute__((packed));

struct vring_state {
	uint32_t index, num;
};

void die(const char *format, ...)
{
	va_list ap;

	fflush(stdout);
	fputs("hostile: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

/* ---- QEMU ---- */

static void send_message(struct guest *g, unsigned int request, const void *payload, uint32_t size,
			 int fd)
{
	struct message m = {.request = request, .flags = 1, .size = size};
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {.iov_base = &m, .iov_len = 12 + size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (size)
		memcpy(m.payload, payload, size);
	if (fd >= 0) {
		struct cmsghdr *cmsg;

		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	}
	if (sendmsg(g->sock, &msg, MSG_NOSIGNAL) != (ssize_t)iov.iov_len)
		die("vhost-user message %u: %s", request, strerror(errno));
}

static void receive(struct guest *g, unsigned int request, void *payload, uint32_t size)
{
	struct pollfd p = {.fd = g->sock, .events = POLLIN};
	struct message m;

	if (poll(&p, 1, GUEST_WAIT_MS) != 1)
		die("the device does not answer message %u", request);
	if (recv(g->sock, &m, 12, MSG_WAITALL) != 12 || m.request != request || m.size != size ||
	    recv(g->sock, payload, size, MSG_WAITALL) != (ssize_t)size)
		die("the device's answer to message %u makes no sense", request);
}

static uint64_t get(struct guest *g, unsigned int request)
{
	uint64_t v = 0;

	send_message(g, request, NULL, 0, -1);
	receive(g, request, &v, sizeof(v));
	return v;
}

void guest_start(struct guest *g, int sock)
{
	struct {
		uint32_t count, padding;
		uint64_t gpa, size, qva, offset;
	} table = {.count = 1, .size = GUEST_RAM};
	uint64_t features, protocol;
	unsigned int q;

	memset(g, 0, sizeof(*g));
	g->sock = sock;
	g->memfd = memfd_create("guest-ram", MFD_CLOEXEC);
	if (g->memfd < 0 || ftruncate(g->memfd, GUEST_RAM))
		die("guest RAM: %s", strerror(errno));
	g->ram = mmap(NULL, GUEST_RAM, PROT_READ | PROT_WRITE, MAP_SHARED, g->memfd, 0);
	if (g->ram == MAP_FAILED)
		die("guest RAM: %s", strerror(errno));
	for (q = 0; q < GUEST_QUEUES; q++)
		g->q[q].kick = g->q[q].call = -1;
	features = get(g, GET_FEATURES) & (FEATURES | 1ull << 36);
	if ((features & FEATURES) != FEATURES)
		die("the device offers features 0x%llx only", (unsigned long long)features);
	send_message(g, SET_FEATURES, &features, 8, -1);
	protocol = get(g, GET_PROTOCOL_FEATURES) & PROTOCOL;
	send_message(g, SET_PROTOCOL_FEATURES, &protocol, 8, -1);
	if (get(g, GET_QUEUE_NUM) != GUEST_QUEUES)
		die("the device has another number of queues");
	table.qva = (uintptr_t)g->ram;
	send_message(g, SET_MEM_TABLE, &table, sizeof(table), g->memfd);
	for (q = 0; q < GUEST_QUEUES; q++)
		guest_queue_start(g, q);
}

void guest_stop(struct guest *g)
{
	unsigned int q;

	close(g->sock);
	for (q = 0; q < GUEST_QUEUES; q++) {
		close(g->q[q].kick);
		close(g->q[q].call);
	}
	munmap(g->ram, GUEST_RAM);
	close(g->memfd);
}

void guest_queue_start(struct guest *g, unsigned int q)
{
	struct vring_state num = {q, GUEST_NUM}, base = {q, 0}, enable = {q, 1};
	struct {
		uint32_t index, flags;
		uint64_t desc, used, avail, log;
	} addr = {.index = q};
	uint8_t *at = g->ram + RINGS(q);
	uint64_t v = q;

	if (g->q[q].kick >= 0) {
		close(g->q[q].kick);
		close(g->q[q].call);
	}
	memset(at, 0, 0x4000);
	g->q[q] = (struct queue){
		.desc = (void *)at,
		.avail = (void *)(at + 0x1000),
		.used = (void *)(at + 0x2000),
		.kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.call = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
		.started = true,
	};
	if (g->q[q].kick < 0 || g->q[q].call < 0)
		die("eventfd: %s", strerror(errno));
	addr.desc = (uintptr_t)g->q[q].desc;
	addr.used = (uintptr_t)g->q[q].used;
	addr.avail = (uintptr_t)g->q[q].avail;
	send_message(g, SET_VRING_NUM, &num, sizeof(num), -1);
	send_message(g, SET_VRING_BASE, &base, sizeof(base), -1);
	send_message(g, SET_VRING_ADDR, &addr, sizeof(addr), -1);
	send_message(g, SET_VRING_KICK, &v, 8, g->q[q].kick);
	send_message(g, SET_VRING_CALL, &v, 8, g->q[q].call);
	send_message(g, SET_VRING_ENABLE, &enable, sizeof(enable), -1);
	/*
	 * The device reads the socket and the kicks in no fixed order. This call waits until the
	 * device has read the messages above.
	 */
	get(g, GET_QUEUE_NUM);
}

void guest_queue_stop(struct guest *g, unsigned int q)
{
	struct vring_state state = {q, 0};

	send_message(g, GET_VRING_BASE, &state, sizeof(state), -1);
	receive(g, GET_VRING_BASE, &state, sizeof(state));
	g->q[q].started = false;
}

/* ---- the guest's kernel ---- */

static int free_slot(const struct queue *vq)
{
	int slot;

	for (slot = 0; slot < GUEST_SLOTS; slot++)
		if (!vq->out[slot])
			return slot;
	return -1;
}

static int post(struct guest *g, unsigned int q, int slot, const struct qCUcmd *cmd, uint64_t gpa,
		uint32_t len)
{
	struct queue *vq = &g->q[q];
	struct vring_desc *d = &vq->desc[slot * GUEST_PARTS];
	uint16_t head = (uint16_t)(slot * GUEST_PARTS), at = head;

	memcpy(g->ram + RECORDS(q, slot), cmd, sizeof(*cmd));
	memset(g->ram + RECORDS(q, slot) + 64, 0xdd, sizeof(*cmd));
	d[0] = (struct vring_desc){RECORDS(q, slot), 64, VRING_DESC_F_NEXT, ++at};
	if (len)
		d[1] = (struct vring_desc){gpa, len, VRING_DESC_F_NEXT, ++at};
	d[at - head] = (struct vring_desc){RECORDS(q, slot) + 64, 64, VRING_DESC_F_WRITE, 0};
	vq->out[slot] = true;
	vq->avail->ring[vq->added % GUEST_NUM] = head;
	__atomic_store_n(&vq->avail->idx, ++vq->added, __ATOMIC_RELEASE);
	return slot;
}

int guest_post_at(struct guest *g, unsigned int q, const struct qCUcmd *cmd, uint64_t gpa,
		  uint32_t len)
{
	int slot = free_slot(&g->q[q]);

	return slot < 0 ? -1 : post(g, q, slot, cmd, gpa, len);
}

int guest_post(struct guest *g, unsigned int q, const struct qCUcmd *cmd, const void *tail,
	       uint32_t len)
{
	int slot = free_slot(&g->q[q]);

	if (slot < 0)
		return -1;
	if (len > GUEST_TAIL)
		die("%u bytes are too many for a slot", len);
	if (len)
		memcpy(g->ram + TAILS(q, slot), tail, len);
	return post(g, q, slot, cmd, TAILS(q, slot), len);
}

/*
 * Kicks as Linux does: only if the device has asked for a notification about entries since the last
 * kick.
 */
void guest_kick(struct guest *g, unsigned int q)
{
	struct queue *vq = &g->q[q];
	uint16_t event;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	memcpy(&event, (uint8_t *)vq->used + 4 + 8 * GUEST_NUM, sizeof(event));
	if (vq->mangled || vring_need_event(event, vq->added, vq->kicked))
		eventfd_write(vq->kick, 1);
	vq->kicked = vq->added;
}

void guest_take(struct guest *g, unsigned int q)
{
	struct queue *vq = &g->q[q];
	uint16_t idx = __atomic_load_n(&vq->used->idx, __ATOMIC_ACQUIRE);

	if ((uint16_t)(idx - vq->taken) > GUEST_NUM) {
		if (!vq->mangled)
			die("queue %u: the used index jumps from %u to %u", q, vq->taken, idx);
		vq->taken = idx;
	}
	for (; vq->taken != idx; vq->taken++) {
		const struct vring_used_elem *e = &vq->used->ring[vq->taken % GUEST_NUM];
		unsigned int slot = e->id / GUEST_PARTS;

		if (e->id % GUEST_PARTS || slot >= GUEST_SLOTS || !vq->out[slot]) {
			if (!vq->mangled)
				die("queue %u: chain %u comes back, which is not out", q, e->id);
			continue;
		}
		vq->out[slot] = false;
		vq->len[slot] = e->len;
		vq->order[slot] = vq->back++;
	}
	*(volatile uint16_t *)&vq->avail->ring[GUEST_NUM] = vq->taken;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

int guest_wait(struct guest *g, unsigned int q, int slot, struct qCUcmd *cmd, int ms)
{
	struct queue *vq = &g->q[q];
	struct pollfd p = {.fd = vq->call, .events = POLLIN};
	eventfd_t calls;

	if (slot < 0)
		return GUEST_FULL;
	for (;;) {
		guest_take(g, q);
		if (!vq->out[slot])
			break;
		if (__atomic_load_n(&vq->used->idx, __ATOMIC_ACQUIRE) != vq->taken)
			continue;
		if (poll(&p, 1, ms) != 1)
			return GUEST_LATE;
		eventfd_read(vq->call, &calls);
	}
	if (!vq->len[slot])
		return GUEST_GONE;
	memcpy(cmd, g->ram + RECORDS(q, slot) + 64, sizeof(*cmd));
	return cmd->status;
}

/* Waits for a free slot, as a guest's driver does. */
static bool room(struct guest *g, unsigned int q)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	unsigned int i;

	for (i = 0; free_slot(&g->q[q]) < 0 && i < GUEST_WAIT_MS; i++) {
		guest_take(g, q);
		if (free_slot(&g->q[q]) < 0)
			nanosleep(&ms, NULL);
	}
	return i < GUEST_WAIT_MS;
}

int guest_ask(struct guest *g, unsigned int q, struct qCUcmd *cmd, const void *tail, uint32_t len)
{
	int slot = room(g, q) ? guest_post(g, q, cmd, tail, len) : -1;

	guest_kick(g, q);
	return guest_wait(g, q, slot, cmd, GUEST_WAIT_MS);
}

int guest_ask_at(struct guest *g, unsigned int q, struct qCUcmd *cmd, uint64_t gpa, uint32_t len)
{
	int slot = room(g, q) ? guest_post_at(g, q, cmd, gpa, len) : -1;

	guest_kick(g, q);
	return guest_wait(g, q, slot, cmd, GUEST_WAIT_MS);
}

int guest_open(struct guest *g, unsigned int q)
{
	struct qCUcmd c = {.op = QCU_OP_OPEN, .seq = g->seq++};

	c.open.queue = q;
	c.open.pid = 100 + q;
	c.open.chunk_bytes = QCU_CHUNK_DEFAULT;
	memcpy(c.open.comm, "guest\033[31m\nprog", 16);
	return guest_ask(g, 0, &c, NULL, 0);
}

int guest_close(struct guest *g, unsigned int q)
{
	struct qCUcmd c = {.op = QCU_OP_CLOSE, .seq = g->seq++};

	c.close.queue = q;
	return guest_ask(g, 0, &c, NULL, 0);
}

void guest_fresh(struct guest *g, unsigned int q)
{
	int rc;

	/*
	 * Stopping the queue ends the session, and clears the damage that the guest did to the
	 * ring.
	 */
	if (g->q[q].started)
		guest_queue_stop(g, q);
	guest_queue_start(g, q);
	rc = guest_open(g, q);
	if (rc)
		die("session %u cannot be opened: %d", q, rc);
}

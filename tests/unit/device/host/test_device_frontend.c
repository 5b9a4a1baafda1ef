// SPDX-License-Identifier: GPL-2.0-or-later
/* A small vhost-user front end and guest driver; test_device_frontend.h describes it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "qcu-device/host/birth.h"
#include "qcu-device/host/device.h"
#include "tests/unit/device/host/test_device_frontend.h"

#define WAIT_MS 20000

/* The place of a slot's records. */
#define RECORDS(q, slot) (0x100000ull + (q)*0x10000ull + (slot)*0x100ull)

struct message {
	uint32_t request, flags, size;
	uint8_t payload[272];
} __attribute__((packed));

struct memory_region {
	uint64_t gpa, size, qva, offset;
};

struct vring_state {
	uint32_t index, num;
};

void fe_send(struct frontend *fe, unsigned int request, const void *payload, uint32_t size, int fd)
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
	assert_int_equal(sendmsg(fe->sock, &msg, MSG_NOSIGNAL), (ssize_t)iov.iov_len);
}

uint32_t fe_recv(struct frontend *fe, unsigned int request, void *payload, uint32_t max)
{
	struct pollfd p = {.fd = fe->sock, .events = POLLIN};
	struct message m;

	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(recv(fe->sock, &m, 12, MSG_WAITALL), 12);
	assert_int_equal(m.request, request);
	assert_int_equal(m.flags, 1 | 4);
	assert_true(m.size <= max);
	assert_int_equal(recv(fe->sock, payload, m.size, MSG_WAITALL), m.size);
	return m.size;
}

uint64_t fe_get(struct frontend *fe, unsigned int request)
{
	uint64_t v = 0;

	fe_send(fe, request, NULL, 0, -1);
	assert_int_equal(fe_recv(fe, request, &v, sizeof(v)), sizeof(v));
	return v;
}

void fe_start(struct frontend *fe)
{
	fe_start_prewarm(fe, 0);
}

struct limits fe_limits;

static void start(struct frontend *fe, unsigned int spares, int stderr_fd);

void fe_start_prewarm(struct frontend *fe, unsigned int spares)
{
	start(fe, spares, -1);
}

void fe_start_quiet(struct frontend *fe, int stderr_fd)
{
	start(fe, 0, stderr_fd);
}

/* Makes a connection and memory for the guest. Returns the device's end. */
static int prepare(struct frontend *fe)
{
	int pair[2];

	memset(fe, 0, sizeof(*fe));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	fe->memfd = memfd_create("ram", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fe->memfd, 2 * FE_RAM), 0);
	fe->ram = mmap(NULL, 2 * FE_RAM, PROT_READ | PROT_WRITE, MAP_SHARED, fe->memfd, 0);
	assert_ptr_not_equal(fe->ram, MAP_FAILED);
	fe->sock = pair[0];
	fflush(NULL);
	return pair[1];
}

void fe_set_memory(struct frontend *fe, bool any)
{
	const struct {
		uint32_t count, padding;
		struct memory_region region;
	} table = {.count = any, .region = {0, FE_RAM, (uintptr_t)fe->ram, 0}};

	fe_send(fe, FE_SET_MEM_TABLE, &table, sizeof(table), any ? fe->memfd : -1);
}

static void connect_device(struct frontend *fe)
{
	uint64_t features = FE_FEATURES;
	uint64_t protocol = 1ull << 0 | 1 << 1 | 1 << 3 | 1 << 9 | 1 << 15 | 1 << 19;
	int i;

	for (i = 0; i < FE_QUEUES; i++)
		fe->kick[i] = fe->call[i] = -1;
	/* Without FE_LOG_ALL, as long as QEMU does not copy the memory. */
	assert_int_equal(fe_get(fe, FE_GET_FEATURES), features | FE_LOG_ALL);
	fe_send(fe, FE_SET_FEATURES, &features, 8, -1);
	assert_int_equal(fe_get(fe, FE_GET_PROTOCOL_FEATURES), protocol);
	fe_send(fe, FE_SET_PROTOCOL_FEATURES, &protocol, 8, -1);
	assert_int_equal(fe_get(fe, FE_GET_QUEUE_NUM), FE_QUEUES);
	fe_set_memory(fe, true);
}

static void start(struct frontend *fe, unsigned int spares, int stderr_fd)
{
	const struct device_options opt = {.limits = fe_limits,
					   .sessions = FE_SESSIONS,
					   .prewarm = spares,
					   .poll_us = 50,
					   .jail.off = true,
					   .verbose = stderr_fd < 0};
	char name[] = "test", *argv[] = {name, NULL};
	int sock = prepare(fe);

	fe->server = fork();
	assert_true(fe->server >= 0);
	if (!fe->server) {
		close(fe->sock);
		munmap(fe->ram, 2 * FE_RAM);
		if (stderr_fd >= 0)
			dup2(stderr_fd, 2);
		_exit(birth_prepare(&opt, argv) && birth_begin(&opt) ? vhost_serve(sock, &opt, NULL)
								     : 1);
	}
	close(sock);
	connect_device(fe);
}

void fe_start_program(struct frontend *fe, char *const argv[], int stderr_fd)
{
	char fd_option[] = "--fd", sessions_option[] = "--sessions", number[16], sessions[16];
	char *args[32];
	int sock = prepare(fe);
	unsigned int n;

	for (n = 0; argv[n]; n++)
		args[n] = argv[n];
	assert_true(n + 5 <= sizeof(args) / sizeof(args[0]));
	snprintf(number, sizeof(number), "%d", sock);
	snprintf(sessions, sizeof(sessions), "%d", FE_SESSIONS);
	args[n++] = fd_option;
	args[n++] = number;
	args[n++] = sessions_option;
	args[n++] = sessions;
	args[n] = NULL;
	fe->server = fork();
	assert_true(fe->server >= 0);
	if (!fe->server) {
		fcntl(sock, F_SETFD, 0);
		if (stderr_fd >= 0)
			dup2(stderr_fd, 2);
		execv(args[0], args);
		_exit(127);
	}
	close(sock);
	connect_device(fe);
}

int fe_stop(struct frontend *fe)
{
	int status, i;

	close(fe->sock);
	assert_int_equal(waitpid(fe->server, &status, 0), fe->server);
	for (i = 0; i < FE_QUEUES; i++) {
		if (fe->kick[i] >= 0)
			close(fe->kick[i]);
		if (fe->call[i] >= 0)
			close(fe->call[i]);
	}
	munmap(fe->ram, 2 * FE_RAM);
	close(fe->memfd);
	return status;
}

void fe_add_memory(struct frontend *fe, uint64_t gpa)
{
	struct {
		uint64_t padding;
		struct memory_region region;
	} m = {.region = {gpa, FE_RAM, (uintptr_t)fe->ram + FE_RAM, FE_RAM}};

	fe_send(fe, FE_ADD_MEM_REG, &m, sizeof(m), fe->memfd);
}

void fe_new_call(struct frontend *fe, unsigned int q)
{
	uint64_t v = q;

	if (fe->call[q] >= 0)
		close(fe->call[q]);
	fe->call[q] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fe_send(fe, FE_SET_VRING_CALL, &v, 8, fe->call[q]);
}

void fe_queue_start(struct frontend *fe, unsigned int q)
{
	driver_init(&fe->q[q], fe->ram + q * 0x4000);
	fe_queue_go_on(fe, q, 0);
}

void fe_queue_go_on(struct frontend *fe, unsigned int q, uint16_t index)
{
	struct vring_state num = {q, DRIVER_NUM}, base = {q, index}, enable = {q, 1};
	struct {
		uint32_t index, flags;
		uint64_t desc, used, avail, log;
	} addr = {.index = q};
	uint64_t v = q;

	addr.desc = (uintptr_t)fe->q[q].desc;
	addr.used = (uintptr_t)fe->q[q].used;
	addr.avail = (uintptr_t)fe->q[q].avail;
	if (fe->kick[q] >= 0)
		close(fe->kick[q]);
	fe->kick[q] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fe_send(fe, FE_SET_VRING_NUM, &num, sizeof(num), -1);
	fe_send(fe, FE_SET_VRING_BASE, &base, sizeof(base), -1);
	fe_send(fe, FE_SET_VRING_ADDR, &addr, sizeof(addr), -1);
	fe_send(fe, FE_SET_VRING_KICK, &v, 8, fe->kick[q]);
	fe_new_call(fe, q);
	fe_send(fe, FE_SET_VRING_ENABLE, &enable, sizeof(enable), -1);
	/*
	 * The device reads the socket and the kicks in no fixed order. This call waits until the
	 * device has read the messages above.
	 */
	fe_get(fe, FE_GET_QUEUE_NUM);
	fe->started[q] = true;
}

uint16_t fe_queue_stop(struct frontend *fe, unsigned int q)
{
	struct vring_state state = {q, 0};

	fe_send(fe, FE_GET_VRING_BASE, &state, sizeof(state), -1);
	assert_int_equal(fe_recv(fe, FE_GET_VRING_BASE, &state, sizeof(state)), sizeof(state));
	fe->started[q] = false;
	return (uint16_t)state.num;
}

unsigned int fe_post(struct frontend *fe, unsigned int q, const struct qCUcmd *cmd, uint64_t gpa,
		     uint32_t len)
{
	struct driver_queue *dq = &fe->q[q];
	struct vring_desc parts[3];
	unsigned int n = 0, slot;

	for (slot = 0; slot < DRIVER_SLOTS && dq->out[slot]; slot++)
		;
	assert_true(slot < DRIVER_SLOTS);
	memcpy(fe->ram + RECORDS(q, slot), cmd, sizeof(*cmd));
	memset(fe->ram + RECORDS(q, slot) + 64, 0xdd, sizeof(*cmd));
	parts[n++] = (struct vring_desc){.addr = RECORDS(q, slot), .len = 64};
	if (len)
		parts[n++] = (struct vring_desc){.addr = gpa, .len = len};
	parts[n++] = (struct vring_desc){
		.addr = RECORDS(q, slot) + 64, .len = 64, .flags = VRING_DESC_F_WRITE};
	assert_int_equal(driver_add(dq, parts, n), slot);
	return slot;
}

/*
 * Kicks as Linux does: only if the device has asked for a notification about entries since the last
 * kick.
 */
void fe_kick(struct frontend *fe, unsigned int q)
{
	struct driver_queue *dq = &fe->q[q];
	uint16_t event;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	memcpy(&event, (uint8_t *)dq->used + 4 + 8 * DRIVER_NUM, sizeof(event));
	if (vring_need_event(event, dq->added, dq->kicked))
		eventfd_write(fe->kick[q], 1);
	dq->kicked = dq->added;
}

uint32_t fe_wait(struct frontend *fe, unsigned int q, unsigned int slot, struct qCUcmd *cmd)
{
	struct driver_queue *dq = &fe->q[q];
	struct pollfd p = {.fd = fe->call[q], .events = POLLIN};
	eventfd_t calls;

	for (;;) {
		int n;

		*(volatile uint16_t *)&dq->avail->ring[DRIVER_NUM] = dq->taken;
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		n = driver_take(dq);
		assert_true(n >= 0);
		if (!dq->out[slot])
			break;
		if (n) /* the device had asked about an older index */
			continue;
		if (poll(&p, 1, WAIT_MS) != 1)
			fail_msg("queue %u, slot %u: no call", q, slot);
		eventfd_read(fe->call[q], &calls);
	}
	memcpy(cmd, fe->ram + RECORDS(q, slot) + 64, sizeof(*cmd));
	return dq->len[slot];
}

int fe_ask(struct frontend *fe, unsigned int q, struct qCUcmd *cmd, uint64_t gpa, uint32_t len)
{
	unsigned int slot = fe_post(fe, q, cmd, gpa, len);
	struct qCUcmd sent = *cmd;
	uint32_t used;

	fe_kick(fe, q);
	used = fe_wait(fe, q, slot, cmd);
	if (!used)
		return FE_GONE;
	assert_int_equal(used, sizeof(*cmd));
	assert_int_equal(cmd->op, sent.op);
	assert_int_equal(cmd->seq, sent.seq);
	assert_int_equal(cmd->tid, sent.tid);
	return cmd->status;
}

int fe_open(struct frontend *fe, unsigned int q)
{
	struct qCUcmd c = {.op = QCU_OP_OPEN, .seq = fe->seq++};

	c.open.queue = q;
	c.open.pid = 42;
	c.open.chunk_bytes = QCU_CHUNK_DEFAULT;
	memcpy(c.open.comm, "te\033st-program-16", 16);
	return fe_ask(fe, 0, &c, 0, 0);
}

int fe_close(struct frontend *fe, unsigned int q)
{
	struct qCUcmd c = {.op = QCU_OP_CLOSE, .seq = fe->seq++};

	c.close.queue = q;
	return fe_ask(fe, 0, &c, 0, 0);
}

pid_t fe_mirror(struct frontend *fe, unsigned int session)
{
	char want[24];

	snprintf(want, sizeof(want), "qcu-mirror %u", session);
	return fe_child(fe, want, 0);
}

static bool is_named(pid_t pid, const char *want)
{
	char path[64], name[24] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (!fgets(name, sizeof(name), f))
		name[0] = 0;
	fclose(f);
	return !strncmp(name, want, strlen(want)) && name[strlen(want)] == '\n';
}

/* Looks among the children of a process, and among theirs. */
static pid_t find_child(pid_t of, const char *want, pid_t not )
{
	char path[64];
	pid_t found = 0;
	FILE *list;
	int pid;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", of, of);
	list = fopen(path, "r");
	while (list && !found && fscanf(list, "%d", &pid) == 1)
		found = pid != not &&is_named(pid, want) ? pid : find_child(pid, want, not );
	if (list)
		fclose(list);
	return found;
}

const char *fe_reason(struct frontend *fe)
{
	static struct {
		uint32_t offset, size, flags;
		uint8_t guests[sizeof(struct qcu_config)];
		char reason[192];
	} m;

	m.size = sizeof(m.guests) + sizeof(m.reason);
	fe_send(fe, FE_GET_CONFIG, &m, sizeof(m), -1);
	assert_int_equal(fe_recv(fe, FE_GET_CONFIG, &m, sizeof(m)), sizeof(m));
	m.reason[sizeof(m.reason) - 1] = '\0';
	return m.reason;
}

pid_t fe_child(struct frontend *fe, const char *want, pid_t not )
{
	return find_child(fe->server, want, not );
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzes the broker of a GPU (qcu-device/turns): keepers with any hello and any files, with any
 * values in their pages, who ring, say more and go at any moment. The broker serves in a thread.
 * After each step the target waits until the broker has seen it. The broker must go on, an order
 * must be one, and no file may stay open.
 */
#define _GNU_SOURCE /* memfd_create */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "qcu-device/turns/broker.h"
#include "qcu-device/turns/pages.h"
#include "tests/fuzz/fuzz.h"
#include "qcu-device/base/send_files.h"

#define KEEPERS	  6u
#define FILES	  4u /* one more than belong to a hello */
#define FILES_MAX 256
#define MEMORY	  ((uint64_t)1 << 30) /* programs must ask before they take any */
#define LIMIT_S	  20		      /* only a broker that hangs takes so long */

/* sock -1: there is none. wild: the keeper has written where only the broker writes. */
struct keeper {
	int sock, bell;
	bool wild;
	uint32_t gpu;
	struct turns_orders *orders;
	struct turns_report *reports;
};

struct input {
	const uint8_t *data;
	size_t left;
};

static struct keeper keepers[KEEPERS];
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_len;
static int listener;

static uint32_t take(struct input *in, size_t bytes)
{
	uint32_t value = 0;
	size_t n = bytes < in->left ? bytes : in->left;

	memcpy(&value, in->data, n);
	in->data += n;
	in->left -= n;
	return value;
}

static void need(bool good)
{
	if (!good)
		abort();
}

static bool is_late(const struct timespec *begin)
{
	struct timespec now;

	sched_yield();
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - begin->tv_sec > LIMIT_S;
}

static struct timespec start_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t;
}

static int open_files(void)
{
	int n = 0, fd;

	for (fd = 0; fd < FILES_MAX; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void *serve(void *unused)
{
	(void)unused;
	need(broker_serve(listener, getuid(), 0, MEMORY, 0));
	return NULL;
}

static void start_broker(void)
{
	pthread_t thread;

	memcpy(address.sun_path + 1, "qcu-fuzz-broker-", 16);
	memcpy(address.sun_path + 17, &(pid_t){getpid()}, sizeof(pid_t));
	address_len = offsetof(struct sockaddr_un, sun_path) + 17 + sizeof(pid_t);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	need(!bind(listener, (struct sockaddr *)&address, address_len) && !listen(listener, 16));
	need(!pthread_create(&thread, NULL, serve, NULL));
}

static int connect_to_broker(void)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	need(!connect(sock, (struct sockaddr *)&address, address_len));
	return sock;
}

/* False: the broker has closed the connection. */
static bool send_message(int sock, const void *text, size_t bytes, const int *files, size_t n)
{
	return send_files(sock, text, bytes, files, n, MSG_NOSIGNAL) >= 0;
}

static bool is_closed(int sock)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/*
 * The broker answers a question when it has seen all that came before, and then closes the
 * connection. Returns the text's length.
 */
static size_t ask(const int *files, size_t n)
{
	static char text[TURNS_VMS * 256];
	const struct turns_hello h = {.magic = TURNS_MAGIC, .version = TURNS_ASK};
	int sock = connect_to_broker();
	struct pollfd closed = {.fd = sock};
	ssize_t bytes;
	int rc;

	need(send_message(sock, &h, sizeof(h), files, n));
	/* Without an event to wait for, poll() waits for the other end to close. libFuzzer's timer
	 * may interrupt it. */
	do {
		rc = poll(&closed, 1, LIMIT_S * 1000);
	} while (rc < 0 && errno == EINTR);
	need(rc == 1);
	bytes = recv(sock, text, sizeof(text), 0);
	need(bytes >= 0 || errno == ECONNRESET);
	need(bytes <= 0 || !n);
	close(sock);
	return bytes > 0 ? (size_t)bytes : 0;
}

/* ---- the steps ---- */

static void end_keeper(struct keeper *k)
{
	if (k->sock < 0)
		return;
	close(k->sock);
	close(k->bell);
	munmap(k->orders, TURNS_ORDERS_BYTES);
	munmap(k->reports, TURNS_REPORTS_BYTES);
	k->sock = -1;
}

static int new_file(size_t bytes, bool sealed)
{
	int fd = memfd_create("keeper", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	need(fd >= 0 && !ftruncate(fd, (off_t)bytes));
	if (sealed)
		need(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	return fd;
}

static void *map_file(int fd, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	need(p != MAP_FAILED);
	return p;
}

/* Has the broker looked since then? A broker that has closed the connection does not look. */
static void wait_for_look(struct keeper *k, uint32_t looks)
{
	struct timespec begin = start_clock();

	while (atomic_load(&k->orders[k->gpu].looks) == looks && !is_closed(k->sock))
		need(!is_late(&begin));
}

static void check_orders(const struct keeper *k)
{
	unsigned int i;

	for (i = 0; i < TURNS_KINDS && !k->wild; i++)
		need(atomic_load(&k->orders[k->gpu].order[i]) <= TURNS_HOLD);
}

static void connect_keeper(struct keeper *k, struct input *in)
{
	struct turns_hello h = {.magic = TURNS_MAGIC,
				.version = TURNS_VERSION,
				.weight = TURNS_WEIGHT,
				.name = "a"};
	unsigned int how = take(in, 1), i;
	int orders = new_file(TURNS_ORDERS_BYTES - (how & 1), !(how & 2));
	int reports = new_file(TURNS_REPORTS_BYTES, !(how & 4));
	size_t bytes = sizeof(h), n = FILES - 1;
	int files[FILES];

	end_keeper(k);
	*k = (struct keeper){.sock = connect_to_broker(), .bell = eventfd(0, EFD_CLOEXEC)};
	k->orders = map_file(orders, TURNS_ORDERS_BYTES);
	k->reports = map_file(reports, TURNS_REPORTS_BYTES);
	memcpy(files, (int[]){orders, reports, k->bell, k->bell}, sizeof(files));
	if (how & 8)
		n = take(in, 1) % (FILES + 1);
	if (how & 16)
		bytes = take(in, 1) % (sizeof(h) + 1);
	if (how & 32) {
		i = take(in, 1) % (offsetof(struct turns_hello, name) / sizeof(uint32_t));
		((uint32_t *)&h)[i] = take(in, 4);
	}
	for (i = 0; how & 64 && i < sizeof(h.name); i++)
		h.name[i] = (char)take(in, 1);
	i = how & 128 ? take(in, 1) : 0;
	files[i & 3] = files[i >> 2 & 3];
	k->gpu = h.gpu % TURNS_GPUS;
	if (send_message(k->sock, &h, bytes, files, n))
		wait_for_look(k, 0);
	close(orders);
	close(reports);
}

static void ring(struct keeper *k)
{
	uint32_t looks = atomic_load(&k->orders[k->gpu].looks);

	need(!eventfd_write(k->bell, 1));
	wait_for_look(k, looks);
	check_orders(k);
}

static void write_report(struct keeper *k, struct input *in)
{
	unsigned int session = take(in, 1) % TURNS_SESSIONS;
	uint32_t *page = (uint32_t *)&k->reports[k->gpu * TURNS_SESSIONS + session];
	unsigned int word = take(in, 1);

	__atomic_store_n(&page[word], take(in, 4), __ATOMIC_RELAXED);
}

static void write_orders(struct keeper *k, struct input *in)
{
	uint32_t *page = (uint32_t *)&k->orders[k->gpu];
	unsigned int word = take(in, 1) % (offsetof(struct turns_orders, looks) / sizeof(*page));

	k->wild = true;
	__atomic_store_n(&page[word], take(in, 4), __ATOMIC_RELAXED);
}

static void say_more(struct keeper *k, struct input *in)
{
	static const char text[sizeof(struct turns_hello) + 8];
	size_t n = take(in, 1) % (FILES + 1);

	send_message(k->sock, text, take(in, 1) % sizeof(text),
		     (int[]){k->bell, k->bell, k->bell, k->bell}, n);
}

static void step(struct input *in)
{
	unsigned int what = take(in, 1);
	struct keeper *k = &keepers[what / 8 % KEEPERS];
	int file;

	if (what % 8 < 2) {
		connect_keeper(k, in);
		return;
	}
	if (what % 8 == 2) {
		file = eventfd(0, EFD_CLOEXEC);
		ask((int[]){file, file, file, file}, take(in, 1) % (FILES + 1));
		close(file);
		return;
	}
	/* Who has no connection can do nothing. */
	if (k->sock < 0)
		return;
	switch (what % 8) {
	case 3:
		end_keeper(k);
		break;
	case 4:
		ring(k);
		break;
	case 5:
		say_more(k, in);
		break;
	case 6:
		write_orders(k, in);
		break;
	default:
		write_report(k, in);
	}
}

FUZZ_ENTRY int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct timespec begin;
	unsigned int i;
	int before;

	if (!listener) {
		start_broker();
		for (i = 0; i < KEEPERS; i++)
			keepers[i].sock = -1;
		ask(NULL, 0);
	}
	/* libFuzzer may have opened files since the last input. */
	before = open_files();
	while (in.left)
		step(&in);
	for (i = 0; i < KEEPERS; i++)
		end_keeper(&keepers[i]);
	begin = start_clock();
	while (ask(NULL, 0))
		need(!is_late(&begin));
	while (open_files() != before)
		need(!is_late(&begin));
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * qcu-net: the network between the VMs of one step of a job, on any nodes.
 *
 *	qcu-net hub ADDRESS PORT TAG VMS
 *	qcu-net join ADDRESS PORT TAG VM FD COMMAND...
 *
 * The hub is a switch: it takes one connection from each VM and passes Ethernet frames on. "join"
 *connects to it, and then becomes COMMAND, which is QEMU, with the connection as the descriptor FD.
 *On the connection a frame is its length, four bytes in the network's order, and its bytes: what
 *QEMU's network backend "stream" speaks.
 *
 * Everybody in the cluster's network can connect to the hub's port. So both ends prove by munge
 *that they are of the same user and mean the same step (TAG), with a number that the other end has
 *just made up. After that the data is neither encrypted nor signed. A VM may send only from its own
 *address, and no frame is longer than QEMU's longest.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "scripts/launcher/munge.h"

#define VMS_MAX	    1024
#define STRANGERS   64		   /* connections that have not proved anything yet */
#define PROOF_MS    10000	   /* so long they may take */
#define JOIN_MS	    120000	   /* so long "join" tries: the hub's node may be slower */
#define SAID_MAX    4096	   /* of what is said before the frames */
#define FRAME_MIN   14		   /* an Ethernet header */
#define FRAME_MAX   (4096 + 65536) /* QEMU's NET_BUFSIZE */
#define WAITING_MAX (4 << 20)	   /* frames that a VM has not taken; more are lost */
#define NONCE	    32
#define COMPLAINTS  8

struct buffer {
	unsigned char *bytes;
	size_t len, sent, room;
};

struct vm {
	int fd; /* -1: not connected */
	bool joined;
	unsigned char in[4 + FRAME_MAX];
	size_t got;
	struct buffer out;
};

struct stranger {
	int fd; /* -1: a free place */
	uint64_t until;
	char nonce[NONCE + 1];
	char line[SAID_MAX];
	size_t got;
};

struct hub {
	const char *tag;
	unsigned int vms;
	struct vm *vm;
	struct stranger strangers[STRANGERS];
};

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fputs("qcu-net: ", stderr);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(2);
}

/* Strangers may cause messages, and the user reads them: some are enough. */
static void __attribute__((format(printf, 1, 2))) complain(const char *format, ...)
{
	static unsigned int said;
	va_list ap;

	if (said++ >= COMPLAINTS)
		return;
	va_start(ap, format);
	fputs("qcu-net: ", stderr);
	vfprintf(stderr, format, ap);
	fputs(said == COMPLAINTS ? "; there will be no more messages\n" : "\n", stderr);
	va_end(ap);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void make_nonce(char *text)
{
	unsigned char bytes[NONCE / 2];
	unsigned int i;

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		die("no random numbers: %s", strerror(errno));
	for (i = 0; i < sizeof(bytes); i++)
		sprintf(text + i * 2, "%02x", bytes[i]);
}

static bool is_nonce(const char *text)
{
	return strlen(text) == NONCE && strspn(text, "0123456789abcdef") == NONCE;
}

/* ---- the hub: VMs ---- */

static void drop_vm(struct vm *v)
{
	close(v->fd);
	v->fd = -1;
	free(v->out.bytes);
	memset(&v->out, 0, sizeof(v->out));
}

/* Appends to what waits. A frame that does not fit is left out as a whole. */
static void append(struct buffer *b, const void *bytes, size_t len)
{
	if (b->sent && b->sent == b->len)
		b->sent = b->len = 0;
	if (b->len + len > WAITING_MAX && b->sent) {
		memmove(b->bytes, b->bytes + b->sent, b->len - b->sent);
		b->len -= b->sent;
		b->sent = 0;
	}
	if (b->len + len > WAITING_MAX)
		return;
	if (b->len + len > b->room) {
		size_t room = b->room ? b->room * 2 : 1 << 17;
		unsigned char *more = realloc(b->bytes, room > WAITING_MAX ? WAITING_MAX : room);

		if (!more)
			return;
		b->bytes = more;
		b->room = room > WAITING_MAX ? WAITING_MAX : room;
	}
	memcpy(b->bytes + b->len, bytes, len);
	b->len += len;
}

static void flush(struct vm *v)
{
	struct buffer *b = &v->out;
	ssize_t n;

	if (b->sent == b->len)
		return;
	n = send(v->fd, b->bytes + b->sent, b->len - b->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n > 0)
		b->sent += (size_t)n;
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		drop_vm(v);
}

/* The address of a VM's network card. The launcher gives it to QEMU. */
static void address_of(unsigned int vm, unsigned char mac[6])
{
	const unsigned char all[6] = {0x52, 0x54, 0x00, 0x71, (vm >> 8) & 255, vm & 255};

	memcpy(mac, all, sizeof(all));
}

/* frame: with its length in front. */
static void pass_on(struct hub *h, unsigned int from, const unsigned char *frame, size_t len)
{
	unsigned char own[6], mac[6];
	unsigned int to;

	address_of(from, own);
	if (memcmp(frame + 4 + 6, own, 6))
		return;
	for (to = 0; to < h->vms; to++) {
		address_of(to, mac);
		/* The lowest bit of the first byte: for all. */
		if (to == from || h->vm[to].fd < 0 ||
		    (!(frame[4] & 1) && memcmp(frame + 4, mac, 6)))
			continue;
		append(&h->vm[to].out, frame, len);
		flush(&h->vm[to]);
	}
}

static void read_frames(struct hub *h, unsigned int from)
{
	struct vm *v = &h->vm[from];
	ssize_t n = recv(v->fd, v->in + v->got, sizeof(v->in) - v->got, MSG_DONTWAIT);
	size_t at = 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		drop_vm(v);
		return;
	}
	v->got += (size_t)n;
	while (v->got - at >= 4) {
		uint32_t len;

		memcpy(&len, v->in + at, 4);
		len = ntohl(len);
		if (len < FRAME_MIN || len > FRAME_MAX) {
			complain("VM %u: a frame of %u bytes", from, len);
			drop_vm(v);
			return;
		}
		if (v->got - at < 4 + len)
			break;
		pass_on(h, from, v->in + at, 4 + len);
		at += 4 + len;
	}
	memmove(v->in, v->in + at, v->got - at);
	v->got -= at;
}

/* ---- the hub: those who have proved nothing ---- */

static void drop_stranger(struct stranger *s)
{
	close(s->fd);
	s->fd = -1;
}

/* If all places are taken, the oldest gives way. */
static void take_stranger(struct hub *h, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct stranger *s = &h->strangers[0];
	char hello[NONCE + 2];
	unsigned int i;

	if (fd < 0)
		return;
	for (i = 0; i < STRANGERS && s->fd >= 0; i++)
		if (h->strangers[i].fd < 0 || h->strangers[i].until < s->until)
			s = &h->strangers[i];
	if (s->fd >= 0)
		drop_stranger(s);
	s->fd = fd;
	s->until = now_ms() + PROOF_MS;
	s->got = 0;
	make_nonce(s->nonce);
	snprintf(hello, sizeof(hello), "%s\n", s->nonce);
	if (send(fd, hello, NONCE + 1, MSG_NOSIGNAL) != NONCE + 1)
		drop_stranger(s);
}

/* Reads "join TAG VM NONCE NONCE", where the first nonce is ours. Returns the VM, or -1 for a wrong
 * proof. */
static int proven_vm(const struct hub *h, const struct stranger *s, char *theirs)
{
	char text[MUNGE_TEXT], tag[128], ours[64], their[64];
	unsigned int vm;
	int end = 0;

	if (!munge_open(s->line, text) ||
	    sscanf(text, "join %127s %5u %63s %63s%n", tag, &vm, ours, their, &end) != 4 ||
	    text[end] || strcmp(tag, h->tag) || strcmp(ours, s->nonce) || !is_nonce(their) ||
	    vm >= h->vms || h->vm[vm].joined)
		return -1;
	strcpy(theirs, their);
	return (int)vm;
}

static void hear_proof(struct hub *h, struct stranger *s)
{
	ssize_t n = recv(s->fd, s->line + s->got, sizeof(s->line) - 1 - s->got, MSG_DONTWAIT);
	char text[MUNGE_TEXT], theirs[NONCE + 1], answer[SAID_MAX];
	const int on = 1;
	size_t len;
	int vm;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		s->got += (size_t)n;
	if (n <= 0 || s->got == sizeof(s->line) - 1) {
		drop_stranger(s);
		return;
	}
	/* Nothing may follow the line before it is answered. */
	if (s->line[s->got - 1] != '\n')
		return;
	s->line[s->got - 1] = 0;
	vm = proven_vm(h, s, theirs);
	if (vm < 0) {
		complain("a connection without a valid proof was closed");
		drop_stranger(s);
		return;
	}
	snprintf(text, sizeof(text), "hub %s %d %s", h->tag, vm, theirs);
	if (!munge_close(text, answer, sizeof(answer) - 1)) {
		drop_stranger(s);
		return;
	}
	len = strlen(answer);
	answer[len++] = '\n';
	if (send(s->fd, answer, len, MSG_NOSIGNAL) != (ssize_t)len) {
		drop_stranger(s);
		return;
	}
	setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	h->vm[vm].fd = s->fd;
	h->vm[vm].joined = true;
	s->fd = -1;
}

/* ---- the hub ---- */

/* VM 0 is on the hub's node. When it has left, the hub serves those that are still there. */
static bool all_have_left(const struct hub *h)
{
	unsigned int i;

	if (!h->vm[0].joined)
		return false;
	for (i = 0; i < h->vms; i++)
		if (h->vm[i].fd >= 0)
			return false;
	return true;
}

static void serve(struct hub *h, int listener)
{
	struct pollfd *fds = calloc(1 + STRANGERS + h->vms, sizeof(*fds));
	unsigned int i;

	if (!fds)
		die("out of memory");
	while (!all_have_left(h)) {
		struct pollfd *of_vm = fds + 1 + STRANGERS;
		uint64_t now = now_ms();
		int wait = -1;

		fds[0] = (struct pollfd){.fd = listener, .events = POLLIN};
		for (i = 0; i < STRANGERS; i++) {
			struct stranger *s = &h->strangers[i];

			if (s->fd >= 0 && s->until <= now)
				drop_stranger(s);
			fds[1 + i] = (struct pollfd){.fd = s->fd, .events = POLLIN};
			if (s->fd >= 0 && (wait < 0 || s->until - now < (uint64_t)wait))
				wait = (int)(s->until - now);
		}
		for (i = 0; i < h->vms; i++) {
			const struct buffer *b = &h->vm[i].out;

			of_vm[i] = (struct pollfd){.fd = h->vm[i].fd, .events = POLLIN};
			if (b->sent < b->len)
				of_vm[i].events |= POLLOUT;
		}
		if (poll(fds, 1 + STRANGERS + h->vms, wait) < 0 && errno != EINTR)
			die("poll: %s", strerror(errno));
		for (i = 0; i < h->vms; i++) {
			if (of_vm[i].revents & POLLOUT && h->vm[i].fd >= 0)
				flush(&h->vm[i]);
			if (of_vm[i].revents & ~POLLOUT && h->vm[i].fd >= 0)
				read_frames(h, i);
		}
		for (i = 0; i < STRANGERS; i++)
			if (fds[1 + i].revents && h->strangers[i].fd >= 0)
				hear_proof(h, &h->strangers[i]);
		if (fds[0].revents)
			take_stranger(h, listener);
	}
	free(fds);
}

static struct addrinfo *find_address(const char *address, const char *port)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	int rc = getaddrinfo(address, port, &hints, &found);

	if (rc)
		die("%s: %s", address, gai_strerror(rc));
	return found;
}

static int be_hub(char **args)
{
	struct addrinfo *at = find_address(args[0], args[1]);
	int listener = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct hub *h = calloc(1, sizeof(*h));
	const int on = 1;
	unsigned int i;

	if (!h)
		die("out of memory");
	h->tag = args[2];
	h->vms = (unsigned int)atoi(args[3]);
	if (h->vms < 1 || h->vms > VMS_MAX)
		die("%s: from 1 to %d VMs", args[3], VMS_MAX);
	h->vm = calloc(h->vms, sizeof(*h->vm));
	if (!h->vm)
		die("out of memory");
	for (i = 0; i < h->vms; i++)
		h->vm[i].fd = -1;
	for (i = 0; i < STRANGERS; i++)
		h->strangers[i].fd = -1;
	if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(listener, at->ai_addr, at->ai_addrlen) || listen(listener, 64))
		die("%s, port %s: %s", args[0], args[1], strerror(errno));
	freeaddrinfo(at);
	serve(h, listener);
	return 0;
}

/* ---- join ---- */

/* Reads a line, byte by byte: frames may follow it. */
static bool read_line(int fd, char *line, size_t size)
{
	size_t got = 0;

	while (got + 1 < size && recv(fd, line + got, 1, 0) == 1) {
		if (line[got] == '\n') {
			line[got] = 0;
			return true;
		}
		got++;
	}
	return false;
}

/* True: the hub is of the same user and of the same step, and has taken this VM. */
static bool prove(int fd, const char *tag, const char *vm)
{
	char line[SAID_MAX], own[NONCE + 1], text[MUNGE_TEXT], want[MUNGE_TEXT];
	size_t len;

	if (!read_line(fd, line, sizeof(line)) || !is_nonce(line))
		return false;
	make_nonce(own);
	snprintf(text, sizeof(text), "join %s %s %s %s", tag, vm, line, own);
	if (!munge_close(text, line, sizeof(line) - 1))
		return false;
	len = strlen(line);
	line[len++] = '\n';
	if (send(fd, line, len, MSG_NOSIGNAL) != (ssize_t)len ||
	    !read_line(fd, line, sizeof(line)) || !munge_open(line, text))
		return false;
	snprintf(want, sizeof(want), "hub %s %s %s", tag, vm, own);
	return !strcmp(text, want);
}

static int join(char **args)
{
	struct addrinfo *at = find_address(args[0], args[1]);
	uint64_t until = now_ms() + JOIN_MS;
	const struct timeval patience = {.tv_sec = PROOF_MS / 1000}, none = {0};
	int fd, wanted = atoi(args[4]);
	const int on = 1;

	for (;;) {
		fd = socket(at->ai_family, SOCK_STREAM, 0);
		if (fd < 0)
			die("%s", strerror(errno));
		if (!connect(fd, at->ai_addr, at->ai_addrlen))
			break;
		if (now_ms() >= until)
			die("there is no hub at %s, port %s: %s", args[0], args[1],
			    strerror(errno));
		close(fd);
		usleep(100000);
	}
	freeaddrinfo(at);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (!prove(fd, args[2], args[3]))
		die("at %s, port %s, nobody proves to be the hub of this step", args[0], args[1]);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (fd != wanted && (dup2(fd, wanted) < 0 || close(fd)))
		die("descriptor %s: %s", args[4], strerror(errno));
	execvp(args[5], args + 5);
	die("%s: %s", args[5], strerror(errno));
}

int main(int argc, char **argv)
{
	if (argc == 6 && !strcmp(argv[1], "hub"))
		return be_hub(argv + 2);
	if (argc > 7 && !strcmp(argv[1], "join"))
		return join(argv + 2);
	die("usage: qcu-net hub ADDRESS PORT TAG VMS, or qcu-net join ADDRESS PORT TAG VM FD "
	    "COMMAND...");
}

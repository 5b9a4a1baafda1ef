// SPDX-License-Identifier: GPL-2.0-or-later
/* Messages about a guest, limited in number and in what they may contain. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"

#define INTERVAL_NS 1000000000ull
#define BURST_NS    (COMPLAIN_BURST * INTERVAL_NS)

/*
 * paid_ns is the time until which the messages so far are paid for, at one interval per message. It
 * may be ahead of the clock by COMPLAIN_BURST intervals.
 */
struct account {
	_Atomic uint64_t paid_ns;
	_Atomic uint64_t left_out;
};

static struct account own;
static struct account *account = &own;
static bool always;

/* The session that this process serves, and the file to which it writes its messages. */
static struct {
	unsigned int session; /* 0: none */
	uint32_t guest_pid;
	int fd;
} self = {.fd = STDERR_FILENO};

static _Thread_local const char *command;

struct line {
	char text[COMPLAIN_LINE_MAX];
	size_t len;
	bool cut;
};

bool complain_share(int fd)
{
	void *p;

	if (fd < 0 || ftruncate(fd, sizeof(*account)))
		return false;
	p = mmap(NULL, sizeof(*account), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return false;
	account = p;
	return true;
}

void complain_always(void)
{
	always = true;
}

void complain_context(unsigned int session, uint32_t guest_pid)
{
	self.session = session;
	self.guest_pid = guest_pid;
}

void complain_command(const char *name)
{
	command = name;
}

bool complain_keep_stderr(void)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);

	if (fd >= 0)
		self.fd = fd;
	return fd >= 0;
}

static bool may_speak(void)
{
	struct timespec t;
	uint64_t now, paid, next;

	if (always)
		return true;
	clock_gettime(CLOCK_MONOTONIC, &t);
	now = (uint64_t)t.tv_sec * INTERVAL_NS + (uint64_t)t.tv_nsec;
	paid = atomic_load(&account->paid_ns);
	do {
		next = (paid > now ? paid : now) + INTERVAL_NS;
		/* This process never pays so far ahead: another process has written nonsense. */
		if (paid > now && paid - now > BURST_NS)
			next = now + BURST_NS;
		else if (next - now > BURST_NS)
			return false;
	} while (!atomic_compare_exchange_weak(&account->paid_ns, &paid, next));
	return true;
}

/*
 * Writes a byte as a number if it could be taken for the start of another line or for a terminal's
 * control character.
 */
static void add_escaped_text(struct line *l, const char *text, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const size_t room = sizeof(l->text) - sizeof("...\n");

	for (; len && !l->cut; len--, text++) {
		unsigned char c = (unsigned char)*text;
		bool plain = c >= ' ' && c <= '~';

		if ((plain ? 1 : 4) > room - l->len) {
			l->cut = true;
		} else if (plain) {
			l->text[l->len++] = (char)c;
		} else {
			l->text[l->len++] = '\\';
			l->text[l->len++] = 'x';
			l->text[l->len++] = digits[c >> 4];
			l->text[l->len++] = digits[c & 15];
		}
	}
}

static void add_format(struct line *l, const char *format, va_list ap)
{
	char text[COMPLAIN_LINE_MAX];
	int n = vsnprintf(text, sizeof(text), format, ap);

	if (n < 0)
		return;
	add_escaped_text(l, text, strnlen(text, sizeof(text)));
	l->cut |= (size_t)n >= sizeof(text);
}

static void __attribute__((format(printf, 2, 3)))
print_to_line(struct line *l, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	add_format(l, format, ap);
	va_end(ap);
}

static struct line begin_message_line(void)
{
	struct line l;

	l.len = 0;
	l.cut = false;
	print_to_line(&l, "qcu-device: ");
	if (self.session)
		print_to_line(&l, "session %u", self.session);
	if (self.session && self.guest_pid)
		print_to_line(&l, " (pid %u)", self.guest_pid);
	if (command)
		print_to_line(&l, "%s%s", self.session ? ", " : "", command);
	if (self.session || command)
		print_to_line(&l, ": ");
	return l;
}

/* One write() for the whole line, so that the lines of several processes do not mix. */
static void write_out_line(struct line *l)
{
	const char *at = l->text;
	int error = errno;
	ssize_t n;

	if (l->cut) {
		memcpy(l->text + l->len, "...", 3);
		l->len += 3;
	}
	l->text[l->len++] = '\n';
	while (l->len) {
		n = write(self.fd, at, l->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		at += n;
		l->len -= (size_t)n;
	}
	errno = error;
}

/* May a line be printed now? If so, first prints how many lines were left out before it. */
static bool turn(void)
{
	unsigned long long left_out;
	struct line l;

	if (!may_speak()) {
		atomic_fetch_add(&account->left_out, 1);
		return false;
	}
	left_out = atomic_exchange(&account->left_out, 0);
	if (left_out) {
		l.len = 0;
		l.cut = false;
		print_to_line(&l, "qcu-device: %llu messages about the guest are left out",
			      left_out);
		write_out_line(&l);
	}
	return true;
}

void complain(const char *format, ...)
{
	struct line l;
	va_list ap;

	if (!turn())
		return;
	l = begin_message_line();
	va_start(ap, format);
	add_format(&l, format, ap);
	va_end(ap);
	write_out_line(&l);
}

void complain_text(const char *who, const char *text, size_t len)
{
	while (len) {
		const char *stop = memchr(text, '\n', len);
		size_t n = stop ? (size_t)(stop - text) : len;

		if (n && turn()) {
			struct line l = begin_message_line();

			print_to_line(&l, "%s: ", who);
			add_escaped_text(&l, text, n);
			write_out_line(&l);
		}
		n += stop != NULL;
		text += n;
		len -= n;
	}
}

void complain_trace(const char *format, ...)
{
	struct line l = begin_message_line();
	va_list ap;

	va_start(ap, format);
	add_format(&l, format, ap);
	va_end(ap);
	write_out_line(&l);
}

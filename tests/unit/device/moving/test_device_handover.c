// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The socket and the words with which one qcu-device hands its VM over to another: who may connect,
 * and words that must not be accepted. tests/vm/machine/take_over.py has the whole of it.
 */
#define _GNU_SOURCE /* memfd_create */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "qcu-device/moving/handover.h"
#include "qcu-device/base/send_files.h"

#define SESSIONS 4
#define STRANGER 65534

static char dir[] = "/tmp/qcu-test-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(dir) || chmod(dir, 0755))
		return -1;
	snprintf(path, sizeof(path), "%s/socket", dir);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

/* ---- words ---- */

static void refused(struct handover_word *w, enum handover_what what, const char *reason)
{
	char why[256] = "";

	assert_false(handover_fits(w, what, SESSIONS, why, sizeof(why)));
	assert_non_null(strstr(why, reason));
	handover_make(w, what, SESSIONS);
}

static void bad_words(void **state)
{
	struct handover_word w;
	char why[256] = "";

	(void)state;
	handover_make(&w, HANDOVER_VM, SESSIONS);
	w.magic++;
	refused(&w, HANDOVER_VM, "not a qcu-device");
	w.version = 2;
	refused(&w, HANDOVER_VM, "hands over by version 2");
	w.what = HANDOVER_HAVE;
	refused(&w, HANDOVER_VM, "something else");
	w.wire_version = 9999;
	refused(&w, HANDOVER_VM, "wire version is 9999");
	w.sessions = SESSIONS + 1;
	refused(&w, HANDOVER_VM, "can have 5 sessions, and this one 4");
	w.window_base += 4096;
	refused(&w, HANDOVER_VM, "lies elsewhere");
	w.window_size = 0;
	refused(&w, HANDOVER_VM, "lies elsewhere");
	w.has_vm = 1;
	refused(&w, HANDOVER_VM, "makes no sense");
	w.messages = HANDOVER_MESSAGES + 1;
	refused(&w, HANDOVER_VM, "makes no sense");
	w.asked = 2;
	refused(&w, HANDOVER_VM, "makes no sense");
	w.rsvd[2] = 1;
	refused(&w, HANDOVER_VM, "makes no sense");
	w.why[0] = 'x';
	refused(&w, HANDOVER_VM, "makes no sense");
	w.messages = HANDOVER_MESSAGES;
	w.asked = 1;
	assert_true(handover_fits(&w, HANDOVER_VM, SESSIONS, why, sizeof(why)));
	/* What belongs to another word. */
	handover_make(&w, HANDOVER_YOURS, SESSIONS);
	w.messages = 1;
	refused(&w, HANDOVER_YOURS, "makes no sense");
	w.asked = 1;
	refused(&w, HANDOVER_YOURS, "makes no sense");
	assert_string_equal(why, "");
}

static void reasons(void **state)
{
	struct handover_word w;

	(void)state;
	handover_make_no(&w, "\033[2J no \xff room\n");
	refused(&w, HANDOVER_HAVE, "?[2J no ? room?");
	handover_make_no(&w, "");
	refused(&w, HANDOVER_HAVE, "no reason");
	handover_make_no(&w, "x");
	memset(w.why, 'x', sizeof(w.why));
	refused(&w, HANDOVER_HAVE, "xxx");
	/* A word of another release has its reason elsewhere. */
	handover_make_no(&w, "hidden");
	w.version = 2;
	refused(&w, HANDOVER_HAVE, "version 2");
}

/* ---- files and pieces ---- */

static unsigned int count_files(void)
{
	unsigned int n = 0, fd;

	for (fd = 0; fd < 64; fd++)
		n += fcntl((int)fd, F_GETFD) >= 0;
	return n;
}

static void pieces(void **state)
{
	int ends[2], fds[HANDOVER_FILES], file = memfd_create("file", MFD_CLOEXEC);
	const int many[] = {file, file, file, file};
	struct handover_word w, got;
	unsigned int before, i;

	(void)state;
	handover_make(&w, HANDOVER_READY, SESSIONS);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	before = count_files();
	/* Too many files, and more of them with the second piece. */
	assert_int_equal(send_files(ends[0], &w, sizeof(w), many, 4, 0), sizeof(w));
	assert_false(handover_receive(ends[1], &got, fds));
	assert_int_equal(send_files(ends[0], &w, 100, many, 2, 0), 100);
	assert_int_equal(send_files(ends[0], (uint8_t *)&w + 100, sizeof(w) - 100, many, 1, 0),
			 sizeof(w) - 100);
	assert_false(handover_receive(ends[1], &got, fds));
	assert_int_equal(count_files(), before);
	/* In two pieces, with the files that belong to it. */
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(send_files(ends[0], &w, 1, many, 2, 0), 1);
	assert_int_equal(send(ends[0], (uint8_t *)&w + 1, sizeof(w) - 1, 0), sizeof(w) - 1);
	assert_true(handover_receive(ends[1], &got, fds));
	assert_memory_equal(&got, &w, sizeof(w));
	assert_true(fds[0] >= 0 && fds[1] >= 0 && fds[2] < 0);
	close(fds[0]);
	close(fds[1]);
	/* Cut off. */
	assert_int_equal(send_files(ends[0], &w, sizeof(w) - 1, many, 3, 0), sizeof(w) - 1);
	close(ends[0]);
	assert_false(handover_receive(ends[1], &got, fds));
	for (i = 0; i < HANDOVER_FILES; i++)
		assert_int_equal(fds[i], -1);
	assert_false(handover_send(ends[1], &w, NULL, 0));
	close(ends[1]);
	close(file);
	assert_int_equal(count_files(), before - 3);
}

/* ---- who may connect ---- */

/* Connects as another user. Returns 0, or an errno. */
static int connect_as_stranger(void)
{
	char why[256];
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(setresgid(STRANGER, STRANGER, STRANGER) ||
				      setresuid(STRANGER, STRANGER, STRANGER) ||
				      handover_connect(path, why, sizeof(why)) < 0
			      ? 1
			      : 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

static void who_may_connect(void **state)
{
	char why[256] = "", longer[200];
	int listener, sock, accepted;
	struct stat st;

	(void)state;
	assert_int_equal(handover_connect(path, why, sizeof(why)), -1);
	assert_non_null(strstr(why, "No such file"));
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(handover_listen(longer), -1);
	assert_int_equal(errno, ENAMETOOLONG);
	listener = handover_listen(path);
	assert_true(listener >= 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(handover_listen(path), -1);
	assert_int_equal(errno, EADDRINUSE);
	/* Nobody is there; it does not wait. */
	assert_int_equal(handover_accept(listener), -1);
	sock = handover_connect(path, why, sizeof(why));
	assert_true(sock >= 0);
	accepted = handover_accept(listener);
	assert_true(accepted >= 0);
	close(accepted);
	close(sock);
	if (geteuid()) {
		close(listener);
		print_message("not root: no other user connects\n");
		return;
	}
	/* The mode keeps a stranger away; and if it did not, the look at who has connected. */
	assert_int_equal(connect_as_stranger(), 1);
	assert_int_equal(handover_accept(listener), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(connect_as_stranger(), 0);
	assert_int_equal(handover_accept(listener), -1);
	close(listener);
}

/* A socket that somebody else has put there is not taken for an old qcu-device. */
static void who_may_listen(void **state)
{
	char why[256] = "", byte;
	int ready[2], go[2], status;
	pid_t pid;

	(void)state;
	if (!geteuid()) {
		unlink(path);
		assert_int_equal(chmod(dir, 0777), 0);
		assert_int_equal(pipe(ready) | pipe(go), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			close(go[1]);
			status = setresuid(STRANGER - 1, STRANGER - 1, STRANGER - 1) ||
				 handover_listen(path) < 0 || chmod(path, 0666) ||
				 write(ready[1], "", 1) != 1 || read(go[0], &byte, 1);
			_exit(status);
		}
		close(go[0]);
		assert_int_equal(read(ready[0], &byte, 1), 1);
		assert_int_equal(handover_connect(path, why, sizeof(why)), -1);
		assert_non_null(strstr(why, "belongs to another user"));
		close(go[1]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		close(ready[0]);
		close(ready[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_words),	  cmocka_unit_test(reasons),
		cmocka_unit_test(pieces),	  cmocka_unit_test(who_may_connect),
		cmocka_unit_test(who_may_listen),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

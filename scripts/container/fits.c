// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * qcu-fits: says whether qCUDA's libraries can be loaded by the programs of a root, which is a
 * container's or that of an image. They need glibc, and one that is new enough.
 *
 *	qcu-fits ROOT FOLDER
 *	qcu-fits --hook FOLDER
 *
 * FOLDER has our libraries. The exit code is 0 if they fit, or if the root has no C library at a
 * usual place, as for programs that are linked statically. Otherwise it is 1, and a sentence on
 * stderr says why. With --hook this is a container's hook (startContainer): the root is its own,
 * and a runtime that gets 1 does not start the container. runc shows what a hook says. crun shows
 * only the hook's name, so the package has a link to this program whose name says it.
 *
 * The root is not trusted. A path in it is resolved as if it were "/", a file must be a regular
 * one, and only this much of it is read. What the file says is believed: a root that lies about
 * its C library harms only its own programs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FITS, DOES_NOT_FIT, WRONG_USE };

static const size_t MOST_READ = 64UL << 20;

/* Where distributions have glibc. The first that is there counts. */
static const char *const glibc_places[] = {
	"lib/x86_64-linux-gnu/libc.so.6",
	"usr/lib/x86_64-linux-gnu/libc.so.6",
	"lib64/libc.so.6",
	"usr/lib64/libc.so.6",
	"lib/libc.so.6",
	"usr/lib/libc.so.6",
	NULL,
};
static const char *const musl_places[] = {"lib/ld-musl-x86_64.so.1", "usr/lib/ld-musl-x86_64.so.1",
					  NULL};
/* Those of ours that every program gets. */
static const char *const ours[] = {"libqcuda-loader.so", "libcudart.so.13", NULL};

static int open_below(int root, const char *path, unsigned long flags)
{
	struct open_how how = {.flags = flags | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* Opens a regular file and nothing else: to open a device or a pipe may have effects. */
static int open_file(int root, const char *path, struct stat *st)
{
	int fd = open_below(root, path, O_PATH);
	bool regular;

	if (fd < 0)
		return -1;
	regular = !fstat(fd, st) && S_ISREG(st->st_mode);
	close(fd);
	if (!regular)
		return -1;
	fd = open_below(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && (fstat(fd, st) || !S_ISREG(st->st_mode))) {
		close(fd);
		return -1;
	}
	return fd;
}

/*
 * The newest version of glibc that the file names: the C library has all versions since the
 * first, and a library those that it needs. 34 stands for 2.34, 0 for none.
 */
static unsigned int newest_version(int fd, size_t size)
{
	static const char mark[] = "GLIBC_2.";
	const size_t length = sizeof(mark) - 1;
	unsigned int newest = 0, minor, digits;
	const char *text, *p, *end;

	if (size > MOST_READ)
		size = MOST_READ;
	if (!size)
		return 0;
	text = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED)
		return 0;
	end = text + size;
	for (p = text; (p = memmem(p, (size_t)(end - p), mark, length));) {
		p += length;
		minor = 0;
		for (digits = 0; p < end && *p >= '0' && *p <= '9' && digits < 4; digits++)
			minor = minor * 10 + (unsigned int)(*p++ - '0');
		if (minor > newest)
			newest = minor;
	}
	munmap((void *)text, size);
	return newest;
}

/* Sets *version to that of the first of these files that is there. */
static bool version_of(int root, const char *const *places, unsigned int *version)
{
	struct stat st;
	int fd;

	for (; *places; places++) {
		fd = open_file(root, *places, &st);
		if (fd < 0)
			continue;
		*version = newest_version(fd, (size_t)st.st_size);
		close(fd);
		return true;
	}
	return false;
}

static bool is_there(int root, const char *const *places)
{
	struct stat st;
	int fd;

	for (; *places; places++) {
		fd = open_file(root, *places, &st);
		if (fd >= 0) {
			close(fd);
			return true;
		}
	}
	return false;
}

static unsigned int version_needed(int folder)
{
	unsigned int needed = 0, version;
	const char *const *name;

	for (name = ours; *name; name++) {
		const char *const one[] = {*name, NULL};

		if (version_of(folder, one, &version) && version > needed)
			needed = version;
	}
	return needed;
}

/* A runtime writes the container's state to a hook, and may end with an error if nobody reads. */
static void read_state(void)
{
	char text[4096];

	while (read(STDIN_FILENO, text, sizeof(text)) > 0)
		;
}

int main(int argc, char **argv)
{
	bool hook = argc == 3 && !strcmp(argv[1], "--hook");
	unsigned int has = 0, needs;
	char sentence[200];
	int root, folder;

	if (argc != 3) {
		fputs("usage: qcu-fits ROOT FOLDER, or qcu-fits --hook FOLDER\n", stderr);
		return WRONG_USE;
	}
	if (hook)
		read_state();
	root = open(hook ? "/" : argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
	folder = open(argv[2], O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || folder < 0) {
		fprintf(stderr, "qcu-fits: %s: %s\n", root < 0 ? argv[1] : argv[2],
			strerror(errno));
		return WRONG_USE;
	}
	needs = version_needed(folder);
	if (!needs) {
		fprintf(stderr, "qcu-fits: %s: qCUDA's libraries are not there\n", argv[2]);
		return WRONG_USE;
	}
	if (version_of(root, glibc_places, &has)) {
		if (has >= needs)
			return FITS;
		snprintf(sentence, sizeof(sentence),
			 "qcuda: this image has glibc 2.%u, and qCUDA's libraries need 2.%u or "
			 "later\n",
			 has, needs);
	} else if (is_there(root, musl_places)) {
		snprintf(sentence, sizeof(sentence),
			 "qcuda: this image has the C library musl, and qCUDA's libraries need "
			 "glibc 2.%u or later\n",
			 needs);
	} else {
		return FITS;
	}
	fputs(sentence, stderr);
	return DOES_NOT_FIT;
}

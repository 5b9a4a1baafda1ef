// SPDX-License-Identifier: GPL-2.0-or-later
/* Executing a mirror, and what the new process does before it is a mirror (birth.h). */
#define _GNU_SOURCE /* close_range, MADV_DONTDUMP */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/base/usage.h"
#include "qcu-device/host/birth.h"
#include "qcu-device/jail/groups.h"
#include "qcu-device/host/nursery.h"
#include "qcu-device/front/ramfiles.h"
#include "qcu-device/jail/jail.h"
#include "qcu-device/memory/shares.h"

/* The file numbers in a new mirror. The files of the VM's memory come last. */
enum {
	FD_CTL = 3,
	FD_LETTERS,
	FD_GROUP,
	FD_STORE,
	FD_SETUP,
	FD_STATES,
	FD_SHARES,
	FD_USAGE,
	FD_ACCOUNT,
	FD_NAMED,
	FD_ORDERS,
	FD_REPORTS,
	FD_BELL,
	FD_PROGRAM,
	FD_PLUGIN,
	FD_RAM,
};

_Static_assert(FD_RAM - 3 + GUESTMEM_REGIONS <= NURSERY_FILES, "one order has all files");

struct region {
	uint64_t gpa, size, offset;
};

struct setup {
	struct device_options opt;
	bool warm, store;
	unsigned int regions;
	struct region region[GUESTMEM_REGIONS];
};

/* ---- the main process ---- */

/*
 * The files that mirrors are executed from: the main process opens them before it goes to jail, and
 * the nursery keeps them.
 */
static struct {
	int program, plugin; /* -1: there is no plugin */
	const char *loader;  /* the path of the program loader */
	char **argv, **env;
} birth = {.program = -1, .plugin = -1};

/*
 * Variables that the program, its libraries or CUDA may read. A mirror does not get the operator's
 * others.
 */
static bool wanted(const char *variable)
{
	static const char *const begin[] = {"QCU_",   "CUDA_", "NVIDIA_", "LD_",	   "ASAN_",
					    "UBSAN_", "TSAN_", "MALLOC_", "GLIBC_TUNABLES"};
	size_t i;

	for (i = 0; i < sizeof(begin) / sizeof(begin[0]); i++)
		if (!strncmp(variable, begin[i], strlen(begin[i])))
			return true;
	return false;
}

static size_t count_strings(char *const *list)
{
	size_t n = 0;

	while (list[n])
		n++;
	return n;
}

/* CUDA must not keep compiled kernels in a file of the operator's, so its cache is off. */
static bool make_environment(void)
{
	static char no_cache[] = "CUDA_CACHE_DISABLE=1";
	size_t n = 0, i;

	birth.env = calloc(count_strings(environ) + 2, sizeof(*birth.env));
	if (!birth.env)
		return false;
	birth.env[n++] = no_cache;
	for (i = 0; environ[i]; i++)
		if (wanted(environ[i]) && strncmp(environ[i], "CUDA_CACHE_", 11))
			birth.env[n++] = environ[i];
	return true;
}

static bool make_arguments(char *const *argv)
{
	static char argv0[] = "--argv0", name[] = "qcu-mirror", word[] = BIRTH_WORD;
	static char program[32];
	size_t n = 0, i;

	birth.argv = calloc(count_strings(argv) + 6, sizeof(*birth.argv));
	if (!birth.argv)
		return false;
	snprintf(program, sizeof(program), "/proc/self/fd/%d", FD_PROGRAM);
	birth.argv[n++] = name;
	birth.argv[n++] = argv0;
	birth.argv[n++] = name;
	birth.argv[n++] = program;
	birth.argv[n++] = word;
	for (i = 1; argv[0] && argv[i]; i++)
		birth.argv[n++] = argv[i];
	return true;
}

/* The path of the program loader with which the kernel started this program. */
static const char *find_loader(void)
{
	const ElfW(Phdr) *ph = (const void *)getauxval(AT_PHDR);
	const ElfW(Phdr) *interp = NULL;
	size_t n = getauxval(AT_PHNUM), i;
	uintptr_t base = 0;

	for (i = 0; ph && i < n; i++) {
		if (ph[i].p_type == PT_PHDR)
			base = (uintptr_t)ph - ph[i].p_vaddr;
		if (ph[i].p_type == PT_INTERP)
			interp = &ph[i];
	}
	return interp ? (const char *)base + interp->p_vaddr : NULL;
}

bool birth_prepare(const struct device_options *opt, char *const *argv)
{
	char path[PLUGIN_PATH_MAX];

	birth.loader = find_loader();
	birth.program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (!birth.loader || birth.program < 0) {
		fprintf(stderr, "qcu-device: it cannot find itself to start mirrors\n");
		return false;
	}
	if (opt->plugin && !plugin_path(path, sizeof(path)))
		birth.plugin = open(path, O_RDONLY | O_CLOEXEC);
	if (opt->plugin && birth.plugin < 0) {
		fprintf(stderr, "qcu-device: the cuda backend cannot be opened: %s\n",
			strerror(errno));
		return false;
	}
	if (!make_environment() || !make_arguments(argv)) {
		fprintf(stderr, "qcu-device: no memory\n");
		return false;
	}
	return true;
}

/* Returns a file with the setup, its position at the beginning; -1 on error. */
static int write_setup(const struct setup *s)
{
	int fd = memfd_create("qcu-setup", MFD_CLOEXEC);

	if (fd >= 0 && pwrite(fd, s, sizeof(*s), 0) != (ssize_t)sizeof(*s)) {
		close(fd);
		return -1;
	}
	return fd;
}

/*
 * Moves the files to the numbers from 3 on, in this order. An entry of -1 leaves its number closed.
 * Closes all other files.
 */
static bool place_files(int *fd, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (fd[i] < 0)
			continue;
		fd[i] = fcntl(fd[i], F_DUPFD, 3 + (int)n);
		if (fd[i] < 0)
			return false;
	}
	for (i = 0; i < n; i++) {
		if (fd[i] < 0)
			close(3 + (int)i);
		else if (dup2(fd[i], 3 + (int)i) < 0)
			return false;
	}
	return !close_range(3 + n, ~0u, 0);
}

/*
 * Selects the kernel's older address layout: it maps from one address upwards instead of down from
 * the stack. brk is made to return 0, which the C library takes for "no more memory", so that it
 * maps its heap, too.
 */
static bool lay_out(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	bool ok = filter && personality(ADDR_COMPAT_LAYOUT) >= 0 &&
		  !seccomp_rule_add(filter, SCMP_ACT_ERRNO(0), SCMP_SYS(brk), 0) &&
		  !seccomp_load(filter);

	seccomp_release(filter);
	return ok;
}

static void __attribute__((noreturn)) become_mirror(int *fd, unsigned int n)
{
	sigset_t none;

	fd[FD_PROGRAM - 3] = birth.program;
	fd[FD_PLUGIN - 3] = birth.plugin;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (place_files(fd, n) && lay_out())
		execve(birth.loader, birth.argv, birth.env);
	complain("a mirror cannot be executed: %s", strerror(errno));
	_exit(MIRROR_EXIT_SETUP);
}

bool birth_begin(const struct device_options *opt)
{
	return nursery_begin(&opt->jail, &birth.program, &birth.plugin, become_mirror);
}

pid_t birth_give(const struct device_options *opt, const struct ramfiles *ram,
		 const struct birth_shared *shared, unsigned int seat,
		 const struct birth_files *own, bool warm)
{
	static struct setup s;
	int fd[FD_RAM - 3 + GUESTMEM_REGIONS];
	unsigned int i, n = FD_RAM - 3;
	pid_t pid;

	s.opt = *opt;
	s.opt.be.seat = seat;
	s.opt.be.letters = FD_LETTERS;
	s.warm = warm;
	s.store = own->store >= 0;
	s.regions = ram->count;
	for (i = 0; i < ram->count; i++) {
		const struct ramfile *f = &ram->file[i];

		s.region[i] = (struct region){f->gpa, f->size, f->offset};
		fd[n++] = f->fd;
	}
	fd[FD_CTL - 3] = own->ctl;
	fd[FD_LETTERS - 3] = own->letters;
	fd[FD_GROUP - 3] = own->group;
	fd[FD_STORE - 3] = own->store;
	fd[FD_PROGRAM - 3] = fd[FD_PLUGIN - 3] = -1; /* the nursery has them */
	fd[FD_STATES - 3] = shared->states;
	fd[FD_SHARES - 3] = shared->shares;
	fd[FD_USAGE - 3] = shared->usage;
	fd[FD_ACCOUNT - 3] = shared->account;
	fd[FD_NAMED - 3] = shared->named;
	fd[FD_ORDERS - 3] = opt->keeper.on ? opt->keeper.orders : -1;
	fd[FD_REPORTS - 3] = opt->keeper.on ? opt->keeper.reports : -1;
	fd[FD_BELL - 3] = opt->keeper.on ? opt->keeper.bell : -1;
	fd[FD_SETUP - 3] = write_setup(&s);
	if (fd[FD_SETUP - 3] < 0)
		return -1;
	pid = nursery_order(seat, fd, n);
	close(fd[FD_SETUP - 3]);
	return pid;
}

/* ---- the mirror ---- */

static void __attribute__((noreturn)) stillborn(const char *why)
{
	complain("a mirror cannot begin: %s", why);
	_exit(MIRROR_EXIT_SETUP);
}

static void map_region(struct guestmem *mem, const struct region *r, int fd)
{
	if (guestmem_map(mem, r->gpa, r->size, r->offset, fd))
		stillborn("the VM's memory cannot be mapped");
	close(fd);
}

void birth_mirror(void)
{
	static struct setup s;
	static struct guestmem mem;
	struct mirror_args args = {.opt = &s.opt, .mem = &mem, .named = FD_NAMED, .ctl_fd = FD_CTL};
	struct pollfd ctl = {.fd = FD_CTL};
	unsigned int i;

	prctl(PR_SET_NAME, "qcu-born");
	if (pread(FD_SETUP, &s, sizeof(s), 0) != (ssize_t)sizeof(s) ||
	    s.regions > GUESTMEM_REGIONS) {
		fputs("qcu-device: " BIRTH_WORD " is for qcu-device itself\n", stderr);
		_exit(DEVICE_EXIT_USAGE);
	}
	/* Its parent may have ended before this: then the control socket has ended, too. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (poll(&ctl, 1, 0) == 1 && ctl.revents & POLLHUP)
		_exit(DEVICE_EXIT_OK);
	if (s.opt.verbose)
		complain_always();
	else
		complain_share(FD_ACCOUNT);
	groups_enter(FD_GROUP);
	for (i = 0; i < s.regions; i++)
		map_region(&mem, &s.region[i], FD_RAM + (int)i);
	args.states = ring_states_map(FD_STATES, s.opt.sessions + 1);
	if (!args.states)
		stillborn("no memory to share with the main process");
	/* NULL on failure: the mirror then reports that it cannot share. */
	args.shares = shares_new(FD_SHARES);
	args.usage = usage_new(FD_USAGE);
	if (!args.usage)
		stillborn("no memory to share with the main process");
	if (s.opt.keeper.on &&
	    !turns_map(&args.turns, s.opt.keeper.gpus, FD_ORDERS, FD_REPORTS, FD_BELL))
		stillborn("no memory to share with the GPU's broker");
	if (fcntl(FD_NAMED, F_GETFD) < 0)
		args.named = -1;
	args.warm = s.warm;
	args.store = s.store ? FD_STORE : 0;
	close(FD_PROGRAM);
	close(FD_SETUP);
	close(FD_STATES);
	close(FD_SHARES);
	close(FD_USAGE);
	close(FD_ACCOUNT);
	close(FD_ORDERS);
	close(FD_REPORTS);
	if (!jail_mirror(&s.opt.jail, s.opt.plugin ? FD_PLUGIN : -1))
		stillborn("it cannot be locked in");
	args.ops = s.opt.plugin ? plugin_load(FD_PLUGIN) : &be_soft;
	if (!args.ops)
		_exit(MIRROR_EXIT_SETUP);
	mirror_vq_run(&args);
}

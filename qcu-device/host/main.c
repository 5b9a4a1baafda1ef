// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * qcu-device: the qCUDA device of one VM. QEMU connects to its socket. qcu-device exits when QEMU
 * disconnects.
 */
#define _GNU_SOURCE /* struct ucred */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <poll.h>
#include <stdarg.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "qcu-device/base/carriers.h"
#include "qcu-device/base/complain.h"
#include "qcu-device/base/libraries.h"
#include "qcu-device/base/spin.h"
#include "qcu-device/host/birth.h"
#include "qcu-device/host/device.h"
#include "qcu-device/jail/gpus.h"
#include "qcu-device/jail/groups.h"
#include "qcu-device/memory/store_pool.h"
#include "qcu-device/moving/handover.h"
#include "qcu-device/moving/service.h"
#include "qcu-device/host/metrics.h"
#include "qcu-device/host/take_over.h"

#define SESSIONS_DEFAULT 16
#define AWAIT_TRIES	 1000 /* of 20 ms each */
#define OTHER_TASKS	 1024 /* of a mirror, beside its lanes */
#define NAME_BYTES	 63
#define NAME_CHARACTERS	 "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-"

enum gpu { GPU_AUTO, GPU_SOFT, GPU_CUDA };

static const char usage[] =
	"usage: qcu-device --socket PATH [options]\n"
	"       qcu-device --fd N [options]\n"
	"\n"
	"Serves the qCUDA device of one VM to QEMU's virtio-qcuda-pci over vhost-user, and\n"
	"exits when QEMU disconnects.\n"
	"\n"
	"  --socket PATH          listen there; a socket that nobody serves is replaced\n"
	"  --fd N                 a connected socket that has been inherited\n"
	"  --gpu soft|cuda|auto   a GPU in software, NVIDIA's, or that if there is one (auto)\n"
	"  --gpu NAME[,NAME]...   these of NVIDIA's: GPU-UUID, or one part of a GPU, MIG-UUID\n"
	"  --map cvm|ncvm         how chunks are mapped: side by side (cvm), or left in place\n"
	"  --pin-limit SIZE       register no more than this, except what programs ask for\n"
	"  --sessions N           guest programs at once, 1 to 63 (16)\n"
	"  --prewarm N            keep that many mirrors ready for the next programs, 0 to 16 (1,\n"
	"                         with a software GPU 0)\n"
	"  --poll MICROSECONDS    look for commands that long before sleeping, 0 to 1000000\n"
	"                         (2000; with fewer than four processors 20)\n"
	"  --copiers N            threads for a large copy of memory that is not registered with\n"
	"                         the GPU, 1 to 8, and no more than there are processors (4)\n"
	"  --limit NAME=VALUE     what each guest program may use, as vm-NAME what all of the VM\n"
	"                         may; --limit help has the names\n"
	"  --vram SIZE            the same as --limit vm-device-memory=SIZE, with K, M or G; a\n"
	"                         software GPU has that much\n"
	"  --kernel-timeout N     the same as --limit kernel-time=N: a kernel that runs for "
	"longer\n"
	"                         than N seconds ends its program's session\n"
	"  --libraries LIST       which of the host's libraries programs may call: all, none, or\n"
	"                         names such as cublas,cublaslt,cufft (all)\n"
	"  --nvml own|full|none   what programs learn through NVML: clocks and what the VM itself\n"
	"                         does, also temperature, power and what the whole GPU does, or\n"
	"                         neither (own)\n"
	"  --gpu-time             ask NVML each second how long programs keep GPUs busy, for the\n"
	"                         numbers; a software GPU always knows\n"
	"  --weight N             the VM's share of its GPUs, beside other VMs with work, 1 to\n"
	"                         10000 (100)\n"
	"  --max PERCENT          the most of a GPU's time that the VM gets, 1 to 100 (100)\n"
	"  --class batch|interactive\n"
	"                         interactive: short work does not wait for a turn (batch)\n"
	"  --share DIR|none       where the GPUs' brokers of shares have their sockets\n"
	"                         (/run/qcuda/share if root gives one of these three options\n"
	"                         or --swap; else none)\n"
	"  --swap SIZE            memory of the GPU leaves it when other VMs or programs need it,\n"
	"                         to at most SIZE of the host's memory (it stays)\n"
	"  --swap-all SIZE        with --swap: what the memory of all VMs of a GPU may take of "
	"the\n"
	"                         host's memory; the least that a VM says counts (no bound)\n"
	"  --swap-gpu GPU:SIZE    with --swap: first it goes to at most SIZE of the memory of "
	"this\n"
	"                         other GPU, GPU-UUID, or softN with --gpu soft\n"
	"  --swap-file FOLDER:SIZE\n"
	"                         with --swap: what finds no room in the host's memory goes to\n"
	"                         files without a name in FOLDER, at most SIZE for the VM\n"
	"  --resident SIZE        with --swap: what the VM always may have on each GPU (0)\n"
	"  --fault-place          say where a kernel failed on NVIDIA's GPU, by its dump, which "
	"costs\n"
	"                         memory and time (a software GPU always says it)\n"
	"  --gpus N               how many software GPUs (1)\n"
	"  --user USER            become this user; root becomes one that nobody else is\n"
	"  --qemu-user USER       take a connection at --socket only from this user, or from root\n"
	"  --weak-sandbox         go on without what the host does not give to the sandbox\n"
	"  --no-sandbox           keep all rights, for debugging\n"
	"  --let-kernels-reach-all-memory\n"
	"                         take a GPU that reads memory that is not registered with it\n"
	"  --name NAME            what to call the VM (the socket's name)\n"
	"  --metrics PATH         serve numbers there, for qcu top and Prometheus; none: do not\n"
	"                         (the path of --socket with .metrics at its end)\n"
	"  --metrics-group GROUP  let members of this group read the numbers, too\n"
	"  --hand-over PATH       let another qcu-device take the VM over, which asks at this\n"
	"                         socket; only this user and root may\n"
	"  --take-over            take the VM and its programs from the qcu-device that hands it\n"
	"                         over at --hand-over PATH\n"
	"  --lose-sessions        a saved or moved VM goes on here without the programs whose "
	"work\n"
	"                         on the GPU cannot be made again; else it is not loaded\n"
	"  --verbose              say when sessions begin and end\n"
	"  --trace                one line for each command\n"
	"  --version, --help\n"
	"\n"
	"SIGUSR1 has it print what each session uses of its limits. SIGUSR2 has it end, for\n"
	"another qcu-device to serve the VM, unless a program of the VM uses CUDA.\n"
	"The cuda backend, be_cuda.so, is looked for in QCU_BACKEND_DIR, else beside this "
	"program.\n";

static int end_output(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return DEVICE_EXIT_OK;
	fputs("qcu-device: the output cannot be written\n", stderr);
	return DEVICE_EXIT_USAGE;
}

static void __attribute__((noreturn, format(printf, 1, 2))) die_usage(const char *fmt, ...)
{
	va_list ap;

	fputs("qcu-device: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs("\nTry qcu-device --help.\n", stderr);
	exit(DEVICE_EXIT_USAGE);
}

static unsigned int parse_number_option(const char *option, const char *text, unsigned int min,
					unsigned int max)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || *end || end == text || *text == '-' || n < min || n > max)
		die_usage("--%s %s: a number from %u to %u is wanted", option, text, min, max);
	return (unsigned int)n;
}

static uint64_t size(const char *option, const char *text)
{
	char *end;
	unsigned long long n;
	unsigned int shift = 0;

	errno = 0;
	n = strtoull(text, &end, 10);
	switch (*end) {
	case 'G':
	case 'g':
		shift += 10; /* fallthrough */
	case 'M':
	case 'm':
		shift += 10; /* fallthrough */
	case 'K':
	case 'k':
		shift += 10;
		end++;
	}
	if (errno || *end || *text < '0' || *text > '9' || !n || n > UINT64_MAX >> shift)
		die_usage("--%s %s: a size like 512M or 4G is wanted", option, text);
	return n << shift;
}

/* Returns the index of `text` in `words`, a list of two or three words. */
static unsigned int word(const char *option, const char *text, const char *const *words)
{
	unsigned int i;

	for (i = 0; words[i]; i++)
		if (!strcmp(text, words[i]))
			return i;
	die_usage("--%s %s: what is that? (try %s or %s)", option, text, words[0], words[1]);
}

/* Handles --limit, and the options that are short for one limit. */
static void handle_limit(struct limits *l, const char *name, const char *value)
{
	char text[128], why[512];
	unsigned int i;

	if (!*name && !strcmp(value, "help")) {
		puts("| limit | each program | the VM | what is counted |\n|---|---|---|---|");
		for (i = 0; i < LIMIT_KINDS; i++) {
			limits_line(l, (enum limit)i, why, sizeof(why));
			puts(why);
		}
		exit(DEVICE_EXIT_OK);
	}
	snprintf(text, sizeof(text), "%s%s", name, value);
	if (!limits_parse(l, text, why, sizeof(why)))
		die_usage("%s", why);
}

static const char *socket_path;

static void ended(int sig)
{
	(void)sig;
	unlink(socket_path);
	metrics_stop();
	_exit(DEVICE_EXIT_OK);
}

/*
 * Is a process serving the socket at this address? A connection would use up the only one that the
 * process accepts. So this function connects with a socket of another type: EPROTOTYPE then means
 * that a process listens there.
 */
static bool served(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool yes = fd >= 0 && (!connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) ||
			       errno == EPROTOTYPE);

	if (fd >= 0)
		close(fd);
	return yes;
}

/* Removes a socket that nobody serves. Ends this process if something else is there. */
static void free_socket_path(const char *option, const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct stat st;

	if (strlen(path) >= sizeof(addr.sun_path))
		die_usage("--%s %s: the path of a socket can have %zu bytes", option, path,
			  sizeof(addr.sun_path) - 1);
	strcpy(addr.sun_path, path);
	if (!lstat(path, &st)) {
		if (!S_ISSOCK(st.st_mode))
			die_usage("--%s %s: something else than a socket is there", option, path);
		if (served(&addr))
			die_usage("--%s %s: another process serves it", option, path);
		unlink(path);
	}
}

/* qemu: the user that may connect, beside root; if none is named, everyone may. */
static bool may_connect(int conn, const struct jail *qemu)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (!qemu->named)
		return true;
	if (!getsockopt(conn, SOL_SOCKET, SO_PEERCRED, &peer, &len) &&
	    (!peer.uid || peer.uid == qemu->uid))
		return true;
	complain("a connection is refused: it does not come from the user of --qemu-user");
	return false;
}

/* Returns a socket that waits for QEMU, or -1. */
static int listen_for_qemu(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, path);
	if (fd >= 0 && !bind(fd, (struct sockaddr *)&addr, sizeof(addr)) && !listen(fd, 1))
		return fd;
	fprintf(stderr, "qcu-device: cannot listen at %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

/*
 * Returns the one connection that this process serves, or -1. Removes the socket's file.
 * Connections of users that may not connect are closed. If another qcu-device takes this one's
 * place, this one ends.
 */
static int wait_for_qemu(const char *path, int fd, const struct jail *qemu, int hand_over,
			 unsigned int sessions)
{
	struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = hand_over, .events = POLLIN}};
	int conn = -1;

	socket_path = path;
	signal(SIGINT, ended);
	signal(SIGTERM, ended);
	signal(SIGUSR2, ended);
	if (fd < 0)
		fd = p[0].fd = listen_for_qemu(path);
	if (fd < 0)
		return -1;
	while (conn < 0) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		if (p[1].revents && take_over_idle(hand_over, fd, sessions)) {
			metrics_stop();
			exit(DEVICE_EXIT_OK);
		}
		if (!p[0].revents)
			continue;
		conn = accept(fd, NULL, NULL);
		if (conn < 0 && errno != EINTR)
			break;
		if (conn >= 0 && !may_connect(conn, qemu)) {
			close(conn);
			conn = -1;
		}
	}
	if (conn < 0)
		fprintf(stderr, "qcu-device: accept: %s\n", strerror(errno));
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	unlink(path);
	close(fd);
	return conn;
}

/*
 * The metrics process of a device that was killed removes its socket a moment later. Waits for
 * that, and removes a socket that nobody serves.
 */
static void await_socket_path(const char *path)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	unsigned int tries = 0;
	struct stat st;

	if (strlen(path) >= sizeof(addr.sun_path))
		return;
	strcpy(addr.sun_path, path);
	while (!lstat(path, &st) && S_ISSOCK(st.st_mode)) {
		if (!served(&addr)) {
			unlink(path);
			return;
		}
		if (++tries == AWAIT_TRIES)
			return;
		nanosleep(&pause, NULL);
	}
}

/* The name of a VM is shown as it is, so it has only what does no harm in a terminal or a path. */
static const char *checked_name(const char *name)
{
	size_t len = strlen(name);

	if (!len || len > NAME_BYTES || strspn(name, NAME_CHARACTERS) != len)
		die_usage("--name %s: 1 to %d letters, digits, and . _ + - are wanted", name,
			  NAME_BYTES);
	return name;
}

/* The name of the socket, without its folder and its ending. */
static const char *name_of(const char *path)
{
	static char name[NAME_BYTES + 1];
	const char *from = strrchr(path, '/');
	size_t i;

	from = from ? from + 1 : path;
	for (i = 0; i < NAME_BYTES && from[i] && strcmp(from + i, ".sock"); i++)
		name[i] = strchr(NAME_CHARACTERS, from[i]) ? from[i] : '-';
	return i ? name : "vm";
}

static gid_t group_named(const char *name)
{
	const struct group *g = getgrnam(name);

	if (!g)
		die_usage("--metrics-group %s: there is no such group", name);
	return g->gr_gid;
}

/*
 * Starts to serve metrics. The default place is not asked for, so that it cannot be had is no
 * reason to go without the device.
 */
static void begin_metrics(const struct device_options *opt, const char *path, const char *metrics,
			  const char *name, gid_t group, bool replace, char **argv)
{
	struct board_device dev = {.name = name,
				   .gpu = opt->plugin ? "cuda" : "soft",
				   .gpu_time = opt->gpu_time,
				   .pid = getpid(),
				   .sessions = opt->sessions};
	char beside[sizeof(((struct sockaddr_un *)NULL)->sun_path) + sizeof(METRICS_SUFFIX)];
	const char *why;

	if (metrics ? !strcmp(metrics, "none") : !path)
		return;
	if (!metrics)
		snprintf(beside, sizeof(beside), "%s" METRICS_SUFFIX, path);
	if (!replace)
		await_socket_path(metrics ? metrics : beside);
	if (!replace && metrics)
		free_socket_path("metrics", metrics);
	why = metrics_start(metrics ? metrics : beside, replace, group, &dev, &opt->jail, argv);
	if (why && metrics)
		die_usage("--metrics %s: %s", metrics, why);
	if (why)
		fprintf(stderr, "qcu-device: no metrics at %s: %s\n", beside, why);
}

/* A mirror has a thread for each lane; on the software GPU for each stream, too. */
static void begin_groups(const struct device_options *opt)
{
	uint64_t lanes = opt->limits.session[LIMIT_LANES];
	uint64_t streams = opt->plugin ? 0 : opt->limits.session[LIMIT_STREAMS];
	bool bounded = lanes != LIMIT_NONE && streams != LIMIT_NONE;

	if (!opt->jail.off && !groups_begin(opt->sessions + opt->prewarm,
					    bounded ? lanes + streams + OTHER_TASKS : LIMIT_NONE))
		fprintf(stderr,
			"qcu-device: sandbox: without a control group for each mirror: %s\n",
			strerror(errno));
}

/* The options about shares. `folder` is NULL if it was not asked for. */
struct share_options {
	const char *folder;
	bool wanted; /* one of the others was given */
	struct turns_hello hello;
};

/* The broker's program lies beside this one. */
static const char *find_share_program(void)
{
	static char path[4096 + sizeof("/qcu-share")];
	ssize_t n = readlink("/proc/self/exe", path, 4096);
	char *slash;

	path[n < 0 ? 0 : n] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		return NULL;
	strcpy(slash, "/qcu-share");
	return access(path, X_OK) ? NULL : path;
}

static unsigned int count_soft(const struct device_options *opt)
{
	return opt->be.gpus ? opt->be.gpus : 1;
}

/* A VM that asks for nothing is unknown to the broker. */
static void begin_sharing(struct device_options *opt, struct share_options *so, const char *name)
{
	static struct keeper_gpu gpu[TURNS_GPUS];
	const char *why, *program = find_share_program();
	unsigned int gpus;
	bool none = so->folder && !strcmp(so->folder, "none");

	if (so->hello.resident && !so->hello.moves)
		die_usage("--resident needs --swap");
	if (so->hello.stores && !so->hello.moves)
		die_usage("--swap-all needs --swap");
	if (!so->folder && so->wanted && !geteuid() && program) {
		(void)mkdir("/run/qcuda", 0755); /* without the package nobody has made it */
		so->folder = "/run/qcuda/share";
	}
	if (!so->folder || none) {
		if (so->wanted)
			die_usage("--weight, --max, --class and --swap need --share DIR here");
		return;
	}
	/* A broker that we start says nothing. */
	if (mkdir(so->folder, 0700) && errno != EEXIST) {
		fprintf(stderr, "qcu-device: --share %s: %s\n", so->folder, strerror(errno));
		exit(DEVICE_EXIT_FAILURE);
	}
	so->hello.magic = TURNS_MAGIC;
	so->hello.version = TURNS_VERSION;
	snprintf(so->hello.name, sizeof(so->hello.name), "%s", name);
	gpus = gpus_for_keeper(&opt->jail.gpus, opt->plugin ? 0 : count_soft(opt),
			       opt->be.store ? opt->limits.vm[LIMIT_SWAP_GPU] : 0, gpu);
	why = keeper_start(&opt->keeper, &so->hello, so->folder, gpu, gpus, program);
	if (!why)
		return;
	fprintf(stderr, "qcu-device: the GPU is not shared by agreement: %s\n", why);
	exit(DEVICE_EXIT_FAILURE);
}

/* PLACE:SIZE. Returns the place. */
static char *split_place(const char *option, const char *wanted, char *text, uint64_t *bytes)
{
	char *colon = strrchr(text, ':');

	if (!colon || colon == text || !colon[1])
		die_usage("--%s %s: %s:SIZE is wanted, with K, M or G", option, text, wanted);
	*colon = '\0';
	*bytes = size(option, colon + 1);
	return text;
}

/* Before the GPUs are looked for. For the broker this memory is a part of the store, too. */
static void add_swap_gpu(struct device_options *opt, struct share_options *so, enum gpu gpu,
			 const char *name)
{
	const char *why = gpu == GPU_SOFT
				  ? gpus_add_soft_store(&opt->jail.gpus, count_soft(opt), name)
				  : gpus_add_store(&opt->jail.gpus, name);

	opt->be.store = opt->limits.vm[LIMIT_SWAP_GPU];
	if (why)
		die_usage("--swap-gpu %s: %s", name, why);
	if (!so->hello.moves)
		die_usage("--swap-gpu needs --swap");
	so->hello.swap += opt->limits.vm[LIMIT_SWAP_GPU];
}

/* For the broker a file is a part of the store. */
static void open_swap_files(const struct device_options *opt, struct share_options *so,
			    const char *folder)
{
	const char *why;

	if (!so->hello.moves)
		die_usage("--swap-file needs --swap");
	so->hello.swap += opt->limits.vm[LIMIT_SWAP_FILE];
	why = store_pool_begin(folder, opt->sessions + opt->prewarm);
	if (!why)
		return;
	fprintf(stderr, "qcu-device: --swap-file %s: %s\n", folder, why);
	exit(DEVICE_EXIT_FAILURE);
}

/*
 * Finds the qcu-device that hands its VM over. *fd: the socket to it; if it has no VM, its socket
 * that waits for QEMU.
 */
static void find_old_device(const char *hand_over, unsigned int sessions, struct take_over *t,
			    int *fd)
{
	enum take_over_found found;

	if (!service_leave_child()) {
		fprintf(stderr, "qcu-device: fork: %s\n", strerror(errno));
		exit(DEVICE_EXIT_FAILURE);
	}
	found = take_over_connect(hand_over, sessions, fd, &t->listener);
	if (found == TAKE_OVER_FAILED)
		exit(DEVICE_EXIT_FAILURE);
	t->taking = found == TAKE_OVER_VM;
}

/* Returns the socket at which another qcu-device may ask for the VM. */
static int offer_vm(const char *hand_over)
{
	int fd;

	free_socket_path("hand-over", hand_over);
	fd = handover_listen(hand_over);
	if (fd >= 0)
		return fd;
	fprintf(stderr, "qcu-device: cannot listen at %s: %s\n", hand_over, strerror(errno));
	exit(DEVICE_EXIT_FAILURE);
}

static bool is_stream(int fd)
{
	int type = 0;
	socklen_t len = sizeof(type);

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) && type == SOCK_STREAM;
}

/* Chooses the backend that the mirrors will use. */
static void choose_backend(struct device_options *opt, enum gpu gpu, bool open_gpu)
{
	enum plugin_probe found;
	const char *why;

	if (gpu == GPU_SOFT)
		return;
	found = plugin_probe(gpu == GPU_AUTO && !opt->verbose, &opt->jail.gpus);
	if (found == PLUGIN_OPEN_GPU && !open_gpu) {
		fprintf(stderr,
			"qcu-device: this GPU reads memory that is not registered with it (HMM or "
			"ATS), so kernels of any guest program can read and write all of the "
			"guest's memory and this program's; --let-kernels-reach-all-memory "
			"accepts that, --gpu soft runs without it\n");
		exit(DEVICE_EXIT_USAGE);
	}
	if (found == PLUGIN_GPU || found == PLUGIN_OPEN_GPU) {
		opt->plugin = true;
	} else if (gpu == GPU_CUDA) {
		fprintf(stderr, "qcu-device: --gpu cuda: %s; --gpu soft runs without a GPU\n",
			found == PLUGIN_MISSING ? "there is no cuda backend that can be used"
						: "no GPU was found");
		exit(DEVICE_EXIT_USAGE);
	}
	gpus_name_numbers(&opt->jail.gpus);
	why = gpus_check(&opt->jail.gpus);
	if (why)
		die_usage("--gpu %s: %s", getenv("CUDA_VISIBLE_DEVICES"), why);
	if (opt->verbose)
		fprintf(stderr, "qcu-device: using %s\n",
			opt->plugin ? "the host's GPU" : "a GPU in software");
}

int main(int argc, char **argv)
{
	static const char *const gpu_words[] = {"auto", "soft", "cuda", NULL};
	static const char *const map_words[] = {"cvm", "ncvm", NULL};
	static const char *const nvml_words[] = {"own", "full", "none", NULL}; /* sensors_for */
	static const char *const class_words[] = {"batch", "interactive", NULL};
	static const struct option options[] = {
		{"socket", required_argument, NULL, 's'},
		{"fd", required_argument, NULL, 'f'},
		{"gpu", required_argument, NULL, 'g'},
		{"map", required_argument, NULL, 'm'},
		{"sessions", required_argument, NULL, 'n'},
		{"prewarm", required_argument, NULL, 'w'},
		{"poll", required_argument, NULL, 'P'},
		{"copiers", required_argument, NULL, 'k'},
		{"vram", required_argument, NULL, 'r'},
		{"gpus", required_argument, NULL, 'c'},
		{"gpu-time", no_argument, NULL, 'Z'},
		{"fault-place", no_argument, NULL, 'F'},
		{"libraries", required_argument, NULL, 'B'},
		{"nvml", required_argument, NULL, 'O'},
		{"weight", required_argument, NULL, 'E'},
		{"max", required_argument, NULL, 'X'},
		{"swap", required_argument, NULL, 'U'},
		{"swap-all", required_argument, NULL, 'I'},
		{"swap-file", required_argument, NULL, 'J'},
		{"swap-gpu", required_argument, NULL, 'K'},
		{"resident", required_argument, NULL, 'D'},
		{"class", required_argument, NULL, 'C'},
		{"share", required_argument, NULL, 'S'},
		{"limit", required_argument, NULL, 'L'},
		{"user", required_argument, NULL, 'u'},
		{"qemu-user", required_argument, NULL, 'q'},
		{"weak-sandbox", no_argument, NULL, 'W'},
		{"no-sandbox", no_argument, NULL, 'x'},
		{"let-kernels-reach-all-memory", no_argument, NULL, 'a'},
		{"kernel-timeout", required_argument, NULL, 'T'},
		{"lose-sessions", no_argument, NULL, 'R'},
		{"verbose", no_argument, NULL, 'v'},
		{"trace", no_argument, NULL, 't'},
		{"name", required_argument, NULL, 'N'},
		{"metrics", required_argument, NULL, 'M'},
		{"metrics-group", required_argument, NULL, 'G'},
		{"hand-over", required_argument, NULL, 'H'},
		{"take-over", no_argument, NULL, 'A'},
		{"version", no_argument, NULL, 'V'},
		{"pin-limit", required_argument, NULL, 'l'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct device_options opt = {
		.sessions = SESSIONS_DEFAULT,
		.poll_us = spin_default_us(),
		.copiers = CARRIERS_DEFAULT,
	};
	struct share_options share = {.hello.weight = TURNS_WEIGHT};
	enum gpu gpu = GPU_AUTO;
	const char *path = NULL, *name = NULL, *metrics = NULL, *hand_over = NULL, *why;
	const char *swap_folder = NULL, *swap_gpu = NULL;
	struct take_over to = {.listener = -1};
	struct jail qemu = {.named = false};
	gid_t group = METRICS_NO_GROUP;
	bool open_gpu = false;
	int fd = -1, prewarm = -1, o, rc;

	if (argc > 1 && !strcmp(argv[1], BIRTH_WORD))
		birth_mirror();
	limits_default(&opt.limits);
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (o) {
		case 's':
			path = optarg;
			break;
		case 'f':
			fd = (int)parse_number_option("fd", optarg, 0, 1u << 20);
			break;
		case 'g':
			opt.jail.gpus = (struct jail_gpus){.named = 0};
			if (!gpus_are_names(optarg)) {
				gpu = (enum gpu)word("gpu", optarg, gpu_words);
				break;
			}
			gpu = GPU_CUDA;
			why = gpus_choose(&opt.jail.gpus, optarg);
			if (why)
				die_usage("--gpu %s: %s", optarg, why);
			break;
		case 'm':
			opt.map = (enum mir_map)word("map", optarg, map_words);
			break;
		case 'l':
			opt.pin_limit = size("pin-limit", optarg);
			break;
		case 'n':
			opt.sessions = parse_number_option("sessions", optarg, 1, QCU_MAX_SESSIONS);
			break;
		case 'w':
			prewarm = (int)parse_number_option("prewarm", optarg, 0, PREWARM_MAX);
			break;
		case 'P':
			opt.poll_us = parse_number_option("poll", optarg, 0, SPIN_MAX_US);
			break;
		case 'k':
			opt.copiers = parse_number_option("copiers", optarg, 1, CARRIERS_MAX);
			break;
		case 'r':
			opt.be.vram = size("vram", optarg);
			opt.limits.vm[LIMIT_DEVICE_MEMORY] = opt.be.vram;
			break;
		case 'L':
			handle_limit(&opt.limits, "", optarg);
			break;
		case 'B':
			if (!libraries_parse(optarg, &opt.refused_libraries))
				die_usage("--libraries %s: all, none or names out of %s are wanted",
					  optarg, libraries_names());
			break;
		case 'O':
			opt.sensors = (enum sensors_for)word("nvml", optarg, nvml_words);
			break;
		case 'E':
			share.hello.weight =
				parse_number_option("weight", optarg, 1, TURNS_WEIGHT_MAX);
			share.wanted = true;
			break;
		case 'U':
			opt.be.movable = share.wanted = true;
			share.hello.moves = 1;
			opt.limits.vm[LIMIT_SWAP] = share.hello.swap = size("swap", optarg);
			break;
		case 'I':
			share.hello.stores = size("swap-all", optarg);
			break;
		case 'J':
			swap_folder = split_place("swap-file", "FOLDER", optarg,
						  &opt.limits.vm[LIMIT_SWAP_FILE]);
			opt.swap_file = true;
			break;
		case 'K':
			swap_gpu = split_place("swap-gpu", "GPU", optarg,
					       &opt.limits.vm[LIMIT_SWAP_GPU]);
			break;
		case 'D':
			share.hello.resident = size("resident", optarg);
			break;
		case 'X':
			share.hello.max = parse_number_option("max", optarg, 1, 100) % 100;
			share.wanted = true;
			break;
		case 'C':
			share.hello.interactive = word("class", optarg, class_words);
			share.wanted = true;
			break;
		case 'S':
			share.folder = optarg;
			break;
		case 'T':
			handle_limit(&opt.limits, "kernel-time=", optarg);
			break;
		case 'c':
			opt.be.gpus = parse_number_option("gpus", optarg, 1, 64);
			break;
		case 'Z':
			opt.gpu_time = true;
			break;
		case 'F':
			opt.be.fault_place = opt.jail.ports = true;
			break;
		case 'u':
			if (!jail_user(&opt.jail, optarg))
				die_usage("--user %s: an ordinary user's name or number is wanted",
					  optarg);
			break;
		case 'q':
			if (!jail_user(&qemu, optarg))
				die_usage("--qemu-user %s: an ordinary user's name or number is "
					  "wanted",
					  optarg);
			break;
		case 'W':
			opt.jail.weak = true;
			break;
		case 'x':
			opt.jail.off = true;
			break;
		case 'a':
			open_gpu = true;
			break;
		case 'R':
			opt.lose_sessions = true;
			break;
		case 'v':
			opt.verbose = opt.be.verbose = true;
			break;
		case 't':
			opt.trace = true;
			break;
		case 'N':
			name = checked_name(optarg);
			break;
		case 'M':
			metrics = optarg;
			break;
		case 'G':
			group = group_named(optarg);
			break;
		case 'H':
			hand_over = optarg;
			break;
		case 'A':
			to.taking = true;
			break;
		case 'V':
			printf("qcu-device, wire version %u, backend abi %u\n", QCU_WIRE_VERSION,
			       BE_ABI);
			return end_output();
		case 'h':
			fputs(usage, stdout);
			return end_output();
		default:
			fputs("Try qcu-device --help.\n", stderr);
			return DEVICE_EXIT_USAGE;
		}
	}
	if (optind < argc)
		die_usage("what is %s?", argv[optind]);
	if (!path == (fd < 0))
		die_usage("either --socket PATH or --fd N is wanted");

	if (to.taking && (!path || !hand_over))
		die_usage("--take-over needs --socket and --hand-over PATH");
	if (!path && qemu.named)
		die_usage("--qemu-user is for --socket");
	if (!path && !is_stream(fd))
		die_usage("--fd %d: that is no connected socket", fd);
	if (to.taking)
		find_old_device(hand_over, opt.sessions, &to, &fd);

	if (swap_gpu)
		add_swap_gpu(&opt, &share, gpu, swap_gpu);
	choose_backend(&opt, gpu, open_gpu);
	opt.prewarm = prewarm >= 0 ? (unsigned int)prewarm : opt.plugin;
	opt.gpu_time |= !opt.plugin;
	opt.jail.gpu = opt.plugin;
	if (!jail_check(&opt.jail))
		return DEVICE_EXIT_FAILURE;
	begin_groups(&opt);
	if (swap_folder)
		open_swap_files(&opt, &share, swap_folder);
	if (!name)
		name = path ? name_of(path) : "vm";
	/* It keeps no file of this process, so it comes before the files that others wait for. */
	begin_sharing(&opt, &share, name);
	if (path && fd < 0)
		free_socket_path("socket", path);
	if (hand_over && to.listener < 0 && !to.taking)
		to.listener = offer_vm(hand_over);
	begin_metrics(&opt, path, metrics, name, group, to.taking, argv);
	why = memwatch_start(&opt);
	if (why)
		fprintf(stderr, "qcu-device: device memory is not watched: %s\n", why);
	if (path && !to.taking)
		fd = wait_for_qemu(path, fd, &qemu, to.listener, opt.sessions);
	rc = DEVICE_EXIT_FAILURE;
	if (fd >= 0 && birth_prepare(&opt, argv) && jail_enter(&opt.jail) && birth_begin(&opt) &&
	    jail_main(&opt.jail))
		rc = vhost_serve(fd, &opt, &to);
	memwatch_stop();
	metrics_stop();
	return rc;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A hostile guest that speaks 9p to QEMU itself. No guest kernel is in between: a kernel would not
 * send most of this. The program drives the virtio device through its legacy ports, from user
 * space. It tries to leave on the host what the launcher promises will never be there, or to get
 * out of the shared folder. tests/vm/share.sh prepares the folder and checks it afterwards.
 *
 * The kernel's driver must be unbound from the device, and one huge page must be free.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { /* of the 9p2000.L protocol */
       TLOPEN = 12,
       TLCREATE = 14,
       TSYMLINK = 16,
       TMKNOD = 18,
       TRENAME = 20,
       TSETATTR = 26,
       TXATTRCREATE = 32,
       TLINK = 70,
       TMKDIR = 72,
       TRENAMEAT = 74,
       TUNLINKAT = 76,
       TVERSION = 100,
       TATTACH = 104,
       TWALK = 110,
       TWRITE = 118,
       TCLUNK = 120,
       RLERROR = 7,
       NO_FID = -1,
       ROOT = 1, /* the fid of the folder */
       AT = 2,	 /* a fid that a test has walked to */
       AT_2 = 3,
};

enum { /* of virtio's legacy interface */
       FEATURES = 4,
       QUEUE_PFN = 8,
       QUEUE_SIZE = 12,
       QUEUE_SELECT = 14,
       QUEUE_NOTIFY = 16,
       STATUS = 18,
       PAGE = 4096,
       BUFFER = 64 << 10,
};

struct desc {
	uint64_t address;
	uint32_t length;
	uint16_t flags;
	uint16_t next;
};

static unsigned int port, slots;
static char *memory; /* one huge page: ring, request, reply */
static uint64_t physical;
static int bad;

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "raw9p: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* Reads one line of a file of the PCI device. */
static void attribute(const char *device, const char *name, char *line, int size)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", device, name);
	f = fopen(path, "r");
	if (!f || !fgets(line, size, f))
		die(path);
	fclose(f);
}

static void find_device(void)
{
	DIR *dir = opendir("/sys/bus/pci/devices");
	struct dirent *e;
	char line[128];

	while (dir && (e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		attribute(e->d_name, "device", line, sizeof(line));
		if (strtoul(line, NULL, 16) != 0x1009)
			continue;
		attribute(e->d_name, "resource", line, sizeof(line));
		port = (unsigned int)strtoul(line, NULL, 16);
	}
	if (!port || port > 0xffff)
		die("no 9p device with ports");
	closedir(dir);
	if (iopl(3))
		die("iopl");
}

static void get_memory(void)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entry;

	memory = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (memory == MAP_FAILED)
		die("a huge page");
	memset(memory, 0, 2 << 20);
	if (fd < 0 || pread(fd, &entry, 8, (off_t)((uintptr_t)memory / PAGE * 8)) != 8)
		die("pagemap");
	physical = (entry & ((1ULL << 55) - 1)) * PAGE;
	if (!physical)
		die("no physical address");
	close(fd);
}

static void start_device(void)
{
	outb(0, port + STATUS);
	outb(3, port + STATUS);
	outl(0, port + FEATURES);
	outw(0, port + QUEUE_SELECT);
	slots = inw(port + QUEUE_SIZE);
	if (!slots || slots > 1024)
		die("no queue");
	outl((uint32_t)(physical / PAGE), port + QUEUE_PFN);
	outb(7, port + STATUS);
}

/* The buffer for the request; the reply is read from it, too. */
static uint8_t *request(void)
{
	return (uint8_t *)memory + BUFFER;
}

static uint8_t *reply(void)
{
	return (uint8_t *)memory + 2 * BUFFER;
}

/* Sends the request of that length. Returns 0, or the error in the reply. */
static int exchange(uint32_t length)
{
	size_t avail_at = slots * sizeof(struct desc);
	size_t used_at = (avail_at + 6 + 2 * slots + PAGE - 1) / PAGE * PAGE;
	struct desc *desc = (struct desc *)memory;
	volatile uint16_t *avail = (uint16_t *)(memory + avail_at);
	volatile uint16_t *used = (uint16_t *)(memory + used_at);
	uint16_t seen = used[1];
	time_t end = time(NULL) + 30;
	uint32_t error;

	memcpy(request(), &length, 4);
	memset(reply(), 0, 16);
	desc[0] = (struct desc){physical + BUFFER, length, 1, 1};
	desc[1] = (struct desc){physical + 2 * BUFFER, BUFFER, 2, 0};
	avail[2 + avail[1] % slots] = 0;
	__sync_synchronize();
	avail[1]++;
	__sync_synchronize();
	outw(0, port + QUEUE_NOTIFY);
	while (used[1] == seen) {
		if (time(NULL) > end) {
			errno = ETIMEDOUT;
			die("QEMU does not answer");
		}
	}
	__sync_synchronize();
	if (reply()[4] != RLERROR)
		return reply()[4] == request()[4] + 1 ? 0 : EPROTO;
	memcpy(&error, reply() + 7, 4);
	return (int)error;
}

/*
 * call TYPE FORMAT ...: sends a request with these fields. In FORMAT, 2, 4 and 8 are numbers of
 * that many bytes, s is a string. Returns as exchange() does.
 */
static int call(int type, const char *format, ...)
{
	uint8_t *p = request() + 4;
	va_list ap;

	*p++ = (uint8_t)type;
	memset(p, type == TVERSION ? 0xff : 0, 2);
	p += 2;
	va_start(ap, format);
	for (; *format; format++) {
		if (*format == 's') {
			const char *s = va_arg(ap, const char *);
			uint16_t n = (uint16_t)strlen(s);

			memcpy(p, &n, 2);
			memcpy(p + 2, s, n);
			p += 2 + n;
		} else {
			uint64_t n =
				*format == '8' ? va_arg(ap, uint64_t) : (uint64_t)va_arg(ap, int);

			memcpy(p, &n, (size_t)(*format - '0'));
			p += *format - '0';
		}
	}
	va_end(ap);
	return exchange((uint32_t)(p - request()));
}

/*
 * walk FID NAME: FID then stands for that file. A name may have several parts, with '|' between
 * them.
 */
static int walk(int fid, const char *names)
{
	uint8_t *p = request() + 4;
	uint32_t from = ROOT, to = (uint32_t)fid;
	uint16_t count = 0, got;
	uint8_t *counter;
	int error;

	call(TCLUNK, "4", fid);
	*p++ = TWALK;
	memset(p, 0, 2);
	memcpy(p + 2, &from, 4);
	memcpy(p + 6, &to, 4);
	counter = p + 10;
	p += 12;
	while (true) {
		uint16_t n = (uint16_t)strcspn(names, "|");

		memcpy(p, &n, 2);
		memcpy(p + 2, names, n);
		p += 2 + n;
		count++;
		if (!names[n])
			break;
		names += n + 1;
	}
	memcpy(counter, &count, 2);
	error = exchange((uint32_t)(p - request()));
	if (error)
		return error;
	memcpy(&got, reply() + 7, 2);
	return got == count ? 0 : ENOENT;
}

static void good(const char *what, int error)
{
	printf("%s: %s\n", what, error ? strerror(error) : "done");
	if (error)
		bad = 1;
}

static void refused(const char *what, int error)
{
	printf("%s: %s\n", what, error ? strerror(error) : "NOT REFUSED");
	if (!error || error == EPROTO)
		bad = 1;
}

static int set_mode(int fid, unsigned int mode)
{
	return call(TSETATTR,
		    "444448888"
		    "8",
		    fid, 1, mode, 0, 0, 0ULL, 0ULL, 0ULL, 0ULL, 0ULL);
}

static int set_owner(int fid, int uid, int gid)
{
	return call(TSETATTR,
		    "444448888"
		    "8",
		    fid, 6, 0, uid, gid, 0ULL, 0ULL, 0ULL, 0ULL, 0ULL);
}

static int set_size(int fid)
{
	return call(TSETATTR,
		    "444448888"
		    "8",
		    fid, 8, 0, 0, 0, 0ULL, 0ULL, 0ULL, 0ULL, 0ULL);
}

static int create(const char *where, const char *name, int mode)
{
	int error = walk(AT, where);

	return error ? error : call(TLCREATE, "4s444", AT, name, O_RDWR | O_CREAT, mode, 0);
}

static int node(const char *name, int mode)
{
	return call(TMKNOD, "4s4444", ROOT, name, mode, 1, 3, 0);
}

/* Does what an honest guest does, so that the refusals below are no accident. */
static void honest(void)
{
	good("create a program", create(".", "program", 0755));
	good("write it", call(TWRITE, "484s", AT, 0ULL, 6, "echo"));
	good("make a folder", call(TMKDIR, "4s44", ROOT, "folder", 0755, 0));
	good("make a link", call(TSYMLINK, "4ss4", ROOT, "evil", "/etc", 0));
	good("walk to a file", walk(AT, "plain"));
	good("change a mode", set_mode(AT, 0700));
	good("a plain node", node("node", S_IFREG | 0644));
}

static void forbidden_files(void)
{
	refused("create setuid", create(".", "setuid", 04755));
	refused("create setgid", create(".", "setgid", 02755));
	refused("character device", node("chr", S_IFCHR | 0666));
	refused("block device", node("blk", S_IFBLK | 0666));
	refused("pipe", node("pipe", S_IFIFO | 0666));
	refused("socket", node("sock", S_IFSOCK | 0666));
	refused("plain node, setuid", node("nodesuid", S_IFREG | 06755));
	good("walk to a file", walk(AT, "plain"));
	refused("mode with setuid", set_mode(AT, 04755));
	refused("mode with setgid", set_mode(AT, 02755));
	refused("another owner", set_owner(AT, 1000, -1));
	refused("another group", set_owner(AT, -1, 1000));
	call(TMKDIR, "4s44", ROOT, "setdir", 06755,
	     0); /* made without the bits: the host's side checks */
	good("walk to a folder", walk(AT, "folder"));
	set_mode(AT, 06755);
}

/* A capability on a file is as dangerous as setuid. */
static void capabilities(void)
{
	/* vfs_cap_data, revision 2: everything permitted, effective at once */
	static const char caps[20] = "\1\0\0\2\xff\xff\xff\xff\0\0\0\0\xff\1";
	uint8_t *p = request() + 7;
	uint64_t offset = 0;
	uint32_t fid = AT, count = sizeof(caps);
	int error;

	good("walk to a file", walk(AT, "plain"));
	error = call(TXATTRCREATE, "4s84", AT, "security.capability", (uint64_t)sizeof(caps), 0);
	if (!error) {
		request()[4] = TWRITE;
		memcpy(p, &fid, 4);
		memcpy(p + 4, &offset, 8);
		memcpy(p + 12, &count, 4);
		memcpy(p + 16, caps, sizeof(caps));
		error = exchange(7 + 16 + sizeof(caps));
	}
	/* The attribute is set when the fid is closed. */
	if (!error)
		error = call(TCLUNK, "4", AT);
	refused("a file with capabilities", error);
}

static void ways_out(void)
{
	static const char *const names[] = {"..|outside|secret",   "folder|..|..|outside|secret",
					    "../outside/secret",   "/etc/passwd",
					    "link-out|secret",	   "evil|passwd",
					    "folder/../../outside"};
	static const char *const bad_names[] = {
		"../planted", "folder/../../outside/planted", "..", ".", "", "/planted"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		refused(names[i], walk(AT, names[i]));
	for (size_t i = 0; i < sizeof(bad_names) / sizeof(bad_names[0]); i++) {
		const char *name = bad_names[i];

		printf("%s:\n", name);
		refused("  create", create(".", name, 0644));
		refused("  folder", call(TMKDIR, "4s44", ROOT, name, 0755, 0));
		refused("  link", call(TSYMLINK, "4ss4", ROOT, name, "/etc", 0));
		refused("  node", node(name, S_IFREG | 0644));
		good("  walk", walk(AT, "plain"));
		refused("  hard link", call(TLINK, "44s", ROOT, AT, name));
		refused("  rename", call(TRENAME, "44s", AT, ROOT, name));
		refused("  rename at", call(TRENAMEAT, "4s4s", ROOT, "plain", ROOT, name));
		refused("  remove", call(TUNLINKAT, "4s4", ROOT, name, 0));
	}
}

/* Goes through a symbolic link that leads out of the share, to a folder and to a file. */
static void links_out(void)
{
	good("the link itself", walk(AT, "link-out"));
	refused("create behind it", call(TLCREATE, "4s444", AT, "planted", O_RDWR, 0644, 0));
	refused("folder behind it", call(TMKDIR, "4s44", AT, "planted", 0755, 0));
	refused("link behind it", call(TSYMLINK, "4ss4", AT, "planted", "/etc", 0));
	refused("node behind it", call(TMKNOD, "4s4444", AT, "planted", S_IFREG | 0644, 0, 0, 0));
	refused("remove behind it", call(TUNLINKAT, "4s4", AT, "secret", 0));
	good("a file", walk(AT_2, "plain"));
	refused("hard link behind it", call(TLINK, "44s", AT, AT_2, "planted"));
	refused("rename behind it", call(TRENAME, "44s", AT_2, AT, "planted"));
	refused("rename at behind it", call(TRENAMEAT, "4s4s", ROOT, "plain", AT, "planted"));
	refused("take from behind it", call(TRENAMEAT, "4s4s", AT, "secret", ROOT, "taken"));
	good("the other link", walk(AT, "link-file"));
	refused("open it", call(TLOPEN, "44", AT, O_RDWR));
	good("the other link", walk(AT, "link-file"));
	refused("open and cut it", call(TLOPEN, "44", AT, O_WRONLY | O_TRUNC));
	refused("its mode", set_mode(AT, 0777));
	refused("its size", set_size(AT));
	refused("create over it",
		call(TLCREATE, "4s444", ROOT, "link-file", O_WRONLY | O_TRUNC, 0644, 0));
}

/* A folder whose fid the guest holds becomes a link. */
static void folder_to_link(void)
{
	good("a folder", call(TMKDIR, "4s44", ROOT, "turns", 0755, 0));
	good("walk to it", walk(AT, "turns"));
	good("remove it", call(TUNLINKAT, "4s4", ROOT, "turns", 0x200));
	good("a link there", call(TSYMLINK, "4ss4", ROOT, "turns", "../outside", 0));
	refused("folder in it", call(TMKDIR, "4s44", AT, "planted", 0755, 0));
	refused("remove in it", call(TUNLINKAT, "4s4", AT, "secret", 0));
	refused("create in it", call(TLCREATE, "4s444", AT, "planted", O_RDWR, 0644, 0));
}

/* Files that users of the host have put there. */
static void hosts_own(void)
{
	good("the host's pipe", walk(AT, "host-pipe"));
	refused("open it", call(TLOPEN, "44", AT, O_RDWR));
	good("the host's device", walk(AT, "host-device"));
	refused("open it", call(TLOPEN, "44", AT, O_RDWR));
	good("the host's setuid program", walk(AT, "host-setuid"));
	good("open it", call(TLOPEN, "44", AT, O_WRONLY));
	good("write to it", call(TWRITE, "484s", AT, 0ULL, 6, "echo"));
}

int main(void)
{
	find_device();
	get_memory();
	start_device();
	good("version", call(TVERSION, "4s", 60000, "9P2000.L"));
	good("attach", call(TATTACH, "44ss4", ROOT, NO_FID, "root", "", 0));
	honest();
	forbidden_files();
	capabilities();
	ways_out();
	links_out();
	folder_to_link();
	hosts_own();
	outb(0, port + STATUS);
	return bad;
}

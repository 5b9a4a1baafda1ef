// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ioctls that no library makes. Each one gets its error, and the session works as before. The
 * exception: some records make the device end the session, because it must distrust the guest.
 */
#include "raw.h"

/* Maps a page that is followed by an unmapped page. */
static char *last_page(void)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	SAME(p != MAP_FAILED, 1);
	SAME(munmap(p + 4096, 4096), 0);
	return p;
}

static void unknown_ioctl(void)
{
	int fd = raw_session();
	char room[256] = {0};

	FAILS(ioctl(fd, 0, room), ENOTTY);
	FAILS(ioctl(fd, ~0u, room), ENOTTY);
	FAILS(ioctl(fd, _IO('Q', 0x99), room), ENOTTY);
	FAILS(ioctl(fd, _IO('R', 0x80), room), ENOTTY);
	/* The right ioctl number, for a struct of another size or in another direction. */
	FAILS(ioctl(fd, _IOWR('Q', 0x80, char[8]), room), ENOTTY);
	FAILS(ioctl(fd, _IOR('Q', 0x81, struct qcu_submit), room), ENOTTY);
	raw_works(fd);
}

static void hello(void)
{
	struct qcu_hello h = {.library_version = QCU_WIRE_VERSION};
	int fd = raw_open(), i;

	FAILS(ioctl(fd, QCU_IOC_HELLO, NULL), EFAULT);
	FAILS(ioctl(fd, QCU_IOC_HELLO, ~0ul), EFAULT);
	FAILS(ioctl(fd, QCU_IOC_HELLO, last_page() + 4090), EFAULT);
	for (i = 0; i < 3; i++) {
		h.rsvd[i] = 1;
		FAILS(ioctl(fd, QCU_IOC_HELLO, &h), EINVAL);
		h.rsvd[i] = 0;
	}
	SAME(ioctl(fd, QCU_IOC_HELLO, &h), 0);
	SAME(h.driver_version, QCU_WIRE_VERSION);
	SAME(h.device_version, QCU_WIRE_VERSION);
	SAME(h.window_base, QCU_WINDOW_BASE);
	SAME(h.window_size, QCU_WINDOW_SIZE);
	SAME(h.chunk_bytes >= QCU_CHUNK_MIN, 1);
	/* A second HELLO is allowed. */
	SAME(ioctl(fd, QCU_IOC_HELLO, &h), 0);
	raw_works(fd);
}

static void wrong_version(void)
{
	static const uint32_t wrong[] = {0, QCU_WIRE_VERSION + 1, ~0u};
	struct qCUcmd cmd = raw_cmd(QCU_OP_MEM_INFO);
	int fd = raw_open();
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct qcu_hello h = {.library_version = wrong[i]};

		FAILS(ioctl(fd, QCU_IOC_HELLO, &h), EPROTO);
		SAME(h.driver_version, QCU_WIRE_VERSION);
		SAME(h.device_version, QCU_WIRE_VERSION);
		/* HELLO has failed, so the session takes no commands. */
		SAME(raw_submit(fd, &cmd), -EPERM);
	}
}

static void before_hello(void)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_MEM_INFO);
	int fd = raw_open();

	SAME(raw_submit(fd, &cmd), -EPERM);
	FAILS((long)mmap(WINDOW, MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd,
			 0),
	      EPERM);
	FAILS(read(fd, &cmd, sizeof(cmd)), EINVAL);
	FAILS(write(fd, &cmd, sizeof(cmd)), EINVAL);
}

static void submit_arguments(void)
{
	struct qCUcmd cmds[QCU_SUBMIT_MAX + 1], *edge;
	struct qcu_submit s = {.cmds = (uintptr_t)cmds, .count = 1};
	int fd = raw_session(), i;

	for (i = 0; i <= (int)QCU_SUBMIT_MAX; i++)
		cmds[i] = raw_cmd(QCU_OP_MEM_INFO);
	FAILS(ioctl(fd, QCU_IOC_SUBMIT, NULL), EFAULT);
	s.late = 1;
	FAILS(ioctl(fd, QCU_IOC_SUBMIT, &s), EINVAL);
	s.late = 0;
	s.count = 0;
	FAILS(ioctl(fd, QCU_IOC_SUBMIT, &s), EINVAL);
	s.count = QCU_SUBMIT_MAX + 1;
	FAILS(ioctl(fd, QCU_IOC_SUBMIT, &s), EINVAL);
	s.count = ~0u;
	FAILS(ioctl(fd, QCU_IOC_SUBMIT, &s), EINVAL);
	s.count = QCU_SUBMIT_MAX;
	SAME(ioctl(fd, QCU_IOC_SUBMIT, &s), QCU_SUBMIT_MAX);
	for (i = 0; i < (int)QCU_SUBMIT_MAX; i++)
		SAME(cmds[i].status, 0);

	s.count = 1;
	s.cmds = 0;
	FAILS(ioctl(fd, QCU_IOC_SUBMIT, &s), EFAULT);
	s.cmds = 0xffffffff81000000ull;
	FAILS(ioctl(fd, QCU_IOC_SUBMIT, &s), EFAULT);
	/* The second of two records is in unmapped memory. */
	edge = (struct qCUcmd *)(last_page() + 4096 - sizeof(*edge));
	*edge = raw_cmd(QCU_OP_MEM_INFO);
	s.cmds = (uintptr_t)edge;
	s.count = 2;
	FAILS(ioctl(fd, QCU_IOC_SUBMIT, &s), EFAULT);
	/* The answer cannot be written to a read-only page. */
	SAME(mprotect((void *)((uintptr_t)edge & ~4095ul), 4096, PROT_READ), 0);
	s.count = 1;
	FAILS(ioctl(fd, QCU_IOC_SUBMIT, &s), EFAULT);
	raw_works(fd);
}

static void unknown_opcodes(void)
{
	const int all = 0
#define X(...) +1
		QCU_COMMANDS(X)
#undef X
		;
	int fd = raw_session(), op, known = 0;

	for (op = 0; op < 65536; op += op < 300 ? 1 : 511) {
		struct qCUcmd cmd = raw_cmd(op);

		if (qcu_rule((__u16)op)) {
			known++;
			continue;
		}
		SAME(raw_submit(fd, &cmd), -EOPNOTSUPP);
	}
	SAME(known, all);
	raw_works(fd);
}

static void driver_commands(void)
{
	static const int ops[] = {QCU_OP_OPEN, QCU_OP_CLOSE, QCU_OP_MAP, QCU_OP_UNMAP};
	int fd = raw_session();
	size_t i;

	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct qCUcmd cmd = raw_cmd(ops[i]);

		SAME(raw_submit(fd, &cmd), -EPERM);
	}
	raw_works(fd);
}

/* Sets in turn each field that must be zero in every command. */
static void dirty_records(void)
{
	struct qCUcmd cmd;
	int fd = raw_session(), bit, op;
	unsigned int at;

	for (bit = 0; bit < 8; bit++) {
		cmd = raw_cmd(QCU_OP_MEM_INFO);
		cmd.flags = (__u8)(1 << bit);
		SAME(raw_submit(fd, &cmd), -EINVAL);
	}
	for (op = 0; op < QCU_OP_COUNT; op++) {
		const struct qcu_rule *rule = qcu_rule((__u16)op);

		if (!rule || !qcu_rule_user(rule))
			continue;
		cmd = raw_cmd(op);
		cmd.status = 1;
		SAME(raw_submit(fd, &cmd), -EINVAL);
		cmd = raw_cmd(op);
		cmd.tid = 0;
		SAME(raw_submit(fd, &cmd), -EINVAL);
		for (at = rule->in; at < QCU_BODY; at++) {
			cmd = raw_cmd(op);
			cmd.body[at] = 0x80;
			SAME(raw_submit(fd, &cmd), -EINVAL);
		}
	}
	raw_works(fd);
}

static void bad_buffers(void)
{
	const uint64_t kernel = 0xffff888000000000ull;
	char *edge = last_page(), *read_only, *message;
	int fd = raw_session();
	struct qCUcmd cmd;
	uint64_t dev = raw_malloc(fd, MIB);

	read_only = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	SAME(read_only != MAP_FAILED, 1);
	SAME(raw_upload(fd, dev, NULL, 16), -EFAULT);
	SAME(raw_upload(fd, dev, (void *)16, 16), -EFAULT);
	SAME(raw_upload(fd, dev, (void *)kernel, 16), -EFAULT);
	SAME(raw_upload(fd, dev, (void *)-16, 64), -EFAULT);
	SAME(raw_upload(fd, dev, edge, 4097), -EFAULT);
	SAME(raw_upload(fd, dev, edge, ~0ull), -EFAULT);
	SAME(raw_upload(fd, dev, edge, 1ull << 62) < 0, 1);
	SAME(raw_upload(fd, dev, WINDOW, 4096), -EFAULT);
	SAME(raw_download(fd, read_only, dev, 16), -EFAULT);
	SAME(raw_download(fd, NULL, dev, 16), -EFAULT);
	SAME(raw_download(fd, (void *)kernel, dev, 16), -EFAULT);
	SAME(raw_upload(fd, dev, read_only, 8192), 0);

	message = malloc(QCU_MSG_MAX + 1);
	SAME(message != NULL, 1);
	memset(message, 'x', QCU_MSG_MAX + 1);
	cmd = raw_cmd(QCU_OP_KERNEL_FIND);
	cmd.kernel_find.buf.addr = (uintptr_t)message;
	cmd.kernel_find.buf.len = QCU_MSG_MAX + 1;
	SAME(raw_submit(fd, &cmd), -E2BIG);
	cmd = raw_cmd(QCU_OP_KERNEL_FIND);
	cmd.kernel_find.buf.addr = 16;
	cmd.kernel_find.buf.len = 16;
	SAME(raw_submit(fd, &cmd), -EFAULT);

	/* Memory that stays mapped for kernels must be mapped as a whole. */
	cmd = raw_cmd(QCU_OP_HOST_REGISTER);
	cmd.host_register.buf.addr = (uintptr_t)edge;
	cmd.host_register.buf.len = 8192;
	SAME(raw_submit(fd, &cmd), -EFAULT);
	cmd = raw_cmd(QCU_OP_HOST_REGISTER);
	cmd.host_register.buf.addr = QCU_WINDOW_BASE;
	cmd.host_register.buf.len = 4096;
	SAME(raw_submit(fd, &cmd), -EFAULT);

	/*
	 * The mirror may write to a watch page at any time, so a watch page must be chunk memory.
	 */
	cmd = raw_cmd(QCU_OP_WATCH);
	cmd.watch.buf.addr = (uintptr_t)message;
	cmd.watch.buf.len = QCU_WATCH_BYTES;
	SAME(raw_submit(fd, &cmd), -EINVAL);
	raw_works(fd);
	SAME(raw_stat("pinned_pages"), 0);
}

/*
 * Numbers that only the device can check. The device returns an error or ends the session. After
 * that all commands of the session fail; a new session works.
 */
static void bad_numbers(void)
{
	static const struct {
		int op;
		uint32_t word; /* of the body */
		uint32_t value;
		int device;
	} cases[] = {
		{QCU_OP_MEM_INFO, 0, 0, 200},	   {QCU_OP_STREAM_SYNC, 0, 999, 0},
		{QCU_OP_STREAM_SYNC, 0, ~0u, 0},   {QCU_OP_STREAM_CREATE, 0, 0, 0},
		{QCU_OP_STREAM_CREATE, 0, ~0u, 0}, {QCU_OP_STREAM_DESTROY, 0, 7, 0},
		{QCU_OP_EVENT_DESTROY, 0, 7, 0},   {QCU_OP_EVENT_RECORD, 0, 9, 0},
		{QCU_OP_EVENT_ELAPSED, 0, 3, 0},   {QCU_OP_MODULE_UNLOAD, 0, 4, 0},
		{QCU_OP_FUNC_SET, 0, 5, 0},	   {QCU_OP_OCCUPANCY, 0, 5, 0},
		{QCU_OP_FREE, 0, 4096, 0},	   {QCU_OP_HOST_UNREGISTER, 0, 4096, 0},
		{QCU_OP_COPY_D2D, 4, 16, 0},	   {QCU_OP_MEMSET, 4, 16, 0},
		{QCU_OP_MALLOC, 1, 0x7fffffff, 0},
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = raw_session(), status;
		struct qCUcmd cmd = raw_cmd(cases[i].op);
		uint32_t *body = (uint32_t *)cmd.body;

		body[cases[i].word] = cases[i].value;
		cmd.device = (__u8)cases[i].device;
		status = raw_submit(fd, &cmd);
		printf("op %d: %d\n", cases[i].op, status);
		SAME(status != 0, 1);
		close(fd);
		fd = raw_session();
		raw_works(fd);
		close(fd);
	}
}

static void bad_module(void)
{
	int fd = raw_session(), round;
	char image[4096];

	for (round = 0; round < 3; round++) {
		struct qCUcmd cmd = raw_cmd(QCU_OP_MODULE_LOAD);

		memset(image, round == 1 ? 0xff : 0, sizeof(image));
		if (round == 2)
			memcpy(image, "\x50\xed\x55\xba\x01\x00\x10\x00\xff\xff\xff\x7f", 12);
		cmd.module_load.buf.addr = (uintptr_t)image;
		cmd.module_load.buf.len = sizeof(image);
		cmd.module_load.module = QCU_ID_FIRST;
		SAME(raw_submit(fd, &cmd) != 0, 1);
	}
	raw_works(fd);
}

/* A child inherits the file, but it is not the process that made the HELLO ioctl. */
static void inherited_file(void)
{
	int fd = raw_session(), status;
	pid_t pid = fork();

	if (!pid) {
		struct qcu_hello h = {.library_version = QCU_WIRE_VERSION};
		struct qCUcmd cmd = raw_cmd(QCU_OP_MEM_INFO);

		SAME(raw_submit(fd, &cmd), -EPERM);
		FAILS(ioctl(fd, QCU_IOC_HELLO, &h), EPERM);
		FAILS((long)mmap(WINDOW, MIB, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0),
		      EPERM);
		close(fd);
		/* A session of its own works. */
		raw_works(raw_session());
		exit(0);
	}
	SAME(waitpid(pid, &status, 0), pid);
	SAME(status, 0);
	raw_works(fd);
}

static void two_sessions_in_one_process(void)
{
	int a = raw_session(), b = raw_session(), i;
	uint64_t da = raw_malloc(a, 4096), db = raw_malloc(b, 4096);
	char *p = raw_chunks(a, 0, MIB), *q = raw_chunks(b, MIB, MIB), got[64];

	for (i = 0; i < 64; i++) {
		p[i] = (char)i;
		q[i] = (char)(i + 100);
	}
	SAME(raw_upload(a, da, p, 64), 0);
	SAME(raw_upload(b, db, q, 64), 0);
	/* Memory of session a is ordinary memory to session b. Its pages can be used. */
	SAME(raw_download(a, got, da, 64), 0);
	SAME(memcmp(got, p, 64), 0);
	SAME(raw_download(b, got, db, 64), 0);
	SAME(memcmp(got, q, 64), 0);
	SAME(raw_upload(a, da, q, 64), 0);
	SAME(raw_download(a, got, da, 64), 0);
	SAME(memcmp(got, q, 64), 0);
	close(a);
	raw_works(b);
	/* The mapping of session a keeps the file open, and so the session alive. */
	SAME(p[63], 63);
	SAME(munmap(p, MIB), 0);
	raw_works(b);
}

static void open_and_close(void)
{
	int i;

	for (i = 0; i < 50; i++) {
		int fd = i % 2 ? raw_open() : raw_session();

		close(fd);
	}
}

int main(int argc, char **argv)
{
	static const struct raw_case cases[] = {
		{"unknown_ioctl", unknown_ioctl},
		{"hello", hello},
		{"wrong_version", wrong_version},
		{"before_hello", before_hello},
		{"submit_arguments", submit_arguments},
		{"unknown_opcodes", unknown_opcodes},
		{"driver_commands", driver_commands},
		{"dirty_records", dirty_records},
		{"bad_buffers", bad_buffers},
		{"bad_numbers", bad_numbers},
		{"bad_module", bad_module},
		{"inherited_file", inherited_file},
		{"two_sessions_in_one_process", two_sessions_in_one_process},
		{"open_and_close", open_and_close},
		{NULL, NULL},
	};

	return raw_main(argc, argv, cases);
}

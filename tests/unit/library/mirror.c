// SPDX-License-Identifier: LGPL-2.1-or-later
/* A transport that answers for the mirror and counts, and a program that uses the library. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "qcu-library/link/transport.h"
#include "qcu-library/malloc/malloc_hook.h"
#include "tests/unit/library/mirror.h"

#define DEVICE_MEMORY 0x7e0000000000ull

unsigned int posted, waited, submits;
int late, query_answer, sync_answer;
struct qCUcmd last;
bool no_page;
uint64_t *page;

/* ---- the mirror ---- */

int qcul_transport_open(struct qcu_hello *hello)
{
	memset(hello, 0, sizeof(*hello));
	hello->window_base = QCU_WINDOW_BASE;
	hello->window_size = QCU_WINDOW_SIZE;
	hello->chunk_bytes = QCU_CHUNK_DEFAULT;
	return 0;
}

void qcul_transport_close(void)
{
}

bool qcul_transport_shares_memory(void)
{
	return false;
}

static void answer(struct qCUcmd *cmd)
{
	static uint64_t at = DEVICE_MEMORY;
	struct qcu_device_desc *desc;
	const struct qcu_launch_msg *launch_msg;
	struct qcu_kernel_desc *kernel;
	struct qcu_param *param;

	switch (cmd->op) {
	case QCU_OP_INFO:
		cmd->info.devices = 2;
		break;
	case QCU_OP_DEVICE_INFO:
		desc = (struct qcu_device_desc *)(uintptr_t)cmd->buf.addr;
		memset(desc, 0, sizeof(*desc));
		desc->attr[cudaDevAttrMaxGridDimX] = desc->attr[cudaDevAttrMaxGridDimY] =
			desc->attr[cudaDevAttrMaxGridDimZ] = 65535;
		desc->attr[cudaDevAttrMaxBlockDimX] = desc->attr[cudaDevAttrMaxBlockDimY] =
			desc->attr[cudaDevAttrMaxBlockDimZ] = 1024;
		desc->attr[cudaDevAttrMaxThreadsPerBlock] = 1024;
		break;
	case QCU_OP_MALLOC:
		cmd->malloc.ptr = at;
		at += 1 << 20;
		break;
	case QCU_OP_DEVICE_SYNC:
	case QCU_OP_STREAM_SYNC:
		cmd->status = sync_answer;
		break;
	case QCU_OP_EVENT_QUERY:
		cmd->status = query_answer;
		cmd->event_query.watched = page && cmd->event_query.token;
		break;
	case QCU_OP_STREAM_QUERY:
		cmd->status = query_answer;
		cmd->stream_query.watched = page && cmd->stream_query.token;
		break;
	case QCU_OP_WATCH:
		assert_int_equal(cmd->buf.len, QCU_WATCH_BYTES);
		if (no_page)
			cmd->status = cudaErrorInvalidValue;
		else
			page = (uint64_t *)(uintptr_t)cmd->buf.addr;
		break;
	case QCU_OP_HOST_REGISTER:
		cmd->host_register.device = cmd->host_register.buf.addr;
		break;
	case QCU_OP_KERNEL_FIND:
		cmd->kernel_find.params = 1;
		cmd->kernel_find.param_bytes = 8;
		break;
	case QCU_OP_LAUNCH:
		launch_msg = (const struct qcu_launch_msg *)(uintptr_t)cmd->launch.buf.addr;
		if (launch_msg->block[0] > MAX_THREADS)
			cmd->status = cudaErrorLaunchOutOfResources;
		break;
	case QCU_OP_KERNEL_INFO:
		kernel = (struct qcu_kernel_desc *)(uintptr_t)cmd->buf.addr;
		memset(kernel, 0, sizeof(*kernel));
		kernel->max_threads = MAX_THREADS;
		kernel->max_dynamic_shared = MAX_SHARED;
		kernel->params = 1;
		param = (struct qcu_param *)(kernel + 1);
		if (cmd->buf.len >= sizeof(*kernel) + sizeof(*param))
			*param = (struct qcu_param){.offset = 0, .size = 8};
		break;
	}
}

int qcul_transport_submit(struct qCUcmd *cmds, unsigned int count)
{
	unsigned int i;

	submits++;
	for (i = 0; i < count; i++) {
		const struct qcu_rule *rule = qcu_rule(cmds[i].op);

		last = cmds[i];
		assert_non_null(rule);
		cmds[i].status = 0;
		if (cmds[i].flags & QCU_F_POSTED) {
			assert_int_equal(rule->who, QCU_WHO_POST);
			posted++;
			continue;
		}
		waited++;
		answer(&cmds[i]);
	}
	return 0;
}

int qcul_transport_late(void)
{
	int err = late;

	late = 0;
	return err;
}

void qcul_transport_waiting(uint32_t how)
{
	(void)how;
}

void qcul_transport_thread_ends(void)
{
}

int qcul_transport_map(void *addr, size_t len)
{
	return mmap(addr, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0) == addr
		       ? 0
		       : -ENOMEM;
}

int qcul_transport_unmap(void *addr, size_t len)
{
	return munmap(addr, len);
}

/* No hook: the test uses the malloc of the C library. */
void qcul_malloc_arm(void)
{
}

unsigned int clock_ms;
int __wrap_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	(void)id;
	*t = (struct timespec){.tv_sec = clock_ms / 1000, .tv_nsec = clock_ms % 1000 * 1000000};
	return 0;
}

/* ---- the program ---- */

char *dev, *dev2, *pinned, host[128 << 10];
cudaStream_t stream;
cudaEvent_t event;
static const struct {
	uint32_t magic;
	uint16_t version, header;
	uint64_t bytes;
} image = {0xba55ed50u, 1, 16, 0};
static const struct {
	int magic, version;
	const void *data;
	void *unused;
} wrapper = {0x466243b1, 1, &image, NULL};
const char kernel;

int start(void **state)
{
	void **handle = __cudaRegisterFatBinary((void *)(uintptr_t)&wrapper);

	(void)state;
	__cudaRegisterFunction(handle, &kernel, NULL, "kernel", -1, NULL, NULL, NULL, NULL, NULL);
	return cudaMalloc((void **)&dev, 1 << 20) || cudaMalloc((void **)&dev2, 1 << 20) ||
	       cudaMallocHost((void **)&pinned, 1 << 20) || cudaStreamCreate(&stream) ||
	       cudaEventCreate(&event);
}

cudaError_t launch(unsigned int grid, unsigned int block, size_t shared, cudaStream_t s)
{
	uint64_t arg = 5;
	void *args[] = {&arg};
	const dim3 g = {grid, 1, 1}, b = {block, 1, 1};

	return cudaLaunchKernel(&kernel, g, b, args, shared, s);
}

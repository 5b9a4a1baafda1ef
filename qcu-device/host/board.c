// SPDX-License-Identifier: GPL-2.0-or-later
/* The board (board.h): how the main process writes it. board_print.c reads it. */
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "qcu-device/host/board.h"

struct board *board_new(int fd)
{
	int flags = MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0);
	void *p;

	if (fd >= 0 && ftruncate(fd, sizeof(struct board)))
		return NULL;
	p = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE, flags, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

void board_free(struct board *b)
{
	if (b)
		munmap(b, sizeof(*b));
}

/* The stores between begin and finish are seen after the first and before the second change. */
static void begin_change(struct board *b)
{
	atomic_fetch_add_explicit(&b->changes, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
}

static void finish_change(struct board *b)
{
	atomic_fetch_add_explicit(&b->changes, 1, memory_order_release);
}

void board_open(struct board *b, unsigned int session, uint32_t guest_pid, const char *program)
{
	struct board_session *s = &b->session[session];

	begin_change(b);
	b->opened++;
	s->live = true;
	s->guest_pid = guest_pid;
	s->since = (uint64_t)time(NULL);
	s->began = busy_now();
	s->gpu_time = 0;
	memset(s->program, 0, sizeof(s->program));
	memcpy(s->program, program, strnlen(program, sizeof(s->program) - 1));
	finish_change(b);
}

uint64_t board_gpu_time(const struct board *b, const struct usage *u, unsigned int session)
{
	const struct session_usage *p = &u->sessions[session];
	const struct board_session *s = &b->session[session];
	uint64_t now = busy_now(), most = now - s->began, sum = 0, us;
	unsigned int i;

	if (b->nvml)
		return s->gpu_time;
	for (i = 0; s->live && i < USAGE_DEVICES; i++) {
		us = busy_spent(&p->busy[i][BUSY_KERNELS], now);
		sum += us < most ? us : most;
	}
	return sum;
}

void board_add_gpu_time(struct board *b, unsigned int session, uint64_t us)
{
	begin_change(b);
	b->nvml = true;
	b->session[session].gpu_time += us;
	finish_change(b);
}

void board_end(struct board *b, struct usage *u, unsigned int session)
{
	struct session_usage *p = &u->sessions[session];
	unsigned int i;

	begin_change(b);
	b->past.gpu_time += board_gpu_time(b, u, session);
	b->session[session].gpu_time = 0;
	b->session[session].live = false;
	for (i = 0; i < QCU_OP_COUNT; i++)
		b->past.calls[i] += atomic_load(&p->counts.calls[i]);
	for (i = 0; i < COUNT_KINDS; i++)
		b->past.n[i] += atomic_load(&p->counts.n[i]);
	for (i = 0; i < LIMIT_KINDS; i++)
		b->past.refused[i] += atomic_load(&p->refused[i]);
	usage_end(u, session);
	finish_change(b);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a program says to the compiler, which runs on the host, and what the compiler says to the
 * program. An option's value is a word: a number, or a pointer. Some values are answers.
 */
#include <string.h>
#include <time.h>

#include "qcu-library/api/compiling.h"

/* The options by their numbers in both APIs. The runtime API lacks some. */
enum {
	MAX_REGISTERS = 0,
	THREADS_PER_BLOCK = 1,
	WALL_TIME = 2,
	INFO_LOG = 3,
	INFO_LOG_SIZE = 4,
	ERROR_LOG = 5,
	ERROR_LOG_SIZE = 6,
	OPTIMIZATION = 7,
	TARGET_OF_CONTEXT = 8,
	TARGET = 9,
	FALLBACK = 10,
	DEBUG_INFO = 11,
	VERBOSE = 12,
	LINE_INFO = 13,
	CACHE_MODE = 14,
	POSITION_INDEPENDENT = 30,
	MIN_BLOCKS = 31,
	MAX_THREADS = 32,
	OVERRIDE = 33,
};

static uint32_t option_number(void *const *value)
{
	return (uint32_t)(uintptr_t)*value;
}

static uint64_t clock_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void set_jit_flag(struct qcu_jit *jit, uint32_t bit, bool on)
{
	jit->flags = on ? jit->flags | bit : jit->flags & ~bit;
}

static cudaError_t read_option(unsigned int option, void **value, struct qcul_compiling *c)
{
	struct qcu_jit *jit = &c->jit;

	switch (option) {
	case MAX_REGISTERS:
		jit->max_regs = option_number(value);
		break;
	case THREADS_PER_BLOCK:
		jit->threads = option_number(value);
		break;
	case WALL_TIME:
		c->ms = value;
		break;
	case INFO_LOG:
	case ERROR_LOG:
		c->log[option == ERROR_LOG] = *value;
		break;
	case INFO_LOG_SIZE:
	case ERROR_LOG_SIZE:
		c->room[option == ERROR_LOG_SIZE] = option_number(value);
		c->filled[option == ERROR_LOG_SIZE] = value;
		break;
	case OPTIMIZATION:
		/* There is no higher level. */
		jit->optimize = option_number(value) < 4 ? (uint8_t)option_number(value) : 4;
		jit->flags |= QCU_JIT_OPTIMIZE;
		break;
	case TARGET:
		jit->target = option_number(value);
		break;
	case FALLBACK:
		jit->fallback = (uint8_t)option_number(value);
		jit->flags |= QCU_JIT_FALLBACK;
		break;
	case DEBUG_INFO:
		set_jit_flag(jit, QCU_JIT_DEBUG, option_number(value));
		break;
	case VERBOSE:
		set_jit_flag(jit, QCU_JIT_VERBOSE, option_number(value));
		break;
	case LINE_INFO:
		set_jit_flag(jit, QCU_JIT_LINES, option_number(value));
		break;
	case CACHE_MODE:
		jit->cache = (uint8_t)option_number(value);
		jit->flags |= QCU_JIT_CACHE;
		break;
	/* The target is that of the context anyway. The others do not change what the code does. */
	case TARGET_OF_CONTEXT:
	case POSITION_INDEPENDENT:
	case MIN_BLOCKS:
	case MAX_THREADS:
	case OVERRIDE:
		break;
	default:
		return cudaErrorInvalidValue;
	}
	return cudaSuccess;
}

cudaError_t qcul_compiling_options(const void *options, void **values, unsigned int count,
				   struct qcul_compiling *c)
{
	const unsigned int *option = options;
	cudaError_t err = cudaSuccess;
	unsigned int i;

	*c = (struct qcul_compiling){.began = clock_us()};
	if (count && (!options || !values))
		return cudaErrorInvalidValue;
	for (i = 0; i < count && !err; i++)
		err = read_option(option[i], &values[i], c);
	for (i = 0; i < QCUL_LOGS && !err; i++) {
		if (!c->log[i] || !c->room[i])
			continue;
		c->log[i][0] = '\0';
		c->jit.flags |= QCU_JIT_LOGS;
	}
	return err;
}

uint64_t qcul_result(uint32_t what, void *to, size_t room, bool forget)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_RESULT_READ);

	cmd.result_read.buf.addr = (uint64_t)(uintptr_t)to;
	cmd.result_read.buf.len = room;
	cmd.result_read.what = what;
	cmd.result_read.forget = forget;
	return qcul_send(&cmd, 1) ? 0 : cmd.result_read.bytes;
}

void qcul_compiling_read(const struct qcul_compiling *c, bool all)
{
	static const uint32_t what[] = {
		[QCUL_LOG_INFO] = QCU_RESULT_INFO,
		[QCUL_LOG_ERROR] = QCU_RESULT_ERROR,
	};
	unsigned int last = 0, i;

	if (c->ms) {
		float ms = (float)(clock_us() - c->began) / 1e3f;

		memcpy(c->ms, &ms, sizeof(ms));
	}
	for (i = 0; i < QCUL_LOGS; i++)
		if (c->log[i] && c->room[i])
			last = i;
	for (i = 0; i < QCUL_LOGS; i++) {
		uint64_t n = 0;

		if (c->log[i] && c->room[i]) {
			n = qcul_result(what[i], c->log[i], c->room[i] - 1, all && i == last);
			n = n < c->room[i] - 1 ? n : c->room[i] - 1;
			c->log[i][n] = '\0';
		}
		if (c->filled[i])
			*c->filled[i] = (void *)(uintptr_t)n;
	}
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Links: images of device code become one, on the host. The result comes back as bytes, which the
 * program may load, store or look into.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "qcu-library/api/compiling.h"
#include "qcu-library/driver_api/link_host.h"
#include "qcu-library/driver_base/driver.h"
#include "qcu-library/link/fork.h"

struct CUlinkState_st {
	uint32_t id; /* the mirror's number */
	unsigned int epoch;
	struct qcul_compiling c; /* points to the program's memory until the end */
	void *image;
	size_t bytes;
	LIST_ENTRY(CUlinkState_st) link;
};

/* Held during all calls. Any pointer may be passed as a handle. */
static struct {
	LIST_HEAD(, CUlinkState_st) links;
} process;
QCUL_AT_FORK(QCUL_FORK_LINKS)

static struct CUlinkState_st *find_link_state(CUlinkState state)
{
	struct CUlinkState_st *l;

	LIST_FOREACH(l, &process.links, link)
		if (l == state)
			return l;
	return NULL;
}

static cudaError_t create_link_state(CUlinkState *state, unsigned int count,
				     const CUjit_option *options, void **values)
{
	struct CUlinkState_st *l = calloc(1, sizeof(*l));
	struct qCUcmd cmd = qcul_cmd(QCU_OP_LINK_CREATE);
	cudaError_t err = l ? qcul_ready() : cudaErrorMemoryAllocation;

	if (!err)
		err = qcul_compiling_options(options, values, count, &l->c);
	if (!err && !qcul_handle_new(&qcul_link_ids, &l->id))
		err = cudaErrorMemoryAllocation;
	if (err) {
		free(l);
		return err;
	}
	cmd.link_create.link = l->id;
	cmd.link_create.jit = l->c.jit;
	err = qcul_send(&cmd, 1);
	if (err) {
		qcul_handle_drop(&qcul_link_ids, l->id);
		free(l);
		return err;
	}
	l->epoch = qcul_epoch();
	LIST_INSERT_HEAD(&process.links, l, link);
	*state = l;
	return cudaSuccess;
}

CUresult cuLinkCreate_v2(unsigned int count, CUjit_option *options, void **values,
			 CUlinkState *state)
{
	return QCUL_RUNTIME(state ? QCUL_LOCKED(create_link_state(state, count, options, values))
				  : cudaErrorInvalidValue);
}

static cudaError_t send_image(struct CUlinkState_st *l, uint32_t type, const void *data,
			      size_t size, const struct qcu_jit *jit)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_LINK_ADD);
	cudaError_t err;

	cmd.link_add.buf.addr = (uint64_t)(uintptr_t)data;
	cmd.link_add.buf.len = size;
	cmd.link_add.link = l->id;
	cmd.link_add.type = type;
	cmd.link_add.jit = *jit;
	err = qcul_send(&cmd, 1);
	qcul_compiling_read(&l->c, true);
	return err;
}

/* PTX may come without the NUL that ends it. */
static cudaError_t send_ptx(struct CUlinkState_st *l, const char *text, size_t size,
			    const struct qcu_jit *jit)
{
	size_t len = strnlen(text, size);
	char *copy = malloc(len + 1);
	cudaError_t err;

	if (!copy)
		return cudaErrorMemoryAllocation;
	memcpy(copy, text, len);
	copy[len] = '\0';
	err = send_image(l, QCU_LINK_PTX, copy, len + 1, jit);
	free(copy);
	return err;
}

/* Where the fat binaries of object files go. */
struct link_sink {
	struct CUlinkState_st *l;
	const struct qcu_jit *jit;
};

static cudaError_t send_fatbin(void *ctx, const void *fatbin, size_t bytes)
{
	const struct link_sink *s = ctx;

	return send_image(s->l, QCU_LINK_FATBIN, fatbin, bytes, s->jit);
}

static cudaError_t add_link_input(CUlinkState state, CUjitInputType type, const void *data,
				  size_t size, unsigned int count, const CUjit_option *options,
				  void **values)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	struct CUlinkState_st *l = find_link_state(state);
	struct qcul_compiling own;
	struct link_sink sink = {.l = l, .jit = &own.jit};
	const struct qcul_fatbin_sink to = {.add = send_fatbin, .ctx = &sink};
	cudaError_t err = qcul_ready();

	if (!err && (!l || l->epoch != qcul_epoch()))
		err = cudaErrorInvalidResourceHandle;
	if (!err)
		err = qcul_compiling_options(options, values, count, &own);
	if (err)
		return err;
	own.jit.flags &= ~QCU_JIT_LOGS;
	switch ((int)type) {
	case CU_JIT_INPUT_PTX:
		return send_ptx(l, data, size, &own.jit);
	case CU_JIT_INPUT_CUBIN:
		return send_image(l, QCU_LINK_CUBIN, data, size, &own.jit);
	case CU_JIT_INPUT_FATBINARY:
		return send_image(l, QCU_LINK_FATBIN, data, size, &own.jit);
	case CU_JIT_INPUT_OBJECT:
		return qcul_host_object(data, size, &to);
	case CU_JIT_INPUT_LIBRARY:
		return qcul_host_library(data, size, &to);
	case CU_JIT_INPUT_NVVM:
		return qcul_unsupported("linking of NVVM code", &said);
	}
	return cudaErrorInvalidValue;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
			  const char *name, unsigned int count, CUjit_option *options,
			  void **values)
{
	(void)name;
	return QCUL_RUNTIME(data && size ? QCUL_LOCKED(add_link_input(state, type, data, size,
								      count, options, values))
					 : cudaErrorInvalidValue);
}

/* The whole file. NULL: it cannot be read. */
static char *read_link_input(const char *path, size_t *bytes)
{
	FILE *f = fopen(path, "rb");
	char *text = NULL;
	long size = -1;

	if (!f)
		return NULL;
	if (!fseek(f, 0, SEEK_END))
		size = ftell(f);
	/* A folder says that it is larger than all memory. */
	if (size > 0 && size < INT_MAX && !fseek(f, 0, SEEK_SET))
		text = malloc((size_t)size);
	if (text && fread(text, 1, (size_t)size, f) != (size_t)size) {
		free(text);
		text = NULL;
	}
	fclose(f);
	*bytes = (size_t)size;
	return text;
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
			  unsigned int count, CUjit_option *options, void **values)
{
	CUresult result;
	size_t bytes;
	char *data;

	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	data = read_link_input(path, &bytes);
	if (!data)
		return CUDA_ERROR_FILE_NOT_FOUND;
	result = QCUL_RUNTIME(
		QCUL_LOCKED(add_link_input(state, type, data, bytes, count, options, values)));
	free(data);
	return result;
}

static cudaError_t complete(CUlinkState state, void **image, size_t *bytes)
{
	struct CUlinkState_st *l = find_link_state(state);
	struct qCUcmd cmd = qcul_cmd(QCU_OP_LINK_COMPLETE);
	cudaError_t err = qcul_ready();

	if (!err && (!l || l->epoch != qcul_epoch()))
		err = cudaErrorInvalidResourceHandle;
	if (err)
		return err;
	cmd.link_complete.link = l->id;
	err = qcul_send(&cmd, 1);
	qcul_compiling_read(&l->c, err != cudaSuccess);
	if (err)
		return err;
	free(l->image);
	l->bytes = cmd.link_complete.bytes;
	l->image = malloc(l->bytes);
	if (!l->image)
		return cudaErrorMemoryAllocation;
	if (qcul_result(QCU_RESULT_DATA, l->image, l->bytes, true) != l->bytes)
		return cudaErrorUnknown;
	*image = l->image;
	if (bytes)
		*bytes = l->bytes;
	return cudaSuccess;
}

CUresult cuLinkComplete(CUlinkState state, void **image, size_t *bytes)
{
	return QCUL_RUNTIME(image ? QCUL_LOCKED(complete(state, image, bytes))
				  : cudaErrorInvalidValue);
}

static cudaError_t destroy_link_state(CUlinkState state)
{
	struct CUlinkState_st *l = find_link_state(state);
	struct qCUcmd cmd = qcul_cmd(QCU_OP_LINK_DESTROY);
	cudaError_t err = cudaSuccess;

	if (!l)
		return cudaErrorInvalidResourceHandle;
	cmd.link_destroy.link = l->id;
	if (l->epoch == qcul_epoch()) {
		err = qcul_send(&cmd, 1);
		qcul_handle_drop(&qcul_link_ids, l->id);
	}
	LIST_REMOVE(l, link);
	free(l->image);
	free(l);
	return err;
}

CUresult cuLinkDestroy(CUlinkState state)
{
	return QCUL_RUNTIME(QCUL_LOCKED(destroy_link_state(state)));
}

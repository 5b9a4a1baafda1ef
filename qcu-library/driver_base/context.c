// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Contexts. A process has one context on each device, because it has one mirror. It is the device's
 * primary context. cuCtxCreate makes another handle of it: what is allocated with one handle is
 * there with all.
 *
 * Each thread has a stack of contexts. The one on top is described in qcul_self, so that the
 * runtime uses it: its device is the thread's current device. A thread that has used the runtime
 * without a context has the primary context of its device on top.
 */
#include <stdlib.h>

#include "qcu-library/driver_base/context.h"
#include "qcu-library/driver_base/needs.h"
#include "qcu-library/link/fork.h"

#define CONTEXT_FLAGS CU_CTX_FLAGS_MASK

/* A context below the top of a thread's stack. */
struct frame {
	struct CUctx_st *context;
	int device;
	struct frame *below;
};
static QCUL_NEAR struct frame *stack;

static struct {
	struct CUctx_st primary[QCUL_DEVICES];
	/* Contexts that the program has made. They are never freed, so that any pointer can be
	 * checked. */
	struct CUctx_st *made;
	uint64_t numbers; /* numbers of contexts that were given out */
} process = {.numbers = QCUL_DEVICES};
QCUL_AT_FORK(QCUL_FORK_CONTEXTS)

static bool is_primary(const struct CUctx_st *c)
{
	return c >= process.primary && c < process.primary + QCUL_DEVICES;
}

/* Is there anything on the device that keeps it in use? */
static bool in_use(int device)
{
	return atomic_load(&process.primary[device].users) || qcul_devices_bound() >> device & 1;
}

static bool is_context_alive(const struct CUctx_st *c)
{
	return is_primary(c) ? in_use(c->device) : atomic_load(&c->users);
}

static bool is_known_context(const struct CUctx_st *context)
{
	uintptr_t offset = (uintptr_t)context - (uintptr_t)process.primary;
	const struct CUctx_st *c;

	if (is_primary(context))
		return offset % sizeof(*context) == 0 &&
		       context - process.primary < qcul_device_count();
	pthread_mutex_lock(&at_fork.lock);
	for (c = process.made; c && c != context; c = c->next)
		;
	pthread_mutex_unlock(&at_fork.lock);
	return c;
}

static void number_primaries(void)
{
	int i;

	for (i = 0; i < QCUL_DEVICES; i++) {
		process.primary[i].device = i;
		process.primary[i].number = (uint64_t)i + 1;
	}
}

struct CUctx_st *qcul_driver_primary(int device)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, number_primaries);
	return &process.primary[device];
}

struct CUctx_st *qcul_driver_current(void)
{
	if (!qcul_self.bound)
		return NULL;
	return qcul_self.context ? qcul_self.context : qcul_driver_primary(qcul_self.device);
}

CUresult qcul_driver_ready(void)
{
	unsigned int bindings = atomic_load(&qcul_bindings);
	const struct CUctx_st *c = qcul_driver_current();
	CUresult result = qcul_driver_started();

	if (!result && !c)
		result = CUDA_ERROR_INVALID_CONTEXT;
	if (!result && !is_context_alive(c))
		result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (!result)
		qcul_self.ready = bindings;
	return result;
}

CUresult qcul_driver_move_to_stream(CUstream stream, struct qcul_driver_home *home)
{
	CUresult result;
	uint32_t id;

	*home = (struct qcul_driver_home){qcul_self.device, qcul_self.device_chosen};
	if (!stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread)
		return qcul_driver_ready();
	result = qcul_driver_started();
	if (!result && !qcul_self.bound && !qcul_stream_id(stream, &id))
		(void)qcul_driver_move((struct qcul_driver_home){qcul_stream_device(id), true});
	return result;
}

CUresult qcul_driver_device(struct CUctx_st *context, int *device)
{
	if (!context || !is_known_context(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!is_context_alive(context))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*device = context->device;
	return CUDA_SUCCESS;
}

CUresult qcul_driver_device_or_current(struct CUctx_st *context, int *device)
{
	CUresult result = context ? qcul_driver_device(context, device) : qcul_driver_ready();

	if (!result && !context)
		*device = qcul_driver_current()->device;
	return result;
}

struct CUctx_st *qcul_driver_context_of(int device)
{
	struct CUctx_st *c = qcul_driver_current();

	return c && c->device == device ? c : qcul_driver_primary(device);
}

/* ---- the stack ---- */

static void put_on_top(struct CUctx_st *c, int device)
{
	qcul_self.bound = true;
	qcul_self.counted = 0;
	qcul_self.ready = 0;
	qcul_self_context(is_primary(c) ? NULL : c, c->green, c->green ? c->green->own : NULL);
	qcul_self.device = device;
	qcul_self.device_chosen = true;
}

static void pop(void)
{
	struct frame *f = stack;

	if (f) {
		stack = f->below;
		put_on_top(f->context, f->device);
		free(f);
		return;
	}
	qcul_self.bound = false;
	qcul_self.counted = 0;
	qcul_self.ready = 0;
	qcul_self_context(NULL, NULL, NULL);
	qcul_self.device_chosen = false;
	qcul_self.device = qcul_device_default();
}

static CUresult push_context(struct CUctx_st *c)
{
	struct CUctx_st *top = qcul_driver_current();
	struct frame *f;

	if (top) {
		f = malloc(sizeof(*f));
		if (!f)
			return CUDA_ERROR_OUT_OF_MEMORY;
		*f = (struct frame){top, top->device, stack};
		stack = f;
	}
	put_on_top(c, c->device);
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	int device;
	CUresult result = context ? qcul_driver_device(context, &device) : CUDA_ERROR_INVALID_VALUE;

	return result ? result : push_context(context);
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
	struct CUctx_st *top = qcul_driver_current();

	if (!top)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (context)
		*context = top;
	pop();
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	CUresult result;
	int device;

	if (!context) {
		if (qcul_self.bound)
			pop();
		return CUDA_SUCCESS;
	}
	result = qcul_driver_device(context, &device);
	if (!result)
		put_on_top(context, device);
	return result;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	*context = qcul_driver_current();
	return CUDA_SUCCESS;
}

/* ---- flags ---- */

CUresult qcul_driver_flags_check(unsigned int flags)
{
	unsigned int how = flags & CU_CTX_SCHED_MASK;

	if (flags & ~CONTEXT_FLAGS || how & (how - 1))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* How calls wait is the same for all contexts of a process. */
CUresult qcul_driver_flags_set(struct CUctx_st *c, unsigned int flags)
{
	CUresult result = qcul_driver_flags_check(flags);

	if (!result)
		result = QCUL_RUNTIME(cudaSetDeviceFlags(flags & cudaDeviceMask));
	if (!result)
		atomic_store(&c->flags, flags);
	return result;
}

/* ---- primary contexts ---- */

CUresult qcul_driver_device_check(CUdevice device)
{
	return device >= 0 && device < qcul_device_count() ? CUDA_SUCCESS
							   : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	CUresult result = qcul_driver_device_check(device);

	if (!result && !context)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	*context = qcul_driver_primary(device);
	atomic_fetch_add(&(*context)->users, 1);
	return CUDA_SUCCESS;
}

/* Frees everything on the device. */
static CUresult reset(int device)
{
	return QCUL_ON_DEVICE(device, cudaDeviceReset());
}

static bool any_made(int device)
{
	const struct CUctx_st *c;

	pthread_mutex_lock(&at_fork.lock);
	for (c = process.made; c && (c->device != device || !atomic_load(&c->users)); c = c->next)
		;
	pthread_mutex_unlock(&at_fork.lock);
	return c;
}

/* The last release frees everything, unless the runtime or another context uses the device. */
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	CUresult result = qcul_driver_device_check(device);
	unsigned int users;

	if (result)
		return result;
	users = atomic_load(&process.primary[device].users);
	do {
		if (!users)
			return CUDA_ERROR_INVALID_CONTEXT;
	} while (!atomic_compare_exchange_weak(&process.primary[device].users, &users, users - 1));
	qcul_bindings_changed();
	return users > 1 || in_use(device) || any_made(device) ? CUDA_SUCCESS : reset(device);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	CUresult result = qcul_driver_device_check(device);

	return result ? result : reset(device);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
	CUresult result = qcul_driver_device_check(device);

	if (!result && (!flags || !active))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	*flags = atomic_load(&process.primary[device].flags);
	*active = in_use(device);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
	CUresult result = qcul_driver_device_check(device);

	return result ? result : qcul_driver_flags_set(qcul_driver_primary(device), flags);
}

/* ---- contexts that a program makes ---- */

static void list_context(struct CUctx_st *c)
{
	pthread_mutex_lock(&at_fork.lock);
	c->number = ++process.numbers;
	c->next = process.made;
	process.made = c;
	pthread_mutex_unlock(&at_fork.lock);
}

static CUresult create_context(CUcontext *context, unsigned int flags, CUdevice device)
{
	CUresult result = qcul_driver_device_check(device);
	struct CUctx_st *c;

	if (!result && !context)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = qcul_driver_flags_check(flags);
	if (result)
		return result;
	c = calloc(1, sizeof(*c));
	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	c->device = device;
	atomic_store(&c->users, 1);
	result = qcul_driver_flags_set(c, flags);
	if (!result)
		result = push_context(c);
	if (result) {
		free(c);
		return result;
	}
	list_context(c);
	*context = c;
	return CUDA_SUCCESS;
}

struct CUctx_st *qcul_driver_context_from(struct qcul_green *green)
{
	struct CUctx_st *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->device = green->device;
	c->green = green;
	atomic_store(&c->users, 1);
	list_context(c);
	return c;
}

void qcul_driver_context_ends(struct CUctx_st *c)
{
	atomic_store(&c->users, 0);
	qcul_bindings_changed();
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
	return create_context(context, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *params, int count,
			unsigned int flags, CUdevice device)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (count < 0 || (count && !params))
		return CUDA_ERROR_INVALID_VALUE;
	if (count)
		return qcul_driver_unsupported("a context with part of the multiprocessors", &said);
	return create_context(context, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned int flags,
			CUdevice device)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (params && params->cigParams)
		return qcul_driver_unsupported("a context for graphics", &said);
	return params ? cuCtxCreate_v3(context, params->execAffinityParams,
				       params->numExecAffinityParams, flags, device)
		      : create_context(context, flags, device);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
	int device;
	CUresult result = context ? qcul_driver_device(context, &device) : CUDA_ERROR_INVALID_VALUE;

	if (result)
		return result;
	/* A green context's ends with that. */
	if (is_primary(context) || context->green)
		return CUDA_ERROR_INVALID_CONTEXT;
	result = qcul_driver_wait(device);
	atomic_store(&context->users, 0);
	qcul_bindings_changed();
	if (qcul_driver_current() == context)
		pop();
	return result;
}

/* Attaching counts the uses of a context; each use is given back by detaching or destroying. */
CUresult cuCtxAttach(CUcontext *context, unsigned int flags)
{
	struct CUctx_st *c = qcul_driver_current();

	if (!context || flags)
		return CUDA_ERROR_INVALID_VALUE;
	atomic_fetch_add(&c->users, 1);
	*context = c;
	return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext context)
{
	/* Only the thread's current context can be detached. */
	if (context != qcul_driver_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (is_primary(context))
		return cuDevicePrimaryCtxRelease_v2(context->device);
	if (atomic_load(&context->users) > 1) {
		atomic_fetch_sub(&context->users, 1);
		return CUDA_SUCCESS;
	}
	return cuCtxDestroy_v2(context);
}

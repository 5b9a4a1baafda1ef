// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What nvcc's start-up code registers: fat binaries, and the kernels and variables in them, by the
 * address of their host-side shadow. Registering only stores this information. The mirror learns of
 * a module when something in it is first used, so a program that never calls CUDA never opens the
 * device.
 *
 * Nothing that was registered is ever freed. A program that is unloading or exiting may still
 * launch from another thread, and the objects that this thread holds must stay readable.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/module/module.h"
#include "qcu-library/module/by_host.h"
#include "qcu-library/link/fork.h"
#include "qcu-library/malloc/malloc_hook.h"
#include "qcu-library/memory/managed_var.h"

#define WRAPPER_MAGIC 0x466243b1
#define FATBIN_MAGIC  0xba55ed50u
#define KERNEL_MAGIC  0x6c6e7271u

/* What the compiler puts into a program for each fat binary, and the start of the fat binary. */
struct wrapper {
	int magic, version;
	const struct fatbin *data;
	/* version 2: the fat binary of each unit; data is the result of linking them */
	const struct fatbin *const *parts;
};
struct fatbin {
	uint32_t magic;
	uint16_t version, header_bytes;
	uint64_t bytes;
};

struct qcul_module {
	const void *image; /* NULL: the registered data is not an image */
	size_t bytes;
	struct qcu_jit jit; /* how to compile it */
	bool by_name;	    /* the program loaded it at run time; nothing in it was registered */
	uint32_t id;
	unsigned int ready;  /* epoch in which the mirror has it */
	unsigned int failed; /* epoch in which the mirror could not load it, and the error */
	cudaError_t why;
	atomic_bool dead; /* unregistered; the mirror may not have been told yet */
	struct variable *variables;
	struct qcul_managed_vars managed;
	struct qcul_module *next;
};

struct variable_address {
	unsigned int epoch;
	void *addr;
	size_t size;
};
struct variable {
	const char *name;
	struct qcul_module *module;
	struct variable *next;	     /* next variable of the module */
	struct variable_address *at; /* one for each device; allocated on first use */
};

/* The part's lock protects what the mirror has loaded. */
static struct {
	pthread_rwlock_t table_lock; /* protects the tables; launches take it for reading */
	struct qcul_by_host kernels, variables;
	struct qcul_module *modules;
	_Atomic uint64_t changes;
} process = {.table_lock = PTHREAD_RWLOCK_INITIALIZER};

static void lock_tables(void)
{
	pthread_rwlock_wrlock(&process.table_lock);
}

static void unlock_tables(void)
{
	pthread_rwlock_unlock(&process.table_lock);
}

/* The owner of the old lock was a thread of the parent. */
static void renew_table_lock(void)
{
	static const pthread_rwlock_t fresh = PTHREAD_RWLOCK_INITIALIZER;

	process.table_lock = fresh;
}

static void forget_variables(int device);
QCUL_AT_FORK(QCUL_FORK_MODULES, .before = lock_tables, .parent = unlock_tables,
	     .child = renew_table_lock, .reset = forget_variables)

static void *look_up_by_host(const struct qcul_by_host *t, const void *host)
{
	void *value;

	pthread_rwlock_rdlock(&process.table_lock);
	value = qcul_by_host_get(t, host);
	pthread_rwlock_unlock(&process.table_lock);
	return value;
}

/* ---- registration ---- */

static void say_out_of_memory(void)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	qcul_say_once(&said, "out of memory while the program registered its kernels");
}

static void enlist_module(struct qcul_module *m)
{
	pthread_rwlock_wrlock(&process.table_lock);
	m->next = process.modules;
	process.modules = m;
	pthread_rwlock_unlock(&process.table_lock);
}

static size_t length_of_fatbin(const struct fatbin *f)
{
	return f->header_bytes + f->bytes;
}

/*
 * A program built with -rdc=true contains, besides the linked machine code, the fat binaries that
 * were linked. Only these contain PTX. So all of them go to the device, one after the other.
 */
static void take_image(struct qcul_module *m, const struct wrapper *w)
{
	const struct fatbin *const *part;
	unsigned char *all;
	size_t bytes = length_of_fatbin(w->data), at = bytes;

	m->image = w->data;
	m->bytes = bytes;
	if (w->version != 2 || !w->parts)
		return;
	for (part = w->parts; *part && (*part)->magic == FATBIN_MAGIC; part++)
		bytes += length_of_fatbin(*part);
	all = malloc(bytes);
	if (!all) {
		say_out_of_memory();
		return;
	}
	memcpy(all, w->data, at);
	for (part = w->parts; at < bytes; part++) {
		memcpy(all + at, *part, length_of_fatbin(*part));
		at += length_of_fatbin(*part);
	}
	m->image = all;
	m->bytes = bytes;
}

void **__cudaRegisterFatBinary(void *data)
{
	const struct wrapper *w = data;
	struct qcul_module *m = calloc(1, sizeof(*m));

	if (!m) {
		say_out_of_memory();
		return NULL;
	}
	if (w->magic == WRAPPER_MAGIC && w->data->magic == FATBIN_MAGIC)
		take_image(m, w);
	enlist_module(m);
	qcul_malloc_arm();
	return (void **)m;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
	(void)handle;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
			    int thread_limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid,
			    int *warp)
{
	struct CUkern_st *k = calloc(1, sizeof(*k));
	bool ok = false;

	(void)device;
	(void)thread_limit;
	(void)tid;
	(void)bid;
	(void)block;
	(void)grid;
	(void)warp;
	if (k && handle) {
		k->magic = KERNEL_MAGIC;
		k->name = name;
		k->module = (struct qcul_module *)handle;
		pthread_rwlock_wrlock(&process.table_lock);
		/* Callers may pass a cudaKernel_t in place of a host function. */
		ok = qcul_by_host_put(&process.kernels, host, k) &&
		     qcul_by_host_put(&process.kernels, k, k);
		pthread_rwlock_unlock(&process.table_lock);
	}
	if (!ok)
		say_out_of_memory();
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
		       size_t size, int constant, int global)
{
	struct variable *v = calloc(1, sizeof(*v));
	bool ok = false;

	(void)device;
	(void)ext;
	(void)size;
	(void)constant;
	(void)global;
	if (v && handle) {
		v->name = name;
		v->module = (struct qcul_module *)handle;
		pthread_rwlock_wrlock(&process.table_lock);
		v->next = v->module->variables;
		v->module->variables = v;
		ok = qcul_by_host_put(&process.variables, host, v);
		pthread_rwlock_unlock(&process.table_lock);
	}
	if (!ok)
		say_out_of_memory();
}

void __cudaRegisterManagedVar(void **handle, void **pointer, char *device, const char *name,
			      int ext, size_t size, int constant, int global)
{
	struct qcul_module *m = (struct qcul_module *)handle;
	bool ok = false;

	(void)device;
	(void)ext;
	(void)constant;
	(void)global;
	if (m) {
		pthread_rwlock_wrlock(&process.table_lock);
		ok = qcul_managed_var_add(&m->managed, name, pointer, size);
		pthread_rwlock_unlock(&process.table_lock);
	}
	if (!ok)
		say_out_of_memory();
}

/* Removes the module's kernels and variables from the tables, and marks the module as dead. */
static void retire(struct qcul_module *m)
{
	size_t i;

	pthread_rwlock_wrlock(&process.table_lock);
	for (i = 0; i < process.kernels.room; i++) {
		struct CUkern_st *k = process.kernels.v[i].value;

		if (k && k->module == m) {
			k->magic = 0;
			process.kernels.v[i].value = NULL;
		}
	}
	for (i = 0; i < process.variables.room; i++) {
		struct variable *v = process.variables.v[i].value;

		if (v && v->module == m)
			process.variables.v[i].value = NULL;
	}
	atomic_store(&m->dead, true);
	pthread_rwlock_unlock(&process.table_lock);
}

/*
 * At exit this runs after everything else. If the mirror hangs, a wait for it here would hang, too.
 * So nothing is sent. The module is unloaded by the end of the session, or by the next load in this
 * process.
 */
void __cudaUnregisterFatBinary(void **handle)
{
	if (handle)
		retire((struct qcul_module *)handle);
}

/* ---- loading in the mirror; the lock is held ---- */

/* Other memory may get their addresses. */
static void forget_ranges_of_variables(const struct qcul_module *m)
{
	struct qcul_range range;
	struct variable *v;
	int i;

	for (v = m->variables; v; v = v->next)
		for (i = 0; v->at && i < QCUL_DEVICES; i++)
			if (v->at[i].epoch == qcul_epoch())
				(void)qcul_mem_take((uint64_t)(uintptr_t)v->at[i].addr,
						    QCUL_MEM_VARIABLE, &range);
}

static void unload_dead(void)
{
	struct qcul_module *m, *first;

	pthread_rwlock_rdlock(&process.table_lock);
	first = process.modules;
	pthread_rwlock_unlock(&process.table_lock);
	for (m = first; m; m = m->next) {
		struct qCUcmd cmd;

		if (!atomic_load(&m->dead) || m->ready != qcul_epoch())
			continue;
		cmd = qcul_cmd(QCU_OP_MODULE_UNLOAD);
		cmd.module_unload.module = m->id;
		m->ready = 0;
		forget_ranges_of_variables(m);
		if (qcul_send(&cmd, 1) == cudaSuccess) {
			qcul_handle_drop(&qcul_module_ids, m->id);
			qcul_managed_vars_free(&m->managed);
		}
	}
}

static void unload_unusable(struct qcul_module *m)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_MODULE_UNLOAD);

	cmd.module_unload.module = m->id;
	(void)qcul_send(&cmd, 1);
}

/*
 * Gets a list of names of a module from the mirror, each with its NUL. The module must be loaded.
 * The caller frees the list.
 */
static cudaError_t list_names(const struct qcul_module *m, uint32_t what, char **names,
			      uint32_t *count)
{
	uint32_t room = 4096;
	struct qCUcmd cmd;
	cudaError_t err;

	for (;;) {
		*names = malloc(room);
		if (!*names)
			return cudaErrorMemoryAllocation;
		cmd = qcul_cmd(QCU_OP_MODULE_NAMES);
		cmd.module_names.buf.addr = (uint64_t)(uintptr_t)*names;
		cmd.module_names.buf.len = room;
		cmd.module_names.module = m->id;
		cmd.module_names.what = what;
		err = qcul_send(&cmd, 1);
		*count = cmd.module_names.count;
		if (!err && cmd.module_names.bytes <= room)
			return cudaSuccess;
		free(*names);
		*names = NULL;
		if (err)
			return err;
		room = cmd.module_names.bytes;
	}
}

static cudaError_t add_managed(struct qcul_module *m, const char *name)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_VAR_FIND);
	cudaError_t err;
	char *copy;

	cmd.var_find.buf.addr = (uint64_t)(uintptr_t)name;
	cmd.var_find.buf.len = strlen(name);
	cmd.var_find.module = m->id;
	cmd.var_find.managed = 1;
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	copy = strdup(name);
	if (copy && qcul_managed_var_add(&m->managed, copy, NULL, cmd.var_find.size))
		return cudaSuccess;
	free(copy);
	return cudaErrorMemoryAllocation;
}

/*
 * Finds the managed variables of a module that the program loaded at run time. CUDA does not list
 * them (then there is nothing to do here).
 */
static cudaError_t list_managed(struct qcul_module *m)
{
	uint32_t count = 0, i;
	cudaError_t err;
	char *names, *name;

	err = list_names(m, QCU_NAMES_MANAGED, &names, &count);
	if (err == cudaErrorNotSupported)
		return cudaSuccess;
	for (i = 0, name = names; i < count && !err; i++, name += strlen(name) + 1)
		err = add_managed(m, name);
	free(names);
	return err;
}

static cudaError_t load_module(struct qcul_module *m)
{
	struct qcul_handle *slot;
	struct qCUcmd cmd;
	cudaError_t err;

	if (m->ready == qcul_epoch())
		return cudaSuccess;
	if (m->failed == qcul_epoch())
		return m->why;
	if (!m->image)
		return cudaErrorInvalidKernelImage;
	unload_dead();
	slot = qcul_handle_new(&qcul_module_ids, &m->id);
	if (!slot)
		return cudaErrorMemoryAllocation;
	slot->device = -1;
	cmd = qcul_cmd(QCU_OP_MODULE_LOAD);
	cmd.module_load.buf.addr = (uint64_t)(uintptr_t)m->image;
	cmd.module_load.buf.len = m->bytes;
	cmd.module_load.module = m->id;
	cmd.module_load.jit = m->jit;
	err = qcul_send(&cmd, 1);
	if (!err && m->by_name && !m->managed.first)
		err = list_managed(m);
	if (!err) {
		err = qcul_managed_vars_bind(&m->managed, m->id);
		if (err)
			unload_unusable(m);
	}
	if (!err) {
		m->ready = qcul_epoch();
		return cudaSuccess;
	}
	qcul_handle_drop(&qcul_module_ids, m->id);
	if (err == cudaErrorNoKernelImageForDevice)
		qcul_module_say_no_code(m->image, m->bytes);
	/* An error in the image is permanent. Missing memory is not: memory may be free later. */
	if (err != cudaErrorMemoryAllocation && !qcul_sticky(err)) {
		m->failed = qcul_epoch();
		m->why = err;
	}
	return err;
}

static cudaError_t find_kernel(struct CUkern_st *k)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_KERNEL_FIND);
	struct qcul_handle *slot;
	cudaError_t err;

	slot = qcul_handle_new(&qcul_kernel_ids, &k->id);
	if (!slot)
		return cudaErrorMemoryAllocation;
	slot->device = -1;
	cmd.kernel_find.buf.addr = (uint64_t)(uintptr_t)k->name;
	cmd.kernel_find.buf.len = strlen(k->name);
	cmd.kernel_find.module = k->module->id;
	cmd.kernel_find.kernel = k->id;
	err = qcul_send(&cmd, 1);
	if (err) {
		qcul_handle_drop(&qcul_kernel_ids, k->id);
		if (err == cudaErrorNoKernelImageForDevice)
			qcul_module_say_no_code(k->module->image, k->module->bytes);
		return err == cudaErrorSymbolNotFound ? cudaErrorInvalidDeviceFunction : err;
	}
	k->param_count = cmd.kernel_find.params;
	k->param_bytes = cmd.kernel_find.param_bytes;
	return cudaSuccess;
}

static bool params_fit(const struct qcu_param *params, uint32_t count, uint32_t bytes)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		if (params[i].offset > bytes || params[i].size > bytes - params[i].offset)
			return false;
	return true;
}

/* Gets the offsets of the parameters. Launches need them to pack the arguments. */
static cudaError_t learn_params(struct CUkern_st *k)
{
	size_t bytes = sizeof(struct qcu_kernel_desc) + k->param_count * sizeof(struct qcu_param);
	struct qCUcmd cmd = qcul_cmd(QCU_OP_KERNEL_INFO);
	struct qcu_param *params = NULL;
	cudaError_t err;
	char *info;

	info = malloc(bytes);
	if (k->param_count)
		params = malloc(k->param_count * sizeof(*params));
	if (!info || (k->param_count && !params)) {
		err = cudaErrorMemoryAllocation;
		goto out;
	}
	cmd.kernel_info.buf.addr = (uint64_t)(uintptr_t)info;
	cmd.kernel_info.buf.len = bytes;
	cmd.kernel_info.kernel = k->id;
	err = qcul_send(&cmd, 1);
	if (err)
		goto out;
	if (params)
		memcpy(params, info + sizeof(struct qcu_kernel_desc),
		       k->param_count * sizeof(*params));
	if (!params_fit(params, k->param_count, k->param_bytes)) {
		err = cudaErrorInvalidKernelImage;
		goto out;
	}
	free(k->params);
	k->params = params;
	params = NULL;
out:
	free(params);
	free(info);
	return err;
}

/*
 * The lock is held. Limits that are known are not written again, because other threads read
 * them without the lock.
 */
static cudaError_t learn_limits(struct CUkern_st *k, int device)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_KERNEL_INFO);
	struct qcu_kernel_desc desc;
	cudaError_t err;

	if (!k->limits)
		k->limits = calloc(QCUL_DEVICES, sizeof(*k->limits));
	if (!k->limits)
		return cudaErrorMemoryAllocation;
	if (atomic_load(&k->limits[device].epoch) == qcul_epoch())
		return cudaSuccess;
	cmd.kernel_info.buf.addr = (uint64_t)(uintptr_t)&desc;
	cmd.kernel_info.buf.len = sizeof(desc);
	cmd.kernel_info.kernel = k->id;
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	if (!k->limits[device].desc)
		k->limits[device].desc = malloc(sizeof(desc));
	if (!k->limits[device].desc)
		return cudaErrorMemoryAllocation;
	*k->limits[device].desc = desc;
	k->limits[device].max_threads = desc.max_threads;
	k->limits[device].max_dynamic = desc.max_dynamic_shared;
	k->limits[device].clusters = desc.cluster_must_be_set || desc.cluster[0];
	atomic_store_explicit(&k->limits[device].epoch, qcul_epoch(), memory_order_release);
	return cudaSuccess;
}

cudaError_t qcul_kernel_limits(struct CUkern_st *k, const struct qcul_kernel_limits **limits)
{
	int device = qcul_self.device;
	cudaError_t err = cudaSuccess;

	/* Loading the kernel has allocated the table. */
	if (atomic_load_explicit(&k->limits[device].epoch, memory_order_acquire) != qcul_epoch()) {
		pthread_mutex_lock(&at_fork.lock);
		err = learn_limits(k, device);
		pthread_mutex_unlock(&at_fork.lock);
	}
	*limits = &k->limits[device];
	return err;
}

cudaError_t qcul_kernel_desc(struct CUkern_st *k, struct qcu_kernel_desc *desc)
{
	int device = qcul_self.device;
	cudaError_t err;

	/*
	 * The lock is needed because this copies a whole structure. The numbers that launches read
	 * are single words.
	 */
	pthread_mutex_lock(&at_fork.lock);
	err = learn_limits(k, device);
	if (!err)
		*desc = *k->limits[device].desc;
	pthread_mutex_unlock(&at_fork.lock);
	return err;
}

bool qcul_kernel_has_dynamic(const struct CUkern_st *k, int device, uint32_t bytes)
{
	const struct qcul_kernel_limits *l = &k->limits[device];

	return atomic_load_explicit(&l->epoch, memory_order_acquire) == qcul_epoch() &&
	       l->max_dynamic == bytes;
}

uint64_t qcul_kernel_changes(void)
{
	return atomic_load(&process.changes);
}

void qcul_kernel_limits_forget(struct CUkern_st *k, int device)
{
	atomic_fetch_add(&process.changes, 1);
	atomic_store(&k->limits[device].epoch, 0);
}

cudaError_t qcul_kernel_load(struct CUkern_st *k)
{
	cudaError_t err;

	if (atomic_load_explicit(&k->ready, memory_order_acquire) == qcul_epoch())
		return cudaSuccess;
	pthread_mutex_lock(&at_fork.lock);
	err = cudaSuccess;
	if (atomic_load(&k->ready) != qcul_epoch()) {
		err = load_module(k->module);
		if (!err)
			err = find_kernel(k);
		if (!err)
			err = learn_params(k);
		if (!err)
			err = learn_limits(k, qcul_self.device);
		if (!err)
			atomic_store_explicit(&k->ready, qcul_epoch(), memory_order_release);
	}
	pthread_mutex_unlock(&at_fork.lock);
	return err;
}

/* ---- look-ups ---- */

cudaError_t qcul_kernel(const void *func, struct CUkern_st **kernel)
{
	if (!func)
		return cudaErrorInvalidDeviceFunction;
	*kernel = look_up_by_host(&process.kernels, func);
	/*
	 * NVIDIA's runtime treats an unknown function as a stale cudaKernel_t, and returns this
	 * error.
	 */
	return *kernel ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

bool qcul_kernel_valid(const struct CUkern_st *kernel)
{
	return qcul_may_point(kernel) && kernel->magic == KERNEL_MAGIC;
}

/* The lock is held. */
static cudaError_t look_up_variable(struct variable *v, struct variable_address *found)
{
	struct qcul_range range = {.kind = QCUL_MEM_VARIABLE};
	struct qCUcmd cmd;
	cudaError_t err = load_module(v->module);

	if (err)
		return err;
	cmd = qcul_cmd(QCU_OP_VAR_FIND);
	cmd.var_find.buf.addr = (uint64_t)(uintptr_t)v->name;
	cmd.var_find.buf.len = strlen(v->name);
	cmd.var_find.module = v->module->id;
	err = qcul_send(&cmd, 1);
	if (err)
		return err == cudaErrorSymbolNotFound ? cudaErrorInvalidSymbol : err;
	found->epoch = qcul_epoch();
	found->addr = (void *)(uintptr_t)cmd.var_find.addr;
	found->size = cmd.var_find.size;
	range.start = cmd.var_find.addr;
	range.len = cmd.var_find.size;
	range.device = qcul_self.device;
	range.epoch = qcul_epoch();
	if (!qcul_reserve(range.start, range.len))
		range.flags = QCUL_MEM_AMBIGUOUS;
	/* This fails if an earlier look-up has already added the range. */
	(void)qcul_mem_add(&range);
	return cudaSuccess;
}

static cudaError_t locate(struct variable *v, void **addr, size_t *size)
{
	struct variable_address *found;
	cudaError_t err = cudaSuccess;

	pthread_mutex_lock(&at_fork.lock);
	if (!v->at)
		v->at = calloc(QCUL_DEVICES, sizeof(*v->at));
	if (!v->at) {
		err = cudaErrorMemoryAllocation;
		goto out;
	}
	found = &v->at[qcul_self.device];
	if (found->epoch != qcul_epoch())
		err = look_up_variable(v, found);
	if (!err) {
		*addr = found->addr;
		*size = found->size;
	}
out:
	pthread_mutex_unlock(&at_fork.lock);
	return err;
}

/* The compiler's code identifies a managed variable by its address. */
static cudaError_t managed_variable(const void *symbol, void **addr, size_t *size)
{
	const struct qcul_managed_var *v = NULL;
	const struct qcul_module *m;

	if (!symbol)
		return cudaErrorInvalidSymbol;
	pthread_rwlock_rdlock(&process.table_lock);
	for (m = process.modules; m && !v; m = m->next)
		if (!atomic_load(&m->dead))
			v = qcul_managed_var_find(&m->managed, symbol);
	pthread_rwlock_unlock(&process.table_lock);
	if (!v)
		return cudaErrorInvalidSymbol;
	*addr = v->addr;
	*size = v->bytes;
	return cudaSuccess;
}

cudaError_t qcul_variable(const void *symbol, void **addr, size_t *size)
{
	struct variable *v = look_up_by_host(&process.variables, symbol);

	return v ? locate(v, addr, size) : managed_variable(symbol, addr, size);
}

/* ---- modules that a program loads at run time ---- */

struct qcul_module *qcul_module_new(const void *image, size_t bytes, const struct qcu_jit *jit)
{
	struct qcul_module *m = calloc(1, sizeof(*m));
	void *copy = malloc(bytes);

	if (!m || !copy) {
		free(m);
		free(copy);
		return NULL;
	}
	m->image = memcpy(copy, image, bytes);
	m->bytes = bytes;
	m->jit = *jit;
	m->by_name = true;
	enlist_module(m);
	return m;
}

cudaError_t qcul_module_load(struct qcul_module *m)
{
	cudaError_t err;

	pthread_mutex_lock(&at_fork.lock);
	err = load_module(m);
	pthread_mutex_unlock(&at_fork.lock);
	return err;
}

/*
 * Called before the program first uses a managed variable. If the variables have no memory the
 * program will crash there, so print the reason first.
 */
char __cudaInitModule(void **handle)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	struct qcul_module *m = (struct qcul_module *)handle;
	cudaError_t err = m ? qcul_ready() : cudaErrorMemoryAllocation;

	if (!err)
		err = qcul_module_load(m);
	if (err && m && m->managed.first)
		qcul_say_once(&said, "the __managed__ variables cannot be set up: %s",
			      cudaGetErrorName(err));
	return 1;
}

void qcul_module_unload(struct qcul_module *m)
{
	retire(m);
	pthread_mutex_lock(&at_fork.lock);
	unload_dead();
	pthread_mutex_unlock(&at_fork.lock);
}

cudaError_t qcul_module_kernel(struct qcul_module *m, const char *name, struct CUkern_st **kernel)
{
	struct CUkern_st *k = NULL;
	cudaError_t err;
	size_t i;

	pthread_rwlock_wrlock(&process.table_lock);
	for (i = 0; i < process.kernels.room && !k; i++) {
		struct CUkern_st *known = process.kernels.v[i].value;

		if (known && known->module == m && !strcmp(known->name, name))
			k = known;
	}
	if (!k) {
		k = calloc(1, sizeof(*k));
		if (k) {
			k->magic = KERNEL_MAGIC;
			k->name = strdup(name);
			k->module = m;
		}
		if (!k || !k->name || !qcul_by_host_put(&process.kernels, k, k)) {
			pthread_rwlock_unlock(&process.table_lock);
			free(k);
			return cudaErrorMemoryAllocation;
		}
	}
	pthread_rwlock_unlock(&process.table_lock);
	err = qcul_kernel_load(k);
	if (!err)
		*kernel = k;
	return err == cudaErrorInvalidDeviceFunction ? cudaErrorSymbolNotFound : err;
}

cudaError_t qcul_module_variable(struct qcul_module *m, const char *name, void **addr, size_t *size)
{
	struct variable *v;
	cudaError_t err;

	pthread_rwlock_wrlock(&process.table_lock);
	for (v = m->variables; v && strcmp(v->name, name); v = v->next)
		;
	if (!v) {
		v = calloc(1, sizeof(*v));
		if (v)
			v->name = strdup(name);
		if (!v || !v->name) {
			pthread_rwlock_unlock(&process.table_lock);
			free(v);
			return cudaErrorMemoryAllocation;
		}
		v->module = m;
		v->next = m->variables;
		m->variables = v;
	}
	pthread_rwlock_unlock(&process.table_lock);
	err = locate(v, addr, size);
	return err == cudaErrorInvalidSymbol ? cudaErrorSymbolNotFound : err;
}

cudaError_t qcul_module_managed(struct qcul_module *m, const char *name, void **addr, size_t *size)
{
	const struct qcul_managed_var *v;
	cudaError_t err;

	pthread_mutex_lock(&at_fork.lock);
	err = load_module(m);
	v = err ? NULL : qcul_managed_var_named(&m->managed, name);
	/* A variable that was not listed stays where the GPU has it. */
	if (!err && !v) {
		err = add_managed(m, name);
		if (!err)
			err = qcul_managed_var_copy(&m->managed, m->id);
		v = err ? NULL : m->managed.first;
	}
	if (v) {
		*addr = v->addr;
		*size = v->bytes;
	}
	pthread_mutex_unlock(&at_fork.lock);
	return err == cudaErrorInvalidSymbol ? cudaErrorSymbolNotFound : err;
}

cudaError_t qcul_module_names(struct qcul_module *m, char **names, unsigned int *count)
{
	cudaError_t err;

	pthread_mutex_lock(&at_fork.lock);
	err = load_module(m);
	if (!err)
		err = list_names(m, QCU_NAMES_KERNELS, names, count);
	pthread_mutex_unlock(&at_fork.lock);
	return err;
}

/* A child's session has another number, so all that modules have is stale there. */
static void forget_variables(int device)
{
	struct qcul_module *m;
	size_t i;

	if (device < 0)
		return;
	atomic_fetch_add(&process.changes, 1);
	pthread_mutex_lock(&at_fork.lock);
	lock_tables();
	for (i = 0; i < process.variables.room; i++) {
		struct variable *v = process.variables.v[i].value;

		if (v && v->at)
			v->at[device].epoch = 0;
	}
	for (m = process.modules; m; m = m->next)
		if (m->managed.copied && m->ready == qcul_epoch())
			(void)qcul_managed_vars_bind(&m->managed, m->id);
	unlock_tables();
	pthread_mutex_unlock(&at_fork.lock);
}

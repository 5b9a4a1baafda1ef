/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Modules. The PTX of a fat binary is translated once for each device that uses it, because each
 * device has its own variables. The translation for device 0 is made when the module is loaded, so
 * that a program that does not parse is rejected at once. Managed variables that have been bound to
 * host memory are the same on all devices.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/code/code.h"
#include "qcu-device/soft/gpu/soft.h"

struct be_module {
	struct be_module *next;
	struct be *be;
	uint64_t cost;	      /* bytes of the text that count against the limit for modules */
	pthread_mutex_t lock; /* protects the members below */
	char *text;
	size_t len;
	unsigned int max_regs; /* the limit for its kernels, from nvcc or the load; 0: none */
	struct ptx_module *dev[SOFT_GPUS_MAX]; /* NULL: not used there yet */
	struct be_kernel *kernels;
	struct ptx_bound *bound;
	size_t bound_count;
	struct be_wanted *wanted; /* where its variables are wanted, until they are there */
	size_t wanted_count;
};

static int ptx_error_code(struct be *be, enum ptx_status st)
{
	switch (st) {
	case PTX_OK:
		return QCU_ERR_Success;
	case PTX_INVALID_PTX:
		return QCU_ERR_InvalidPtx;
	case PTX_UNSUPPORTED:
		return QCU_ERR_NotSupported;
	case PTX_NO_MEMORY:
		return QCU_ERR_MemoryAllocation;
	case PTX_NOT_FOUND:
		return QCU_ERR_SymbolNotFound;
	case PTX_BAD_LAUNCH:
		return QCU_ERR_InvalidValue;
	case PTX_ILLEGAL_ADDRESS:
		return QCU_ERR_IllegalAddress;
	case PTX_MISALIGNED_ADDRESS:
		return QCU_ERR_MisalignedAddress;
	case PTX_ASSERT:
		return QCU_ERR_Assert;
	case PTX_KILLED:
		/*
		 * If cancel is set, another error or the end of the instance stopped the kernel: no
		 * new error. Otherwise the kernel ran out of time.
		 */
		return __atomic_load_n(&be->cancel, __ATOMIC_RELAXED) ? QCU_ERR_Success
								      : QCU_ERR_LaunchTimeout;
	case PTX_TRAP:
	case PTX_STACK_OVERFLOW:
		return QCU_ERR_LaunchFailure;
	}
	return QCU_ERR_Unknown;
}

int soft_ptx_error(struct be *be, enum ptx_status st, const struct ptx_diag *diag)
{
	int err = ptx_error_code(be, st);
	char line[32] = "";

	if (!err)
		return err;
	if (diag->line)
		snprintf(line, sizeof(line), " (PTX line %u)", diag->line);
	if (ptx_is_fault(st) && diag->place.kernel)
		soft_fault(be, err, &diag->place);
	if (st == PTX_UNSUPPORTED || st == PTX_INVALID_PTX)
		soft_tell(be, "%s%s: %s", ptx_status_name(st), line, diag->text);
	else
		soft_say("%s%s: %s", ptx_status_name(st), line, diag->text);
	return err;
}

void soft_jit_tell(struct be *be, struct be_jit *jit, unsigned int line, const char *what,
		   const char *why)
{
	char at[48] = "";

	if (line)
		snprintf(at, sizeof(at), "line %u: ", line);
	if (jit && jit->error)
		snprintf(jit->error, BE_LOG_BYTES, "%s%s%s%s\n", at, what, *what ? ": " : "", why);
	else
		soft_tell(be, "%s%s%s%s", at, what, *what ? ": " : "", why);
}

int soft_jit_status(struct be *be, struct be_jit *jit, enum ptx_status st,
		    const struct ptx_diag *diag)
{
	if (!jit || !jit->error || (st != PTX_UNSUPPORTED && st != PTX_INVALID_PTX))
		return soft_ptx_error(be, st, diag);
	soft_jit_tell(be, jit, diag->line, ptx_status_name(st), diag->text);
	return ptx_error_code(be, st);
}

static void log_kernel_resources(struct be_module *m, unsigned int dev, struct be_jit *jit)
{
	const struct ptx_kernel *k;
	size_t len = 0;
	unsigned int i;

	if (!jit || !jit->info || !(jit->options.flags & QCU_JIT_VERBOSE))
		return;
	for (i = 0; (k = ptx_kernel_at(m->dev[dev], i)) && len < BE_LOG_BYTES; i++) {
		const struct ptx_kernel_info *info = ptx_kernel_info(k);

		len += (size_t)snprintf(
			jit->info + len, BE_LOG_BYTES - len,
			"%s: %u registers, %u bytes of shared and %u of local memory\n", info->name,
			info->regs, info->shared_bytes, info->local_bytes);
	}
}

/* jit: who wants to hear of errors; NULL: nobody but the program's stderr. m->lock is held. */
static int translate_for(struct be_module *m, unsigned int dev, struct be_jit *jit)
{
	struct ptx_env env = m->be->dev[dev].env;
	struct ptx_diag diag = {0};
	enum ptx_status st;

	if (m->dev[dev])
		return QCU_ERR_Success;
	env.bound = m->bound;
	env.bound_count = m->bound_count;
	env.max_regs = m->max_regs;
	if (m->wanted)
		soft_mem_want(&m->be->dev[dev].mem, m->wanted, m->wanted_count);
	st = ptx_load(m->text, m->len, &env, &m->dev[dev], &diag);
	if (m->wanted)
		soft_mem_want(&m->be->dev[dev].mem, m->wanted, 0);
	if (st != PTX_OK)
		m->dev[dev] = NULL;
	else
		log_kernel_resources(m, dev, jit);
	return soft_jit_status(m->be, jit, st, &diag);
}

static int translate(struct be_module *m, unsigned int dev)
{
	return translate_for(m, dev, NULL);
}

static void drop_translations(struct be_module *m)
{
	unsigned int i;

	for (i = 0; i < m->be->gpus; i++) {
		if (m->dev[i])
			ptx_unload(m->dev[i]);
		m->dev[i] = NULL;
	}
}

static void free_module(struct be_module *m)
{
	struct be_kernel *k;
	size_t i;

	drop_translations(m);
	for (i = 0; i < m->bound_count; i++)
		free((char *)m->bound[i].name);
	free(m->bound);
	free(m->wanted);
	while ((k = m->kernels)) {
		m->kernels = k->next;
		free(k->name);
		free(k);
	}
	pthread_mutex_destroy(&m->lock);
	if (m->cost)
		m->be->charge_module(m->be->charge_ctx, -(int64_t)m->cost);
	free(m->text);
	free(m);
}

/*
 * The smallest limit of all units, because no kernel may have more registers than its own unit
 * allows.
 */
static unsigned int least_regs(const struct soft_units *units)
{
	unsigned int least = 0;

	for (size_t i = 0; i < units->count; i++)
		if (units->unit[i].max_regs && (!least || units->unit[i].max_regs < least))
			least = units->unit[i].max_regs;
	return least;
}

static int read_image(struct be_module *m, const void *image, size_t len, struct be_jit *jit)
{
	struct soft_units units;
	char why[256] = "";
	int err;

	err = soft_fatbin_read(image, len, m->be->sm, &units, why, sizeof(why));
	if (!err) {
		err = soft_link(&units, &m->text, &m->len, why, sizeof(why));
		m->max_regs = least_regs(&units);
		if (!err && m->be->verbose)
			soft_say("module: PTX for compute_%u, %zu units, %zu bytes",
				 units.unit[0].arch, units.count, m->len);
		soft_units_free(&units);
	}
	if (err && why[0])
		soft_jit_tell(m->be, jit, 0, "", why);
	return err;
}

/* Its variables are made when they are needed, or settled: before that, some, or all, get bound. */
static int keep_wanted(struct be_module *m)
{
	const struct soft_mem *mem = &m->be->dev[0].mem;

	m->wanted = calloc(mem->wanted_count + 1, sizeof(*m->wanted));
	if (!m->wanted)
		return QCU_ERR_MemoryAllocation;
	m->wanted_count = mem->wanted_count;
	memcpy(m->wanted, mem->wanted, m->wanted_count * sizeof(*m->wanted));
	return QCU_ERR_Success;
}

int soft_module_load(struct be *be, const void *image, size_t len, struct be_jit *jit,
		     struct be_module **out)
{
	uint32_t max_regs = jit ? jit->options.max_regs : 0;
	struct be_module *m;
	int err = atomic_load(&be->sticky);

	*out = NULL;
	if (err)
		return err;
	if (!image || !len)
		return QCU_ERR_InvalidValue;
	m = calloc(1, sizeof(*m));
	if (!m)
		return QCU_ERR_MemoryAllocation;
	m->be = be;
	pthread_mutex_init(&m->lock, NULL);
	err = read_image(m, image, len, jit);
	if (!err && be->charge_module) {
		/* Count the unpacked text: the packed image may be a thousand times smaller. */
		if (m->len && be->charge_module(be->charge_ctx, (int64_t)m->len))
			m->cost = m->len;
		else if (m->len)
			err = QCU_ERR_MemoryAllocation;
	}
	if (max_regs && (!m->max_regs || m->max_regs > max_regs))
		m->max_regs = max_regs;
	if (!err)
		err = be->dev[0].mem.wanted ? keep_wanted(m) : translate_for(m, 0, jit);
	if (err) {
		free_module(m);
		return err;
	}
	pthread_mutex_lock(&be->lock);
	m->next = be->modules;
	be->modules = m;
	pthread_mutex_unlock(&be->lock);
	*out = m;
	return QCU_ERR_Success;
}

int soft_module_unload(struct be *be, struct be_module *m)
{
	struct be_module **p;

	soft_wait(be, NULL);
	pthread_mutex_lock(&be->lock);
	for (p = &be->modules; *p != m; p = &(*p)->next)
		;
	*p = m->next;
	pthread_mutex_unlock(&be->lock);
	free_module(m);
	return atomic_load(&be->sticky);
}

void soft_modules_reset(struct be *be, unsigned int dev)
{
	struct be_module *m;
	struct be_kernel *k;

	pthread_mutex_lock(&be->lock);
	for (m = be->modules; m; m = m->next) {
		pthread_mutex_lock(&m->lock);
		for (k = m->kernels; k; k = k->next)
			k->dev[dev] = (struct soft_kernel_dev){.max_dynamic = -1, .carveout = -1};
		if (m->dev[dev])
			ptx_unload(m->dev[dev]);
		m->dev[dev] = NULL;
		pthread_mutex_unlock(&m->lock);
	}
	pthread_mutex_unlock(&be->lock);
}

void soft_modules_fini(struct be *be)
{
	struct be_module *m;

	while ((m = be->modules)) {
		be->modules = m->next;
		free_module(m);
	}
}

/* m->lock is held. */
static struct be_kernel *new_kernel(struct be_module *m, const char *name)
{
	struct be_kernel *k = calloc(1, sizeof(*k));
	unsigned int i;

	if (!k)
		return NULL;
	k->name = strdup(name);
	if (!k->name) {
		free(k);
		return NULL;
	}
	k->module = m;
	for (i = 0; i < SOFT_GPUS_MAX; i++)
		k->dev[i].max_dynamic = k->dev[i].carveout = -1;
	k->next = m->kernels;
	m->kernels = k;
	return k;
}

/*
 * Finds the first device for which the module is translated. If there is none, translates it for
 * device 0. m->lock is held.
 */
static int any_device(struct be_module *m, unsigned int *dev)
{
	unsigned int i;

	for (i = 0; i < m->be->gpus; i++) {
		if (m->dev[i]) {
			*dev = i;
			return QCU_ERR_Success;
		}
	}
	*dev = m->wanted_count && m->wanted[0].dev < m->be->gpus ? m->wanted[0].dev : 0;
	return translate(m, *dev);
}

struct names {
	char *at;
	size_t room, bytes;
	uint32_t count;
};

static void add_name(struct names *n, const char *name)
{
	size_t len = strlen(name) + 1;

	if (n->bytes + len <= n->room)
		memcpy(n->at + n->bytes, name, len);
	n->bytes += len;
	n->count++;
}

int soft_module_names(struct be *be, struct be_module *m, uint32_t what, char *names, size_t room,
		      size_t *bytes, uint32_t *count)
{
	struct names n = {.at = names, .room = room};
	int err = atomic_load(&be->sticky);
	const struct ptx_kernel *k;
	const char *name;
	unsigned int dev, i;

	if (err)
		return err;
	pthread_mutex_lock(&m->lock);
	err = any_device(m, &dev);
	for (i = 0; !err && what == QCU_NAMES_KERNELS && (k = ptx_kernel_at(m->dev[dev], i)); i++)
		add_name(&n, ptx_kernel_info(k)->name);
	for (i = 0; !err && what == QCU_NAMES_MANAGED && (name = ptx_managed_at(m->dev[dev], i));
	     i++)
		add_name(&n, name);
	pthread_mutex_unlock(&m->lock);
	*bytes = n.bytes;
	*count = n.count;
	return err;
}

int soft_kernel_find(struct be *be, struct be_module *m, const char *name, struct be_kernel **out)
{
	int err = atomic_load(&be->sticky);
	struct be_kernel *k = NULL;
	unsigned int dev;

	*out = NULL;
	if (err)
		return err;
	pthread_mutex_lock(&m->lock);
	for (k = m->kernels; k; k = k->next)
		if (!strcmp(k->name, name))
			break;
	if (!k)
		err = any_device(m, &dev);
	if (!k && !err) {
		if (!ptx_kernel_find(m->dev[dev], name))
			err = QCU_ERR_InvalidDeviceFunction;
		else if (!(k = new_kernel(m, name)))
			err = QCU_ERR_MemoryAllocation;
	}
	pthread_mutex_unlock(&m->lock);
	*out = k;
	return err;
}

int soft_kernel_get(struct be_kernel *k, unsigned int dev, const struct ptx_kernel **ptx,
		    const struct ptx_kernel_info **info)
{
	struct be_module *m = k->module;
	int err = 0;

	pthread_mutex_lock(&m->lock);
	if (!k->dev[dev].ptx) {
		err = translate(m, dev);
		if (!err)
			k->dev[dev].ptx = ptx_kernel_find(m->dev[dev], k->name);
		if (!err && !k->dev[dev].ptx)
			err = QCU_ERR_InvalidDeviceFunction;
	}
	*ptx = k->dev[dev].ptx;
	pthread_mutex_unlock(&m->lock);
	if (!err)
		*info = ptx_kernel_info(*ptx);
	return err;
}

int soft_var_find(struct be *be, unsigned int dev, struct be_module *m, const char *name,
		  uint64_t *addr, uint64_t *size)
{
	int err = atomic_load(&be->sticky);
	size_t len = 0;

	if (err)
		return err;
	pthread_mutex_lock(&m->lock);
	err = translate(m, dev);
	if (!err && ptx_var_find(m->dev[dev], name, addr, &len) != PTX_OK)
		err = QCU_ERR_InvalidSymbol;
	pthread_mutex_unlock(&m->lock);
	*size = len;
	return err;
}

/* m->lock is held. */
static bool is_managed(struct be_module *m, unsigned int dev, const char *name)
{
	const char *other;
	unsigned int i;

	for (i = 0; (other = ptx_managed_at(m->dev[dev], i)); i++)
		if (!strcmp(other, name))
			return true;
	return false;
}

int soft_managed_find(struct be *be, unsigned int dev, struct be_module *m, const char *name,
		      uint64_t *addr, uint64_t *size)
{
	int err = soft_var_find(be, dev, m, name, addr, size);

	if (err)
		return err;
	pthread_mutex_lock(&m->lock);
	err = translate(m, dev);
	if (!err && !is_managed(m, dev, name))
		err = QCU_ERR_InvalidSymbol;
	pthread_mutex_unlock(&m->lock);
	return err;
}

/* m->lock is held. */
static int add_bound(struct be_module *m, const char *name, uint64_t addr, uint64_t size)
{
	struct ptx_bound *more;
	size_t i;

	for (i = 0; i < m->bound_count; i++)
		if (!strcmp(m->bound[i].name, name))
			return QCU_ERR_InvalidValue;
	more = realloc(m->bound, (m->bound_count + 1) * sizeof(*more));
	if (!more)
		return QCU_ERR_MemoryAllocation;
	m->bound = more;
	more[m->bound_count] = (struct ptx_bound){strdup(name), addr, size};
	if (!more[m->bound_count].name)
		return QCU_ERR_MemoryAllocation;
	m->bound_count++;
	return QCU_ERR_Success;
}

/*
 * The addresses of variables are part of a translation. Until a kernel of the module has been
 * looked up, nothing can run in its translations, so they can be dropped. The next use makes new
 * ones.
 */
int soft_var_bind(struct be *be, struct be_module *m, const char *name, uint64_t addr,
		  uint64_t size)
{
	const char *wanted = getenv("QCU_SOFT_BIND");
	int err = atomic_load(&be->sticky);

	if (err)
		return err;
	if (wanted && *wanted == '0')
		return QCU_ERR_NotSupported;
	pthread_mutex_lock(&m->lock);
	err = m->kernels ? (int)QCU_ERR_IllegalState : add_bound(m, name, addr, size);
	if (!err)
		drop_translations(m);
	pthread_mutex_unlock(&m->lock);
	return err;
}

/* ---- saving and restoring ---- */

size_t soft_module_vars(struct be *be, struct be_module *m, const struct image_names *names,
			struct be_wanted *wanted, size_t max)
{
	size_t count = 0;
	unsigned int dev;
	uint32_t i;

	(void)names;
	pthread_mutex_lock(&m->lock);
	for (dev = 0; dev < be->gpus; dev++) {
		struct be_wanted p = {.dev = dev};

		for (i = 0; m->dev[dev] && ptx_var_at(m->dev[dev], i, &p.addr, &p.size); i++)
			if (count++ < max)
				wanted[count - 1] = p;
	}
	pthread_mutex_unlock(&m->lock);
	return count;
}

int soft_module_settle(struct be *be, struct be_module *m, const struct image_names *names)
{
	unsigned int any;
	size_t i;
	int err;

	(void)names;
	pthread_mutex_lock(&m->lock);
	err = m->wanted ? any_device(m, &any) : QCU_ERR_Success;
	for (i = 0; i < m->wanted_count && !err; i++)
		err = m->wanted[i].dev < be->gpus ? translate(m, m->wanted[i].dev)
						  : (int)QCU_ERR_InvalidDevice;
	free(m->wanted);
	m->wanted = NULL;
	m->wanted_count = 0;
	pthread_mutex_unlock(&m->lock);
	return err;
}

/* Has the device memory that only kernels know? */
bool soft_modules_only(struct be *be, unsigned int dev)
{
	uint64_t bytes = 0, addr, size;
	struct be_module *m;
	uint32_t i;

	pthread_mutex_lock(&be->lock);
	for (m = be->modules; m; m = m->next) {
		pthread_mutex_lock(&m->lock);
		for (i = 0; m->dev[dev] && ptx_var_at(m->dev[dev], i, &addr, &size); i++)
			bytes += size;
		pthread_mutex_unlock(&m->lock);
	}
	pthread_mutex_unlock(&be->lock);
	return bytes == soft_mem_variables(&be->dev[dev].mem);
}

bool soft_modules_unplaced(struct be *be)
{
	struct be_module *m;
	bool unplaced = false;
	unsigned int dev;

	pthread_mutex_lock(&be->lock);
	for (m = be->modules; m && !unplaced; m = m->next) {
		pthread_mutex_lock(&m->lock);
		for (dev = 0; dev < be->gpus && !m->dev[dev]; dev++)
			;
		unplaced = dev == be->gpus;
		pthread_mutex_unlock(&m->lock);
	}
	pthread_mutex_unlock(&be->lock);
	return unplaced;
}

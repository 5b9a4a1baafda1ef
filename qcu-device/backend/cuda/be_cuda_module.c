// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Modules, kernels and launches of the cuda backend, with the library functions of the runtime API.
 * These take a fat binary as nvcc made it, and belong to no context. Their kernel handles work
 * wherever the runtime API takes a kernel.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/backend/cuda/be_cuda.h"

/* Up to this many parameters, a launch keeps its list of pointers on the stack. */
#define FEW_PARAMS 64u
/* More than a kernel can have. An image might claim any number. */
#define PARAMS_MAX 65536u

/*
 * How a fat binary begins. Several in a row: the one that was linked, then the units that went into
 * it.
 */
struct fatbin_header {
	uint32_t magic;
	uint16_t version;
	uint16_t header_bytes;
	uint64_t bytes; /* after the header */
};
#define FATBIN_MAGIC 0xba55ed50u

#define UNITS_MAX 4096u

/*
 * How a program passes a fat binary and its units to the driver. The list of units ends with NULL.
 */
struct cu_linked {
	int32_t magic, version;
	const void *linked;
	const void **units;
	const void *unit[UNITS_MAX + 1];
};
#define LINKED_MAGIC   0x466243b1
#define LINKED_VERSION 2

/*
 * Returns the length of the fat binary that begins here. 0: it is not one, or not all of it is
 * there. The driver trusts the length that the image itself states.
 */
static size_t fatbin_length(const char *image, size_t len)
{
	struct fatbin_header h;

	if (len < sizeof(h))
		return 0;
	memcpy(&h, image, sizeof(h));
	if (h.magic != FATBIN_MAGIC || h.header_bytes < sizeof(h) || h.header_bytes > len ||
	    h.bytes > len - h.header_bytes)
		return 0;
	return h.header_bytes + h.bytes;
}

static bool is_fatbin(const char *image, size_t len)
{
	uint32_t magic;

	if (len < sizeof(magic))
		return false;
	memcpy(&magic, image, sizeof(magic));
	return magic == FATBIN_MAGIC;
}

/*
 * CUDA compiles PTX when it is first used. Who loads PTX by itself, or asks for the compiler's
 * texts, gets its errors at once.
 */
static int compile(struct be *be, const struct be_module *m)
{
	PFN_cuLibraryGetModule_v12000 get;
	CUmodule module;
	int ret = cu_driver_function(be, "cuLibraryGetModule", &get);

	/* Its variables get their memory now. */
	cu_rooms_prefer(be);
	return ret ? ret : (int)get(&module, (CUlibrary)m->lib);
}

static bool is_elf(const char *image, size_t len)
{
	return len >= SELFMAG && !memcmp(image, ELFMAG, SELFMAG);
}

/* The options of the runtime API have the driver's numbers. */
static int library_load(struct be *be, struct be_module *m, const void *code, bool ptx,
			struct be_jit *jit)
{
	struct cu_jit o;
	int ret;

	cu_jit_options(jit, &o);
	ret = CU(be, cudaLibraryLoadData, &m->lib, code, (enum cudaJitOption *)o.option, o.value,
		 o.count, NULL, NULL, 0);
	/* What is wanted somewhere gets its memory in module_settle. */
	if (!ret && !m->wanted && (ptx || (jit && (jit->info || jit->error)))) {
		ret = compile(be, m);
		if (ret)
			CU(be, cudaLibraryUnload, m->lib);
	}
	cu_jit_results(&o, jit);
	if (!ret && m->wanted) {
		m->code = code;
		m->jit = jit ? jit->options : (struct qcu_jit){0};
	}
	return ret;
}

int cu_module_unload_code(struct be *be, struct be_module *m)
{
	int ret;

	if (!m->code || m->kernels)
		return QCU_ERR_NotSupported;
	cu_mem_forget(be, m);
	ret = CU(be, cudaLibraryUnload, m->lib);
	m->lib = NULL;
	return ret;
}

int cu_module_load_code(struct be *be, struct be_module *m)
{
	struct be_jit jit = {.options = m->jit};
	int ret = library_load(be, m, m->code, false, &jit);

	if (ret)
		m->lib = NULL;
	return ret;
}

void cu_module_drop_image(struct be_module *m)
{
	free(m->wanted);
	m->wanted = NULL;
	m->code = NULL;
	if (m->linked)
		return;
	free(m->image);
	m->image = NULL;
}

/*
 * Only the units have PTX, from which the driver links again for a GPU of another architecture. The
 * driver decides when it does that, so all of this stays until the module goes.
 */
static int load_linked(struct be *be, struct be_module *m, size_t len, size_t linked,
		       struct be_jit *jit)
{
	size_t at, bytes, n = 0;

	m->linked = calloc(1, sizeof(*m->linked));
	if (!m->linked)
		return QCU_ERR_MemoryAllocation;
	for (at = linked; at < len; at += bytes) {
		bytes = fatbin_length(m->image + at, len - at);
		if (!bytes || at % sizeof(uint64_t) || n == UNITS_MAX)
			return QCU_ERR_InvalidKernelImage;
		m->linked->unit[n++] = m->image + at;
	}
	m->linked->magic = LINKED_MAGIC;
	m->linked->version = LINKED_VERSION;
	m->linked->linked = m->image;
	m->linked->units = m->linked->unit;
	return library_load(be, m, m->linked, false, jit);
}

static int load_image(struct be *be, struct be_module *m, size_t len, struct be_jit *jit)
{
	size_t bytes = fatbin_length(m->image, len);
	int ret;

	if (bytes && bytes < len && is_fatbin(m->image + bytes, len - bytes))
		return load_linked(be, m, len, bytes, jit);
	if (!bytes && (is_fatbin(m->image, len) || len < sizeof(struct fatbin_header)))
		return QCU_ERR_InvalidKernelImage;
	ret = library_load(be, m, m->image, !bytes && !is_elf(m->image, len), jit);
	/* The driver has copied what it will need of the image. */
	if (!m->wanted)
		cu_module_drop_image(m);
	return ret;
}

static void module_free(struct be_module *m)
{
	free(m->linked);
	free(m->wanted);
	free(m->image);
	free(m);
}

/* Keeps what is wanted for the module's variables. */
static int keep_wanted_variables(struct be *be, struct be_module *m)
{
	if (!be->wanting)
		return QCU_ERR_Success;
	m->wanted = calloc(be->wanted_count + 1, sizeof(*m->wanted));
	if (!m->wanted)
		return QCU_ERR_MemoryAllocation;
	if (be->wanted_count)
		memcpy(m->wanted, be->wanted, be->wanted_count * sizeof(*m->wanted));
	m->wanted_count = be->wanted_count;
	return QCU_ERR_Success;
}

int cu_module_load(struct be *be, const void *image, size_t len, struct be_jit *jit,
		   struct be_module **out)
{
	struct be_module *m;
	int ret = cu_use(be, cu_current());

	if (ret)
		return ret;
	m = calloc(1, sizeof(*m));
	if (!m)
		return QCU_ERR_MemoryAllocation;
	/*
	 * PTX must end with a NUL, and an image must be aligned. Also, others may change the
	 * caller's bytes while the driver reads them.
	 */
	m->image = malloc(len + 1);
	if (!m->image) {
		module_free(m);
		return QCU_ERR_MemoryAllocation;
	}
	memcpy(m->image, image, len);
	m->image[len] = '\0';
	ret = keep_wanted_variables(be, m);
	if (!ret)
		ret = load_image(be, m, len, jit);
	if (!ret && pthread_mutex_init(&m->lock, NULL)) {
		CU(be, cudaLibraryUnload, m->lib);
		ret = QCU_ERR_OperatingSystem;
	}
	if (ret) {
		module_free(m);
		return ret;
	}
	*out = m;
	return QCU_ERR_Success;
}

int cu_module_unload(struct be *be, struct be_module *m)
{
	struct be_kernel *k = m->kernels;
	int ret;

	cu_mem_forget(be, m);
	ret = m->lib ? CU(be, cudaLibraryUnload, m->lib) : QCU_ERR_Success;
	while (k) {
		struct be_kernel *next = k->next;

		free(k->on);
		free(k);
		k = next;
	}
	pthread_mutex_destroy(&m->lock);
	module_free(m);
	return ret;
}

/* CUDA lists only kernels. A name lives as long as its kernel. */
int cu_module_names(struct be *be, struct be_module *m, uint32_t what, char *names, size_t room,
		    size_t *bytes, uint32_t *count)
{
	unsigned int n = 0, i;
	cudaKernel_t *kernels;
	const char *name;
	int ret;

	if (what != QCU_NAMES_KERNELS)
		return QCU_ERR_NotSupported;
	*bytes = 0;
	*count = 0;
	ret = cu_use(be, cu_current());
	if (!ret)
		ret = CU(be, cudaLibraryGetKernelCount, &n, m->lib);
	if (ret || !n)
		return ret;
	kernels = calloc(n, sizeof(*kernels));
	if (!kernels)
		return QCU_ERR_MemoryAllocation;
	ret = CU(be, cudaLibraryEnumerateKernels, kernels, n, m->lib);
	for (i = 0; i < n && !ret; i++) {
		ret = CU(be, cudaFuncGetName, &name, kernels[i]);
		if (ret)
			break;
		if (*bytes + strlen(name) + 1 <= room)
			strcpy(names + *bytes, name);
		*bytes += strlen(name) + 1;
	}
	*count = n;
	free(kernels);
	return ret;
}

/*
 * Finds out where each parameter lies. CUDA does not say how many there are. An index past the last
 * one gets no error of its own: it is an invalid value.
 */
static int read_layout(struct be *be, cudaKernel_t k, struct be_kernel **out)
{
	struct be_kernel *kernel = NULL;
	uint32_t count = 0, bytes = 0;
	uint32_t room = 0;

	for (;;) {
		size_t offset = 0, size = 0;
		cudaError_t err;

		if (count == room) {
			struct be_kernel *more;

			room = room ? 2 * room : 16;
			more = realloc(kernel, sizeof(*more) + room * sizeof(more->params[0]));
			if (!more) {
				free(kernel);
				return QCU_ERR_MemoryAllocation;
			}
			kernel = more;
		}
		err = cudaFuncGetParamInfo(k, count, &offset, &size);
		if (err == cudaErrorInvalidValue) {
			cudaGetLastError();
			break;
		}
		if (err != cudaSuccess) {
			free(kernel);
			return cu_result(be, err, "cudaFuncGetParamInfo");
		}
		if (count == PARAMS_MAX || offset > QCU_MSG_MAX || size > QCU_MSG_MAX - offset) {
			free(kernel);
			return QCU_ERR_InvalidKernelImage;
		}
		kernel->params[count].offset = offset;
		kernel->params[count].size = size;
		if (offset + size > bytes)
			bytes = offset + size;
		count++;
	}
	kernel->on = calloc(be->devices, sizeof(*kernel->on));
	if (!kernel->on) {
		free(kernel);
		return QCU_ERR_MemoryAllocation;
	}
	kernel->next = NULL;
	kernel->k = k;
	kernel->count = count;
	kernel->bytes = bytes;
	*out = kernel;
	return QCU_ERR_Success;
}

int cu_kernel_find(struct be *be, struct be_module *m, const char *name, struct be_kernel **out)
{
	struct be_kernel *kernel = NULL;
	cudaKernel_t k = NULL;
	int ret = cu_use(be, cu_current());

	cu_rooms_prefer(be);
	if (!ret)
		ret = CU(be, cudaLibraryGetKernel, &k, m->lib, name);
	if (!ret)
		ret = read_layout(be, k, &kernel);
	if (ret)
		return ret;
	pthread_mutex_lock(&m->lock);
	kernel->next = m->kernels;
	m->kernels = kernel;
	pthread_mutex_unlock(&m->lock);
	*out = kernel;
	return QCU_ERR_Success;
}

int cu_kernel_params(struct be *be, struct be_kernel *k, struct qcu_param *params, uint32_t max,
		     uint32_t *count)
{
	uint32_t n = k->count < max ? k->count : max;

	(void)be;
	if (n)
		memcpy(params, k->params, n * sizeof(*params));
	*count = k->count;
	return QCU_ERR_Success;
}

int cu_kernel_desc(struct be *be, unsigned int dev, struct be_kernel *k,
		   struct qcu_kernel_desc *desc)
{
	struct cudaFuncAttributes a;
	int ret = cu_use(be, dev);

	memset(desc, 0, sizeof(*desc));
	if (!ret)
		ret = CU(be, cudaFuncGetAttributes, &a, k->k);
	if (ret)
		return ret;
	desc->shared_bytes = a.sharedSizeBytes;
	desc->const_bytes = a.constSizeBytes;
	desc->local_bytes = a.localSizeBytes;
	desc->max_threads = a.maxThreadsPerBlock;
	desc->regs = a.numRegs;
	desc->ptx_version = a.ptxVersion;
	desc->binary_version = a.binaryVersion;
	desc->max_dynamic_shared = a.maxDynamicSharedSizeBytes;
	desc->params = k->count;
	desc->carveout = a.preferredShmemCarveout;
	desc->cache_mode = a.cacheModeCA;
	desc->cluster_must_be_set = a.clusterDimMustBeSet;
	desc->cluster[0] = a.requiredClusterWidth;
	desc->cluster[1] = a.requiredClusterHeight;
	desc->cluster[2] = a.requiredClusterDepth;
	desc->cluster_policy = a.clusterSchedulingPolicyPreference;
	desc->cluster_any_size = a.nonPortableClusterSizeAllowed;
	return QCU_ERR_Success;
}

int cu_kernel_set(struct be *be, unsigned int dev, struct be_kernel *k, uint32_t attr, int value)
{
	int ret = cu_use(be, dev);

	return ret ? ret : CU(be, cudaFuncSetAttribute, k->k, (enum cudaFuncAttribute)attr, value);
}

int cu_occupancy(struct be *be, unsigned int dev, struct be_kernel *k, uint32_t block_threads,
		 uint64_t dynamic_shared, uint32_t flags, uint32_t *blocks)
{
	int n = 0;
	int ret = cu_use(be, dev);

	*blocks = 0;
	if (!ret)
		ret = CU(be, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, &n, k->k,
			 (int)block_threads, dynamic_shared, flags);
	if (!ret)
		*blocks = n;
	return ret;
}

/* From now on, a variable lies in this range. */
static int add_variable(struct be *be, const struct cu_range *r, uint64_t *addr, uint64_t *size)
{
	int ret = cu_mem_add(be, r);

	if (ret)
		return ret;
	*addr = r->addr;
	*size = r->size;
	return QCU_ERR_Success;
}

int cu_managed_find(struct be *be, unsigned int dev, struct be_module *m, const char *name,
		    uint64_t *addr, uint64_t *size)
{
	struct cu_range r = {.dev = dev, .module = m, .managed = true};
	void *p = NULL;
	int ret = cu_use(be, dev);

	if (!ret)
		ret = CU(be, cudaLibraryGetManaged, &p, &r.size, m->lib, name);
	r.addr = (uintptr_t)p;
	return ret ? ret : add_variable(be, &r, addr, size);
}

int cu_var_find(struct be *be, unsigned int dev, struct be_module *m, const char *name,
		uint64_t *addr, uint64_t *size)
{
	struct cu_range r = {.dev = dev, .module = m};
	void *p = NULL;
	int ret = cu_use(be, dev);

	if (ret)
		return ret;
	cu_rooms_prefer(be);
	ret = CU(be, cudaLibraryGetGlobal, &p, &r.size, m->lib, name);
	if (ret == QCU_ERR_SymbolNotFound)
		return cu_managed_find(be, dev, m, name, addr, size);
	r.addr = (uintptr_t)p;
	return ret ? ret : add_variable(be, &r, addr, size);
}

unsigned int cu_launch_attributes(const struct be_launch *l, cudaLaunchAttribute *attrs)
{
	cudaLaunchAttribute *a = attrs;

	memset(attrs, 0, CU_LAUNCH_ATTRS * sizeof(*attrs));
	if (l->flags & QCU_LAUNCH_COOPERATIVE) {
		a->id = cudaLaunchAttributeCooperative;
		a++->val.cooperative = 1;
	}
	if (l->flags & QCU_LAUNCH_CLUSTER) {
		a->id = cudaLaunchAttributeClusterDimension;
		a->val.clusterDim.x = l->cluster.x;
		a->val.clusterDim.y = l->cluster.y;
		a++->val.clusterDim.z = l->cluster.z;
	}
	if (l->flags & QCU_LAUNCH_CLUSTER && l->cluster_policy) {
		a->id = cudaLaunchAttributeClusterSchedulingPolicyPreference;
		a++->val.clusterSchedulingPolicyPreference =
			(enum cudaClusterSchedulingPolicy)l->cluster_policy;
	}
	if (l->flags & QCU_LAUNCH_PRIORITY) {
		a->id = cudaLaunchAttributePriority;
		a++->val.priority = l->priority;
	}
	if (l->flags & QCU_LAUNCH_OVERLAP) {
		a->id = cudaLaunchAttributeProgrammaticStreamSerialization;
		a++->val.programmaticStreamSerializationAllowed = 1;
	}
	return (unsigned int)(a - attrs);
}

static cudaLaunchConfig_t launch_config(const struct be_launch *l, cudaLaunchAttribute *attrs)
{
	return (cudaLaunchConfig_t){
		.gridDim = {l->grid.x, l->grid.y, l->grid.z},
		.blockDim = {l->block.x, l->block.y, l->block.z},
		.dynamicSmemBytes = l->dynamic_shared,
		.attrs = attrs,
		.numAttrs = cu_launch_attributes(l, attrs),
	};
}

int cu_occupancy_shared(struct be *be, unsigned int dev, struct be_kernel *k, uint32_t blocks,
			uint32_t block_threads, uint64_t *bytes)
{
	size_t n = 0;
	int ret = cu_use(be, dev);

	if (!ret)
		ret = CU(be, cudaOccupancyAvailableDynamicSMemPerBlock, &n, k->k, (int)blocks,
			 (int)block_threads);
	*bytes = n;
	return ret;
}

int cu_occupancy_cluster(struct be *be, unsigned int dev, struct be_kernel *k,
			 const struct be_launch *l, uint32_t what, uint32_t *count)
{
	cudaLaunchAttribute attrs[CU_LAUNCH_ATTRS];
	cudaLaunchConfig_t config = launch_config(l, attrs);
	int n = 0;
	int ret = cu_use(be, dev);

	*count = 0;
	if (ret)
		return ret;
	if (what == QCU_CLUSTERS_ACTIVE)
		ret = CU(be, cudaOccupancyMaxActiveClusters, &n, k->k, &config);
	else
		ret = CU(be, cudaOccupancyMaxPotentialClusterSize, &n, k->k, &config);
	*count = n;
	return ret;
}

static int launch_with_attributes(struct be *be, struct be_kernel *k, const struct be_launch *l,
				  struct be_stream *s, void **args)
{
	cudaLaunchAttribute attrs[CU_LAUNCH_ATTRS];
	cudaLaunchConfig_t config = launch_config(l, attrs);

	config.stream = s->s;
	return CU(be, cudaLaunchKernelExC, &config, k->k, args);
}

/*
 * Finds the kernel in the form in which the driver launches it. Two threads may look it up at once,
 * and find the same. cudaSetDevice gives the thread a context of the device, also after another
 * thread has reset the device.
 */
int cu_kernel_function(struct be *be, struct be_kernel *k, unsigned int dev, CUfunction *out)
{
	struct cu_function *f = &k->on[dev];
	unsigned int life = atomic_load_explicit(&be->life[dev], memory_order_relaxed) + 1;
	CUfunction found = NULL;
	int ret;

	if (atomic_load_explicit(&f->life, memory_order_acquire) == life) {
		*out = atomic_load_explicit(&f->f, memory_order_relaxed);
		return QCU_ERR_Success;
	}
	ret = CU(be, cudaSetDevice, (int)dev);
	if (!ret)
		ret = cu_result(be, (cudaError_t)be->kernel_function(&found, (CUkernel)k->k),
				"cuKernelGetFunction");
	if (ret)
		return ret;
	atomic_store_explicit(&f->f, found, memory_order_relaxed);
	atomic_store_explicit(&f->life, life, memory_order_release);
	*out = found;
	return QCU_ERR_Success;
}

/*
 * Most launches have no attributes. For them the driver's own call is 4 % faster than the
 * runtime's.
 */
static int launch_plain(struct be *be, struct be_kernel *k, const struct be_launch *l,
			struct be_stream *s, void **args)
{
	CUfunction f;
	int ret = cu_kernel_function(be, k, s->dev, &f);

	return ret ? ret
		   : cu_result(be,
			       (cudaError_t)be->launch_kernel(f, l->grid.x, l->grid.y, l->grid.z,
							      l->block.x, l->block.y, l->block.z,
							      (unsigned int)l->dynamic_shared, s->s,
							      args, NULL),
			       "cuLaunchKernel");
}

int cu_launch(struct be *be, struct be_kernel *k, const struct be_launch *l, struct be_stream *s)
{
	void *few[FEW_PARAMS];
	void **args = few;
	uint32_t i;
	int ret;

	if (l->param_bytes < k->bytes)
		return QCU_ERR_InvalidValue;
	ret = cu_stream_use(be, s);
	if (ret)
		return ret;
	if (k->count > FEW_PARAMS) {
		args = malloc(k->count * sizeof(*args));
		if (!args)
			return QCU_ERR_MemoryAllocation;
	}
	for (i = 0; i < k->count; i++)
		args[i] = (char *)l->params + k->params[i].offset;
	if (l->flags)
		ret = launch_with_attributes(be, k, l, s, args);
	else
		ret = launch_plain(be, k, l, s, args);
	if (args != few)
		free(args);
	return ret;
}

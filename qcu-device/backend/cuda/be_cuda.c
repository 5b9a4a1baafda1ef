// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The cuda backend: the table that qcu-device finds in be_cuda.so, and the functions for a whole
 * device. Everything else is in the other files of this folder.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/backend/cuda/be_cuda.h"
#include "qcu-device/base/gap.h"

/* How much text of kernels is kept if the caller does not say. */
#define PRINTED_BYTES (8u << 20)

static const char no_plots[] = "the driver has no cuMemMap, so device memory cannot leave";

bool cu_probe(void)
{
	int count = 0;

	return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

void cu_close(struct be *be)
{
	pthread_mutex_destroy(&be->stream_lock);
	pthread_mutex_destroy(&be->capture_lock);
	cu_cond_close(be);
	cu_mem_close(be);
	cu_host_close(be);
	cu_few_close(be);
	cu_place_close(be);
	be_pass_close(&be->pass);
	free(be);
}

int cu_open(struct be **out, const struct be_options *opt)
{
	struct be *be = calloc(1, sizeof(*be));
	cu_dump_set *set_dump = NULL;
	int count = 0;
	unsigned int i;
	int ret;

	if (!be)
		return QCU_ERR_MemoryAllocation;
	be->verbose = opt->verbose;
	be->complain = opt->complain;
	be->charge_device = opt->charge_device;
	be->charge_ctx = opt->charge_ctx;
	/* CUDA starts, which loads its library. What it maps from here on lies behind the gap. */
	ret = CU(be, cudaGetDeviceCount, &count);
	(void)gap_begin();
	if (!ret && opt->fault_place) {
		(void)cu_driver_function(be, "cuCoredumpSetAttributeGlobal", &set_dump);
		cu_fault_open(be, set_dump);
	}
	if (!ret)
		ret = cu_driver_function(be, "cuLaunchKernel", &be->launch_kernel);
	if (!ret)
		ret = cu_driver_function(be, "cuKernelGetFunction", &be->kernel_function);
	if (!ret)
		ret = cu_driver_function(be, "cuGraphAddKernelNode", &be->graph_add_kernel);
	if (!ret)
		ret = cu_driver_function(be, "cuGraphExecKernelNodeSetParams",
					 &be->graph_set_kernel);
	if (ret)
		goto err_free;
	be->devices = (unsigned int)count < CU_DEVICES ? (unsigned int)count : CU_DEVICES;
	be->store = opt->store && be->devices;
	be->devices -= be->store;
	for (i = 0; i < be->devices; i++)
		be->legacy[i] = (struct be_stream){.s = cudaStreamLegacy, .dev = i};
	ret = cu_mem_open(be);
	if (ret)
		goto err_free;
	ret = cu_host_open(be);
	if (ret)
		goto err_mem;
	ret = cu_few_open(be);
	if (ret)
		goto err_host;
	if (opt->capture_stdout) {
		ret = cu_print_open(opt->complain,
				    opt->printed_bytes ? opt->printed_bytes : PRINTED_BYTES);
		if (ret)
			goto err_few;
	}
	ret = cu_place_open(be);
	if (ret)
		goto err_few;
	be->movable = opt->movable && be->place.possible;
	if (opt->movable && !be->movable && be->complain)
		be->complain("cuda", no_plots, strlen(no_plots));
	pthread_mutex_init(&be->cond_lock, NULL);
	pthread_mutex_init(&be->capture_lock, NULL);
	pthread_mutex_init(&be->stream_lock, NULL);
	be_pass_open(&be->pass, opt->letters, opt->seat);
	*out = be;
	return QCU_ERR_Success;

err_few:
	cu_few_close(be);
err_host:
	cu_host_close(be);
err_mem:
	cu_mem_close(be);
err_free:
	free(be);
	return ret;
}

int cu_device_count(struct be *be, unsigned int *count)
{
	*count = be->devices;
	return QCU_ERR_Success;
}

int cu_versions(struct be *be, uint32_t *driver, uint32_t *runtime)
{
	int d = 0, r = 0;
	int ret = CU(be, cudaDriverGetVersion, &d);

	if (!ret)
		ret = CU(be, cudaRuntimeGetVersion, &r);
	*driver = d;
	*runtime = r;
	return ret;
}

int cu_device_desc(struct be *be, unsigned int dev, struct qcu_device_desc *desc)
{
	PFN_cuDeviceGetAttribute_v2000 attribute = NULL;
	struct cudaDeviceProp prop;
	unsigned int i;
	int ret;

	memset(desc, 0, sizeof(*desc));
	if (dev >= be->devices)
		return QCU_ERR_InvalidDevice;
	ret = CU(be, cudaGetDeviceProperties, &prop, dev);
	if (ret)
		return ret;
	_Static_assert(sizeof(desc->name) == sizeof(prop.name), "names are equally long");
	memcpy(desc->name, prop.name, sizeof(desc->name));
	desc->name[sizeof(desc->name) - 1] = '\0';
	_Static_assert(sizeof(desc->uuid) == sizeof(prop.uuid), "16 bytes");
	memcpy(desc->uuid, &prop.uuid, sizeof(desc->uuid));
	desc->total_mem = prop.totalGlobalMem;
	(void)cu_driver_function(be, "cuDeviceGetAttribute", &attribute);
	for (i = 0; i < QCU_ATTRS; i++) {
		int value = 0;

		/*
		 * Some numbers have a name in the driver API only. Numbers that this driver does
		 * not know stay 0. This is no failure.
		 */
		if (cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)i, dev) == cudaSuccess) {
			desc->attr[i] = value;
			continue;
		}
		cudaGetLastError();
		if (attribute &&
		    attribute(&value, (CUdevice_attribute)i, (CUdevice)dev) == CUDA_SUCCESS)
			desc->attr[i] = value;
	}
	return QCU_ERR_Success;
}

int cu_device_sync(struct be *be, unsigned int dev)
{
	int ret;

	/* Without a context there is nothing to wait for, and no reason to make a context. */
	if (!atomic_load(&be->used[dev]))
		return QCU_ERR_Success;
	ret = cu_use(be, dev);
	return ret ? ret : cu_believe(dev, CU(be, cudaDeviceSynchronize));
}

int cu_device_reset(struct be *be, unsigned int dev)
{
	int ret = cu_use(be, dev);

	if (ret)
		return ret;
	cu_plots_reset(be, dev);
	ret = CU(be, cudaDeviceReset);
	atomic_fetch_add(&be->life[dev], 1);
	cu_mem_reset(be, dev);
	if (!ret)
		cu_host_reset(be, dev);
	return ret;
}

int cu_peer_access(struct be *be, unsigned int dev, unsigned int peer, bool enable)
{
	int ret = cu_use(be, dev);

	if (ret)
		return ret;
	ret = enable ? CU(be, cudaDeviceEnablePeerAccess, (int)peer, 0)
		     : CU(be, cudaDeviceDisablePeerAccess, (int)peer);
	return ret ? ret : cu_plots_peer(be, dev, peer, enable);
}

int cu_peer_info(struct be *be, unsigned int dev, unsigned int peer, uint32_t attr, int32_t *value)
{
	enum cudaAtomicOperation op = (enum cudaAtomicOperation)(attr & 0xff);
	unsigned int caps = 0;
	int v = 0, ret;

	if (attr >= QCU_PEER_ATOMICS) {
		if (attr >= QCU_PEER_HOST_ATOMICS)
			ret = CU(be, cudaDeviceGetHostAtomicCapabilities, &caps, &op, 1, (int)dev);
		else
			ret = CU(be, cudaDeviceGetP2PAtomicCapabilities, &caps, &op, 1, (int)dev,
				 (int)peer);
		*value = (int32_t)caps;
		return ret;
	}
	if (attr == QCU_PEER_POSSIBLE)
		ret = CU(be, cudaDeviceCanAccessPeer, &v, (int)dev, (int)peer);
	else
		ret = CU(be, cudaDeviceGetP2PAttribute, &v, (enum cudaDeviceP2PAttr)attr, (int)dev,
			 (int)peer);
	*value = v;
	return ret;
}

int cu_limit_set(struct be *be, unsigned int dev, uint32_t limit, uint64_t value)
{
	int ret = cu_use(be, dev);

	return ret ? ret : CU(be, cudaDeviceSetLimit, (enum cudaLimit)limit, value);
}

int cu_limit_get(struct be *be, unsigned int dev, uint32_t limit, uint64_t *value)
{
	size_t v = 0;
	int ret = cu_use(be, dev);

	if (!ret)
		ret = CU(be, cudaDeviceGetLimit, &v, (enum cudaLimit)limit);
	*value = v;
	return ret;
}

static const struct be_ops be_cuda = {
	.abi = BE_ABI,
	.name = "cuda",
	.wants_window = true,
	.vars_by_name = true,
	.charges = true,
	.mem_gone = &cu_mem_gone,
#define BE_OP_OF(type, name, ...) .name = cu_##name,
#define BE_SOFT_OP(...)
#include "qcu-device/backend/ops.h"
};

__attribute__((visibility("default"))) const struct be_ops *be_plugin(void);

const struct be_ops *be_plugin(void)
{
	return &be_cuda;
}

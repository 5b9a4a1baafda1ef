// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Launches. The library refuses a launch with an error that it can detect, with the codes that
 * NVIDIA's runtime 13 returns. An error in the kernel itself is reported by a later call.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-library/stream/stream.h"
#include "qcu-library/link/capture.h"

/* On most GPUs, kernels take at most 4 KiB of parameters. Larger ones go through the heap. */
#define PARAMS_ON_STACK 4096

struct launch {
	struct CUkern_st *kernel;
	dim3 grid, block;
	void **args;
	size_t shared;
	cudaStream_t stream;
	uint32_t flags;
	dim3 cluster;
	uint32_t cluster_policy;
	int32_t priority;
	cudaEvent_t event; /* to be recorded after the launch */
};

static bool is_dim3_within(const dim3 *d, const int *max)
{
	return d->x && d->y && d->z && d->x <= (unsigned int)max[0] &&
	       d->y <= (unsigned int)max[1] && d->z <= (unsigned int)max[2];
}

static uint64_t block_threads(const struct launch *l)
{
	return (uint64_t)l->block.x * l->block.y * l->block.z;
}

static cudaError_t check_shape(const struct launch *l)
{
	const struct qcu_device_desc *desc;
	cudaError_t err = qcul_device_desc(qcul_self.device, &desc);

	if (err)
		return err;
	if (!is_dim3_within(&l->grid, &desc->attr[cudaDevAttrMaxGridDimX]) ||
	    !is_dim3_within(&l->block, &desc->attr[cudaDevAttrMaxBlockDimX]) ||
	    block_threads(l) > (uint64_t)desc->attr[cudaDevAttrMaxThreadsPerBlock] ||
	    l->shared > UINT_MAX)
		return cudaErrorInvalidValue;
	return cudaSuccess;
}

/*
 * Checks the launch against the limits of this kernel. Some things only the mirror can check:
 *
 * - whether all blocks of a cooperative launch fit;
 * - the kernel's own rules for clusters;
 * - whether a block is too large for the kernel's own bounds or for the number of registers, which
 *   are two different errors.
 *
 * If the mirror must check, *post is false: the launch needs the mirror's answer, so it cannot be
 * posted.
 */
static cudaError_t check_kernel(const struct launch *l, bool *post)
{
	const struct qcul_kernel_limits *limits;
	cudaError_t err = qcul_kernel_limits(l->kernel, &limits);

	if (err)
		return err;
	*post = !l->flags && !l->cluster.x && !limits->clusters &&
		block_threads(l) <= limits->max_threads;
	if (l->shared > limits->max_dynamic || (l->kernel->param_count && !l->args))
		return cudaErrorInvalidValue;
	return cudaSuccess;
}

static void fill_launch_msg(const struct launch *l, struct qcu_launch_msg *msg)
{
	*msg = (struct qcu_launch_msg){
		.grid = {l->grid.x, l->grid.y, l->grid.z},
		.block = {l->block.x, l->block.y, l->block.z},
		.dynamic_shared = (uint32_t)l->shared,
		.flags = l->flags,
		.param_bytes = l->kernel->param_bytes,
		.cluster = {l->cluster.x, l->cluster.y, l->cluster.z},
		.cluster_policy = l->cluster_policy,
		.priority = l->priority,
	};
}

static cudaError_t send_launch_message(const struct launch *l, uint32_t stream,
				       struct qcu_launch_msg *msg, bool post)
{
	const struct CUkern_st *k = l->kernel;
	struct qCUcmd cmd = qcul_cmd(QCU_OP_LAUNCH);

	fill_launch_msg(l, msg);
	if (!qcul_pack_args(msg + 1, k->param_bytes, k->params, k->param_count, l->args))
		return cudaErrorInvalidKernelImage;
	cmd.launch.buf.addr = (uint64_t)(uintptr_t)msg;
	cmd.launch.buf.len = sizeof(*msg) + k->param_bytes;
	cmd.launch.kernel = k->id;
	cmd.launch.stream = stream;
	return post ? qcul_post(&cmd, 1) : qcul_send(&cmd, 1);
}

/*
 * The attributes of a captured launch, except for hints: at most four. A launch without a priority
 * of its own has the priority of its stream.
 */
static unsigned int captured_attributes(const struct launch *l, cudaLaunchAttribute *attrs)
{
	uint32_t stream = qcul_handle_id(&qcul_streams, l->stream);
	int priority = stream ? qcul_streams.slots[stream].priority : 0;
	unsigned int n = 0;

	if (l->flags & QCU_LAUNCH_COOPERATIVE)
		attrs[n++] = (cudaLaunchAttribute){
			.id = cudaLaunchAttributeCooperative,
			.val.cooperative = 1,
		};
	if (l->flags & QCU_LAUNCH_CLUSTER)
		attrs[n++] = (cudaLaunchAttribute){
			.id = cudaLaunchAttributeClusterDimension,
			.val.clusterDim = {l->cluster.x, l->cluster.y, l->cluster.z},
		};
	if (l->cluster_policy)
		attrs[n++] = (cudaLaunchAttribute){
			.id = cudaLaunchAttributeClusterSchedulingPolicyPreference,
			.val.clusterSchedulingPolicyPreference = l->cluster_policy,
		};
	if (l->flags & QCU_LAUNCH_PRIORITY)
		priority = l->priority;
	if (priority)
		attrs[n++] = (cudaLaunchAttribute){
			.id = cudaLaunchAttributePriority,
			.val.priority = priority,
		};
	return n;
}

static cudaError_t capture_launch(const struct launch *l)
{
	cudaLaunchAttribute attrs[4];
	const struct qcul_captured_launch captured = {
		.kernel = l->kernel,
		.params =
			{
				.func = l->kernel,
				.gridDim = l->grid,
				.blockDim = l->block,
				.sharedMemBytes = (unsigned int)l->shared,
				.kernelParams = l->args,
			},
		.attrs = attrs,
		.attr_count = captured_attributes(l, attrs),
	};
	const struct qcul_kernel_limits *limits;
	cudaError_t err = qcul_kernel_limits(l->kernel, &limits);

	if (!err && block_threads(l) > limits->max_threads)
		err = cudaErrorInvalidValue;
	return err ? err : qcul_capture_launch(l->stream, &captured);
}

static cudaError_t launch_on_current(const struct launch *l, uint32_t stream)
{
	struct {
		struct qcu_launch_msg msg;
		char params[PARAMS_ON_STACK];
	} small;
	struct qcu_launch_msg *msg = &small.msg, *big = NULL;
	bool post = false;
	cudaError_t err = check_shape(l);

	if (!err)
		err = qcul_kernel_load(l->kernel);
	if (!err)
		err = check_kernel(l, &post);
	if (err)
		return err;
	if (qcul_captured(l->stream, &err))
		return err ? err : capture_launch(l);
	if (l->kernel->param_bytes > sizeof(small.params)) {
		if (l->kernel->param_bytes > QCU_MSG_MAX - sizeof(*msg))
			return cudaErrorInvalidValue;
		msg = big = malloc(sizeof(*msg) + l->kernel->param_bytes);
		if (!big)
			return cudaErrorMemoryAllocation;
	}
	err = send_launch_message(l, stream, msg, post);
	free(big);
	if (!err && qcul_blocking())
		err = qcul_stream_wait(stream);
	return err;
}

/* A kernel runs on the device of its stream, whatever the thread's current device is. */
static cudaError_t launch_on_stream_device(const struct launch *l)
{
	int current = qcul_self.device;
	uint32_t stream;
	cudaError_t err = qcul_ready();

	if (!err)
		err = qcul_stream_id(l->stream, &stream);
	if (err)
		return err;
	qcul_self.device = qcul_stream_device(stream);
	err = launch_on_current(l, stream);
	qcul_self.device = current;
	return err;
}

static cudaError_t launch_func(const void *func, struct launch *l)
{
	cudaError_t err = qcul_ready();

	if (!err)
		err = qcul_kernel(func, &l->kernel);
	return err ? err : launch_on_stream_device(l);
}

cudaError_t cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
			     cudaStream_t stream)
{
	struct launch l = {
		.grid = grid,
		.block = block,
		.args = args,
		.shared = shared,
		.stream = stream,
	};

	return qcul_done(launch_func(func, &l));
}

cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 grid, dim3 block, void **args,
					size_t shared, cudaStream_t stream)
{
	struct launch l = {
		.grid = grid,
		.block = block,
		.args = args,
		.shared = shared,
		.stream = stream,
		.flags = QCU_LAUNCH_COOPERATIVE,
	};

	return qcul_done(launch_func(func, &l));
}

/*
 * Attributes that the GPU must obey go to the mirror. Hints are accepted and have no effect. Some
 * attributes name an event that may be recorded before the kernel ends. The library records it when
 * the kernel has ended, which CUDA allows.
 */
static cudaError_t take_attribute(const cudaLaunchAttribute *a, struct launch *l)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	switch ((int)a->id) {
	case cudaLaunchAttributeIgnore:
	case cudaLaunchAttributeAccessPolicyWindow:
	case cudaLaunchAttributeSynchronizationPolicy:
	case cudaLaunchAttributeMemSyncDomainMap:
	case cudaLaunchAttributeMemSyncDomain:
	case cudaLaunchAttributePreferredClusterDimension:
	case cudaLaunchAttributePreferredSharedMemoryCarveout:
	case cudaLaunchAttributeNvlinkUtilCentricScheduling:
		return cudaSuccess;
	case cudaLaunchAttributePriority:
		l->flags |= QCU_LAUNCH_PRIORITY;
		l->priority = a->val.priority;
		return cudaSuccess;
	case cudaLaunchAttributeCooperative:
		if (a->val.cooperative)
			l->flags |= QCU_LAUNCH_COOPERATIVE;
		return cudaSuccess;
	case cudaLaunchAttributeClusterDimension:
		l->flags |= QCU_LAUNCH_CLUSTER;
		l->cluster.x = a->val.clusterDim.x;
		l->cluster.y = a->val.clusterDim.y;
		l->cluster.z = a->val.clusterDim.z;
		return cudaSuccess;
	case cudaLaunchAttributeClusterSchedulingPolicyPreference:
		l->cluster_policy = a->val.clusterSchedulingPolicyPreference;
		return cudaSuccess;
	case cudaLaunchAttributeProgrammaticStreamSerialization:
		if (a->val.programmaticStreamSerializationAllowed)
			l->flags |= QCU_LAUNCH_OVERLAP;
		return cudaSuccess;
	case cudaLaunchAttributeProgrammaticEvent:
		l->event = a->val.programmaticEvent.event;
		return l->event ? cudaSuccess : cudaErrorInvalidValue;
	case cudaLaunchAttributeLaunchCompletionEvent:
		l->event = a->val.launchCompletionEvent.event;
		return l->event ? cudaSuccess : cudaErrorInvalidValue;
	case cudaLaunchAttributeDeviceUpdatableKernelNode:
		return qcul_unsupported("cudaLaunchAttributeDeviceUpdatableKernelNode", &said);
	}
	return cudaErrorInvalidValue;
}

static cudaError_t take_config(const cudaLaunchConfig_t *config, struct launch *l)
{
	cudaError_t err = cudaSuccess;
	unsigned int i;

	if (!config || (config->numAttrs && !config->attrs))
		return cudaErrorInvalidValue;
	l->grid = config->gridDim;
	l->block = config->blockDim;
	l->shared = config->dynamicSmemBytes;
	l->stream = config->stream;
	for (i = 0; i < config->numAttrs && !err; i++)
		err = take_attribute(&config->attrs[i], l);
	return err;
}

cudaError_t qcul_launch_describe(struct CUkern_st *kernel, const cudaLaunchConfig_t *config,
				 void **args, struct qcu_launch_msg *msg)
{
	struct launch l = {.kernel = kernel, .args = args};
	bool post;
	cudaError_t err = take_config(config, &l);

	if (!err)
		err = check_shape(&l);
	if (!err)
		err = qcul_kernel_load(kernel);
	if (!err)
		err = check_kernel(&l, &post);
	if (!err)
		fill_launch_msg(&l, msg);
	return err;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args)
{
	struct launch l = {.args = args};
	cudaError_t err = take_config(config, &l);

	if (!err && l.event) {
		/* An invalid event must be detected before the launch. */
		err = qcul_ready();
		if (!err && !qcul_handle_id(&qcul_events, l.event))
			err = cudaErrorInvalidResourceHandle;
	}
	if (!err)
		err = launch_func(func, &l);
	if (!err && l.event)
		err = cudaEventRecord(l.event, l.stream);
	return qcul_done(err);
}

static cudaError_t clusters(int *count, const void *func, const cudaLaunchConfig_t *config,
			    uint32_t what)
{
	struct launch l = {.grid = {1, 1, 1}};
	struct qcu_launch_msg msg;
	struct qCUcmd cmd;
	cudaError_t err = count ? take_config(config, &l) : cudaErrorInvalidValue;

	if (!err && l.shared > UINT_MAX)
		err = cudaErrorInvalidValue;
	if (!err)
		err = qcul_ready();
	if (!err)
		err = qcul_kernel(func, &l.kernel);
	if (!err)
		err = qcul_kernel_load(l.kernel);
	if (err)
		return err;
	fill_launch_msg(&l, &msg);
	msg.param_bytes = 0;
	cmd = qcul_cmd(QCU_OP_OCCUPANCY_CLUSTER);
	cmd.occupancy_cluster.buf.addr = (uint64_t)(uintptr_t)&msg;
	cmd.occupancy_cluster.buf.len = sizeof(msg);
	cmd.occupancy_cluster.kernel = l.kernel->id;
	cmd.occupancy_cluster.what = what;
	err = qcul_send(&cmd, 1);
	if (!err)
		*count = (int)cmd.occupancy_cluster.count;
	return err;
}

cudaError_t cudaOccupancyMaxActiveClusters(int *count, const void *func,
					   const cudaLaunchConfig_t *config)
{
	return qcul_done(clusters(count, func, config, QCU_CLUSTERS_ACTIVE));
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int *size, const void *func,
						 const cudaLaunchConfig_t *config)
{
	return qcul_done(clusters(size, func, config, QCU_CLUSTERS_LARGEST));
}

/* ---- the calls that nvcc generates for kernel<<<grid, block, shared, stream>>>(...) ---- */

unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
					 struct CUstream_st *stream)
{
	struct qcul_call_config *below = NULL;

	if (qcul_self.configured) {
		below = malloc(sizeof(*below));
		if (!below)
			return qcul_done(cudaErrorMemoryAllocation);
		*below = qcul_self.config;
	}
	qcul_self.config = (struct qcul_call_config){grid, block, shared, stream, below};
	qcul_self.configured = true;
	return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
	struct qcul_call_config *c = &qcul_self.config, *below = c->below;

	if (!qcul_self.configured)
		return qcul_done(cudaErrorMissingConfiguration);
	*grid = c->grid;
	*block = c->block;
	*shared = c->shared;
	*(cudaStream_t *)stream = c->stream;
	qcul_self.configured = below;
	if (below) {
		*c = *below;
		free(below);
	}
	return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *func)
{
	struct CUkern_st *k;

	if (qcul_kernel(func, &k) != cudaSuccess)
		return qcul_done(cudaErrorInvalidDeviceFunction);
	*kernel = k;
	return cudaSuccess;
}

cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *func)
{
	return kernel ? __cudaGetKernel(kernel, func) : qcul_done(cudaErrorInvalidValue);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
			       size_t shared, cudaStream_t stream)
{
	struct launch l = {
		.kernel = kernel,
		.grid = grid,
		.block = block,
		.args = args,
		.shared = shared,
		.stream = stream,
	};

	return qcul_done(qcul_kernel_valid(kernel) ? launch_on_stream_device(&l)
						   : cudaErrorInvalidDeviceFunction);
}

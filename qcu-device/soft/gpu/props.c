/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The properties of the device: a GPU of compute capability 9.0, unless QCU_SOFT_SM says another
 * one. So a program that is compiled for 7.5, as nvcc 13 does by default, runs, and so does one for
 * 8.0, 8.6, 8.9 or 9.0. A program that has PTX only for a newer capability is rejected, as a real
 * GPU would do; QCU_SOFT_SM=120 makes the device one of capability 12.0, with the limits of that
 * capability. Of what 9.0 has, clusters of more than one block are missing, and with them TMA
 * copies of tensors and wgmma.
 *
 * The numbers in `fixed` are the same for every device. soft_device_desc adds those that depend on
 * the capability, the host or the options. The device has as many multiprocessors as a launch has
 * host threads, because that is how many blocks run at the same time.
 */
#include <stdio.h>
#include <string.h>

#include "qcu-device/soft/gpu/soft.h"

#define CUDA_VERSION 13000

/* cudaDeviceAttr */
enum {
	ATTR_MAX_THREADS_PER_BLOCK = 1,
	ATTR_MAX_BLOCK_X = 2,
	ATTR_MAX_BLOCK_Y = 3,
	ATTR_MAX_BLOCK_Z = 4,
	ATTR_MAX_GRID_X = 5,
	ATTR_MAX_GRID_Y = 6,
	ATTR_MAX_GRID_Z = 7,
	ATTR_SHARED_PER_BLOCK = 8,
	ATTR_TOTAL_CONSTANT = 9,
	ATTR_WARP_SIZE = 10,
	ATTR_MAX_PITCH = 11,
	ATTR_REGS_PER_BLOCK = 12,
	ATTR_CLOCK_KHZ = 13,
	ATTR_TEXTURE_ALIGNMENT = 14,
	ATTR_GPU_OVERLAP = 15,
	ATTR_SM_COUNT = 16,
	ATTR_KERNEL_TIMEOUT = 17,
	ATTR_INTEGRATED = 18,
	ATTR_CAN_MAP_HOST = 19,
	ATTR_COMPUTE_MODE = 20,
	ATTR_TEX_1D_WIDTH = 21,
	ATTR_TEX_2D_WIDTH = 22,
	ATTR_TEX_2D_HEIGHT = 23,
	ATTR_TEX_3D_WIDTH = 24,
	ATTR_TEX_3D_HEIGHT = 25,
	ATTR_TEX_3D_DEPTH = 26,
	ATTR_TEX_2D_LAYERED_WIDTH = 27,
	ATTR_TEX_2D_LAYERED_HEIGHT = 28,
	ATTR_TEX_2D_LAYERED_LAYERS = 29,
	ATTR_SURFACE_ALIGNMENT = 30,
	ATTR_CONCURRENT_KERNELS = 31,
	ATTR_ECC = 32,
	ATTR_PCI_BUS = 33,
	ATTR_PCI_DEVICE = 34,
	ATTR_TCC = 35,
	ATTR_MEMORY_CLOCK_KHZ = 36,
	ATTR_MEMORY_BUS_WIDTH = 37,
	ATTR_L2_BYTES = 38,
	ATTR_THREADS_PER_SM = 39,
	ATTR_ASYNC_ENGINES = 40,
	ATTR_UNIFIED_ADDRESSING = 41,
	ATTR_TEX_1D_LAYERED_WIDTH = 42,
	ATTR_TEX_1D_LAYERED_LAYERS = 43,
	ATTR_TEX_2D_GATHER_WIDTH = 45,
	ATTR_TEX_2D_GATHER_HEIGHT = 46,
	ATTR_TEX_3D_ALT_WIDTH = 47,
	ATTR_TEX_3D_ALT_HEIGHT = 48,
	ATTR_TEX_3D_ALT_DEPTH = 49,
	ATTR_PCI_DOMAIN = 50,
	ATTR_TEX_PITCH_ALIGNMENT = 51,
	ATTR_TEX_CUBE_WIDTH = 52,
	ATTR_TEX_CUBE_LAYERED_WIDTH = 53,
	ATTR_TEX_CUBE_LAYERED_LAYERS = 54,
	ATTR_SURF_1D_WIDTH = 55,
	ATTR_SURF_2D_WIDTH = 56,
	ATTR_SURF_2D_HEIGHT = 57,
	ATTR_SURF_3D_WIDTH = 58,
	ATTR_SURF_3D_HEIGHT = 59,
	ATTR_SURF_3D_DEPTH = 60,
	ATTR_SURF_1D_LAYERED_WIDTH = 61,
	ATTR_SURF_1D_LAYERED_LAYERS = 62,
	ATTR_SURF_2D_LAYERED_WIDTH = 63,
	ATTR_SURF_2D_LAYERED_HEIGHT = 64,
	ATTR_SURF_2D_LAYERED_LAYERS = 65,
	ATTR_SURF_CUBE_WIDTH = 66,
	ATTR_SURF_CUBE_LAYERED_WIDTH = 67,
	ATTR_SURF_CUBE_LAYERED_LAYERS = 68,
	ATTR_TEX_1D_LINEAR_WIDTH = 69,
	ATTR_TEX_2D_LINEAR_WIDTH = 70,
	ATTR_TEX_2D_LINEAR_HEIGHT = 71,
	ATTR_TEX_2D_LINEAR_PITCH = 72,
	ATTR_TEX_2D_MIPMAP_WIDTH = 73,
	ATTR_TEX_2D_MIPMAP_HEIGHT = 74,
	ATTR_CAPABILITY_MAJOR = 75,
	ATTR_CAPABILITY_MINOR = 76,
	ATTR_TEX_1D_MIPMAP_WIDTH = 77,
	ATTR_STREAM_PRIORITIES = 78,
	ATTR_GLOBAL_L1 = 79,
	ATTR_LOCAL_L1 = 80,
	ATTR_SHARED_PER_SM = 81,
	ATTR_REGS_PER_SM = 82,
	ATTR_MANAGED_MEMORY = 83,
	ATTR_MULTI_GPU_BOARD = 84,
	ATTR_MULTI_GPU_GROUP = 85,
	ATTR_HOST_NATIVE_ATOMICS = 86,
	ATTR_SINGLE_TO_DOUBLE = 87,
	ATTR_PAGEABLE_ACCESS = 88,
	ATTR_CONCURRENT_MANAGED = 89,
	ATTR_COMPUTE_PREEMPTION = 90,
	ATTR_HOST_POINTER_FOR_REGISTERED = 91,
	ATTR_COOPERATIVE_LAUNCH = 95,
	ATTR_SHARED_OPTIN = 97,
	ATTR_FLUSH_REMOTE_WRITES = 98,
	ATTR_HOST_REGISTER = 99,
	ATTR_PAGEABLE_USES_HOST_TABLES = 100,
	ATTR_DIRECT_MANAGED_FROM_HOST = 101,
	/* The driver API's list has names for these, and for 122 and 123. */
	ATTR_VIRTUAL_MEMORY = 102,
	ATTR_VIRTUAL_MEMORY_FILES = 103,
	ATTR_BLOCKS_PER_SM = 106,
	ATTR_PERSISTING_L2 = 108,
	ATTR_ACCESS_WINDOW = 109,
	ATTR_SHARED_RESERVED = 111,
	ATTR_SPARSE_ARRAYS = 112,
	ATTR_HOST_REGISTER_READ_ONLY = 113,
	ATTR_TIMELINE_SEMAPHORES = 114,
	ATTR_MEMORY_POOLS = 115,
	ATTR_RDMA = 116,
	ATTR_RDMA_FLUSH = 117,
	ATTR_RDMA_ORDERING = 118,
	ATTR_POOL_HANDLE_TYPES = 119,
	ATTR_CLUSTER_LAUNCH = 120,
	ATTR_DEFERRED_ARRAYS = 121,
	ATTR_STREAM_VALUES_64 = 122,
	ATTR_STREAM_VALUES_NOR = 123,
	ATTR_IPC_EVENTS = 125,
	ATTR_SYNC_DOMAINS = 126,
	ATTR_UNIFIED_FUNCTION_POINTERS = 129, /* number from the driver API's list */
	ATTR_NUMA_CONFIG = 130,
	ATTR_NUMA_ID = 131,
	ATTR_MPS = 133,
	ATTR_HOST_NUMA_ID = 134,
	ATTR_D3D12_CIG = 135,
	ATTR_VULKAN_CIG = 138,
	ATTR_GPU_PCI_DEVICE_ID = 139,
	ATTR_GPU_PCI_SUBSYSTEM_ID = 140,
	ATTR_HOST_NUMA_POOLS = 142,
	ATTR_HOST_NUMA_IPC = 143,
	ATTR_HOST_POOLS = 144,
	ATTR_PARTIAL_HOST_ATOMICS = 147,
};
_Static_assert(ATTR_PARTIAL_HOST_ATOMICS < QCU_ATTRS, "all attributes fit the description");

static const struct soft_limits limits[] = {
	/*
	 * sm; threads and blocks per SM; shared memory per SM, per block, opt-in, reserved;
	 * registers
	 */
	{75, 1024, 16, 64 << 10, 48 << 10, 64 << 10, 0, 65536},
	{80, 2048, 32, 164 << 10, 48 << 10, 163 << 10, 1024, 65536},
	{86, 1536, 16, 100 << 10, 48 << 10, 99 << 10, 1024, 65536},
	{87, 1536, 16, 164 << 10, 48 << 10, 163 << 10, 1024, 65536},
	{88, 1536, 24, 100 << 10, 48 << 10, 99 << 10, 1024, 65536},
	{89, 1536, 24, 100 << 10, 48 << 10, 99 << 10, 1024, 65536},
	{90, 2048, 32, 228 << 10, 48 << 10, 227 << 10, 1024, 65536},
	{100, 2048, 32, 228 << 10, 48 << 10, 227 << 10, 1024, 65536},
	{103, 2048, 32, 228 << 10, 48 << 10, 227 << 10, 1024, 65536},
	{110, 1536, 24, 228 << 10, 48 << 10, 227 << 10, 1024, 65536},
	{120, 1536, 24, 100 << 10, 48 << 10, 99 << 10, 1024, 65536},
	{121, 1536, 24, 100 << 10, 48 << 10, 99 << 10, 1024, 65536},
};

static const struct {
	uint16_t attr;
	int32_t value;
} fixed[] = {
	{ATTR_MAX_THREADS_PER_BLOCK, 1024},
	{ATTR_MAX_BLOCK_X, 1024},
	{ATTR_MAX_BLOCK_Y, 1024},
	{ATTR_MAX_BLOCK_Z, 64},
	{ATTR_MAX_GRID_X, INT32_MAX},
	{ATTR_MAX_GRID_Y, 65535},
	{ATTR_MAX_GRID_Z, 65535},
	{ATTR_TOTAL_CONSTANT, 64 << 10},
	{ATTR_WARP_SIZE, 32},
	{ATTR_MAX_PITCH, INT32_MAX},
	{ATTR_CLOCK_KHZ, 1000000}, /* in nanoseconds, like clock64 */
	{ATTR_TEXTURE_ALIGNMENT, 512},
	{ATTR_GPU_OVERLAP, 1},
	{ATTR_CAN_MAP_HOST, 1},
	{ATTR_TEX_1D_WIDTH, 131072},
	{ATTR_TEX_2D_WIDTH, 131072},
	{ATTR_TEX_2D_HEIGHT, 65536},
	{ATTR_TEX_3D_WIDTH, 16384},
	{ATTR_TEX_3D_HEIGHT, 16384},
	{ATTR_TEX_3D_DEPTH, 16384},
	{ATTR_TEX_2D_LAYERED_WIDTH, 32768},
	{ATTR_TEX_2D_LAYERED_HEIGHT, 32768},
	{ATTR_TEX_2D_LAYERED_LAYERS, 2048},
	{ATTR_SURFACE_ALIGNMENT, 512},
	{ATTR_CONCURRENT_KERNELS, 1},
	{ATTR_MEMORY_CLOCK_KHZ, 1600000},
	{ATTR_MEMORY_BUS_WIDTH, 64},
	{ATTR_L2_BYTES, 4 << 20},
	{ATTR_ASYNC_ENGINES, 3},
	{ATTR_UNIFIED_ADDRESSING, 1},
	{ATTR_TEX_1D_LAYERED_WIDTH, 32768},
	{ATTR_TEX_1D_LAYERED_LAYERS, 2048},
	{ATTR_TEX_2D_GATHER_WIDTH, 32768},
	{ATTR_TEX_2D_GATHER_HEIGHT, 32768},
	{ATTR_TEX_3D_ALT_WIDTH, 8192},
	{ATTR_TEX_3D_ALT_HEIGHT, 8192},
	{ATTR_TEX_3D_ALT_DEPTH, 32768},
	{ATTR_TEX_PITCH_ALIGNMENT, 32},
	{ATTR_TEX_CUBE_WIDTH, 32768},
	{ATTR_TEX_CUBE_LAYERED_WIDTH, 32768},
	{ATTR_TEX_CUBE_LAYERED_LAYERS, 2046},
	{ATTR_SURF_1D_WIDTH, 32768},
	{ATTR_SURF_2D_WIDTH, 131072},
	{ATTR_SURF_2D_HEIGHT, 65536},
	{ATTR_SURF_3D_WIDTH, 16384},
	{ATTR_SURF_3D_HEIGHT, 16384},
	{ATTR_SURF_3D_DEPTH, 16384},
	{ATTR_SURF_1D_LAYERED_WIDTH, 32768},
	{ATTR_SURF_1D_LAYERED_LAYERS, 2048},
	{ATTR_SURF_2D_LAYERED_WIDTH, 32768},
	{ATTR_SURF_2D_LAYERED_HEIGHT, 32768},
	{ATTR_SURF_2D_LAYERED_LAYERS, 2048},
	{ATTR_SURF_CUBE_WIDTH, 32768},
	{ATTR_SURF_CUBE_LAYERED_WIDTH, 32768},
	{ATTR_SURF_CUBE_LAYERED_LAYERS, 2046},
	{ATTR_TEX_1D_LINEAR_WIDTH, 268435456},
	{ATTR_TEX_2D_LINEAR_WIDTH, 131072},
	{ATTR_TEX_2D_LINEAR_HEIGHT, 65000},
	{ATTR_TEX_2D_LINEAR_PITCH, 2097120},
	{ATTR_TEX_2D_MIPMAP_WIDTH, 32768},
	{ATTR_TEX_2D_MIPMAP_HEIGHT, 32768},
	{ATTR_TEX_1D_MIPMAP_WIDTH, 32768},
	{ATTR_STREAM_PRIORITIES, 1},
	{ATTR_GLOBAL_L1, 1},
	{ATTR_LOCAL_L1, 1},
	{ATTR_MANAGED_MEMORY, 1},
	{ATTR_SINGLE_TO_DOUBLE, 2},
	{ATTR_CONCURRENT_MANAGED, 1},
	{ATTR_HOST_POINTER_FOR_REGISTERED, 1},
	{ATTR_COOPERATIVE_LAUNCH, 1},
	{ATTR_HOST_REGISTER, 1},
	{ATTR_VIRTUAL_MEMORY, 1},
	{ATTR_VIRTUAL_MEMORY_FILES, 1},
	{ATTR_MEMORY_POOLS, 1},
	{ATTR_STREAM_VALUES_64, 1},
	{ATTR_STREAM_VALUES_NOR, 1},
	{ATTR_UNIFIED_FUNCTION_POINTERS, 1},
	{ATTR_NUMA_ID, -1},
	{ATTR_HOST_NUMA_ID, -1},
	{ATTR_SYNC_DOMAINS, 1},
	/* Features that the device lacks, and statements that are false for it. */
	{ATTR_KERNEL_TIMEOUT, 0},
	{ATTR_INTEGRATED, 0},
	{ATTR_COMPUTE_MODE, 0},
	{ATTR_ECC, 0},
	{ATTR_PCI_DOMAIN, 0},
	{ATTR_TCC, 0},
	{ATTR_MULTI_GPU_BOARD, 0},
	{ATTR_HOST_NATIVE_ATOMICS, 0},
	{ATTR_PAGEABLE_ACCESS, 0},
	{ATTR_COMPUTE_PREEMPTION, 0},
	{ATTR_FLUSH_REMOTE_WRITES, 0},
	{ATTR_PAGEABLE_USES_HOST_TABLES, 0},
	{ATTR_DIRECT_MANAGED_FROM_HOST, 0},
	{ATTR_PERSISTING_L2, 0},
	{ATTR_ACCESS_WINDOW, 0},
	{ATTR_SPARSE_ARRAYS, 0},
	{ATTR_HOST_REGISTER_READ_ONLY, 0},
	{ATTR_TIMELINE_SEMAPHORES, 0},
	{ATTR_RDMA, 0},
	{ATTR_RDMA_FLUSH, 0},
	{ATTR_RDMA_ORDERING, 0},
	{ATTR_POOL_HANDLE_TYPES, 0},
	{ATTR_CLUSTER_LAUNCH, 0},
	{ATTR_DEFERRED_ARRAYS, 0},
	{ATTR_IPC_EVENTS, 1},
	{ATTR_NUMA_CONFIG, 0},
	{ATTR_MPS, 0},
	{ATTR_D3D12_CIG, 0},
	{ATTR_VULKAN_CIG, 0},
	{ATTR_GPU_PCI_DEVICE_ID, 0},
	{ATTR_GPU_PCI_SUBSYSTEM_ID, 0},
	{ATTR_HOST_NUMA_POOLS, 0},
	{ATTR_HOST_NUMA_IPC, 0},
	{ATTR_HOST_POOLS, 0},
	{ATTR_PARTIAL_HOST_ATOMICS, 0},
};

const struct soft_limits *soft_limits(unsigned int sm)
{
	size_t i;

	for (i = 0; i < sizeof(limits) / sizeof(*limits); i++)
		if (limits[i].sm == sm)
			return &limits[i];
	return NULL;
}

int soft_device_desc(struct be *be, unsigned int dev, struct qcu_device_desc *desc)
{
	const struct soft_limits *lim = soft_limits(be->sm);
	int32_t *a = desc->attr;
	size_t i;

	memset(desc, 0, sizeof(*desc));
	snprintf(desc->name, sizeof(desc->name), "qCUDA software GPU");
	/* The same on every host: only the device number tells one software GPU from another. */
	memcpy(desc->uuid, "qCUDA soft GPU\0\0", sizeof(desc->uuid));
	desc->uuid[15] = (uint8_t)dev;
	desc->total_mem = be->dev[dev].mem.vram;
	for (i = 0; i < sizeof(fixed) / sizeof(*fixed); i++)
		a[fixed[i].attr] = fixed[i].value;
	a[ATTR_SM_COUNT] = (int32_t)be->dev[dev].env.sm_count;
	a[ATTR_PCI_BUS] = (int32_t)dev + 1;
	a[ATTR_PCI_DEVICE] = 0;
	a[ATTR_MULTI_GPU_GROUP] = (int32_t)dev;
	a[ATTR_CAPABILITY_MAJOR] = (int32_t)be->sm / 10;
	a[ATTR_CAPABILITY_MINOR] = (int32_t)be->sm % 10;
	a[ATTR_THREADS_PER_SM] = (int32_t)lim->threads_per_sm;
	a[ATTR_BLOCKS_PER_SM] = (int32_t)lim->blocks_per_sm;
	a[ATTR_SHARED_PER_BLOCK] = (int32_t)lim->shared_per_block;
	a[ATTR_SHARED_OPTIN] = (int32_t)lim->shared_optin;
	a[ATTR_SHARED_PER_SM] = (int32_t)lim->shared_per_sm;
	a[ATTR_SHARED_RESERVED] = (int32_t)lim->shared_reserved;
	a[ATTR_REGS_PER_BLOCK] = (int32_t)lim->regs;
	a[ATTR_REGS_PER_SM] = (int32_t)lim->regs;
	return QCU_ERR_Success;
}

/*
 * Numbers that a GPU may have which always runs at its highest clocks: a program that asks sees
 * something, and none of it says anything of the host. How busy it is, the mirror knows.
 */
void soft_sensors(struct be *be, unsigned int dev, uint32_t *known, uint32_t *value)
{
	struct qcu_device_desc desc;
	uint32_t sm, memory;

	soft_device_desc(be, dev, &desc);
	sm = (uint32_t)desc.attr[ATTR_CLOCK_KHZ] / 1000;
	memory = (uint32_t)desc.attr[ATTR_MEMORY_CLOCK_KHZ] / 1000;
	value[QCU_SENSOR_clock_sm] = value[QCU_SENSOR_app_sm] = value[QCU_SENSOR_clock_video] = sm;
	value[QCU_SENSOR_clock_memory] = value[QCU_SENSOR_app_memory] = memory;
	value[QCU_SENSOR_driver] = QCU_DRIVER(580, 65, 6);
	value[QCU_SENSOR_celsius] = 40;
	value[QCU_SENSOR_milliwatts] = 100000;
	value[QCU_SENSOR_power_limit] = 250000;
	*known = ((1u << QCU_SENSOR_COUNT) - 1) &
		 ~(1u << QCU_SENSOR_busy | 1u << QCU_SENSOR_busy_memory);
}

bool soft_env_attribute(void *ctx, uint32_t attr, int32_t *value)
{
	const struct soft_device *d = ctx;
	struct qcu_device_desc desc;

	if (attr >= QCU_ATTRS || soft_device_desc(d->be, d->index, &desc))
		return false;
	*value = desc.attr[attr];
	return true;
}

int soft_versions(struct be *be, uint32_t *driver, uint32_t *runtime)
{
	(void)be;
	*driver = CUDA_VERSION;
	*runtime = CUDA_VERSION;
	return QCU_ERR_Success;
}

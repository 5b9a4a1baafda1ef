/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * NVML's types, as far as the functions that we have need them. They are written here because
 * NVIDIA's nvml.h is not part of every CUDA Toolkit. tests/check/nvml.sh compares them with it.
 */
#ifndef QCUL_NVML_ABI_H
#define QCUL_NVML_ABI_H

/* X(number, NAME, "what nvmlErrorString says"). NVIDIA's names begin with NVML_ERROR_. */
/* clang-format off */
#define NVML_ERRORS(X) \
	X(1,   UNINITIALIZED,             "NVML is not initialized") \
	X(2,   INVALID_ARGUMENT,          "Invalid argument") \
	X(3,   NOT_SUPPORTED,             "Not supported") \
	X(4,   NO_PERMISSION,             "No permission") \
	X(5,   ALREADY_INITIALIZED,       "Already initialized") \
	X(6,   NOT_FOUND,                 "Not found") \
	X(7,   INSUFFICIENT_SIZE,         "The buffer is too small") \
	X(8,   INSUFFICIENT_POWER,        "Not enough power") \
	X(9,   DRIVER_NOT_LOADED,         "The driver is not loaded") \
	X(10,  TIMEOUT,                   "Timeout") \
	X(11,  IRQ_ISSUE,                 "Problem with an interrupt") \
	X(12,  LIBRARY_NOT_FOUND,         "A library was not found") \
	X(13,  FUNCTION_NOT_FOUND,        "A function was not found") \
	X(14,  CORRUPTED_INFOROM,         "The infoROM is damaged") \
	X(15,  GPU_IS_LOST,               "The GPU is lost") \
	X(16,  RESET_REQUIRED,            "The GPU needs a reset") \
	X(17,  OPERATING_SYSTEM,          "Error of the operating system") \
	X(18,  LIB_RM_VERSION_MISMATCH,   "The versions of driver and library do not match") \
	X(19,  IN_USE,                    "In use") \
	X(20,  MEMORY,                    "Out of memory") \
	X(21,  NO_DATA,                   "No data") \
	X(22,  VGPU_ECC_NOT_SUPPORTED,    "Not possible with ECC") \
	X(23,  INSUFFICIENT_RESOURCES,    "Not enough resources") \
	X(24,  FREQ_NOT_SUPPORTED,        "The frequency is not supported") \
	X(25,  ARGUMENT_VERSION_MISMATCH, "The version of a structure is not known") \
	X(26,  DEPRECATED,                "Deprecated") \
	X(27,  NOT_READY,                 "Not ready") \
	X(28,  GPU_NOT_FOUND,             "No GPU was found") \
	X(29,  INVALID_STATE,             "Not possible in this state") \
	X(999, UNKNOWN,                   "Unknown error")
/* clang-format on */

enum {
	NV_SUCCESS = 0,
#define X(n, NAME, text) NV_##NAME = n,
	NVML_ERRORS(X)
#undef X
};

typedef unsigned int nv_return;
typedef unsigned int nv_brand, nv_arch, nv_enabled, nv_mode, nv_clock, nv_topology;
typedef unsigned int nv_peer_index, nv_peer_status, nv_scope, nv_clock_id, nv_sensor;
typedef struct nv_device *nv_device_t;

#define NV_INIT_NO_GPUS 1u

/* Brands, from the names of the devices. */
#define NV_BRAND_UNKNOWN 0u
#define NV_BRAND_QUADRO	 1u
#define NV_BRAND_TESLA	 2u
#define NV_BRAND_GEFORCE 5u
#define NV_BRAND_TITAN	 6u
#define NV_BRAND_NVIDIA	 14u

#define NV_ARCH_KEPLER	  2u
#define NV_ARCH_MAXWELL	  3u
#define NV_ARCH_PASCAL	  4u
#define NV_ARCH_VOLTA	  5u
#define NV_ARCH_TURING	  6u
#define NV_ARCH_AMPERE	  7u
#define NV_ARCH_ADA	  8u
#define NV_ARCH_HOPPER	  9u
#define NV_ARCH_BLACKWELL 10u
#define NV_ARCH_UNKNOWN	  0xffffffffu

#define NV_CLOCK_GRAPHICS 0u
#define NV_CLOCK_SM	  1u
#define NV_CLOCK_MEM	  2u
#define NV_CLOCK_VIDEO	  3u

/* Which of the clocks of a kind. */
#define NV_CLOCK_NOW	     0u
#define NV_CLOCK_APP	     1u
#define NV_CLOCK_APP_DEFAULT 2u
#define NV_CLOCK_BOOST_MAX   3u

#define NV_SENSOR_GPU 0u

#define NV_PEER_READ		     0u
#define NV_PEER_WRITE		     1u
#define NV_PEER_NVLINK		     2u
#define NV_PEER_ATOMICS		     3u
#define NV_PEER_PCI		     4u
#define NV_PEER_OK		     0u
#define NV_PEER_STATUS_NOT_SUPPORTED 5u

#define NV_TOPOLOGY_INTERNAL 0u
#define NV_SCOPE_NODE	     0u
#define NV_SCOPE_SOCKET	     1u

/* The version of a structure, which its first member holds. */
#define NV_VERSION(type, n) ((unsigned int)(sizeof(type) | (n) << 24))

typedef struct {
	char legacy_id[16];
	unsigned int domain, bus, device;
	unsigned int pci_id, subsystem_id;
	char id[32];
} nv_pci;

typedef struct {
	unsigned int version;
	unsigned int domain, bus, device;
	unsigned int pci_id, subsystem_id;
	unsigned int base_class, sub_class;
	char id[32];
} nv_pci_ext;

typedef struct {
	unsigned long long total, free, used;
} nv_memory;

typedef struct {
	unsigned int version;
	unsigned long long total, reserved, free, used;
} nv_memory_v2;

typedef struct {
	unsigned int pid;
	unsigned long long bytes;
} nv_process_v1;

typedef struct {
	unsigned int pid;
	unsigned long long bytes;
	unsigned int gpu_instance, compute_instance;
} nv_process;
#define NV_NO_INSTANCE 0xffffffffu

typedef struct {
	unsigned int gpu, memory;
} nv_rates;

/* when: microseconds since 1970. The others: percent. */
typedef struct {
	unsigned int pid;
	unsigned long long when;
	unsigned int sm, memory, encoder, decoder;
} nv_process_busy;

typedef struct {
	unsigned int version;
	nv_sensor sensor;
	int celsius;
} nv_temperature;

typedef struct {
	unsigned int field, scope;
	long long timestamp, latency;
	unsigned int type;
	nv_return status;
	unsigned long long value;
} nv_field;

#endif

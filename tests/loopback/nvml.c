// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * libnvidia-ml.so.1 with two GPUs in software: calls before nvmlInit and after the last
 * nvmlShutdown, wrong arguments, what each function says, what is not supported.
 * tests/vm/tools/nvml.sh has the numbers of a VM.
 */
#define _GNU_SOURCE
#include "qcu-library/nvml/api.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPECT(call, code)                                                                    \
	do {                                                                                  \
		nv_return got_ = (call), want_ = (code);                                      \
		if (got_ != want_) {                                                          \
			fprintf(stderr, "%s:%d: %s: %s, not %s\n", __FILE__, __LINE__, #call, \
				nvmlErrorString(got_), nvmlErrorString(want_));               \
			exit(1);                                                              \
		}                                                                             \
	} while (0)
#define OK(call) EXPECT(call, NV_SUCCESS)
#define REQUIRE(cond)                                                                   \
	do {                                                                            \
		if (!(cond)) {                                                          \
			fprintf(stderr, "%s:%d: not: %s\n", __FILE__, __LINE__, #cond); \
			exit(1);                                                        \
		}                                                                       \
	} while (0)

/* Functions of a device, with a place for one answer. */
typedef nv_return one_fn(nv_device_t device, void *to);
#define ONE(name)                     \
	{                             \
#name, (one_fn *)name \
	}
static const struct {
	const char *name;
	one_fn *fn;
} ones[] = {
	ONE(nvmlDeviceGetIndex),	  ONE(nvmlDeviceGetMinorNumber),
	ONE(nvmlDeviceGetBrand),	  ONE(nvmlDeviceGetArchitecture),
	ONE(nvmlDeviceGetComputeMode),	  ONE(nvmlDeviceGetDisplayMode),
	ONE(nvmlDeviceGetDisplayActive),  ONE(nvmlDeviceGetMultiGpuBoard),
	ONE(nvmlDeviceIsMigDeviceHandle), ONE(nvmlDeviceGetMaxMigDeviceCount),
	ONE(nvmlDeviceGetMemoryInfo),	  ONE(nvmlDeviceGetPciInfo),
	ONE(nvmlDeviceGetPciInfo_v2),	  ONE(nvmlDeviceGetPciInfo_v3),
};

/* What a guest cannot know, of one device and with one place. */
static const char *const quiet[] = {
	"nvmlDeviceGetFanSpeed",	 "nvmlDeviceGetPcieReplayCounter",
	"nvmlDeviceGetPersistenceMode",	 "nvmlDeviceGetBAR1MemoryInfo",
	"nvmlDeviceGetPerformanceState", "nvmlDeviceGetTotalEnergyConsumption",
};

static nv_device_t first, second;
static const nv_device_t none = (nv_device_t) "a handle of somebody else";

/* Before nvmlInit, and after the last nvmlShutdown. */
static void uninitialized(void)
{
	char text[256];
	nv_device_t device;
	unsigned int n = 0, i;
	int version;

	EXPECT(nvmlShutdown(), NV_UNINITIALIZED);
	EXPECT(nvmlDeviceGetCount(&n), NV_UNINITIALIZED);
	EXPECT(nvmlDeviceGetCount_v2(NULL), NV_UNINITIALIZED);
	EXPECT(nvmlDeviceGetHandleByIndex_v2(0, &device), NV_UNINITIALIZED);
	EXPECT(nvmlDeviceGetHandleByUUID("", &device), NV_UNINITIALIZED);
	EXPECT(nvmlDeviceGetHandleByPciBusId_v2("", &device), NV_UNINITIALIZED);
	EXPECT(nvmlSystemGetDriverVersion(text, sizeof(text)), NV_UNINITIALIZED);
	EXPECT(nvmlSystemGetNVMLVersion(text, sizeof(text)), NV_UNINITIALIZED);
	EXPECT(nvmlSystemGetCudaDriverVersion_v2(&version), NV_UNINITIALIZED);
	EXPECT(nvmlSystemGetProcessName(1, text, sizeof(text)), NV_UNINITIALIZED);
	EXPECT(nvmlUnitGetCount(&n), NV_UNINITIALIZED);
	EXPECT(nvmlDeviceGetName(first, text, sizeof(text)), NV_UNINITIALIZED);
	EXPECT(nvmlDeviceGetComputeRunningProcesses_v3(first, &n, NULL), NV_UNINITIALIZED);
	for (i = 0; i < sizeof(ones) / sizeof(*ones); i++)
		EXPECT(ones[i].fn(first, text), NV_UNINITIALIZED);
}

static void without_gpus(void)
{
	unsigned int n = 99;
	char text[64];
	int version;

	setenv("QCU_LOOPBACK_BACKEND", "/no/such/backend.so", 1);
	EXPECT(nvmlInit_v2(), NV_DRIVER_NOT_LOADED);
	EXPECT(nvmlInitWithFlags(0), NV_DRIVER_NOT_LOADED);
	OK(nvmlInitWithFlags(NV_INIT_NO_GPUS));
	OK(nvmlDeviceGetCount(&n));
	REQUIRE(n == 0);
	EXPECT(nvmlDeviceGetHandleByIndex_v2(0, &first), NV_INVALID_ARGUMENT);
	EXPECT(nvmlSystemGetCudaDriverVersion(&version), NV_GPU_NOT_FOUND);
	OK(nvmlSystemGetNVMLVersion(text, sizeof(text)));
	OK(nvmlShutdown());
	unsetenv("QCU_LOOPBACK_BACKEND");
}

static void errors(void)
{
	REQUIRE(!strcmp(nvmlErrorString(NV_SUCCESS), "Success"));
	REQUIRE(!strcmp(nvmlErrorString(NV_NOT_SUPPORTED), "Not supported"));
	REQUIRE(!strcmp(nvmlErrorString(12345), nvmlErrorString(NV_UNKNOWN)));
}

static void handles(void)
{
	char uuid[80], other[80];
	unsigned int n;
	nv_device_t device;
	nv_pci pci;

	EXPECT(nvmlDeviceGetCount_v2(NULL), NV_INVALID_ARGUMENT);
	OK(nvmlDeviceGetCount_v2(&n));
	REQUIRE(n == 2);
	EXPECT(nvmlDeviceGetHandleByIndex_v2(0, NULL), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetHandleByIndex_v2(2, &device), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetHandleByIndex_v2(~0u, &device), NV_INVALID_ARGUMENT);
	OK(nvmlDeviceGetHandleByIndex_v2(0, &first));
	OK(nvmlDeviceGetHandleByIndex(1, &second));
	REQUIRE(first != second);

	EXPECT(nvmlDeviceGetUUID(first, NULL, 80), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetUUID(first, uuid, 40), NV_INSUFFICIENT_SIZE);
	OK(nvmlDeviceGetUUID(first, uuid, 41));
	OK(nvmlDeviceGetUUID(second, other, sizeof(other)));
	REQUIRE(!strncmp(uuid, "GPU-", 4) && strlen(uuid) == 40 && strcmp(uuid, other));
	EXPECT(nvmlDeviceGetHandleByUUID(NULL, &device), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetHandleByUUID(uuid, NULL), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetHandleByUUID("GPU-", &device), NV_NOT_FOUND);
	OK(nvmlDeviceGetHandleByUUID(other, &device));
	REQUIRE(device == second);

	OK(nvmlDeviceGetPciInfo_v3(second, &pci));
	EXPECT(nvmlDeviceGetHandleByPciBusId_v2(NULL, &device), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetHandleByPciBusId_v2("", &device), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetHandleByPciBusId_v2("gpu1", &device), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetHandleByPciBusId_v2("0:0:0.0g", &device), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetHandleByPciBusId_v2("ff:ff:1f.0", &device), NV_NOT_FOUND);
	OK(nvmlDeviceGetHandleByPciBusId_v2(pci.id, &device));
	REQUIRE(device == second);
	OK(nvmlDeviceGetHandleByPciBusId(pci.legacy_id, &device));
	REQUIRE(device == second);
	OK(nvmlDeviceGetHandleByPciBusId(pci.legacy_id + 5, &device));
	REQUIRE(device == second);
	pci.id[strlen(pci.id) - 1] = '1';
	EXPECT(nvmlDeviceGetHandleByPciBusId_v2(pci.id, &device), NV_NOT_FOUND);
}

static void identity(void)
{
	const ptrdiff_t size = (char *)second - (char *)first;
	nv_device_t behind = (nv_device_t)((char *)second + size);
	unsigned int i, n, m;
	char text[256];
	nv_pci_ext ext;
	int major, minor;

	for (i = 0; i < sizeof(ones) / sizeof(*ones); i++) {
		EXPECT(ones[i].fn(NULL, text), NV_INVALID_ARGUMENT);
		EXPECT(ones[i].fn(none, text), NV_INVALID_ARGUMENT);
		EXPECT(ones[i].fn((nv_device_t)((char *)first + 1), text), NV_INVALID_ARGUMENT);
		EXPECT(ones[i].fn(behind, text), NV_INVALID_ARGUMENT);
		EXPECT(ones[i].fn(first, NULL), NV_INVALID_ARGUMENT);
		OK(ones[i].fn(first, text));
	}
	OK(nvmlDeviceGetIndex(second, &n));
	REQUIRE(n == 1);
	EXPECT(nvmlDeviceGetName(first, text, 0), NV_INSUFFICIENT_SIZE);
	EXPECT(nvmlDeviceGetName(first, text, 18), NV_INSUFFICIENT_SIZE);
	EXPECT(nvmlDeviceGetName(first, NULL, 64), NV_INVALID_ARGUMENT);
	OK(nvmlDeviceGetName(first, text, 19));
	REQUIRE(!strcmp(text, "qCUDA software GPU"));
	EXPECT(nvmlDeviceGetCudaComputeCapability(first, &major, NULL), NV_INVALID_ARGUMENT);
	OK(nvmlDeviceGetCudaComputeCapability(first, &major, &minor));
	OK(nvmlDeviceGetArchitecture(first, &n));
	REQUIRE(major == 9 && minor == 0 && n == NV_ARCH_HOPPER);
	OK(nvmlDeviceGetBrand(first, &n));
	REQUIRE(n == NV_BRAND_UNKNOWN);
	memset(&ext, 0, sizeof(ext));
	EXPECT(nvmlDeviceGetPciInfoExt(first, NULL), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetPciInfoExt(first, &ext), NV_ARGUMENT_VERSION_MISMATCH);
	ext.version = NV_VERSION(nv_pci_ext, 2);
	EXPECT(nvmlDeviceGetPciInfoExt(first, &ext), NV_ARGUMENT_VERSION_MISMATCH);
	ext.version = NV_VERSION(nv_pci_ext, 1);
	OK(nvmlDeviceGetPciInfoExt(first, &ext));
	EXPECT(nvmlDeviceGetEccMode(first, &n, NULL), NV_INVALID_ARGUMENT);
	OK(nvmlDeviceGetEccMode(first, &n, &m));
	EXPECT(nvmlDeviceGetMaxClockInfo(first, 4, &n), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetMaxClockInfo(first, NV_CLOCK_VIDEO, &n), NV_NOT_SUPPORTED);
	OK(nvmlDeviceGetMaxClockInfo(first, NV_CLOCK_SM, &n));
	REQUIRE(n > 0);
}

/* The older form of nvmlPciInfo_t ends earlier. */
static void old_pci(void)
{
	char memory[sizeof(nv_pci)];
	unsigned int i;

	memset(memory, 0x5a, sizeof(memory));
	OK(nvmlDeviceGetPciInfo_v2(first, (nv_pci *)memory));
	for (i = 36; i < sizeof(memory); i++)
		REQUIRE(memory[i] == 0x5a);
}

static void system_calls(void)
{
	char text[256], path[64];
	int version;

	EXPECT(nvmlSystemGetDriverVersion(NULL, 80), NV_INVALID_ARGUMENT);
	EXPECT(nvmlSystemGetDriverVersion(text, 1), NV_INSUFFICIENT_SIZE);
	OK(nvmlSystemGetDriverVersion(text, sizeof(text)));
	EXPECT(nvmlSystemGetCudaDriverVersion_v2(NULL), NV_INVALID_ARGUMENT);
	OK(nvmlSystemGetCudaDriverVersion_v2(&version));
	REQUIRE(version >= 13000);
	EXPECT(nvmlSystemGetProcessName((unsigned int)getpid(), NULL, 9), NV_INVALID_ARGUMENT);
	EXPECT(nvmlSystemGetProcessName((unsigned int)getpid(), text, 0), NV_INVALID_ARGUMENT);
	EXPECT(nvmlSystemGetProcessName(~0u, text, sizeof(text)), NV_NOT_FOUND);
	OK(nvmlSystemGetProcessName((unsigned int)getpid(), text, sizeof(text)));
	REQUIRE(!strcmp(strrchr(text, '/') ? strrchr(text, '/') + 1 : text, "nvml"));
	OK(nvmlSystemGetProcessName((unsigned int)getpid(), path, 3));
	REQUIRE(strlen(path) == 2 && !strncmp(path, text, 2));
}

static void memory(void)
{
	nv_memory_v2 v2 = {0};
	nv_memory v1;

	EXPECT(nvmlDeviceGetMemoryInfo_v2(none, &v2), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetMemoryInfo_v2(first, NULL), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetMemoryInfo_v2(first, &v2), NV_ARGUMENT_VERSION_MISMATCH);
	v2.version = NV_VERSION(nv_memory_v2, 1);
	EXPECT(nvmlDeviceGetMemoryInfo_v2(first, &v2), NV_ARGUMENT_VERSION_MISMATCH);
	REQUIRE(v2.total == 0);
	v2.version = NV_VERSION(nv_memory_v2, 2);
	OK(nvmlDeviceGetMemoryInfo_v2(first, &v2));
	OK(nvmlDeviceGetMemoryInfo(first, &v1));
	REQUIRE(v1.total > 0 && v1.used == 0 && v1.free == v1.total);
	REQUIRE(v2.total == v1.total && v2.used == v1.used && v2.free == v1.free);
}

/* This program asks, and does not use CUDA: it is not in the list. */
static void processes(void)
{
	nv_process list[4];
	nv_process_v1 old[4];
	unsigned int n = 1;

	EXPECT(nvmlDeviceGetComputeRunningProcesses_v3(none, &n, list), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetComputeRunningProcesses_v3(first, NULL, list), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetComputeRunningProcesses_v3(first, &n, NULL), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetGraphicsRunningProcesses_v3(first, &n, NULL), NV_INVALID_ARGUMENT);
	n = 0;
	OK(nvmlDeviceGetComputeRunningProcesses_v3(first, &n, NULL));
	n = 4;
	OK(nvmlDeviceGetComputeRunningProcesses_v2(first, &n, list));
	REQUIRE(n == 0);
	n = 4;
	OK(nvmlDeviceGetComputeRunningProcesses(first, &n, old));
	REQUIRE(n == 0);
	n = 4;
	OK(nvmlDeviceGetGraphicsRunningProcesses_v3(first, &n, list));
	REQUIRE(n == 0);
	n = 4;
	OK(nvmlDeviceGetMPSComputeRunningProcesses_v3(first, &n, list));
	REQUIRE(n == 0);
}

static void places(void)
{
	unsigned long set[32], bits = 0;
	unsigned int n, i;
	int same;

	EXPECT(nvmlDeviceOnSameBoard(first, none, &same), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceOnSameBoard(first, second, NULL), NV_INVALID_ARGUMENT);
	OK(nvmlDeviceOnSameBoard(first, first, &same));
	REQUIRE(same);
	OK(nvmlDeviceOnSameBoard(first, second, &same));
	REQUIRE(!same);
	EXPECT(nvmlDeviceGetTopologyCommonAncestor(first, second, &n), NV_NOT_SUPPORTED);
	OK(nvmlDeviceGetTopologyCommonAncestor(second, second, &n));
	REQUIRE(n == NV_TOPOLOGY_INTERNAL);
	EXPECT(nvmlDeviceGetP2PStatus(first, second, 5, &n), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetP2PStatus(first, second, NV_PEER_READ, NULL), NV_INVALID_ARGUMENT);
	OK(nvmlDeviceGetP2PStatus(first, first, NV_PEER_NVLINK, &n));
	REQUIRE(n == NV_PEER_OK);
	OK(nvmlDeviceGetP2PStatus(first, second, NV_PEER_NVLINK, &n));
	REQUIRE(n == NV_PEER_STATUS_NOT_SUPPORTED);
	OK(nvmlDeviceGetP2PStatus(first, second, NV_PEER_READ, &n));
	REQUIRE(n == NV_PEER_OK);

	EXPECT(nvmlDeviceGetCpuAffinity(first, 0, set), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetCpuAffinity(first, 32, NULL), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetCpuAffinityWithinScope(first, 32, set, 2), NV_INVALID_ARGUMENT);
	OK(nvmlDeviceGetCpuAffinityWithinScope(first, 32, set, NV_SCOPE_NODE));
	for (i = 0; i < 32; i++)
		bits += (unsigned long)__builtin_popcountl(set[i]);
	REQUIRE(bits == (unsigned long)sysconf(_SC_NPROCESSORS_CONF));
}

/* Returns how often the text is in the file. */
static unsigned int found(int fd, const char *text)
{
	char all[4096];
	ssize_t n = pread(fd, all, sizeof(all) - 1, 0);
	unsigned int count = 0;
	const char *at;

	REQUIRE(n >= 0);
	all[n] = 0;
	for (at = all; (at = strstr(at, text)); at++)
		count++;
	return count;
}

/* ---- what changes all the time ---- */

/* Functions of a device and one number. `all`: they need --nvml full. */
static const struct {
	one_fn *fn;
	bool all;
} sensors[] = {
	{(one_fn *)nvmlDeviceGetUtilizationRates, false},
	{(one_fn *)nvmlDeviceGetPowerUsage, true},
	{(one_fn *)nvmlDeviceGetPowerManagementLimit, true},
	{(one_fn *)nvmlDeviceGetEnforcedPowerLimit, true},
};

/* Functions of a device, a kind of clock and one number. */
static nv_return (*const clocks[])(nv_device_t, nv_clock, unsigned int *) = {
	nvmlDeviceGetClockInfo,
	nvmlDeviceGetApplicationsClock,
	nvmlDeviceGetDefaultApplicationsClock,
};

static void wrong_sensors(void)
{
	nv_temperature t = {.version = NV_VERSION(nv_temperature, 2)};
	unsigned int n = 7, i;

	for (i = 0; i < sizeof(sensors) / sizeof(*sensors); i++) {
		EXPECT(sensors[i].fn(none, &n), NV_INVALID_ARGUMENT);
		EXPECT(sensors[i].fn(first, NULL), NV_INVALID_ARGUMENT);
	}
	for (i = 0; i < sizeof(clocks) / sizeof(*clocks); i++) {
		EXPECT(clocks[i](none, NV_CLOCK_SM, &n), NV_INVALID_ARGUMENT);
		EXPECT(clocks[i](first, NV_CLOCK_SM, NULL), NV_INVALID_ARGUMENT);
		EXPECT(clocks[i](first, NV_CLOCK_VIDEO + 1, &n), NV_INVALID_ARGUMENT);
		EXPECT(clocks[i](first, ~0u, &n), NV_INVALID_ARGUMENT);
	}
	EXPECT(nvmlDeviceGetClock(none, NV_CLOCK_SM, NV_CLOCK_NOW, &n), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetClock(first, NV_CLOCK_SM, 4, &n), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetClock(first, ~0u, NV_CLOCK_NOW, &n), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetClock(first, NV_CLOCK_SM, NV_CLOCK_BOOST_MAX, NULL),
	       NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetTemperature(none, NV_SENSOR_GPU, &n), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetTemperature(first, 1, &n), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetTemperature(first, NV_SENSOR_GPU, NULL), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetTemperatureV(none, &t), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetTemperatureV(first, NULL), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetTemperatureV(first, &t), NV_ARGUMENT_VERSION_MISMATCH);
	t.version = NV_VERSION(nv_temperature, 1);
	t.sensor = 1;
	EXPECT(nvmlDeviceGetTemperatureV(first, &t), NV_INVALID_ARGUMENT);
	REQUIRE(n == 7 && !t.celsius);
}

/* The software GPU always runs at the clocks that its description names. */
static void clocks_of_description(void)
{
	static const nv_clock kinds[] = {NV_CLOCK_GRAPHICS, NV_CLOCK_SM, NV_CLOCK_MEM};
	unsigned int most, n, i, j;

	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		OK(nvmlDeviceGetMaxClockInfo(second, kinds[i], &most));
		for (j = 0; j < sizeof(clocks) / sizeof(*clocks); j++) {
			n = 0;
			OK(clocks[j](second, kinds[i], &n));
			REQUIRE(n == most);
		}
		for (j = NV_CLOCK_NOW; j <= NV_CLOCK_BOOST_MAX; j++) {
			n = 0;
			OK(nvmlDeviceGetClock(second, kinds[i], j, &n));
			REQUIRE(n == most);
		}
	}
	OK(nvmlDeviceGetClockInfo(first, NV_CLOCK_VIDEO, &n));
	REQUIRE(n > 0);
	EXPECT(nvmlDeviceGetApplicationsClock(first, NV_CLOCK_VIDEO, &n), NV_NOT_SUPPORTED);
}

/* This program runs no work; the mirror's tests and those in a VM do. */
static void process_utilization(bool known)
{
	nv_process_busy list[2] = {{.pid = 7}, {.pid = 7}};
	unsigned int n = 0;

	EXPECT(nvmlDeviceGetProcessUtilization(none, NULL, &n, 0), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetProcessUtilization(first, list, NULL, 0), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetProcessUtilization(first, NULL, &n, 0),
	       known ? NV_NOT_FOUND : NV_NOT_SUPPORTED);
	n = 2;
	EXPECT(nvmlDeviceGetProcessUtilization(first, list, &n, 0),
	       known ? NV_NOT_FOUND : NV_NOT_SUPPORTED);
	EXPECT(nvmlDeviceGetProcessUtilization(first, list, &n, ~0ull),
	       known ? NV_NOT_FOUND : NV_NOT_SUPPORTED);
	REQUIRE(n == 2 && list[0].pid == 7);
}

/* mode: what the operator lets programs know. */
static void sensors_with(const char *mode)
{
	const bool any = strcmp(mode, "none"), all = !strcmp(mode, "full");
	nv_temperature t = {.version = NV_VERSION(nv_temperature, 1)};
	unsigned int i, n, limit, parts[3];
	nv_rates rates[2] = {{0}, {0}};
	char version[80];
	int cuda;

	setenv("QCU_LOOPBACK_NVML", mode, 1);
	OK(nvmlInit());
	wrong_sensors();
	for (i = 0; i < sizeof(sensors) / sizeof(*sensors); i++)
		EXPECT(sensors[i].fn(first, &rates),
		       any && (all || !sensors[i].all) ? NV_SUCCESS : NV_NOT_SUPPORTED);
	if (any)
		clocks_of_description();
	for (i = 0; i < sizeof(clocks) / sizeof(*clocks) && !any; i++)
		EXPECT(clocks[i](first, NV_CLOCK_SM, &n), NV_NOT_SUPPORTED);
	if (any) {
		OK(nvmlDeviceGetUtilizationRates(first, &rates[0]));
		/* This program runs no work. */
		REQUIRE(!rates[0].gpu && !rates[0].memory);
		REQUIRE(!rates[1].gpu && !rates[1].memory);
	}
	process_utilization(any);
	EXPECT(nvmlDeviceGetTemperature(first, NV_SENSOR_GPU, &n),
	       all ? NV_SUCCESS : NV_NOT_SUPPORTED);
	EXPECT(nvmlDeviceGetTemperatureV(first, &t), all ? NV_SUCCESS : NV_NOT_SUPPORTED);
	if (all) {
		REQUIRE(n > 0 && n < 100 && t.celsius == (int)n);
		OK(nvmlDeviceGetPowerUsage(first, &n));
		OK(nvmlDeviceGetEnforcedPowerLimit(first, &limit));
		REQUIRE(n > 1000 && n < limit);
		OK(nvmlDeviceGetPowerManagementLimit(first, &n));
		REQUIRE(n == limit);
	}
	OK(nvmlSystemGetDriverVersion(version, sizeof(version)));
	n = (unsigned int)sscanf(version, "%3u.%2u.%2u", &parts[0], &parts[1], &parts[2]);
	REQUIRE(n == (any ? 3 : 2));
	/* The host's driver is not known: then it is the version of CUDA. */
	OK(nvmlSystemGetCudaDriverVersion(&cuda));
	REQUIRE(any || (parts[0] == (unsigned int)cuda / 1000 &&
			parts[1] == (unsigned int)cuda % 1000 / 10));
	OK(nvmlShutdown());
	unsetenv("QCU_LOOPBACK_NVML");
}

/* What is not supported, and which of it says its name. */
static void not_supported(void)
{
	int file = memfd_create("stderr", 0), before = dup(2);
	nv_return (*cleared)(nv_device_t) =
		(nv_return(*)(nv_device_t))dlsym(RTLD_DEFAULT, "nvmlDeviceClearCpuAffinity");
	nv_return (*sensor)(nv_device_t, unsigned int, unsigned int *) =
		(nv_return(*)(nv_device_t, unsigned int, unsigned int *))dlsym(
			RTLD_DEFAULT, "nvmlDeviceGetTemperatureThreshold");
	nv_field fields[2] = {{.field = 82}, {.field = 83}};
	unsigned int i, n;

	REQUIRE(cleared && sensor);
	fflush(stderr);
	dup2(file, 2);
	for (i = 0; i < sizeof(quiet) / sizeof(*quiet); i++) {
		one_fn *fn = (one_fn *)dlsym(RTLD_DEFAULT, quiet[i]);

		REQUIRE(fn);
		EXPECT(fn(none, &n), NV_INVALID_ARGUMENT);
		EXPECT(fn(first, NULL), NV_INVALID_ARGUMENT);
		EXPECT(fn(first, &n), NV_NOT_SUPPORTED);
	}
	EXPECT(sensor(first, 0, NULL), NV_INVALID_ARGUMENT);
	EXPECT(sensor(first, 0, &n), NV_NOT_SUPPORTED);
	EXPECT(nvmlDeviceGetFieldValues(first, 0, fields), NV_INVALID_ARGUMENT);
	EXPECT(nvmlDeviceGetFieldValues(first, 2, NULL), NV_INVALID_ARGUMENT);
	OK(nvmlDeviceGetFieldValues(first, 2, fields));
	REQUIRE(fields[0].status == NV_NOT_SUPPORTED && fields[1].status == NV_NOT_SUPPORTED);
	REQUIRE(found(file, "qcuda") == 0);
	EXPECT(cleared(first), NV_NOT_SUPPORTED);
	EXPECT(cleared(first), NV_NOT_SUPPORTED);
	REQUIRE(found(file, "nvmlDeviceClearCpuAffinity is not supported") == 1);
	dup2(before, 2);
	close(before);
	close(file);
}

/* A child has a session of its own. */
static void forked(void)
{
	nv_memory now;
	int status;
	pid_t pid;

	OK(nvmlDeviceGetMemoryInfo(first, &now));
	pid = fork();
	REQUIRE(pid >= 0);
	if (!pid) {
		OK(nvmlDeviceGetMemoryInfo(first, &now));
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid && !status);
	OK(nvmlDeviceGetMemoryInfo(first, &now));
}

int main(void)
{
	unsigned int n;

	setenv("QCU_LOOPBACK_GPUS", "2", 1);
	uninitialized();
	without_gpus();
	uninitialized();
	OK(nvmlInit());
	errors();
	handles();
	identity();
	old_pci();
	system_calls();
	memory();
	processes();
	places();
	not_supported();
	forked();

	/* nvmlInit counts. */
	OK(nvmlInit_v2());
	OK(nvmlInitWithFlags(0));
	OK(nvmlShutdown());
	OK(nvmlShutdown());
	OK(nvmlDeviceGetCount(&n));
	OK(nvmlShutdown());
	uninitialized();
	sensors_with("own");
	sensors_with("full");
	sensors_with("none");
	OK(nvmlInit());
	OK(nvmlDeviceGetIndex(second, &n));
	OK(nvmlShutdown());
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* A stand-in for libnvidia-ml.so.1, whose numbers the test sets (fake_nvml.h). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/device/host/fake_nvml.h"

#define API __attribute__((visibility("default")))

struct info {
	unsigned int pid;
	unsigned long long used;
	unsigned int gpu_instance, compute_instance;
};

struct place {
	char legacy_id[16];
	unsigned int domain, bus, device, pci_id, subsystem_id;
	char id[32];
};

struct process_rates {
	unsigned int pid;
	unsigned long long when;
	unsigned int sm, memory, encoder, decoder;
};

struct rates {
	unsigned int gpu, memory;
};

static struct fake_nvml *fake;
static char gpus[FAKE_GPUS], part;

API int nvmlInit_v2(void);
API int nvmlDeviceGetCount_v2(unsigned int *count);
API int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device);
API int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *count,
						struct info *infos);
API int nvmlDeviceGetHandleByUUID(const char *uuid, void **device);
API int nvmlDeviceGetIndex(void *device, unsigned int *index);
API int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *device, void **whole);
API int nvmlDeviceGetGpuInstanceId(void *device, unsigned int *id);
API int nvmlDeviceGetComputeInstanceId(void *device, unsigned int *id);
API int nvmlDeviceGetPciInfo_v3(void *device, struct place *place);
API int nvmlSystemGetDriverVersion(char *version, unsigned int length);
API int nvmlDeviceGetClockInfo(void *device, unsigned int kind, unsigned int *mhz);
API int nvmlDeviceGetApplicationsClock(void *device, unsigned int kind, unsigned int *mhz);
API int nvmlDeviceGetProcessUtilization(void *device, struct process_rates *shares,
					unsigned int *count, unsigned long long since);
API int nvmlDeviceGetUtilizationRates(void *device, struct rates *rates);
API int nvmlDeviceGetTemperature(void *device, unsigned int sensor, unsigned int *celsius);
API int nvmlDeviceGetPowerUsage(void *device, unsigned int *milliwatts);
API int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned int *milliwatts);

int nvmlInit_v2(void)
{
	int fd = open(getenv("QCU_TEST_NVML"), O_RDWR);
	void *p = mmap(NULL, sizeof(*fake), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	close(fd);
	if (p == MAP_FAILED)
		return 999;
	fake = p;
	return fake->error;
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
	*count = FAKE_GPUS;
	return fake->error;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{
	*device = &gpus[index];
	return fake->error;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *count, struct info *infos)
{
	unsigned int gpu = device == &part ? 1 : (unsigned int)((char *)device - gpus), n = 0, i;

	/* A user who is not root does not learn from the whole GPU what its parts do. */
	for (i = 0; i < 4 && device == &part; i++)
		if (fake->process[i].part_bytes && n < *count)
			infos[n++] = (struct info){.pid = fake->process[i].pid,
						   .used = fake->process[i].part_bytes};
	for (i = 0; i < 4 && device != &part; i++)
		if (fake->process[i].bytes[gpu] && n < *count)
			infos[n++] = (struct info){.pid = fake->process[i].pid,
						   .used = fake->process[i].bytes[gpu]};
	*count = n;
	fake->asked++;
	return fake->error;
}

static unsigned int gpu_of(void *device)
{
	return (unsigned int)((char *)device - gpus);
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
	/* A whole GPU's name ends with its number. */
	*device = strncmp(uuid, "GPU-", 4) ? &part : &gpus[uuid[strlen(uuid) - 1] - '0'];
	if (*device != &part)
		return fake->error;
	return fake->part[0] && !strcmp(uuid, fake->part) ? fake->error : 6;
}

int nvmlDeviceGetIndex(void *device, unsigned int *index)
{
	*index = gpu_of(device);
	return fake->error;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *device, void **whole)
{
	*whole = &gpus[1];
	return device == &part ? fake->error : 2;
}

int nvmlDeviceGetGpuInstanceId(void *device, unsigned int *id)
{
	*id = 3;
	return device == &part ? fake->error : 2;
}

int nvmlDeviceGetComputeInstanceId(void *device, unsigned int *id)
{
	*id = 1;
	return device == &part ? fake->error : 2;
}

static int say(void *device, unsigned int of_first, unsigned int *to)
{
	*to = gpu_of(device) ? 10 * of_first : of_first;
	return fake->error;
}

/* The places of the software GPUs. */
int nvmlDeviceGetPciInfo_v3(void *device, struct place *place)
{
	memset(place, 0, sizeof(*place));
	place->bus = gpu_of(device) + 1;
	return fake->error;
}

int nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	snprintf(version, length, "%s", fake->driver);
	return fake->error;
}

int nvmlDeviceGetClockInfo(void *device, unsigned int kind, unsigned int *mhz)
{
	if (!gpu_of(device) && kind == 2)
		fake->sensors_asked++;
	return say(device, fake->clock[kind], mhz);
}

int nvmlDeviceGetApplicationsClock(void *device, unsigned int kind, unsigned int *mhz)
{
	return say(device, fake->app_clock[kind], mhz);
}

int nvmlDeviceGetProcessUtilization(void *device, struct process_rates *shares, unsigned int *count,
				    unsigned long long since)
{
	unsigned int n = 0, i;

	(void)since;
	for (i = 0; i < 4; i++)
		if (fake->process[i].busy && n < *count)
			shares[n++] =
				(struct process_rates){.pid = fake->process[i].pid,
						       .sm = fake->process[i].busy,
						       .memory = fake->process[i].busy_memory};
	*count = n;
	return gpu_of(device) || !n ? 6 : fake->error;
}

int nvmlDeviceGetUtilizationRates(void *device, struct rates *rates)
{
	say(device, fake->busy, &rates->gpu);
	return say(device, fake->busy_memory, &rates->memory);
}

int nvmlDeviceGetTemperature(void *device, unsigned int sensor, unsigned int *celsius)
{
	return sensor ? 2 : say(device, fake->celsius, celsius);
}

int nvmlDeviceGetPowerUsage(void *device, unsigned int *milliwatts)
{
	return say(device, fake->milliwatts, milliwatts);
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned int *milliwatts)
{
	return say(device, fake->power_limit, milliwatts);
}

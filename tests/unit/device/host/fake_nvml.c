// SPDX-License-Identifier: GPL-2.0-or-later
/* A stand-in for libnvidia-ml.so.1, whose numbers the test sets (fake_nvml.h). */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/device/host/fake_nvml.h"

#define API __attribute__((visibility("default")))

struct info {
	unsigned int pid;
	unsigned long long used;
	unsigned int gpu_instance, compute_instance;
};

static struct fake_nvml *fake;
static char gpus[FAKE_GPUS];

API int nvmlInit_v2(void);
API int nvmlDeviceGetCount_v2(unsigned int *count);
API int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device);
API int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *count,
						struct info *infos);

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
	unsigned int gpu = (unsigned int)((char *)device - gpus), n = 0, i;

	for (i = 0; i < 4; i++)
		if (fake->process[i].bytes[gpu] && n < *count)
			infos[n++] = (struct info){.pid = fake->process[i].pid,
						   .used = fake->process[i].bytes[gpu]};
	*count = n;
	fake->asked++;
	return fake->error;
}

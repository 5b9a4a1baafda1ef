// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * qcu-smi: prints this VM's devices, what it uses of their memory, and its programs that use them.
 * It asks NVML and nothing else, as anybody's tool does.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-library/nvml/api.h"

#define PROCESSES 64u
#define NAME_MAX  128

static const char usage[] =
	"usage: qcu-smi\n"
	"\n"
	"Prints the GPUs of this VM, how much of their memory it uses, and which "
	"programs use them.\n"
	"Exit code: 0, 1 when there is no GPU or the host does not answer, 2 for "
	"wrong options.\n";

static int failed(const char *what, nv_return err)
{
	fprintf(stderr, "qcu-smi: %s: %s\n", what, nvmlErrorString(err));
	return 1;
}

/* Programs choose their names themselves: nothing in them reaches the terminal as a command. */
static const char *clean(char *text)
{
	char *c;

	for (c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return text;
}

/* "12 MiB", rounded up, so that what is used is not 0. */
static const char *mib(unsigned long long bytes, char text[32])
{
	snprintf(text, 32, "%llu MiB", (bytes >> 20) + (bytes & 0xfffff ? 1 : 0));
	return text;
}

static nv_return print_device(unsigned int index)
{
	char name[NAME_MAX], used[32], total[32];
	nv_device_t device;
	nv_memory memory;
	int major, minor;
	nv_return err;
	nv_pci pci;

	err = nvmlDeviceGetHandleByIndex_v2(index, &device);
	if (!err)
		err = nvmlDeviceGetName(device, name, sizeof(name));
	if (!err)
		err = nvmlDeviceGetMemoryInfo(device, &memory);
	if (!err)
		err = nvmlDeviceGetCudaComputeCapability(device, &major, &minor);
	if (!err)
		err = nvmlDeviceGetPciInfo_v3(device, &pci);
	if (!err)
		printf("%-3u  %-30s  %12s  %12s  %3d.%-3d  %s\n", index, clean(name),
		       mib(memory.used, used), mib(memory.total, total), major, minor, pci.id);
	return err;
}

static nv_return print_programs(unsigned int index)
{
	nv_process list[PROCESSES];
	unsigned int count = PROCESSES, i;
	char name[NAME_MAX], used[32];
	nv_device_t device;
	nv_return err;

	err = nvmlDeviceGetHandleByIndex_v2(index, &device);
	if (!err)
		err = nvmlDeviceGetComputeRunningProcesses_v3(device, &count, list);
	for (i = 0; !err && i < count; i++) {
		if (nvmlSystemGetProcessName(list[i].pid, name, sizeof(name)))
			strcpy(name, "-");
		printf("%-3u  %10u  %12s  %s\n", index, list[i].pid, mib(list[i].bytes, used),
		       clean(name));
	}
	return err;
}

int main(int argc, char **argv)
{
	unsigned int count, i;
	nv_return err;
	int cuda;

	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
		return fputs(usage, stdout) < 0;
	if (argc > 1) {
		fputs(usage, stderr);
		return 2;
	}
	err = nvmlInit_v2();
	if (!err)
		err = nvmlSystemGetCudaDriverVersion_v2(&cuda);
	if (err)
		return failed("this VM has no GPU that answers", err);
	nvmlDeviceGetCount_v2(&count);
	printf("qCUDA, CUDA %d.%d\n\n", cuda / 1000, cuda % 1000 / 10);
	printf("%-3s  %-30s  %12s  %12s  %-7s  %s\n", "GPU", "NAME", "MEMORY USED", "OF", "COMPUTE",
	       "BUS");
	for (i = 0; !err && i < count; i++)
		err = print_device(i);
	printf("\n%-3s  %10s  %12s  %s\n", "GPU", "PID", "MEMORY", "PROGRAM");
	for (i = 0; !err && i < count; i++)
		err = print_programs(i);
	nvmlShutdown();
	if (err)
		return failed("the host does not answer", err);
	return fflush(stdout) ? 1 : 0;
}

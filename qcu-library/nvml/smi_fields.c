// SPDX-License-Identifier: LGPL-2.1-or-later
/* The fields that qcu-smi can be asked for, by nvidia-smi's names. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "qcu-library/nvml/smi.h"

/* Programs choose their names themselves: nothing in them reaches the terminal as a command. */
static void hide_controls(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

static nv_return read_time(const struct smi_subject *of, char *text)
{
	struct timespec now;
	struct tm tm;
	size_t n;

	(void)of;
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	n = strftime(text, SMI_TEXT, "%Y/%m/%d %H:%M:%S", &tm);
	snprintf(text + n, SMI_TEXT - n, ".%03ld", now.tv_nsec / 1000000);
	return NV_SUCCESS;
}

/* A field whose text a function of NVML writes. */
#define TEXT(reads, call)                                                \
	static nv_return reads(const struct smi_subject *of, char *text) \
	{                                                                \
		nv_return err = call;                                    \
                                                                         \
		(void)of;                                                \
		if (!err)                                                \
			hide_controls(text);                             \
		return err;                                              \
	}
TEXT(read_driver, nvmlSystemGetDriverVersion(text, SMI_TEXT))
TEXT(read_name, nvmlDeviceGetName(of->device, text, SMI_TEXT))
TEXT(read_uuid, nvmlDeviceGetUUID(of->device, text, SMI_TEXT))

/* A field that a function of NVML writes to n. */
#define NUMBER(reads, call, ...)                                         \
	static nv_return reads(const struct smi_subject *of, char *text) \
	{                                                                \
		unsigned int n = 0;                                      \
		nv_return err = call;                                    \
                                                                         \
		(void)of;                                                \
		if (!err)                                                \
			snprintf(text, SMI_TEXT, __VA_ARGS__);           \
		return err;                                              \
	}
NUMBER(read_count, nvmlDeviceGetCount_v2(&n), "%u", n)
NUMBER(read_index, nvmlDeviceGetIndex(of->device, &n), "%u", n)
NUMBER(read_minor, nvmlDeviceGetMinorNumber(of->device, &n), "%u", n)
NUMBER(read_several, nvmlDeviceGetMultiGpuBoard(of->device, &n), "%s", n ? "Yes" : "No")
NUMBER(read_display_mode, nvmlDeviceGetDisplayMode(of->device, &n), "%s",
       n ? "Enabled" : "Disabled")
NUMBER(read_display, nvmlDeviceGetDisplayActive(of->device, &n), "%s", n ? "Enabled" : "Disabled")
NUMBER(read_sm_clock, nvmlDeviceGetClockInfo(of->device, NV_CLOCK_SM, &n), "%u", n)
NUMBER(read_gr_clock, nvmlDeviceGetClockInfo(of->device, NV_CLOCK_GRAPHICS, &n), "%u", n)
NUMBER(read_mem_clock, nvmlDeviceGetClockInfo(of->device, NV_CLOCK_MEM, &n), "%u", n)
NUMBER(read_video_clock, nvmlDeviceGetClockInfo(of->device, NV_CLOCK_VIDEO, &n), "%u", n)
NUMBER(read_gr_app, nvmlDeviceGetApplicationsClock(of->device, NV_CLOCK_GRAPHICS, &n), "%u", n)
NUMBER(read_mem_app, nvmlDeviceGetApplicationsClock(of->device, NV_CLOCK_MEM, &n), "%u", n)
NUMBER(read_gr_default, nvmlDeviceGetDefaultApplicationsClock(of->device, NV_CLOCK_GRAPHICS, &n),
       "%u", n)
NUMBER(read_mem_default, nvmlDeviceGetDefaultApplicationsClock(of->device, NV_CLOCK_MEM, &n), "%u",
       n)
NUMBER(read_gr_max, nvmlDeviceGetMaxClockInfo(of->device, NV_CLOCK_GRAPHICS, &n), "%u", n)
NUMBER(read_sm_max, nvmlDeviceGetMaxClockInfo(of->device, NV_CLOCK_SM, &n), "%u", n)
NUMBER(read_mem_max, nvmlDeviceGetMaxClockInfo(of->device, NV_CLOCK_MEM, &n), "%u", n)
NUMBER(read_celsius, nvmlDeviceGetTemperature(of->device, NV_SENSOR_GPU, &n), "%u", n)
#define WATTS "%u.%02u", n / 1000, n % 1000 / 10
NUMBER(read_power, nvmlDeviceGetPowerUsage(of->device, &n), WATTS)
NUMBER(read_power_limit, nvmlDeviceGetPowerManagementLimit(of->device, &n), WATTS)
NUMBER(read_power_enforced, nvmlDeviceGetEnforcedPowerLimit(of->device, &n), WATTS)

static nv_return read_compute_mode(const struct smi_subject *of, char *text)
{
	static const char *const mode[] = {"Default", "Exclusive_Thread", "Prohibited",
					   "Exclusive_Process"};
	nv_return err;
	nv_mode n;

	err = nvmlDeviceGetComputeMode(of->device, &n);
	if (!err && n >= sizeof(mode) / sizeof(*mode))
		err = NV_NOT_SUPPORTED;
	if (!err)
		strcpy(text, mode[n]);
	return err;
}

static nv_return read_brand(const struct smi_subject *of, char *text)
{
	static const struct {
		nv_brand brand;
		const char *word;
	} brands[] = {
		{NV_BRAND_QUADRO, "Quadro"},   {NV_BRAND_TESLA, "Tesla"},
		{NV_BRAND_GEFORCE, "GeForce"}, {NV_BRAND_TITAN, "Titan"},
		{NV_BRAND_NVIDIA, "NVIDIA"},
	};
	nv_return err;
	unsigned int i;
	nv_brand n;

	err = nvmlDeviceGetBrand(of->device, &n);
	for (i = 0; !err && i < sizeof(brands) / sizeof(*brands); i++) {
		if (brands[i].brand != n)
			continue;
		strcpy(text, brands[i].word);
		return NV_SUCCESS;
	}
	return err ? err : NV_NOT_SUPPORTED;
}

static nv_return read_architecture(const struct smi_subject *of, char *text)
{
	static const char *const word[] = {
		[NV_ARCH_KEPLER] = "Kepler",	   [NV_ARCH_MAXWELL] = "Maxwell",
		[NV_ARCH_PASCAL] = "Pascal",	   [NV_ARCH_VOLTA] = "Volta",
		[NV_ARCH_TURING] = "Turing",	   [NV_ARCH_AMPERE] = "Ampere",
		[NV_ARCH_ADA] = "Ada Lovelace",	   [NV_ARCH_HOPPER] = "Hopper",
		[NV_ARCH_BLACKWELL] = "Blackwell",
	};
	nv_return err;
	nv_arch n;

	err = nvmlDeviceGetArchitecture(of->device, &n);
	if (!err && (n >= sizeof(word) / sizeof(*word) || !word[n]))
		err = NV_NOT_SUPPORTED;
	if (!err)
		strcpy(text, word[n]);
	return err;
}

static nv_return read_capability(const struct smi_subject *of, char *text)
{
	int major, minor;
	nv_return err;

	err = nvmlDeviceGetCudaComputeCapability(of->device, &major, &minor);
	if (!err)
		snprintf(text, SMI_TEXT, "%d.%d", major, minor);
	return err;
}

static nv_return read_ecc(const struct smi_subject *of, char *text)
{
	nv_enabled now, later;
	nv_return err;

	err = nvmlDeviceGetEccMode(of->device, &now, &later);
	if (!err)
		strcpy(text, now ? "Enabled" : "Disabled");
	return err;
}

#define PCI(reads, ...)                                                    \
	static nv_return reads(const struct smi_subject *of, char *text)   \
	{                                                                  \
		nv_pci pci;                                                \
		nv_return err = nvmlDeviceGetPciInfo_v3(of->device, &pci); \
                                                                           \
		if (!err)                                                  \
			snprintf(text, SMI_TEXT, __VA_ARGS__);             \
		return err;                                                \
	}
PCI(read_bus_id, "%s", pci.id)
PCI(read_domain, "0x%04X", pci.domain)
PCI(read_bus, "0x%02X", pci.bus)
PCI(read_slot, "0x%02X", pci.device)
PCI(read_pci_id, "0x%08X", pci.pci_id)
PCI(read_subsystem, "0x%08X", pci.subsystem_id)

/* What is used is rounded up, so that it is not 0, and what is free is the rest. */
#define MEBIBYTES(bytes) (((bytes) >> 20) + ((bytes)&0xfffff ? 1 : 0))
#define MEMORY(reads, mib)                                                    \
	static nv_return reads(const struct smi_subject *of, char *text)      \
	{                                                                     \
		nv_memory memory;                                             \
		nv_return err = nvmlDeviceGetMemoryInfo(of->device, &memory); \
                                                                              \
		if (!err)                                                     \
			snprintf(text, SMI_TEXT, "%llu", mib);                \
		return err;                                                   \
	}
MEMORY(read_total, memory.total >> 20)
MEMORY(read_used, MEBIBYTES(memory.used))
MEMORY(read_free, memory.free >> 20)

#define BUSY(reads, member)                                                        \
	static nv_return reads(const struct smi_subject *of, char *text)           \
	{                                                                          \
		nv_rates rates;                                                    \
		nv_return err = nvmlDeviceGetUtilizationRates(of->device, &rates); \
                                                                                   \
		if (!err)                                                          \
			snprintf(text, SMI_TEXT, "%u", rates.member);              \
		return err;                                                        \
	}
BUSY(read_busy, gpu)
BUSY(read_busy_memory, memory)

static nv_return read_pid(const struct smi_subject *of, char *text)
{
	snprintf(text, SMI_TEXT, "%u", of->process->pid);
	return NV_SUCCESS;
}

/* A program may have ended since it was listed. */
static nv_return read_process_name(const struct smi_subject *of, char *text)
{
	if (nvmlSystemGetProcessName(of->process->pid, text, SMI_TEXT))
		strcpy(text, "[Not Found]");
	hide_controls(text);
	return NV_SUCCESS;
}

/* How busy the program keeps the GPU: nvidia-smi has no such field. */
static nv_return read_process_rates(const struct smi_subject *of, nv_rates *to)
{
	nv_process_busy list[SMI_PROCESSES];
	unsigned int count = SMI_PROCESSES, i;
	nv_return err = nvmlDeviceGetProcessUtilization(of->device, list, &count, 0);

	*to = (nv_rates){0};
	/* Programs that do nothing are not in the list. */
	if (err == NV_NOT_FOUND)
		return NV_SUCCESS;
	for (i = 0; !err && i < count; i++)
		if (list[i].pid == of->process->pid)
			*to = (nv_rates){list[i].sm, list[i].memory};
	return err;
}

static nv_return read_process_busy(const struct smi_subject *of, char text[SMI_TEXT])
{
	nv_rates rates;
	nv_return err = read_process_rates(of, &rates);

	snprintf(text, SMI_TEXT, "%u", rates.gpu);
	return err;
}

static nv_return read_process_busy_memory(const struct smi_subject *of, char text[SMI_TEXT])
{
	nv_rates rates;
	nv_return err = read_process_rates(of, &rates);

	snprintf(text, SMI_TEXT, "%u", rates.memory);
	return err;
}

static nv_return read_process_memory(const struct smi_subject *of, char *text)
{
	snprintf(text, SMI_TEXT, "%llu", MEBIBYTES(of->process->bytes));
	return NV_SUCCESS;
}

/* clang-format off */
const struct smi_field smi_gpu_fields[] = {
	{"timestamp", NULL, NULL, false, read_time},
	{"driver_version", NULL, NULL, false, read_driver},
	{"count", NULL, NULL, true, read_count},
	{"name", "gpu_name", NULL, false, read_name},
	{"serial", "gpu_serial", NULL, false, NULL},
	{"uuid", "gpu_uuid", NULL, false, read_uuid},
	{"index", NULL, NULL, true, read_index},
	{"minor_number", NULL, NULL, true, read_minor},
	{"brand", NULL, NULL, false, read_brand},
	{"architecture", NULL, NULL, false, read_architecture},
	{"compute_cap", NULL, NULL, false, read_capability},
	{"compute_mode", NULL, NULL, false, read_compute_mode},
	{"multi_gpu_board", NULL, NULL, false, read_several},
	{"pci.bus_id", "gpu_bus_id", NULL, false, read_bus_id},
	{"pci.domain", NULL, NULL, false, read_domain},
	{"pci.bus", NULL, NULL, false, read_bus},
	{"pci.device", NULL, NULL, false, read_slot},
	{"pci.device_id", NULL, NULL, false, read_pci_id},
	{"pci.sub_device_id", NULL, NULL, false, read_subsystem},
	{"display_mode", NULL, NULL, false, read_display_mode},
	{"display_active", "display_attached", NULL, false, read_display},
	{"memory.total", NULL, "MiB", true, read_total},
	{"memory.reserved", NULL, "MiB", true, NULL},
	{"memory.used", NULL, "MiB", true, read_used},
	{"memory.free", NULL, "MiB", true, read_free},
	{"utilization.gpu", NULL, "%", true, read_busy},
	{"utilization.memory", NULL, "%", true, read_busy_memory},
	{"utilization.encoder", NULL, "%", true, NULL},
	{"utilization.decoder", NULL, "%", true, NULL},
	{"utilization.jpeg", NULL, "%", true, NULL},
	{"utilization.ofa", NULL, "%", true, NULL},
	{"temperature.gpu", NULL, NULL, true, read_celsius},
	{"temperature.gpu.tlimit", NULL, NULL, true, NULL},
	{"temperature.memory", NULL, NULL, true, NULL},
	{"power.management", NULL, NULL, false, NULL},
	{"power.draw", "power.draw.average power.draw.instant", "W", true, read_power},
	{"power.limit", NULL, "W", true, read_power_limit},
	{"enforced.power.limit", NULL, "W", true, read_power_enforced},
	{"power.default_limit", NULL, "W", true, NULL},
	{"power.min_limit", NULL, "W", true, NULL},
	{"power.max_limit", NULL, "W", true, NULL},
	{"clocks.current.graphics", "clocks.gr", "MHz", true, read_gr_clock},
	{"clocks.current.sm", "clocks.sm", "MHz", true, read_sm_clock},
	{"clocks.current.memory", "clocks.mem", "MHz", true, read_mem_clock},
	{"clocks.current.video", "clocks.video", "MHz", true, read_video_clock},
	{"clocks.applications.graphics", "clocks.applications.gr", "MHz", true, read_gr_app},
	{"clocks.applications.memory", "clocks.applications.mem", "MHz", true, read_mem_app},
	{"clocks.default_applications.graphics", "clocks.default_applications.gr", "MHz", true, read_gr_default},
	{"clocks.default_applications.memory", "clocks.default_applications.mem", "MHz", true, read_mem_default},
	{"clocks.max.graphics", "clocks.max.gr", "MHz", true, read_gr_max},
	{"clocks.max.sm", NULL, "MHz", true, read_sm_max},
	{"clocks.max.memory", "clocks.max.mem", "MHz", true, read_mem_max},
	{"ecc.mode.current", NULL, NULL, false, read_ecc},
	{"ecc.mode.pending", NULL, NULL, false, read_ecc},
	{"pstate", NULL, NULL, false, NULL},
	{"fan.speed", NULL, "%", true, NULL},
	{"persistence_mode", NULL, NULL, false, NULL},
	{"addressing_mode", NULL, NULL, false, NULL},
	{"accounting.mode", NULL, NULL, false, NULL},
	{"accounting.buffer_size", NULL, NULL, true, NULL},
	{"driver_model.current", NULL, NULL, false, NULL},
	{"driver_model.pending", NULL, NULL, false, NULL},
	{"vbios_version", NULL, NULL, false, NULL},
	{"inforom.img", "inforom.image", NULL, false, NULL},
	{"inforom.oem", NULL, NULL, false, NULL},
	{"inforom.ecc", NULL, NULL, false, NULL},
	{"inforom.pwr", "inforom.power", NULL, false, NULL},
	{"gom.current", "gpu_operation_mode.current", NULL, false, NULL},
	{"gom.pending", "gpu_operation_mode.pending", NULL, false, NULL},
	{"mig.mode.current", NULL, NULL, false, NULL},
	{"mig.mode.pending", NULL, NULL, false, NULL},
	{"gsp.mode.current", NULL, NULL, false, NULL},
	{"gsp.mode.default", NULL, NULL, false, NULL},
	{"fabric.state", NULL, NULL, false, NULL},
	{"fabric.status", NULL, NULL, false, NULL},
	{"pcie.link.gen.current", "pcie.link.gen.gpucurrent", NULL, true, NULL},
	{"pcie.link.gen.max", NULL, NULL, true, NULL},
	{"pcie.link.gen.gpumax", NULL, NULL, true, NULL},
	{"pcie.link.gen.hostmax", NULL, NULL, true, NULL},
	{"pcie.link.width.current", NULL, NULL, true, NULL},
	{"pcie.link.width.max", NULL, NULL, true, NULL},
	{"encoder.stats.sessionCount", NULL, NULL, true, NULL},
	{"encoder.stats.averageFps", NULL, NULL, true, NULL},
	{"encoder.stats.averageLatency", NULL, NULL, true, NULL},
	{"retired_pages.single_bit_ecc.count", "retired_pages.sbe", NULL, true, NULL},
	{"retired_pages.double_bit.count", "retired_pages.dbe", NULL, true, NULL},
	{"retired_pages.pending", NULL, NULL, false, NULL},
	{"ecc.errors.corrected.volatile.total", NULL, NULL, true, NULL},
	{"ecc.errors.corrected.aggregate.total", NULL, NULL, true, NULL},
	{"ecc.errors.uncorrected.volatile.total", NULL, NULL, true, NULL},
	{"ecc.errors.uncorrected.aggregate.total", NULL, NULL, true, NULL},
	{"clocks_event_reasons.supported", "clocks_throttle_reasons.supported", NULL, false, NULL},
	{"clocks_event_reasons.active", "clocks_throttle_reasons.active", NULL, false, NULL},
	{"clocks_event_reasons.gpu_idle", "clocks_throttle_reasons.gpu_idle", NULL, false, NULL},
	{"clocks_event_reasons.applications_clocks_setting",
	 "clocks_throttle_reasons.applications_clocks_setting", NULL, false, NULL},
	{"clocks_event_reasons.sw_power_cap", "clocks_throttle_reasons.sw_power_cap", NULL, false, NULL},
	{"clocks_event_reasons.hw_slowdown", "clocks_throttle_reasons.hw_slowdown", NULL, false, NULL},
	{"clocks_event_reasons.hw_thermal_slowdown", "clocks_throttle_reasons.hw_thermal_slowdown", NULL, false, NULL},
	{"clocks_event_reasons.hw_power_brake_slowdown",
	 "clocks_throttle_reasons.hw_power_brake_slowdown", NULL, false, NULL},
	{"clocks_event_reasons.sw_thermal_slowdown", "clocks_throttle_reasons.sw_thermal_slowdown", NULL, false, NULL},
	{"clocks_event_reasons.sync_boost", "clocks_throttle_reasons.sync_boost", NULL, false, NULL},
	{0},
};

const struct smi_field smi_app_fields[] = {
	{"timestamp", NULL, NULL, false, read_time},
	{"gpu_name", NULL, NULL, false, read_name},
	{"gpu_bus_id", NULL, NULL, false, read_bus_id},
	{"gpu_serial", NULL, NULL, false, NULL},
	{"gpu_uuid", NULL, NULL, false, read_uuid},
	{"utilization.gpu", NULL, "%", true, read_process_busy},
	{"utilization.memory", NULL, "%", true, read_process_busy_memory},
	{"pid", NULL, NULL, true, read_pid},
	{"process_name", "name", NULL, false, read_process_name},
	{"used_gpu_memory", "used_memory", "MiB", true, read_process_memory},
	{0},
};
/* clang-format on */

/* Is this name one of those in a list with spaces between them? */
static bool list_has_name(const char *list, const char *name, size_t len)
{
	size_t n;

	for (; list && *list; list += n + (list[n] == ' ')) {
		n = strcspn(list, " ");
		if (n == len && !strncmp(list, name, len))
			return true;
	}
	return false;
}

const struct smi_field *smi_field_of(const struct smi_field *fields, const char *name, size_t len)
{
	for (; fields->name; fields++)
		if (list_has_name(fields->name, name, len) ||
		    list_has_name(fields->also, name, len))
			return fields;
	return NULL;
}

nv_return smi_read(const struct smi_field *field, const struct smi_subject *of, char text[SMI_TEXT])
{
	nv_return err;

	*text = 0;
	err = field->read ? field->read(of, text) : NV_NOT_SUPPORTED;
	if (err != NV_NOT_SUPPORTED)
		return err;
	strcpy(text, "N/A");
	return NV_SUCCESS;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* What qcu-smi prints: the table, the list, all values, rows for other programs. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "qcu-library/nvml/smi.h"

/* Reads the field of this name, which there is. */
static nv_return read_named(const struct smi_field *fields, const char *name,
			    const struct smi_subject *of, char text[SMI_TEXT])
{
	return smi_read(smi_field_of(fields, name, strlen(name)), of, text);
}

/* The same of a device, with the unit behind it if it is known. */
static nv_return read_with_unit(const char *name, nv_device_t device, const char *unit,
				char text[SMI_TEXT])
{
	const struct smi_subject of = {.device = device};
	nv_return err = read_named(smi_gpu_fields, name, &of, text);
	size_t n = strlen(text);

	if (!err && strcmp(text, "N/A"))
		snprintf(text + n, SMI_TEXT - n, "%s", unit);
	return err;
}

struct programs {
	nv_process list[SMI_PROCESSES];
	unsigned int count;
};

static nv_return list_programs(nv_device_t device, struct programs *programs)
{
	programs->count = SMI_PROCESSES;
	return nvmlDeviceGetComputeRunningProcesses_v3(device, &programs->count, programs->list);
}

/* ---- the table ---- */

/* clang-format off */
static const char line[] = "+-----------------------------------------+------------------------+----------------------+";
static const char whole_line[] = "+-----------------------------------------------------------------------------------------+";
static const char gpu_titles[] =
	"|-----------------------------------------+------------------------+----------------------|\n"
	"| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
	"| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
	"|                                         |                        |               MIG M. |\n"
	"|=========================================+========================+======================|\n";
static const char program_titles[] =
	"| Processes:                                                                              |\n"
	"|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |\n"
	"|        ID   ID                                                               Usage      |\n"
	"|=========================================================================================|\n";
/* clang-format on */

static void print_time(const char *format)
{
	time_t now = time(NULL);
	char text[SMI_TEXT];
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(text, sizeof(text), "%a %b %e %H:%M:%S %Y", &tm);
	printf(format, text);
}

/* Without what is behind the point. */
static nv_return read_whole_number(const char *name, nv_device_t device, const char *unit,
				   char text[SMI_TEXT])
{
	const struct smi_subject of = {.device = device};
	nv_return err = read_named(smi_gpu_fields, name, &of, text);
	size_t n = strcspn(text, ".");

	if (!err && strcmp(text, "N/A"))
		snprintf(text + n, SMI_TEXT - n, "%s", unit);
	return err;
}

/* What a row of the table needs. */
#define CELLS(X)                                            \
	X(index, "index", "")                               \
	X(name, "name", "")                                 \
	X(persistence, "persistence_mode", "")              \
	X(bus, "pci.bus_id", "")                            \
	X(display, "display_active", "")                    \
	X(ecc, "ecc.errors.uncorrected.volatile.total", "") \
	X(fan, "fan.speed", "%")                            \
	X(celsius, "temperature.gpu", "C")                  \
	X(state, "pstate", "")                              \
	X(power, "power.draw", "W")                         \
	X(limit, "power.limit", "W")                        \
	X(used, "memory.used", "MiB")                       \
	X(total, "memory.total", "MiB")                     \
	X(busy, "utilization.gpu", "%")                     \
	X(mode, "compute_mode", "")                         \
	X(mig, "mig.mode.current", "")

static nv_return print_row_of_gpu(nv_device_t device)
{
	struct {
#define X(cell, field, unit) char cell[SMI_TEXT];
		CELLS(X)
#undef X
	} now;
	char both[2 * SMI_TEXT + 8];
	nv_return err = NV_SUCCESS;

#define X(cell, field, unit)                                                   \
	if (!err)                                                              \
		err = *unit ? read_whole_number(field, device, unit, now.cell) \
			    : read_with_unit(field, device, "", now.cell);
	CELLS(X)
#undef X
	if (err)
		return err;
	printf("| %3.3s  %-27.27s %5.5s  | %18.18s %3.3s | %20.20s |\n", now.index, now.name,
	       now.persistence, now.bus, strcmp(now.display, "Enabled") ? "Off" : "On", now.ecc);
	snprintf(both, sizeof(both), "%6s / %6s", now.power, now.limit);
	printf("| %3.3s  %4.4s  %4.4s %23.23s | %9.9s / %10.10s | %7.7s %12.12s |\n", now.fan,
	       now.celsius, now.state, both, now.used, now.total, now.busy, now.mode);
	printf("| %39s | %22s | %20.20s |\n%s\n", "", "", now.mig, line);
	return NV_SUCCESS;
}

static nv_return print_rows_of_programs(nv_device_t device, unsigned int *shown)
{
	struct programs programs;
	char index[SMI_TEXT], name[SMI_TEXT], memory[SMI_TEXT];
	nv_return err = list_programs(device, &programs);
	unsigned int i;
	size_t n;

	if (!err)
		err = read_with_unit("index", device, "", index);
	for (i = 0; !err && i < programs.count; i++, ++*shown) {
		const struct smi_subject of = {device, &programs.list[i]};

		err = read_named(smi_app_fields, "process_name", &of, name);
		if (!err)
			err = read_named(smi_app_fields, "used_memory", &of, memory);
		if (err)
			return err;
		/* Of a long name the end says more. */
		n = strlen(name);
		printf("|  %3.3s   N/A  N/A %10u      C   %s%-*s %7sMiB |\n", index,
		       of.process->pid, n > 40 ? "..." : "", n > 40 ? 37 : 40,
		       n > 40 ? name + n - 37 : name, memory);
	}
	return err;
}

nv_return smi_show_table(const struct smi_options *options)
{
	char driver[SMI_TEXT] = "";
	unsigned int i, shown = 0;
	nv_return err;
	int cuda;

	err = nvmlSystemGetDriverVersion(driver, sizeof(driver));
	if (!err)
		err = nvmlSystemGetCudaDriverVersion_v2(&cuda);
	if (err)
		return err;
	print_time("%s\n");
	printf("%s\n| QCU-SMI %-23.23s Driver Version: %-15.15s CUDA Version: %2d.%-6d |\n%s",
	       whole_line, driver, driver, cuda / 1000, cuda % 1000 / 10, gpu_titles);
	for (i = 0; !err && i < options->devices; i++)
		err = print_row_of_gpu(options->device[i]);
	if (err)
		return err;
	printf("\n%s\n%s", whole_line, program_titles);
	for (i = 0; !err && i < options->devices; i++)
		err = print_rows_of_programs(options->device[i], &shown);
	if (!err && !shown)
		printf("|  %-85s  |\n", "No running processes found");
	if (!err)
		printf("%s\n", whole_line);
	return err;
}

/* ---- -L ---- */

nv_return smi_show_list(const struct smi_options *options)
{
	char index[SMI_TEXT], name[SMI_TEXT], uuid[SMI_TEXT];
	nv_return err = NV_SUCCESS;
	unsigned int i;

	for (i = 0; !err && i < options->devices; i++) {
		nv_device_t device = options->device[i];

		err = read_with_unit("index", device, "", index);
		if (!err)
			err = read_with_unit("name", device, "", name);
		if (!err)
			err = read_with_unit("uuid", device, "", uuid);
		if (!err)
			printf("GPU %s: %s (UUID: %s)\n", index, name, uuid);
	}
	return err;
}

/* ---- -q ---- */

/* A line of -q. Lines of depth 0 begin a section; display: which -d shows it. */
struct query_line {
	const char *label;
	const char *field; /* NULL: a headline */
	const char *unit;
	const char *display;
	unsigned int depth;
};

/* clang-format off */
static const struct query_line query_lines[] = {
	{"Product Name", "name", "", "", 0},
	{"Product Brand", "brand", "", "", 0},
	{"Product Architecture", "architecture", "", "", 0},
	{"Display Mode", "display_mode", "", "", 0},
	{"Display Active", "display_active", "", "", 0},
	{"Persistence Mode", "persistence_mode", "", "", 0},
	{"Addressing Mode", "addressing_mode", "", "", 0},
	{"MIG Mode", NULL, "", "", 0},
	{"Current", "mig.mode.current", "", "", 1},
	{"Pending", "mig.mode.pending", "", "", 1},
	{"Accounting Mode", "accounting.mode", "", "ACCOUNTING", 0},
	{"Accounting Mode Buffer Size", "accounting.buffer_size", "", "ACCOUNTING", 0},
	{"Driver Model", NULL, "", "", 0},
	{"Current", "driver_model.current", "", "", 1},
	{"Pending", "driver_model.pending", "", "", 1},
	{"Serial Number", "serial", "", "", 0},
	{"GPU UUID", "uuid", "", "", 0},
	{"Minor Number", "minor_number", "", "", 0},
	{"VBIOS Version", "vbios_version", "", "", 0},
	{"MultiGPU Board", "multi_gpu_board", "", "", 0},
	{"Inforom Version", NULL, "", "", 0},
	{"Image Version", "inforom.img", "", "", 1},
	{"OEM Object", "inforom.oem", "", "", 1},
	{"ECC Object", "inforom.ecc", "", "", 1},
	{"Power Management Object", "inforom.pwr", "", "", 1},
	{"GPU Operation Mode", NULL, "", "", 0},
	{"Current", "gom.current", "", "", 1},
	{"Pending", "gom.pending", "", "", 1},
	{"PCI", NULL, "", "", 0},
	{"Bus", "pci.bus", "", "", 1},
	{"Device", "pci.device", "", "", 1},
	{"Domain", "pci.domain", "", "", 1},
	{"Device Id", "pci.device_id", "", "", 1},
	{"Bus Id", "pci.bus_id", "", "", 1},
	{"Sub System Id", "pci.sub_device_id", "", "", 1},
	{"GPU Link Info", NULL, "", "", 1},
	{"PCIe Generation", NULL, "", "", 2},
	{"Max", "pcie.link.gen.max", "", "", 3},
	{"Current", "pcie.link.gen.current", "", "", 3},
	{"Link Width", NULL, "", "", 2},
	{"Max", "pcie.link.width.max", "", "", 3},
	{"Current", "pcie.link.width.current", "", "", 3},
	{"Fan Speed", "fan.speed", " %", "", 0},
	{"Performance State", "pstate", "", "PERFORMANCE", 0},
	{"Clocks Event Reasons", NULL, "", "PERFORMANCE", 0},
	{"Idle", "clocks_event_reasons.gpu_idle", "", "", 1},
	{"Applications Clocks Setting", "clocks_event_reasons.applications_clocks_setting", "", "", 1},
	{"SW Power Cap", "clocks_event_reasons.sw_power_cap", "", "", 1},
	{"HW Slowdown", "clocks_event_reasons.hw_slowdown", "", "", 1},
	{"HW Thermal Slowdown", "clocks_event_reasons.hw_thermal_slowdown", "", "", 2},
	{"HW Power Brake Slowdown", "clocks_event_reasons.hw_power_brake_slowdown", "", "", 2},
	{"Sync Boost", "clocks_event_reasons.sync_boost", "", "", 1},
	{"SW Thermal Slowdown", "clocks_event_reasons.sw_thermal_slowdown", "", "", 1},
	{"FB Memory Usage", NULL, "", "MEMORY", 0},
	{"Total", "memory.total", " MiB", "", 1},
	{"Reserved", "memory.reserved", " MiB", "", 1},
	{"Used", "memory.used", " MiB", "", 1},
	{"Free", "memory.free", " MiB", "", 1},
	{"Compute Mode", "compute_mode", "", "COMPUTE", 0},
	{"Utilization", NULL, "", "UTILIZATION", 0},
	{"GPU", "utilization.gpu", " %", "", 1},
	{"Memory", "utilization.memory", " %", "", 1},
	{"Encoder", "utilization.encoder", " %", "", 1},
	{"Decoder", "utilization.decoder", " %", "", 1},
	{"JPEG", "utilization.jpeg", " %", "", 1},
	{"OFA", "utilization.ofa", " %", "", 1},
	{"Encoder Stats", NULL, "", "ENCODER_STATS", 0},
	{"Active Sessions", "encoder.stats.sessionCount", "", "", 1},
	{"Average FPS", "encoder.stats.averageFps", "", "", 1},
	{"Average Latency", "encoder.stats.averageLatency", "", "", 1},
	{"ECC Mode", NULL, "", "ECC", 0},
	{"Current", "ecc.mode.current", "", "", 1},
	{"Pending", "ecc.mode.pending", "", "", 1},
	{"Retired Pages", NULL, "", "PAGE_RETIREMENT", 0},
	{"Single Bit ECC", "retired_pages.sbe", "", "", 1},
	{"Double Bit ECC", "retired_pages.dbe", "", "", 1},
	{"Pending Page Blacklist", "retired_pages.pending", "", "", 1},
	{"Temperature", NULL, "", "TEMPERATURE", 0},
	{"GPU Current Temp", "temperature.gpu", " C", "", 1},
	{"GPU T.Limit Temp", "temperature.gpu.tlimit", " C", "", 1},
	{"Memory Current Temp", "temperature.memory", " C", "", 1},
	{"GPU Power Readings", NULL, "", "POWER", 0},
	{"Power Draw", "power.draw", " W", "", 1},
	{"Current Power Limit", "enforced.power.limit", " W", "", 1},
	{"Requested Power Limit", "power.limit", " W", "", 1},
	{"Default Power Limit", "power.default_limit", " W", "", 1},
	{"Min Power Limit", "power.min_limit", " W", "", 1},
	{"Max Power Limit", "power.max_limit", " W", "", 1},
	{"Clocks", NULL, "", "CLOCK", 0},
	{"Graphics", "clocks.gr", " MHz", "", 1},
	{"SM", "clocks.sm", " MHz", "", 1},
	{"Memory", "clocks.mem", " MHz", "", 1},
	{"Video", "clocks.video", " MHz", "", 1},
	{"Applications Clocks", NULL, "", "CLOCK", 0},
	{"Graphics", "clocks.applications.gr", " MHz", "", 1},
	{"Memory", "clocks.applications.mem", " MHz", "", 1},
	{"Default Applications Clocks", NULL, "", "CLOCK", 0},
	{"Graphics", "clocks.default_applications.gr", " MHz", "", 1},
	{"Memory", "clocks.default_applications.mem", " MHz", "", 1},
	{"Max Clocks", NULL, "", "CLOCK", 0},
	{"Graphics", "clocks.max.gr", " MHz", "", 1},
	{"SM", "clocks.max.sm", " MHz", "", 1},
	{"Memory", "clocks.max.mem", " MHz", "", 1},
};
/* clang-format on */
#define QUERY_LINES (sizeof(query_lines) / sizeof(*query_lines))

bool smi_is_display(const char *name, size_t len)
{
	unsigned int i;

	for (i = 0; i < QUERY_LINES; i++)
		if (len && strlen(query_lines[i].display) == len &&
		    !strncasecmp(query_lines[i].display, name, len))
			return true;
	return len == 4 && !strncasecmp(name, "PIDS", 4);
}

/* Is this section among those that -d names? */
static bool display_has(const char *displays, const char *section)
{
	size_t n, len = strlen(section);

	for (; displays && *displays; displays += n + (displays[n] == ',')) {
		n = strcspn(displays, ",");
		if (n == len && !strncasecmp(displays, section, n))
			return true;
	}
	return !displays;
}

static void print_label(unsigned int depth, const char *label, const char *value)
{
	int indent = 4 * (int)depth;

	if (value)
		printf("%*s%-*s : %s\n", indent, "", 50 - indent, label, value);
	else
		printf("%*s%s\n", indent, "", label);
}

static nv_return query_programs(nv_device_t device)
{
	struct programs programs;
	char text[SMI_TEXT];
	nv_return err = list_programs(device, &programs);
	unsigned int i;

	if (err)
		return err;
	print_label(1, "Processes", programs.count ? NULL : "None");
	for (i = 0; !err && i < programs.count; i++) {
		const struct smi_subject of = {device, &programs.list[i]};

		print_label(2, "GPU instance ID", "N/A");
		print_label(2, "Compute instance ID", "N/A");
		snprintf(text, sizeof(text), "%u", of.process->pid);
		print_label(2, "Process ID", text);
		print_label(3, "Type", "C");
		err = read_named(smi_app_fields, "process_name", &of, text);
		print_label(3, "Name", text);
		if (!err)
			err = read_named(smi_app_fields, "used_memory", &of, text);
		strcat(text, " MiB");
		print_label(3, "Used GPU Memory", text);
	}
	return err;
}

static nv_return query_gpu(nv_device_t device, const char *display)
{
	char text[SMI_TEXT];
	nv_return err = read_with_unit("pci.bus_id", device, "", text);
	bool wanted = false;
	unsigned int i;

	if (err)
		return err;
	printf("GPU %s\n", text);
	for (i = 0; !err && i < QUERY_LINES; i++) {
		const struct query_line *l = &query_lines[i];

		if (!l->depth)
			wanted = display_has(display, l->display);
		if (!wanted)
			continue;
		if (l->field)
			err = read_with_unit(l->field, device, l->unit, text);
		if (!err)
			print_label(l->depth + 1, l->label, l->field ? text : NULL);
	}
	if (!err && display_has(display, "PIDS"))
		err = query_programs(device);
	printf("\n");
	return err;
}

nv_return smi_show_query(const struct smi_options *options)
{
	char text[SMI_TEXT];
	unsigned int i, count;
	nv_return err;
	int cuda;

	err = nvmlSystemGetDriverVersion(text, sizeof(text));
	if (!err)
		err = nvmlSystemGetCudaDriverVersion_v2(&cuda);
	if (!err)
		err = nvmlDeviceGetCount_v2(&count);
	if (err)
		return err;
	printf("\n==============QCU-SMI LOG==============\n\n%-50s : ", "Timestamp");
	print_time("%s\n");
	print_label(0, "Driver Version", text);
	snprintf(text, sizeof(text), "%d.%d", cuda / 1000, cuda % 1000 / 10);
	print_label(0, "CUDA Version", text);
	snprintf(text, sizeof(text), "%u", count);
	printf("\n");
	print_label(0, "Attached GPUs", text);
	for (i = 0; !err && i < options->devices; i++)
		err = query_gpu(options->device[i], options->display);
	return err;
}

/* ---- rows for other programs ---- */

/* A name may have any character: then it stands in quotes, as in other files of this kind. */
static void print_csv(const char *text)
{
	if (!strpbrk(text, ",\"")) {
		fputs(text, stdout);
		return;
	}
	putchar('"');
	for (; *text; text++)
		printf(*text == '"' ? "\"\"" : "%c", *text);
	putchar('"');
}

static nv_return print_csv_row(const struct smi_options *options, const struct smi_subject *of)
{
	char text[SMI_TEXT];
	nv_return err = NV_SUCCESS;
	unsigned int i;

	for (i = 0; !err && i < options->fields; i++) {
		const struct smi_field *field = options->field[i];

		err = smi_read(field, of, text);
		if (err)
			break;
		printf(i ? ", " : "");
		if (!strcmp(text, "N/A"))
			printf("[N/A]");
		else
			print_csv(text);
		if (options->units && field->unit && strcmp(text, "N/A"))
			printf(" %s", field->unit);
	}
	printf("\n");
	return err;
}

static void print_csv_header(const struct smi_options *options)
{
	unsigned int i;

	if (!options->header || options->again)
		return;
	for (i = 0; i < options->fields; i++) {
		const struct smi_field *field = options->field[i];

		printf("%s%s", i ? ", " : "", field->name);
		if (field->unit)
			printf(" [%s]", field->unit);
	}
	printf("\n");
}

nv_return smi_show_gpus(const struct smi_options *options)
{
	nv_return err = NV_SUCCESS;
	unsigned int i;

	print_csv_header(options);
	for (i = 0; !err && i < options->devices; i++)
		err = print_csv_row(options, &(struct smi_subject){.device = options->device[i]});
	return err;
}

nv_return smi_show_apps(const struct smi_options *options)
{
	nv_return err = NV_SUCCESS;
	struct programs programs;
	unsigned int i, k;

	print_csv_header(options);
	for (i = 0; !err && i < options->devices; i++) {
		err = list_programs(options->device[i], &programs);
		for (k = 0; !err && k < programs.count; k++)
			err = print_csv_row(options, &(struct smi_subject){options->device[i],
									   &programs.list[k]});
	}
	return err;
}

/* What is read has only printable characters. */
static void print_json_text(const char *text)
{
	putchar('"');
	for (; *text; text++)
		printf(*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	putchar('"');
}

/* Prints the fields that a guest can know, as members of an object. */
static nv_return print_json_fields(const struct smi_field *field, const struct smi_subject *of)
{
	char text[SMI_TEXT];
	nv_return err = NV_SUCCESS;
	bool first = true;

	for (; !err && field->name; field++) {
		if (!field->read)
			continue;
		err = smi_read(field, of, text);
		if (err)
			break;
		printf("%s\"%s\": ", first ? "" : ", ", field->name);
		first = false;
		if (!strcmp(text, "N/A"))
			printf("null");
		else if (field->number)
			fputs(text, stdout);
		else
			print_json_text(text);
	}
	return err;
}

nv_return smi_show_json(const struct smi_options *options)
{
	struct programs programs;
	unsigned int i, k;
	nv_return err;
	int cuda;

	err = nvmlSystemGetCudaDriverVersion_v2(&cuda);
	if (err)
		return err;
	printf("{\"cuda_version\": \"%d.%d\", \"gpus\": [", cuda / 1000, cuda % 1000 / 10);
	for (i = 0; !err && i < options->devices; i++) {
		struct smi_subject of = {.device = options->device[i]};

		printf(i ? ", {" : "{");
		err = print_json_fields(smi_gpu_fields, &of);
		if (!err)
			err = list_programs(of.device, &programs);
		printf(", \"processes\": [");
		for (k = 0; !err && k < programs.count; k++) {
			of.process = &programs.list[k];
			printf(k ? ", {" : "{");
			err = print_json_fields(smi_app_fields, &of);
			printf("}");
		}
		printf("]}");
	}
	printf("]}\n");
	return err;
}

/* ---- dmon ---- */

static const struct {
	char group;
	const char *title, *unit, *field;
} columns[] = {
	{'p', "pwr", "W", "power.draw"},	   {'p', "gtemp", "C", "temperature.gpu"},
	{'p', "mtemp", "C", "temperature.memory"}, {'u', "sm", "%", "utilization.gpu"},
	{'u', "mem", "%", "utilization.memory"},   {'u', "enc", "%", "utilization.encoder"},
	{'u', "dec", "%", "utilization.decoder"},  {'u', "jpg", "%", "utilization.jpeg"},
	{'u', "ofa", "%", "utilization.ofa"},	   {'c', "mclk", "MHz", "clocks.mem"},
	{'c', "pclk", "MHz", "clocks.sm"},	   {'m', "fb", "MB", "memory.used"},
};
#define COLUMNS (sizeof(columns) / sizeof(*columns))

static nv_return print_dmon_row(nv_device_t device, const char *groups)
{
	char text[SMI_TEXT];
	nv_return err = read_with_unit("index", device, "", text);
	unsigned int i;

	if (err)
		return err;
	printf("%5.5s", text);
	for (i = 0; !err && i < COLUMNS; i++) {
		if (!strchr(groups, columns[i].group))
			continue;
		err = read_whole_number(columns[i].field, device, "", text);
		if (!err)
			printf(" %6.6s", strcmp(text, "N/A") ? text : "-");
	}
	printf("\n");
	return err;
}

nv_return smi_show_dmon(const struct smi_options *options)
{
	nv_return err = NV_SUCCESS;
	unsigned int i, head;

	for (head = 0; head < 2 && !options->again; head++) {
		printf(head ? "# Idx" : "# gpu");
		for (i = 0; i < COLUMNS; i++)
			if (strchr(options->groups, columns[i].group))
				printf(" %6s", head ? columns[i].unit : columns[i].title);
		printf("\n");
	}
	for (i = 0; !err && i < options->devices; i++)
		err = print_dmon_row(options->device[i], options->groups);
	return err;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The benchmarks' files: CSV for tables and plots, JSON to find out where a number comes from. Each
 * file is written under another name, and renamed when it is complete and on the disk.
 */
#include <errno.h>
#include <time.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "perf/bench.h"

static void json_string(FILE *f, const char *text)
{
	putc('"', f);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < ' ')
			fprintf(f, "\\u%04x", c);
		else
			putc(c, f);
	}
	putc('"', f);
}

static void json_member(FILE *f, const char *name, const char *text)
{
	fprintf(f, "    ");
	json_string(f, name);
	fprintf(f, ": ");
	json_string(f, text);
	fprintf(f, ",\n");
}

/* Stores the rest, behind the colon, of the first line of `path` that begins with `key`. */
static void proc_line(const char *path, const char *key, char *out, size_t bytes)
{
	char line[4096], *at;
	FILE *f = fopen(path, "r");

	snprintf(out, bytes, "unknown");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, strlen(key)))
			continue;
		at = strchr(line, ':');
		at = at ? at + 1 : line;
		at += strspn(at, " \t");
		at[strcspn(at, "\n")] = 0;
		snprintf(out, bytes, "%s", at);
		break;
	}
	if (f)
		fclose(f);
}

static void gpu(FILE *f)
{
	char text[64], bus[32] = "";
	struct cudaDeviceProp prop;
	int driver = 0, runtime = 0, i, at = 0, device = bench.device;

	if (cudaGetDeviceProperties(&prop, device) != cudaSuccess)
		return;
	json_member(f, "gpu", prop.name);
	for (i = 0; i < 16; i++)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%02x",
			       i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
			       (unsigned char)prop.uuid.bytes[i]);
	json_member(f, "gpu_uuid", text);
	if (cudaDeviceGetPCIBusId(bus, sizeof(bus), device) == cudaSuccess)
		json_member(f, "gpu_pci", bus);
	cudaDriverGetVersion(&driver);
	cudaRuntimeGetVersion(&runtime);
	snprintf(text, sizeof(text), "%d", driver);
	json_member(f, "cuda_driver", text);
	snprintf(text, sizeof(text), "%d", runtime);
	json_member(f, "cuda_runtime", text);
}

static void environment(FILE *f, int argc, char **argv)
{
	extern char **environ;
	char text[4096];
	struct utsname un;
	time_t now = time(NULL);
	size_t at = 0;
	char **e;
	int i;

	fprintf(f, "  \"environment\": {\n");
	gpu(f);
	proc_line("/proc/cpuinfo", "model name", text, sizeof(text));
	json_member(f, "cpu", text);
	proc_line("/proc/cpuinfo", "flags", text, sizeof(text));
	json_member(f, "hypervisor", strstr(text, " hypervisor") ? "yes" : "no");
	snprintf(text, sizeof(text), "%ld", sysconf(_SC_NPROCESSORS_ONLN));
	json_member(f, "cpus", text);
	proc_line("/proc/meminfo", "MemTotal", text, sizeof(text));
	json_member(f, "memory", text);
	proc_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", "", text,
		  sizeof(text));
	json_member(f, "clock", text);
	if (!uname(&un)) {
		snprintf(text, sizeof(text), "%s %s", un.sysname, un.release);
		json_member(f, "kernel", text);
	}
	for (e = environ; *e; e++)
		if (!strncmp(*e, "QCU_", 4) && strchr(*e, '=')) {
			snprintf(text, sizeof(text), "%.*s", (int)strcspn(*e, "="), *e);
			json_member(f, text, strchr(*e, '=') + 1);
		}
	for (i = 0; i < argc && at < sizeof(text); i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? " " : "", argv[i]);
	json_member(f, "command", text);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	fprintf(f, "    \"time\": \"%s\"\n  },\n", text);
}

static void write_json(FILE *f, int argc, char **argv)
{
	unsigned int i, k;

	fprintf(f, "{\n  \"label\": ");
	json_string(f, bench.label);
	fprintf(f, ",\n  \"benchmark\": ");
	json_string(f, bench_name);
	fprintf(f, ",\n");
	environment(f, argc, argv);
	fprintf(f, "  \"skipped\": [");
	for (i = 0; i < bench_nr_skipped; i++) {
		fprintf(f, i ? ", " : "");
		json_string(f, bench_skipped[i]);
	}
	fprintf(f, "],\n  \"rows\": [\n");
	for (i = 0; i < bench_nr_results; i++) {
		const struct bench_result *r = &bench_results[i];

		fprintf(f, "    {\"case\": ");
		json_string(f, r->name);
		fprintf(f,
			", \"bytes\": %llu, \"value\": %.9g, \"unit\": \"%s\", \"low\": %.9g, "
			"\"high\": %.9g, \"spread\": %.4g, \"reps\": %u, \"checked\": \"%s\"",
			(unsigned long long)r->bytes, r->median, r->unit, r->least, r->most,
			r->spread, r->reps, r->checked);
		for (k = 0; r->counted && k < BENCH_COUNTERS; k++)
			if (r->counter[k] >= 0)
				fprintf(f, ", \"%s\": %.4g", bench_counter_name[k], r->counter[k]);
		fprintf(f, "}%s\n", i + 1 < bench_nr_results ? "," : "");
	}
	fprintf(f, "  ]\n}\n");
}

static void write_csv(FILE *f, int argc, char **argv)
{
	unsigned int i, k;

	(void)argc;
	(void)argv;
	fprintf(f, "label,benchmark,case,bytes,value,unit,low,high,spread,reps,checked");
	for (k = 0; k < BENCH_COUNTERS; k++)
		fprintf(f, ",%s", bench_counter_name[k]);
	fprintf(f, "\n");
	for (i = 0; i < bench_nr_results; i++) {
		const struct bench_result *r = &bench_results[i];

		fprintf(f, "%s,%s,%s,%llu,%.9g,%s,%.9g,%.9g,%.4g,%u,%s", bench.label, bench_name,
			r->name, (unsigned long long)r->bytes, r->median, r->unit, r->least,
			r->most, r->spread, r->reps, r->checked);
		for (k = 0; k < BENCH_COUNTERS; k++)
			if (r->counted && r->counter[k] >= 0)
				fprintf(f, ",%.4g", r->counter[k]);
			else
				fprintf(f, ",");
		fprintf(f, "\n");
	}
}

/* A file with the final name is always complete. */
static void write_whole(const char *path, void (*fill)(FILE *, int, char **), int argc, char **argv)
{
	char part[4096];
	bool bad;
	FILE *f;

	if ((size_t)snprintf(part, sizeof(part), "%s.part", path) >= sizeof(part))
		BENCH_FAIL(2, "%s: too long a name", path);
	f = fopen(part, "w");
	if (!f)
		BENCH_FAIL(2, "%s cannot be written: %s", part, strerror(errno));
	fill(f, argc, argv);
	bad = fflush(f) || ferror(f) || fsync(fileno(f));
	if (fclose(f) || bad || rename(part, path)) {
		unlink(part);
		BENCH_FAIL(1, "%s cannot be written: %s", path, strerror(errno));
	}
}

int bench_write(int argc, char **argv)
{
	if (bench.csv)
		write_whole(bench.csv, write_csv, argc, argv);
	if (bench.json)
		write_whole(bench.json, write_json, argc, argv);
	return 0;
}

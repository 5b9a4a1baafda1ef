// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * qcu-smi: prints this VM's devices, what it uses of them, and its programs that use them. Options,
 * names and exit codes are nvidia-smi's, as far as a guest can know what they ask for.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/qcucmd.h"
#include "qcu-library/nvml/smi.h"

static const char usage[] =
	"usage: qcu-smi [-L | -q [-d SECTION,...] | --query-gpu=FIELD,... |\n"
	"                --query-compute-apps=FIELD,... | --json] [-i ID,...] [-l SECONDS | -lms "
	"MS]\n"
	"       qcu-smi dmon [-i ID,...] [-s GROUPS] [-d SECONDS] [-c COUNT]\n"
	"\n"
	"Prints the GPUs of this VM, how much of their memory it uses, and which programs use "
	"them.\n"
	"Options and exit codes are those of nvidia-smi.\n"
	"\n"
	"  -L, --list-gpus     one line for each GPU\n"
	"  -q, --query         all values; N/A: a guest cannot know it\n"
	"  -d, --display=LIST  with -q: only these sections: MEMORY, UTILIZATION, ECC, "
	"TEMPERATURE,\n"
	"                      POWER, CLOCK, COMPUTE, PIDS, PERFORMANCE, ACCOUNTING, "
	"ENCODER_STATS,\n"
	"                      PAGE_RETIREMENT\n"
	"  --query-gpu=LIST    these fields of each GPU; --help-query-gpu has their names\n"
	"  --query-compute-apps=LIST\n"
	"                      these fields of each program; --help-query-compute-apps has the "
	"names\n"
	"  --format=csv[,noheader][,nounits]\n"
	"                      with these two: the form, which must be named\n"
	"  --json              one object in a line; numbers in the units of the fields\n"
	"  -i, --id=LIST       only these GPUs: index, UUID or bus id\n"
	"  --version           which wire version it has\n"
	"  -l, --loop=SECONDS  again and again (5); -lms, --loop-ms=MS the same in milliseconds\n"
	"  dmon                one short line for each GPU, once a second. GROUPS are letters: p "
	"power\n"
	"                      and temperature, u utilization, c clocks (puc), m memory\n"
	"\n"
	"Exit codes: 0; 2 wrong options; 4 not permitted; 6 there is no such GPU; 9 this VM has no "
	"GPU\n"
	"that answers; 15 the host is gone; 255 anything else.\n";

enum exit_code {
	EXIT_OPTIONS = 2,
	EXIT_PERMISSION = 4,
	EXIT_NO_SUCH_GPU = 6,
	EXIT_DRIVER = 9,
	EXIT_LOST = 15,
	EXIT_OTHER = 255,
};

static int tell_nvml_error(const char *what, nv_return err)
{
	fflush(stdout);
	fprintf(stderr, "qcu-smi: %s: %s\n", what, nvmlErrorString(err));
	switch (err) {
	case NV_NO_PERMISSION:
		return EXIT_PERMISSION;
	case NV_DRIVER_NOT_LOADED:
		return EXIT_DRIVER;
	case NV_GPU_IS_LOST:
		return EXIT_LOST;
	}
	return EXIT_OTHER;
}

/* ---- options ---- */

struct arguments {
	smi_page_fn *page;
	struct smi_options options;
	const char *ids, *format;
	double pause;	    /* in seconds; 0: once */
	unsigned int times; /* 0: for ever */
	bool dmon;
};

/* Ends the program. */
__attribute__((format(printf, 1, 2), noreturn)) static void refuse_options(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	exit(EXIT_OPTIONS);
}

__attribute__((noreturn)) static void end_output(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		exit(0);
	fprintf(stderr, "qcu-smi: the output cannot be written\n");
	exit(EXIT_OTHER);
}

__attribute__((noreturn)) static void print_field_names(const struct smi_field *field)
{
	for (; field->name; field++)
		printf("%s%s%s%s%s\n", field->name, field->also ? " or " : "",
		       field->also ? field->also : "", field->unit ? ", in " : "",
		       field->unit ? field->unit : "");
	end_output();
}

static void choose_fields(struct arguments *a, const struct smi_field *of, const char *list)
{
	size_t n;

	for (;; list += n + 1) {
		list += strspn(list, " ");
		n = strcspn(list, ", ");
		if (a->options.fields == SMI_FIELDS)
			refuse_options("qcu-smi: more than %u fields", SMI_FIELDS);
		a->options.field[a->options.fields] = smi_field_of(of, list, n);
		if (!a->options.field[a->options.fields++])
			refuse_options("Field \"%.*s\" is not a valid field to query.\n", (int)n,
				       list);
		n += strspn(list + n, " ");
		if (!list[n])
			break;
	}
}

static void choose_format(struct arguments *a, const char *list)
{
	bool csv = false;
	size_t n;

	for (;; list += n + 1) {
		list += strspn(list, " ");
		n = strcspn(list, ", ");
		if (n == 3 && !strncmp(list, "csv", n))
			csv = true;
		else if (n == 8 && !strncmp(list, "noheader", n))
			a->options.header = false;
		else if (n == 7 && !strncmp(list, "nounits", n))
			a->options.units = false;
		else
			refuse_options(
				"qcu-smi: --format: what is \"%.*s\"? (csv, noheader, nounits)",
				(int)n, list);
		n += strspn(list + n, " ");
		if (!list[n])
			break;
	}
	if (!csv)
		refuse_options("qcu-smi: --format must have csv in it");
}

static void choose_displays(struct arguments *a, const char *list)
{
	size_t n;

	a->options.display = list;
	for (;; list += n + 1) {
		n = strcspn(list, ",");
		if (!smi_is_display(list, n))
			refuse_options("qcu-smi: -d: there is no section \"%.*s\" (try --help)",
				       (int)n, list);
		if (!list[n])
			break;
	}
}

static double number_between(const char *option, const char *text, double least, double most)
{
	char *end;
	double n;

	n = strtod(text, &end);
	if (end == text || *end || !(n >= least && n <= most))
		refuse_options("qcu-smi: %s %s: must be a number from %g to %g", option, text,
			       least, most);
	return n;
}

static void choose_page(struct arguments *a, smi_page_fn *page)
{
	if (a->page && a->page != page)
		refuse_options("qcu-smi: only one of -L, -q, --query-gpu, --query-compute-apps and "
			       "--json (try --help)");
	a->page = page;
}

enum option_id {
	OPT_HELP,
	OPT_GPU_FIELDS,
	OPT_APP_FIELDS,
	OPT_LIST,
	OPT_QUERY,
	OPT_JSON,
	OPT_DISPLAY,
	OPT_QUERY_GPU,
	OPT_QUERY_APPS,
	OPT_FORMAT,
	OPT_ID,
	OPT_LOOP,
	OPT_LOOP_MS,
	OPT_GROUPS,
	OPT_DELAY,
	OPT_COUNT,
	OPT_VERSION,
};

/* dmon: whether it is an option of dmon; both: of dmon, too. */
static const struct option_of_smi {
	const char *brief, *name;
	enum option_id id;
	bool value, dmon, both;
} known_options[] = {
	{"-h", "--help", OPT_HELP, false, false, true},
	{NULL, "--version", OPT_VERSION, false, false, true},
	{NULL, "--help-query-gpu", OPT_GPU_FIELDS, false, false, false},
	{NULL, "--help-query-compute-apps", OPT_APP_FIELDS, false, false, false},
	{"-L", "--list-gpus", OPT_LIST, false, false, false},
	{"-q", "--query", OPT_QUERY, false, false, false},
	{NULL, "--json", OPT_JSON, false, false, false},
	{"-d", "--display", OPT_DISPLAY, true, false, false},
	{NULL, "--query-gpu", OPT_QUERY_GPU, true, false, false},
	{NULL, "--query-compute-apps", OPT_QUERY_APPS, true, false, false},
	{NULL, "--format", OPT_FORMAT, true, false, false},
	{"-i", "--id", OPT_ID, true, false, true},
	{"-l", "--loop", OPT_LOOP, true, false, false},
	{"-lms", "--loop-ms", OPT_LOOP_MS, true, false, false},
	{"-s", "--select", OPT_GROUPS, true, true, false},
	{"-d", "--delay", OPT_DELAY, true, true, false},
	{"-c", "--count", OPT_COUNT, true, true, false},
};

static const struct option_of_smi *option_named(const char *word, bool dmon)
{
	size_t n = strcspn(word, "=");
	unsigned int i;

	for (i = 0; i < sizeof(known_options) / sizeof(*known_options); i++) {
		const struct option_of_smi *o = &known_options[i];

		if ((o->dmon == dmon || o->both) &&
		    ((o->brief && !strcmp(word, o->brief)) ||
		     (strlen(o->name) == n && !strncmp(word, o->name, n))))
			return o;
	}
	refuse_options("qcu-smi: what is %s? (try --help)", word);
}

static void apply_option(struct arguments *a, enum option_id id, const char *value)
{
	switch (id) {
	case OPT_HELP:
		fputs(usage, stdout);
		end_output();
	case OPT_VERSION:
		printf("qcu-smi, wire version %u\n", QCU_WIRE_VERSION);
		end_output();
	case OPT_GPU_FIELDS:
		print_field_names(smi_gpu_fields);
	case OPT_APP_FIELDS:
		print_field_names(smi_app_fields);
	case OPT_LIST:
		choose_page(a, smi_show_list);
		break;
	case OPT_QUERY:
		choose_page(a, smi_show_query);
		break;
	case OPT_JSON:
		choose_page(a, smi_show_json);
		break;
	case OPT_DISPLAY:
		choose_displays(a, value);
		break;
	case OPT_QUERY_GPU:
		choose_page(a, smi_show_gpus);
		choose_fields(a, smi_gpu_fields, value);
		break;
	case OPT_QUERY_APPS:
		choose_page(a, smi_show_apps);
		choose_fields(a, smi_app_fields, value);
		break;
	case OPT_FORMAT:
		a->format = value;
		choose_format(a, value);
		break;
	case OPT_ID:
		a->ids = value;
		break;
	case OPT_LOOP:
		a->pause = value ? number_between("-l", value, 1, 86400) : 5;
		break;
	case OPT_LOOP_MS:
		a->pause = number_between("-lms", value, 1, 86400000) / 1000;
		break;
	case OPT_GROUPS:
		if (!*value || value[strspn(value, "pucm")])
			refuse_options("qcu-smi: -s %s: must be some of the letters p, u, c and m",
				       value);
		a->options.groups = value;
		break;
	case OPT_DELAY:
		a->pause = number_between("-d", value, 1, 86400);
		break;
	case OPT_COUNT:
		a->times = (unsigned int)number_between("-c", value, 1, 1000000000);
		break;
	}
}

static void read_arguments(struct arguments *a, char **argv)
{
	if (*argv && !strcmp(*argv, "dmon")) {
		argv++;
		a->dmon = true;
		a->page = smi_show_dmon;
		a->pause = 1;
	}
	while (*argv) {
		const char *word = *argv++, *equals = strchr(word, '=');
		const struct option_of_smi *o = option_named(word, a->dmon);
		const char *value = equals ? equals + 1 : NULL;

		if (value && !o->value)
			refuse_options("qcu-smi: %s has no value (try --help)", o->name);
		/* Only the pause of -l may be left out. */
		if (o->value && !value && *argv && (o->id != OPT_LOOP || **argv != '-'))
			value = *argv++;
		if (o->value && !value && o->id != OPT_LOOP)
			refuse_options("qcu-smi: %s needs a value (try --help)", word);
		apply_option(a, o->id, value);
	}
	if (a->options.fields && !a->format)
		refuse_options("qcu-smi: a query needs --format=csv (try --help)");
	if (a->format && !a->options.fields)
		refuse_options("qcu-smi: --format belongs to --query-gpu and --query-compute-apps");
	if (a->options.display && a->page != smi_show_query)
		refuse_options("qcu-smi: -d belongs to -q and to dmon (try --help)");
	if (!a->page)
		a->page = smi_show_table;
}

/* ---- the devices ---- */

static nv_return device_named(const char *id, nv_device_t *device)
{
	unsigned long index;
	char *end;

	if (!strncmp(id, "GPU-", 4))
		return nvmlDeviceGetHandleByUUID(id, device);
	if (strchr(id, ':'))
		return nvmlDeviceGetHandleByPciBusId_v2(id, device);
	index = strtoul(id, &end, 10);
	if (*id < '0' || *id > '9' || *end || index >= SMI_DEVICES)
		return NV_NOT_FOUND;
	return nvmlDeviceGetHandleByIndex_v2((unsigned int)index, device);
}

/* Returns an exit code. */
static int choose_devices(struct arguments *a)
{
	struct smi_options *o = &a->options;
	const char *list = a->ids;
	char id[SMI_TEXT];
	unsigned int count = 0, i;
	nv_return err;
	size_t n;

	err = nvmlDeviceGetCount_v2(&count);
	for (i = 0; !err && !list && i < count && i < SMI_DEVICES; i++)
		err = nvmlDeviceGetHandleByIndex_v2(i, &o->device[o->devices++]);
	if (err)
		return tell_nvml_error("the devices cannot be listed", err);
	for (; list && o->devices < SMI_DEVICES; list = list[n] ? list + n + 1 : NULL) {
		n = strcspn(list, ",");
		snprintf(id, sizeof(id), "%.*s", (int)n, list);
		if (device_named(id, &o->device[o->devices])) {
			fprintf(stderr, "No devices were found: -i %s\n", id);
			return EXIT_NO_SUCH_GPU;
		}
		o->devices++;
	}
	return 0;
}

/* ---- the program ---- */

static void wait_for_next(double seconds)
{
	struct timespec left = {.tv_sec = (time_t)seconds};

	left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

/* Returns an exit code. */
static int print_pages(struct arguments *a)
{
	nv_return err;

	for (;; a->options.again = true) {
		err = a->page(&a->options);
		if (err)
			return tell_nvml_error("the host does not answer", err);
		if (fflush(stdout)) {
			fprintf(stderr, "qcu-smi: %s\n", strerror(errno));
			return EXIT_OTHER;
		}
		if (!a->pause || (a->times && !--a->times))
			return 0;
		wait_for_next(a->pause);
	}
}

int main(int argc, char **argv)
{
	struct arguments a = {.options = {.header = true, .units = true, .groups = "puc"}};
	nv_return err;
	int rc;

	if (argc > 0)
		read_arguments(&a, argv + 1);
	err = nvmlInit_v2();
	if (err)
		return tell_nvml_error("this VM has no GPU that answers", err);
	rc = choose_devices(&a);
	if (!rc)
		rc = print_pages(&a);
	nvmlShutdown();
	return rc;
}

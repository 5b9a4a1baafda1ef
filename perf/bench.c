// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Flags, timing and statistics of the benchmarks. A row is the median of some samples. A sample is
 * long enough for a guest's clock. If there are counters of a guest driver, they are read before
 * and after the samples, so that a row also says how many notifications and interrupts an operation
 * costs.
 */
#include <errno.h>
#include <math.h>
#include <time.h>
#include <unistd.h>

#include "perf/bench.h"

struct bench_flags bench;
double bench_first_call;
const char *bench_name = "bench";
struct bench_result *bench_results;
unsigned int bench_nr_results;
char (*bench_skipped)[256];
unsigned int bench_nr_skipped;
const char *const bench_counter_name[BENCH_COUNTERS] = {"ioctls", "commands", "kicks",
							"interrupts"};

static double began;
static bool cut;
static int main_argc;
static char **main_argv;

#define SAMPLES_MAX 200

double bench_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* ---- flags ---- */

static bool number(const char *text, uint64_t *value)
{
	unsigned int shift = 0;
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (end == text || *text == '-' || *text == '+' || errno)
		return false;
	switch (*end) {
	case 'K':
		shift = 10;
		break;
	case 'M':
		shift = 20;
		break;
	case 'G':
		shift = 30;
		break;
	}
	end += shift ? 1 : 0;
	if (*end || n > UINT64_MAX >> shift)
		return false;
	*value = (uint64_t)n << shift;
	return true;
}

static uint64_t number_flag(const char *flag, const char *text, uint64_t min, uint64_t max)
{
	uint64_t n;

	if (!number(text, &n))
		BENCH_FAIL(2, "%s %s: must be a number, with K, M or G behind it for sizes", flag,
			   text);
	if (n < min || n > max)
		BENCH_FAIL(2, "%s %s: must be from %llu to %llu", flag, text,
			   (unsigned long long)min, (unsigned long long)max);
	return n;
}

static void help(const char *about, const struct bench_extra *extra)
{
	printf("usage: %s [flags]\n%s\n\n", bench_name, about);
	printf("  --min SIZE     smallest size (here %lluK)\n"
	       "  --max SIZE     largest size (here %lluK)\n",
	       (unsigned long long)bench.min >> 10, (unsigned long long)bench.max >> 10);
	printf("  --reps N       samples for one row (%u); fewer when --budget is used up\n"
	       "  --warmup N     samples before them (%u)\n"
	       "  --budget MS    time for one row's samples (%.0f)\n"
	       "  --limit S      begin no case after S seconds; then exit with 3\n"
	       "  --quick        fewer samples, half a second at most for a row\n"
	       "  --only TEXT    only cases with TEXT in their name; may be repeated\n"
	       "  --device N     the GPU, counted in PCI order (0)\n"
	       "  --pause MS     time between the first call and the first sample (%.0f)\n"
	       "  --marks N      samples of N operations, between marks that perf/cost counts by\n"
	       "  --wait HOW     spin or sleep while the GPU works; auto leaves it to CUDA (auto)\n"
	       "  --label TEXT   the first column of the result (run)\n"
	       "  --csv FILE, --json FILE\n"
	       "                 where to write the result, besides this table\n",
	       bench.reps, bench.warmup, bench.budget * 1e3, bench.pause * 1e3);
	for (; extra && extra->name; extra++)
		printf("  --%-12s %s\n", extra->name, extra->help);
}

/* In the environment, for the programs that a benchmark starts. */
#define WAIT_HOW "PERF_WAIT"

static void wait_how(const char *how)
{
	if (strcmp(how, "spin") && strcmp(how, "sleep") && strcmp(how, "auto"))
		BENCH_FAIL(2, "--wait %s: must be spin, sleep or auto", how);
	setenv(WAIT_HOW, how, 1);
}

cudaError_t bench_context(void)
{
	const char *how = getenv(WAIT_HOW);
	cudaError_t ret = cudaSuccess;

	if (how && !strcmp(how, "spin"))
		ret = cudaSetDeviceFlags(cudaDeviceScheduleSpin);
	else if (how && !strcmp(how, "sleep"))
		ret = cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync);
	return ret == cudaSuccess ? cudaFree(NULL) : ret;
}

static const struct bench_extra *find_extra(const struct bench_extra *extra, const char *flag)
{
	for (; extra && extra->name; extra++)
		if (!strcmp(flag + 2, extra->name))
			return extra;
	return NULL;
}

void bench_begin_bare(int argc, char **argv, const char *name, const char *about, uint64_t min,
		      uint64_t max, const struct bench_extra *extras)
{
	const struct bench_extra *extra;
	int i;

	began = bench_now();
	bench_name = name;
	main_argc = argc;
	main_argv = argv;
	bench.min = min;
	bench.max = max;
	bench.reps = 11;
	bench.warmup = 2;
	bench.budget = 2;
	bench.pause = 0.5;
	bench.label = "run";

	for (i = 1; i < argc; i++) {
		const char *flag = argv[i], *value;

		if (!strcmp(flag, "--help")) {
			help(about, extras);
			exit(0);
		}
		if (!strcmp(flag, "--quick")) {
			bench.quick = true;
			bench.reps = 7;
			bench.warmup = 1;
			bench.budget = 0.5;
			continue;
		}
		extra = strncmp(flag, "--", 2) ? NULL : find_extra(extras, flag);
		if (!extra && strcmp(flag, "--min") && strcmp(flag, "--max") &&
		    strcmp(flag, "--reps") && strcmp(flag, "--warmup") &&
		    strcmp(flag, "--budget") && strcmp(flag, "--limit") && strcmp(flag, "--only") &&
		    strcmp(flag, "--device") && strcmp(flag, "--wait") && strcmp(flag, "--pause") &&
		    strcmp(flag, "--marks") && strcmp(flag, "--label") && strcmp(flag, "--csv") &&
		    strcmp(flag, "--json"))
			BENCH_FAIL(2, "unknown flag %s (try --help)", flag);
		if (++i == argc || !*argv[i])
			BENCH_FAIL(2, "%s needs a value (try --help)", flag);
		value = argv[i];
		if (extra)
			*extra->value = number_flag(flag, value, extra->min, extra->max);
		else if (!strcmp(flag, "--min"))
			bench.min = number_flag(flag, value, 4, 1ull << 40);
		else if (!strcmp(flag, "--max"))
			bench.max = number_flag(flag, value, 4, 1ull << 40);
		else if (!strcmp(flag, "--reps"))
			bench.reps = (unsigned int)number_flag(flag, value, 1, SAMPLES_MAX);
		else if (!strcmp(flag, "--warmup"))
			bench.warmup = (unsigned int)number_flag(flag, value, 0, 100);
		else if (!strcmp(flag, "--budget"))
			bench.budget = (double)number_flag(flag, value, 1, 600000) * 1e-3;
		else if (!strcmp(flag, "--pause"))
			bench.pause = (double)number_flag(flag, value, 0, 60000) * 1e-3;
		else if (!strcmp(flag, "--marks"))
			bench.marks = (unsigned int)number_flag(flag, value, 1, 10000);
		else if (!strcmp(flag, "--limit"))
			bench.limit = (double)number_flag(flag, value, 1, 1000000);
		else if (!strcmp(flag, "--device"))
			bench.device = (int)number_flag(flag, value, 0, 63);
		else if (!strcmp(flag, "--wait"))
			wait_how(value);
		else if (!strcmp(flag, "--label"))
			bench.label = value;
		else if (!strcmp(flag, "--csv"))
			bench.csv = value;
		else if (!strcmp(flag, "--json"))
			bench.json = value;
		else if (bench.onlys == BENCH_ONLY)
			BENCH_FAIL(2, "--only %s: no more than %d of them", value, BENCH_ONLY);
		else
			bench.only[bench.onlys++] = value;
	}
	if (strpbrk(bench.label, ",\"\\\n"))
		BENCH_FAIL(2, "--label %s: no commas, quotes or backslashes", bench.label);
	if (bench.min > bench.max)
		BENCH_FAIL(2, "--min is above --max");
	/* Makes the bare host and the device process use the same GPU. */
	setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
}

void bench_begin(int argc, char **argv, const char *name, const char *about, uint64_t min,
		 uint64_t max, const struct bench_extra *extras)
{
	cudaError_t ret;
	double start;
	int devices = 0;

	bench_begin_bare(argc, argv, name, about, min, max, extras);
	start = bench_now();
	ret = cudaGetDeviceCount(&devices);
	if (ret != cudaSuccess || !devices)
		BENCH_FAIL(2, "there is no GPU here: %s", cudaGetErrorString(ret));
	if (bench.device >= devices)
		BENCH_FAIL(2, "--device %d: there are %d", bench.device, devices);
	ret = cudaSetDevice(bench.device);
	if (ret == cudaSuccess)
		ret = bench_context();
	if (ret != cudaSuccess)
		BENCH_FAIL(2, "the GPU cannot be used: %s", cudaGetErrorString(ret));
	bench_first_call = bench_now() - start;
	/*
	 * A host that keeps spare contexts makes the next one now. NVIDIA's driver does many things
	 * for one program at a time: meanwhile a cudaMalloc takes a millisecond or two.
	 */
	usleep((useconds_t)(bench.pause * 1e6));
}

bool bench_wants(const char *name)
{
	unsigned int i;

	for (i = 0; i < bench.onlys; i++)
		if (strstr(name, bench.only[i]))
			return true;
	return !bench.onlys;
}

bool bench_begins(const char *name)
{
	if (!bench_wants(name) || cut)
		return false;
	cut = bench.limit > 0 && bench_now() - began > bench.limit;
	if (cut)
		bench_skip(name, "the time is over, for this and all that follows");
	return !cut;
}

static uint64_t available(void)
{
	unsigned long long kib = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib ? (uint64_t)kib << 10 : UINT64_MAX;
}

void bench_needs(uint64_t host_bytes, uint64_t device_bytes)
{
	uint64_t host = available();
	size_t free_bytes = 0, total = 0;

	if (host_bytes > host)
		BENCH_FAIL(2, "this takes %llu MiB of memory, %llu MiB are free; lower --max",
			   (unsigned long long)host_bytes >> 20, (unsigned long long)host >> 20);
	CHECK(cudaMemGetInfo(&free_bytes, &total));
	if (device_bytes > free_bytes)
		BENCH_FAIL(2, "this takes %llu MiB of GPU memory, %llu MiB are free; lower --max",
			   (unsigned long long)device_bytes >> 20,
			   (unsigned long long)free_bytes >> 20);
}

uint64_t bench_next_size(uint64_t bytes)
{
	if (bytes >= bench.max)
		return UINT64_MAX;
	return bytes * 4 < bench.max ? bytes * 4 : bench.max;
}

/* ---- the guest driver's counters ---- */

bool bench_stats(const char *const *names, double *values, unsigned int n)
{
	static const char *const path = "/sys/kernel/debug/qcuda/stats";
	char line[128], name[64];
	FILE *f = fopen(path, "r");
	unsigned int i;
	double v;

	if (!f)
		return false;
	for (i = 0; i < n; i++)
		values[i] = -1;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%63s %lf", name, &v) == 2)
			for (i = 0; i < n; i++)
				if (!strcmp(name, names[i]))
					values[i] = v;
	fclose(f);
	return true;
}

static bool read_counters(double *values)
{
	return bench_stats(bench_counter_name, values, BENCH_COUNTERS);
}

/* ---- rows ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double quantile(const double *sorted, unsigned int n, double q)
{
	double at = q * (n - 1), below = floor(at);
	unsigned int i = (unsigned int)below;

	return i + 1 < n ? sorted[i] + (sorted[i + 1] - sorted[i]) * (at - below) : sorted[n - 1];
}

static void say(const struct bench_result *r)
{
	printf("%-34s %12llu  %12.4f %-4s  %10.4f .. %-12.4f %5.1f%%  n=%u", r->name,
	       (unsigned long long)r->bytes, r->median, r->unit, r->least, r->most, r->spread * 100,
	       r->reps);
	if (r->counted)
		printf("  %.2f commands %.2f kicks %.2f interrupts", r->counter[1], r->counter[2],
		       r->counter[3]);
	putchar('\n');
	fflush(stdout);
}

static struct bench_result *new_row(const char *name, uint64_t bytes, const char *unit,
				    double *samples, unsigned int n, const char *checked)
{
	struct bench_result *r;

	r = (struct bench_result *)realloc(bench_results,
					   (bench_nr_results + 1) * sizeof(*bench_results));
	if (!r)
		BENCH_FAIL(1, "out of memory");
	bench_results = r;
	r += bench_nr_results++;
	memset(r, 0, sizeof(*r));
	snprintf(r->name, sizeof(r->name), "%s", name);
	r->bytes = bytes;
	r->unit = unit;
	r->checked = checked;
	r->reps = n;
	qsort(samples, n, sizeof(*samples), compare);
	r->median = quantile(samples, n, 0.5);
	r->least = samples[0];
	r->most = samples[n - 1];
	if (r->median != 0)
		r->spread = (quantile(samples, n, 0.75) - quantile(samples, n, 0.25)) / r->median;
	return r;
}

void bench_row(const char *name, uint64_t bytes, const char *unit, double *samples, unsigned int n,
	       const char *checked)
{
	say(new_row(name, bytes, unit, samples, n, checked));
}

static double in_unit(const struct bench_case *c, double seconds)
{
	if (!strcmp(c->unit, "GB/s"))
		return c->work / seconds * 1e-9;
	if (!strcmp(c->unit, "1/s"))
		return 1 / seconds;
	return seconds * (strcmp(c->unit, "ms") ? 1e6 : 1e3);
}

/*
 * A mark asks the processor for a leaf of its description that no processor has. An emulator's
 * plugin and KVM's tracepoints see it, and count what lies between two marks (perf/cost).
 */
static void mark(void)
{
	if (bench.marks)
		__asm__ volatile("mov $0x44554351, %%eax; cpuid" ::: "eax", "ebx", "ecx", "edx");
}

/* Returns the seconds of `n` operations, all together. */
static double sample(const struct bench_case *c, unsigned int n)
{
	double start = bench_now(), took;

	mark();
	c->run(c->arg, n);
	mark();
	took = bench_now() - start;
	if (c->settle)
		c->settle(c->arg);
	/* What is counted finds the program's other threads asleep. */
	if (bench.marks)
		usleep(2000);
	return took > 1e-9 ? took : 1e-9;
}

/* Finds out how many operations a sample needs. With marks it is told. */
static unsigned int warm_up(const struct bench_case *c)
{
	double enough = c->enough > 0 ? c->enough : bench.quick ? 1e-3 : 4e-3, took;
	unsigned int n = 1, i;

	if (bench.marks) {
		n = c->most && c->most < bench.marks ? c->most : bench.marks;
		for (i = 0; i < bench.warmup; i++)
			sample(c, n);
		return n;
	}
	took = sample(c, 1);
	for (i = 1; i < bench.warmup || (took < enough && (!c->most || n < c->most)); i++) {
		if (took < enough) {
			double want = n * (took < enough / 16 ? 8 : enough / took * 1.2 + 1);

			n = c->most && want > c->most ? c->most : (unsigned int)want;
		} else if (took * bench.warmup > bench.budget) {
			break;
		}
		took = sample(c, n);
	}
	return n;
}

double bench_run(const struct bench_case *c)
{
	double samples[SAMPLES_MAX], spent = 0, took;
	double before[BENCH_COUNTERS], after[BENCH_COUNTERS], ops;
	unsigned int n = warm_up(c), reps = 0, i;
	struct bench_result *r;
	bool counted;

	counted = read_counters(before);
	while (reps < bench.reps && (spent < bench.budget || reps < 3 || bench.marks)) {
		took = sample(c, n);
		spent += took;
		samples[reps++] = in_unit(c, took / n);
		/* A run that takes longer than the whole budget is the only sample. */
		if (took > 2 * bench.budget && !bench.marks)
			break;
	}
	counted = counted && read_counters(after);
	r = new_row(c->name, c->bytes, c->unit, samples, reps, c->checked);
	r->counted = counted;
	ops = (double)n * reps;
	for (i = 0; counted && i < BENCH_COUNTERS; i++)
		r->counter[i] = before[i] < 0 ? -1 : (after[i] - before[i]) / ops;
	say(r);
	if (bench.marks)
		printf("marks %s/%s/%llu %u %u %.2f %.2f %.2f\n", bench_name, c->name,
		       (unsigned long long)c->bytes, n, bench.warmup + reps, r->counter[1],
		       r->counter[2], r->counter[3]);
	return r->median;
}

void bench_skip(const char *name, const char *why)
{
	char(*more)[256] = (char(*)[256])realloc(bench_skipped,
						 (bench_nr_skipped + 1) * sizeof(*bench_skipped));

	if (!more)
		BENCH_FAIL(1, "out of memory");
	bench_skipped = more;
	snprintf(bench_skipped[bench_nr_skipped++], sizeof(*bench_skipped), "%s: %s", name, why);
	fprintf(stderr, "%s: no %s: %s\n", bench_name, name, why);
}

int bench_end(void)
{
	int rc;

	if (!bench_nr_results)
		BENCH_FAIL(2, "no case has such a name or size (try --help)");
	rc = bench_write(main_argc, main_argv);
	return rc ? rc : cut ? 3 : 0;
}

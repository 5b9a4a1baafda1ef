// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs test_ptx_kernels.cu as nvcc compiles it for speed, with fast math, and for a debugger, and
 * compares every result with C. Also prints how long the important loops take.
 */
#include <math.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/ptx/test_ptx_env.h"

static struct ptx_module *mod;
static bool fast_math;

static int load(void **state)
{
	const char *kind = *state;
	char path[512];
	FILE *f;
	char *text;
	long n;
	struct ptx_diag d;
	enum ptx_status st;

	snprintf(path, sizeof(path), "%s.%s.ptx", PTX_KERNELS, kind);
	f = fopen(path, "r");
	if (!f)
		return -1;
	fseek(f, 0, SEEK_END);
	n = ftell(f);
	rewind(f);
	text = malloc((size_t)n + 1);
	if (fread(text, 1, (size_t)n, f) != (size_t)n)
		return -1;
	fclose(f);
	st = ptx_load(text, (size_t)n, &world_env, &mod, &d);
	free(text);
	if (st != PTX_OK) {
		fprintf(stderr, "%s: %s, line %u: %s\n", path, ptx_status_name(st), d.line, d.text);
		return -1;
	}
	fast_math = !strcmp(kind, "math");
	return 0;
}

static int unload(void **state)
{
	(void)state;
	ptx_unload(mod);
	mod = NULL;
	for (int i = 0; i < WORLD_MAX; i++)
		assert_false(world.mem[i].addr);
	return 0;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void test_vec_add(void **state)
{
	enum { N = 1000003 };
	float *a = dev_alloc(N * 4), *b = dev_alloc(N * 4), *c = dev_alloc(N * 4);
	struct {
		void *a, *b, *c;
		int n;
	} p = {a, b, c, N};
	double t;

	for (int i = 0; i < N; i++) {
		a[i] = (float)i;
		b[i] = 0.5f;
	}
	t = seconds();
	must_launch(mod, "vec_add", (N + 255) / 256, 256, 0, &p, sizeof(p));
	print_message("    vector add of 1 M floats (%s): %.1f ms\n", (char *)*state,
		      (seconds() - t) * 1e3);
	for (int i = 0; i < N; i++)
		assert_true(c[i] == (float)i + 0.5f);
	dev_free(a);
	dev_free(b);
	dev_free(c);
}

static void test_mat_mul(void **state)
{
	enum { N = 256 };
	float *a = dev_alloc(N * N * 4), *b = dev_alloc(N * N * 4), *c = dev_alloc(N * N * 4);
	struct {
		void *a, *b, *c;
		int n;
	} p = {a, b, c, N};
	struct ptx_launch l = {.grid = {N / 16, N / 16, 1},
			       .block = {16, 16, 1},
			       .params = &p,
			       .param_bytes = sizeof(p)};
	struct ptx_diag d;
	double t;

	for (int i = 0; i < N * N; i++) {
		a[i] = (float)(i % 13) - 6;
		b[i] = (float)(i % 7) - 3;
	}
	t = seconds();
	assert_int_equal(ptx_run(ptx_kernel_find(mod, "mat_mul"), &l, &d), PTX_OK);
	print_message("    matrix multiply 256 x 256 x 256 (%s): %.1f ms\n", (char *)*state,
		      (seconds() - t) * 1e3);
	for (int r = 0; r < N; r += 5)
		for (int k = 0; k < N; k++) {
			float s = 0;

			for (int i = 0; i < N; i++)
				s += a[r * N + i] * b[i * N + k];
			assert_true(c[r * N + k] == s);
		}
	dev_free(a);
	dev_free(b);
	dev_free(c);
}

static void test_pointers(void **state)
{
	struct {
		float *out;
		int which, pad;
		struct {
			int a;
			char b;
			double c;
		} pair;
	} p = {.which = 3, .pair = {100, 1, 0.25}};
	const float w[4] = {1, 2, 3, 4};
	uint64_t addr;
	size_t size;
	int seven = 7;

	(void)state;
	p.out = dev_alloc(64 * 4);
	for (int k = 2; k < 4; k++) {
		p.which = k;
		must_launch(mod, "pointers", 1, 64, 64 * 4, &p, sizeof(p));
		for (int t = 0; t < 64; t++) {
			float s = w[(63 - t) & 3] * (float)k;

			s = k & 1 ? s + 1 : 2 * s;
			s += (float)(63 - t) + 7 + 100 + 0.25f + 6 + 7.5f;
			assert_true(p.out[t] == s);
		}
	}
	assert_int_equal(ptx_var_find(mod, "counter", &addr, &size), PTX_OK);
	assert_int_equal(size, 4);
	assert_memory_equal((void *)(uintptr_t)addr, &seven, 4);
	assert_int_equal(ptx_var_find(mod, "nothing", &addr, &size), PTX_NOT_FOUND);
	dev_free(p.out);
}

static void test_recursion(void **state)
{
	static const int fib[13] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144};
	int *out = dev_alloc(64 * 4);
	struct ptx_diag d;

	(void)state;
	must_launch(mod, "recurse", 1, 64, 0, &out, sizeof(out));
	for (int t = 0; t < 64; t++)
		assert_int_equal(out[t], fib[t % 13]);
	assert_int_equal(launch(mod, "forever_deep", 1, 33, 0, &out, sizeof(out), &d),
			 PTX_STACK_OVERFLOW);
	dev_free(out);
}

static void test_spin_locks(void **state)
{
	int *mem = dev_alloc(8);
	struct {
		int *lock, *sum;
	} p = {mem, mem + 1};

	(void)state;
	must_launch(mod, "spin_lock", 3, 96, 0, &p, sizeof(p));
	assert_int_equal(mem[1], 288);
	mem[1] = 0;
	must_launch(mod, "spin_tight", 2, 64, 0, &p, sizeof(p));
	assert_int_equal(mem[1], 128);
	dev_free(mem);
}

static void test_warp_ops(void **state)
{
	int *o = dev_alloc(352 * 4), *in = dev_alloc(32 * 4);
	struct {
		int *o, *in;
	} p = {o, in};
	unsigned int odd = 0;

	(void)state;
	for (int t = 0; t < 32; t++) {
		in[t] = t * t % 23;
		odd |= (unsigned int)(in[t] & 1) << t;
	}
	must_launch(mod, "warp_ops", 1, 32, 0, &p, sizeof(p));
	for (int t = 0; t < 32; t++) {
		unsigned int same = 0;

		for (int k = 0; k < 32; k++)
			same |= (unsigned int)((in[k] & 3) == (in[t] & 3)) << k;
		assert_int_equal(o[t], in[t ^ 5]);
		assert_int_equal(o[t + 32], in[t % 8 + 3 < 8 ? t + 3 : t]);
		assert_int_equal(o[t + 64], in[t % 16 >= 2 ? t - 2 : t]);
		assert_int_equal(o[t + 96], in[t / 2 + 1]);
		assert_int_equal((unsigned int)o[t + 128], odd);
		assert_int_equal((unsigned int)o[t + 160], same);
		assert_int_equal(o[t + 192], 0); /* all lanes, and 1 */
		assert_int_equal(o[t + 224], 2);
		assert_int_equal(o[t + 256], in[(t + (t & 1 ? 2 : 4)) & 31]);
		assert_int_equal(o[t + 288], in[31 - t] + (t < 11 ? 1 : 2));
		if (t < 8)
			assert_int_equal(o[t + 320], 0xff);
		else
			assert_true((unsigned int)o[t + 320] >> t & 1);
	}
	dev_free(o);
	dev_free(in);
}

static void test_block_votes(void **state)
{
	int *o = dev_alloc(100 * 4);

	(void)state;
	must_launch(mod, "block_votes", 1, 100, 0, &o, sizeof(o));
	for (int t = 0; t < 100; t++)
		assert_int_equal(o[t], 34 + (t >= 40 ? 100 : 0) + 11000 + (t < 64));
	dev_free(o);
}

static void test_atomics(void **state)
{
	enum { N = 1000 };
	int *mem = dev_alloc(256);
	struct {
		int *i;
		unsigned int *u;
		unsigned long long *l;
		float *f;
		double *d;
	} p = {mem, (void *)(mem + 16), (void *)(mem + 20), (void *)(mem + 24), (void *)(mem + 28)};
	int xor = 0;

	(void)state;
	p.i[5] = -1;
	for (int t = 0; t < N; t++)
		xor ^= t * 7919;
	must_launch(mod, "atomics", 8, 125, 0, &p, sizeof(p));
	assert_int_equal(p.i[0], N * (N - 1) / 2);
	assert_int_equal(p.i[1], -(N - 1));
	assert_int_equal(p.i[2], N - 1);
	assert_int_equal(p.i[3], xor);
	assert_int_equal(p.i[4], -1);
	assert_int_equal(p.i[5], -128);
	assert_int_equal(p.i[6], -2 * N);
	assert_int_equal(p.i[7], N * (N - 1) / 2);
	assert_int_equal(p.u[0], N % 7);
	assert_int_equal(p.u[1], (7 - N % 7) % 7);
	assert_int_equal(p.u[2], 0xffffffffu);
	assert_true(p.l[0] == (unsigned long long)N << 33);
	assert_true(p.l[1] == (unsigned long long)(N - 1) << 32);
	assert_true(p.f[0] == N * 0.25f);
	assert_true(p.f[1] == N * 0.5f);
	assert_true(p.d[0] == N * 0.125);
	dev_free(mem);
}

static void near_f(float got, double want, double rel)
{
	if (fabs(got - want) > rel * fabs(want) + 1e-30)
		fail_msg("%.9g instead of %.9g", (double)got, want);
}

static void test_special_functions(void **state)
{
	float *f = dev_alloc(224 * 4);
	double *d = dev_alloc(224 * 8);
	double loose = fast_math ? 3e-6 : 3e-7;
	struct {
		float *f;
		double *d;
		int n;
	} p = {f, d, 32};

	(void)state;
	for (int i = 0; i < 32; i++) {
		f[i] = (float)(i - 16) * 0.37f + 0.01f;
		d[i] = (i - 16) * 0.41 + 0.003;
	}
	must_launch(mod, "special", 1, 32, 0, &p, sizeof(p));
	for (int i = 0; i < 32; i++) {
		double x = f[i], y = d[i], ax = fabs(x), ay = fabs(y);

		assert_true(fabs(f[i + 32] - sin(x)) < 1e-6);
		near_f(f[i + 64], exp(x), loose);
		near_f(f[i + 96], pow(ax, (double)1.7f), 2 * loose);
		near_f(f[i + 128], sqrt(ax) / (1 + x * x), 1e-6);
		near_f(f[i + 160], sin(x) + exp(x) + 1 / sqrt(ax + 1), 2e-6);
		if (!fast_math)
			assert_true(fabs(f[i + 192] - sin((double)(f[i] * 100000.0f))) < 1e-6);
		assert_true(fabs(d[i + 32] - sin(y)) < 1e-15);
		assert_true(fabs(d[i + 64] - exp(y)) <= 4e-16 * exp(y));
		assert_true(fabs(d[i + 96] - pow(ay, 1.7)) <= 1e-15 * pow(ay, 1.7));
		assert_true(d[i + 128] == sqrt(ay) / (1 + y * y) ||
			    fabs(d[i + 128] - sqrt(ay) / (1 + y * y)) < 1e-15 * fabs(d[i + 128]));
		assert_true(fabs(d[i + 160] - log(ay + 0.5)) <= 1e-15);
		assert_true(fabs(d[i + 192] - sin(y * 1e9)) < 1e-14);
	}
	dev_free(f);
	dev_free(d);
}

static unsigned int brev(unsigned int v)
{
	unsigned int r = 0;

	for (int i = 0; i < 32; i++)
		r |= (v >> i & 1) << (31 - i);
	return r;
}

static void test_integers(void **state)
{
	int *in = dev_alloc(64 * 4);
	long long *o = dev_alloc(384 * 8);
	struct {
		int *in;
		long long *o;
	} p = {in, o};

	(void)state;
	for (unsigned int i = 0; i < 64; i++)
		in[i] = (int)(i * 2654435761u + 12345u) >> (i % 3 * 7);
	in[40] = 0;
	must_launch(mod, "integers", 1, 32, 0, &p, sizeof(p));
	for (int t = 0; t < 32; t++) {
		int a = in[t], b = in[t + 32];
		unsigned int ua = (unsigned int)a, ub = (unsigned int)b;
		long long q = (long long)a * 1000003 + b, r = b ? b : 1;
		unsigned long long ab = (unsigned long long)ub << 32 | ua;
		unsigned long long rev = (unsigned long long)brev((unsigned int)q) << 32 |
					 brev((unsigned int)((unsigned long long)q >> 32));
		int dp = t;

		for (int k = 0; k < 4; k++)
			dp += (signed char)(ua >> 8 * k) * (signed char)(ub >> 8 * k);
		assert_int_equal(o[t], q / r);
		assert_int_equal(o[t + 32], q % r);
		assert_int_equal(o[t + 64], ua / (unsigned int)r);
		assert_int_equal((int)o[t + 96],
				 (int)(brev(ua) + (unsigned int)(b ? __builtin_clz(ub) : 32) +
				       (unsigned int)__builtin_popcount(ua) +
				       (unsigned int)__builtin_ffs(b)));
		assert_int_equal((unsigned int)o[t + 128], (ua >> 16 & 255) | (ub & 255) << 8 |
								   (ua >> 8 & 255) << 16 |
								   (ub >> 8 & 255) << 24);
		assert_int_equal((unsigned int)o[t + 160], (unsigned int)(ab << t >> 32));
		assert_int_equal(o[t + 192],
				 (int)((long long)a * b >> 32) +
					 (long long)((unsigned long long)ua * ub >> 32));
		assert_int_equal((int)o[t + 224], dp);
		assert_int_equal(o[t + 256], (long long)((__int128)q * (q * 3) >> 64));
		assert_int_equal(o[t + 288], (short)a * (short)b + (signed char)a);
		assert_true(
			(unsigned long long)o[t + 320] ==
			(unsigned long long)(q ? __builtin_clzll((unsigned long long)q) : 64) +
				(unsigned long long)__builtin_popcountll((unsigned long long)q) +
				(unsigned long long)__builtin_ffsll(q) + rev);
	}
	dev_free(in);
	dev_free(o);
}

static void test_halves(void **state)
{
	uint16_t *h = dev_alloc(160 * 4), *b = dev_alloc(96 * 2);
	float *f = dev_alloc(32 * 4);
	struct {
		void *h, *b, *f;
	} p = {h, b, f};

	(void)state;
	for (int i = 0; i < 64; i++) {
		/* 1.i and 2.j in half: exact, so that float can show the results */
		h[2 * i] = (uint16_t)(0x3c00 + i * 16);
		h[2 * i + 1] = (uint16_t)(0x4000 + i * 8);
	}
	for (int i = 0; i < 32; i++)
		b[i] = (uint16_t)(0x3f80 + i);
	must_launch(mod, "halves", 1, 32, 0, &p, sizeof(p));
	for (int t = 0; t < 32; t++) {
		float x = 1 + (float)t / 64;
		uint32_t u;
		float three;

		assert_true(f[t] == x);
		/* the larger of two positive halves has the larger bit pattern */
		assert_int_equal(h[(t + 128) * 2], h[(t + 32) * 2]);
		u = (uint32_t)b[t] << 16;
		memcpy(&three, &u, 4);
		three *= 3;
		memcpy(&u, &three, 4);
		u = (u + 0x7fff + (u >> 16 & 1)) >> 16;
		assert_int_equal(b[t + 32], u);
	}
	/* 1 * 1.5 + 1 = 2.5; 1 + 1.5 = 2.5 */
	assert_int_equal(h[64 * 2], 0x4100);
	assert_int_equal(h[96 * 2], 0x4100);
	dev_free(h);
	dev_free(b);
	dev_free(f);
}

static int jump(int t, int n, int *o)
{
	int v = t;

	switch ((t + n) % 9) {
	case 0:
		v = v * 3 + 1;
		break;
	case 1:
		v ^= 0x55;
		break;
	case 2:
		v = o[t] + 9;
		break;
	case 3:
		v <<= 3;
		break;
	case 4:
		v = -v;
		break;
	case 5:
		o[t] = 1;
		v += 77;
		break;
	case 6:
		v += 77;
		break;
	case 7:
		v /= 3;
		break;
	default:
		v = 1000 - v;
	}
	for (int i = 0; i < t % 5; i++) {
		if (v % 2)
			continue;
		v += i;
		if (v > 500)
			break;
	}
	return v;
}

static void test_branches(void **state)
{
	int *o = dev_alloc(128 * 4), ref[64] = {0};
	struct {
		int *o;
		int n;
	} p = {o, 4};

	(void)state;
	must_launch(mod, "jump", 1, 64, 0, &p, sizeof(p));
	for (int t = 0; t < 64; t++)
		assert_int_equal(o[t + 64], jump(t, 4, ref));
	assert_memory_equal(o, ref, sizeof(ref));
	dev_free(o);
}

static void test_printf_assert(void **state)
{
	struct ptx_diag d;
	int n = 42;

	(void)state;
	world.len = 0;
	must_launch(mod, "talk", 1, 32, 0, &n, sizeof(n));
	assert_string_equal(world.text, "n=42 f=63.000 s=str c=q x=0x2a l=1234567890123 "
					"u=4000000000 %|   42|42   |002.2\n");
	world.len = 0;
	must_launch(mod, "claim", 1, 32, 0, &n, sizeof(n));
	assert_int_equal(world.len, 0);
	n = 31;
	assert_int_equal(launch(mod, "claim", 1, 32, 0, &n, sizeof(n), &d), PTX_ASSERT);
	assert_non_null(strstr(world.text, "thread: [31,0,0] Assertion `threadIdx.x < n` failed."));
}

static void test_grid_sync(void **state)
{
	enum { B = 13, T = 64 };
	int *part = dev_alloc((B + 1) * 4);
	struct {
		int *part, *out;
	} p = {part, part + B};
	struct ptx_launch l = {.grid = {B, 1, 1},
			       .block = {T, 1, 1},
			       .params = &p,
			       .param_bytes = sizeof(p),
			       .cooperative = true};
	struct ptx_diag d;
	int total = 0;
	enum ptx_status st;

	(void)state;
	for (int b = 0; b < B; b++)
		total += T * (T - 1) / 2 + T * b;
	st = ptx_run(ptx_kernel_find(mod, "grid_sum"), &l, &d);
	if (st != PTX_OK)
		fail_msg("%s: %s", ptx_status_name(st), d.text);
	assert_int_equal(part[B], total);
	for (int b = 0; b < B; b++)
		assert_int_equal(part[b], T * (T - 1) / 2 + T * b + total);
	/* without a cooperative launch there is no grid barrier */
	l.cooperative = false;
	assert_int_equal(ptx_run(ptx_kernel_find(mod, "grid_sum"), &l, &d), PTX_TRAP);
	dev_free(part);
}

static void test_aggregate(void **state)
{
	int *mem = dev_alloc(65 * 4), seen[64] = {0};
	struct {
		int *n, *order;
	} p = {mem, mem + 1};

	(void)state;
	must_launch(mod, "aggregate", 1, 64, 0, &p, sizeof(p));
	assert_int_equal(mem[0], 22);
	for (int i = 0; i < 22; i++)
		seen[mem[1 + i]]++;
	for (int t = 0; t < 64; t++)
		assert_int_equal(seen[t], t % 3 == 0);
	dev_free(mem);
}

static void test_vectors(void **state)
{
	float *in = dev_alloc(32 * 16), *out = dev_alloc(32 * 16);
	short *s = dev_alloc(32 * 8);
	signed char *c = dev_alloc(32 * 2);
	struct {
		void *in, *out, *s, *c;
	} p = {in, out, s, c};

	(void)state;
	for (int i = 0; i < 128; i++) {
		in[i] = (float)i;
		s[i] = (short)(i * 3 - 100);
	}
	must_launch(mod, "vectors", 1, 32, 0, &p, sizeof(p));
	for (int t = 0; t < 32; t++) {
		assert_true(out[4 * t] == in[4 * t]);
		assert_true(out[4 * t + 1] == 0);
		assert_true(out[4 * t + 2] == in[4 * t + 2]);
		assert_true(out[4 * t + 3] == in[4 * t + 3]);
		assert_int_equal(c[2 * t], (signed char)(s[4 * t] + s[4 * t + 1]));
		assert_int_equal(c[2 * t + 1], (signed char)(s[4 * t + 2] - s[4 * t + 3]));
	}
	dev_free(in);
	dev_free(out);
	dev_free(s);
	dev_free(c);
}

static void test_heap(void **state)
{
	int **p = dev_alloc(16 * 8);

	(void)state;
	must_launch(mod, "heap", 1, 8, 0, &p, sizeof(p));
	for (int t = 0; t < 8; t += 2)
		for (int i = 0; i < 16; i++)
			assert_int_equal(p[t][i], i * t);
	for (int t = 1; t < 8; t += 2)
		assert_int_equal(world_range(NULL, (uint64_t)(uintptr_t)p[t]).hi, 0);
	dev_free(p);
}

static void test_faults(void **state)
{
	int *mem = dev_alloc(64);
	struct {
		void *p;
		int i;
	} p = {mem, 16};
	struct ptx_diag d;

	(void)state;
	assert_int_equal(launch(mod, "out_of_bounds", 1, 1, 0, &p, sizeof(p), &d),
			 PTX_ILLEGAL_ADDRESS);
	assert_true(d.line > 0);
	assert_non_null(strstr(d.text, "out_of_bounds"));
	assert_non_null(strstr(d.text, "thread (0,0,0)"));
	p.p = NULL;
	assert_int_equal(launch(mod, "out_of_bounds", 4, 128, 0, &p, sizeof(p), &d),
			 PTX_ILLEGAL_ADDRESS);
	p.p = (char *)mem + 2;
	p.i = 0;
	assert_int_equal(launch(mod, "out_of_bounds", 1, 1, 0, &p, sizeof(p), &d),
			 PTX_MISALIGNED_ADDRESS);
	p.p = mem;
	must_launch(mod, "out_of_bounds", 1, 1, 0, &p, sizeof(p));
	dev_free(mem);
}

static volatile int stop_now;

static void *stopper(void *arg)
{
	(void)arg;
	usleep(50000);
	stop_now = 1;
	return NULL;
}

static void test_cancel(void **state)
{
	int *mem = dev_alloc(4);
	struct ptx_launch l = {.grid = {9, 1, 1},
			       .block = {64, 1, 1},
			       .params = &mem,
			       .param_bytes = sizeof(mem),
			       .cancel = &stop_now};
	struct ptx_diag d;
	pthread_t t;

	(void)state;
	stop_now = 0;
	pthread_create(&t, NULL, stopper, NULL);
	assert_int_equal(ptx_run(ptx_kernel_find(mod, "endless"), &l, &d), PTX_KILLED);
	pthread_join(t, NULL);
	mem[0] = 1;
	stop_now = 0;
	assert_int_equal(ptx_run(ptx_kernel_find(mod, "endless"), &l, &d), PTX_OK);
	dev_free(mem);
}

static void test_special_registers(void **state)
{
	unsigned int n = 3 * 5 * 2, blocks = 2 * 3 * 2;
	unsigned int *o = dev_alloc(n * blocks * 16);
	struct ptx_launch l = {
		.grid = {2, 3, 2}, .block = {3, 5, 2}, .params = &o, .param_bytes = sizeof(o)};
	struct ptx_diag d;

	(void)state;
	assert_int_equal(ptx_run(ptx_kernel_find(mod, "special_regs"), &l, &d), PTX_OK);
	for (unsigned int b = 0; b < blocks; b++)
		for (unsigned int t = 0; t < n; t++) {
			unsigned int *v = o + (b * n + t) * 4;

			assert_int_equal(v[0], b * 1000 + t);
			assert_int_equal(v[1], t / 32 * 100 + 1);
			assert_int_equal(v[2], (1u << t % 32) - 1);
			assert_int_equal(v[3], 41);
		}
	dev_free(o);
}

#define ALL(kind)                                                                              \
	{kind ": vector add", test_vec_add, load, unload, (void *)kind},                       \
		{kind ": matrix multiply", test_mat_mul, load, unload, (void *)kind},          \
		{kind ": pointers, constants, structs", test_pointers, load, unload,           \
		 (void *)kind},                                                                \
		{kind ": recursion", test_recursion, load, unload, (void *)kind},              \
		{kind ": spin locks in a warp", test_spin_locks, load, unload, (void *)kind},  \
		{kind ": warp operations", test_warp_ops, load, unload, (void *)kind},         \
		{kind ": votes of a block", test_block_votes, load, unload, (void *)kind},     \
		{kind ": atomics", test_atomics, load, unload, (void *)kind},                  \
		{kind ": sin, exp, pow, sqrt", test_special_functions, load, unload,           \
		 (void *)kind},                                                                \
		{kind ": integers", test_integers, load, unload, (void *)kind},                \
		{kind ": half and bfloat16", test_halves, load, unload, (void *)kind},         \
		{kind ": branches", test_branches, load, unload, (void *)kind},                \
		{kind ": printf and assert", test_printf_assert, load, unload, (void *)kind},  \
		{kind ": grid sync", test_grid_sync, load, unload, (void *)kind},              \
		{kind ": aggregated atomics", test_aggregate, load, unload, (void *)kind},     \
		{kind ": vector loads and stores", test_vectors, load, unload, (void *)kind},  \
		{kind ": malloc and free", test_heap, load, unload, (void *)kind},             \
		{kind ": illegal and misaligned", test_faults, load, unload, (void *)kind},    \
		{kind ": endless loop and cancel", test_cancel, load, unload, (void *)kind},   \
	{                                                                                      \
		kind ": special registers", test_special_registers, load, unload, (void *)kind \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {ALL("fast"), ALL("math"), ALL("debug")};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

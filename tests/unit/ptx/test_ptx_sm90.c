// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs nvcc's code for compute_80 and compute_90: barriers, pipelines, large tiles, fp8 and vector
 * atomics. Compares the results with C.
 */
#include <math.h>

#include "tests/unit/ptx/test_ptx_env.h"
#include "tests/unit/ptx/test_ptx_ref.h"

#define N 256

static struct ptx_module *mod;

static int load(void **state)
{
	char path[512], *text;
	FILE *f;
	long n;

	snprintf(path, sizeof(path), "%s.%s.ptx", PTX_KERNELS, (char *)*state);
	f = fopen(path, "r");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	n = ftell(f);
	rewind(f);
	text = malloc((size_t)n + 1);
	assert_non_null(text);
	text[fread(text, 1, (size_t)n, f)] = 0;
	fclose(f);
	mod = must_load(text);
	free(text);
	return 0;
}

static int unload(void **state)
{
	(void)state;
	ptx_unload(mod);
	return 0;
}

static void test_rounds(void **state)
{
	int *out = dev_alloc(N * 4);

	(void)state;
	must_launch(mod, "rounds", 3, N, 0, &out, sizeof(out));
	for (int t = 0; t < N; t++) {
		int sum = 6 * (t ^ 37) + 15, other = 6 * ((t ^ 2) ^ 37) + 15;

		assert_int_equal(out[t], t & 1 ? sum : sum + other);
	}
	dev_free(out);
}

static void test_copies(void **state)
{
	enum { TILES = 7 };
	int *out = dev_alloc(N * 4), *in = dev_alloc(TILES * N * 4);
	struct {
		int *out, *in;
		int tiles;
	} p = {out, in, TILES};

	(void)state;
	for (int i = 0; i < TILES * N; i++)
		in[i] = i * i % 1009;
	must_launch(mod, "copies", 1, N, 0, &p, sizeof(p));
	for (int t = 0; t < N; t++) {
		int sum = in[N - 1 - t];

		for (int k = 0; k < TILES; k++)
			sum += in[k * N + N - 1 - t];
		assert_int_equal(out[t], sum);
	}
	dev_free(out);
	dev_free(in);
}

static void test_tiles(void **state)
{
	int *out = dev_alloc(3 * N * 4);

	(void)state;
	must_launch(mod, "tiles", 2, N, 0, &out, sizeof(out));
	for (int t = 0; t < N; t++) {
		int first = t / 128 * 128, n = t - first;

		assert_int_equal(out[t], 128 * first + 127 * 64);
		assert_int_equal(out[t + N], n * first + n * (n - 1) / 2);
		assert_int_equal(out[t + 2 * N], t < 128 ? 3 : 0);
	}
	dev_free(out);
}

/* The value of an 8-bit code, by its definition. */
static double eight(unsigned int u, int mant, int ebits)
{
	unsigned int mag = u & 127, m = mag & ((1u << mant) - 1);
	int bias = (1 << (ebits - 1)) - 1, e = (int)(mag >> mant);
	double v = e ? ldexp(m + (1u << mant), e - bias - mant) : ldexp(m, 1 - bias - mant);

	return u & 128 ? -v : v;
}

static void test_eights(void **state)
{
	uint8_t *codes = dev_alloc(2 * N);
	float *back = dev_alloc(2 * N * 4), *in = dev_alloc(N * 4);
	struct {
		uint8_t *codes;
		float *back, *in;
	} p = {codes, back, in};

	(void)state;
	for (int t = 0; t < N; t++)
		in[t] = (float)(t - 128) * ldexpf(1.3f, t % 23 - 12);
	in[0] = NAN;
	in[1] = INFINITY;
	must_launch(mod, "eights", 1, N, 0, &p, sizeof(p));
	assert_int_equal(codes[0] & 127, 127);
	assert_int_equal(codes[1], 0x7e);
	assert_int_equal(codes[N + 1], 0x7b);
	for (int t = 1; t < 2 * N; t++) {
		int mant = t < N ? 3 : 2, ebits = t < N ? 4 : 5;
		double most = t < N ? 448 : 57344, want = in[t % N], v;

		if (t == N)
			continue;
		want = want > most ? most : want < -most ? -most : want;
		v = eight(codes[t], mant, ebits);
		assert_true(back[t] == (float)v);
		/* no neighbour is nearer */
		for (int d = -1; d <= 1; d += 2) {
			unsigned int mag = (codes[t] & 127u) + (unsigned int)d;

			if (mag < (t < N ? 0x7fu : 0x7cu))
				assert_true(
					fabs(want - v) <=
					fabs(want - eight((codes[t] & 128u) | mag, mant, ebits)));
		}
	}
	dev_free(codes);
	dev_free(back);
	dev_free(in);
}

static void test_mixed(void **state)
{
	float *sums = dev_alloc(16);
	int *out = dev_alloc(N * 4);
	struct {
		float *sums;
		int *out;
	} p = {sums, out};

	must_launch(mod, "mixed", 2, N, 0, &p, sizeof(p));
	/* only there with vectors of floats */
	assert_true(strcmp(*state, "sm90") || (sums[0] == 2 * N && sums[1] == N * (N - 1) &&
					       sums[2] == 4 * N && sums[3] == -N * (N - 1)));
	for (int t = 0; t < N; t++) {
		int n = t % 13 + 1, want = 0;

		for (int i = 0; i < n; i++)
			want += (t + n - 1 - i) * (i + 1);
		assert_int_equal(out[t], want);
	}
	dev_free(sums);
	dev_free(out);
}

int main(void)
{
	static char *const names[] = {"sm80", "sm90"};
	int failed = 0;

	for (int i = 0; i < 2; i++) {
		const struct CMUnitTest tests[] = {
			cmocka_unit_test_prestate(test_rounds, names[i]),
			cmocka_unit_test_prestate(test_copies, names[i]),
			cmocka_unit_test_prestate(test_tiles, names[i]),
			cmocka_unit_test_prestate(test_eights, names[i]),
			cmocka_unit_test_prestate(test_mixed, names[i]),
		};
		void *state = names[i];

		load(&state);
		failed += cmocka_run_group_tests(tests, NULL, unload);
	}
	return failed;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mma and wmma against a product of matrices on the CPU. The places of the elements of mma are
 * written here as the PTX manual writes them, shape by shape.
 */
#include "tests/unit/ptx/test_ptx_env.h"

#define HEAD ".version 8.7\n.target sm_90\n.address_size 64\n"

enum { MOST_K = 256, SIDE = 32 };

static uint32_t seed = 1;

static uint32_t draw(void)
{
	seed = seed * 1664525u + 1013904223u;
	return seed >> 8;
}

static double a[SIDE][MOST_K], b[MOST_K][SIDE], c[SIDE][SIDE], d[SIDE][SIDE], want[SIDE][SIDE];

static unsigned int bits_of(const char *t)
{
	static const struct {
		const char *name;
		unsigned int bits;
	} all[] = {{"f16", 16}, {"bf16", 16}, {"tf32", 32}, {"f32", 32}, {"f64", 64},
		   {"e4m3", 8}, {"e5m2", 8},  {"s8", 8},    {"u8", 8},	 {"s4", 4},
		   {"u4", 4},	{"b1", 1},    {"s32", 32}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i].name, t))
			return all[i].bits;
	fail_msg("type %s", t);
	return 0;
}

/* A small whole number that the type can hold. */
static double number(const char *t)
{
	if (!strcmp(t, "b1"))
		return draw() & 1;
	if (!strcmp(t, "u8"))
		return draw() & 255;
	if (!strcmp(t, "s8"))
		return (int)(draw() & 255) - 128;
	if (!strcmp(t, "u4"))
		return draw() & 15;
	if (!strcmp(t, "s4"))
		return (int)(draw() & 15) - 8;
	if (!strcmp(t, "s32"))
		return (int)(draw() & 0xffff) - 32768;
	if (!strcmp(t, "f64"))
		return (int)(draw() & 0xffff) / 256.0 - 100;
	return (int)(draw() % 9) - 4;
}

static uint64_t encode(const char *t, double v)
{
	float f = (float)v;
	uint64_t u64;
	uint32_t u, s, e, m;

	if (!strcmp(t, "f64")) {
		memcpy(&u64, &v, 8);
		return u64;
	}
	if (*t == 's' || *t == 'u' || !strcmp(t, "b1"))
		return (uint64_t)(int64_t)v & ((1ull << bits_of(t)) - 1);
	memcpy(&u, &f, 4);
	s = u >> 31;
	e = u >> 23 & 255;
	m = u & 0x7fffff;
	if (!strcmp(t, "f32"))
		return u;
	if (!strcmp(t, "tf32"))
		return u | (draw() & 0x1fff); /* these bits do not count */
	if (!strcmp(t, "bf16"))
		return u >> 16;
	if (!strcmp(t, "f16"))
		return s << 15 | (v != 0 ? (e - 112) << 10 | m >> 13 : 0);
	if (!strcmp(t, "e5m2"))
		return s << 7 | (v != 0 ? (e - 112) << 2 | m >> 21 : 0);
	return s << 7 | (v != 0 ? (e - 120) << 3 | m >> 20 : 0);
}

static double decode(const char *t, uint64_t u)
{
	uint32_t w = (uint32_t)u;
	double v;
	float f;

	if (!strcmp(t, "f64")) {
		memcpy(&v, &u, 8);
		return v;
	}
	if (!strcmp(t, "s32"))
		return (int32_t)w;
	if (!strcmp(t, "f16"))
		w = (w & 0x8000) << 16 | (w & 0x7fff ? (w & 0x7fff) + (112u << 10) : 0) << 13;
	memcpy(&f, &w, 4);
	return (double)f;
}

static void fill(const char *at, const char *bt, const char *ct, unsigned int m, unsigned int n,
		 unsigned int k)
{
	for (unsigned int i = 0; i < m; i++)
		for (unsigned int j = 0; j < k; j++)
			a[i][j] = number(at);
	for (unsigned int i = 0; i < k; i++)
		for (unsigned int j = 0; j < n; j++)
			b[i][j] = number(bt);
	for (unsigned int i = 0; i < m; i++)
		for (unsigned int j = 0; j < n; j++)
			c[i][j] = number(ct);
}

/* op: x, a: bits that differ, or that both have; else a product of numbers */
static void multiply(unsigned int m, unsigned int n, unsigned int k, char op)
{
	for (unsigned int i = 0; i < m; i++)
		for (unsigned int j = 0; j < n; j++) {
			want[i][j] = c[i][j];
			for (unsigned int x = 0; x < k; x++)
				want[i][j] += op == 'x' ? a[i][x] != b[x][j] : a[i][x] * b[x][j];
		}
}

static void compare(const char *what, unsigned int m, unsigned int n)
{
	for (unsigned int i = 0; i < m; i++)
		for (unsigned int j = 0; j < n; j++)
			if (d[i][j] != want[i][j])
				fail_msg("%s: row %u, column %u: %g instead of %g", what, i, j,
					 d[i][j], want[i][j]);
}

/* ---- places, from the manual; i is the number of the element in the lane ---- */

static unsigned int g, t; /* groupID, threadID_in_group */

static void a_place(unsigned int bits, unsigned int m, unsigned int k, unsigned int i,
		    unsigned int *row, unsigned int *col)
{
	*row = g;
	switch (bits) {
	case 16:
		*row = i < 2 || (i >= 4 && i < 6) ? g : g + 8;
		*col = t * 2 + (i & 1) + (i >= 4 ? 8 : 0);
		break;
	case 32:
		*row = i == 0 || i == 2 ? g : g + 8;
		*col = i < 2 ? t : t + 4;
		break;
	case 64:
		*row = i % 2 == 0 ? g : g + 8;
		*col = k == 16 ? (i % 2 == 0 ? i * 2 + t : i * 2 - 2 + t) : i < 2 ? t : t + 4;
		break;
	case 8:
		if (m == 16)
			*row = i < 4 || (i >= 8 && i < 12) ? g : g + 8;
		*col = i < 8 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16;
		break;
	case 4:
		if (m == 16)
			*row = i < 8 || (i >= 16 && i < 24) ? g : g + 8;
		*col = i < 16 ? t * 8 + (i & 7) : t * 8 + (i & 7) + 32;
		break;
	default:
		if (m == 16)
			*row = i < 32 || (i >= 64 && i < 96) ? g : g + 8;
		*col = i < 64 ? t * 32 + (i & 31) : t * 32 + (i & 31) + 128;
	}
}

static void b_place(unsigned int bits, unsigned int i, unsigned int *row, unsigned int *col)
{
	*col = g;
	switch (bits) {
	case 16:
		*row = i < 2 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8;
		break;
	case 32:
	case 64:
		*row = t + i * 4;
		break;
	case 8:
		*row = i < 4 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16;
		break;
	case 4:
		*row = i < 8 ? t * 8 + (i & 7) : t * 8 + (i & 7) + 32;
		break;
	default:
		*row = i < 32 ? t * 32 + (i & 31) : t * 32 + (i & 31) + 128;
	}
}

static void c_place(unsigned int i, unsigned int *row, unsigned int *col)
{
	*row = i < 2 ? g : g + 8;
	*col = t * 2 + (i & 1);
}

struct form {
	const char *words; /* what stands behind the types; "" mostly */
	unsigned int m, n, k;
	const char *dt, *at, *bt, *ct;
};

static unsigned int regs(unsigned int elements, unsigned int bits)
{
	return elements * bits / 32 / (bits == 64 ? 64 : 32);
}

static size_t list(char *out, size_t cap, const char *family, unsigned int from, unsigned int n)
{
	size_t at = (size_t)snprintf(out, cap, "{");

	for (unsigned int i = 0; i < n; i++)
		at += (size_t)snprintf(out + at, cap - at, "%s%s%u", i ? ", " : "", family,
				       from + i);
	return at + (size_t)snprintf(out + at, cap - at, "}");
}

/* A kernel that loads registers 0 to n - 1, does the instruction, and stores those from n on. */
static struct ptx_module *kernel(const char *insn, unsigned int in, unsigned int out, bool wide)
{
	char text[8192];
	size_t n;
	struct ptx_module *m;
	const char *f = wide ? "%d" : "%r";
	unsigned int size = wide ? 8 : 4;

	n = (size_t)snprintf(text, sizeof(text),
			     HEAD ".entry k(.param .u64 p)\n{\n.reg .b32 %%r<64>, %%l; "
				  ".reg .b64 %%d<64>, %%q<2>;\n"
				  "ld.param.u64 %%q0, [p]; mov.u32 %%l, %%laneid; "
				  "mul.wide.u32 %%q1, %%l, 512; add.u64 %%q0, %%q0, %%q1;\n");
	for (unsigned int i = 0; i < in; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "ld.global.b%u %s%u, [%%q0+%u];\n", size * 8, f, i, i * size);
	n += (size_t)snprintf(text + n, sizeof(text) - n, "%s\n", insn);
	for (unsigned int i = in; i < in + out; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "st.global.b%u [%%q0+%u], %s%u;\n", size * 8, i * size, f, i);
	snprintf(text + n, sizeof(text) - n, "ret;\n}\n");
	m = must_load(text);
	return m;
}

static void put(uint32_t *lane, unsigned int first, unsigned int i, unsigned int bits, uint64_t v)
{
	if (bits == 64)
		memcpy(lane + 2 * (first + i), &v, 8);
	else
		lane[first + i * bits / 32] |= (uint32_t)v << i * bits % 32;
}

static uint64_t get(const uint32_t *lane, unsigned int first, unsigned int i, unsigned int bits)
{
	uint64_t v = 0;

	if (bits == 64)
		memcpy(&v, lane + 2 * (first + i), 8);
	else
		v = lane[first + i * bits / 32] >> i * bits % 32;
	return bits == 16 ? v & 0xffff : v;
}

static void check_form(const struct form *f)
{
	unsigned int ab = bits_of(f->at), cb = bits_of(f->ct), db = bits_of(f->dt), row, col, i;
	unsigned int na = regs(f->m * f->k, ab), nb = regs(f->n * f->k, ab);
	unsigned int nc = regs(f->m * f->n, cb), nd = regs(f->m * f->n, db), in = na + nb + nc;
	uint32_t(*lane)[128] = dev_alloc(32 * sizeof(*lane));
	void *p = lane;
	char insn[1024], word[128];
	struct ptx_module *m;
	size_t n;

	snprintf(word, sizeof(word), "mma.sync.aligned.m%un%uk%u.row.col%s.%s.%s.%s.%s%s", f->m,
		 f->n, f->k, *f->words == 's' ? ".satfinite" : "", f->dt, f->at, f->bt, f->ct,
		 *f->words == 'x'   ? ".xor.popc"
		 : *f->words == 'a' ? ".and.popc"
				    : "");
	n = (size_t)snprintf(insn, sizeof(insn), "%s ", word);
	n += list(insn + n, sizeof(insn) - n, ab == 64 ? "%d" : "%r", in, nd);
	n += (size_t)snprintf(insn + n, sizeof(insn) - n, ", ");
	n += list(insn + n, sizeof(insn) - n, ab == 64 ? "%d" : "%r", 0, na);
	n += (size_t)snprintf(insn + n, sizeof(insn) - n, ", ");
	n += list(insn + n, sizeof(insn) - n, ab == 64 ? "%d" : "%r", na, nb);
	n += (size_t)snprintf(insn + n, sizeof(insn) - n, ", ");
	n += list(insn + n, sizeof(insn) - n, ab == 64 ? "%d" : "%r", na + nb, nc);
	snprintf(insn + n, sizeof(insn) - n, ";");
	fill(f->at, f->bt, f->ct, f->m, f->n, f->k);
	multiply(f->m, f->n, f->k, *f->words);
	memset(lane, 0, 32 * sizeof(*lane));
	for (unsigned int l = 0; l < 32; l++) {
		g = l / 4;
		t = l % 4;
		for (i = 0; i < f->m * f->k / 32; i++) {
			a_place(ab, f->m, f->k, i, &row, &col);
			put(lane[l], 0, i, ab, encode(f->at, a[row][col]));
		}
		for (i = 0; i < f->n * f->k / 32; i++) {
			b_place(ab, i, &row, &col);
			put(lane[l], na, i, ab, encode(f->bt, b[row][col]));
		}
		for (i = 0; i < f->m * f->n / 32; i++) {
			c_place(i, &row, &col);
			put(lane[l], na + nb, i, cb, encode(f->ct, c[row][col]));
		}
	}
	m = kernel(insn, in, nd, ab == 64);
	must_launch(m, "k", 1, 32, 0, &p, sizeof(p));
	for (unsigned int l = 0; l < 32; l++) {
		g = l / 4;
		t = l % 4;
		for (i = 0; i < f->m * f->n / 32; i++) {
			c_place(i, &row, &col);
			d[row][col] = decode(f->dt, get(lane[l], in, i, db));
		}
	}
	compare(word, f->m, f->n);
	ptx_unload(m);
	dev_free(lane);
}

static void test_mma(void **state)
{
	static const struct form all[] = {
		{"", 16, 8, 8, "f16", "f16", "f16", "f16"},
		{"", 16, 8, 8, "f32", "f16", "f16", "f32"},
		{"", 16, 8, 16, "f16", "f16", "f16", "f16"},
		{"", 16, 8, 16, "f32", "f16", "f16", "f32"},
		{"", 16, 8, 8, "f32", "bf16", "bf16", "f32"},
		{"", 16, 8, 16, "f32", "bf16", "bf16", "f32"},
		{"", 16, 8, 4, "f32", "tf32", "tf32", "f32"},
		{"", 16, 8, 8, "f32", "tf32", "tf32", "f32"},
		{"", 8, 8, 4, "f64", "f64", "f64", "f64"},
		{"", 16, 8, 4, "f64", "f64", "f64", "f64"},
		{"", 16, 8, 8, "f64", "f64", "f64", "f64"},
		{"", 16, 8, 16, "f64", "f64", "f64", "f64"},
		{"", 16, 8, 16, "f32", "e4m3", "e5m2", "f32"},
		{"", 16, 8, 32, "f32", "e4m3", "e4m3", "f32"},
		{"", 16, 8, 32, "f32", "e5m2", "e4m3", "f32"},
		{"", 16, 8, 32, "f16", "e4m3", "e4m3", "f16"},
		{"", 8, 8, 16, "s32", "s8", "s8", "s32"},
		{"", 8, 8, 16, "s32", "u8", "s8", "s32"},
		{"", 16, 8, 16, "s32", "s8", "u8", "s32"},
		{"s", 16, 8, 16, "s32", "u8", "u8", "s32"},
		{"", 16, 8, 32, "s32", "s8", "s8", "s32"},
		{"", 16, 8, 32, "s32", "u8", "u8", "s32"},
		{"", 8, 8, 32, "s32", "s4", "s4", "s32"},
		{"", 8, 8, 32, "s32", "u4", "s4", "s32"},
		{"", 16, 8, 32, "s32", "s4", "u4", "s32"},
		{"s", 16, 8, 64, "s32", "s4", "s4", "s32"},
		{"", 16, 8, 64, "s32", "u4", "u4", "s32"},
		{"x", 8, 8, 128, "s32", "b1", "b1", "s32"},
		{"a", 8, 8, 128, "s32", "b1", "b1", "s32"},
		{"x", 16, 8, 128, "s32", "b1", "b1", "s32"},
		{"a", 16, 8, 128, "s32", "b1", "b1", "s32"},
		{"x", 16, 8, 256, "s32", "b1", "b1", "s32"},
		{"a", 16, 8, 256, "s32", "b1", "b1", "s32"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		check_form(&all[i]);
}

/* m8n8k4 of f16: four products, with lanes 0-3 and 16-19, 4-7 and 20-23, and so on. */
static void check_quads(bool a_col, bool b_row, bool half)
{
	uint32_t(*lane)[128] = dev_alloc(32 * sizeof(*lane));
	unsigned int nc = half ? 4 : 8, in = 4 + nc;
	char insn[256], where[256];
	void *p = lane;
	struct ptx_module *m;
	double am[4][8][4], bm[4][4][8], cm[4][8][8];

	snprintf(insn, sizeof(insn), "mma.sync.aligned.m8n8k4.%s.%s.%s.f16.f16.%s ",
		 a_col ? "col" : "row", b_row ? "row" : "col", half ? "f16" : "f32",
		 half ? "f16" : "f32");
	snprintf(where, sizeof(where), "%s", insn);
	list(insn + strlen(insn), sizeof(insn) - strlen(insn), "%r", in, nc);
	strcat(insn, ", {%r0, %r1}, {%r2, %r3}, ");
	list(insn + strlen(insn), sizeof(insn) - strlen(insn), "%r", 4, nc);
	strcat(insn, ";");
	memset(lane, 0, 32 * sizeof(*lane));
	for (int pass = 0; pass < 2; pass++) {
		for (unsigned int l = 0; l < 32; l++) {
			unsigned int q = l / 4 % 4, high = l < 16 ? 0 : 4;

			for (unsigned int i = 0; i < 4 && !pass; i++) {
				double va = number("f16"), vb = number("f16");

				if (a_col)
					am[q][i % 4 + high][l % 4] = va;
				else
					am[q][l % 4 + high][i] = va;
				if (b_row)
					bm[q][l % 4][i + high] = vb;
				else
					bm[q][i][l % 4 + high] = vb;
				put(lane[l], 0, i, 16, encode("f16", va));
				put(lane[l], 2, i, 16, encode("f16", vb));
			}
			for (unsigned int i = 0; i < 8; i++) {
				unsigned int x = (l & 1) + (i & 2);
				unsigned int row = half ? l % 4 + high : x + high;
				unsigned int col = half ? i : (i & 4) + (l & 2) + (i & 1);
				double v = cm[q][row][col];

				if (!pass) {
					cm[q][row][col] = number("f16");
					put(lane[l], 4, i, half ? 16 : 32,
					    encode(half ? "f16" : "f32", cm[q][row][col]));
					continue;
				}
				for (unsigned int k = 0; k < 4; k++)
					v += am[q][row][k] * bm[q][k][col];
				if (decode(half ? "f16" : "f32",
					   get(lane[l], in, i, half ? 16 : 32)) != v)
					fail_msg("%s: lane %u, element %u", where, l, i);
			}
		}
		if (pass)
			break;
		m = kernel(insn, in, nc, false);
		must_launch(m, "k", 1, 32, 0, &p, sizeof(p));
		ptx_unload(m);
	}
	dev_free(lane);
}

static void test_quads(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++)
		check_quads(i & 1, i & 2, i & 4);
}

/* ---- wmma: the matrices are in memory, by rows or by columns, with some distance ---- */

struct wide {
	unsigned int m, n, k;
	const char *dt, *at, *ct;
	unsigned int ra, rb, rc; /* registers, from the manual */
	char op;
};

#define FAR_BYTES 64u /* of the distance between lines, beside the matrix */

static void put_bits(uint8_t *at, size_t bit, unsigned int bits, uint64_t v)
{
	if (bits >= 8)
		memcpy(at + bit / 8, &v, bits / 8);
	else
		at[bit / 8] |= (uint8_t)(v << bit % 8);
}

static void check_wide(const struct wide *f, bool a_col, bool b_col, bool c_col, bool shared)
{
	unsigned int ab = bits_of(f->at), cb = bits_of(f->ct), db = bits_of(f->dt);
	unsigned int la = (a_col ? f->m : f->k) + FAR_BYTES * 8 / ab;
	unsigned int lb = (b_col ? f->k : f->n) + FAR_BYTES * 8 / ab;
	unsigned int lc = (c_col ? f->m : f->n) + FAR_BYTES * 8 / cb;
	unsigned int ld = (c_col ? f->m : f->n) + FAR_BYTES * 8 / db;
	uint8_t *mem = dev_alloc(65536);
	char text[4096], frag[4][256], shape[32], types[32], what[256];
	const char *space = shared ? "shared" : "global", *r = ab == 64 ? "%d" : "%r";
	struct ptx_module *m;
	void *p = mem;
	size_t n;

	memset(mem, 0, 65536);
	snprintf(shape, sizeof(shape), "m%un%uk%u", f->m, f->n, f->k);
	if (!strcmp(f->at, "f16"))
		snprintf(types, sizeof(types), "%s.%s", f->dt, f->ct);
	else
		snprintf(types, sizeof(types), "%s.%s.%s.%s", f->dt, f->at, f->at, f->ct);
	list(frag[0], sizeof(frag[0]), r, 0, f->ra);
	list(frag[1], sizeof(frag[1]), r, 8, f->rb);
	list(frag[2], sizeof(frag[2]), r, 16, f->rc);
	list(frag[3], sizeof(frag[3]), r, 24, !strcmp(f->dt, f->ct) ? f->rc : f->rc * db / cb);
	fill(f->at, f->at, f->ct, f->m, f->n, f->k);
	multiply(f->m, f->n, f->k, f->op);
	for (size_t i = 0; i < f->m; i++)
		for (size_t k = 0; k < f->k; k++)
			put_bits(mem, (a_col ? k * la + i : i * la + k) * ab, ab,
				 encode(f->at, a[i][k]));
	for (size_t k = 0; k < f->k; k++)
		for (size_t j = 0; j < f->n; j++)
			put_bits(mem + 8192, (b_col ? j * lb + k : k * lb + j) * ab, ab,
				 encode(f->at, b[k][j]));
	for (size_t i = 0; i < f->m; i++)
		for (size_t j = 0; j < f->n; j++)
			put_bits(mem + 16384, (c_col ? j * lc + i : i * lc + j) * cb, cb,
				 encode(f->ct, c[i][j]));
	n = (size_t)snprintf(
		text, sizeof(text),
		HEAD ".entry k(.param .u64 p)\n{\n.reg .b32 %%r<40>, %%l; .reg .pred %%p; "
		     ".reg .b64 %%d<40>, %%q<5>; .shared .align 128 .b8 s[32768];\n"
		     "ld.param.u64 %%q0, [p]; mov.u32 %%l, %%laneid; mul.wide.u32 %%q1, %%l, 4;\n");
	if (shared)
		n += (size_t)snprintf(
			text + n, sizeof(text) - n,
			"mov.u64 %%q2, s; add.u64 %%q3, %%q2, %%q1; add.u64 %%q4, %%q0, "
			"%%q1; mov.u32 %%r0, 0;\n"
			"IN: ld.global.u32 %%r1, [%%q4]; st.shared.u32 [%%q3], %%r1;\n"
			"add.u64 %%q3, %%q3, 128; add.u64 %%q4, %%q4, 128; add.u32 %%r0, "
			"%%r0, 1; setp.lt.u32 %%p, %%r0, 256; @%%p bra IN; bar.warp.sync "
			"-1;\n");
	else
		n += (size_t)snprintf(text + n, sizeof(text) - n, "mov.u64 %%q2, %%q0;\n");
	n += (size_t)snprintf(
		text + n, sizeof(text) - n,
		"wmma.load.a.sync.aligned.%s.%s.%s.%s %s, [%%q2], %u;\n"
		"wmma.load.b.sync.aligned.%s.%s.%s.%s %s, [%%q2+8192], %u;\n"
		"wmma.load.c.sync.aligned.%s.%s.%s.%s %s, [%%q2+16384], %u;\n"
		"wmma.mma%s.sync.aligned.%s.%s.%s.%s %s, %s, %s, %s;\n"
		"wmma.store.d.sync.aligned.%s.%s.%s.%s [%%q0+32768], %s, %u;\nret;\n}\n",
		a_col ? "col" : "row", shape, space, f->at, frag[0], la, b_col ? "col" : "row",
		shape, space, f->at, frag[1], lb, c_col ? "col" : "row", shape, space, f->ct,
		frag[2], lc,
		f->op == 'x'   ? ".xor.popc"
		: f->op == 'a' ? ".and.popc"
			       : "",
		a_col ? "col" : "row", b_col ? "col" : "row", shape, types, frag[3], frag[0],
		frag[1], frag[2], c_col ? "col" : "row", shape, "global", f->dt, frag[3], ld);
	m = must_load(text);
	must_launch(m, "k", 1, 32, 0, &p, sizeof(p));
	for (size_t i = 0; i < f->m; i++)
		for (size_t j = 0; j < f->n; j++) {
			uint64_t v = 0;

			memcpy(&v, mem + 32768 + (c_col ? j * ld + i : i * ld + j) * db / 8,
			       db / 8);
			d[i][j] = decode(f->dt, v);
		}
	snprintf(what, sizeof(what), "wmma %s.%s, a %s, b %s, c %s", shape, types,
		 a_col ? "col" : "row", b_col ? "col" : "row", c_col ? "col" : "row");
	compare(what, f->m, f->n);
	ptx_unload(m);
	dev_free(mem);
}

static void test_wmma(void **state)
{
	static const struct wide all[] = {
		{16, 16, 16, "f16", "f16", "f16", 8, 8, 4, 0},
		{16, 16, 16, "f32", "f16", "f32", 8, 8, 8, 0},
		{16, 16, 16, "f16", "f16", "f32", 8, 8, 8, 0},
		{16, 16, 16, "f32", "f16", "f16", 8, 8, 4, 0},
		{8, 32, 16, "f32", "f16", "f32", 8, 8, 8, 0},
		{8, 32, 16, "f16", "f16", "f16", 8, 8, 4, 0},
		{32, 8, 16, "f32", "f16", "f32", 8, 8, 8, 0},
		{32, 8, 16, "f16", "f16", "f16", 8, 8, 4, 0},
		{16, 16, 16, "f32", "bf16", "f32", 4, 4, 8, 0},
		{8, 32, 16, "f32", "bf16", "f32", 2, 8, 8, 0},
		{32, 8, 16, "f32", "bf16", "f32", 8, 2, 8, 0},
		{16, 16, 8, "f32", "tf32", "f32", 4, 4, 8, 0},
		{8, 8, 4, "f64", "f64", "f64", 1, 1, 2, 0},
		{16, 16, 16, "s32", "s8", "s32", 2, 2, 8, 0},
		{16, 16, 16, "s32", "u8", "s32", 2, 2, 8, 0},
		{8, 32, 16, "s32", "s8", "s32", 1, 4, 8, 0},
		{32, 8, 16, "s32", "u8", "s32", 4, 1, 8, 0},
	};
	static const struct wide small[] = {
		{8, 8, 32, "s32", "s4", "s32", 1, 1, 2, 0},
		{8, 8, 32, "s32", "u4", "s32", 1, 1, 2, 0},
		{8, 8, 128, "s32", "b1", "s32", 1, 1, 2, 'x'},
		{8, 8, 128, "s32", "b1", "s32", 1, 1, 2, 'a'},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (int how = 0; how < 16; how++)
			check_wide(&all[i], how & 1, how & 2, how & 4, how & 8);
	for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++)
		for (int how = 0; how < 4; how++)
			check_wide(&small[i], false, true, how & 1, how & 2);
}

/* Sums that do not fit: of integers with and without .satfinite; infinity and NaN. */
static void test_limits(void **state)
{
	static const struct {
		const char *insn;
		uint32_t a, b, c, want;
	} all[] = {
		{"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r3, %r4}, {%r0}, {%r1}, "
		 "{%r2, %r2};",
		 0x7f7f7f7f, 0x7f7f7f7f, 0x7fffffff, 0x7fffffffu + 16 * 127 * 127},
		{"mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.s8.s32 {%r3, %r4}, {%r0}, "
		 "{%r1}, {%r2, %r2};",
		 0x7f7f7f7f, 0x7f7f7f7f, 0x7fffffff, 0x7fffffff},
		{"mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.s8.s32 {%r3, %r4}, {%r0}, "
		 "{%r1}, {%r2, %r2};",
		 0x7f7f7f7f, 0x81818181, 0x80000000, 0x80000000},
		{"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r3, %r4, %r5, %r6}, {%r0, "
		 "%r0}, {%r1}, {%r2, %r2, %r2, %r2};",
		 0x7c007c00, 0x3c003c00, 0, 0x7f800000},
		{"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r3, %r4, %r5, %r6}, {%r0, "
		 "%r0}, {%r1}, {%r2, %r2, %r2, %r2};",
		 0x7c007c00, 0, 0, 0x7fffffff},
		{"mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r3, %r4}, {%r0, %r0}, {%r1}, "
		 "{%r2, %r2};",
		 0x78007800, 0x78007800, 0, 0x7c007c00},
		/* the smallest denormals: 8 times 2^-24 times 2^-24 */
		{"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r3, %r4, %r5, %r6}, {%r0, "
		 "%r0}, {%r1}, {%r2, %r2, %r2, %r2};",
		 0x00010001, 0x00010001, 0, (127u - 45) << 23},
		{"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%r3, %r4, %r5, %r6}, {%r0, "
		 "%r0, %r0, %r0}, {%r1, %r1}, {%r2, %r2, %r2, %r2};",
		 0x7f7f7f7f, 0, 0, 0x7fffffff},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		uint32_t(*lane)[128] = dev_alloc(32 * sizeof(*lane));
		struct ptx_module *m = kernel(all[i].insn, 3, 2, false);
		void *p = lane;

		for (int l = 0; l < 32; l++) {
			lane[l][0] = all[i].a;
			lane[l][1] = all[i].b;
			lane[l][2] = all[i].c;
		}
		must_launch(m, "k", 1, 32, 0, &p, sizeof(p));
		for (int l = 0; l < 32; l++)
			if (lane[l][3] != all[i].want || lane[l][4] != all[i].want)
				fail_msg("%s: %x instead of %x", all[i].insn, lane[l][3],
					 all[i].want);
		ptx_unload(m);
		dev_free(lane);
	}
}

/* The sources may be the destinations. */
static void test_in_place(void **state)
{
	uint32_t(*lane)[128] = dev_alloc(32 * sizeof(*lane));
	struct ptx_module *m =
		kernel("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, "
		       "{%r0, %r1}, {%r2}, {%r3, %r3, %r3, %r3};\n"
		       "mov.u32 %r4, %r0; mov.u32 %r5, %r1; mov.u32 %r6, %r2; mov.u32 %r7, %r3;",
		       4, 4, false);
	void *p = lane;

	(void)state;
	for (int l = 0; l < 32; l++) {
		lane[l][0] = lane[l][1] = 0x3c003c00; /* 1 */
		lane[l][2] = 0x40004000;	      /* 2 */
		lane[l][3] = 0x40400000;	      /* 3 */
	}
	must_launch(m, "k", 1, 32, 0, &p, sizeof(p));
	for (int l = 0; l < 32; l++)
		for (int i = 4; i < 8; i++)
			assert_int_equal(lane[l][i], 0x41980000); /* 19 */
	ptx_unload(m);
	dev_free(lane);
}

/* Forms that do not exist. */
static void test_bad(void **state)
{
	static const char *const bad[] = {
		"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0}, {%r0}, {%r0}, {%r0};",
		"mma.sync.aligned.m16n8k8.row.row.f16.f16.f16.f16 {%r0, %r1}, {%r0, %r1}, {%r2}, "
		"{%r0, %r1};",
		"mma.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r0, %r1}, {%r0, %r1}, {%r2}, "
		"{%r0, %r1};",
		"mma.sync.aligned.m16n8k8.row.col.f16.bf16.bf16.f16 {%r0, %r1}, {%r0, %r1}, {%r2}, "
		"{%r0, %r1};",
		"mma.sync.aligned.m16n16k16.row.col.f32.f16.f16.f32 {%r0, %r1}, {%r0, %r1}, {%r2}, "
		"{%r0, %r1};",
		"mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32 {%r0, %r1}, {%r0}, {%r1}, {%r0, "
		"%r1};",
		"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32.xor.popc {%r0, %r1}, {%r0}, {%r1}, "
		"{%r0, %r1};",
		"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%d0, %r1}, {%r0}, {%r1}, {%r0, "
		"%r1};",
		"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0, %r1}, {%r0}, {%r1};",
		"mma;",
		"wmma;",
		"wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r0, %r1}, [%d0];",
		"wmma.load.a.sync.aligned.m16n16k16.s8 {%r0, %r1}, [%d0];",
		"wmma.load.a.sync.aligned.row.m16n16k16.local.s8 {%r0, %r1}, [%d0];",
		"wmma.load.a.sync.aligned.col.m8n8k32.s4 {%r0}, [%d0];",
		"wmma.load.a.sync.aligned.row.m16n16k16.s32 {%r0, %r1}, [%d0];",
		"wmma.load.d.sync.aligned.row.m16n16k16.s8 {%r0, %r1}, [%d0];",
		"wmma.store.a.sync.aligned.row.m16n16k16.s8 [%d0], {%r0, %r1};",
		"wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16 {%r0}, {%r0}, {%r0}, {%r0};",
		"wmma.mma.sync.aligned.row.col.m16n16k16.f16 {%r0}, {%r0}, {%r0}, {%r0};",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[1024];
		struct ptx_module *m;
		struct ptx_diag diag;

		snprintf(text, sizeof(text),
			 HEAD ".entry k()\n{\n.reg .b32 %%r<9>; .reg .b64 %%d<9>;\n%s\nret;\n}\n",
			 bad[i]);
		if (ptx_load(text, strlen(text), &world_env, &m, &diag) != PTX_INVALID_PTX ||
		    diag.line != 7)
			fail_msg("%s: line %u: %s", bad[i], diag.line, diag.text);
	}
}

/* A part of a warp, and addresses that are not allocated or not aligned. */
static void test_faults(void **state)
{
	static const struct {
		const char *insn;
		unsigned int threads;
		uint64_t shift;
		enum ptx_status st;
	} all[] = {
		{"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0, %r1}, {%r2}, {%r3}, {%r0, "
		 "%r1};",
		 32, 0, PTX_OK},
		{"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0, %r1}, {%r2}, {%r3}, {%r0, "
		 "%r1};",
		 31, 0, PTX_TRAP},
		{"wmma.load.a.sync.aligned.row.m16n16k16.s8 {%r0, %r1}, [%d0];", 32, 0, PTX_OK},
		{"wmma.load.a.sync.aligned.row.m16n16k16.s8 {%r0, %r1}, [%d0];", 7, 0, PTX_TRAP},
		{"wmma.load.a.sync.aligned.row.m16n16k16.s8 {%r0, %r1}, [%d0+1];", 32, 0,
		 PTX_ILLEGAL_ADDRESS},
		{"wmma.load.a.sync.aligned.row.m16n16k16.s8 {%r0, %r1}, [%d0], 17;", 32, 0,
		 PTX_ILLEGAL_ADDRESS},
		{"wmma.load.a.sync.aligned.row.m16n16k16.shared.s8 {%r0, %r1}, [%d1];", 32, 0,
		 PTX_ILLEGAL_ADDRESS},
		{"wmma.store.d.sync.aligned.row.m8n8k32.s32 [%d0+2], {%r0, %r1};", 32, 0,
		 PTX_MISALIGNED_ADDRESS},
		{"wmma.store.d.sync.aligned.row.m8n8k32.s32 [%d0], {%r0, %r1}, 9;", 32, 0,
		 PTX_ILLEGAL_ADDRESS},
		{"wmma.store.d.sync.aligned.col.m8n8k32.s32 [%d0], {%r0, %r1}, 0xffffffff;", 32, 0,
		 PTX_ILLEGAL_ADDRESS},
		{"wmma.load.b.sync.aligned.row.m8n8k4.f64 {%d1}, [%d0];", 32, 0, PTX_OK},
		{"wmma.load.b.sync.aligned.row.m8n8k4.f64 {%d1}, [%d0+4];", 32, 0,
		 PTX_MISALIGNED_ADDRESS},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		void *p = dev_alloc(256);
		char text[1024];
		struct ptx_module *m;
		enum ptx_status st;
		struct ptx_diag diag;

		snprintf(text, sizeof(text),
			 HEAD ".entry k(.param .u64 p)\n{\n.reg .b32 %%r<9>; .reg .b64 %%d<9>;\n"
			      "ld.param.u64 %%d0, [p]; mov.u64 %%d1, 0;\n%s\nret;\n}\n",
			 all[i].insn);
		m = must_load(text);
		st = launch(m, "k", 1, all[i].threads, 0, &p, sizeof(p), &diag);
		if (st != all[i].st)
			fail_msg("%s: %s: %s", all[i].insn, ptx_status_name(st), diag.text);
		ptx_unload(m);
		dev_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad),	 cmocka_unit_test(test_faults),
		cmocka_unit_test(test_mma),	 cmocka_unit_test(test_quads),
		cmocka_unit_test(test_wmma),	 cmocka_unit_test(test_limits),
		cmocka_unit_test(test_in_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

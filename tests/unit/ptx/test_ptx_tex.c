// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Texture and surface instructions of the PTX machine: invalid forms, numbers that name no object,
 * and values to the last bit. The CUDA programs in tests/guest/ cannot test the last bit, because a
 * GPU rounds on its way.
 */
#include <math.h>

#include "qcu-device/soft/ptx/memory/ptx_image.h"
#include "tests/unit/ptx/test_ptx_env.h"

#define TEXTURE 77u
#define SURFACE 78u
#define W	16u
#define H	8u

static struct ptx_image texture, surface;
static struct ptx_env env;

static const struct ptx_image *world_image(void *ctx, uint64_t number)
{
	(void)ctx;
	return number == TEXTURE ? &texture : number == SURFACE ? &surface : NULL;
}

/* A kernel that runs `insn` and then stores %r0 to %r3 per thread; %x is a float of the thread. */
static void kernel_text(const char *insn, char *out, size_t cap)
{
	snprintf(out, cap,
		 ".version 8.0\n.target sm_75\n.address_size 64\n"
		 ".visible .entry k(.param .u64 pobj, .param .u64 pin, .param .u64 pout)\n{\n"
		 ".reg .pred %%p<4>; .reg .b16 %%h<4>; .reg .b32 %%r<8>; .reg .b64 %%t<8>;\n"
		 ".reg .f32 %%x, %%y, %%z, %%f<8>; .reg .b32 %%i<4>;\n"
		 "ld.param.u64 %%t0, [pobj]; ld.param.u64 %%t1, [pin]; ld.param.u64 %%t2, [pout];\n"
		 "mov.u32 %%i0, %%tid.x; mul.wide.u32 %%t3, %%i0, 16; add.u64 %%t4, %%t1, %%t3;\n"
		 "add.u64 %%t5, %%t2, %%t3;\n"
		 "ld.global.v4.b32 {%%r4, %%r5, %%r6, %%r7}, [%%t4];\n"
		 "mov.b32 %%x, %%r4; mov.b32 %%y, %%r5; mov.b32 %%z, %%r6;\n"
		 "mov.b32 %%r0, 0; mov.b32 %%r1, 0; mov.b32 %%r2, 0; mov.b32 %%r3, 0;\n"
		 "%s\n"
		 "st.global.v4.b32 [%%t5], {%%r0, %%r1, %%r2, %%r3};\nret;\n}\n",
		 insn);
}

static enum ptx_status load(const char *insn, struct ptx_module **m, struct ptx_diag *d)
{
	char text[4096];

	kernel_text(insn, text, sizeof(text));
	return ptx_load(text, strlen(text), &env, m, d);
}

/* Runs the kernel with n threads; in and out have four words for each. */
static enum ptx_status run(const char *insn, uint64_t object, unsigned int n, const void *in,
			   void *out, struct ptx_diag *d)
{
	void *din = dev_alloc(n * 16), *dout = dev_alloc(n * 16);
	struct {
		uint64_t object;
		void *in, *out;
	} p = {object, din, dout};
	struct ptx_module *m = NULL;
	enum ptx_status st = load(insn, &m, d);

	if (st)
		fail_msg("%s: %s: %s", insn, ptx_status_name(st), d->text);
	memcpy(din, in, n * 16);
	st = launch(m, "k", 1, n, 0, &p, sizeof(p), d);
	memcpy(out, dout, n * 16);
	ptx_unload(m);
	dev_free(din);
	dev_free(dout);
	return st;
}

static void must_run(const char *insn, uint64_t object, unsigned int n, const void *in, void *out)
{
	struct ptx_diag d;
	enum ptx_status st = run(insn, object, n, in, out, &d);

	if (st)
		fail_msg("%s: %s: %s", insn, ptx_status_name(st), d.text);
}

static float *texels;

static int start(void **state)
{
	(void)state;
	env = world_env;
	env.image = world_image;
	texels = dev_alloc(W * H * 4 * sizeof(float));
	for (unsigned int i = 0; i < W * H * 4; i++)
		texels[i] = (float)(i * i % 1021);
	texture = (struct ptx_image){
		.dims = 2,
		.channels = 1,
		.bits = 32,
		.elem = 4,
		.texel = TEXEL_FLOAT,
		.address = {ADDRESS_CLAMP, ADDRESS_CLAMP, ADDRESS_CLAMP},
		.border = {2, 3, 4, 5},
		.levels = 1,
		.level = {{(uint64_t)(uintptr_t)texels, {W, H, 1}, W * 4, W * H * 4}},
	};
	surface = texture;
	surface.surface = true;
	return 0;
}

static int stop(void **state)
{
	(void)state;
	dev_free(texels);
	return 0;
}

static void no_such_forms(void **state)
{
	static const char *const forms[] = {
		"tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t0];",
		"tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t0, {%x}];",
		"tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t0, {%x,%y,%z}];",
		"tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t0, {%x,%t1}];",
		"tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t0, {}];",
		"tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t0, {%x,{%y}}];",
		"tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t0, [%t1]];",
		"tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t0, {%x,%y};",
		"tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t0+8, {%x,%y}];",
		"tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%r0, {%x,%y}];",
		"tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [7, {%x,%y}];",
		"tex.2d.v4.f32.f32 {%f0,%f1,%f2}, [%t0, {%x,%y}];",
		"tex.2d.v4.f32.f32 {%h0,%h1,%h2,%h3}, [%t0, {%x,%y}];",
		"tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}|%f4, [%t0, {%x,%y}];",
		"tex.2d.v4.f32.f32 %f0, [%t0, {%x,%y}];",
		"tex.2d.v4.f32 {%f0,%f1,%f2,%f3}, [%t0, {%x,%y}];",
		"tex.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t0, {%x,%y}];",
		"tex.level.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t0, {%x,%y}];",
		"tex.level.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t0, {%x,%y}], {%x,%y};",
		"tex.grad.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t0, {%x,%y}], {%x,%y};",
		"tex.grad.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t0, {%x,%y}], {%x}, {%y};",
		"tex.a1d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t0, {%t1,%y}];",
		"tld4.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t0, {%x,%y}];",
		"tld4.q.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t0, {%x,%y}];",
		"txq.width.b32 %r0, [%t0, {%x}];",
		"txq.width.b32 %t3, [%t0];",
		"txq.width.b64 %t3, [%t0];",
		"txq.b32 %r0, [%t0];",
		"txq.level.num_samples.b32 %r0, [%t0], %r1;",
		"suld.b.2d.b32 {%r0}, [%t0, {%r4,%r5}];",
		"suld.2d.b32.trap {%r0}, [%t0, {%r4,%r5}];",
		"suld.b.b32.trap {%r0}, [%t0, {%r4,%r5}];",
		"suld.b.2d.v2.b32.trap {%r0}, [%t0, {%r4,%r5}];",
		"suld.b.2d.b64.trap {%r0}, [%t0, {%r4,%r5}];",
		"suld.b.cube.b32.trap {%r0}, [%t0, {%r4,%r5}];",
		"suld.b.2d.b32.trap {%r0}, [%t0, {%r4}];",
		"suld.p.2d.b32.trap {%r0}, [%t0, {%r4,%r5}];",
		"sust.b.2d.b32.trap [%t0, {%r4,%r5}];",
		"sust.b.2d.b32.trap [%t0, {%r4,%r5}], {%t1};",
		"sust.b.2d.v4.b32.trap [%t0, {%r4,%r5}], {%r1};",
		"sust.b.2d.pred.trap [%t0, {%r4,%r5}], {%p1};",
		"sust.p.2d.b64.trap [%t0, {%r4,%r5}], {%t1};",
		"sured.b.2d.u32.trap [%t0, {%r4,%r5}], %r1;",
		"sured.b.add.2d.f32.trap [%t0, {%r4,%r5}], %f1;",
		"sured.b.add.2d.u32.trap [%t0, {%r4,%r5}], {%r1,%r2};",
		"sured.b.add.2d.b8.trap [%t0, {%r4,%r5}], %h1;",
		"ld.global.u32 %r0, [%t0, {%r4}];",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct ptx_module *m = NULL;
		struct ptx_diag d = {0};
		enum ptx_status st = load(forms[i], &m, &d);

		if (st != PTX_INVALID_PTX)
			fail_msg("%s: %s: %s", forms[i], ptx_status_name(st), d.text);
		assert_int_not_equal(d.line, 0);
	}
}

/* These load. A kernel that contains one does not run, and the message names it. */
static void not_here(void **state)
{
	static const char *const forms[] = {
		"tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t0, %t1, {%x,%y}];",
		"tex.2d.v4.f16.f32 {%h0,%h1,%h2,%h3}, [%t0, {%x,%y}];",
		"tex.2dms.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%t0, {%r0,%r1,%r2,%r3}];",
		"tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t0, {%x,%y}], {%r0,%r1};",
		"tld4.r.cube.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%t0, {%x,%y,%z,%z}];",
		"txq.channel_order.b32 %r0, [%t0];",
		"suq.memory_layout.b32 %r0, [%t0];",
	};
	uint32_t in[4] = {0}, out[4];

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct ptx_diag d = {0};
		char word[40];

		assert_int_equal(run(forms[i], TEXTURE, 1, in, out, &d), PTX_UNSUPPORTED);
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(forms[i], " "), forms[i]);
		if (!strstr(d.text, word))
			fail_msg("%s: says %s", forms[i], d.text);
	}
}

static void no_such_objects(void **state)
{
	static const char *const tex = "tex.2d.v4.b32.f32 {%r0,%r1,%r2,%r3}, [%t0, {%x,%y}];";
	static const char *const suld = "suld.b.2d.b32.trap {%r0}, [%t0, {%r4,%r5}];";
	static const uint64_t numbers[] = {0, 1, SURFACE + 1, UINT64_MAX, 1ull << 47};
	uint32_t in[4] = {0}, out[4];
	struct ptx_diag d = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		assert_int_equal(run(tex, numbers[i], 1, in, out, &d), PTX_ILLEGAL_ADDRESS);
		assert_int_equal(run(suld, numbers[i], 1, in, out, &d), PTX_ILLEGAL_ADDRESS);
	}
	assert_non_null(strstr(d.text, "no texture"));
	/* A texture used as a surface, and a surface used as a texture. */
	assert_int_equal(run(tex, SURFACE, 1, in, out, &d), PTX_ILLEGAL_ADDRESS);
	assert_int_equal(run(suld, TEXTURE, 1, in, out, &d), PTX_ILLEGAL_ADDRESS);
	/* Another shape. */
	assert_int_equal(run("tex.cube.v4.b32.f32 {%r0,%r1,%r2,%r3}, [%t0, {%x,%y,%z,%z}];",
			     TEXTURE, 1, in, out, &d),
			 PTX_ILLEGAL_ADDRESS);
	/* No objects at all. */
	env.image = NULL;
	assert_int_equal(run(tex, TEXTURE, 1, in, out, &d), PTX_ILLEGAL_ADDRESS);
}

/* Memory that is freed while the texture exists. */
static void freed_memory(void **state)
{
	static const char *const tex = "tex.1d.v4.b32.s32 {%r0,%r1,%r2,%r3}, [%t0, {%r4}];";
	uint32_t *p = dev_alloc(1 << 20), in[4] = {3}, out[4];
	struct ptx_diag d = {0};

	(void)state;
	texture.dims = 1;
	texture.memory = texture.fetch = true;
	texture.texel = TEXEL_UNSIGNED;
	texture.level[0] =
		(struct ptx_image_level){.addr = (uint64_t)(uintptr_t)p, .size = {1 << 18, 1, 1}};
	p[3] = 99;
	must_run(tex, TEXTURE, 1, in, out);
	assert_int_equal(out[0], 99);
	assert_int_equal(out[3], 1);
	/* Longer than the memory. */
	texture.level[0].size[0]++;
	in[0] = 1 << 18;
	assert_int_equal(run(tex, TEXTURE, 1, in, out, &d), PTX_ILLEGAL_ADDRESS);
	dev_free(p);
	in[0] = 3;
	assert_int_equal(run(tex, TEXTURE, 1, in, out, &d), PTX_ILLEGAL_ADDRESS);
}

/* Coordinates that are NaN or infinite read some value, and nothing else happens. */
static void wild_coordinates(void **state)
{
	const float wild[] = {NAN,	     -NAN,	     INFINITY, -INFINITY, 3.4e38f, -3.4e38f,
			      2147483648.0f, -2147483649.0f, 1e-45f,   -1e-45f,	  -0.0f,   1.0f};
	enum { N = sizeof(wild) / sizeof(wild[0]) };
	float in[N][4] = {0}, out[N][4];

	(void)state;
	for (unsigned int i = 0; i < N; i++) {
		in[i][0] = wild[i];
		in[i][1] = wild[(i + 5) % N];
		in[i][2] = wild[(i + 7) % N];
	}
	for (unsigned int k = 0; k < 32; k++) {
		texture.linear = k & 1;
		texture.normalized = k & 2;
		texture.address[0] = (enum ptx_address)(k >> 2 & 3);
		texture.address[1] = (enum ptx_address)(((k >> 2) + (k >> 4)) & 3);
		must_run("tex.2d.v4.b32.f32 {%r0,%r1,%r2,%r3}, [%t0, {%x,%y}];", TEXTURE, N, in,
			 out);
		must_run("tld4.r.2d.v4.b32.f32 {%r0,%r1,%r2,%r3}, [%t0, {%x,%y}];", TEXTURE, N, in,
			 out);
		must_run("tex.level.2d.v4.b32.f32 {%r0,%r1,%r2,%r3}, [%t0, {%x,%y}], %z;", TEXTURE,
			 N, in, out);
		must_run("tex.grad.2d.v4.b32.f32 {%r0,%r1,%r2,%r3}, [%t0, {%x,%y}], {%z,%x},"
			 "{%y,%z};",
			 TEXTURE, N, in, out);
		must_run("tex.a2d.v4.b32.f32 {%r0,%r1,%r2,%r3}, [%t0, {%r4,%y,%z,%z}];", TEXTURE, N,
			 in, out);
	}
	texture.fetch = true;
	must_run("tex.2d.v4.b32.f32 {%r0,%r1,%r2,%r3}, [%t0, {%x,%y}];", TEXTURE, N, in, out);
	texture.fetch = false;
	texture.cube = true;
	texture.level[0].size[0] = texture.level[0].size[1] = 4;
	texture.level[0].size[2] = 6;
	texture.level[0].pitch = 16;
	texture.level[0].slice = 64;
	must_run("tex.cube.v4.b32.f32 {%r0,%r1,%r2,%r3}, [%t0, {%x,%y,%z,%z}];", TEXTURE, N, in,
		 out);
}

/* Weights have 8 bits behind the point. A texel of weight 0 is not read. */
static void weights(void **state)
{
	enum { N = 8 };
	const struct {
		float x, want;
	} cases[N] = {
		{2.5f, 4},
		{3.5f, 9},
		{2.5f + 1.0f / 256, 4 + 5.0f / 256},
		{2.5f + 0.49f / 256, 4},
		{2.5f + 0.51f / 256, 4 + 5.0f / 256},
		{2.5f - 0.51f / 256, 4 - 3.0f / 256},
		{3.0f, 6.5f},
		{2.5f + 255.0f / 256, 9 - 5.0f / 256},
	};
	float in[N][4] = {0}, out[N][4];

	(void)state;
	texture.linear = true;
	for (unsigned int i = 0; i < N; i++) {
		in[i][0] = cases[i].x;
		in[i][1] = 0.5f;
	}
	must_run("tex.2d.v4.b32.f32 {%r0,%r1,%r2,%r3}, [%t0, {%x,%y}];", TEXTURE, N, in, out);
	for (unsigned int i = 0; i < N; i++) {
		if (out[i][0] != cases[i].want)
			fail_msg("%.9g: %.9g instead of %.9g", cases[i].x, out[i][0],
				 cases[i].want);
		assert_true(out[i][1] == 0 && out[i][2] == 0 && out[i][3] == 1);
	}
	texels[4] = INFINITY;
	in[0][0] = 3.5f;
	must_run("tex.2d.v4.b32.f32 {%r0,%r1,%r2,%r3}, [%t0, {%x,%y}];", TEXTURE, 1, in, out);
	assert_true(out[0][0] == 9);
	in[0][0] = 3.75f;
	must_run("tex.2d.v4.b32.f32 {%r0,%r1,%r2,%r3}, [%t0, {%x,%y}];", TEXTURE, 1, in, out);
	assert_true(isinf(out[0][0]));
}

static void borders(void **state)
{
	float in[2][4] = {{-1, 0.5f}, {0.0f, 0.5f}}, out[2][4];
	int32_t ints[2][4];

	(void)state;
	texture.address[0] = ADDRESS_BORDER;
	must_run("tex.2d.v4.b32.f32 {%r0,%r1,%r2,%r3}, [%t0, {%x,%y}];", TEXTURE, 2, in, out);
	assert_true(out[0][0] == 2 && out[0][1] == 3 && out[0][2] == 4 && out[0][3] == 5);
	assert_true(out[1][0] == texels[0]);
	texture.linear = true;
	must_run("tex.2d.v4.b32.f32 {%r0,%r1,%r2,%r3}, [%t0, {%x,%y}];", TEXTURE, 2, in, out);
	assert_true(out[1][0] == 1 && out[1][3] == 3); /* half texel 0, half border */
	texture.linear = false;
	texture.texel = TEXEL_SIGNED;
	must_run("tex.2d.v4.b32.f32 {%r0,%r1,%r2,%r3}, [%t0, {%x,%y}];", TEXTURE, 2, in, ints);
	assert_int_equal(ints[0][0], 2);
}

/* A sink, a guard, a pair, coordinates as immediates, lanes with different objects. */
static void operands(void **state)
{
	uint32_t in[32][4], out[32][4];

	(void)state;
	texture.texel = TEXEL_UNSIGNED;
	for (unsigned int i = 0; i < 32; i++) {
		in[i][0] = i;
		in[i][1] = i / 16;
		((uint32_t *)texels)[i] = 1000 + i;
	}
	must_run("tex.2d.v4.u32.s32 {_,%r1,_,%r3}, [%t0, {%r4,%r5}];", TEXTURE, 16, in, out);
	assert_int_equal(out[3][0], 0);
	assert_int_equal(out[3][3], 1);
	must_run("setp.lt.u32 %p0, %r4, 5; mov.pred %p1, %p0;\n"
		 "@%p0 tex.2d.v4.u32.s32 {%r0,%r1,%r2,%r3}|%p1, [%t0, {%r4,%r5}];\n"
		 "selp.b32 %r1, 7, 8, %p1;",
		 TEXTURE, 16, in, out);
	for (unsigned int i = 0; i < 16; i++) {
		assert_int_equal(out[i][0], i < 5 ? 1000 + i : 0);
		assert_int_equal(out[i][1], i < 5 ? 7 : 8);
	}
	must_run("tex.2d.v4.u32.s32 {%r0,%r1,%r2,%r3}, [%t0, {3, 1}];", TEXTURE, 1, in, out);
	assert_int_equal(out[0][0], 1019);
	must_run("setp.lt.u32 %p0, %r4, 5; @%p0 bra L; add.u64 %t0, %t0, 0;\nL:\n"
		 "tex.1d.v4.u32.s32 {%r0,%r1,%r2,%r3}, [%t0, %r4];",
		 TEXTURE, 32, in, out);
	for (unsigned int i = 0; i < 32; i++)
		assert_int_equal(out[i][0], i < 16 ? 1000 + i : 0);
	/* The result may go to the register of a coordinate. */
	must_run("tex.2d.v4.u32.s32 {%r4,%r5,%r2,%r3}, [%t0, {%r4,%r5}]; mov.b32 %r0, %r4;",
		 TEXTURE, 16, in, out);
	for (unsigned int i = 0; i < 16; i++)
		assert_int_equal(out[i][0], 1000 + i);
}

static void queries(void **state)
{
	static const struct {
		const char *insn;
		uint64_t object;
		uint32_t want;
	} cases[] = {
		{"txq.width.b32 %r0, [%t0];", TEXTURE, W},
		{"txq.height.b32 %r0, [%t0];", TEXTURE, H},
		{"txq.depth.b32 %r0, [%t0];", TEXTURE, 0},
		{"txq.array_size.b32 %r0, [%t0];", TEXTURE, 0},
		{"txq.num_mipmap_levels.b32 %r0, [%t0];", TEXTURE, 2},
		{"txq.num_samples.b32 %r0, [%t0];", TEXTURE, 1},
		{"txq.normalized_coords.b32 %r0, [%t0];", TEXTURE, 0},
		{"txq.level.width.b32 %r0, [%t0], 1;", TEXTURE, W / 2},
		{"txq.level.height.b32 %r0, [%t0], %r4;", TEXTURE, H / 2},
		{"suq.width.b32 %r0, [%t0];", SURFACE, W},
		{"suq.height.b32 %r0, [%t0];", SURFACE, H},
	};
	uint32_t in[4] = {1}, out[4];

	(void)state;
	texture.levels = 2;
	texture.level[1] =
		(struct ptx_image_level){texture.level[0].addr, {W / 2, H / 2, 1}, W * 2, W * H};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		must_run(cases[i].insn, cases[i].object, 1, in, out);
		if (out[0] != cases[i].want)
			fail_msg("%s: %u", cases[i].insn, out[0]);
	}
}

/* The element size, the edges, and accesses beyond them. */
static void surfaces(void **state)
{
	uint32_t in[4][4] = {{0, 0}, {60, 7}, {64, 0}, {0, 8}}, out[4][4];
	uint32_t *words = (uint32_t *)texels;
	struct ptx_diag d = {0};

	(void)state;
	surface.texel = TEXEL_UNSIGNED;
	for (unsigned int i = 0; i < W * H; i++)
		words[i] = 500 + i;
	must_run("suld.b.2d.b32.zero {%r0}, [%t0, {%r4,%r5}];", SURFACE, 4, in, out);
	assert_int_equal(out[0][0], 500);
	assert_int_equal(out[1][0], 500 + W * H - 1);
	assert_int_equal(out[2][0], 0);
	assert_int_equal(out[3][0], 0);
	must_run("suld.b.2d.b32.clamp {%r0}, [%t0, {%r4,%r5}];", SURFACE, 4, in, out);
	assert_int_equal(out[2][0], 500 + W - 1);
	assert_int_equal(out[3][0], 500 + W * (H - 1));
	must_run("suld.b.2d.b32.trap {%r0}, [%t0, {%r4,%r5}];", SURFACE, 2, in, out);
	assert_int_equal(run("suld.b.2d.b32.trap {%r0}, [%t0, {%r4,%r5}];", SURFACE, 4, in, out,
			     &d),
			 PTX_TRAP);
	assert_non_null(strstr(d.text, "surface"));
	in[0][0] = 2;
	assert_int_equal(run("suld.b.2d.b32.zero {%r0}, [%t0, {%r4,%r5}];", SURFACE, 1, in, out,
			     &d),
			 PTX_MISALIGNED_ADDRESS);
	in[0][0] = UINT32_MAX - 3; /* -4 */
	in[0][1] = UINT32_MAX;
	must_run("suld.b.2d.v2.b16.clamp {%h0,%h1}, [%t0, {%r4,%r5}]; mov.b32 %r0, {%h0,%h1};",
		 SURFACE, 1, in, out);
	assert_int_equal(out[0][0], 500);
	must_run("sust.b.2d.b32.zero [%t0, {%r4,%r5}], {%r4};\n"
		 "sust.b.2d.b8.clamp [%t0, {0, 1}], {7};\n"
		 "sust.b.2d.v4.b32.trap [%t0, {16, 2}], {1, 2, 3, 4};\n"
		 "sust.p.2d.b32.trap [%t0, {5, 3}], {99};",
		 SURFACE, 1, in, out);
	assert_int_equal(words[0], 500);
	assert_int_equal(words[W], ((500 + W) & ~255u) | 7);
	assert_int_equal(words[2 * W + 4], 1);
	assert_int_equal(words[2 * W + 7], 4);
	assert_int_equal(words[3 * W + 5], 99);
}

static void reductions(void **state)
{
	uint32_t in[32][4] = {0}, out[32][4];
	uint32_t *words = (uint32_t *)texels;
	struct ptx_diag d = {0};

	(void)state;
	surface.texel = TEXEL_UNSIGNED;
	memset(words, 0, W * 4);
	words[2] = UINT32_MAX;
	words[3] = 5;
	words[6] = UINT32_MAX;
	words[8] = UINT32_MAX; /* with the next word: 64 bits */
	for (unsigned int i = 0; i < 32; i++)
		in[i][0] = i - 16;
	must_run("sured.b.add.2d.u32.trap [%t0, {0, 0}], 3;\n"
		 "sured.b.max.2d.u32.trap [%t0, {4, 0}], %r4;\n"
		 "sured.b.min.2d.s32.trap [%t0, {8, 0}], %r4;\n"
		 "sured.b.max.2d.s32.trap [%t0, {12, 0}], %r4;\n"
		 "sured.b.or.2d.b32.trap [%t0, {16, 0}], %r4;\n"
		 "sured.b.and.2d.b32.trap [%t0, {24, 0}], 0xff;\n"
		 "sured.p.add.2d.u32.zero [%t0, {99, 0}], 3;",
		 SURFACE, 32, in, out);
	assert_int_equal(words[0], 96);
	assert_int_equal(words[1], UINT32_MAX);
	assert_int_equal((int32_t)words[2], -16);
	assert_int_equal(words[3], 15);
	assert_int_equal(words[4], UINT32_MAX);
	assert_int_equal(words[6], 255);
	/* 64 bits do not fit elements of 32 bits. */
	assert_int_equal(run("sured.b.add.2d.u64.trap [%t0, {32, 0}], 1;", SURFACE, 1, in, out, &d),
			 PTX_MISALIGNED_ADDRESS);
	surface.elem = 8;
	surface.channels = 2;
	surface.level[0].size[0] = W / 2;
	must_run("sured.b.add.2d.u64.trap [%t0, {32, 0}], 1;", SURFACE, 1, in, out);
	assert_int_equal(words[8], 0);
	assert_int_equal(words[9], 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)
	static const struct CMUnitTest tests[] = {
		T(no_such_forms),    T(not_here), T(no_such_objects), T(freed_memory),
		T(wild_coordinates), T(weights),  T(borders),	      T(operands),
		T(queries),	     T(surfaces), T(reductions),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}

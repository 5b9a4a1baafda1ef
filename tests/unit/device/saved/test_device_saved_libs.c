// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sessions that are saved with objects of libraries: what an archive may ask of a library, plans of
 * cuFFT, and generators of cuRAND, with the place that they have got to. Calls in graphs.
 */
#include "tests/unit/device/saved/test_device_saved.h"

#include "include/qculib.h"
#include "qcu-device/libs/libs.h"

#define PLAN	  10u
#define GENERATOR 11u
#define OTHER	  12u
#define NUMBERS	  64u

static uint16_t function_of(const struct lib_library *lib, const char *name)
{
	uint16_t i;

	for (i = 0; i < lib->count; i++)
		if (!strcmp(lib->functions[i].name, name))
			return i;
	fail_msg("%s has no function %s", lib->name, name);
	return 0;
}

struct lib_question {
	struct qcu_lib_head head;
	uint64_t words[16];
};

static uint32_t fill_in(struct lib_question *q, const uint64_t *args, uint32_t count)
{
	memset(q, 0, sizeof(*q));
	q->head.args = count * 8;
	memcpy(q->words, args, count * sizeof(*args));
	return count;
}

/* Asks, and returns the library's status. outs: words that it writes. */
static int ask_lib(const struct lib_library *lib, uint16_t function, const uint64_t *args,
		   uint32_t count, uint32_t outs)
{
	struct lib_question q;
	const uint32_t at = fill_in(&q, args, count);
	const size_t len = sizeof(q.head) + 8 * ((size_t)count + 1 + outs);
	struct qCUcmd c = CMD(LIB_ASK, lib_ask, .buf = {1, len}, .library = (uint16_t)lib->number,
			      .function = function);
	const struct qcu_seg seg = {(uintptr_t)&q, len};
	int rc;

	q.head.outs = 8 * outs;
	c.flags = QCU_F_SEGS;
	rc = ask_with(&c, NULL, &seg, 1);
	return rc ? rc : (int)q.words[at];
}

/* The same call without an answer, as the library posts it. */
static int post_lib(const struct lib_library *lib, uint16_t function, const uint64_t *args,
		    uint32_t count)
{
	struct lib_question q;
	struct qCUcmd c =
		CMD(LIB_CALL, lib_call, .library = (uint16_t)lib->number, .function = function);

	fill_in(&q, args, count);
	c = with_message(c, sizeof(q.head) + 8 * (size_t)count);
	return ask_with(&c, &q, NULL, 0);
}

#define WORDS(...) (const uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / 8
#define ASK(lib, name, outs, ...) \
	ask_lib(&lib_##lib, function_of(&lib_##lib, #name), WORDS(__VA_ARGS__), outs)
#define POST(lib, name, ...) \
	post_lib(&lib_##lib, function_of(&lib_##lib, #name), WORDS(__VA_ARGS__))

/* An object, as a call of it begins. */
#define OBJECT(number) number, 0, 0

static bool make_object(const struct lib_library *lib, uint32_t number, uint32_t kind,
			uint64_t type)
{
	return !ask_lib(lib, QCU_LIB_CREATE, WORDS(number, kind, type), 0);
}

/* In a session with something of everything. False: the host has no such library. */
static bool make_plan_and_generator(void)
{
	make_session();
	if (!make_object(&lib_cufft, PLAN, QCU_LIB_CUFFT_PLAN, 0) ||
	    !make_object(&lib_curand, GENERATOR, QCU_LIB_CURAND_GENERATOR, 100)) {
		print_message("skipped: the software GPU has no cuFFT or cuRAND here\n");
		mir_destroy(mirror);
		return false;
	}
	assert_int_equal(ASK(cufft, cufftSetAutoAllocation, 0, OBJECT(PLAN), 0), 0);
	/* 8 complex numbers (C2C), one batch; its size is written. */
	assert_int_equal(ASK(cufft, cufftMakePlan1d, 1, OBJECT(PLAN), 8, 0x29, 1, QCU_LIB_ROOM, 8),
			 0);
	assert_int_equal(POST(cufft, cufftSetAutoAllocation, OBJECT(PLAN), 1), 0);
	assert_int_equal(POST(cufft, cufftSetWorkArea, OBJECT(PLAN), memory_at), 0);
	assert_int_equal(
		POST(curand, curandSetPseudoRandomGeneratorSeed, OBJECT(GENERATOR), 1234567), 0);
	return true;
}

/* The next numbers go to this place in the memory. */
static int generate(uint32_t number, uint64_t to, uint64_t count)
{
	return POST(curand, curandGenerate, OBJECT(number), to, count);
}

static bool save_to(int fd)
{
	why[0] = '\0';
	return mir_save(mirror, fd, 10000, why, sizeof(why));
}

static size_t size_of_saved(void)
{
	int fd = new_file();
	size_t size;

	if (!save_to(fd))
		fail_msg("%s", why);
	size = (size_t)lseek(fd, 0, SEEK_CUR);
	close(fd);
	return size;
}

/* Restores an archive with one question, of no object. */
static void try_question(const struct lib_library *lib, uint16_t function)
{
	struct archive_entry e = {.what = ARCHIVE_COMMAND};
	struct lib_question q;

	fill_in(&q, WORDS(OBJECT(PLAN)));
	e.len = sizeof(q);
	e.cmd = CMD(LIB_ASK, lib_ask, .buf = {1, sizeof(q)}, .library = (uint16_t)lib->number,
		    .function = function);
	assert_false(restore_entries(&e, 1, &q, NULL));
	mir_destroy(mirror);
}

static bool makes_or_sets(const char *name)
{
	return strstr(name, "MakePlan") || strstr(name, "fftSet") || strstr(name, "fftXtSet") ||
	       strstr(name, "fftReset") || strstr(name, "randSet");
}

/* An archive makes objects. It computes nothing, and asks nothing. */
static void forbidden_functions(void **state)
{
	static const struct lib_library *const libs[] = {&lib_cufft, &lib_curand};
	const char *name;
	uint16_t f;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(libs) / sizeof(libs[0]); i++)
		for (f = 0; f < libs[i]->count; f++) {
			name = libs[i]->functions[f].name;
			try_question(libs[i], f);
			if (makes_or_sets(name) != !strstr(why, "none of a saved"))
				fail_msg("%s: %s", name, why);
		}
	try_question(&lib_curand, 0xff00);
	assert_non_null(strstr(why, "none of a saved"));
}

/* Calls that fail leave nothing, and the same call again and again leaves one. */
static void nothing_grows(void **state)
{
	size_t size;
	uint32_t i;

	(void)state;
	if (!make_plan_and_generator())
		skip();
	size = size_of_saved();
	/* The plan is made; its type is none; no such object. */
	assert_int_not_equal(
		ASK(cufft, cufftMakePlan1d, 1, OBJECT(PLAN), 8, 0x29, 1, QCU_LIB_ROOM, 8), 0);
	assert_int_not_equal(ASK(cufft, cufftMakePlan1d, 1, OBJECT(PLAN), 8, 0, 1, QCU_LIB_ROOM, 8),
			     0);
	assert_int_not_equal(ASK(cufft, cufftSetWorkArea, 0, OBJECT(OTHER), memory_at), 0);
	for (i = 0; i < 100; i++) {
		assert_int_equal(POST(cufft, cufftSetWorkArea, OBJECT(PLAN), memory_at + 512 * i),
				 0);
		assert_int_equal(ASK(cufft, cufftSetAutoAllocation, 0, OBJECT(PLAN), i & 1), 0);
		assert_int_equal(ASK(curand, curandSetPseudoRandomGeneratorSeed, 0,
				     OBJECT(GENERATOR), i),
				 0);
		assert_true(make_object(&lib_cufft, OTHER, QCU_LIB_CUFFT_PLAN, 0));
		assert_int_equal(ASK(cufft, cufftMakePlan1d, 1, OBJECT(OTHER), 8, 0x29, 1,
				     QCU_LIB_ROOM, 8),
				 0);
		assert_int_equal(ask_lib(&lib_cufft, QCU_LIB_DESTROY, WORDS(OTHER), 0), 0);
	}
	assert_int_equal(size_of_saved(), size);
	mir_destroy(mirror);
}

/* What an object does not show: the library's state is not known. */
static void unknown_places(void **state)
{
	const uint64_t zero = 0;
	uint32_t i;

	(void)state;
	for (i = 0; i < 4; i++) {
		if (!make_plan_and_generator())
			skip();
		if (i == 0) /* two numbers of 64 bits take nobody knows how many */
			assert_int_equal(POST(curand, curandGenerateUniformDouble,
					      OBJECT(GENERATOR), memory_at + 1024, 2),
					 0);
		if (i == 1) { /* a type that has no places */
			assert_true(make_object(&lib_curand, OTHER, QCU_LIB_CURAND_GENERATOR, 142));
			assert_int_equal(generate(OTHER, memory_at + 1024, 2), 0);
		}
		if (i == 2) { /* another seed in the middle */
			assert_int_equal(generate(GENERATOR, memory_at + 1024, 2), 0);
			assert_int_equal(POST(curand, curandSetPseudoRandomGeneratorSeed,
					      OBJECT(GENERATOR), 3),
					 0);
			assert_int_equal(generate(GENERATOR, memory_at + 1024, 2), 0);
		}
		if (i == 3) { /* a place that no number has */
			assert_int_equal(POST(curand, curandSetGeneratorOffset, OBJECT(GENERATOR),
					      UINT64_MAX),
					 0);
			assert_int_equal(generate(GENERATOR, memory_at + 1024, 2), 0);
		}
		assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync)), 0);
		assert_false(save_to(-1));
		assert_string_equal(why, "it has an object of curand, whose state cannot be read");
		/* A place that is set is known. */
		if (i != 1) {
			assert_int_equal(
				POST(curand, curandSetGeneratorOffset, OBJECT(GENERATOR), zero), 0);
			(void)size_of_saved();
		}
		mir_destroy(mirror);
	}
}

static void goes_on(void **state)
{
	const float impulse[16] = {1};
	float out[16];
	uint32_t one[2 * NUMBERS], whole[2 * NUMBERS], i;

	(void)state;
	if (!make_plan_and_generator())
		skip();
	assert_int_equal(generate(GENERATOR, memory_at + 1024, NUMBERS - 8), 0);
	save_and_restore();
	assert_int_equal(POST(curand, curandGenerate, OBJECT(GENERATOR),
			      memory_at + 1024 + 4 * (NUMBERS - 8), 8),
			 0);
	save_and_restore();
	assert_int_equal(generate(GENERATOR, memory_at + 1024 + 4 * NUMBERS, NUMBERS), 0);
	assert_true(make_object(&lib_curand, OTHER, QCU_LIB_CURAND_GENERATOR, 100));
	assert_int_equal(ASK(curand, curandSetPseudoRandomGeneratorSeed, 0, OBJECT(OTHER), 1234567),
			 0);
	assert_int_equal(generate(OTHER, memory_at + 4096, 2 * NUMBERS), 0);
	assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync)), 0);
	copy(true, memory_at + 1024, one, sizeof(one));
	copy(true, memory_at + 4096, whole, sizeof(whole));
	assert_memory_equal(one, whole, sizeof(one));
	/* The plan is one. */
	copy(false, memory_at + 8192, (void *)(uintptr_t)impulse, sizeof(impulse));
	assert_int_equal(POST(cufft, cufftExecC2C, OBJECT(PLAN), memory_at + 8192,
			      memory_at + 12288, (uint64_t)-1),
			 0);
	assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync)), 0);
	copy(true, memory_at + 12288, out, sizeof(out));
	for (i = 0; i < 16; i++)
		assert_true(out[i] == (i & 1 ? 0 : 1));
	assert_int_equal(ask_lib(&lib_cufft, QCU_LIB_DESTROY, WORDS(PLAN), 0), 0);
	mir_destroy(mirror);
}

/* ---- calls in graphs ---- */

#define BLAS  13u
#define GRAPH 14u

/* The software GPU that makes the calls of a graph at once, and never again. */
static struct be_ops capturing;

static int make_calls(struct be *be, unsigned int dev, const struct be_node *nodes, uint32_t count,
		      struct be_graph **g)
{
	void *stream;
	uint32_t i;
	int rc = capturing.native(be, capturing.stream_legacy(be, dev), &stream);

	if (!count || nodes[0].type != QCU_NODE_CALL)
		return be_soft.graph_make(be, dev, nodes, count, g);
	for (i = 0; i < count && !rc; i++)
		rc = nodes[i].call.fn(nodes[i].call.arg, stream);
	return rc ? rc : be_soft.graph_make(be, dev, nodes, 0, g);
}

/* The description of a graph with one call. */
static struct {
	struct qcu_graph_node node;
	struct qcu_graph_call call;
	uint64_t args[16];
} graph;

static struct qCUcmd describe(const struct lib_library *lib, const char *name, const uint64_t *args,
			      uint32_t count)
{
	struct qCUcmd c = CMD(GRAPH_MAKE, graph_make, .graph = GRAPH, .nodes = 1);

	memcpy(graph.args, args, count * sizeof(*args));
	graph.call = (struct qcu_graph_call){(uint16_t)lib->number, function_of(lib, name),
					     count * sizeof(*args)};
	graph.node = (struct qcu_graph_node){
		.bytes = (uint32_t)(sizeof(graph.node) + sizeof(graph.call) + graph.call.bytes),
		.type = QCU_NODE_CALL};
	c.graph_make.buf = (struct qcu_buf){1, graph.node.bytes};
	c.flags = QCU_F_SEGS;
	return c;
}

static int make_graph_of(const struct lib_library *lib, const char *name, const uint64_t *args,
			 uint32_t count)
{
	struct qCUcmd c = describe(lib, name, args, count);
	const struct qcu_seg seg = {(uintptr_t)&graph, graph.node.bytes};

	return ask_with(&c, NULL, &seg, 1);
}

/* The plan's, of 8 complex numbers. */
#define TRANSFORM                   \
	&lib_cufft, "cufftExecC2C", \
		WORDS(OBJECT(PLAN), memory_at + 8192, memory_at + 12288, (uint64_t)-1)

/* y += 2 * x, each one number; y is memory of its own. */
static uint64_t x_at, y_at;
#define SUM                            \
	&lib_cublas, "cublasSaxpy_v2", \
		WORDS(OBJECT(BLAS), 1, QCU_LIB_HOST, 16, 0x40000000, 0, x_at, 1, y_at, 1)

static void make_sum(void)
{
	const float x = 3, y = 1;
	struct qCUcmd c = CMD(MALLOC, malloc, .size = 4);

	make_session();
	assert_true(make_object(&lib_cublas, BLAS, QCU_LIB_CUBLAS_HANDLE, 0));
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	x_at = memory_at + 1024;
	y_at = c.malloc.ptr;
	copy(false, x_at, (void *)(uintptr_t)&x, sizeof(x));
	copy(false, y_at, (void *)(uintptr_t)&y, sizeof(y));
	assert_int_equal(make_graph_of(SUM), 0);
}

static float sum(void)
{
	const uint32_t word = word_at(y_at);
	float y;

	memcpy(&y, &word, sizeof(y));
	return y;
}

static void refused_as(const char *sentence)
{
	assert_false(save_to(-1));
	assert_string_equal(why, sentence);
	mir_destroy(mirror);
}

/* What a call needs must be there as it was. An archive may not name what is not there. */
static void calls_that_are_not_whole(void **state)
{
	struct archive_entry e = {.what = ARCHIVE_COMMAND};

	(void)state;
	make_sum();
	assert_int_equal(ask_lib(&lib_cublas, QCU_LIB_DESTROY, WORDS(BLAS), 0), 0);
	refused_as("it has an executable graph with calls of a library whose object has ended");
	make_sum();
	assert_int_equal(ask_lib(&lib_cublas, QCU_LIB_DESTROY, WORDS(BLAS), 0), 0);
	assert_true(make_object(&lib_cublas, BLAS, QCU_LIB_CUBLAS_HANDLE, 0));
	refused_as("it has an executable graph with calls of a library whose object has ended");
	make_sum();
	assert_int_equal(ask(CMD(FREE, free, .ptr = y_at)), 0);
	refused_as("it has an executable graph whose memory has been freed");
	if (make_plan_and_generator()) {
		assert_int_equal(make_graph_of(TRANSFORM), 0);
		assert_int_equal(POST(cufft, cufftSetWorkArea, OBJECT(PLAN), memory_at + 512), 0);
		refused_as(
			"it has an executable graph with calls of a plan that was changed later");
		assert_true(make_plan_and_generator());
		assert_int_equal(make_graph_of(TRANSFORM), 0);
		assert_int_equal(ask_lib(&lib_cufft, QCU_LIB_DESTROY, WORDS(PLAN), 0), 0);
		assert_true(make_object(&lib_cufft, PLAN, QCU_LIB_CUFFT_PLAN, 0));
		refused_as("it has an executable graph with calls of a library whose object has "
			   "ended");
	}
	e.cmd = describe(SUM);
	e.len = graph.node.bytes;
	assert_false(restore_entries(&e, 1, &graph, NULL));
	assert_non_null(strstr(why, "GRAPH_MAKE cannot be done again"));
	mir_destroy(mirror);
}

/* The other mirror's library makes the call, with the same handle and memory. */
static void calls_are_made_again(void **state)
{
	(void)state;
	make_sum();
	assert_true(sum() == 7);
	save_and_restore();
	assert_true(sum() == 13);
	save_and_restore();
	assert_true(sum() == 19);
	/* The handle lives as long as the graph. */
	assert_int_equal(ask_lib(&lib_cublas, QCU_LIB_DESTROY, WORDS(BLAS), 0), 0);
	assert_int_equal(ask(CMD(GRAPH_DESTROY, graph_destroy, .graph = GRAPH)), 0);
	save_and_restore();
	assert_true(sum() == 19);
	mir_destroy(mirror);
}

/* So it does with a plan that is as it was when the graph was made. */
static void plans_are_used_again(void **state)
{
	float in[16] = {0}, out[16];
	uint32_t round;

	(void)state;
	if (!make_plan_and_generator())
		skip();
	assert_int_equal(make_graph_of(TRANSFORM), 0);
	for (round = 1; round < 4; round++) {
		in[0] = (float)round;
		copy(false, memory_at + 8192, in, sizeof(in));
		/* This backend makes the call as the graph is made. */
		save_and_restore();
		assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync)), 0);
		copy(true, memory_at + 12288, out, sizeof(out));
		assert_true(out[0] == (float)round && out[14] == (float)round && !out[15]);
	}
	mir_destroy(mirror);
}

static int begin_capturing(void **state)
{
	(void)state;
	capturing = be_soft;
	capturing.graph_make = make_calls;
	backend = &capturing;
	return 0;
}

static int end_capturing(void **state)
{
	(void)state;
	backend = &be_soft;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forbidden_functions),
		cmocka_unit_test(nothing_grows),
		cmocka_unit_test(unknown_places),
		cmocka_unit_test(goes_on),
		cmocka_unit_test_setup_teardown(calls_that_are_not_whole, begin_capturing,
						end_capturing),
		cmocka_unit_test_setup_teardown(calls_are_made_again, begin_capturing,
						end_capturing),
		cmocka_unit_test_setup_teardown(plans_are_used_again, begin_capturing,
						end_capturing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

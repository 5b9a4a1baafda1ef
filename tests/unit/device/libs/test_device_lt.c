// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Algorithms of cuBLASLt, with a library that makes some and writes down those that it gets. It
 * gets none back that it has not made in this session, and no count that it would have to believe.
 */
#include <cublasLt.h>

#include "include/qculib_cublaslt.h"
#include "qcu-device/commands/call.h"
#include "qcu-device/libs/cublaslt.h"
#include "qcu-device/mirror/keeping.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

#define HANDLE 2u

static struct be_ops ops;
static int objects, made, taken;
static uint64_t last; /* the first word of the algorithm that came last */

static cublasStatus_t create(cublasLtHandle_t *handle)
{
	*handle = (cublasLtHandle_t)&objects;
	objects++;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t destroy(cublasLtHandle_t handle)
{
	assert_ptr_equal(handle, &objects);
	objects--;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t init(cublasLtHandle_t handle, cublasComputeType_t compute, cudaDataType_t s,
			   cudaDataType_t a, cudaDataType_t b, cudaDataType_t c, cudaDataType_t d,
			   int id, cublasLtMatmulAlgo_t *algo)
{
	(void)handle, (void)compute, (void)s, (void)a, (void)b, (void)c, (void)d;
	memset(algo, 0, sizeof(*algo));
	algo->data[0] = (uint64_t)id;
	made++;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t get(const cublasLtMatmulAlgo_t *algo, int attribute, void *to, size_t size,
			  size_t *written)
{
	(void)attribute, (void)size;
	last = algo->data[0];
	taken++;
	memset(to, 1, size);
	*written = size;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set(cublasLtMatmulAlgo_t *algo, int attribute, const void *from, size_t size)
{
	(void)attribute, (void)from, (void)size;
	last = algo->data[0];
	algo->data[0] += 1000000;
	taken++;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t init_desc(void *desc, size_t size)
{
	memset(desc, 0, size);
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t init_layout(void *desc, size_t size, int type, uint64_t rows, uint64_t cols,
				  int64_t ld)
{
	(void)type, (void)rows, (void)cols, (void)ld;
	return init_desc(desc, size);
}

static cublasStatus_t set_desc(void *desc, int attribute, const void *value, size_t size)
{
	(void)desc, (void)attribute, (void)value, (void)size;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t choose(cublasLtHandle_t handle, void *desc, void *a, void *b, void *c,
			     void *d, void *preference, int requested,
			     cublasLtMatmulHeuristicResult_t *results, int *returned)
{
	(void)handle, (void)desc, (void)a, (void)b, (void)c, (void)d, (void)preference;
	assert_int_equal(requested, 2);
	results[0].algo.data[0] = 77;
	results[1].algo.data[0] = 88;
	/* The second one is not valid. */
	*returned = 1;
	return CUBLAS_STATUS_SUCCESS;
}

static void *open_library(struct be *be, const char *soname, char *why, size_t size)
{
	(void)be, (void)soname, (void)why, (void)size;
	return &ops;
}

static void *symbol(struct be *be, void *library, const char *name)
{
	static const struct {
		const char *name;
		void *fn;
	} all[] = {
		{"cublasLtCreate", (void *)create},
		{"cublasLtDestroy", (void *)destroy},
		{"cublasLtMatmulAlgoInit", (void *)init},
		{"cublasLtMatmulAlgoCapGetAttribute", (void *)get},
		{"cublasLtMatmulAlgoConfigGetAttribute", (void *)get},
		{"cublasLtMatmulAlgoConfigSetAttribute", (void *)set},
		{"cublasLtMatmulAlgoGetHeuristic", (void *)choose},
		{"cublasLtMatmulDescInit_internal", (void *)init_layout},
		{"cublasLtMatmulDescSetAttribute", (void *)set_desc},
		{"cublasLtMatrixLayoutInit_internal", (void *)init_layout},
		{"cublasLtMatrixLayoutSetAttribute", (void *)set_desc},
		{"cublasLtMatmulPreferenceInit_internal", (void *)init_desc},
		{"cublasLtMatmulPreferenceSetAttribute", (void *)set_desc},
	};
	size_t i;

	(void)be, (void)library;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i].name, name))
			return all[i].fn;
	return NULL;
}

static int native(struct be *be, struct be_stream *s, void **stream)
{
	(void)be;
	*stream = s;
	return 0;
}

static int start(void **state)
{
	(void)state;
	fake_reset();
	objects = made = taken = 0;
	ops = fake_ops;
	ops.lib_open = open_library;
	ops.lib_symbol = symbol;
	ops.native = native;
	return mir_create(&mirror, &(struct mir_config){.session = 1, .ops = &ops});
}

static int stop(void **state)
{
	return mirror_stop(state) || objects;
}

/* ---- messages ---- */

static uint64_t words[256];
static unsigned int count, outs;

static void begin(void)
{
	count = 1;
	outs = 0;
}

static void word(uint64_t w)
{
	assert_true(count < 128);
	words[count++] = w;
}

static void bytes(const void *at, unsigned int len)
{
	word(QCU_LIB_HOST);
	word(len);
	memcpy(words + count, at, len);
	count += (len + 7) / 8;
}

static void room(uint64_t len)
{
	word(QCU_LIB_ROOM);
	word(len);
	outs += (unsigned int)((len + 7) & ~7ull);
}

/* Returns the mirror's status, or the negative one of the library. */
static int send(uint16_t function, const uint64_t **answers)
{
	struct qcu_lib_head head = {.args = 8 * (count - 1), .outs = outs};
	struct qcu_seg seg = {(uintptr_t)words, 8 * count + sizeof(struct qcu_lib_answer) + outs};
	struct qCUcmd c = CMD(LIB_ASK, lib_ask, .buf = {1, seg.len}, .library = QCU_LIB_CUBLASLT,
			      .function = function);
	struct qcu_lib_answer answer;
	int rc;

	assert_true(seg.len <= sizeof(words));
	memcpy(words, &head, sizeof(head));
	memset(words + count, 0, sizeof(words) - 8 * count);
	c.flags = QCU_F_SEGS;
	rc = ask_with(&c, NULL, &seg, 1);
	memcpy(&answer, words + count, sizeof(answer));
	if (answers)
		*answers = words + count + 1;
	return rc ? rc : -answer.status;
}

static uint16_t number(const char *name)
{
	uint16_t i = 0;

	while (strcmp(lib_cublaslt.functions[i].name, name) != 0)
		assert_true(++i < lib_cublaslt.count);
	return i;
}

static int make_handle(void)
{
	begin();
	word(HANDLE);
	word(QCU_LIB_CUBLASLT_HANDLE);
	word(0);
	return send(QCU_LIB_CREATE, NULL);
}

static void handle(void)
{
	begin();
	word(HANDLE);
	word(1);
	word(0);
}

static int make_algo(uint64_t id, cublasLtMatmulAlgo_t *algo)
{
	const uint64_t *answers;
	unsigned int i;
	int rc;

	handle();
	for (i = 0; i < 6; i++)
		word(0);
	word(id);
	room(sizeof(*algo));
	rc = send(number("cublasLtMatmulAlgoInit"), &answers);
	memcpy(algo, answers, sizeof(*algo));
	return rc;
}

static int ask_algo(const char *function, const cublasLtMatmulAlgo_t *algo, uint64_t size)
{
	begin();
	bytes(algo, sizeof(*algo));
	word(1);
	room(size > 512 ? 512 : size);
	word(size);
	room(8);
	return send(number(function), NULL);
}

static int change_algo(cublasLtMatmulAlgo_t *algo)
{
	const uint32_t value = 3;
	const uint64_t *answers;
	int rc;

	begin();
	bytes(algo, sizeof(*algo));
	words[1] = QCU_LIB_BOTH;
	outs += sizeof(*algo);
	word(1);
	bytes(&value, sizeof(value));
	word(sizeof(value));
	rc = send(number("cublasLtMatmulAlgoConfigSetAttribute"), &answers);
	memcpy(algo, answers, sizeof(*algo));
	return rc;
}

#define INVALID (-CUBLAS_STATUS_INVALID_VALUE)

static void foreign(void **state)
{
	cublasLtMatmulAlgo_t algo = {{5}}, other;

	(void)state;
	assert_int_equal(make_handle(), 0);
	/* Before it was made, and with one bit changed behind its first word. */
	assert_int_equal(ask_algo("cublasLtMatmulAlgoCapGetAttribute", &algo, 8), INVALID);
	assert_int_equal(ask_algo("cublasLtMatmulAlgoConfigGetAttribute", &algo, 8), INVALID);
	assert_int_equal(change_algo(&algo), INVALID);
	assert_int_equal(make_algo(5, &algo), 0);
	other = algo;
	other.data[7] ^= 1ull << 63;
	assert_int_equal(ask_algo("cublasLtMatmulAlgoCapGetAttribute", &other, 8), INVALID);
	assert_int_equal(taken, 0);

	assert_int_equal(ask_algo("cublasLtMatmulAlgoCapGetAttribute", &algo, 8), 0);
	assert_int_equal(ask_algo("cublasLtMatmulAlgoConfigGetAttribute", &algo, 8), 0);
	/* What the library changes is another one that it has made. */
	other = algo;
	assert_int_equal(change_algo(&other), 0);
	assert_int_equal(other.data[0], 1000005);
	assert_int_equal(ask_algo("cublasLtMatmulAlgoCapGetAttribute", &other, 8), 0);
	assert_int_equal(last, 1000005);
	assert_int_equal(ask_algo("cublasLtMatmulAlgoCapGetAttribute", &algo, 8), 0);
}

/* A size of which there is no memory. */
static void sizes(void **state)
{
	cublasLtMatmulAlgo_t algo;

	(void)state;
	assert_int_equal(make_handle(), 0);
	assert_int_equal(make_algo(5, &algo), 0);
	assert_int_equal(ask_algo("cublasLtMatmulAlgoCapGetAttribute", &algo, 1024),
			 QCU_ERR_InvalidValue);
	assert_int_equal(ask_algo("cublasLtMatmulAlgoCapGetAttribute", &algo, UINT64_MAX),
			 QCU_ERR_InvalidValue);
	begin();
	bytes(&algo, sizeof(algo));
	word(1);
	word(QCU_LIB_NULL);
	word(64);
	room(8);
	assert_int_equal(send(number("cublasLtMatmulAlgoCapGetAttribute"), NULL),
			 QCU_ERR_InvalidValue);
	assert_int_equal(taken, 0);
}

/* A question for algorithms, of which `results` bytes come back. */
static int choose_algo(uint64_t requested, uint64_t results, const uint64_t **answers)
{
	const struct qcu_lt_matmul matmul = {.is = QCU_LT_IS_MATMUL};
	const struct qcu_lt_preference preference = {.is = QCU_LT_IS_PREFERENCE};
	unsigned int i;

	handle();
	bytes(&matmul, sizeof(matmul));
	for (i = 0; i < 4; i++)
		word(QCU_LIB_NULL);
	bytes(&preference, sizeof(preference));
	word(requested);
	if (results)
		room(results);
	else
		word(QCU_LIB_NULL);
	room(sizeof(int));
	return send(number("cublasLtMatmulAlgoGetHeuristic"), answers);
}

static void chosen(void **state)
{
	const uint64_t size = sizeof(cublasLtMatmulHeuristicResult_t);
	cublasLtMatmulHeuristicResult_t result[2];
	const uint64_t *answers;

	(void)state;
	assert_int_equal(make_handle(), 0);
	assert_int_equal(choose_algo(0, size, &answers), QCU_ERR_InvalidValue);
	assert_int_equal(choose_algo(UINT64_MAX, size, &answers), QCU_ERR_InvalidValue);
	/* The low words of these fit what there is room for. */
	assert_int_equal(choose_algo((1ull << 32) + 2, 2 * size, &answers), QCU_ERR_InvalidValue);
	assert_int_equal(choose_algo((1ull << 61) + 2, 2 * size, &answers), QCU_ERR_InvalidValue);
	assert_int_equal(choose_algo(2, 0, &answers), QCU_ERR_InvalidValue);
	assert_int_equal(choose_algo(2, size, &answers), QCU_ERR_InvalidValue);
	assert_int_equal(choose_algo(2, 2 * size, &answers), 0);
	memcpy(result, answers, sizeof(result));
	assert_int_equal(ask_algo("cublasLtMatmulAlgoCapGetAttribute", &result[0].algo, 8), 0);
	assert_int_equal(ask_algo("cublasLtMatmulAlgoCapGetAttribute", &result[1].algo, 8),
			 INVALID);
}

/*
 * Many are tried out. One that is used meanwhile stays; one that is not goes. The calls that made
 * them are kept until they are too many for the session to be saved, and then no more.
 */
static void many(void **state)
{
	const struct kept_name calls = {.kind = HANDLE_LIBRARY, .id = MIR_REPEATED};
	cublasLtMatmulAlgo_t used, unused, algo;
	unsigned int i;

	(void)state;
	assert_int_equal(make_handle(), 0);
	assert_int_equal(make_algo(1, &used), 0);
	assert_int_equal(make_algo(2, &unused), 0);
	for (i = 0; i < 3 * LIB_ALGOS; i++) {
		assert_int_equal(make_algo(10 + i, &algo), 0);
		if (i % 1024 == 0)
			assert_int_equal(ask_algo("cublasLtMatmulAlgoCapGetAttribute", &used, 8),
					 0);
	}
	assert_int_equal(ask_algo("cublasLtMatmulAlgoCapGetAttribute", &algo, 8), 0);
	assert_int_equal(ask_algo("cublasLtMatmulAlgoCapGetAttribute", &used, 8), 0);
	assert_int_equal(ask_algo("cublasLtMatmulAlgoCapGetAttribute", &unused, 8), INVALID);
	assert_true(kept_is_lost(&mirror->kept));
	assert_in_range(kept_count(&mirror->kept, &calls), 1024, 1025);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(foreign), TEST(sizes), TEST(chosen), TEST(many)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Descriptors that their first setting makes, objects beside the first one, and sizes that come
 * back, with a cuSPARSE that only counts what it makes. What is not well-formed does not reach it,
 * and whatever happens, all that it has made ends.
 */
#include "qcu-device/libs/cusparse.h"
#include "tests/unit/device/libs/test_device_addresses.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

#define HANDLE 2
#define BESIDE 3

static struct be_ops ops;
static int objects, vectors, calls, refused, mode;
static void *beside;

static cusparseStatus_t create(void **object)
{
	*object = malloc(1);
	assert_non_null(*object);
	objects++;
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t destroy(void *object)
{
	assert_non_null(object);
	free(object);
	objects--;
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t make_vector(cusparseDnVecDescr_t *vec, int64_t size, void *values,
				    cudaDataType type)
{
	assert_ptr_equal(values, (void *)0x1000);
	assert_int_equal(type, CUDA_R_32F);
	if (size < 0)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*vec = malloc(1);
	assert_non_null(*vec);
	vectors++;
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t destroy_vector(cusparseConstDnVecDescr_t vec)
{
	assert_non_null(vec);
	free((void *)(uintptr_t)vec);
	vectors--;
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t make_matrix(cusparseSpMatDescr_t *mat, int64_t rows, int64_t cols,
				    int64_t nnz, void *row, void *column, void *values,
				    cusparseIndexType_t type, cusparseIndexBase_t base,
				    cudaDataType value)
{
	assert_int_equal(rows + cols + nnz + (int64_t)type + (int64_t)base + (int64_t)value, 21);
	assert_true(row && column && values);
	return make_vector((cusparseDnVecDescr_t *)mat, 1, (void *)0x1000, CUDA_R_32F);
}

static cusparseStatus_t set_attribute(cusparseSpMatDescr_t mat, cusparseSpMatAttribute_t attribute,
				      void *data, size_t size)
{
	assert_non_null(mat);
	assert_int_equal(size, 4);
	calls += 10 * (int)attribute + *(const int *)data;
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t analyse(cusparseHandle_t handle, cusparseConstDnMatDescr_t from,
				cusparseSpMatDescr_t to, cusparseDenseToSparseAlg_t how,
				void *buffer)
{
	assert_true(handle && !from && to && !how && buffer == (void *)0x2000);
	calls++;
	return (cusparseStatus_t)refused;
}

static cusparseStatus_t size_of(cusparseConstSpMatDescr_t mat, int64_t *rows, int64_t *cols,
				int64_t *nnz)
{
	assert_non_null(mat);
	*rows = 5;
	*cols = 6;
	*nnz = 7;
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t update(cusparseHandle_t handle, cusparseSpSVDescr_t descr, void *values,
			       cusparseSpSVUpdate_t part)
{
	assert_true(handle && descr && values == (void *)0x3000 && !part);
	beside = descr;
	calls++;
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t gather(cusparseHandle_t handle, cusparseConstDnVecDescr_t from,
			       cusparseSpVecDescr_t to)
{
	assert_true(handle && from && !to);
	calls++;
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t set_mode(cusparseHandle_t handle, cusparsePointerMode_t to)
{
	assert_non_null(handle);
	mode = (int)to;
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t count_pruned(cusparseHandle_t handle, int m, int n, const float *dense,
				     int lda, float percentage, const cusparseMatDescr_t descr,
				     int *rows, int *total, pruneInfo_t info, void *buffer)
{
	assert_true(handle && m == 8 && n == 8 && dense && lda == 8 && !descr && rows && buffer);
	assert_true(percentage > 24 && percentage < 26);
	assert_non_null(total);
	beside = info;
	calls++;
	return (cusparseStatus_t)refused;
}

static cusparseStatus_t prune(cusparseHandle_t handle, int m, int n, const float *dense, int lda,
			      float percentage, const cusparseMatDescr_t descr, float *values,
			      const int *rows, int *columns, pruneInfo_t info, void *buffer)
{
	assert_true(handle && m == 8 && n == 8 && dense && lda == 8 && !descr && buffer);
	assert_true(percentage > 24 && percentage < 26 && values && rows && columns);
	assert_ptr_equal(info, beside);
	calls++;
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t set_in_handle(cusparseHandle_t handle, const void *what)
{
	(void)what;
	assert_non_null(handle);
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t other(void)
{
	fail_msg("a function that nobody called");
	return CUSPARSE_STATUS_SUCCESS;
}

static void *open_library(struct be *be, const char *soname, char *why, size_t size)
{
	(void)be;
	(void)why;
	(void)size;
	assert_string_equal(soname, "libcusparse.so.12");
	return &ops;
}

static void *symbol(struct be *be, void *library, const char *name)
{
	static const struct {
		const char *name;
		void *fn;
	} all[] = {
		{"cusparseCreate", (void *)create},
		{"cusparseDestroy", (void *)destroy},
		{"cusparseSpSV_createDescr", (void *)create},
		{"cusparseSpSV_destroyDescr", (void *)destroy},
		{"cusparseCreatePruneInfo", (void *)create},
		{"cusparseDestroyPruneInfo", (void *)destroy},
		{"cusparseSetStream", (void *)set_in_handle},
		{"cusparseCreateDnVec", (void *)make_vector},
		{"cusparseDestroyDnVec", (void *)destroy_vector},
		{"cusparseCreateCoo", (void *)make_matrix},
		{"cusparseDestroySpMat", (void *)destroy_vector},
		{"cusparseSpMatSetAttribute", (void *)set_attribute},
		{"cusparseSpMatGetSize", (void *)size_of},
		{"cusparseDenseToSparse_analysis", (void *)analyse},
		{"cusparseSpSV_updateMatrix", (void *)update},
		{"cusparseGather", (void *)gather},
		{"cusparseSetPointerMode", (void *)set_mode},
		{"cusparseSpruneDense2csrNnzByPercentage", (void *)count_pruned},
		{"cusparseDpruneDense2csrNnzByPercentage", (void *)count_pruned},
		{"cusparseSpruneDense2csrByPercentage", (void *)prune},
	};
	size_t i;

	(void)be;
	assert_ptr_equal(library, &ops);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(all[i].name, name))
			return all[i].fn;
	return (void *)other;
}

static int native(struct be *be, struct be_stream *s, void **stream)
{
	(void)be;
	*stream = s;
	return 0;
}

/* ---- messages ---- */

static uint64_t words[128];
static unsigned int count;

static void word(uint64_t w)
{
	assert_true(count < sizeof(words) / sizeof(words[0]));
	words[count++] = w;
}

static uint16_t number(const char *name)
{
	uint16_t i = 0;

	while (strcmp(lib_cusparse.functions[i].name, name) != 0)
		assert_true(++i < lib_cusparse.count);
	return i;
}

/* Returns the mirror's status, or -1 if the library did not accept it. */
static int send(uint16_t function, uint32_t outs)
{
	struct qcu_lib_head head = {.args = 8 * (count - 1), .outs = outs};
	struct qcu_lib_answer answer = {0};
	struct qcu_seg seg = {(uintptr_t)words, 8 * count + sizeof(answer) + outs};
	struct qCUcmd c = CMD(LIB_ASK, lib_ask, .buf = {1, seg.len}, .library = QCU_LIB_CUSPARSE,
			      .function = function);
	int rc;

	assert_true(seg.len <= sizeof(words));
	memcpy(words, &head, sizeof(head));
	c.flags = QCU_F_SEGS;
	rc = ask_with(&c, NULL, &seg, 1);
	memcpy(&answer, words + count, sizeof(answer));
	return rc ? rc : answer.status ? -1 : 0;
}

static int make(uint64_t id, uint64_t kind)
{
	count = 1;
	word(id);
	word(kind);
	word(0);
	return send(QCU_LIB_CREATE, 0);
}

static int end(uint64_t id)
{
	count = 1;
	word(id);
	return send(QCU_LIB_DESTROY, 0);
}

/* Begins a call, whose first argument is the handle. */
static void begin(void)
{
	count = 1;
	word(HANDLE);
	word(1);
	word(0);
}

/* The settings of a descriptor go between these two. */
static unsigned int began;
static void descriptor(void)
{
	began = count;
	word(0);
}
static void described(void)
{
	words[began] = 1 + 8 * (count - began - 1);
}

static void setting(const char *name, unsigned int args)
{
	struct qcu_lib_setting s = {.function = number(name), .args = 8 * args};
	uint64_t w;

	memcpy(&w, &s, sizeof(w));
	word(w);
}

static void vector(int64_t size)
{
	setting("cusparseCreateDnVec", 3);
	word((uint64_t)size);
	word(0x1000);
	word(CUDA_R_32F);
}

static void matrix(void)
{
	setting("cusparseCreateCoo", 9);
	word(4);
	word(6);
	word(9);
	word(0x100);
	word(0x200);
	word(0x300);
	word(CUSPARSE_INDEX_32I);
	word(CUSPARSE_INDEX_BASE_ZERO);
	word(CUDA_R_32F);
}

static void attributes(uint64_t which)
{
	setting("cusparseSpMatSetAttribute", 3);
	word(which);
	word(3);
	word(4);
}

static int start(void **state)
{
	(void)state;
	fake_reset();
	objects = vectors = calls = refused = mode = 0;
	beside = NULL;
	ops = fake_ops;
	ops.lib_open = open_library;
	ops.lib_symbol = symbol;
	ops.native = native;
	ops.mem_valid = low_address_valid;
	if (mir_create(&mirror, &(struct mir_config){.session = 1, .ops = &ops}))
		return -1;
	return make(HANDLE, QCU_LIB_CUSPARSE_HANDLE);
}

static int stop(void **state)
{
	return mirror_stop(state) || objects || vectors;
}

/* ---- tests ---- */

static void not_well_formed(void **state)
{
	(void)state;
	/* A second maker, a maker of another kind, a setting of another kind. */
	begin();
	descriptor();
	vector(8);
	vector(8);
	described();
	word(0);
	assert_int_equal(send(number("cusparseGather"), 0), QCU_ERR_InvalidValue);
	begin();
	descriptor();
	matrix();
	described();
	word(0);
	assert_int_equal(send(number("cusparseGather"), 0), QCU_ERR_InvalidValue);
	begin();
	descriptor();
	vector(8);
	attributes(1);
	described();
	word(0);
	assert_int_equal(send(number("cusparseGather"), 0), QCU_ERR_InvalidValue);
	/* A setting of what nothing has made. */
	begin();
	word(0);
	descriptor();
	attributes(1);
	described();
	word(QCU_LIB_ROOM);
	word(24);
	word(0);
	word(0x2000);
	assert_int_equal(send(number("cusparseDenseToSparse_analysis"), 24), QCU_ERR_InvalidValue);
	/* A maker that is cut short. */
	begin();
	descriptor();
	vector(8);
	described();
	words[began] -= 8;
	word(0);
	assert_int_equal(send(number("cusparseGather"), 0), QCU_ERR_InvalidValue);
	assert_int_equal(calls, 0);
	assert_int_equal(vectors, 0);
}

static void made(void **state)
{
	(void)state;
	begin();
	descriptor();
	vector(8);
	described();
	word(0);
	assert_int_equal(send(number("cusparseGather"), 0), 0);
	assert_int_equal(calls, 1);
	assert_int_equal(vectors, 0);
	/* The library does not want it: the call is not made, and its status comes. */
	begin();
	descriptor();
	vector(-8);
	described();
	word(0);
	assert_int_equal(send(number("cusparseGather"), 0), -1);
	assert_int_equal(calls, 1);
	/* The first time a program makes one, the library is asked. */
	count = 1;
	word(8);
	word(0x1000);
	word(CUDA_R_32F);
	assert_int_equal(send(number("cusparseCreateDnVec"), 0), 0);
	assert_int_equal(vectors, 0);
	words[1] = (uint64_t)-8;
	assert_int_equal(send(number("cusparseCreateDnVec"), 0), -1);
}

static void counted(void **state)
{
	int64_t size[3];

	(void)state;
	for (refused = 0; refused < 2; refused++) {
		calls = 0;
		begin();
		word(0);
		descriptor();
		matrix();
		attributes(3);
		described();
		word(QCU_LIB_ROOM);
		word(24);
		word(0);
		word(0x2000);
		assert_int_equal(send(number("cusparseDenseToSparse_analysis"), 24), -refused);
		assert_int_equal(calls, 1 + 3 + 10 + 4);
		memcpy(size, words + count + 1, sizeof(size));
		assert_int_equal(size[2], refused ? 0 : 7);
	}
	/* Room for less than a size. */
	begin();
	word(0);
	descriptor();
	matrix();
	described();
	word(QCU_LIB_ROOM);
	word(16);
	word(0);
	word(0x2000);
	assert_int_equal(send(number("cusparseDenseToSparse_analysis"), 16), QCU_ERR_InvalidValue);
}

static int update_with(uint64_t id)
{
	begin();
	word(id);
	word(0x3000);
	word(0);
	return send(number("cusparseSpSV_updateMatrix"), 0);
}

static void seconds(void **state)
{
	(void)state;
	/* None, one that is not there, and one of another kind. */
	assert_int_equal(update_with(0), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(update_with(77), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(update_with(1ull << 40), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(update_with(HANDLE), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(calls, 0);
	assert_int_equal(make(BESIDE, QCU_LIB_CUSPARSE_SPSV), 0);
	assert_int_equal(update_with(BESIDE), 0);
	assert_int_equal(update_with(BESIDE), 0);
	assert_non_null(beside);
	assert_int_equal(calls, 2);
	/* It never comes first. */
	begin();
	words[1] = BESIDE;
	word(BESIDE);
	word(0x3000);
	word(0);
	assert_int_equal(send(number("cusparseSpSV_updateMatrix"), 0),
			 QCU_ERR_InvalidResourceHandle);
	assert_int_equal(end(BESIDE), 0);
	assert_int_equal(update_with(BESIDE), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(calls, 2);
	assert_int_equal(objects, 1);
}

/* The parameters that both functions of a pruning have. */
static void begin_pruning(void)
{
	const double percentage = 25;
	uint64_t w;

	memcpy(&w, &percentage, sizeof(w));
	begin();
	word(8);
	word(8);
	word(0x1000);
	word(8);
	word(w);
	word(0);
}

/* Where the count goes: to the guest, or to device memory. */
static int count_pruned_at(const char *name, uint64_t id, bool device)
{
	begin_pruning();
	word(0x2000);
	word(device ? QCU_LIB_DEVICE : QCU_LIB_ROOM);
	word(device ? 0x3000 : 16);
	word(id);
	word(0x4000);
	return send(number(name), device ? 0 : 16);
}

static int prune_with(uint64_t id)
{
	begin_pruning();
	word(0x5000);
	word(0x2000);
	word(0x6000);
	word(id);
	word(0x4000);
	return send(number("cusparseSpruneDense2csrByPercentage"), 0);
}

/* The library uses what the count has left in the object, without a look. */
static void pruned_without_a_count(void **state)
{
	static const char nnz[] = "cusparseSpruneDense2csrNnzByPercentage";

	(void)state;
	assert_int_equal(make(BESIDE, QCU_LIB_CUSPARSE_PRUNE), 0);
	assert_int_equal(prune_with(BESIDE), -1);
	/* A count that has failed, one for another function, one with another object. */
	refused = 1;
	assert_int_equal(count_pruned_at(nnz, BESIDE, false), -1);
	refused = 0;
	assert_int_equal(count_pruned_at("cusparseDpruneDense2csrNnzByPercentage", BESIDE, false),
			 0);
	assert_int_equal(make(BESIDE + 1, QCU_LIB_CUSPARSE_PRUNE), 0);
	assert_int_equal(count_pruned_at(nnz, BESIDE + 1, false), 0);
	assert_int_equal(calls, 3);
	assert_int_equal(prune_with(BESIDE), -1);
	assert_int_equal(calls, 3);
	assert_int_equal(prune_with(BESIDE + 1), 0);
	assert_int_equal(count_pruned_at(nnz, BESIDE, false), 0);
	assert_int_equal(prune_with(BESIDE), 0);
	assert_int_equal(prune_with(BESIDE), 0);
	assert_int_equal(calls, 7);
	assert_int_equal(end(BESIDE) | end(BESIDE + 1), 0);
}

/*
 * The object beside the first holds the address of the count, and the library reads it in the mode
 * of the call that it makes now, which has no scalar itself.
 */
static void pruned_in_the_same_mode(void **state)
{
	static const char nnz[] = "cusparseSpruneDense2csrNnzByPercentage";

	(void)state;
	assert_int_equal(make(BESIDE, QCU_LIB_CUSPARSE_PRUNE), 0);
	assert_int_equal(make(BESIDE + 1, QCU_LIB_CUSPARSE_PRUNE), 0);
	assert_int_equal(count_pruned_at(nnz, BESIDE, true), 0);
	assert_int_equal(mode, 1);
	assert_int_equal(count_pruned_at(nnz, BESIDE + 1, false), 0);
	assert_int_equal(mode, 0);
	assert_int_equal(prune_with(BESIDE + 1), 0);
	assert_int_equal(mode, 0);
	beside = NULL;
	assert_int_equal(count_pruned_at(nnz, BESIDE, true), 0);
	assert_int_equal(make(BESIDE + 2, QCU_LIB_CUSPARSE_SPSV), 0);
	assert_int_equal(update_with(BESIDE + 2), 0);
	assert_int_equal(mode, 0);
	assert_int_equal(count_pruned_at(nnz, BESIDE, true), 0);
	assert_int_equal(prune_with(BESIDE), 0);
	assert_int_equal(mode, 1);
	assert_int_equal(end(BESIDE + 2), 0);
	assert_int_equal(end(BESIDE) | end(BESIDE + 1), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(not_well_formed),
					   TEST(made),
					   TEST(counted),
					   TEST(seconds),
					   TEST(pruned_without_a_count),
					   TEST(pruned_in_the_same_mode)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

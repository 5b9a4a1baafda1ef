// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls of libraries in graphs, with a backend that makes each call as soon as it makes the graph,
 * and a cuBLAS that writes down what it gets. Bad descriptions first.
 */
#include <cublas_v2.h>

#include "qcu-device/libs/impl.h"
#include "tests/unit/device/libs/test_device_addresses.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

#define HANDLE	2u
#define GRAPH	2u
#define CAPTURE ((void *)0x5000)

static struct be_ops ops;
static struct limits limits;
static unsigned int graphs;

/* ---- a cuBLAS ---- */

/* What a captured copy would read in each launch. */
static const float *read_scalar;
static const int *read_array;

static struct {
	int objects, calls, n;
	void *stream;
	const void *x, *y;
	cublasStatus_t status;
} lib;

static cublasStatus_t create(cublasHandle_t *handle)
{
	*handle = (cublasHandle_t)&lib;
	lib.objects++;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t destroy(cublasHandle_t handle)
{
	assert_ptr_equal(handle, &lib);
	lib.objects--;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_stream(cublasHandle_t handle, cudaStream_t stream)
{
	assert_ptr_equal(handle, &lib);
	lib.stream = stream;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t swap(cublasHandle_t handle, int n, float *x, int incx, float *y, int incy)
{
	assert_ptr_equal(handle, &lib);
	assert_int_equal(incx, 3);
	assert_int_equal(incy, 4);
	lib.calls++;
	lib.n = n;
	lib.x = x;
	lib.y = y;
	return lib.status;
}

static cublasStatus_t set_mode(cublasHandle_t handle, cublasPointerMode_t mode)
{
	assert_ptr_equal(handle, &lib);
	assert_int_equal(mode, CUBLAS_POINTER_MODE_HOST);
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t add(cublasHandle_t handle, int n, const float *alpha, const float *x,
			  int incx, float *y, int incy)
{
	(void)x, (void)y, (void)incx, (void)incy;
	assert_ptr_equal(handle, &lib);
	lib.calls++;
	lib.n = n;
	read_scalar = alpha;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t grouped(cublasHandle_t handle, const cublasOperation_t *trans_a,
			      const cublasOperation_t *trans_b, const int *m, const int *n,
			      const int *k, const float *alpha, const float *const *a,
			      const int *lda, const float *const *b, const int *ldb,
			      const float *beta, float *const *c, const int *ldc, int groups,
			      const int *size)
{
	(void)trans_a, (void)trans_b, (void)n, (void)k, (void)alpha, (void)a, (void)lda, (void)b;
	(void)ldb, (void)beta, (void)c, (void)ldc, (void)groups, (void)size;
	assert_ptr_equal(handle, &lib);
	lib.calls++;
	read_array = m;
	return CUBLAS_STATUS_SUCCESS;
}

static void *open_library(struct be *be, const char *soname, char *why, size_t size)
{
	(void)be, (void)soname, (void)why, (void)size;
	return &lib;
}

static void *symbol(struct be *be, void *library, const char *name)
{
	static const struct {
		const char *name;
		void *fn;
	} all[] = {
		{"cublasCreate_v2", (void *)create},
		{"cublasDestroy_v2", (void *)destroy},
		{"cublasSetStream_v2", (void *)set_stream},
		{"cublasSswap_v2", (void *)swap},
		{"cublasSetPointerMode_v2", (void *)set_mode},
		{"cublasSaxpy_v2", (void *)add},
		{"cublasSgemmGroupedBatched", (void *)grouped},
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

/* ---- a backend ---- */

static int graph_make(struct be *be, unsigned int dev, const struct be_node *nodes, uint32_t count,
		      struct be_graph **g)
{
	uint32_t i;
	int rc = 0;

	(void)be, (void)dev;
	for (i = 0; i < count && !rc; i++)
		if (nodes[i].type == QCU_NODE_CALL)
			rc = nodes[i].call.fn(nodes[i].call.arg, CAPTURE);
	*g = (struct be_graph *)&graphs;
	graphs += !rc;
	return rc;
}

static int graph_update(struct be *be, struct be_graph *g, const struct be_node *nodes,
			uint32_t count)
{
	(void)be, (void)g, (void)nodes, (void)count;
	return 0;
}

/* Launches end when a test says so. An event is that of the last launch. */
static bool running;
static unsigned int launches, events;

static int graph_launch(struct be *be, struct be_graph *g, struct be_stream *s)
{
	(void)be, (void)g, (void)s;
	launches++;
	running = true;
	return 0;
}

static int event_create(struct be *be, unsigned int dev, uint32_t flags, struct be_event **e)
{
	(void)be, (void)dev, (void)flags;
	*e = (struct be_event *)&events;
	events++;
	return 0;
}

static int event_destroy(struct be *be, struct be_event *e)
{
	(void)be;
	assert_ptr_equal(e, &events);
	events--;
	return 0;
}

static int event_record(struct be *be, struct be_event *e, struct be_stream *s, uint32_t flags)
{
	(void)be, (void)s, (void)flags;
	assert_ptr_equal(e, &events);
	return 0;
}

static int event_query(struct be *be, struct be_event *e)
{
	(void)be;
	assert_ptr_equal(e, &events);
	return running ? QCU_ERR_NotReady : QCU_ERR_Success;
}

static int graph_destroy(struct be *be, struct be_graph *g)
{
	(void)be, (void)g;
	graphs--;
	return 0;
}

static int start(void **state)
{
	struct mir_config cfg = {.session = 1, .ops = &ops, .limits = &limits};

	(void)state;
	fake_reset();
	memset(&lib, 0, sizeof(lib));
	ops = fake_ops;
	ops.lib_open = open_library;
	ops.lib_symbol = symbol;
	ops.native = native;
	ops.mem_valid = low_address_valid;
	ops.graph_make = graph_make;
	ops.graph_update = graph_update;
	ops.graph_destroy = graph_destroy;
	ops.graph_launch = graph_launch;
	ops.graph_upload = graph_launch;
	ops.event_create = event_create;
	ops.event_destroy = event_destroy;
	ops.event_record = event_record;
	ops.event_query = event_query;
	running = false;
	launches = events = 0;
	limits_default(&limits);
	return mir_create(&mirror, &cfg);
}

static int stop(void **state)
{
	return mirror_stop(state) || lib.objects || graphs || events;
}

/* ---- messages ---- */

static uint16_t number(const char *name)
{
	uint16_t i = 0;

	while (strcmp(lib_cublas.functions[i].name, name) != 0)
		assert_true(++i < lib_cublas.count);
	return i;
}

static int with_handle(uint16_t function)
{
	struct {
		struct qcu_lib_head head;
		uint64_t args[3];
		struct qcu_lib_answer answer;
	} m = {.head = {.args = function == QCU_LIB_CREATE ? 24 : 8}, .args = {HANDLE}};
	size_t len = sizeof(m.head) + m.head.args + sizeof(m.answer);
	const struct qcu_seg seg = {(uintptr_t)&m, len};
	struct qCUcmd c = CMD(LIB_ASK, lib_ask, .buf = {1, len}, .library = QCU_LIB_CUBLAS,
			      .function = function);

	if (function == QCU_LIB_CREATE)
		m.args[1] = QCU_LIB_CUBLAS_HANDLE;
	c.flags = QCU_F_SEGS;
	return ask_with(&c, NULL, &seg, 1);
}

/* A description of one node, and its parts. */
static struct {
	struct qcu_graph_node node;
	struct qcu_graph_call call;
	/* number, version and settings of the object; then the call's own */
	uint64_t args[64];
} d;

static void describe(void)
{
	static const uint64_t args[8] = {HANDLE, 0, 0, 10, 0x1000, 3, 0x2000, 4};

	memset(&d, 0, sizeof(d));
	memcpy(d.args, args, sizeof(args));
	d.node = (struct qcu_graph_node){
		.bytes = sizeof(d.node) + sizeof(d.call) + sizeof(args),
		.type = QCU_NODE_CALL,
	};
	d.call = (struct qcu_graph_call){QCU_LIB_CUBLAS, number("cublasSswap_v2"), sizeof(args)};
}

static int make(void)
{
	const struct qcu_seg seg = {(uintptr_t)&d, d.node.bytes};
	struct qCUcmd c =
		CMD(GRAPH_MAKE, graph_make, .buf = {1, d.node.bytes}, .graph = GRAPH, .nodes = 1);

	c.flags = QCU_F_SEGS;
	return ask_with(&c, NULL, &seg, 1);
}

static int update(void)
{
	const struct qcu_seg seg = {(uintptr_t)&d, d.node.bytes};
	struct qCUcmd c = CMD(GRAPH_UPDATE, graph_update, .buf = {1, d.node.bytes}, .graph = GRAPH,
			      .nodes = 1);

	c.flags = QCU_F_SEGS;
	return ask_with(&c, NULL, &seg, 1);
}

static void bad(void **state)
{
	static const uint16_t own[] = {QCU_LIB_OPEN, QCU_LIB_CREATE, QCU_LIB_DESTROY};
	unsigned int i;

	(void)state;
	assert_int_equal(with_handle(QCU_LIB_CREATE), 0);
	describe();
	d.call.bytes -= 8;
	assert_int_equal(make(), QCU_ERR_InvalidValue);
	d.call.bytes += 16;
	assert_int_equal(make(), QCU_ERR_InvalidValue);
	describe();
	d.call.library = QCU_LIBS;
	assert_int_equal(make(), QCU_ERR_InvalidValue);
	describe();
	d.call.function = lib_cublas.count;
	assert_int_equal(make(), QCU_ERR_InvalidValue);
	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		d.call.function = own[i];
		assert_int_equal(make(), QCU_ERR_InvalidValue);
	}
	/* Arguments that end too early, and one too many. */
	for (i = 0; i < 10; i++) {
		describe();
		d.call.bytes = 8 * i;
		d.node.bytes = sizeof(d.node) + sizeof(d.call) + 8 * i;
		if (i != 8)
			assert_int_equal(make(), QCU_ERR_InvalidValue);
	}
	describe();
	d.node.flags = QCU_NODE_OFF;
	assert_int_equal(make(), QCU_ERR_InvalidValue);
	assert_int_equal(lib.calls, 0);
	describe();
	d.args[0] = HANDLE + 1;
	assert_int_not_equal(make(), 0);
	assert_int_equal(lib.calls, 0);
	/* What the library refuses, the guest tries call by call. */
	describe();
	lib.status = CUBLAS_STATUS_NOT_SUPPORTED;
	assert_int_equal(make(), QCU_ERR_NotSupported);
	assert_int_equal(lib.calls, 1);
	assert_int_equal(with_handle(QCU_LIB_DESTROY), 0);
	assert_int_equal(lib.objects, 0);
}

/* The library's object lives as long as the graph. */
static void kept(void **state)
{
	(void)state;
	assert_int_equal(with_handle(QCU_LIB_CREATE), 0);
	describe();
	assert_int_equal(make(), 0);
	assert_int_equal(lib.calls, 1);
	assert_int_equal(lib.n, 10);
	assert_ptr_equal(lib.x, 0x1000);
	assert_ptr_equal(lib.y, 0x2000);
	assert_ptr_equal(lib.stream, CAPTURE);
	/* Another call in its place needs another instance. */
	assert_int_equal(update(), QCU_ERR_InvalidValue);
	assert_int_equal(with_handle(QCU_LIB_DESTROY), 0);
	assert_int_equal(lib.objects, 1);
	assert_int_equal(ask(CMD(GRAPH_DESTROY, graph_destroy, .graph = GRAPH)), 0);
	assert_int_equal(lib.objects, 0);
}

/* The mirror ends with all of it. */
static void left(void **state)
{
	(void)state;
	assert_int_equal(with_handle(QCU_LIB_CREATE), 0);
	describe();
	assert_int_equal(make(), 0);
}

/* The same graph with another call. */
static void describe_call(const char *name, const uint64_t *args, unsigned int words)
{
	describe();
	assert_true(words <= sizeof(d.args) / sizeof(d.args[0]));
	memcpy(d.args, args, 8 * words);
	d.call.function = number(name);
	d.call.bytes = 8 * words;
	d.node.bytes = sizeof(d.node) + sizeof(d.call) + d.call.bytes;
}

static int launch_graph(void)
{
	struct qCUcmd c = CMD(GRAPH_LAUNCH, graph_launch, .graph = GRAPH);

	c.graph_launch.event = QCU_GRAPH_NO_EVENT;
	return ask(c);
}

/* n; alpha; x, incx, y, incy */
static const uint64_t addition[] = {HANDLE,	0, 0,	   10, QCU_LIB_HOST, 16,
				    0x3f800000, 0, 0x1000, 1,  0x2000,	     1};

/* Makes a graph, launches it, and ends it while the launch has not ended. */
static void end_while_running(void)
{
	assert_int_equal(make(), 0);
	assert_int_equal(lib.calls, 1);
	assert_int_equal(launch_graph(), 0);
	assert_int_equal(launch_graph(), 0);
	assert_int_equal(launches, 2);
	assert_int_equal(with_handle(QCU_LIB_DESTROY), 0);
	assert_int_equal(ask(CMD(GRAPH_DESTROY, graph_destroy, .graph = GRAPH)), 0);
	assert_int_equal(graphs, 0);
}

/* A scalar in host memory stays until the launch has ended, and so does the library's object. */
static void scalar_stays(void **state)
{
	(void)state;
	assert_int_equal(with_handle(QCU_LIB_CREATE), 0);
	describe_call("cublasSaxpy_v2", addition, sizeof(addition) / sizeof(addition[0]));
	end_while_running();
	assert_true(*read_scalar == 1);
	assert_int_equal(lib.objects, 1);
	/* Other graphs come and go. */
	assert_int_not_equal(make(), 0);
	assert_true(*read_scalar == 1);
	running = false;
	assert_int_not_equal(make(), 0);
	assert_int_equal(lib.objects, 0);
}

static void arrays_stay(void **state)
{
#define ONE(value) QCU_LIB_HOST, 4, value
	const uint64_t args[] = {HANDLE, 0,	 0,	 ONE(0),	  ONE(0),
				 ONE(5), ONE(5), ONE(5), ONE(0x3f800000), 0x1000,
				 ONE(5), 0x2000, ONE(5), ONE(0),	  0x3000,
				 ONE(5), 1,	 ONE(1)};

	(void)state;
	assert_int_equal(with_handle(QCU_LIB_CREATE), 0);
	describe_call("cublasSgemmGroupedBatched", args, sizeof(args) / sizeof(args[0]));
	end_while_running();
	assert_int_equal(*read_array, 5);
	running = false;
	assert_int_not_equal(make(), 0);
	assert_int_equal(lib.objects, 0);
}

/* The session ends while the launch runs. */
static void left_running(void **state)
{
	(void)state;
	assert_int_equal(with_handle(QCU_LIB_CREATE), 0);
	describe_call("cublasSaxpy_v2", addition, sizeof(addition) / sizeof(addition[0]));
	end_while_running();
	assert_int_equal(lib.objects, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(bad),	      TEST(kept),
					   TEST(left),	      TEST(scalar_stays),
					   TEST(arrays_stay), TEST(left_running)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

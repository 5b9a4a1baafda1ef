// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls of a library whose work on the GPU does not end: they are found as kernels are, after the
 * call and while the library itself waits for its work. A library that computes on the CPU is not.
 */
#include <cublas_v2.h>

#include "qcu-device/base/limits.h"
#include "qcu-device/commands/commands.h"
#include "qcu-device/libs/impl.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

#define HANDLE	2u
#define S	1000000000ull
#define SECONDS 1000u /* so long that the mirror's own thread finds nothing */

static struct be_ops ops;
static unsigned int found, calls;
static int objects;
static bool reached, endless, busy; /* the call's beginning; its work; its stream */
static bool looks;		    /* the library takes its time */

static void look(uint64_t seconds)
{
	mir_times_look(mirror, spin_clock() + seconds * S);
}

static cublasStatus_t create(cublasHandle_t *handle)
{
	*handle = (cublasHandle_t)&objects;
	objects++;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t destroy(cublasHandle_t handle)
{
	(void)handle;
	objects--;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_stream(cublasHandle_t handle, cudaStream_t stream)
{
	(void)handle, (void)stream;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t swap(cublasHandle_t handle, int n, float *x, int incx, float *y, int incy)
{
	(void)handle, (void)n, (void)x, (void)incx, (void)y, (void)incy;
	calls++;
	if (looks) {
		look(0);
		look(SECONDS - 10);
		assert_int_equal(found, 0);
		look(SECONDS + 1);
	}
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
		{"cublasCreate_v2", (void *)create},
		{"cublasDestroy_v2", (void *)destroy},
		{"cublasSetStream_v2", (void *)set_stream},
		{"cublasSswap_v2", (void *)swap},
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

/* ---- a backend: an event is a number, odd before the work and even behind it ---- */

static uintptr_t last_event;

static int event_create(struct be *be, unsigned int dev, uint32_t flags, struct be_event **e)
{
	(void)be, (void)dev, (void)flags;
	*e = (struct be_event *)++last_event;
	return 0;
}

static int event_destroy(struct be *be, struct be_event *e)
{
	(void)be, (void)e;
	return 0;
}

static int event_record(struct be *be, struct be_event *e, struct be_stream *s, uint32_t flags)
{
	(void)be, (void)e, (void)s, (void)flags;
	return 0;
}

static int event_query(struct be *be, struct be_event *e)
{
	(void)be;
	if ((uintptr_t)e & 1)
		return reached ? QCU_ERR_Success : QCU_ERR_NotReady;
	return reached && !endless ? QCU_ERR_Success : QCU_ERR_NotReady;
}

static int stream_query(struct be *be, struct be_stream *s)
{
	(void)be, (void)s;
	return busy ? QCU_ERR_NotReady : QCU_ERR_Success;
}

static bool any_address(struct be *be, uint64_t address, uint64_t len)
{
	(void)be, (void)address, (void)len;
	return true;
}

static void timed_out(void *ctx)
{
	*(unsigned int *)ctx += 1;
}

static int with_handle(uint16_t function)
{
	struct {
		struct qcu_lib_head head;
		uint64_t args[3];
		struct qcu_lib_answer answer;
	} m = {.head = {.args = 24}, .args = {HANDLE, QCU_LIB_CUBLAS_HANDLE}};
	const struct qcu_seg seg = {(uintptr_t)&m, sizeof(m)};
	struct qCUcmd c = CMD(LIB_ASK, lib_ask, .buf = {1, sizeof(m)}, .library = QCU_LIB_CUBLAS,
			      .function = function);

	c.flags = QCU_F_SEGS;
	return ask_with(&c, NULL, &seg, 1);
}

static int begin(void **state)
{
	static struct limits limits;

	(void)state;
	fake_reset();
	found = calls = 0;
	last_event = 0;
	reached = true;
	endless = busy = looks = false;
	ops = fake_ops;
	ops.lib_open = open_library;
	ops.lib_symbol = symbol;
	ops.native = native;
	ops.mem_valid = any_address;
	ops.event_create = event_create;
	ops.event_destroy = event_destroy;
	ops.event_record = event_record;
	ops.event_query = event_query;
	ops.stream_query = stream_query;
	limits_default(&limits);
	limits.session[LIMIT_KERNEL_TIME] = SECONDS;
	if (mir_create(&mirror, &(struct mir_config){.session = 1,
						     .ops = &ops,
						     .limits = &limits,
						     .timed_out = timed_out,
						     .timed_out_ctx = &found}))
		return -1;
	return with_handle(QCU_LIB_CREATE);
}

static int end(void **state)
{
	return mirror_stop(state) || objects;
}

/* One call. */
static void call_library(void)
{
	struct {
		struct qcu_lib_head head;
		/* number, version and settings of the object; n, x, incx, y, incy */
		uint64_t args[8];
		struct qcu_lib_answer answer;
	} m = {.head = {.args = 64}, .args = {HANDLE, 0, 0, 10, 0x1000, 1, 0x2000, 1}};
	const struct qcu_seg seg = {(uintptr_t)&m, sizeof(m)};
	struct qCUcmd c = CMD(LIB_ASK, lib_ask, .buf = {1, sizeof(m)}, .library = QCU_LIB_CUBLAS);

	while (strcmp(lib_cublas.functions[c.lib_ask.function].name, "cublasSswap_v2") != 0)
		c.lib_ask.function++;
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
}

static void does_not_end(void **state)
{
	(void)state;
	endless = true;
	call_library();
	look(0);
	look(SECONDS - 10);
	assert_int_equal(found, 0);
	look(SECONDS + 1);
	assert_int_equal(found, 1);
	assert_int_equal(calls, 1);
}

/* The library waits for work that does not end, so the call does not return. */
static void waits_inside(void **state)
{
	(void)state;
	looks = busy = true;
	call_library();
	assert_int_equal(found, 1);
}

static void computes_inside(void **state)
{
	(void)state;
	looks = true;
	call_library();
	/* Work before the call: its stream is busy, and the call has not begun. */
	busy = true;
	reached = false;
	call_library();
	assert_int_equal(found, 0);
	assert_int_equal(calls, 2);
}

static void all_end(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 100; i++) {
		call_library();
		look(i * SECONDS);
	}
	assert_int_equal(found, 0);
	assert_int_equal(calls, 100);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(does_not_end), TEST(waits_inside),
					   TEST(computes_inside), TEST(all_end)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

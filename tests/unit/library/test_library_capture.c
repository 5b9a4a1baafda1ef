// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A call cannot become a node of the graph of a capture. What the node would have owned is released
 * while nobody holds the lock of the captures: releasing memory takes locks that come before it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "qcu-library/graph/graph.h"
#include "qcu-library/link/capture.h"
#include "qcu-library/link/fork.h"

#define STREAM ((cudaStream_t)0x1000)

static pthread_mutex_t *lock;
static unsigned int refused, released;
static bool was_held;

/* ---- what is below captures ---- */

__thread struct qcul_thread qcul_self;
struct qcul_table qcul_streams;

void qcul_at_fork(struct qcul_fork_entry *handlers)
{
	lock = &handlers->lock;
}

cudaError_t qcul_ready(void)
{
	return cudaSuccess;
}

uint32_t qcul_tid(void)
{
	return 1;
}

cudaError_t qcul_done(cudaError_t err)
{
	return err;
}

cudaError_t qcul_stream_id(cudaStream_t stream, uint32_t *id)
{
	(void)stream;
	*id = QCU_STREAM_PER_THREAD;
	return cudaSuccess;
}

/* ---- nodes of memory, which no graph accepts ---- */

cudaError_t qcul_node_memory_join(const struct CUgraph_st *g, const struct qcul_node_params *p)
{
	(void)g;
	(void)p;
	refused++;
	return cudaErrorNotSupported;
}

cudaError_t qcul_node_any(struct qcul_node_params *p, const struct cudaGraphNodeParams *params)
{
	*p = (struct qcul_node_params){.type = params->type};
	return cudaSuccess;
}

struct qcul_graph_memory *qcul_node_memory_take_over(const struct CUgraph_st *g,
						     struct CUgraphNode_st *const *deps,
						     size_t count,
						     const struct cudaMemAllocNodeParams *params)
{
	(void)g;
	(void)deps;
	(void)count;
	(void)params;
	return NULL;
}

struct qcul_graph_memory *qcul_node_memory_of_others(const struct CUgraph_st *g,
						     const struct cudaMemAllocNodeParams *params)
{
	(void)g;
	(void)params;
	return NULL;
}

cudaError_t qcul_node_memory(struct qcul_node_params *p,
			     const struct cudaMemAllocNodeParams *params,
			     struct qcul_graph_memory *root)
{
	(void)params;
	assert_null(root);
	*p = (struct qcul_node_params){.type = cudaGraphNodeTypeMemAlloc};
	return cudaSuccess;
}

void *qcul_node_memory_ptr(const struct qcul_node_params *p)
{
	(void)p;
	return NULL;
}

void qcul_graph_host_put(struct qcul_host_call *call)
{
	assert_null(call);
}

void qcul_node_release(struct qcul_node_params *p)
{
	(void)p;
	released++;
	if (pthread_mutex_trylock(lock))
		was_held = true;
	else
		pthread_mutex_unlock(lock);
}

/* ---- what graphs and captures use elsewhere, and these tests do not ---- */

cudaError_t qcul_node_captured_kernel(struct qcul_node_params *p, struct CUkern_st *kernel,
				      const struct cudaKernelNodeParams *from)
{
	(void)p;
	(void)kernel;
	(void)from;
	return cudaErrorNotSupported;
}

cudaError_t qcul_node_clone(struct qcul_node_params *to, const struct qcul_node_params *from)
{
	(void)to;
	(void)from;
	return cudaErrorNotSupported;
}

bool qcul_objects_clone(struct CUgraph_st *to, const struct CUgraph_st *from)
{
	(void)to;
	(void)from;
	return false;
}

void qcul_objects_release(struct CUgraph_st *g)
{
	(void)g;
}

void qcul_graph_conds_release(struct CUgraph_st *g)
{
	(void)g;
}

cudaError_t qcul_node_attr_set(struct qcul_node_kernel *k, cudaLaunchAttributeID id,
			       const cudaLaunchAttributeValue *value)
{
	(void)k;
	(void)id;
	(void)value;
	return cudaErrorNotSupported;
}

bool qcul_memory_of_graphs(const void *ptr)
{
	(void)ptr;
	return false;
}

cudaError_t qcul_memory_of_graphs_free(void *ptr)
{
	(void)ptr;
	return cudaErrorNotSupported;
}

cudaError_t qcul_memory_of_graphs_free_async(void *ptr, cudaStream_t stream)
{
	(void)ptr;
	(void)stream;
	return cudaErrorNotSupported;
}

/* ---- tests ---- */

static int begin(void **state)
{
	(void)state;
	return cudaStreamBeginCapture(STREAM, cudaStreamCaptureModeGlobal);
}

/* The call that failed has made the capture invalid. */
static int end(void **state)
{
	cudaGraph_t graph;

	(void)state;
	return cudaStreamEndCapture(STREAM, &graph) != cudaErrorStreamCaptureInvalidated;
}

static void an_allocation_is_released_without_the_lock(void **state)
{
	struct cudaMemAllocNodeParams params = {0};

	(void)state;
	refused = released = 0;
	was_held = false;
	assert_int_equal(qcul_capture_alloc(STREAM, &params), cudaErrorNotSupported);
	assert_int_equal(refused, 1);
	assert_int_equal(released, 1);
	assert_false(was_held);
}

static void a_free_is_released_without_the_lock(void **state)
{
	const struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeMemFree};

	(void)state;
	refused = released = 0;
	was_held = false;
	assert_int_equal(qcul_capture_node(STREAM, &params), cudaErrorNotSupported);
	assert_int_equal(refused, 1);
	assert_int_equal(released, 1);
	assert_false(was_held);
}

/* Another thread may have ended the capture in the meantime. */
static void what_comes_too_late_is_released_without_the_lock(void **state)
{
	struct cudaMemAllocNodeParams params = {0};

	(void)state;
	refused = released = 0;
	was_held = false;
	assert_int_equal(qcul_capture_alloc(STREAM, &params), cudaErrorStreamCaptureInvalidated);
	assert_int_equal(refused, 0);
	assert_int_equal(released, 1);
	assert_false(was_held);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_allocation_is_released_without_the_lock, begin,
						end),
		cmocka_unit_test_setup_teardown(a_free_is_released_without_the_lock, begin, end),
		cmocka_unit_test(what_comes_too_late_is_released_without_the_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

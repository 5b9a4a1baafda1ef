// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Conditional nodes of graphs in difficult cases: nodes that a body cannot have; handles without a
 * node, of another graph, or from before a reset; a child process. After each case, a conditional
 * node must still work. Its value is the default, so no kernel is needed.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define LEN 4096u

static unsigned char *data, *pinned;

static cudaGraph_t new_graph(void)
{
	cudaGraph_t g;

	OK(cudaGraphCreate(&g, 0));
	return g;
}

static cudaGraphConditionalHandle new_handle(cudaGraph_t g)
{
	cudaGraphConditionalHandle h;

	OK(cudaGraphConditionalHandleCreate(&h, g, 1, cudaGraphCondAssignDefault));
	return h;
}

static cudaError_t add(cudaGraph_t g, cudaGraphConditionalHandle h, unsigned int size,
		       cudaGraph_t *body)
{
	struct cudaGraphNodeParams p = {.type = cudaGraphNodeTypeConditional};
	cudaGraphNode_t node;
	cudaError_t err;

	p.conditional.handle = h;
	p.conditional.type = size > 2 ? cudaGraphCondTypeSwitch : cudaGraphCondTypeIf;
	p.conditional.size = size;
	err = cudaGraphAddNode(&node, g, NULL, NULL, 0, &p);
	if (!err)
		*body = p.conditional.phGraph_out[0];
	return err;
}

static void add_set(cudaGraph_t g, int value)
{
	const struct cudaMemsetParams set = {.dst = data,
					     .value = (unsigned int)value,
					     .elementSize = 1,
					     .width = LEN,
					     .height = 1};
	cudaGraphNode_t node;

	OK(cudaGraphAddMemsetNode(&node, g, NULL, 0, &set));
}

/* Makes a graph with a conditional node. The body sets all bytes to `value`. */
static cudaGraphExec_t good(cudaGraph_t *g, int value)
{
	cudaGraphExec_t exec;
	cudaGraph_t body;

	*g = new_graph();
	OK(add(*g, new_handle(*g), 1, &body));
	add_set(body, value);
	OK(cudaGraphInstantiate(&exec, *g, 0));
	return exec;
}

static void launch(cudaGraphExec_t exec, int value)
{
	size_t i;

	OK(cudaMemset(data, 0, LEN));
	OK(cudaGraphLaunch(exec, NULL));
	OK(cudaMemcpy(pinned, data, LEN, cudaMemcpyDeviceToHost));
	for (i = 0; i < LEN; i++)
		REQUIRE(pinned[i] == value, "%d, not %d, at %zu", pinned[i], value, i);
}

static void still_works(int value)
{
	cudaGraph_t g;
	cudaGraphExec_t exec = good(&g, value);

	launch(exec, value);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
}

static void refuses(cudaGraph_t g)
{
	cudaGraphExec_t exec;

	REFUSED(cudaGraphInstantiate(&exec, g, 0), cudaErrorNotSupported);
	OK(cudaGraphDestroy(g));
}

static int calls;

static void count(void *unused)
{
	(void)unused;
	calls++;
}

static void bad_bodies(void)
{
	const struct cudaHostNodeParams host = {.fn = count};
	cudaGraph_t g, body, inner;
	unsigned char mine[64];
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	cudaEvent_t event;

	g = new_graph();
	OK(add(g, new_handle(g), 1, &body));
	OK(cudaGraphAddHostNode(&node, body, NULL, 0, &host));
	refuses(g);
	g = new_graph();
	OK(add(g, new_handle(g), 1, &body));
	OK(cudaEventCreate(&event));
	OK(cudaGraphAddEventRecordNode(&node, body, NULL, 0, event));
	refuses(g);
	OK(cudaEventDestroy(event));
	g = new_graph();
	OK(add(g, new_handle(g), 2, &body));
	OK(cudaGraphAddMemcpyNode1D(&node, body, NULL, 0, data, mine, sizeof(mine),
				    cudaMemcpyHostToDevice));
	refuses(g);
	still_works(1);
	/* Two conditional nodes, one of them in the body of another. */
	g = new_graph();
	OK(add(g, new_handle(g), 1, &body));
	OK(add(body, new_handle(body), 1, &inner));
	add_set(inner, 2);
	OK(cudaGraphInstantiate(&exec, g, 0));
	launch(exec, 2);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphInstantiate(&exec, g, 0));
	launch(exec, 2);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
	/* The graph around the bodies can have such nodes. */
	g = new_graph();
	OK(add(g, new_handle(g), 1, &body));
	add_set(body, 3);
	OK(cudaGraphAddHostNode(&node, g, NULL, 0, &host));
	OK(cudaGraphInstantiate(&exec, g, 0));
	launch(exec, 3);
	launch(exec, 3);
	REQUIRE(calls == 2, "the host function ran %d times", calls);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
	/* A body belongs to its node. It is not a graph of its own. */
	g = new_graph();
	OK(add(g, new_handle(g), 1, &body));
	REFUSED(cudaGraphDestroy(body), cudaErrorInvalidValue);
	OK(cudaGraphDestroy(g));
	still_works(3);
}

static void bad_handles(void)
{
	cudaGraphInstantiateParams how = {0};
	cudaGraphConditionalHandle h;
	cudaGraph_t g, body, other;
	cudaGraphExec_t exec;

	g = new_graph();
	other = new_graph();
	h = new_handle(g);
	REFUSED(add(g, h + 1000, 1, &body), cudaErrorInvalidValue);
	REFUSED(add(g, 0, 1, &body), cudaErrorInvalidValue);
	REFUSED(add(other, h, 1, &body), cudaErrorInvalidValue);
	OK(cudaGraphDestroy(other));
	REFUSED(add(g, h, 257, &body), cudaErrorNotSupported);
	REFUSED(cudaGraphInstantiateWithParams(&exec, g, &how), cudaErrorInvalidValue);
	REQUIRE(how.result_out == cudaGraphInstantiateConditionalHandleUnused, "result %d",
		how.result_out);
	/* The refused calls have not used up the handle. */
	OK(add(g, h, 256, &body));
	REFUSED(add(body, new_handle(g), 1, &other), cudaErrorNotSupported);
	OK(cudaGraphDestroy(g));
	/* The handle's graph is destroyed. */
	g = new_graph();
	REFUSED(add(g, h, 1, &body), cudaErrorInvalidValue);
	OK(cudaGraphDestroy(g));
	still_works(4);
}

static void without_its_graph(void)
{
	cudaGraph_t g;
	cudaGraphExec_t exec = good(&g, 5);

	OK(cudaGraphDestroy(g));
	launch(exec, 5);
	OK(cudaGraphExecDestroy(exec));
}

/* The host does not have the parent's objects in the child's session. */
static void in_a_child(void)
{
	cudaGraph_t g, body;
	cudaGraphConditionalHandle h;
	cudaGraphExec_t exec = good(&g, 6);
	int status;
	pid_t pid;

	h = new_handle(g);
	pid = fork();
	if (!pid) {
		REFUSED(cudaGraphLaunch(exec, NULL), cudaErrorInvalidValue);
		REFUSED(add(g, h, 1, &body), cudaErrorInvalidValue);
		OK(cudaGraphExecDestroy(exec));
		OK(cudaMalloc((void **)&data, LEN));
		OK(cudaMallocHost((void **)&pinned, LEN));
		still_works(7);
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid && !status, "the child: %d", status);
	launch(exec, 6);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
}

static void after_a_reset(void)
{
	cudaGraph_t g, body;
	cudaGraphConditionalHandle h;
	cudaGraphExec_t exec = good(&g, 8);

	h = new_handle(g);
	OK(cudaDeviceReset());
	OK(cudaMalloc((void **)&data, LEN));
	OK(cudaMallocHost((void **)&pinned, LEN));
	REFUSED(add(g, h, 1, &body), cudaErrorInvalidValue);
	still_works(9);
	/*
	 * The host may have given the number to another graph since then. It is not taken for that
	 * graph.
	 */
	REFUSED(cudaGraphLaunch(exec, NULL), cudaErrorInvalidValue);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
	still_works(10);
}

int main(void)
{
	OK(cudaMalloc((void **)&data, LEN));
	OK(cudaMallocHost((void **)&pinned, LEN));
	bad_bodies();
	bad_handles();
	without_its_graph();
	in_a_child();
	after_a_reset();
	return 0;
}

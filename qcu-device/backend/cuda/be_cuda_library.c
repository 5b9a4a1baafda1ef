// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The host's own cuBLAS and its sisters. They are loaded when a program first uses them. Each has a
 * runtime of its own linked in, which finds the primary context that this backend has made.
 *
 * And calls of libraries in a graph. Only the library knows its kernels, so a stream of ours is
 * captured while it makes the call, straight into the graph. In this mode a capture disturbs no
 * other thread. There is one such stream for each device, and it stays: a library's handle may
 * still be set to it.
 */
#define _GNU_SOURCE /* RTLD_* */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/backend/cuda/be_cuda.h"
#include "qcu-device/base/gap.h"

/* Where the toolkit is, if the loader's cache does not know it. */
static const char *const folders[] = {"", "/usr/local/cuda/lib64/", "/usr/local/cuda-13/lib64/"};

/* The package of Debian, Ubuntu and NVIDIA's repository that has it. */
static const char *package(const char *soname)
{
	if (!strncmp(soname, "libcublas", 9))
		return "libcublas-13-0";
	if (!strncmp(soname, "libcudnn", 8))
		return "libcudnn9-cuda-13";
	return "of the CUDA Toolkit 13";
}

void *cu_lib_open(struct be *be, const char *soname, char *why, size_t size)
{
	char path[256];
	void *lib = NULL;
	size_t i;

	(void)be;
	/*
	 * In a program's own process (the tests' loopback) the guest's shim has this name, and the
	 * loader would take it for the library: its calls would come back here for ever.
	 */
	if (dlsym(RTLD_DEFAULT, "qcul_lib_begin")) {
		snprintf(why, size, "without a VM, %s cannot be used with a real GPU", soname);
		return NULL;
	}
	/* Device addresses lie before it and behind it, so it lies between two gaps. */
	if (!gap_leave()) {
		snprintf(why, size, "there is no room left that hides where it would be");
		return NULL;
	}
	for (i = 0; i < sizeof(folders) / sizeof(folders[0]) && !lib; i++) {
		snprintf(path, sizeof(path), "%s%s", folders[i], soname);
		lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	if (!lib) {
		const char *error = dlerror();

		snprintf(why, size, "the host has no %s: install the package %s there (%s)", soname,
			 package(soname), error ? error : "no reason is known");
	}
	(void)gap_leave();
	return lib;
}

void *cu_lib_symbol(struct be *be, void *lib, const char *name)
{
	(void)be;
	return dlsym(lib, name);
}

int cu_native(struct be *be, struct be_stream *s, void **stream)
{
	int ret = cu_stream_use(be, s);

	*stream = s->s;
	return ret;
}

/* ---- calls in a graph ---- */

/* be->capture_lock is held. */
static int get_capture_stream(struct be *be, unsigned int dev, cudaStream_t *s)
{
	struct cu_capture *c = &be->captures[dev];
	unsigned int life = atomic_load(&be->life[dev]);
	int ret = QCU_ERR_Success;

	if (!c->s || c->life != life) {
		ret = CU(be, cudaStreamCreateWithFlags, &c->s, cudaStreamNonBlocking);
		c->life = life;
	}
	if (ret)
		c->s = NULL;
	*s = c->s;
	return ret;
}

/* The nodes at the end of what has been captured. *last is the caller's. */
static int ends(struct be *be, cudaStream_t s, cudaGraphNode_t **last, size_t *count)
{
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
	const cudaGraphNode_t *nodes = NULL;
	int ret = CU(be, cudaStreamGetCaptureInfo, s, &status, NULL, NULL, &nodes, NULL, count);

	if (!ret && status != cudaStreamCaptureStatusActive)
		ret = QCU_ERR_StreamCaptureInvalidated;
	if (ret)
		return ret;
	*last = malloc((*count + 1) * sizeof(**last));
	if (!*last)
		return QCU_ERR_MemoryAllocation;
	if (*count)
		memcpy(*last, nodes, *count * sizeof(**last));
	return QCU_ERR_Success;
}

static int capture(struct be *be, cudaGraph_t graph, const struct be_node *n,
		   const cudaGraphNode_t *deps, cudaGraphNode_t **last, size_t *count)
{
	cudaGraph_t same;
	cudaStream_t s;
	int ret = get_capture_stream(be, n->dev, &s), err;

	if (!ret)
		ret = CU(be, cudaStreamBeginCaptureToGraph, s, graph, deps, NULL, n->dep_count,
			 cudaStreamCaptureModeRelaxed);
	if (ret)
		return ret;
	ret = n->call.fn(n->call.arg, s);
	if (!ret)
		ret = ends(be, s, last, count);
	err = CU(be, cudaStreamEndCapture, s, &same);
	return ret ? ret : err;
}

int cu_graph_call(struct be *be, cudaGraph_t graph, const struct be_node *n,
		  const cudaGraphNode_t *deps, cudaGraphNode_t *node)
{
	cudaGraphNode_t *last = NULL;
	size_t count = 0;
	int ret;

	pthread_mutex_lock(&be->capture_lock);
	ret = capture(be, graph, n, deps, &last, &count);
	pthread_mutex_unlock(&be->capture_lock);
	if (!ret && count == 1)
		*node = *last;
	else if (!ret)
		ret = CU(be, cudaGraphAddEmptyNode, node, graph, last, count);
	free(last);
	return ret;
}

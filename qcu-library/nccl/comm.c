// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How a communicator comes to be: the ranks meet, each allocates its memory and opens that of the
 * others, and all hear whether all could.
 */
#define _GNU_SOURCE /* getrandom */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "qcu-library/nccl/comm.h"

#define MAGIC 0x716e63636c636f6dull

/* What a rank tells the others first. */
struct who {
	unsigned char process[16], gpu[16]; /* random, and the GPU's UUID */
	int32_t pid, device;
	uint32_t channels, pad;
};

/* And then. */
struct what {
	ncclResult_t result;
	uint32_t pad;
	uint64_t address;
	cudaIpcMemHandle_t handle;
};

_Static_assert(sizeof(struct who) <= QCCL_MOST_OUR && sizeof(struct what) <= QCCL_MOST_OUR,
	       "fits into a message");

ncclResult_t qccl_check(const struct ncclComm *c)
{
	if (!c)
		return qccl_fail(ncclInvalidArgument, "the communicator is NULL");
	if (c->magic != MAGIC)
		return qccl_fail(ncclInvalidArgument, "no communicator, or a destroyed one");
	return ncclSuccess;
}

struct ncclComm *qccl_comm_new(void)
{
	struct ncclComm *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->magic = MAGIC;
	c->meeting.fd = -1;
	c->state = ncclInProgress;
	return c;
}

struct qccl_device qccl_use_device(int device)
{
	struct qccl_device d = {-1};

	if (cudaGetDevice(&d.before))
		d.before = -1;
	if (d.before == device)
		d.before = -1;
	else
		(void)cudaSetDevice(device);
	return d;
}

void qccl_use_before(struct qccl_device d)
{
	if (d.before >= 0)
		(void)cudaSetDevice(d.before);
}

/* The same for all threads of a process, and for no other process. */
static void name_process(struct who *w)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static unsigned char name[16];
	static bool named;

	pthread_mutex_lock(&lock);
	if (!named)
		named = getrandom(name, sizeof(name), 0) == sizeof(name);
	memcpy(w->process, name, sizeof(name));
	pthread_mutex_unlock(&lock);
	w->pid = getpid(); /* a fork has the name of its parent */
}

static bool same_process(const struct who *a, const struct who *b)
{
	return a->pid == b->pid && !memcmp(a->process, b->process, sizeof(a->process));
}

/* All blocks of a launch must run at a time. NVIDIA's library has the same variable. */
static uint32_t most_channels(const struct cudaDeviceProp *prop)
{
	const char *wish = getenv("NCCL_MAX_NCHANNELS");
	long n = wish ? strtol(wish, NULL, 10) : 0;

	if (n < 1 || n > (long)QCCL_MAX_CHANNELS)
		n = QCCL_MAX_CHANNELS;
	return (uint32_t)(n < prop->multiProcessorCount ? n : prop->multiProcessorCount);
}

static ncclResult_t introduce(struct ncclComm *c, struct who *all)
{
	struct cudaDeviceProp prop;
	struct who mine;
	ncclResult_t res;

	memset(&mine, 0, sizeof(mine));
	name_process(&mine);
	res = qccl_cuda(cudaGetDeviceProperties(&prop, c->device), "cudaGetDeviceProperties");
	if (res)
		return res;
	memcpy(mine.gpu, prop.uuid.bytes, sizeof(mine.gpu));
	mine.device = c->device;
	mine.channels = most_channels(&prop);
	res = qccl_tell(&c->meeting, &mine, all, sizeof(mine));
	if (res)
		return res;
	c->channels = mine.channels;
	for (int i = 0; i < c->ranks; i++) {
		if (all[i].channels < c->channels)
			c->channels = all[i].channels;
		for (int k = 0; k < i; k++)
			if (!memcmp(all[i].gpu, all[k].gpu, sizeof(all[i].gpu)))
				return qccl_refuse(ncclInvalidUsage,
						   "ranks %d and %d are on the same GPU", k, i);
	}
	return ncclSuccess;
}

static ncclResult_t allocate(struct ncclComm *c, const struct who *all, struct what *mine)
{
	void *stop;
	ncclResult_t res;

	res = qccl_cuda(cudaHostAlloc(&stop, sizeof(*c->stop),
				      cudaHostAllocMapped | cudaHostAllocPortable),
			"cudaHostAlloc");
	if (res)
		return res;
	c->stop = stop;
	*c->stop = 0;
	res = qccl_cuda(cudaMalloc(&c->memory, qccl_queue((uint32_t)c->ranks, c->channels,
							  (uint32_t)c->ranks - 1)),
			"cudaMalloc");
	if (res)
		return res;
	mine->address = (uint64_t)(uintptr_t)c->memory;
	for (int i = 0; i < c->ranks; i++)
		if (!same_process(&all[i], &all[c->rank]))
			return qccl_cuda(cudaIpcGetMemHandle(&mine->handle, c->memory),
					 "cudaIpcGetMemHandle");
	return ncclSuccess;
}

static ncclResult_t reach(struct ncclComm *c, int i, const struct who *all, const struct what *what,
			  uint64_t *base)
{
	const struct who *who = &all[i];
	cudaError_t err;
	int can = 0;

	if (!same_process(who, &all[c->rank])) {
		err = cudaIpcOpenMemHandle(&c->opened[i], what[i].handle,
					   cudaIpcMemLazyEnablePeerAccess);
		if (err)
			return qccl_refuse(ncclUnhandledCudaError,
					   "rank %d cannot use the memory of rank %d (%s): the "
					   "GPUs must be peers",
					   c->rank, i, cudaGetErrorString(err));
		*base = (uint64_t)(uintptr_t)c->opened[i];
		return ncclSuccess;
	}
	(void)cudaDeviceCanAccessPeer(&can, c->device, who->device);
	if (!can)
		return qccl_refuse(ncclSystemError,
				   "devices %d and %d are no peers, which is not supported",
				   c->device, who->device);
	err = cudaDeviceEnablePeerAccess(who->device, 0);
	if (err == cudaErrorPeerAccessAlreadyEnabled) {
		(void)cudaGetLastError();
		err = cudaSuccess;
	}
	*base = what[i].address;
	return qccl_cuda(err, "cudaDeviceEnablePeerAccess");
}

/* The place of a rank's slots in the memory of another one. */
static uint32_t place_in(int owner, int from)
{
	return (uint32_t)(from - (from > owner));
}

/* `base`: the memory of rank i. */
static struct qccl_way way_to(const struct ncclComm *c, int i, uint64_t base)
{
	uint64_t own = (uint64_t)(uintptr_t)c->memory;
	uint32_t n = (uint32_t)c->ranks, me = (uint32_t)c->rank, other = (uint32_t)i;

	return (struct qccl_way){
		.out = base + qccl_queue(n, c->channels, place_in(i, c->rank)),
		.in = own + qccl_queue(n, c->channels, place_in(c->rank, i)),
		.arrived_there = base + qccl_counter(n, QCCL_ARRIVED, me),
		.credit_here = own + qccl_counter(n, QCCL_CREDIT, other),
		.arrived_here = own + qccl_counter(n, QCCL_ARRIVED, other),
		.credit_there = base + qccl_counter(n, QCCL_CREDIT, me),
	};
}

/* In a stream of its own: the default one may wait for others. */
static ncclResult_t fill_memory(struct ncclComm *c, const struct qccl_shared *s)
{
	cudaStream_t stream;
	ncclResult_t res;

	res = qccl_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
			"cudaStreamCreate");
	if (res)
		return res;
	res = qccl_cuda(cudaMemsetAsync(c->memory, 0,
					qccl_counter((uint32_t)c->ranks, QCCL_TABLES, 0), stream),
			"cudaMemsetAsync");
	if (!res && s)
		res = qccl_cuda(cudaMemcpyAsync(c->memory, s, sizeof(*s), cudaMemcpyHostToDevice,
						stream),
				"cudaMemcpyAsync");
	if (!res)
		res = qccl_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
	(void)cudaStreamDestroy(stream);
	return res;
}

static ncclResult_t connect_all(struct ncclComm *c, const struct who *who, const struct what *what)
{
	struct qccl_shared s;
	ncclResult_t res;
	uint64_t base = 0;
	void *stop;

	memset(&s, 0, sizeof(s));
	res = qccl_cuda(cudaHostGetDevicePointer(&stop, (void *)c->stop, 0),
			"cudaHostGetDevicePointer");
	s.stop = (uint64_t)(uintptr_t)stop;
	for (int i = 0; !res && i < c->ranks; i++) {
		if (i == c->rank)
			continue;
		res = reach(c, i, who, what, &base);
		if (!res)
			s.way[i] = way_to(c, i, base);
	}
	return res ? res : fill_memory(c, &s);
}

/* Tells the own result, and returns the worst. */
static ncclResult_t agree(struct ncclComm *c, ncclResult_t mine)
{
	ncclResult_t all[QCCL_MAX_RANKS], res;

	res = qccl_tell(&c->meeting, &mine, all, sizeof(mine));
	if (mine || res)
		return mine ? mine : res;
	for (int i = 0; i < c->ranks; i++)
		if (all[i])
			return qccl_fail(ncclRemoteError, "rank %d could not join: %s", i,
					 ncclGetErrorString(all[i]));
	return ncclSuccess;
}

static ncclResult_t join(struct ncclComm *c)
{
	struct what mine, what[QCCL_MAX_RANKS];
	struct who who[QCCL_MAX_RANKS];
	ncclResult_t res, told;

	memset(&mine, 0, sizeof(mine));
	res = introduce(c, who);
	if (res)
		return res;
	mine.result = allocate(c, who, &mine);
	told = qccl_tell(&c->meeting, &mine, what, sizeof(mine));
	if (mine.result || told)
		return mine.result ? mine.result : told;
	for (int i = 0; i < c->ranks; i++)
		if (what[i].result)
			return qccl_fail(ncclRemoteError, "rank %d could not join: %s", i,
					 ncclGetErrorString(what[i].result));
	return agree(c, connect_all(c, who, what));
}

ncclResult_t qccl_comm_join(struct ncclComm *c, const ncclUniqueId *id, int rank, int ranks)
{
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	struct qccl_device d;

	c->rank = rank;
	c->ranks = ranks;
	d = qccl_use_device(c->device);
	c->state = qccl_meet(&c->meeting, id, rank, ranks);
	if (!c->state) {
		/* A capture of another thread is no business of ours. */
		(void)cudaThreadExchangeStreamCaptureMode(&mode);
		c->state = join(c);
		(void)cudaThreadExchangeStreamCaptureMode(&mode);
	}
	qccl_use_before(d);
	return c->state;
}

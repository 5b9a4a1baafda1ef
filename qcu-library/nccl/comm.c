// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Creates a communicator. The ranks meet. Each rank allocates its memory, opens the memory of the
 * others on the same machine, and tells all others whether this worked. Ranks that cannot reach
 * each other's memory are far from one another (far.h).
 */
#define _GNU_SOURCE /* getrandom */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "qcu-library/nccl/comm.h"
#include "qcu-library/nccl/net.h"
#include "qcu-library/nccl/wire.h"

#define MAGIC 0x716e63636c636f6dull

ncclResult_t qccl_check(const struct ncclComm *c)
{
	if (!c)
		return qccl_fail(ncclInvalidArgument, "the communicator is NULL");
	if (c->magic != MAGIC)
		return qccl_fail(ncclInvalidArgument, "no communicator, or a destroyed one");
	return ncclSuccess;
}

ncclResult_t qccl_state(const struct ncclComm *c)
{
	/* The far ranks of a revoked one are gone because their work was stopped. */
	return !c->state && !c->revoked && c->far && qccl_far_lost(c->far) ? ncclRemoteError
									   : c->state;
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
static void name_process(struct qccl_who *w)
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

static void name_machine(struct qccl_who *w)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, w->machine, sizeof(w->machine) - 1);

	if (n < 0)
		memset(w->machine, 0, sizeof(w->machine));
	if (fd >= 0)
		close(fd);
}

static bool same_process(const struct qccl_who *a, const struct qccl_who *b)
{
	return a->pid == b->pid && !memcmp(a->process, b->process, sizeof(a->process));
}

static bool same_machine(const struct qccl_who *a, const struct qccl_who *b)
{
	return !memcmp(a->machine, b->machine, sizeof(a->machine));
}

/* Whether one may be able to use the other one's memory. */
static bool near(const struct qccl_who *a, const struct qccl_who *b)
{
	return same_machine(a, b) && !a->alone && !b->alone;
}

/* The index of a rank's slots in the memory of another one. */
static uint32_t index_of_writer(const struct qccl_who *all, int owner, int from)
{
	uint32_t index = 0;

	for (int i = 0; i < from; i++)
		index += i != owner && near(&all[i], &all[owner]);
	return index;
}

/* The kernels of far ranks use few channels. */
static void limit_channels(struct ncclComm *c)
{
	uint32_t most = qccl_far_channels(c->ranks);

	c->channels = c->channels < most ? c->channels : most;
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

static ncclResult_t introduce(struct ncclComm *c, struct qccl_who *all)
{
	struct cudaDeviceProp prop;
	struct qccl_who mine;
	ncclResult_t res;

	memset(&mine, 0, sizeof(mine));
	name_process(&mine);
	name_machine(&mine);
	mine.alone = qccl_net_alone();
	mine.by_tcp = c->meeting.by_tcp;
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
		c->wide |= all[i].by_tcp;
		if (all[i].channels < c->channels)
			c->channels = all[i].channels;
		/* In another VM the number of a GPU may be the same. */
		for (int k = 0; k < i; k++)
			if (!memcmp(all[i].gpu, all[k].gpu, sizeof(all[i].gpu)) &&
			    same_machine(&all[i], &all[k]))
				return qccl_refuse(ncclInvalidUsage,
						   "ranks %d and %d are on the same GPU", k, i);
	}
	for (int i = 1; i < c->ranks; i++)
		if (!near(&all[i], &all[0])) {
			limit_channels(c);
			break;
		}
	return ncclSuccess;
}

static ncclResult_t allocate_rank_memory(struct ncclComm *c, const struct qccl_who *all,
					 struct qccl_what *mine)
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
	c->bytes = qccl_queue((uint32_t)c->ranks, c->channels,
			      index_of_writer(all, c->rank, c->ranks));
	res = qccl_cuda(cudaMalloc(&c->memory, c->bytes), "cudaMalloc");
	if (res)
		return res;
	mine->address = (uint64_t)(uintptr_t)c->memory;
	for (int i = 0; i < c->ranks && !mine->has_handle; i++)
		mine->has_handle = near(&all[i], &all[c->rank]) &&
				   !same_process(&all[i], &all[c->rank]) &&
				   !cudaIpcGetMemHandle(&mine->handle, c->memory);
	return ncclSuccess;
}

/* The memory of a near rank as this device sees it. 0: it does not. */
static uint64_t reach(struct ncclComm *c, int i, const struct qccl_who *all,
		      const struct qccl_what *what)
{
	const struct qccl_who *who = &all[i];
	cudaError_t err;
	int can = 0;

	if (!same_process(who, &all[c->rank])) {
		if (!what[i].has_handle)
			return 0;
		err = cudaIpcOpenMemHandle(&c->opened[i], what[i].handle,
					   cudaIpcMemLazyEnablePeerAccess);
		if (err)
			c->opened[i] = NULL;
		return (uint64_t)(uintptr_t)c->opened[i];
	}
	if (cudaDeviceCanAccessPeer(&can, c->device, who->device) || !can)
		return 0;
	err = cudaDeviceEnablePeerAccess(who->device, 0);
	return err && err != cudaErrorPeerAccessAlreadyEnabled ? 0 : what[i].address;
}

/* `base`: the memory of rank i. */
static struct qccl_way way_to(const struct ncclComm *c, const struct qccl_who *all, int i,
			      uint64_t base)
{
	uint64_t own = (uint64_t)(uintptr_t)c->memory;
	uint32_t n = (uint32_t)c->ranks, me = (uint32_t)c->rank, other = (uint32_t)i;

	return (struct qccl_way){
		.out = base + qccl_queue(n, c->channels, index_of_writer(all, i, c->rank)),
		.in = own + qccl_queue(n, c->channels, index_of_writer(all, c->rank, i)),
		.arrived_there = base + qccl_counter(n, QCCL_ARRIVED, me),
		.credit_here = own + qccl_counter(n, QCCL_CREDIT, other),
		.arrived_here = own + qccl_counter(n, QCCL_ARRIVED, other),
		.credit_there = base + qccl_counter(n, QCCL_CREDIT, me),
	};
}

/* Writes the head of this rank's memory. In a stream of its own: the default one may wait for
 * others. */
static ncclResult_t write_head(struct ncclComm *c, const struct qccl_shared *s, bool clear_counts)
{
	cudaStream_t stream;
	ncclResult_t res;

	res = qccl_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
			"cudaStreamCreate");
	if (res)
		return res;
	if (clear_counts)
		res = qccl_cuda(cudaMemsetAsync(c->memory, 0,
						qccl_counter((uint32_t)c->ranks, QCCL_TABLES, 0),
						stream),
				"cudaMemsetAsync");
	if (!res)
		res = qccl_cuda(cudaMemcpyAsync(c->memory, s, sizeof(*s), cudaMemcpyHostToDevice,
						stream),
				"cudaMemcpyAsync");
	if (!res)
		res = qccl_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
	(void)cudaStreamDestroy(stream);
	return res;
}

static ncclResult_t connect_near_ranks(struct ncclComm *c, const struct qccl_who *who,
				       const struct qccl_what *what, struct qccl_shared *s,
				       uint32_t *missed)
{
	ncclResult_t res;
	void *stop;

	memset(s, 0, sizeof(*s));
	res = qccl_cuda(cudaHostGetDevicePointer(&stop, (void *)c->stop, 0),
			"cudaHostGetDevicePointer");
	if (res)
		return res;
	s->stop = (uint64_t)(uintptr_t)stop;
	for (int i = 0; i < c->ranks; i++) {
		uint64_t base;

		if (i == c->rank)
			continue;
		base = near(&who[i], &who[c->rank]) ? reach(c, i, who, what) : 0;
		if (base)
			s->way[i] = way_to(c, who, i, base);
		else
			*missed |= 1u << i;
	}
	(void)cudaGetLastError();
	return write_head(c, s, true);
}

static ncclResult_t other_failed(int rank, ncclResult_t result)
{
	return qccl_fail(ncclRemoteError, "rank %d could not join: %s", rank,
			 ncclGetErrorString(result));
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
			return other_failed(i, all[i]);
	return ncclSuccess;
}

/* All tell whom they have reached. *far: the bits of this rank's far ranks; *any: some rank has
 * one. */
static ncclResult_t find_far(struct ncclComm *c, const struct qccl_reached *mine, uint32_t *far,
			     bool *any)
{
	struct qccl_reached all[QCCL_MAX_RANKS];
	ncclResult_t res;

	res = qccl_tell(&c->meeting, mine, all, sizeof(*mine));
	if (mine->result || res)
		return mine->result ? mine->result : res;
	*far = mine->missed;
	*any = false;
	for (int i = 0; i < c->ranks; i++) {
		if (all[i].result)
			return other_failed(i, all[i].result);
		if (all[i].missed & 1u << c->rank)
			*far |= 1u << i;
		*any |= all[i].missed != 0;
	}
	return ncclSuccess;
}

static ncclResult_t join(struct ncclComm *c)
{
	struct qccl_reached mine_reached = {ncclSuccess, 0};
	struct qccl_what mine, what[QCCL_MAX_RANKS];
	struct qccl_who who[QCCL_MAX_RANKS];
	ncclResult_t res, told;
	struct qccl_shared s;
	uint32_t far;
	bool any;

	memset(&mine, 0, sizeof(mine));
	res = introduce(c, who);
	if (res)
		return res;
	mine.result = allocate_rank_memory(c, who, &mine);
	told = qccl_tell(&c->meeting, &mine, what, sizeof(mine));
	if (mine.result || told)
		return mine.result ? mine.result : told;
	for (int i = 0; i < c->ranks; i++)
		if (what[i].result)
			return other_failed(i, what[i].result);
	mine_reached.result = connect_near_ranks(c, who, what, &s, &mine_reached.missed);
	res = find_far(c, &mine_reached, &far, &any);
	if (res || !any)
		return res;
	limit_channels(c);
	res = qccl_far_open(&c->far, &c->meeting, far, c->channels, c->stop, s.way, &s.done);
	if (!res)
		res = write_head(c, &s, false);
	return agree(c, res);
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

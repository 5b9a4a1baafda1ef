// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Makes one launch for each operation. The number of channels, and the amount of data for each
 * slot, depend only on the operation's size, so that all ranks choose the same.
 */
#include <stdlib.h>

#include "qcu-library/nccl/kernels/kernels.h"
#include "qcu-library/nccl/work.h"

#define PER_CHANNEL 16384u /* bytes: less is not worth another channel */
#define AT_ONCE \
	65536u /* all-reduce of more than two ranks: up to here each sends all it has to all */

static const void *kernel_of(unsigned int k)
{
	switch (k) {
#define X(name, number) \
	case number:    \
		return qccl_kernel_##name();
		QCCL_TYPES(X)
#undef X
	case QCCL_KERNEL_RELAY:
		return qccl_kernel_relay();
	case QCCL_KERNEL_FEW:
		return qccl_kernel_few();
	default:
		return qccl_kernel_many();
	}
}

size_t qccl_size_of(ncclDataType_t type)
{
	switch (type) {
	case ncclInt8:
	case ncclUint8:
	case ncclFloat8e4m3:
	case ncclFloat8e5m2:
		return 1;
	case ncclFloat16:
	case ncclBfloat16:
		return 2;
	case ncclInt32:
	case ncclUint32:
	case ncclFloat32:
		return 4;
	case ncclInt64:
	case ncclUint64:
	case ncclFloat64:
		return 8;
	}
	return 0;
}

static bool reduces(enum qccl_call call)
{
	return call <= QCCL_CALL_REDUCE_SCATTER;
}

static ncclResult_t load_kernel(struct ncclComm *c, unsigned int k)
{
	struct cudaFuncAttributes a;
	struct qccl_device d;
	ncclResult_t res;

	if (c->loaded[k])
		return ncclSuccess;
	d = qccl_use_device(c->device);
	res = qccl_cuda(cudaFuncGetAttributes(&a, kernel_of(k)), "loading a kernel");
	qccl_use_before(d);
	c->loaded[k] = !res;
	return res;
}

ncclResult_t qccl_load(const struct qccl_task *t)
{
	ncclResult_t res;

	if (reduces(t->call))
		return load_kernel(t->comm, t->type);
	if (t->call == QCCL_CALL_BROADCAST)
		return load_kernel(t->comm, QCCL_KERNEL_RELAY);
	res = load_kernel(t->comm, QCCL_KERNEL_FEW);
	return res ? res : load_kernel(t->comm, QCCL_KERNEL_MANY);
}

/* Shares `bytes` out: *channels, and the bytes of a slot, a multiple of 16. */
static uint32_t share_out_channels(const struct ncclComm *c, uint64_t bytes, uint32_t *channels)
{
	uint64_t n = bytes / PER_CHANNEL, each;

	n = n < 1 ? 1 : n > c->channels ? c->channels : n;
	each = ((bytes + n - 1) / n + 15) / 16 * 16;
	*channels = (uint32_t)n;
	return each < QCCL_SLOT_BYTES ? (uint32_t)each : QCCL_SLOT_BYTES;
}

static ncclResult_t launch_ordered_kernel(struct ncclComm *c, unsigned int k, void *work,
					  uint32_t channels, uint32_t chunk, cudaStream_t stream)
{
	uint32_t threads = (chunk / 16 + 31) / 32 * 32;
	void *args[] = {work};
	ncclResult_t res;

	threads = threads < 64 ? 64 : threads > QCCL_THREADS ? QCCL_THREADS : threads;
	res = qccl_order(c, stream);
	/* What a kernel takes begins with this, whichever it is. */
	if (!res && c->far)
		((struct qccl_self *)work)->number =
			qccl_far_launch(c->far, channels, qccl_is_captured(stream));
	if (!res)
		res = qccl_cuda(cudaLaunchKernel(kernel_of(k), (dim3){channels, 1, 1},
						 (dim3){threads, 1, 1}, args, 0, stream),
				"a launch");
	return res ? res : qccl_ordered(c, stream);
}

static ncclResult_t copy_device_bytes(void *to, const void *from, size_t bytes, cudaStream_t stream)
{
	if (to == from || !bytes)
		return ncclSuccess;
	return qccl_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream),
			 "cudaMemcpyAsync");
}

static struct qccl_self self_of(const struct ncclComm *c)
{
	return (struct qccl_self){
		.shared = (uint64_t)(uintptr_t)c->memory,
		.rank = (uint32_t)c->rank,
		.ranks = (uint32_t)c->ranks,
	};
}

static ncclResult_t launch_reduction(const struct qccl_task *t)
{
	struct ncclComm *c = t->comm;
	size_t size = qccl_size_of(t->type);
	uint64_t bytes = t->count * size;
	uint32_t channels, chunk;
	struct qccl_work w = {
		.self = self_of(c),
		.in = (uint64_t)(uintptr_t)t->in,
		.out = (uint64_t)(uintptr_t)t->out,
		.count = t->count,
		.scalar = t->scalar,
		.kind = QCCL_EXCHANGE,
		.op = t->op,
		.root = (uint32_t)t->root,
		.average = t->average,
		.scalar_is_address = t->scalar_is_address,
	};

	if (c->ranks == 1 && t->op != QCCL_SCALED)
		return copy_device_bytes(t->out, t->in, bytes, t->stream);
	if (t->call == QCCL_CALL_REDUCE) {
		w.kind = QCCL_CHAIN;
	} else if (t->call == QCCL_CALL_REDUCE_SCATTER) {
		w.stride = t->count;
	} else if (c->ranks > 2 && bytes > AT_ONCE) {
		w.kind = QCCL_SPREAD;
		bytes = (bytes + (uint64_t)c->ranks - 1) / (uint64_t)c->ranks;
	}
	chunk = share_out_channels(c, bytes, &channels);
	w.chunk = chunk / size;
	return launch_ordered_kernel(c, t->type, &w, channels, chunk, t->stream);
}

static ncclResult_t launch_broadcast(const struct qccl_task *t)
{
	struct ncclComm *c = t->comm;
	uint64_t bytes = t->count * qccl_size_of(t->type);
	uint32_t channels, chunk = share_out_channels(c, bytes, &channels);
	struct qccl_work w = {
		.self = self_of(c),
		.in = (uint64_t)(uintptr_t)t->in,
		.out = (uint64_t)(uintptr_t)t->out,
		.count = bytes,
		.chunk = chunk,
		.kind = QCCL_RELAY,
		.root = (uint32_t)t->root,
	};

	if (c->ranks == 1)
		return copy_device_bytes(t->out, t->in, bytes, t->stream);
	return launch_ordered_kernel(c, QCCL_KERNEL_RELAY, &w, channels, chunk, t->stream);
}

/* A list of transfers that grows, and is launched when the next round does not fit. */
struct list {
	struct ncclComm *comm;
	cudaStream_t stream;
	struct qccl_many w;
};

static void add_transfer(struct list *l, bool receive, const void *at, uint64_t bytes, int peer)
{
	struct qccl_transfer *x = &l->w.transfer[l->w.count];

	x->address = (uint64_t)(uintptr_t)at;
	x->bytes = bytes;
	x->peer = (uint32_t)peer;
	x->receive = receive;
	x->chunk = share_out_channels(l->comm, bytes, &x->channels);
	x->pad = 0;
	x->behind = -1;
	for (uint32_t i = 0; i < l->w.count; i++)
		if (l->w.transfer[i].peer == x->peer && l->w.transfer[i].receive == x->receive)
			x->behind = (int32_t)i;
	l->w.count++;
}

/* Launches what is in the list, which is empty then. */
static ncclResult_t launch_list(struct list *l)
{
	uint32_t channels = 0, chunk = 0, n = l->w.count;
	struct qccl_few few;
	ncclResult_t res;

	for (uint32_t i = 0; i < n; i++) {
		const struct qccl_transfer *x = &l->w.transfer[i];

		channels = x->channels > channels ? x->channels : channels;
		chunk = x->chunk > chunk ? x->chunk : chunk;
	}
	if (!n)
		return ncclSuccess;
	if (n > QCCL_FEW) {
		res = launch_ordered_kernel(l->comm, QCCL_KERNEL_MANY, &l->w, channels, chunk,
					    l->stream);
		l->w.count = 0;
		return res;
	}
	few.self = l->w.self;
	few.count = n;
	few.pad = 0;
	for (uint32_t i = 0; i < n; i++)
		few.transfer[i] = l->w.transfer[i];
	l->w.count = 0;
	return launch_ordered_kernel(l->comm, QCCL_KERNEL_FEW, &few, channels, chunk, l->stream);
}

static void begin_transfer_list(struct list *l, struct ncclComm *c, cudaStream_t stream)
{
	l->comm = c;
	l->stream = stream;
	l->w.self = self_of(c);
	l->w.count = l->w.pad = 0;
}

/* Collectives that are sends and receives of parts. A part of its own a rank copies. */
static ncclResult_t launch_parts(const struct qccl_task *t)
{
	struct ncclComm *c = t->comm;
	uint64_t bytes = t->count * qccl_size_of(t->type);
	bool root = t->root == c->rank;
	bool sends_parts =
		t->call == QCCL_CALL_ALL_TO_ALL || (t->call == QCCL_CALL_SCATTER && root);
	bool sends = sends_parts || t->call == QCCL_CALL_ALL_GATHER || t->call == QCCL_CALL_GATHER;
	bool takes_parts = t->call == QCCL_CALL_ALL_TO_ALL || t->call == QCCL_CALL_ALL_GATHER ||
			   (t->call == QCCL_CALL_GATHER && root);
	bool takes = takes_parts || t->call == QCCL_CALL_SCATTER;
	const char *in = t->in;
	char *out = t->out;
	struct list l;

	begin_transfer_list(&l, c, t->stream);
	for (int i = 0; i < c->ranks; i++) {
		int to = (c->rank + i) % c->ranks, from = (c->rank + c->ranks - i) % c->ranks;
		const char *part = in + (sends_parts ? (uint64_t)to * bytes : 0);
		char *dst = out + (takes_parts ? (uint64_t)from * bytes : 0);
		ncclResult_t res;

		if (!i) {
			res = sends && takes ? copy_device_bytes(dst, part, bytes, t->stream)
					     : ncclSuccess;
			if (res)
				return res;
			continue;
		}
		if (sends && (t->call != QCCL_CALL_GATHER || to == t->root))
			add_transfer(&l, false, part, bytes, to);
		if (takes && (t->call != QCCL_CALL_SCATTER || from == t->root))
			add_transfer(&l, true, dst, bytes, from);
	}
	return launch_list(&l);
}

ncclResult_t qccl_launch(const struct qccl_task *t)
{
	struct qccl_device d = qccl_use_device(t->comm->device);
	ncclResult_t res;

	if (reduces(t->call))
		res = launch_reduction(t);
	else if (t->call == QCCL_CALL_BROADCAST)
		res = launch_broadcast(t);
	else
		res = launch_parts(t);
	qccl_use_before(d);
	return res;
}

/* Sends to oneself, in their order. */
static ncclResult_t copy_own(const struct qccl_task *t, size_t n)
{
	struct ncclComm *c = t->comm;
	size_t r = 0;

	for (size_t s = 0; s < n; s++) {
		size_t bytes = t[s].count * qccl_size_of(t[s].type);
		ncclResult_t res;

		if (t[s].call != QCCL_CALL_SEND || t[s].root != c->rank)
			continue;
		while (r < n && (t[r].call != QCCL_CALL_RECEIVE || t[r].root != c->rank))
			r++;
		if (r == n || t[r].count * qccl_size_of(t[r].type) != bytes)
			return qccl_fail(
				ncclInvalidUsage,
				"a send to oneself, and no receive of its size in the same group");
		res = copy_device_bytes(t[r].out, t[s].in, bytes, t[s].stream);
		if (res)
			return res;
		r++;
	}
	while (r < n && (t[r].call != QCCL_CALL_RECEIVE || t[r].root != c->rank))
		r++;
	return r < n ? qccl_fail(ncclInvalidUsage,
				 "a receive from oneself, and no send in the same group")
		     : ncclSuccess;
}

/*
 * Round k has the k-th send to each rank, and the k-th receive from each. A launch has whole
 * rounds, so that what does not fit into it waits for nothing that comes later on any rank.
 */
static size_t find_rounds(const struct qccl_task *t, size_t n, size_t *round)
{
	size_t rounds = 0;

	for (size_t i = 0; i < n; i++) {
		round[i] = 0;
		for (size_t k = i; k-- > 0;)
			if (t[k].call == t[i].call && t[k].root == t[i].root) {
				round[i] = round[k] + 1;
				break;
			}
		rounds = round[i] >= rounds ? round[i] + 1 : rounds;
	}
	return rounds;
}

static ncclResult_t launch_rounds(const struct qccl_task *t, size_t n)
{
	struct ncclComm *c = t->comm;
	size_t *round = calloc(n, sizeof(*round)), rounds;
	ncclResult_t res = ncclSuccess;
	struct list l;

	if (!round)
		return qccl_fail(ncclSystemError, "no memory");
	rounds = find_rounds(t, n, round);
	begin_transfer_list(&l, c, t->stream);
	for (size_t k = 0; !res && k < rounds; k++) {
		size_t more = 0;

		for (size_t i = 0; i < n; i++)
			more += round[i] == k;
		if (l.w.count + more > QCCL_MANY)
			res = launch_list(&l);
		for (size_t i = 0; !res && i < n; i++) {
			bool receive = t[i].call == QCCL_CALL_RECEIVE;

			if (round[i] == k && t[i].root != c->rank && t[i].count)
				add_transfer(&l, receive, receive ? t[i].out : t[i].in,
					     t[i].count * qccl_size_of(t[i].type), t[i].root);
		}
	}
	free(round);
	return res ? res : launch_list(&l);
}

/* Makes the streams of a group's transfers wait for one another: `first` for the others, or they
 * for it. */
static ncclResult_t join_streams(const struct qccl_task *t, size_t n, bool others_wait)
{
	ncclResult_t res = ncclSuccess;

	for (size_t i = 1; !res && i < n; i++) {
		cudaStream_t from = others_wait ? t[0].stream : t[i].stream;
		cudaStream_t to = others_wait ? t[i].stream : t[0].stream;
		cudaEvent_t e;

		if (t[i].stream == t[0].stream || t[i].stream == t[i - 1].stream)
			continue;
		res = qccl_cuda(cudaEventCreateWithFlags(&e, cudaEventDisableTiming),
				"cudaEventCreate");
		if (res)
			break;
		res = qccl_cuda(cudaEventRecord(e, from), "cudaEventRecord");
		if (!res)
			res = qccl_cuda(cudaStreamWaitEvent(to, e, 0), "cudaStreamWaitEvent");
		(void)cudaEventDestroy(e);
	}
	return res;
}

ncclResult_t qccl_launch_transfers(const struct qccl_task *t, size_t n)
{
	struct qccl_device d = qccl_use_device(t->comm->device);
	ncclResult_t res;

	res = join_streams(t, n, false);
	if (!res)
		res = copy_own(t, n);
	if (!res)
		res = launch_rounds(t, n);
	if (!res)
		res = join_streams(t, n, true);
	qccl_use_before(d);
	return res;
}

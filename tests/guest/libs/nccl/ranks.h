/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the programs that use NCCL need. A team is the ranks of a communicator that this process
 * has: all of them, or one. Elements are small whole numbers, which all types hold exactly, so that
 * results are compared for equality.
 */
#ifndef RANKS_H
#define RANKS_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#if __has_include(<nccl.h>)
#include <nccl.h>
#else
#include "qcu-library/nccl/api.h"
#endif

#include "check.h"

#define NC(call)	  nc_code(__FILE__, __LINE__, #call, (call), ncclSuccess)
#define NC_IS(call, code) nc_code(__FILE__, __LINE__, #call, (call), (code))

#define MOST_RANKS 4  /* with more, products and sums would not fit into 8 bits */
#define GUARD	   64 /* bytes in front of and behind a buffer that must stay as they are */
#define GUARD_BYTE 0x5a

static inline void nc_code(const char *file, int line, const char *call, ncclResult_t got,
			   ncclResult_t want)
{
	if (got == want)
		return;
	fprintf(stderr, "%s:%d: %s\n\tgave %d %s, expected %d\n\t%s\n", file, line, call, (int)got,
		ncclGetErrorString(got), (int)want, ncclGetLastError(NULL));
	exit(1);
}

struct member {
	ncclComm_t comm;
	int rank, device;
	cudaStream_t stream;
	char *in, *out; /* on the device */
	size_t room;
};

struct team {
	int ranks, count; /* all ranks; those of this process */
	struct member member[MOST_RANKS];
};

static const size_t type_size[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
#define TYPES 10

static inline void put(void *to, ncclDataType_t type, size_t i, double v)
{
	switch (type) {
	case ncclInt8:
		((signed char *)to)[i] = (signed char)v;
		break;
	case ncclUint8:
		((unsigned char *)to)[i] = (unsigned char)v;
		break;
	case ncclInt32:
		((int32_t *)to)[i] = (int32_t)v;
		break;
	case ncclUint32:
		((uint32_t *)to)[i] = (uint32_t)v;
		break;
	case ncclInt64:
		((int64_t *)to)[i] = (int64_t)v;
		break;
	case ncclUint64:
		((uint64_t *)to)[i] = (uint64_t)v;
		break;
	case ncclFloat16:
		((__half *)to)[i] = __float2half((float)v);
		break;
	case ncclFloat32:
		((float *)to)[i] = (float)v;
		break;
	case ncclFloat64:
		((double *)to)[i] = v;
		break;
	default:
		((__nv_bfloat16 *)to)[i] = __float2bfloat16((float)v);
	}
}

static inline double get(const void *from, ncclDataType_t type, size_t i)
{
	switch (type) {
	case ncclInt8:
		return ((const signed char *)from)[i];
	case ncclUint8:
		return ((const unsigned char *)from)[i];
	case ncclInt32:
		return ((const int32_t *)from)[i];
	case ncclUint32:
		return ((const uint32_t *)from)[i];
	case ncclInt64:
		return (double)((const int64_t *)from)[i];
	case ncclUint64:
		return (double)((const uint64_t *)from)[i];
	case ncclFloat16:
		return __half2float(((const __half *)from)[i]);
	case ncclFloat32:
		return ((const float *)from)[i];
	case ncclFloat64:
		return ((const double *)from)[i];
	default:
		return __bfloat162float(((const __nv_bfloat16 *)from)[i]);
	}
}

/* Element i of a rank: 1, 2 or 3. */
static inline double element(int rank, size_t i)
{
	return 1 + (double)(scramble((uint32_t)i, 77 + (uint32_t)rank) % 3);
}

/* Makes the streams and buffers of a team whose communicators are there. */
static inline void equip(struct team *t, size_t room)
{
	for (int k = 0; k < t->count; k++) {
		struct member *m = &t->member[k];

		CHECK(cudaSetDevice(m->device));
		CHECK(cudaStreamCreateWithFlags(&m->stream, cudaStreamNonBlocking));
		CHECK(cudaMalloc(&m->in, room + 2 * GUARD));
		CHECK(cudaMalloc(&m->out, room + 2 * GUARD));
		m->room = room;
	}
}

static inline int gpu_count(void)
{
	int n;

	CHECK(cudaGetDeviceCount(&n));
	return n < MOST_RANKS ? n : MOST_RANKS;
}

/* All ranks in this process, one for each GPU. */
static inline struct team whole_team(size_t room)
{
	ncclComm_t comm[MOST_RANKS];
	struct team t;

	memset(&t, 0, sizeof(t));
	t.ranks = t.count = gpu_count();
	NC(ncclCommInitAll(comm, t.count, NULL));
	for (int k = 0; k < t.count; k++) {
		t.member[k].comm = comm[k];
		t.member[k].rank = t.member[k].device = k;
	}
	equip(&t, room);
	return t;
}

static inline void end_team(struct team *t)
{
	for (int k = 0; k < t->count; k++) {
		struct member *m = &t->member[k];

		NC(ncclCommDestroy(m->comm));
		CHECK(cudaSetDevice(m->device));
		CHECK(cudaStreamDestroy(m->stream));
		CHECK(cudaFree(m->in));
		CHECK(cudaFree(m->out));
	}
}

/* Fills `in` of each member, from `offset` bytes on, with its elements times `factor`. */
static inline void fill_in(struct team *t, ncclDataType_t type, size_t count, size_t offset,
			   double factor)
{
	size_t bytes = count * type_size[type];
	char *host = (char *)malloc(bytes + 1);

	for (int k = 0; k < t->count; k++) {
		struct member *m = &t->member[k];

		for (size_t i = 0; i < count; i++)
			put(host, type, i, element(m->rank, i) * factor);
		REQUIRE(bytes + offset <= m->room, "%zu bytes", bytes + offset);
		CHECK(cudaSetDevice(m->device));
		CHECK(cudaMemcpy(m->in + GUARD + offset, host, bytes, cudaMemcpyHostToDevice));
		CHECK(cudaMemset(m->out, GUARD_BYTE, m->room + 2 * GUARD));
		CHECK(cudaDeviceSynchronize());
	}
	free(host);
}

static inline void wait_all(struct team *t)
{
	for (int k = 0; k < t->count; k++) {
		CHECK(cudaSetDevice(t->member[k].device));
		CHECK(cudaStreamSynchronize(t->member[k].stream));
	}
}

/* What element i of a member's result must be. */
typedef double (*expected_fn)(const struct team *t, const struct member *m, size_t i,
			      const void *arg);

/* Compares `at`, which is m->in or m->out, with what is expected. In `out`, bytes around it must be
 * untouched. */
static inline void compare(struct team *t, bool in_place, ncclDataType_t type, size_t count,
			   size_t offset, expected_fn expected, const void *arg, const char *what)
{
	size_t bytes = count * type_size[type], all = bytes + offset + 2 * GUARD;
	char *host = (char *)malloc(all);

	for (int k = 0; k < t->count; k++) {
		struct member *m = &t->member[k];

		CHECK(cudaSetDevice(m->device));
		CHECK(cudaMemcpy(host, in_place ? m->in : m->out, all, cudaMemcpyDeviceToHost));
		for (size_t i = 0; i < count; i++) {
			double got = get(host + GUARD + offset, type, i),
			       want = expected(t, m, i, arg);

			REQUIRE(got == want,
				"%s: type %d, rank %d of %d, %zu at %zu: element %zu is %g, not %g",
				what, (int)type, m->rank, t->ranks, count, offset, i, got, want);
		}
		for (size_t i = 0; !in_place && i < all; i++)
			REQUIRE((i >= GUARD + offset && i < GUARD + offset + bytes) ||
					host[i] == GUARD_BYTE,
				"%s: type %d, rank %d, %zu at %zu: byte %zu beside the result was "
				"written",
				what, (int)type, m->rank, count, offset, i);
	}
	free(host);
}

#endif

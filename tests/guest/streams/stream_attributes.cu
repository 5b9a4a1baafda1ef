// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a program can query about a stream (flags, priority, device, number) and set on it
 * (attributes), and events that are recorded with flags.
 */
#include "check.h"

static cudaSynchronizationPolicy policy(cudaStream_t stream)
{
	cudaStreamAttrValue value = {};

	CHECK(cudaStreamGetAttribute(stream, cudaStreamAttributeSynchronizationPolicy, &value));
	return value.syncPolicy;
}

int main(void)
{
	cudaStream_t a, b, all[] = {NULL, cudaStreamPerThread, NULL, NULL};
	unsigned long long id[4];
	cudaStreamAttrValue value = {};
	int least, greatest, priority, device;
	unsigned int flags;
	cudaEvent_t event;

	CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	CHECK(cudaStreamCreateWithPriority(&a, cudaStreamNonBlocking, greatest));
	CHECK(cudaStreamCreate(&b));
	all[2] = a;
	all[3] = b;
	for (int i = 0; i < 4; i++) {
		CHECK(cudaStreamGetId(all[i], &id[i]));
		for (int k = 0; k < i; k++)
			REQUIRE(id[i] != id[k], "streams %d and %d have one number", i, k);
		CHECK(cudaStreamGetDevice(all[i], &device));
		REQUIRE(device == 0, "stream %d is on device %d", i, device);
	}
	CHECK(cudaStreamGetFlags(a, &flags));
	REQUIRE(flags == cudaStreamNonBlocking, "flags %x", flags);
	CHECK(cudaStreamGetFlags(b, &flags));
	REQUIRE(flags == cudaStreamDefault, "flags %x", flags);
	CHECK(cudaStreamGetPriority(a, &priority));
	REQUIRE(priority == greatest, "priority %d, not %d", priority, greatest);
	CHECK(cudaStreamGetAttribute(a, cudaStreamAttributePriority, &value));
	REQUIRE(value.priority == greatest, "priority %d, not %d", value.priority, greatest);

	/* NVIDIA's library does not define the value before it is set. */
	const cudaSynchronizationPolicy at_first = policy(b);

	value.syncPolicy = cudaSyncPolicyBlockingSync;
	CHECK(cudaStreamSetAttribute(a, cudaStreamAttributeSynchronizationPolicy, &value));
	REQUIRE(policy(a) == cudaSyncPolicyBlockingSync, "policy %d", policy(a));
	REQUIRE(policy(b) == at_first, "policy %d of the other stream", policy(b));
	CHECK(cudaStreamCopyAttributes(b, a));
	REQUIRE(policy(b) == cudaSyncPolicyBlockingSync, "policy %d, copied", policy(b));
	EXPECT(cudaStreamGetId(a, NULL), cudaErrorInvalidValue);
	(void)cudaGetLastError();

	CHECK(cudaEventCreate(&event));
	CHECK(cudaEventRecordWithFlags(event, a, cudaEventRecordDefault));
	CHECK(cudaEventSynchronize(event));
	CHECK(cudaEventQuery(event));
	CHECK(cudaEventDestroy(event));
	CHECK(cudaStreamDestroy(a));
	CHECK(cudaStreamDestroy(b));
	return verified("four streams tell and keep what is theirs");
}

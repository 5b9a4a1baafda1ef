// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Asynchronous notifications: registrations are checked, and nothing is called, because no process
 * gets more memory than its budget. NVIDIA's private tables are refused.
 */
#include "tests/loopback/check.h"

static int calls;

static void over(cudaAsyncNotificationInfo_t *info, void *data, cudaAsyncCallbackHandle_t handle)
{
	(void)info;
	(void)data;
	(void)handle;
	calls++;
}

int main(void)
{
	cudaAsyncCallbackHandle_t a, b;
	const void *table = &calls;
	cudaUUID_t id = {{0}};
	void *p;

	REFUSED(cudaDeviceRegisterAsyncNotification(0, NULL, NULL, &a), cudaErrorInvalidValue);
	REFUSED(cudaDeviceRegisterAsyncNotification(0, over, NULL, NULL), cudaErrorInvalidValue);
	REFUSED(cudaDeviceRegisterAsyncNotification(99, over, NULL, &a), cudaErrorInvalidDevice);
	REFUSED(cudaDeviceRegisterAsyncNotification(-1, over, NULL, &a), cudaErrorInvalidDevice);
	OK(cudaDeviceRegisterAsyncNotification(0, over, NULL, &a));
	OK(cudaDeviceRegisterAsyncNotification(0, over, NULL, &b));
	REQUIRE(a != b, "one handle for two registrations");
	REFUSED(cudaMalloc(&p, (size_t)1 << 50), cudaErrorMemoryAllocation);
	REFUSED(cudaDeviceUnregisterAsyncNotification(0, NULL), cudaErrorInvalidValue);
	REFUSED(cudaDeviceUnregisterAsyncNotification(0, (cudaAsyncCallbackHandle_t)&p),
		cudaErrorInvalidValue);
	REFUSED(cudaDeviceUnregisterAsyncNotification(99, a), cudaErrorInvalidDevice);
	OK(cudaDeviceUnregisterAsyncNotification(0, a));
	REFUSED(cudaDeviceUnregisterAsyncNotification(0, a), cudaErrorInvalidValue);
	OK(cudaDeviceUnregisterAsyncNotification(0, b));
	REQUIRE(!calls, "%d notifications", calls);

	REFUSED(cudaGetExportTable(NULL, &id), cudaErrorInvalidValue);
	REFUSED(cudaGetExportTable(&table, NULL), cudaErrorInvalidValue);
	REFUSED(cudaGetExportTable(&table, &id), cudaErrorNotSupported);
	REQUIRE(table == &calls, "a table all the same");
	return 0;
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Settings of a device: its limits, which the mirror keeps, and preferences about hardware that
 * today's GPUs do not have, which are checked and change nothing, as natively.
 */
#include "qcu-library/device.h"

#define LIMITS 16 /* values of cudaLimit, and some to come */

/* What has been asked for is known until any limit is set, and in this session only. */
static struct {
	_Atomic uint64_t when; /* as now() was before it was asked for; release: value */
	_Atomic uint64_t value;
} known[QCUL_DEVICES][LIMITS];
static atomic_uint changes;

static uint64_t now(void)
{
	return (uint64_t)qcul_epoch() << 32 | atomic_load(&changes);
}

void qcul_limits_forget(void)
{
	atomic_fetch_add(&changes, 1);
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	struct qCUcmd cmd;
	cudaError_t err = qcul_ready();

	if (err)
		return qcul_done(err);
	cmd = qcul_cmd(QCU_OP_LIMIT_SET);
	cmd.limit_set.limit = limit;
	cmd.limit_set.value = value;
	err = qcul_send(&cmd, 1);
	qcul_limits_forget();
	return qcul_done(err);
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
	int device = qcul_self.device;
	struct qCUcmd cmd;
	uint64_t when;
	cudaError_t err = value ? qcul_ready() : cudaErrorInvalidValue;

	if (err)
		return qcul_done(err);
	when = now();
	if ((unsigned int)limit < LIMITS &&
	    atomic_load_explicit(&known[device][limit].when, memory_order_acquire) == when) {
		*value = atomic_load(&known[device][limit].value);
		return cudaSuccess;
	}
	cmd = qcul_cmd(QCU_OP_LIMIT_GET);
	cmd.limit_get.limit = limit;
	err = qcul_send(&cmd, 1);
	if (err)
		return qcul_done(err);
	*value = cmd.limit_get.value;
	if ((unsigned int)limit < LIMITS) {
		atomic_store(&known[device][limit].value, *value);
		atomic_store_explicit(&known[device][limit].when, when, memory_order_release);
	}
	return cudaSuccess;
}

cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config)
{
	return qcul_done(config > cudaSharedMemBankSizeEightByte ? cudaErrorInvalidValue
								 : qcul_ready());
}

cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config)
{
	cudaError_t err = config ? qcul_ready() : cudaErrorInvalidValue;

	if (!err)
		*config = cudaSharedMemBankSizeFourByte;
	return qcul_done(err);
}

/* Nothing is kept in the cache for longer than it would be anyway (stream attributes). */
cudaError_t cudaCtxResetPersistingL2Cache(void)
{
	return qcul_done(qcul_ready());
}

/* A guest has no other device that could write into this one's memory. */
cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(enum cudaFlushGPUDirectRDMAWritesTarget target,
					       enum cudaFlushGPUDirectRDMAWritesScope scope)
{
	cudaError_t err = qcul_ready();

	if (!err && (target != cudaFlushGPUDirectRDMAWritesTargetCurrentDevice ||
		     (scope != cudaFlushGPUDirectRDMAWritesToOwner &&
		      scope != cudaFlushGPUDirectRDMAWritesToAllDevices)))
		err = cudaErrorInvalidValue;
	return qcul_done(err);
}

/* The guest has no driver API, so none of its functions exist. */
static cudaError_t entry_point(const char *symbol, void **function, unsigned long long flags,
			       enum cudaDriverEntryPointQueryResult *status)
{
	if (!symbol || !function || flags > cudaEnablePerThreadDefaultStream)
		return cudaErrorInvalidValue;
	*function = NULL;
	if (status)
		*status = cudaDriverEntryPointSymbolNotFound;
	return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
				    enum cudaDriverEntryPointQueryResult *status)
{
	return qcul_done(entry_point(symbol, function, flags, status));
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
					     unsigned int version, unsigned long long flags,
					     enum cudaDriverEntryPointQueryResult *status)
{
	cudaError_t err = qcul_open();

	if (!err && version > qcul_info()->driver_version)
		err = cudaErrorInvalidValue;
	return qcul_done(err ? err : entry_point(symbol, function, flags, status));
}

/* Which stream a function means by 0 matters to functions that there are. */
cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function,
					 unsigned long long flags,
					 enum cudaDriverEntryPointQueryResult *status)
{
	return cudaGetDriverEntryPoint(symbol, function, flags, status);
}

cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function,
						  unsigned int version, unsigned long long flags,
						  enum cudaDriverEntryPointQueryResult *status)
{
	return cudaGetDriverEntryPointByVersion(symbol, function, version, flags, status);
}

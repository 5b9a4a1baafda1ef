// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Settings of a device. The mirror keeps the limits. The other settings are preferences about
 * hardware that today's GPUs do not have: they are checked, but have no effect, as with NVIDIA's
 * runtime.
 */
#include "qcu-library/device/device.h"
#include "qcu-library/link/ask.h"

#define LIMITS 16 /* enough for the values of cudaLimit, and for some future ones */

static struct {
	/* Limits that the mirror has reported. They are valid in this session, until any limit is
	 * set or a device is reset. */
	struct {
		/* now() before the mirror was asked; release: value is stored */
		_Atomic uint64_t when;
		_Atomic uint64_t value;
	} known[QCUL_DEVICES][LIMITS];
	atomic_uint changes;
	/* Finds functions of the driver API, whose layers lie above (driver_api/proc.c). */
	qcul_entry_point_fn *find_entry_point;
} process;

static uint64_t now(void)
{
	return (uint64_t)qcul_epoch() << 32 | atomic_load(&process.changes);
}

void qcul_limits_forget(void)
{
	atomic_fetch_add(&process.changes, 1);
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	cudaError_t err = qcul_ready();

	if (err)
		return qcul_done(err);
	err = qcul_ask_limit_set(qcul_self.device, limit, value);
	qcul_limits_forget();
	return qcul_done(err);
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
	int device = qcul_self.device;
	uint64_t when, in_effect;
	cudaError_t err = value ? qcul_ready() : cudaErrorInvalidValue;

	if (err)
		return qcul_done(err);
	when = now();
	if ((unsigned int)limit < LIMITS && atomic_load_explicit(&process.known[device][limit].when,
								 memory_order_acquire) == when) {
		*value = atomic_load(&process.known[device][limit].value);
		return cudaSuccess;
	}
	err = qcul_ask_limit_get(device, limit, &in_effect);
	if (err)
		return qcul_done(err);
	*value = in_effect;
	if ((unsigned int)limit < LIMITS) {
		atomic_store(&process.known[device][limit].value, *value);
		atomic_store_explicit(&process.known[device][limit].when, when,
				      memory_order_release);
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

/* There is nothing to do: which lines the L2 cache keeps longer (stream attributes) changes only
 * how fast a program is. */
cudaError_t cudaCtxResetPersistingL2Cache(void)
{
	return qcul_done(qcul_ready());
}

/* A guest has no other device that can write into the memory of a GPU, so nothing must be flushed.
 */
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

void qcul_entry_points_by(qcul_entry_point_fn *find)
{
	process.find_entry_point = find;
}

static cudaError_t get_driver_entry_point(const char *symbol, void **function, unsigned int version,
					  unsigned long long flags, bool own,
					  enum cudaDriverEntryPointQueryResult *status)
{
	int how;

	if (!symbol || !function || flags > cudaEnablePerThreadDefaultStream)
		return cudaErrorInvalidValue;
	if (flags != cudaEnableDefault)
		own = flags == cudaEnablePerThreadDefaultStream;
	*function = process.find_entry_point(symbol, version, own, &how);
	if (status)
		*status = (enum cudaDriverEntryPointQueryResult)how;
	return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
				    enum cudaDriverEntryPointQueryResult *status)
{
	return qcul_done(
		get_driver_entry_point(symbol, function, CUDART_VERSION, flags, false, status));
}

cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function,
					 unsigned long long flags,
					 enum cudaDriverEntryPointQueryResult *status)
{
	return qcul_done(
		get_driver_entry_point(symbol, function, CUDART_VERSION, flags, true, status));
}

static cudaError_t by_version(const char *symbol, void **function, unsigned int version,
			      unsigned long long flags, bool own,
			      enum cudaDriverEntryPointQueryResult *status)
{
	cudaError_t err = qcul_open();

	if (!err && version > qcul_info()->driver_version)
		err = cudaErrorInvalidValue;
	return err ? err : get_driver_entry_point(symbol, function, version, flags, own, status);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
					     unsigned int version, unsigned long long flags,
					     enum cudaDriverEntryPointQueryResult *status)
{
	return qcul_done(by_version(symbol, function, version, flags, false, status));
}

cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function,
						  unsigned int version, unsigned long long flags,
						  enum cudaDriverEntryPointQueryResult *status)
{
	return qcul_done(by_version(symbol, function, version, flags, true, status));
}

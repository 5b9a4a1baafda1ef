/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which memory the kernels of a device may use, that of other devices, too. All of it is memory of
 * this process, so the only condition is that the program has enabled the access. Pools have their
 * own access lists, see pool.c.
 */
#include "qcu-device/soft/gpu/soft.h"

/* cudaDeviceP2PAttr */
enum { P2P_RANK = 1, P2P_ACCESS = 2, P2P_ATOMICS = 3, P2P_ARRAYS = 4, P2P_SOME_ATOMICS = 5 };

/* cudaAtomicOperation, and cudaAtomicOperationCapability: signed, unsigned, 32 and 64 bits */
#define ATOMIC_LAST 12u
#define ATOMIC_ALL  0x1f

int soft_peer_access(struct be *be, unsigned int dev, unsigned int peer, bool enable)
{
	struct soft_device *d = &be->dev[dev];
	uint32_t bit = 1u << peer, old;
	int err = atomic_load(&be->sticky);

	if (err)
		return err;
	if (enable) {
		old = atomic_fetch_or(&d->peers, bit);
		return old & bit ? QCU_ERR_PeerAccessAlreadyEnabled : QCU_ERR_Success;
	}
	/* Kernels that run now were launched while access was enabled, so wait for them. */
	soft_wait(be, d);
	old = atomic_fetch_and(&d->peers, ~bit);
	return old & bit ? QCU_ERR_Success : QCU_ERR_PeerAccessNotEnabled;
}

int soft_peer_info(struct be *be, unsigned int dev, unsigned int peer, uint32_t attr,
		   int32_t *value)
{
	(void)dev;
	(void)peer;
	if (attr >= QCU_PEER_ATOMICS) {
		if ((attr & 0xff) > ATOMIC_LAST)
			return QCU_ERR_InvalidValue;
		*value = attr >= QCU_PEER_HOST_ATOMICS ? 0 : ATOMIC_ALL;
		return atomic_load(&be->sticky);
	}
	switch (attr) {
	case QCU_PEER_POSSIBLE:
	case P2P_ACCESS:
	case P2P_ATOMICS:
		*value = 1;
		break;
	case P2P_RANK:
	case P2P_ARRAYS:
	case P2P_SOME_ATOMICS:
		*value = 0;
		break;
	default:
		return QCU_ERR_InvalidValue;
	}
	return atomic_load(&be->sticky);
}

void soft_peers_reset(struct be *be, unsigned int dev)
{
	unsigned int i;

	atomic_store(&be->dev[dev].peers, 0);
	for (i = 0; i < be->gpus; i++)
		atomic_fetch_and(&be->dev[i].peers, ~(1u << dev));
}

bool soft_peer_enabled(const struct soft_device *d, const struct soft_device *owner)
{
	return atomic_load_explicit(&d->peers, memory_order_relaxed) >> owner->index & 1;
}

/* The range of another device around addr, with the access that this device has to it. */
static struct ptx_range peer_range(struct soft_device *d, struct soft_device *owner, uint64_t addr)
{
	unsigned int access;
	struct soft_range r;

	if (!soft_ranges_find(&owner->mem.table, addr, &r))
		return (struct ptx_range){0};
	if (r.tag == SOFT_PHYS)
		access = 0;
	else if (r.tag == SOFT_POOL)
		access = soft_pool_access(owner, addr, d->index);
	else
		access = soft_peer_enabled(d, owner) ? 3 : 0;
	if (!access)
		return (struct ptx_range){0};
	return (struct ptx_range){.lo = r.lo, .hi = r.hi, .writable = access & 2};
}

/*
 * A kernel may use memory of its own device, memory of peers, registered host memory, and what is
 * mapped for its device.
 */
struct ptx_range soft_env_range(void *ctx, uint64_t addr)
{
	struct soft_device *d = ctx, *owner = soft_mem_device(d->be, addr);
	struct soft_range r;

	if (owner && owner != d)
		return peer_range(d, owner, addr);
	if (soft_virtual_holds(d->be, addr)) {
		if (!soft_ranges_find(&d->seen, addr, &r))
			return (struct ptx_range){0};
		return (struct ptx_range){.lo = r.lo, .hi = r.hi, .writable = r.tag & 2};
	}
	if (addr - d->mem.base < d->mem.size ? soft_ranges_find(&d->mem.table, addr, &r)
					     : soft_ranges_find(&d->be->host, addr, &r)) {
		if (r.tag == SOFT_PHYS)
			return (struct ptx_range){0};
		return (struct ptx_range){.lo = r.lo, .hi = r.hi, .writable = true};
	}
	return (struct ptx_range){0};
}

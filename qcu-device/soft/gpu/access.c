/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which memory the kernels of a device may use. */
#include "qcu-device/soft/gpu/soft.h"

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

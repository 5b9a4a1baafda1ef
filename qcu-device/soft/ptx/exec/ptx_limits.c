// SPDX-License-Identifier: GPL-2.0-or-later
/* What a launch may ask for. */
#include "qcu-device/soft/ptx/exec/ptx_exec.h"

#define MAX_BLOCK_THREADS 1024u
#define MAX_SHARED	  (227u << 10)

/* diag may be NULL. */
static enum ptx_status bad_launch(struct ptx_diag *diag, const char *what, uint64_t v)
{
	ptx_diag_set(diag, 0, "launch: %s (%llu)", what, (unsigned long long)v);
	return PTX_BAD_LAUNCH;
}

enum ptx_status ptx_launch_check(const struct ptx_kernel *k, const struct ptx_launch *l,
				 struct ptx_diag *diag)
{
	const struct ptx_kernel_info *i = &k->info;
	uint64_t threads;

	if (!l->grid[0] || !l->grid[1] || !l->grid[2] || l->grid[0] > INT32_MAX ||
	    l->grid[1] > 65535 || l->grid[2] > 65535)
		return bad_launch(diag, "grid dimensions out of range", l->grid[0]);
	if (!l->block[0] || !l->block[1] || !l->block[2] || l->block[0] > 1024 ||
	    l->block[1] > 1024 || l->block[2] > 64)
		return bad_launch(diag, "block dimensions out of range", l->block[0]);
	threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
	if (threads > MAX_BLOCK_THREADS || threads > i->max_threads)
		return bad_launch(diag, "too many threads in a block", threads);
	for (int d = 0; d < 3 && i->req_threads[0]; d++)
		if (l->block[d] != i->req_threads[d])
			return bad_launch(diag, "not the block size that the kernel requires",
					  l->block[d]);
	if (l->param_bytes < i->param_bytes)
		return bad_launch(diag, "too few parameter bytes", l->param_bytes);
	if (l->dynamic_shared > MAX_SHARED || k->shared_total > MAX_SHARED - l->dynamic_shared)
		return bad_launch(diag, "too much shared memory",
				  (uint64_t)l->dynamic_shared + k->shared_total);
	if (l->cooperative && (uint64_t)l->grid[0] * l->grid[1] * l->grid[2] > MAX_COOPERATIVE)
		return bad_launch(diag, "too many blocks for a cooperative launch", l->grid[0]);
	return PTX_OK;
}

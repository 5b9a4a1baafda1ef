// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Faults of kernels. The first fault of a block ends the launch. Its message names the kernel, the
 * line of the PTX text, the block and the thread.
 */
#include <stdio.h>
#include <string.h>

#include "qcu-device/soft/ptx/base/ptx_int.h"

void ptx_diag_set(struct ptx_diag *d, unsigned int line, const char *fmt, ...)
{
	va_list ap;

	if (!d)
		return;
	d->line = line;
	va_start(ap, fmt);
	vsnprintf(d->text, sizeof(d->text), fmt, ap);
	va_end(ap);
}

/* Returns NULL if the module was compiled without line numbers. */
const char *ptx_file_name(const struct ptx_module *m, uint32_t loc)
{
	return loc && loc >> 20 < m->nfiles ? m->files[loc >> 20] : NULL;
}

struct ptx_finding ptx_finding_of(const struct ptx_warp *w, unsigned int lane)
{
	const struct ptx_block *b = w->blk;
	const struct ptx_insn *in = &b->grid->code[w->pc];
	const char *file = ptx_file_name(b->grid->mod, in->loc);
	const uint32_t *sp = w->special;

	return (struct ptx_finding){
		.kernel = b->grid->kernel->info.name,
		.file = file,
		.line = file ? ptx_loc_line(in->loc) : in->line,
		.block = {b->ctaid[0], b->ctaid[1], b->ctaid[2]},
		.thread = {sp[SP_TID_X * PTX_LANES + lane], sp[SP_TID_Y * PTX_LANES + lane],
			   sp[SP_TID_Z * PTX_LANES + lane]},
	};
}

void ptx_fault(struct ptx_warp *w, unsigned int lane, enum ptx_status st, const char *fmt, ...)
{
	struct ptx_block *b = w->blk;
	struct ptx_finding *p = &b->diag.place;
	char source[80] = "";
	va_list ap;

	if (w->fault)
		return;
	w->fault = st;
	b->status = st;
	*p = ptx_finding_of(w, lane);
	va_start(ap, fmt);
	vsnprintf(p->what, sizeof(p->what), fmt, ap);
	va_end(ap);
	if (p->file)
		snprintf(source, sizeof(source), "%.60s:%u, ", p->file, p->line);
	ptx_diag_set(&b->diag, b->grid->code[w->pc].line,
		     "%s; kernel %.60s, %sblock (%u,%u,%u), thread (%u,%u,%u)", p->what, p->kernel,
		     source, p->block[0], p->block[1], p->block[2], p->thread[0], p->thread[1],
		     p->thread[2]);
}

void ptx_fault_access(struct ptx_warp *w, unsigned int lane, enum ptx_status st, const char *space,
		      const struct ptx_access *a)
{
	struct ptx_finding *p = &w->blk->diag.place;

	if (w->fault)
		return;
	ptx_fault(w, lane, st, "%s of %u bytes at %s%s address 0x%llx", a->write ? "write" : "read",
		  a->size, st == PTX_MISALIGNED_ADDRESS ? "misaligned " : "", space,
		  (unsigned long long)a->addr);
	if (!strcmp(space, "global") || !strcmp(space, "generic"))
		p->access = *a;
}

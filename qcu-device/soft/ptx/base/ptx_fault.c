// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Faults of kernels. The first fault of a block ends the launch. Its message names the kernel, the
 * line of the PTX text, the block and the thread.
 */
#include <stdio.h>

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

void ptx_fault(struct ptx_warp *w, unsigned int lane, enum ptx_status st, const char *fmt, ...)
{
	struct ptx_block *b = w->blk;
	const struct ptx_insn *in = &b->grid->code[w->pc];
	const uint32_t *sp = w->special;
	const char *file = ptx_file_name(b->grid->mod, in->loc);
	char what[120], source[80] = "";
	va_list ap;

	if (w->fault)
		return;
	w->fault = st;
	b->status = st;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (file)
		snprintf(source, sizeof(source), "%.60s:%u, ", file, ptx_loc_line(in->loc));
	else if (in->loc)
		snprintf(source, sizeof(source), "source line %u, ", ptx_loc_line(in->loc));
	ptx_diag_set(&b->diag, in->line, "%s; kernel %.60s, %sblock (%u,%u,%u), thread (%u,%u,%u)",
		     what, b->grid->kernel->info.name, source, b->ctaid[0], b->ctaid[1],
		     b->ctaid[2], sp[SP_TID_X * PTX_LANES + lane], sp[SP_TID_Y * PTX_LANES + lane],
		     sp[SP_TID_Z * PTX_LANES + lane]);
}

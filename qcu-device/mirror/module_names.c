// SPDX-License-Identifier: GPL-2.0-or-later
#include "qcu-device/mirror/module_names.h"

#include "qcu-device/mirror/keeping.h"

bool mir_module_names(struct mirror *m, uint32_t module, struct image_names *names)
{
	const struct kept_name name = {.kind = HANDLE_MODULE, .id = module};
	const struct kept_object *o;
	const struct kept_step *r;

	*names = (struct image_names){0};
	if (!m->cfg.ops->vars_by_name)
		return true;
	o = kept_find(&m->kept, &name);
	r = o ? STAILQ_FIRST(&o->records) : NULL;
	return r && r->cmd.op == QCU_OP_MODULE_LOAD && r->data &&
	       image_names(r->data, r->len, names) != QCU_ERR_MemoryAllocation;
}

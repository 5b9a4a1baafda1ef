// SPDX-License-Identifier: GPL-2.0-or-later
/* Since 6.3 vma->vm_flags is changed only through functions. */
#include <linux/mm.h>

void probe(struct vm_area_struct *vma);
void probe(struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_DONTCOPY);
	vm_flags_clear(vma, VM_MAYEXEC);
}

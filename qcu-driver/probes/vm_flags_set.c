// SPDX-License-Identifier: GPL-2.0-or-later
/* Kernels from 6.3 on change vma->vm_flags through functions only. */
#include <linux/mm.h>

void probe(struct vm_area_struct *vma);
void probe(struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_DONTCOPY);
	vm_flags_clear(vma, VM_MAYEXEC);
}

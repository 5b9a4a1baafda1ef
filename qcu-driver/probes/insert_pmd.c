// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Before 6.12 get_user_pages() takes a huge page that a driver has entered into page tables. Since
 * then such an entry is special, by pmd_mkspecial().
 */
#include <linux/mm.h>
#include <linux/pfn_t.h>

#ifndef CONFIG_TRANSPARENT_HUGEPAGE
#error "no huge pages"
#endif

struct pmd_mkspecial;
vm_fault_t probe(struct vm_fault *vmf, struct page *page);
int pmd_mkspecial(struct pmd_mkspecial *none);
vm_fault_t probe(struct vm_fault *vmf, struct page *page)
{
	return vmf_insert_pfn_pmd(vmf, page_to_pfn_t(page), false);
}

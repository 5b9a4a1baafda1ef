// SPDX-License-Identifier: GPL-2.0-or-later
/* Kernels before 6.2 count a process's pages in atomic counters. */
#include <linux/mm.h>

void probe(struct mm_struct *mm);
void probe(struct mm_struct *mm)
{
	atomic_long_add(1, &mm->rss_stat.count[MM_FILEPAGES]);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Before 6.2 the pages of a process are counted in atomic counters. */
#include <linux/mm.h>

void probe(struct mm_struct *mm);
void probe(struct mm_struct *mm)
{
	atomic_long_add(1, &mm->rss_stat.count[MM_FILEPAGES]);
}

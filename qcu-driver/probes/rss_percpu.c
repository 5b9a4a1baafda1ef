// SPDX-License-Identifier: GPL-2.0-or-later
/* Since 6.2 the pages of a process are counted in per-CPU counters. */
#include <linux/mm.h>
#include <linux/percpu_counter.h>

void probe(struct mm_struct *mm);
void probe(struct mm_struct *mm)
{
	percpu_counter_add(&mm->rss_stat[MM_FILEPAGES], 1);
}

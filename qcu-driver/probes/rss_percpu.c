// SPDX-License-Identifier: GPL-2.0-or-later
/* Kernels from 6.2 on count a process's pages in per-CPU counters. */
#include <linux/mm.h>
#include <linux/percpu_counter.h>

void probe(struct mm_struct *mm);
void probe(struct mm_struct *mm)
{
	percpu_counter_add(&mm->rss_stat[MM_FILEPAGES], 1);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Kernels before 6.2 let each thread collect what it adds to these counters. */
#include <linux/mm.h>
#include <linux/sched.h>

void probe(void);
void probe(void)
{
	current->rss_stat.count[MM_FILEPAGES] = 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Before 6.2 each thread collects its changes to these counters. */
#include <linux/mm.h>
#include <linux/sched.h>

void probe(void);
void probe(void)
{
	current->rss_stat.count[MM_FILEPAGES] = 0;
}

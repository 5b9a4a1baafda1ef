// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The memory logger. It finds every mapping of /dev/qcuda, as a group, by address, and it holds the
 * driver's counters. Both can be read in /sys/kernel/debug/qcuda.
 */
#include <linux/debugfs.h>
#include <linux/log2.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>

#include "qcuda.h"

atomic64_t qcud_stats[QCUD_STATS];

static const char *const qcud_stat_names[QCUD_STATS] = {
	[QCUD_STAT_SESSIONS] = "sessions",
	[QCUD_STAT_GROUPS] = "groups",
	[QCUD_STAT_CHUNK_PAGES] = "chunk_pages",
	[QCUD_STAT_PINNED_PAGES] = "pinned_pages",
	[QCUD_STAT_REQUESTS] = "requests",
	[QCUD_STAT_SNAPSHOTS] = "snapshots",
	[QCUD_STAT_FIRST_COUNT + QCUD_COUNT_COMMANDS] = "commands",
	[QCUD_STAT_FIRST_COUNT + QCUD_COUNT_IOCTLS] = "ioctls",
	[QCUD_STAT_FIRST_COUNT + QCUD_COUNT_KICKS] = "kicks",
	[QCUD_STAT_FIRST_COUNT + QCUD_COUNT_INTERRUPTS] = "interrupts",
	[QCUD_STAT_FIRST_COUNT + QCUD_COUNT_WAITS] = "waits",
	[QCUD_STAT_FIRST_COUNT + QCUD_COUNT_SPINS] = "spins",
	[QCUD_STAT_FIRST_COUNT + QCUD_COUNT_POSTED] = "posted",
	[QCUD_STAT_MAPS] = "maps",
	[QCUD_STAT_MOVED_UP] = "moved_up_bytes",
	[QCUD_STAT_MOVED_DOWN] = "moved_down_bytes",
	[QCUD_STAT_UNMAPS] = "unmaps",
	[QCUD_STAT_WINDOW_BYTES] = "window_bytes",
	[QCUD_STAT_PAGES_BYTES] = "pages_bytes",
	[QCUD_STAT_MSG_BYTES] = "msg_bytes",
	[QCUD_STAT_COPIED_IN_GUEST] = "copied_in_guest",
	[QCUD_STAT_FORK_COPIED_PAGES] = "fork_copied_pages",
	[QCUD_STAT_PLACE_STEPS] = "place_steps",
	[QCUD_STAT_PIN_WAITS] = "pin_waits",
	[QCUD_STAT_OOM_WAITS] = "oom_waits",
	[QCUD_STAT_TIMED_COPIES] = "timed_copies",
	[QCUD_STAT_TIMED_IOCTL] = "timed_ioctl_ns",
	[QCUD_STAT_TIMED_PIN] = "timed_pin_ns",
	[QCUD_STAT_TIMED_MAP] = "timed_map_ns",
	[QCUD_STAT_TIMED_RING] = "timed_ring_ns",
	[QCUD_STAT_TIMED_MIRROR] = "timed_mirror_ns",
	[QCUD_STAT_TIMED_COPY] = "timed_copy_ns",
};

static struct dentry *qcud_debugfs;

/* Adds a new group to its session's tree and gives it the session's chunk size. */
int qcud_group_log(struct qcud_group *group)
{
	struct qcud_session *session = group->session;
	struct rb_node **link = &session->groups.rb_node;
	struct rb_node *parent = NULL;
	int ret = 0;

	spin_lock(&session->lock);
	/* A session has one address space, so that each range of addresses has one meaning. */
	if (session->mm != current->mm) {
		ret = -EPERM;
		goto out;
	}
	while (*link) {
		struct qcud_group *other = rb_entry(*link, struct qcud_group, node);

		parent = *link;
		if (group->mem.end <= other->mem.start) {
			link = &parent->rb_left;
		} else if (group->mem.start >= other->mem.end) {
			link = &parent->rb_right;
		} else {
			ret = -EEXIST;
			goto out;
		}
	}
	mmgrab(session->mm);
	group->mm = session->mm;
	group->mem.shift = ilog2(session->chunk_bytes);
	session->mapped_once = true;
	rb_link_node(&group->node, parent, link);
	rb_insert_color(&group->node, &session->groups);
out:
	spin_unlock(&session->lock);
	return ret;
}

/*
 * Finds the group that contains all of [addr, addr + len), and counts a use of it. Returns NULL if
 * there is none.
 */
struct qcud_group *qcud_group_find(struct qcud_session *session, u64 addr, u64 len)
{
	struct qcud_group *found = NULL;
	struct rb_node *node;

	spin_lock(&session->lock);
	node = session->groups.rb_node;
	while (node) {
		struct qcud_group *group = rb_entry(node, struct qcud_group, node);

		if (addr < group->mem.start) {
			node = node->rb_left;
		} else if (addr >= group->mem.end) {
			node = node->rb_right;
		} else {
			/* A group in the tree is not closed: its mapping still counts as a use. */
			if (len <= group->mem.end - addr) {
				refcount_inc(&group->users);
				found = group;
			}
			break;
		}
	}
	spin_unlock(&session->lock);
	return found;
}

static void qcud_group_show(struct seq_file *m, const struct qcud_group *group)
{
	bool any = false;
	int order;

	seq_printf(m, "%d %lx %lx %lu ", group->session->pid, group->mem.start, group->mem.end,
		   READ_ONCE(group->nr_chunks));
	for (order = QCUD_BLOCK_ORDER; order >= 0; order--) {
		unsigned long blocks = READ_ONCE(group->blocks[order]);

		if (!blocks)
			continue;
		seq_printf(m, "%s%luK:%lu", any ? "," : "", PAGE_SIZE >> 10 << order, blocks);
		any = true;
	}
	seq_printf(m, "%s %s%s%s %lu %lu\n", any ? "" : "-",
		   group->registered  ? "registered"
		   : group->in_window ? "window"
				      : "elsewhere",
		   READ_ONCE(group->moves) ? ",moves" : "", group->closed ? ",closing" : "",
		   READ_ONCE(group->nr_pages) << PAGE_SHIFT, READ_ONCE(group->mapped_bytes));
}

/* pid start end chunks blocks(size:number,...) flags resident-bytes bytes-mapped-in-the-mirror */
static int groups_show(struct seq_file *m, void *unused)
{
	struct qcud_session *session;
	struct qcud_group *group;
	struct rb_node *node;

	mutex_lock(&qcud_lock);
	list_for_each_entry(session, &qcud_sessions, node) {
		spin_lock(&session->lock);
		for (node = rb_first(&session->groups); node; node = rb_next(node))
			qcud_group_show(m, rb_entry(node, struct qcud_group, node));
		for (node = rb_first(&session->registered); node; node = rb_next(node))
			qcud_group_show(m, rb_entry(node, struct qcud_group, node));
		list_for_each_entry(group, &session->closing, closing_node)
			qcud_group_show(m, group);
		spin_unlock(&session->lock);
	}
	mutex_unlock(&qcud_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(groups);

static int stats_show(struct seq_file *m, void *unused)
{
	int i;

	for (i = 0; i < QCUD_STATS; i++)
		seq_printf(m, "%s %lld\n", qcud_stat_names[i], atomic64_read(&qcud_stats[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

/* for every session: pid, then the name and value of each counter */
static int sessions_show(struct seq_file *m, void *unused)
{
	struct qcud_session *session;
	int i;

	mutex_lock(&qcud_lock);
	list_for_each_entry(session, &qcud_sessions, node) {
		seq_printf(m, "%d", session->pid);
		for (i = 0; i < QCUD_COUNTS; i++)
			seq_printf(m, " %s %lld", qcud_stat_names[QCUD_STAT_FIRST_COUNT + i],
				   atomic64_read(&session->queue->counts[i]));
		seq_putc(m, '\n');
	}
	mutex_unlock(&qcud_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(sessions);

void qcud_debugfs_create(void)
{
	qcud_debugfs = debugfs_create_dir("qcuda", NULL);
	debugfs_create_file("groups", 0400, qcud_debugfs, NULL, &groups_fops);
	debugfs_create_file("stats", 0444, qcud_debugfs, NULL, &stats_fops);
	debugfs_create_file("sessions", 0444, qcud_debugfs, NULL, &sessions_fops);
}

void qcud_debugfs_remove(void)
{
	debugfs_remove_recursive(qcud_debugfs);
}

/* When the module is unloaded, all current values must be zero. */
void qcud_stats_check(void)
{
	static const enum qcud_stat now[] = {
		QCUD_STAT_SESSIONS,	QCUD_STAT_GROUPS,   QCUD_STAT_CHUNK_PAGES,
		QCUD_STAT_PINNED_PAGES, QCUD_STAT_REQUESTS, QCUD_STAT_SNAPSHOTS,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(now); i++) {
		s64 n = atomic64_read(&qcud_stats[now[i]]);

		if (n)
			pr_warn("qcuda: leak: %s %lld\n", qcud_stat_names[now[i]], n);
	}
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What all files share: the device, the list of sessions and their lock, the workqueue, and module
 * parameters of more than one file. This file uses no other.
 */
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "qcuda.h"

DEFINE_MUTEX(qcud_lock);
struct qcud_device *qcud_dev;
LIST_HEAD(qcud_sessions);
struct workqueue_struct *qcud_wq;
unsigned int qcud_device_wire_version;

unsigned int qcud_chunk_kb = QCU_CHUNK_DEFAULT >> 10;

static int qcud_chunk_kb_set(const char *text, const struct kernel_param *kp)
{
	unsigned int kb;
	int ret = kstrtouint(text, 0, &kb);

	if (ret)
		return ret;
	if (!is_power_of_2(kb) || kb < QCU_CHUNK_MIN >> 10 || kb > QCU_CHUNK_MAX >> 10) {
		pr_err("qcuda: chunk_kb=%u is not a power of two from %u to %u\n", kb,
		       QCU_CHUNK_MIN >> 10, QCU_CHUNK_MAX >> 10);
		return -EINVAL;
	}
	WRITE_ONCE(qcud_chunk_kb, kb);
	return 0;
}

static const struct kernel_param_ops qcud_chunk_kb_ops = {
	.set = qcud_chunk_kb_set,
	.get = param_get_uint,
};
module_param_cb(chunk_kb, &qcud_chunk_kb_ops, &qcud_chunk_kb, 0644);
MODULE_PARM_DESC(chunk_kb, "chunk size in KiB that a new session starts with, a power of two");

bool qcud_trace;
module_param_named(trace, qcud_trace, bool, 0644);
MODULE_PARM_DESC(trace, "count where the time of copies goes, in debugfs: qcuda/stats, timed_*");

static unsigned int timeout = 30;
module_param(timeout, uint, 0644);
MODULE_PARM_DESC(timeout, "seconds after which a device that does not open or close is given up");

long qcud_timeout(void)
{
	return (long)clamp(READ_ONCE(timeout), 1U, 3600U) * HZ;
}

static void qcud_device_release(struct kref *refs)
{
	kfree(container_of(refs, struct qcud_device, refs));
}

void qcud_device_put(struct qcud_device *dev)
{
	kref_put(&dev->refs, qcud_device_release);
}

static void qcud_session_release(struct kref *refs)
{
	kfree(container_of(refs, struct qcud_session, refs));
}

void qcud_session_put(struct qcud_session *session)
{
	kref_put(&session->refs, qcud_session_release);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The module and its device: /dev/qcuda and the virtio driver. The virtio driver sets the queues up
 * and takes them down, also while sessions are open.
 */
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/module.h>
#include <linux/reboot.h>
#include <linux/slab.h>
#include <linux/virtio.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>

#include "qcuda.h"

static DEFINE_MUTEX(qcud_life_lock); /* qcuda.h describes it */

/* For people and programs that look why a guest and its host do not match; only to be read. */
static unsigned int qcud_wire_version = QCU_WIRE_VERSION;

static int qcud_only_read(const char *text, const struct kernel_param *kp)
{
	return -EPERM;
}

static const struct kernel_param_ops qcud_read_ops = {
	.set = qcud_only_read,
	.get = param_get_uint,
};
module_param_cb(wire_version, &qcud_read_ops, &qcud_wire_version, 0444);
MODULE_PARM_DESC(wire_version, "the wire version of this module; cannot be set");
module_param_cb(device_wire_version, &qcud_read_ops, &qcud_device_wire_version, 0444);
MODULE_PARM_DESC(device_wire_version,
		 "the wire version of the device, 0 without one; cannot be set");
MODULE_INFO(wire, "qcuda wire version " __stringify(QCU_WIRE_VERSION));

static dev_t qcud_devt;
static struct cdev qcud_cdev;

static struct virtio_device *qcud_vdev; /* the device that /dev/qcuda belongs to */
static void qcud_renew(struct work_struct *work);
static DECLARE_DELAYED_WORK(qcud_renew_work, qcud_renew);
#define QCUD_RENEW_AGAIN HZ

/* The workqueue is freezable: the device is not set up again during a suspend. */
static void qcud_renew_soon(unsigned long delay)
{
	mod_delayed_work(system_freezable_wq, &qcud_renew_work, delay);
}

/* Every user may use the GPU: a session can reach no other memory than its own. */
#ifdef QCUD_HAVE_CONST_DEVNODE
static char *qcud_devnode(const struct device *device, umode_t *mode)
#else
static char *qcud_devnode(struct device *device, umode_t *mode)
#endif
{
	if (mode)
		*mode = 0666;
	return NULL;
}

/*
 * The driver has its own class and is no misc device: misc_open() holds a lock of all misc devices
 * while it calls open, and our open waits for the host.
 */
static struct class qcud_class = {
	.name = "qcuda",
	.devnode = qcud_devnode,
};

static void qcud_reset(struct virtio_device *vdev)
{
#ifdef QCUD_HAVE_RESET_DEVICE
	virtio_reset_device(vdev);
#else
	vdev->config->reset(vdev);
#endif
}

/*
 * Resets the device for good. After the reset the device touches no memory of the guest. So
 * everything that open sessions wait for ends, and kept sessions are freed. Open sessions stay
 * until their files are closed; their requests fail with -ENODEV.
 */
static void qcud_device_stop(struct qcud_device *dev)
{
	struct qcud_session *session, *next;
	unsigned int i;
	LIST_HEAD(kept);

	mutex_lock(&qcud_lock);
	if (dev->stopping) {
		mutex_unlock(&qcud_lock);
		return;
	}
	dev->stopping = true;
	mutex_unlock(&qcud_lock);

	qcud_device_break(dev, -ENODEV);
	qcud_reset(dev->vdev);
	for (i = 0; i < dev->nr_queues; i++)
		qcud_queue_detach(&dev->queue[i]);
	dev->vdev->config->del_vqs(dev->vdev);

	mutex_lock(&qcud_lock);
	dev->stopped = true;
	list_for_each_entry_safe(session, next, &qcud_sessions, node) {
		if (session->dev != dev)
			continue;
		spin_lock(&session->lock);
		session->detached = true;
		spin_unlock(&session->lock);
		queue_work(qcud_wq, &session->queue->work);
		if (session->kept)
			list_move(&session->node, &kept);
	}
	mutex_unlock(&qcud_lock);

	list_for_each_entry_safe(session, next, &kept, node)
		qcud_session_finish(session);
}

static void qcud_config_changed(struct virtio_device *vdev)
{
	qcud_renew_soon(0);
}

static int qcud_find_queues(struct qcud_device *dev)
{
	unsigned int nr = dev->nr_queues, need, i;
	struct virtqueue **vqs;
	int ret = -ENOMEM;
#ifdef QCUD_HAVE_VIRTQUEUE_INFO
	struct virtqueue_info *info = kcalloc(nr, sizeof(*info), GFP_KERNEL);
#else
	vq_callback_t **callbacks = kcalloc(nr, sizeof(*callbacks), GFP_KERNEL);
	const char **names = kcalloc(nr, sizeof(*names), GFP_KERNEL);
#endif

	vqs = kcalloc(nr, sizeof(*vqs), GFP_KERNEL);
#ifdef QCUD_HAVE_VIRTQUEUE_INFO
	if (!vqs || !info)
		goto out;
	for (i = 0; i < nr; i++) {
		info[i].name = i ? "session" : "control";
		info[i].callback = qcud_queue_callback;
	}
	ret = virtio_find_vqs(dev->vdev, nr, vqs, info, NULL);
#else
	if (!vqs || !callbacks || !names)
		goto out;
	for (i = 0; i < nr; i++) {
		names[i] = i ? "session" : "control";
		callbacks[i] = qcud_queue_callback;
	}
	ret = virtio_find_vqs(dev->vdev, nr, vqs, callbacks, names, NULL);
#endif
	if (ret)
		goto out;

	/*
	 * Room for the largest command; on the control queue, for OPEN and CLOSE of all sessions.
	 */
	need = max_t(unsigned int, QCUD_SG_MAX, 4 * (nr - 1));
	for (i = 0; i < nr; i++) {
		if (virtqueue_get_vring_size(vqs[i]) < need) {
			dev_err(&dev->vdev->dev, "queue %u has %u entries, less than %u\n", i,
				virtqueue_get_vring_size(vqs[i]), need);
			dev->vdev->config->del_vqs(dev->vdev);
			ret = -EPROTO;
			goto out;
		}
		dev->queue[i].vq = vqs[i];
	}
out:
#ifdef QCUD_HAVE_VIRTQUEUE_INFO
	kfree(info);
#else
	kfree(names);
	kfree(callbacks);
#endif
	kfree(vqs);
	return ret;
}

/* Returns whether this module can work with a device that has this config, and says why not. */
static bool qcud_config_fits(struct virtio_device *vdev, const struct qcu_config *config)
{
	if (config->magic != QCU_CONFIG_MAGIC) {
		dev_err(&vdev->dev, "no qCUDA device: magic %#x\n", config->magic);
	} else if (config->version != QCU_WIRE_VERSION) {
		dev_err(&vdev->dev,
			"device: wire version %u; this module: wire version %u; update the %s\n",
			config->version, QCU_WIRE_VERSION,
			config->version > QCU_WIRE_VERSION ? "module in this guest"
							   : "device on the host");
	} else if (!config->sessions || config->sessions > QCU_MAX_SESSIONS) {
		dev_err(&vdev->dev, "%u sessions are not between 1 and %u\n", config->sessions,
			QCU_MAX_SESSIONS);
	} else if (config->window_base > TASK_SIZE_MAX ||
		   config->window_size > TASK_SIZE_MAX - config->window_base) {
		dev_err(&vdev->dev, "a window at %#llx of %#llx bytes is not in user space\n",
			config->window_base, config->window_size);
	} else {
		return true;
	}
	return false;
}

/*
 * Reads the config. If all of it is zero, no host process serves the device, and a config interrupt
 * reports the next one. A config that does not fit counts as zero, too: the bytes are read one by
 * one, and a process that comes or goes meanwhile, or one of another release, is not there for
 * ever. Nothing may report the next one of those, so the config is read again in a second. Returns
 * whether a process serves the device.
 */
static bool qcud_read_config(struct virtio_device *vdev, struct qcu_config *config)
{
	static struct qcu_config misfit; /* under qcud_life_lock; it is reported once */

	virtio_cread_bytes(vdev, 0, config, sizeof(*config));
	WRITE_ONCE(qcud_device_wire_version,
		   config->magic == QCU_CONFIG_MAGIC ? config->version : 0);
	if (!memchr_inv(config, 0, sizeof(*config)))
		return false;
	if (!memcmp(config, &misfit, sizeof(misfit)) || !qcud_config_fits(vdev, config)) {
		misfit = *config;
		memset(config, 0, sizeof(*config));
		qcud_renew_soon(QCUD_RENEW_AGAIN);
		return false;
	}
	memset(&misfit, 0, sizeof(misfit));
	return true;
}

/*
 * Commands carry guest-physical addresses. An IOMMU in between would not translate them.
 *
 * A request has two or three descriptors, and the ring has room for 170 to 256 of them. With an
 * indirect table for each, virtio would allocate and free this table: 300 instructions of 2,000
 * for a posted command (perf/cost).
 */
static int qcud_validate(struct virtio_device *vdev)
{
	__virtio_clear_bit(vdev, VIRTIO_F_ACCESS_PLATFORM);
	__virtio_clear_bit(vdev, VIRTIO_RING_F_INDIRECT_DESC);
	return 0;
}

/* Sets the device up. Sessions that open /dev/qcuda from now on use it. */
static int qcud_begin(struct virtio_device *vdev)
{
	struct qcu_config config;
	struct qcud_device *dev;
	unsigned int i;
	int ret;

	if (!virtio_has_feature(vdev, VIRTIO_F_VERSION_1)) {
		dev_err(&vdev->dev, "the device is not a virtio 1.0 one\n");
		return -ENODEV;
	}
	qcud_read_config(vdev, &config);
	dev = kzalloc(struct_size(dev, queue, config.sessions + 1), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	kref_init(&dev->refs);
	dev->vdev = vdev;
	dev->config = config;
	dev->nr_queues = config.sessions + 1;
	for (i = 0; i < dev->nr_queues; i++)
		qcud_queue_init(&dev->queue[i], qcud_session_reap);
	vdev->priv = dev;
	ret = qcud_find_queues(dev);
	if (ret) {
		vdev->priv = NULL;
		qcud_device_put(dev);
		return ret;
	}
	virtio_device_ready(vdev);
	mutex_lock(&qcud_lock);
	qcud_dev = dev;
	mutex_unlock(&qcud_lock);
	if (config.sessions)
		dev_info(&vdev->dev, "%u sessions, wire version %u\n", config.sessions,
			 config.version);
	else
		dev_warn(&vdev->dev, "qcu-device is not running on the host; waiting for it\n");
	/* The config may have changed before the driver was told of changes. */
	qcud_renew_soon(0);
	return 0;
}

static void qcud_end(struct virtio_device *vdev)
{
	struct qcud_device *dev = vdev->priv;

	if (!dev)
		return;
	mutex_lock(&qcud_lock);
	qcud_dev = NULL;
	mutex_unlock(&qcud_lock);
	qcud_device_stop(dev);
	cancel_work_sync(&dev->queue[0].work);
	qcud_queue_reap(&dev->queue[0]);
	vdev->priv = NULL;
	qcud_device_put(dev);
}

/*
 * What this function refuses, it refuses for good: the device is none of ours, or there is one
 * already. The other errors are this guest's (no memory), and an administrator can bind the device
 * to the driver again.
 */
static int qcud_probe(struct virtio_device *vdev)
{
	struct device *node;
	u32 magic;
	int ret;

	/* Another device may have this id. Ours says that it is one. */
	virtio_cread_bytes(vdev, 0, &magic, sizeof(magic));
	if (vdev->id.device == QCU_VIRTIO_ID_PLAIN && magic != QCU_CONFIG_MAGIC)
		return -ENODEV;

	mutex_lock(&qcud_life_lock);
	if (qcud_vdev) {
		dev_err(&vdev->dev, "/dev/qcuda is taken by another device\n");
		ret = -EBUSY;
		goto out;
	}
	ret = qcud_begin(vdev);
	if (ret)
		goto out;
	node = device_create(&qcud_class, &vdev->dev, qcud_devt, NULL, "qcuda");
	if (IS_ERR(node)) {
		ret = PTR_ERR(node);
		qcud_end(vdev);
		goto out;
	}
	qcud_vdev = vdev;
out:
	mutex_unlock(&qcud_life_lock);
	return ret;
}

static void qcud_remove(struct virtio_device *vdev)
{
	device_destroy(&qcud_class, qcud_devt);
	mutex_lock(&qcud_life_lock);
	qcud_vdev = NULL;
	WRITE_ONCE(qcud_device_wire_version, 0);
	qcud_end(vdev);
	mutex_unlock(&qcud_life_lock);
	cancel_delayed_work_sync(&qcud_renew_work);
}

#ifdef CONFIG_PM_SLEEP
/* Sessions are processes on the host. The host's GPU takes no part in the guest's suspend. */
static bool qcud_in_use(const struct qcud_device *dev)
{
	struct qcud_session *session;
	bool used = false;

	mutex_lock(&qcud_lock);
	list_for_each_entry(session, &qcud_sessions, node)
		used |= session->dev == dev && !dev->stopping;
	mutex_unlock(&qcud_lock);
	return used;
}

/* Programs are frozen now, so no new session can begin. */
static int qcud_freeze(struct virtio_device *vdev)
{
	if (vdev->priv && qcud_in_use(vdev->priv)) {
		dev_err(&vdev->dev,
			"no suspend while programs use CUDA: their work on the host would be lost\n");
		return -EBUSY;
	}
	qcud_end(vdev);
	/* If the device is not set up again afterwards, qcud_renew() tries it. */
	qcud_renew_soon(QCUD_RENEW_AGAIN);
	return 0;
}

static int qcud_restore(struct virtio_device *vdev)
{
	return qcud_begin(vdev);
}
#endif

/*
 * Must the device be set up again: could it not be the last time, has it failed, was it given up,
 * or is there a host process where there was none?
 */
static bool qcud_is_over(struct virtio_device *vdev)
{
	const struct qcud_device *dev = vdev->priv;
	struct qcu_config config;

	if (!dev || vdev->config->get_status(vdev) & VIRTIO_CONFIG_S_NEEDS_RESET)
		return true;
	if (dev->config.sessions && !READ_ONCE(dev->queue[0].dead))
		return false;
	return qcud_read_config(vdev, &config);
}

/*
 * When the device fails, its sessions end and their programs get errors. This function sets the
 * device up again, as after a suspend, for programs that start later. Perhaps no host process
 * serves the device now. It then has no sessions, and the config changes when a process starts to
 * serve it. If the device cannot be set up, qcud_freeze() has seen to it that this function runs
 * again.
 */
static void qcud_renew(struct work_struct *work)
{
	static int failed; /* how the last time ended; it is reported once */
	struct virtio_device *vdev;
	int ret = -EOPNOTSUPP;

	mutex_lock(&qcud_life_lock);
	vdev = qcud_vdev;
	if (!vdev || !qcud_is_over(vdev))
		goto out;
	if (vdev->priv) {
		dev_err(&vdev->dev,
			"sessions end, as the device has failed or is another one now\n");
		qcud_device_stop(vdev->priv);
	} else {
		/* Else the core would keep the mark that it left on a device that failed. */
		qcud_reset(vdev);
	}
#ifdef CONFIG_PM_SLEEP
	ret = virtio_device_freeze(vdev);
	if (!ret)
		ret = virtio_device_restore(vdev);
#endif
	if (ret && ret != failed)
		dev_err(&vdev->dev, "the device has failed and cannot be set up yet: %d\n", ret);
	failed = ret;
out:
	mutex_unlock(&qcud_life_lock);
}

/*
 * Called before a reboot or before another kernel starts here. After this the device does no DMA
 * into memory that the next kernel uses.
 */
static int qcud_rebooting(struct notifier_block *nb, unsigned long action, void *data)
{
	mutex_lock(&qcud_life_lock);
	if (qcud_vdev && qcud_vdev->priv)
		qcud_device_stop(qcud_vdev->priv);
	/* Nothing sets it up again. */
	qcud_vdev = NULL;
	mutex_unlock(&qcud_life_lock);
	return NOTIFY_DONE;
}

static struct notifier_block qcud_reboot_notifier = {
	.notifier_call = qcud_rebooting,
};

static const struct virtio_device_id qcud_ids[] = {
	{QCU_VIRTIO_ID, VIRTIO_DEV_ANY_ID},
	{QCU_VIRTIO_ID_PLAIN, VIRTIO_DEV_ANY_ID},
	{0},
};
MODULE_DEVICE_TABLE(virtio, qcud_ids);

static struct virtio_driver qcud_driver = {
	.driver.name = "qcuda",
	.driver.owner = THIS_MODULE,
	.id_table = qcud_ids,
	.validate = qcud_validate,
	.probe = qcud_probe,
	.remove = qcud_remove,
	.config_changed = qcud_config_changed,
#ifdef CONFIG_PM_SLEEP
	.freeze = qcud_freeze,
	.restore = qcud_restore,
#endif
};

static int __init qcud_init(void)
{
	int ret;

	ret = qcud_request_cache_create();
	if (ret)
		return ret;
	/*
	 * WQ_MEM_RECLAIM: the queue has a rescuer thread for times when no thread can be created.
	 * Its work gives memory back.
	 */
	qcud_wq = alloc_workqueue("qcuda", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!qcud_wq) {
		ret = -ENOMEM;
		goto cache;
	}
	ret = alloc_chrdev_region(&qcud_devt, 0, 1, "qcuda");
	if (ret)
		goto wq;
	cdev_init(&qcud_cdev, &qcud_fops);
	qcud_cdev.owner = THIS_MODULE;
	ret = cdev_add(&qcud_cdev, qcud_devt, 1);
	if (ret)
		goto region;
	ret = class_register(&qcud_class);
	if (ret)
		goto cdev;
	qcud_debugfs_create();
	ret = qcud_oom_register();
	if (ret)
		goto debugfs;
	ret = register_reboot_notifier(&qcud_reboot_notifier);
	if (ret)
		goto oom;
	ret = register_virtio_driver(&qcud_driver);
	if (ret)
		goto notifier;
	return 0;

notifier:
	unregister_reboot_notifier(&qcud_reboot_notifier);
oom:
	qcud_oom_unregister();
debugfs:
	qcud_debugfs_remove();
	class_unregister(&qcud_class);
cdev:
	cdev_del(&qcud_cdev);
region:
	unregister_chrdev_region(qcud_devt, 1);
wq:
	destroy_workqueue(qcud_wq);
cache:
	qcud_request_cache_destroy();
	return ret;
}

static void __exit qcud_exit(void)
{
	unregister_virtio_driver(&qcud_driver);
	unregister_reboot_notifier(&qcud_reboot_notifier);
	qcud_oom_unregister();
	qcud_debugfs_remove();
	class_unregister(&qcud_class);
	cdev_del(&qcud_cdev);
	unregister_chrdev_region(qcud_devt, 1);
	destroy_workqueue(qcud_wq);
	qcud_stats_check();
	qcud_request_cache_destroy();
}

module_init(qcud_init);
module_exit(qcud_exit);

MODULE_AUTHOR("The qCUDA authors");
MODULE_DESCRIPTION("CUDA in a virtual machine: guest memory and commands for the host's GPU");
MODULE_LICENSE("GPL");

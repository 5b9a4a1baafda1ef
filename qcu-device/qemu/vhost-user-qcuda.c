// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The QEMU side of the qCUDA device: a vhost-user device that leaves
 * everything to the qcu-device process behind the chardev.
 *
 * It stands on vhost-user-base and adds what that one lacks: a device process
 * that dies must not take the VM along. The base keeps calling into a cleaned
 * up vhost_dev then (asserts in vhost_dev_get_config and vhost_dev_start), and
 * it undoes a start that never happened. So this file handles the chardev's
 * events itself, answers config reads from a copy, and tells the guest that
 * the device needs a reset, which it then refuses at feature negotiation.
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/log.h"
#include "hw/qdev-properties.h"
#include "hw/qdev-properties-system.h"
#include "hw/virtio/virtio-bus.h"
#include "hw/virtio/vhost-user-qcuda.h"
#include "standard-headers/linux/vhost_types.h"

static const VMStateDescription qcuda_vmstate = {
	.name = "vhost-user-qcuda",
	.unmigratable = 1,
};

static const Property qcuda_properties[] = {
	DEFINE_PROP_CHR("chardev", VHostUserBase, chardev),
	DEFINE_PROP_UINT16("sessions", VHostUserQcuda, sessions, QCUDA_SESSIONS_DEFAULT),
};

static void qcuda_event(void *opaque, QEMUChrEvent event);

static void qcuda_watch(DeviceState *dev)
{
	qemu_chr_fe_set_handlers(&VHOST_USER_BASE(dev)->chardev, NULL, NULL, qcuda_event, NULL, dev,
				 NULL, true);
}

/* Runs from the main loop once no vhost code is on the stack any more. */
static void qcuda_disconnect(DeviceState *dev)
{
	VHostUserQcudaClass *qc = VHOST_USER_QCUDA_GET_CLASS(dev);
	VHostUserBase *vub = VHOST_USER_BASE(dev);
	VirtIODevice *vdev = VIRTIO_DEVICE(dev);
	struct vhost_virtqueue *vqs = vub->vhost_dev.vqs;

	if (vub->connected) {
		vub->connected = false;
		/*
		 * vhost_user_async_close() cleared the flag that the base goes
		 * by when it gives the notifiers back. This other one is true
		 * exactly between a start that succeeded and its stop, also
		 * when the socket closed in the midst of either.
		 */
		vub->vhost_dev.started = vdev->vhost_started;
		qc->base_set_status(vdev, 0);
		vhost_dev_cleanup(&vub->vhost_dev);
		g_free(vqs);
		virtio_error(vdev,
			     "virtio-qcuda: qcu-device closed its socket; the VM runs on without "
			     "the qCUDA device");
	}
	object_unref(OBJECT(dev));
}

static void qcuda_event(void *opaque, QEMUChrEvent event)
{
	DeviceState *dev = opaque;
	VHostUserQcuda *q = VHOST_USER_QCUDA(dev);
	VHostUserBase *vub = VHOST_USER_BASE(dev);

	switch (event) {
	case CHR_EVENT_OPENED:
		if (q->gone) {
			error_report("virtio-qcuda: qcu-device came back, but its sessions are "
				     "lost; start the VM anew");
			qemu_chr_fe_disconnect(&vub->chardev);
		}
		break;
	case CHR_EVENT_CLOSED:
		if (q->gone) {
			break;
		}
		q->gone = true;
		object_ref(OBJECT(dev));
		vhost_user_async_close(dev, &vub->chardev, &vub->vhost_dev, qcuda_disconnect);
		break;
	default:
		break;
	}
}

static void qcuda_get_config(VirtIODevice *vdev, uint8_t *config)
{
	VHostUserQcuda *q = VHOST_USER_QCUDA(vdev);
	VHostUserBase *vub = VHOST_USER_BASE(vdev);
	Error *err = NULL;

	if (!q->gone && vhost_dev_get_config(&vub->vhost_dev, q->config, sizeof(q->config), &err)) {
		error_report_err(err);
	}
	memcpy(config, q->config, sizeof(q->config));
}

static void qcuda_set_config(VirtIODevice *vdev, const uint8_t *config)
{
	qemu_log_mask(LOG_GUEST_ERROR, "virtio-qcuda: the guest wrote to the config space\n");
}

static uint64_t qcuda_get_features(VirtIODevice *vdev, uint64_t features, Error **errp)
{
	VHostUserQcudaClass *qc = VHOST_USER_QCUDA_GET_CLASS(vdev);

	/* Dirty logging is between QEMU and qcu-device, not for the guest. */
	return qc->base_get_features(vdev, features, errp) & ~(1ULL << VHOST_F_LOG_ALL);
}

static int qcuda_validate_features(VirtIODevice *vdev)
{
	return VHOST_USER_QCUDA(vdev)->gone ? -ENODEV : 0;
}

/*
 * A VM that is stopped has its device go on: what a mirror has in hand cannot
 * be stopped half way, nor taken up by another one later. It is as with a
 * device that is passed through; the VM cannot be migrated in either case.
 */
static bool qcuda_only_stopped(VirtIODevice *vdev, uint8_t status)
{
	return !vdev->vm_running && virtio_device_started(vdev, status) &&
	       vhost_dev_is_started(&VHOST_USER_BASE(vdev)->vhost_dev);
}

static void qcuda_set_status(VirtIODevice *vdev, uint8_t status)
{
	if (!VHOST_USER_QCUDA(vdev)->gone && !qcuda_only_stopped(vdev, status)) {
		VHOST_USER_QCUDA_GET_CLASS(vdev)->base_set_status(vdev, status);
	}
}

/* For "info virtio-status" and its kin, which call it unseen. */
static struct vhost_dev *qcuda_get_vhost(VirtIODevice *vdev)
{
	return &VHOST_USER_BASE(vdev)->vhost_dev;
}

static void qcuda_realize(DeviceState *dev, Error **errp)
{
	ERRP_GUARD();
	VHostUserBaseClass *vubc = VHOST_USER_BASE_GET_CLASS(dev);
	VHostUserQcuda *q = VHOST_USER_QCUDA(dev);
	VHostUserBase *vub = VHOST_USER_BASE(dev);

	if (!vub->chardev.chr) {
		error_setg(errp,
			   "virtio-qcuda: no chardev given: add -chardev socket,id=ID,path=SOCKET "
			   "(the socket of a running qcu-device) and chardev=ID");
		return;
	}
	if (!q->sessions || q->sessions > QCUDA_SESSIONS_MAX) {
		error_setg(errp, "virtio-qcuda: sessions=%u is not between 1 and %u", q->sessions,
			   QCUDA_SESSIONS_MAX);
		return;
	}

	/* Queue 0 is control, then one for each session. */
	vub->virtio_id = VIRTIO_ID_QCUDA;
	vub->num_vqs = q->sessions + 1;
	vub->vq_size = QCUDA_QUEUE_SIZE;
	vub->config_size = sizeof(q->config);

	vubc->parent_realize(dev, errp);
	if (*errp) {
		/* The base leaves its own handler behind, for a device that is no more. */
		qemu_chr_fe_set_handlers(&vub->chardev, NULL, NULL, NULL, NULL, NULL, NULL, false);
		error_prepend(errp, "virtio-qcuda: qcu-device does not serve this socket: ");
		return;
	}
	qcuda_watch(dev);
}

static void qcuda_class_init(ObjectClass *klass, void *data)
{
	DeviceClass *dc = DEVICE_CLASS(klass);
	VirtioDeviceClass *vdc = VIRTIO_DEVICE_CLASS(klass);
	VHostUserBaseClass *vubc = VHOST_USER_BASE_CLASS(klass);
	VHostUserQcudaClass *qc = VHOST_USER_QCUDA_CLASS(klass);

	dc->vmsd = &qcuda_vmstate;
	dc->desc = "qCUDA device, served by a qcu-device process";
	device_class_set_props(dc, qcuda_properties);
	device_class_set_parent_realize(dc, qcuda_realize, &vubc->parent_realize);
	set_bit(DEVICE_CATEGORY_MISC, dc->categories);

	qc->base_set_status = vdc->set_status;
	qc->base_get_features = vdc->get_features;
	vdc->set_status = qcuda_set_status;
	vdc->get_features = qcuda_get_features;
	vdc->validate_features = qcuda_validate_features;
	vdc->get_vhost = qcuda_get_vhost;
	vdc->get_config = qcuda_get_config;
	vdc->set_config = qcuda_set_config;
}

static const TypeInfo qcuda_types[] = {
	{
		.name = TYPE_VHOST_USER_QCUDA,
		.parent = TYPE_VHOST_USER_BASE,
		.instance_size = sizeof(VHostUserQcuda),
		.class_size = sizeof(VHostUserQcudaClass),
		.class_init = qcuda_class_init,
	},
};

DEFINE_TYPES(qcuda_types)

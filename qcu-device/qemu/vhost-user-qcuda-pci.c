// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * virtio-qcuda-pci: the qCUDA device on the PCI bus, modern virtio only, with
 * one MSI-X vector for each queue and one for config changes.
 */

#include "qemu/osdep.h"
#include "hw/pci/pci_ids.h"
#include "hw/qdev-properties.h"
#include "hw/virtio/vhost-user-qcuda.h"
#include "hw/virtio/virtio-pci.h"

/* PCI base class 12h, processing accelerators; QEMU has no name for it. */
#define QCUDA_PCI_CLASS 0x1200

#define TYPE_VHOST_USER_QCUDA_PCI "virtio-qcuda-pci-base"

OBJECT_DECLARE_SIMPLE_TYPE(VHostUserQcudaPCI, VHOST_USER_QCUDA_PCI)

struct VHostUserQcudaPCI {
	VirtIOPCIProxy parent_obj;
	VHostUserQcuda vdev;
};

static const Property qcuda_pci_properties[] = {
	DEFINE_PROP_UINT32("vectors", VirtIOPCIProxy, nvectors, DEV_NVECTORS_UNSPECIFIED),
};

static void qcuda_pci_realize(VirtIOPCIProxy *proxy, Error **errp)
{
	VHostUserQcudaPCI *dev = VHOST_USER_QCUDA_PCI(proxy);

	if (proxy->nvectors == DEV_NVECTORS_UNSPECIFIED) {
		/* Sessions, the control queue, config changes. */
		proxy->nvectors = MIN(dev->vdev.sessions, QCUDA_SESSIONS_MAX) + 2;
	}
	qdev_realize(DEVICE(&dev->vdev), BUS(&proxy->bus), errp);
}

static void qcuda_pci_class_init(ObjectClass *klass, void *data)
{
	DeviceClass *dc = DEVICE_CLASS(klass);
	PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);

	VIRTIO_PCI_CLASS(klass)->realize = qcuda_pci_realize;
	dc->desc = "qCUDA device, served by a qcu-device process";
	set_bit(DEVICE_CATEGORY_MISC, dc->categories);
	device_class_set_props(dc, qcuda_pci_properties);
	pc->vendor_id = PCI_VENDOR_ID_REDHAT_QUMRANET;
	pc->device_id = 0; /* virtio-pci derives it from the virtio id */
	pc->revision = 0;
	pc->class_id = QCUDA_PCI_CLASS;
}

static void qcuda_pci_instance_init(Object *obj)
{
	VHostUserQcudaPCI *dev = VHOST_USER_QCUDA_PCI(obj);

	virtio_instance_init_common(obj, &dev->vdev, sizeof(dev->vdev), TYPE_VHOST_USER_QCUDA);
}

static const VirtioPCIDeviceTypeInfo qcuda_pci_info = {
	.base_name = TYPE_VHOST_USER_QCUDA_PCI,
	.non_transitional_name = "virtio-qcuda-pci",
	.instance_size = sizeof(VHostUserQcudaPCI),
	.instance_init = qcuda_pci_instance_init,
	.class_init = qcuda_pci_class_init,
};

static void qcuda_pci_register(void)
{
	virtio_pci_types_register(&qcuda_pci_info);
}

type_init(qcuda_pci_register);

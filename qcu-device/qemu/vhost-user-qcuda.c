// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The QEMU side of the qCUDA device: a vhost-user device that leaves
 * everything to the qcu-device process behind the chardev.
 *
 * It stands on vhost-user-base and adds what that one lacks: a device process
 * that dies must not take the VM along, and one that comes back is used again.
 * The base keeps calling into a cleaned up vhost_dev then (asserts in
 * vhost_dev_get_config and vhost_dev_start), it undoes a start that never
 * happened, and it gives the next process the rings of the last one. So this
 * file handles the chardev's events itself. While there is no device process
 * the config space is all zero; the guest is told that the device needs a
 * reset, may reset it and set it up as always, and hears of a config change
 * when the next process is there.
 *
 * The VM can be saved and migrated unless qcu-device gives a reason against it.
 * The reason stands in the config space behind the guest's part. Where the VM
 * is loaded, qcu-device learns of its memory first. So it makes all sessions
 * while the state is loaded, and if one cannot be made, loading fails.
 *
 * While QEMU copies the memory of a VM that runs, GPU memory goes ahead in a
 * section of its own: qcu-device writes it into a socket, and the qcu-device
 * where the VM will go on reads it from one. QEMU does not look into it.
 */

#include "qemu/osdep.h"
#include <poll.h>
#include <sys/socket.h>
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/log.h"
#include "block/aio.h"
#include "qemu/main-loop.h"
#include "qemu/units.h"
#include "hw/qdev-properties.h"
#include "hw/qdev-properties-system.h"
#include "hw/virtio/virtio-bus.h"
#include "hw/virtio/vhost-user-qcuda.h"
#include "io/channel-socket.h"
#include "migration/migration.h"
#include "migration/qemu-file.h"
#include "migration/register.h"
#include "migration/vmstate.h"
#include "standard-headers/linux/vhost_types.h"
#include "system/runstate.h"

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

static void qcuda_watch_no_more(DeviceState *dev)
{
	qemu_chr_fe_set_handlers(&VHOST_USER_BASE(dev)->chardev, NULL, NULL, NULL, NULL, NULL, NULL,
				 false);
}

/* Runs from the main loop once no vhost code is on the stack any more. */
static void qcuda_disconnect(void *opaque)
{
	DeviceState *dev = opaque;
	VHostUserQcudaClass *qc = VHOST_USER_QCUDA_GET_CLASS(dev);
	VHostUserBase *vub = VHOST_USER_BASE(dev);
	VirtIODevice *vdev = VIRTIO_DEVICE(dev);
	struct vhost_virtqueue *vqs = vub->vhost_dev.vqs;

	if (vub->connected) {
		vub->connected = false;
		/*
		 * The flag that the base goes by when it gives the notifiers back
		 * has been cleared. This other one is true exactly between a start
		 * that succeeded and its stop, also when the socket closed in the
		 * midst of either.
		 */
		vub->vhost_dev.started = vdev->vhost_started;
		qc->base_set_status(vdev, 0);
		vhost_dev_cleanup(&vub->vhost_dev);
		g_free(vqs);
		virtio_error(vdev,
			     "virtio-qcuda: qcu-device closed its socket; the VM runs on without "
			     "the qCUDA device");
		/* The next process may be there already, then this calls qcuda_event(). */
		qcuda_watch(dev);
	}
	object_unref(OBJECT(dev));
}

/* Another device process serves the socket. */
static void qcuda_reconnect(DeviceState *dev)
{
	VHostUserQcuda *q = VHOST_USER_QCUDA(dev);
	VHostUserBase *vub = VHOST_USER_BASE(dev);
	struct vhost_virtqueue *vqs = g_new0(struct vhost_virtqueue, vub->num_vqs);
	Error *err = NULL;

	vub->vhost_dev.nvqs = vub->num_vqs;
	vub->vhost_dev.vqs = vqs;
	if (vhost_dev_init(&vub->vhost_dev, &vub->vhost_user, VHOST_BACKEND_TYPE_USER, 0, &err)) {
		goto fail;
	}
	/* The guest has agreed on the features of the one before. */
	if (VIRTIO_DEVICE(dev)->host_features & ~vub->vhost_dev.features) {
		error_setg(&err, "it lacks features of the one before");
	} else if (!qemu_chr_fe_backend_open(&vub->chardev)) {
		error_setg(&err, "it has gone again");
	}
	if (err) {
		vhost_dev_cleanup(&vub->vhost_dev);
		goto fail;
	}
	vub->connected = true;
	q->gone = false;
	info_report("virtio-qcuda: qcu-device is back; programs that start now can use it");
	virtio_notify_config(VIRTIO_DEVICE(dev));
	return;

fail:
	g_free(vqs);
	error_reportf_err(err, "virtio-qcuda: the new qcu-device cannot be used: ");
	qemu_chr_fe_disconnect(&vub->chardev);
}

static void qcuda_event(void *opaque, QEMUChrEvent event)
{
	DeviceState *dev = opaque;
	VHostUserQcuda *q = VHOST_USER_QCUDA(dev);

	switch (event) {
	case CHR_EVENT_OPENED:
		if (q->gone) {
			qcuda_reconnect(dev);
		}
		break;
	case CHR_EVENT_CLOSED:
		if (q->gone) {
			break;
		}
		q->gone = q->lost = true;
		/*
		 * As vhost_user_async_close() does it; that one does nothing in a VM
		 * that has been shut down, which may be reset and go on.
		 */
		object_ref(OBJECT(dev));
		qcuda_watch_no_more(dev);
		VHOST_USER_BASE(dev)->vhost_dev.started = false;
		aio_bh_schedule_oneshot(qemu_get_current_aio_context(), qcuda_disconnect, dev);
		break;
	default:
		break;
	}
}

/* All zero says that nobody is there. */
static void qcuda_get_config(VirtIODevice *vdev, uint8_t *config)
{
	VHostUserBase *vub = VHOST_USER_BASE(vdev);
	Error *err = NULL;

	memset(config, 0, QCUDA_CONFIG_SIZE);
	if (!VHOST_USER_QCUDA(vdev)->gone &&
	    vhost_dev_get_config(&vub->vhost_dev, config, QCUDA_CONFIG_SIZE, &err)) {
		error_report_err(err);
		memset(config, 0, QCUDA_CONFIG_SIZE);
	}
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

/* What is against saving the VM; or after loading has failed, why. May be "". */
static bool qcuda_read_reason(VHostUserQcuda *q, char reason[QCUDA_REASON_SIZE], Error **errp)
{
	char all[QCUDA_CONFIG_SIZE + QCUDA_REASON_SIZE];
	size_t i;

	if (vhost_dev_get_config(&VHOST_USER_BASE(q)->vhost_dev, (uint8_t *)all, sizeof(all),
				 errp)) {
		return false;
	}
	memcpy(reason, all + QCUDA_CONFIG_SIZE, QCUDA_REASON_SIZE);
	reason[QCUDA_REASON_SIZE - 1] = '\0';
	for (i = 0; reason[i]; i++) {
		if (reason[i] < ' ' || reason[i] > '~') {
			reason[i] = '?';
		}
	}
	return true;
}

/* False: the VM cannot be saved now, and *errp says why. */
static bool qcuda_can_be_saved(VHostUserQcuda *q, Error **errp)
{
	VHostUserBase *vub = VHOST_USER_BASE(q);
	char reason[QCUDA_REASON_SIZE];

	/* A device that the guest has not reset yet has the rings of a process that has gone. */
	if (q->gone || q->lost) {
		error_setg(errp, "virtio-qcuda: the VM cannot be saved or migrated while no "
				 "qcu-device serves it");
		return false;
	}
	if (!vhost_supports_device_state(&vub->vhost_dev)) {
		error_setg(errp, "virtio-qcuda: the VM cannot be saved or migrated, because this "
				 "qcu-device is too old for it");
		return false;
	}
	if (!qcuda_read_reason(q, reason, errp)) {
		return false;
	}
	if (!*reason) {
		return true;
	}
	error_setg(errp, "virtio-qcuda: the VM cannot be saved or migrated, because %s", reason);
	return false;
}

static bool qcuda_is_being_saved(void)
{
	return runstate_check(RUN_STATE_FINISH_MIGRATE) || runstate_check(RUN_STATE_SAVE_VM);
}

/*
 * A VM that is stopped has its device go on: what a mirror has in hand cannot
 * be stopped half way. It is as with a device that is passed through. If the VM
 * is stopped to be saved, the device stops before the last of the memory is
 * read. With a reason against saving it goes on, and qcuda_pre_save() fails.
 */
static bool qcuda_only_stopped(VirtIODevice *vdev, uint8_t status)
{
	return !vdev->vm_running && virtio_device_started(vdev, status) &&
	       vhost_dev_is_started(&VHOST_USER_BASE(vdev)->vhost_dev) &&
	       !(qcuda_is_being_saved() && qcuda_can_be_saved(VHOST_USER_QCUDA(vdev), NULL));
}

/* The rings of a device process that has gone are not for the next one: a reset comes first. */
static void qcuda_set_status(VirtIODevice *vdev, uint8_t status)
{
	VHostUserQcuda *q = VHOST_USER_QCUDA(vdev);

	if (!status) {
		q->lost = false;
	}
	if (!q->gone && !q->lost && !qcuda_only_stopped(vdev, status)) {
		VHOST_USER_QCUDA_GET_CLASS(vdev)->base_set_status(vdev, status);
	}
}

/* ---- saving and loading ---- */

/*
 * Asked before anything else happens, so that `migrate` and `savevm` fail at
 * once. A VM that was stopped before is not stopped again, so its device stops
 * here. It starts again when the VM goes on.
 */
static int qcuda_save_prepare(void *opaque, Error **errp)
{
	VirtIODevice *vdev = opaque;

	if (!qcuda_can_be_saved(VHOST_USER_QCUDA(vdev), errp)) {
		return -EBUSY;
	}
	if (!vdev->vm_running) {
		VHOST_USER_QCUDA_GET_CLASS(vdev)->base_set_status(vdev, vdev->status);
	}
	return 0;
}

/* ---- GPU memory that goes ahead ---- */

/* In our use of the vhost-user message only: the VM may run. */
#define QCUDA_PHASE_AHEAD ((VhostDeviceStatePhase)1)

#define QCUDA_AHEAD_CHUNK (1 * MiB)
/* How much of it goes at a time, and how long QEMU waits for it. */
#define QCUDA_AHEAD_CHUNKS 16
#define QCUDA_AHEAD_MS	   10
/* Before its end is known, there is more of it than can be sent while the VM stands. */
#define QCUDA_AHEAD_LEFT (1ULL << 50)

/* Gives qcu-device one end of a socket. False: it does not take it, which is no error of a source.
 */
static bool qcuda_open_ahead(VHostUserQcuda *q, VhostDeviceStateDirection direction, Error **errp)
{
	int ends[2], other = -1;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		error_setg_errno(errp, errno, "virtio-qcuda: no socket");
		return false;
	}
	if (vhost_set_device_state_fd(&VHOST_USER_BASE(q)->vhost_dev, direction, QCUDA_PHASE_AHEAD,
				      ends[1], &other, errp) < 0) {
		close(ends[0]);
		return false;
	}
	if (other >= 0) {
		close(other);
	}
	q->ahead = ends[0];
	q->ahead_ends = false;
	return true;
}

static void qcuda_close_ahead(VHostUserQcuda *q)
{
	if (q->ahead >= 0) {
		close(q->ahead);
	}
	q->ahead = -1;
}

/*
 * The device has stopped, and all that went ahead has gone. What has been written since goes
 * through another socket, if qcu-device takes it; an older one does not. The first one tells
 * qcu-device that it is the same migration, until it has the other one.
 */
static void qcuda_open_late(VHostUserQcuda *q)
{
	int first = q->ahead;

	if (first < 0 || q->gone) {
		return;
	}
	if (qcuda_open_ahead(q, VHOST_TRANSFER_STATE_DIRECTION_SAVE, NULL)) {
		close(first);
	}
}

/* Of a VM that stands all goes with the state. */
static int qcuda_save_setup(QEMUFile *f, void *opaque, Error **errp)
{
	VHostUserQcuda *q = opaque;

	qcuda_close_ahead(q);
	q->ahead_ends = !VIRTIO_DEVICE(q)->vm_running || q->gone ||
			!qcuda_open_ahead(q, VHOST_TRANSFER_STATE_DIRECTION_SAVE, NULL);
	qemu_put_be32(f, 0);
	return 0;
}

static void qcuda_save_cleanup(void *opaque)
{
	qcuda_close_ahead(opaque);
}

static void qcuda_ahead_left(void *opaque, uint64_t *must_precopy, uint64_t *can_postcopy)
{
	if (!VHOST_USER_QCUDA(opaque)->ahead_ends) {
		*must_precopy += QCUDA_AHEAD_LEFT;
	}
}

/* Sends what there is, up to a chunk. False: there is nothing now, or no more. */
static bool qcuda_send_chunk(VHostUserQcuda *q, QEMUFile *f, uint8_t *chunk, int wait_ms)
{
	struct pollfd p = {.fd = q->ahead, .events = POLLIN};
	ssize_t n;

	if (q->ahead_ends || poll(&p, 1, wait_ms) <= 0) {
		return false;
	}
	n = RETRY_ON_EINTR(read(q->ahead, chunk, QCUDA_AHEAD_CHUNK));
	if (n <= 0) {
		q->ahead_ends = true;
		return false;
	}
	qemu_put_be32(f, n);
	/* Not in pieces of 32 KiB, as qemu_put_buffer() does. The chunk is used again. */
	qemu_put_buffer_async(f, chunk, n, false);
	qemu_fflush(f);
	return true;
}

static int qcuda_save_iterate(QEMUFile *f, void *opaque)
{
	g_autofree uint8_t *chunk = g_malloc(QCUDA_AHEAD_CHUNK);
	VHostUserQcuda *q = opaque;
	int i, wait_ms = QCUDA_AHEAD_MS;

	for (i = 0; i < QCUDA_AHEAD_CHUNKS && !migration_rate_exceeded(f); i++) {
		if (!qcuda_send_chunk(q, f, chunk, wait_ms)) {
			break;
		}
		wait_ms = 1;
	}
	qemu_put_be32(f, 0);
	return q->ahead_ends;
}

/* The device has stopped: qcu-device ends what it has begun. */
static int qcuda_save_complete(QEMUFile *f, void *opaque)
{
	g_autofree uint8_t *chunk = g_malloc(QCUDA_AHEAD_CHUNK);
	VHostUserQcuda *q = opaque;

	while (qcuda_send_chunk(q, f, chunk, -1)) {
	}
	qcuda_open_late(q);
	while (qcuda_send_chunk(q, f, chunk, -1)) {
	}
	qemu_put_be32(f, 0);
	return 0;
}

static int qcuda_load_chunk(VHostUserQcuda *q, const uint8_t *chunk, size_t n)
{
	ssize_t done;

	while (n) {
		done = RETRY_ON_EINTR(send(q->ahead, chunk, n, MSG_NOSIGNAL));
		if (done < 0) {
			return -errno;
		}
		chunk += done;
		n -= done;
	}
	return 0;
}

/* What came is for qcu-device to check. */
static int qcuda_load_ahead(QEMUFile *f, void *opaque, int version_id)
{
	g_autofree uint8_t *chunk = g_malloc(QCUDA_AHEAD_CHUNK);
	char reason[QCUDA_REASON_SIZE] = "";
	VHostUserQcuda *q = opaque;
	Error *err = NULL;
	struct vhost_dev *dev = &VHOST_USER_BASE(q)->vhost_dev;
	uint32_t n;
	int ret = 0;

	while (!ret && (n = qemu_get_be32(f))) {
		/* As in qcuda_get_state(): mirrors are made already. */
		if (q->ahead < 0 &&
		    (dev->vhost_ops->vhost_set_mem_table(dev, dev->mem) < 0 ||
		     !qcuda_open_ahead(q, VHOST_TRANSFER_STATE_DIRECTION_LOAD, &err))) {
			error_report("virtio-qcuda: GPU memory cannot be loaded: %s",
				     err ? error_get_pretty(err)
					 : "the VM's memory cannot be announced");
			error_free(err);
			return -ENODEV;
		}
		if (n > QCUDA_AHEAD_CHUNK || qemu_get_buffer(f, chunk, n) != n) {
			return qemu_file_get_error(f) ?: -EINVAL;
		}
		ret = qcuda_load_chunk(q, chunk, n);
	}
	if (!ret) {
		return qemu_file_get_error(f);
	}
	if (!qcuda_read_reason(q, reason, NULL) || !*reason) {
		snprintf(reason, sizeof(reason), "%s", strerror(-ret));
	}
	error_report("virtio-qcuda: GPU memory cannot be loaded: %s", reason);
	return ret;
}

static int qcuda_load_cleanup(void *opaque)
{
	qcuda_close_ahead(opaque);
	return 0;
}

/* Each part has chunks, and a length of 0 behind them; the first part has none. */
static const SaveVMHandlers qcuda_save_handlers = {
	.save_prepare = qcuda_save_prepare,
	.save_setup = qcuda_save_setup,
	.save_cleanup = qcuda_save_cleanup,
	.save_live_iterate = qcuda_save_iterate,
	.save_live_complete_precopy = qcuda_save_complete,
	.state_pending_estimate = qcuda_ahead_left,
	.state_pending_exact = qcuda_ahead_left,
	.load_state = qcuda_load_ahead,
	.load_cleanup = qcuda_load_cleanup,
};

/* A program may have begun since qcuda_save_prepare(). */
static int qcuda_pre_save(void *opaque)
{
	VHostUserQcuda *q = opaque;
	Error *err = NULL;

	if (qcuda_can_be_saved(q, &err) && vhost_dev_is_started(&VHOST_USER_BASE(q)->vhost_dev)) {
		error_setg(&err, "virtio-qcuda: the VM cannot be saved or migrated in a way that "
				 "does not stop it first");
	}
	if (!err) {
		return 0;
	}
	error_report_err(err);
	return -EBUSY;
}

static int qcuda_pre_load(void *opaque)
{
	if (!VHOST_USER_QCUDA(opaque)->gone) {
		return 0;
	}
	error_report("virtio-qcuda: the VM cannot be loaded while no qcu-device serves it");
	return -ENODEV;
}

static int qcuda_put_state(QEMUFile *f, void *pv, size_t size, const VMStateField *field,
			   JSONWriter *vmdesc)
{
	Error *err = NULL;
	int ret = vhost_save_backend_state(&VHOST_USER_BASE(pv)->vhost_dev, f, &err);

	if (ret < 0) {
		error_reportf_err(err, "virtio-qcuda: the device's state cannot be saved: ");
	}
	return ret;
}

/*
 * A source with a return path waits until all has been loaded here. If it has
 * closed the connection, the migration was cancelled, or cut off: the VM goes
 * on there, and must not begin here. QEMU itself does not look, because it has
 * nothing left to read.
 */
static bool qcuda_source_has_gone(QEMUFile *f)
{
	Object *channel =
		object_dynamic_cast(OBJECT(qemu_file_get_ioc(f)), TYPE_QIO_CHANNEL_SOCKET);
	struct pollfd p = {.events = POLLRDHUP};

	if (!channel || !migration_incoming_get_current()->to_src_file) {
		return false;
	}
	p.fd = QIO_CHANNEL_SOCKET(channel)->fd;
	return poll(&p, 1, 0) > 0;
}

/*
 * The VM's memory has been loaded before its devices. QEMU announces it when
 * the device starts, and then once more what has changed since. That is too
 * late: a source that has sent everything has given the VM up by then.
 */
static int qcuda_get_state(QEMUFile *f, void *pv, size_t size, const VMStateField *field)
{
	struct vhost_dev *dev = &VHOST_USER_BASE(pv)->vhost_dev;
	char reason[QCUDA_REASON_SIZE] = "";
	Error *err = NULL;
	int ret;

	/* All that came ahead has come. */
	qcuda_close_ahead(VHOST_USER_QCUDA(pv));
	ret = dev->vhost_ops->vhost_set_mem_table(dev, dev->mem);

	if (ret < 0) {
		error_report("virtio-qcuda: the VM's memory cannot be announced: %s",
			     strerror(-ret));
		return ret;
	}
	ret = vhost_load_backend_state(dev, f, &err);
	if (ret >= 0 && qcuda_source_has_gone(f)) {
		error_report("virtio-qcuda: the VM goes on at the source, which has closed the "
			     "connection");
		return -EPIPE;
	}
	if (ret >= 0) {
		return ret;
	}
	if (qcuda_read_reason(VHOST_USER_QCUDA(pv), reason, NULL) && *reason) {
		error_free(err);
		err = NULL;
		error_setg(&err, "%s", reason);
	}
	error_reportf_err(err, "virtio-qcuda: the device's state cannot be loaded: ");
	return ret;
}

static const VMStateInfo qcuda_state_info = {
	.name = "virtio-qcuda qcu-device",
	.get = qcuda_get_state,
	.put = qcuda_put_state,
};

static const VMStateDescription qcuda_vmstate = {
	.name = "virtio-qcuda",
	.version_id = 1,
	.minimum_version_id = 1,
	.pre_save = qcuda_pre_save,
	.pre_load = qcuda_pre_load,
	.fields =
		(const VMStateField[]){
			VMSTATE_VIRTIO_DEVICE,
			{
				.name = "qcu-device",
				.info = &qcuda_state_info,
			},
			VMSTATE_END_OF_LIST(),
		},
};

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
	vub->config_size = QCUDA_CONFIG_SIZE;

	/* A chardev that connects again and again has only begun with it. */
	if (qemu_chr_fe_wait_connected(&vub->chardev, errp)) {
		error_prepend(errp, "virtio-qcuda: ");
		return;
	}
	vubc->parent_realize(dev, errp);
	if (*errp) {
		/* The base leaves its own handler behind, for a device that is no more. */
		qcuda_watch_no_more(dev);
		error_prepend(errp, "virtio-qcuda: qcu-device does not serve this socket: ");
		return;
	}
	q->ahead = -1;
	register_savevm_live("virtio-qcuda-save", VMSTATE_INSTANCE_ID_ANY, 1, &qcuda_save_handlers,
			     dev);
	qcuda_watch(dev);
}

static void qcuda_unrealize(DeviceState *dev)
{
	qcuda_watch_no_more(dev);
	qcuda_close_ahead(VHOST_USER_QCUDA(dev));
	unregister_savevm(NULL, "virtio-qcuda-save", dev);
	/* What a disconnect that is under way would undo, the base undoes. */
	VHOST_USER_BASE(dev)->connected = false;
	VHOST_USER_QCUDA_GET_CLASS(dev)->base_unrealize(dev);
}

static void qcuda_class_init(ObjectClass *klass, void *data)
{
	DeviceClass *dc = DEVICE_CLASS(klass);
	VirtioDeviceClass *vdc = VIRTIO_DEVICE_CLASS(klass);
	VHostUserBaseClass *vubc = VHOST_USER_BASE_CLASS(klass);
	VHostUserQcudaClass *qc = VHOST_USER_QCUDA_CLASS(klass);

	dc->desc = "qCUDA device, served by a qcu-device process";
	dc->vmsd = &qcuda_vmstate;
	device_class_set_props(dc, qcuda_properties);
	device_class_set_parent_realize(dc, qcuda_realize, &vubc->parent_realize);
	set_bit(DEVICE_CATEGORY_MISC, dc->categories);

	qc->base_set_status = vdc->set_status;
	qc->base_get_features = vdc->get_features;
	qc->base_unrealize = vdc->unrealize;
	vdc->set_status = qcuda_set_status;
	vdc->get_features = qcuda_get_features;
	vdc->unrealize = qcuda_unrealize;
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

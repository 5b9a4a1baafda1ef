// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The devices, and the session in which NVML asks the mirror. What does not change is asked once,
 * at the first nvmlInit, in a session that ends at once: many programs call nvmlInit to count the
 * devices, and never nvmlShutdown.
 */
#include "qcu-library/nvml/state.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "qcu-library/nvml/host.h"

/* How often numbers are asked for that are on their way: for 2.5 seconds. */
#define SENSORS_PAUSE_NS 20000000
#define SENSORS_TRIES	 125

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects what is not atomic */
static atomic_uint users;				 /* nvmlInit less nvmlShutdown */
static atomic_uint count;				 /* release: the devices are filled in */
static bool known;
static int cuda_version;
static struct nv_device devices[NVML_DEVICES];
static pid_t owner; /* the process that has the session; 0: none */

static nv_return from_errno(int negative)
{
	switch (-negative) {
	case EACCES:
	case EPERM:
		return NV_NO_PERMISSION;
	case EBUSY:
	case EAGAIN:
	case EDQUOT:
		return NV_INSUFFICIENT_RESOURCES;
	case EPROTO:
		return NV_LIB_RM_VERSION_MISMATCH;
	case ENOMEM:
		return NV_MEMORY;
	case ETIMEDOUT:
		return NV_TIMEOUT;
	case ENOENT: /* also: there is a device, and the host gives no session */
	case ENXIO:
	case ENODEV:
	case EIO:
		return NV_DRIVER_NOT_LOADED;
	case ESHUTDOWN:
		return NV_GPU_IS_LOST;
	}
	return NV_UNKNOWN;
}

/* A forked child cannot use its parent's session. */
static int open_session(void)
{
	int rc;

	if (owner == getpid())
		return 0;
	if (owner)
		qcul_nvml_host_close();
	owner = 0;
	rc = qcul_nvml_host_open();
	if (!rc)
		owner = getpid();
	return rc;
}

static void close_session(void)
{
	if (owner)
		qcul_nvml_host_close();
	owner = 0;
}

/* A session that has failed is closed, so that the next question tries anew. */
static nv_return send_question(struct qCUcmd *cmd)
{
	int rc = open_session();

	if (!rc) {
		cmd->tid = (uint32_t)syscall(SYS_gettid);
		rc = qcul_nvml_host_send(cmd);
		if (!rc && cmd->status < 0)
			rc = cmd->status;
		if (rc)
			close_session();
	}
	if (rc)
		return from_errno(rc);
	return cmd->status ? NV_UNKNOWN : NV_SUCCESS;
}

static nv_return ask_nvml_mirror(enum qcu_op op, unsigned int device, void *answer, size_t len)
{
	struct qCUcmd cmd;

	memset(&cmd, 0, sizeof(cmd));
	cmd.op = op;
	cmd.device = (uint8_t)device;
	cmd.buf.addr = (uint64_t)(uintptr_t)answer;
	cmd.buf.len = len;
	return send_question(&cmd);
}

static nv_return learn(void)
{
	struct qCUcmd cmd;
	unsigned int i, n;
	nv_return err;

	memset(&cmd, 0, sizeof(cmd));
	cmd.op = QCU_OP_INFO;
	err = send_question(&cmd);
	n = cmd.info.devices < NVML_DEVICES ? cmd.info.devices : NVML_DEVICES;
	for (i = 0; !err && i < n; i++) {
		struct qcu_device_desc *desc = &devices[i].desc;

		err = ask_nvml_mirror(QCU_OP_DEVICE_INFO, i, desc, sizeof(*desc));
		desc->name[sizeof(desc->name) - 1] = 0;
	}
	close_session();
	if (err)
		return err;
	cuda_version = (int)cmd.info.driver_version;
	atomic_store_explicit(&count, n, memory_order_release);
	known = true;
	return NV_SUCCESS;
}

nv_return qcul_nvml_init(bool without_gpus)
{
	nv_return err = NV_SUCCESS;

	pthread_mutex_lock(&lock);
	if (!known)
		err = learn();
	if (without_gpus)
		err = NV_SUCCESS;
	if (!err)
		atomic_fetch_add(&users, 1);
	pthread_mutex_unlock(&lock);
	return err;
}

nv_return qcul_nvml_shutdown(void)
{
	nv_return err = NV_SUCCESS;

	pthread_mutex_lock(&lock);
	if (!atomic_load(&users))
		err = NV_UNINITIALIZED;
	else if (atomic_fetch_sub(&users, 1) == 1)
		close_session();
	pthread_mutex_unlock(&lock);
	return err;
}

nv_return qcul_nvml_ready(void)
{
	return atomic_load(&users) ? NV_SUCCESS : NV_UNINITIALIZED;
}

unsigned int qcul_nvml_count(void)
{
	return atomic_load_explicit(&count, memory_order_acquire);
}

nv_return qcul_nvml_check(const struct nv_device *device)
{
	uintptr_t at = (uintptr_t)device - (uintptr_t)devices;
	nv_return err = qcul_nvml_ready();

	if (err)
		return err;
	return at % sizeof(*device) || at / sizeof(*device) >= qcul_nvml_count()
		       ? NV_INVALID_ARGUMENT
		       : NV_SUCCESS;
}

struct nv_device *qcul_nvml_device(unsigned int index)
{
	return index < qcul_nvml_count() ? &devices[index] : NULL;
}

unsigned int qcul_nvml_index(const struct nv_device *device)
{
	return (unsigned int)(device - devices);
}

int qcul_nvml_cuda_version(void)
{
	return qcul_nvml_count() ? cuda_version : 0;
}

nv_return qcul_nvml_use(const struct nv_device *device, struct qcu_vm_use_desc *use)
{
	nv_return err;

	pthread_mutex_lock(&lock);
	err = ask_nvml_mirror(QCU_OP_VM_USE, qcul_nvml_index(device), use, sizeof(*use));
	pthread_mutex_unlock(&lock);
	if (!err && use->count > QCU_VM_USERS)
		err = NV_UNKNOWN;
	return err;
}

/* Each of the host's numbers is at most some seconds old. */
nv_return qcul_nvml_sensors(const struct nv_device *device, struct qcu_sensors *now)
{
	const struct timespec pause = {.tv_nsec = SENSORS_PAUSE_NS};
	unsigned int tries = SENSORS_TRIES;
	struct qCUcmd cmd;
	nv_return err;

	for (;;) {
		memset(&cmd, 0, sizeof(cmd));
		cmd.op = QCU_OP_SENSORS;
		cmd.device = (uint8_t)qcul_nvml_index(device);
		pthread_mutex_lock(&lock);
		err = send_question(&cmd);
		pthread_mutex_unlock(&lock);
		if (err || cmd.sensors.known != QCU_SENSORS_SOON || !--tries)
			break;
		nanosleep(&pause, NULL);
	}
	*now = cmd.sensors;
	return err;
}

nv_return qcul_nvml_peer(const struct nv_device *device, const struct nv_device *peer,
			 unsigned int attr, int *value)
{
	struct qCUcmd cmd;
	nv_return err;

	memset(&cmd, 0, sizeof(cmd));
	cmd.op = QCU_OP_PEER_INFO;
	cmd.device = (uint8_t)qcul_nvml_index(device);
	cmd.peer_info.peer = qcul_nvml_index(peer);
	cmd.peer_info.attr = attr;
	pthread_mutex_lock(&lock);
	err = send_question(&cmd);
	pthread_mutex_unlock(&lock);
	*value = cmd.peer_info.value;
	return err;
}

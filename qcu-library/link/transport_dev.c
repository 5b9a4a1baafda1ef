// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The transport in a guest: /dev/qcuda. An open file is a session. Commands go by ioctl, chunk
 * memory comes by mmap. If something is wrong with the setup, this file prints it once, in a
 * sentence that says what to do about it.
 */
#include "qcu-library/link/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qcu-library/link/link.h"

#define DEVICE	   "/dev/qcuda"
#define PARAMETERS "/sys/module/qcuda/parameters/"

static struct {
	int fd;
	atomic_flag said; /* what is wrong */
} process = {.fd = -1, .said = ATOMIC_FLAG_INIT};
static QCUL_NEAR int late;

static cudaError_t open_failed(int err)
{
	switch (err) {
	case ENOENT:
	case ENXIO:
		qcul_say_once(&process.said,
			      "%s is missing: load the module (modprobe qcuda) in a VM that has a "
			      "virtio-qcuda device (%s)",
			      DEVICE, strerror(err));
		return cudaErrorNoDevice;
	case EACCES:
	case EPERM:
		qcul_say_once(&process.said,
			      "no permission to open %s: ask for read and write access to it (%s)",
			      DEVICE, strerror(err));
		return cudaErrorNoDevice;
	case EBUSY:
	case EAGAIN:
		qcul_say_once(
			&process.said,
			"all sessions of %s are in use: end another CUDA program, or give the "
			"device more queues (%s)",
			DEVICE, strerror(err));
		return cudaErrorDevicesUnavailable;
	case EDQUOT:
		qcul_say_once(
			&process.said,
			"this user has as many sessions of %s as one may have: end another CUDA "
			"program, or raise the qcuda module's user_sessions (%s)",
			DEVICE, strerror(err));
		return cudaErrorDevicesUnavailable;
	case ENODEV: /* the node can exist longer than its device */
	case EIO:
	case ESHUTDOWN:
	case ETIMEDOUT:
	case EPIPE:
		qcul_say_once(
			&process.said,
			"%s: the host gives no session: is qcu-device running there, and what "
			"does it say? (%s)",
			DEVICE, strerror(err));
		return err == ENODEV ? cudaErrorNoDevice : cudaErrorDevicesUnavailable;
	case ENOMEM:
		return cudaErrorMemoryAllocation;
	}
	qcul_say_once(&process.said, "cannot open %s: %s", DEVICE, strerror(err));
	return cudaErrorInitializationError;
}

/* `qcu doctor` reads this text out of the file. */
#define TEXT_OF(number) #number
#define TEXT(number)	TEXT_OF(number)
__attribute__((used)) static const char wire_text[] = "qcuda wire version " TEXT(QCU_WIRE_VERSION);

static cudaError_t wrong_version(const struct qcu_hello *hello)
{
	uint32_t library = QCU_WIRE_VERSION, driver = hello->driver_version;
	uint32_t device = hello->device_version, newest = library;

	if (driver > newest)
		newest = driver;
	if (device > newest)
		newest = device;
	qcul_say_once(&process.said,
		      "versions do not match: this libcudart speaks %u, the qcuda module %u, the "
		      "device %u; to be updated:%s%s%s",
		      library, driver, device, library < newest ? " this libcudart" : "",
		      driver < newest ? " the module" : "", device < newest ? " the host" : "");
	return driver == library ? cudaErrorSystemDriverMismatch : cudaErrorInsufficientDriver;
}

static uint32_t module_parameter(const char *path)
{
	unsigned int value = 0;
	FILE *f = fopen(path, "re");

	if (f && fscanf(f, "%u", &value) != 1)
		value = 0;
	if (f)
		fclose(f);
	return value;
}

/* The device has another version than the module, which therefore opens no session. */
static cudaError_t other_device(void)
{
	return wrong_version(&(struct qcu_hello){
		.driver_version = module_parameter(PARAMETERS "wire_version"),
		.device_version = module_parameter(PARAMETERS "device_wire_version"),
	});
}

static void set_chunk_size(int file, struct qcu_hello *hello)
{
	struct qcu_chunk_size size = {0};
	uint64_t bytes;

	if (!qcul_env_bytes("QCU_CHUNK", &bytes))
		return;
	size.bytes = bytes <= UINT32_MAX ? (uint32_t)bytes : 0;
	if (ioctl(file, QCU_IOC_CHUNK, &size) == 0) {
		hello->chunk_bytes = size.bytes;
	} else {
		static atomic_flag chunk_said = ATOMIC_FLAG_INIT;

		qcul_say_once(
			&chunk_said,
			"QCU_CHUNK: chunks of %llu bytes are not possible here (%s); using %u",
			(unsigned long long)bytes, strerror(errno), hello->chunk_bytes);
	}
}

int qcul_transport_open(struct qcu_hello *hello)
{
	int file, err;

	file = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (file < 0)
		return errno == EPROTO ? other_device() : open_failed(errno);
	memset(hello, 0, sizeof(*hello));
	hello->library_version = QCU_WIRE_VERSION;
	if (ioctl(file, QCU_IOC_HELLO, hello) < 0) {
		err = errno;
		close(file);
		return err == EPROTO ? wrong_version(hello) : open_failed(err);
	}
	if (hello->driver_version != QCU_WIRE_VERSION) {
		close(file);
		return wrong_version(hello);
	}
	set_chunk_size(file, hello);
	process.fd = file;
	return cudaSuccess;
}

void qcul_transport_close(void)
{
	if (process.fd >= 0)
		close(process.fd);
	process.fd = -1;
}

bool qcul_transport_shares_memory(void)
{
	return false;
}

/* Errors are ignored: if the session has ended, the next command returns the error. */
void qcul_transport_waiting(uint32_t how)
{
	struct qcu_waiting waiting = {.how = how};

	(void)ioctl(process.fd, QCU_IOC_WAITING, &waiting);
}

int qcul_transport_submit(struct qCUcmd *cmds, unsigned int count)
{
	while (count > 0) {
		struct qcu_submit submit = {
			.cmds = (uint64_t)(uintptr_t)cmds,
			.count = count < QCU_SUBMIT_MAX ? count : QCU_SUBMIT_MAX,
		};
		int n = ioctl(process.fd, QCU_IOC_SUBMIT, &submit);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0 || (unsigned int)n > submit.count)
			return -EIO;
		if (!late)
			late = submit.late;
		cmds += n;
		count -= (unsigned int)n;
	}
	return 0;
}

int qcul_transport_late(void)
{
	int err = late;

	late = 0;
	return err;
}

void qcul_transport_thread_ends(void)
{
}

int qcul_transport_map(void *addr, size_t len)
{
	void *p = mmap(addr, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE,
		       process.fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	if (p != addr) {
		munmap(p, len);
		return -EEXIST;
	}
	return 0;
}

int qcul_transport_unmap(void *addr, size_t len)
{
	return munmap(addr, len) == 0 ? 0 : -errno;
}

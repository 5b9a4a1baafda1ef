// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Errors: the last error of each thread, the errors that end all work in the process, the CUDA
 * error for each errno of the driver, and the names and texts of errors.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "include/qcuerror.h"
#include "qcu-library/link/link.h"

/* The error may have an explanation: the text of an assertion, where a kernel failed, or why the
 * software GPU cannot run it. */
static bool explained(cudaError_t err)
{
	return err && (qcul_sticky(err) || err == cudaErrorNoKernelImageForDevice ||
		       err == cudaErrorInvalidKernelImage || err == cudaErrorInvalidPtx ||
		       err == cudaErrorNotSupported);
}

static struct {
	void (*write_line)(const char *text);
	void (*deliver_lines)(void);
	void (*explain)(void);
	_Atomic(pthread_t) hushed;
} process;

void qcul_errors_logged_by(void (*line)(const char *text), void (*deliver)(void))
{
	process.write_line = line;
	process.deliver_lines = deliver;
}

void qcul_errors_explained_by(void (*print)(void))
{
	process.explain = print;
}

/* NVIDIA's runtime 13 does not count "not ready" as an error. */
cudaError_t qcul_done(cudaError_t err)
{
	char text[256];

	if (err != cudaSuccess && err != cudaErrorNotReady) {
		snprintf(text, sizeof(text), "%s: %s", cudaGetErrorName(err),
			 cudaGetErrorString(err));
		process.write_line(text);
		process.deliver_lines();
		/* Set this after the program's callbacks, because they may set errors too. */
		qcul_self.last = err;
	}
	/* Print the explanation now, whichever call reports the error. */
	if (explained(err))
		process.explain();
	return err;
}

bool qcul_sticky(int err)
{
	switch (err) {
	case cudaErrorDevicesUnavailable:
	case cudaErrorECCUncorrectable:
	case cudaErrorNvlinkUncorrectable:
	case cudaErrorContained:
	case cudaErrorIllegalAddress:
	case cudaErrorLaunchTimeout:
	case cudaErrorAssert:
	case cudaErrorHardwareStackError:
	case cudaErrorIllegalInstruction:
	case cudaErrorMisalignedAddress:
	case cudaErrorInvalidAddressSpace:
	case cudaErrorInvalidPc:
	case cudaErrorLaunchFailure:
	case cudaErrorTensorMemoryLeak:
	case cudaErrorMpsClientTerminated:
		return true;
	}
	return false;
}

cudaError_t qcul_from_errno(int negative)
{
	switch (-negative) {
	case ENOMEM:
		return cudaErrorMemoryAllocation;
	case EFAULT:
	case EINVAL:
	case E2BIG:
	case ERANGE:
		return cudaErrorInvalidValue;
	case EPERM:
	case EACCES:
		return cudaErrorNotPermitted;
	case EEXIST:
		return cudaErrorHostMemoryAlreadyRegistered;
	case EOPNOTSUPP:
	case ENOTTY:
		return cudaErrorNotSupported;
	case ESHUTDOWN:
	case ENODEV:
	case EIO:
	case EPIPE:
	case EPROTO:
	case EBADF:
	case ETIMEDOUT:
		return cudaErrorDevicesUnavailable;
	}
	return cudaErrorUnknown;
}

/* The thread whose messages are suppressed, or 0. There is only one at a time, because the caller
 * of qcul_hush() holds the session's lock. */
void qcul_hush(bool on)
{
	atomic_store(&process.hushed, on ? pthread_self() : (pthread_t)0);
}

void qcul_say_once(atomic_flag *said, const char *format, ...)
{
	char text[512];
	va_list ap;

	if (atomic_load(&process.hushed) == pthread_self() || atomic_flag_test_and_set(said))
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	/* One write, so that the line is not mixed with other output. */
	fprintf(stderr, "qcuda: %s\n", text);
	process.write_line(text);
}

cudaError_t cudaGetLastError(void)
{
	cudaError_t err = cudaPeekAtLastError();

	qcul_self.last = qcul_self.late = cudaSuccess;
	return err;
}

cudaError_t cudaPeekAtLastError(void)
{
	return qcul_self.last ? qcul_self.last : qcul_self.late;
}

const char *cudaGetErrorName(cudaError_t err)
{
	switch ((int)err) {
#define X(n, name, text) \
	case n:          \
		return n ? "cudaError" #name : "cudaSuccess";
		QCU_ERRORS(X)
#undef X
	}
	return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t err)
{
	switch ((int)err) {
#define X(n, name, text) \
	case n:          \
		return text;
		QCU_ERRORS(X)
#undef X
	}
	return "unrecognized error code";
}

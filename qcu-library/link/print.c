// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The output of kernels. It goes to this program's stdout through stdio, so that it keeps its order
 * with the program's own output. The text of failed assertions goes to stderr. As with CUDA, the
 * output appears when a call has waited for the GPU.
 */
#include <stdio.h>

#include "qcu-library/link/fork.h"
#include "qcu-library/link/link.h"

static struct {
	union {
		char text[64 << 10];
		struct qcu_fault faults[(64 << 10) / sizeof(struct qcu_fault)];
	} from;
	void (*tell_fault)(struct qcu_fault *fault);
} process;
QCUL_AT_FORK(QCUL_FORK_PRINT)

/* Returns the number of bytes that it got. Also 0 if the text cannot be fetched any more. */
static size_t fetch_printed_text(uint32_t channel)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_PRINT_READ);

	cmd.print_read.buf.addr = (uint64_t)(uintptr_t)process.from.text;
	cmd.print_read.buf.len = sizeof(process.from.text);
	cmd.print_read.channel = channel;
	if (qcul_send(&cmd, 1) != cudaSuccess || cmd.print_read.got > sizeof(process.from.text))
		return 0;
	return cmd.print_read.got;
}

/*
 * The text of failed assertions, and of the software GPU's checks. CUDA writes the text of an
 * assertion when it is asked to wait. The call that returned the error may not have waited, so this
 * function waits.
 */
static void flush_errors(void)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_DEVICE_SYNC);
	size_t got, i;

	if (qcul_broken())
		(void)qcul_send(&cmd, 1);
	while ((got = fetch_printed_text(QCU_PRINT_ERR)) > 0)
		fwrite(process.from.text, 1, got, stderr);
	while ((got = fetch_printed_text(QCU_PRINT_FAULT)) > 0)
		for (i = 0; i < got / sizeof(*process.from.faults); i++)
			process.tell_fault(&process.from.faults[i]);
}

void qcul_faults_told_by(void (*tell)(struct qcu_fault *fault))
{
	process.tell_fault = tell;
}

void qcul_print_flush(void)
{
	size_t got;

	if (!atomic_load_explicit(&qcul_printed, memory_order_relaxed))
		return;
	pthread_mutex_lock(&at_fork.lock);
	if (atomic_exchange(&qcul_printed, false)) {
		while ((got = fetch_printed_text(QCU_PRINT_OUT)) > 0)
			fwrite(process.from.text, 1, got, stdout);
		fflush(stdout);
		flush_errors();
	}
	pthread_mutex_unlock(&at_fork.lock);
}

__attribute__((constructor)) static void register_print_flush(void)
{
	qcul_errors_explained_by(qcul_print_flush);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/* NVML's way to a mirror that is in the program's own process. */
#include "qcu-library/nvml/host.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/transport/settings.h"

struct question {
	struct mir_request req;
	sem_t answered;
};

static struct mirror *mirror;
static pid_t owner;

int qcul_nvml_host_open(void)
{
	const char *gpus = getenv("QCU_LOOPBACK_GPUS"), *nvml = getenv("QCU_LOOPBACK_NVML");
	struct mir_config cfg = {.ops = loopback_backend(), .guest_pid = (uint32_t)getpid()};

	if (!cfg.ops)
		return -ENODEV;
	if (nvml)
		cfg.sensors = !strcmp(nvml, "full")   ? SENSORS_ALL
			      : !strcmp(nvml, "none") ? SENSORS_NONE
						      : SENSORS_OWN;
	if (gpus)
		cfg.options.gpus = (unsigned int)strtoul(gpus, NULL, 10);
	owner = getpid();
	return mir_create(&mirror, &cfg);
}

/* The mirror's threads run only in the process that made it. */
void qcul_nvml_host_close(void)
{
	if (mirror && owner == getpid())
		mir_destroy(mirror);
	mirror = NULL;
}

static void done(struct mir_request *req)
{
	sem_post(&((struct question *)req)->answered);
}

int qcul_nvml_host_send(struct qCUcmd *cmd)
{
	struct question qu = {.req = {.cmd = *cmd, .done = done}};
	struct qcu_seg seg = {cmd->buf.addr, cmd->buf.len};
	int rc = qcu_check_user(cmd);

	if (rc)
		return rc;
	if (qcu_rule(cmd->op)->buffer != QCU_BUFFER_NONE) {
		qu.req.cmd.flags |= QCU_F_SEGS;
		qu.req.segs = &seg;
		qu.req.seg_count = 1;
	}
	sem_init(&qu.answered, 0, 0);
	if (!mir_submit(mirror, &qu.req))
		return -EIO;
	while (sem_wait(&qu.answered))
		;
	qcu_take_answer(cmd, &qu.req.cmd);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Text for the program's stdout and stderr: what its kernels print, what failed assertions and the
 * checks of a software GPU say, and why the mirror has refused an image. And where a kernel failed,
 * of which the library makes a text.
 */
#include <string.h>

#include "qcu-device/commands/commands.h"

typedef int read_fn(struct be *be, void *buf, size_t max, size_t *got);

static bool has_text(struct mirror *m, read_fn *read)
{
	size_t got = 0;

	return !read(m->be, NULL, 0, &got) && got;
}

bool mir_has_output(struct mirror *m)
{
	bool refusal;

	pthread_mutex_lock(&m->lock);
	refusal = m->refusal[0];
	pthread_mutex_unlock(&m->lock);
	return refusal || has_text(m, m->cfg.ops->print_read) ||
	       has_text(m, m->cfg.ops->assert_read) || has_text(m, m->cfg.ops->fault_read);
}

/* Text of the mirror's own for the program, delivered once, cut to the room there is. */
static int read_refusal(struct call *c, uint64_t room, uint64_t *got)
{
	struct mirror *m = c->m;
	char text[sizeof(m->refusal)];

	pthread_mutex_lock(&m->lock);
	memcpy(text, m->refusal, sizeof(text));
	m->refusal[0] = '\0';
	pthread_mutex_unlock(&m->lock);
	*got = strlen(text) < room ? strlen(text) : room;
	return *got ? mir_buf_write(c, 0, text, *got) : (int)QCU_ERR_Success;
}

int mir_do_print_read(struct call *c)
{
	read_fn *const of_channel[] = {
		[QCU_PRINT_OUT] = c->m->cfg.ops->print_read,
		[QCU_PRINT_ERR] = c->m->cfg.ops->assert_read,
		[QCU_PRINT_FAULT] = c->m->cfg.ops->fault_read,
	};
	uint32_t channel = c->cmd->print_read.channel;
	uint8_t text[4096];
	uint64_t off = 0, room = c->cmd->buf.len;
	int rc = QCU_ERR_Success;

	if (channel > QCU_PRINT_FAULT || c->cmd->print_read.rsvd)
		return QCU_ERR_InvalidValue;
	if (channel == QCU_PRINT_ERR) {
		rc = read_refusal(c, room, &off);
		room -= off;
	}
	while (room && !rc) {
		size_t got = 0;

		rc = of_channel[channel](c->m->be, text, room < sizeof(text) ? room : sizeof(text),
					 &got);
		if (rc || !got)
			break;
		rc = mir_buf_write(c, off, text, got);
		off += got;
		room -= got;
	}
	c->cmd->print_read.got = rc ? 0 : off;
	return rc;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What kernels print, until the guest program fetches it. As on a GPU the buffer has a fixed size,
 * and when nobody fetches in time the oldest output is lost; here always whole lines of it.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/soft.h"

#define PRINT_BYTES (8u << 20)

bool soft_print_init(struct soft_print *p)
{
	p->head = 0;
	p->used = 0;
	p->buf = malloc(PRINT_BYTES);
	if (!p->buf)
		return false;
	pthread_mutex_init(&p->lock, NULL);
	return true;
}

void soft_print_fini(struct soft_print *p)
{
	if (!p->buf)
		return;
	pthread_mutex_destroy(&p->lock);
	free(p->buf);
	p->buf = NULL;
}

static char take_char(struct soft_print *p)
{
	char c = p->buf[p->head];

	p->head = (p->head + 1) % PRINT_BYTES;
	p->used--;
	return c;
}

static void take(struct soft_print *p, char *to, size_t len)
{
	size_t first = PRINT_BYTES - p->head;

	if (first > len)
		first = len;
	memcpy(to, p->buf + p->head, first);
	memcpy(to + first, p->buf, len - first);
	p->head = (p->head + len) % PRINT_BYTES;
	p->used -= len;
}

static void add(struct soft_print *p, const char *text, size_t len)
{
	size_t at, first;

	if (len > PRINT_BYTES) {
		text += len - PRINT_BYTES;
		len = PRINT_BYTES;
	}
	pthread_mutex_lock(&p->lock);
	if (p->used + len > PRINT_BYTES) {
		size_t lose = p->used + len - PRINT_BYTES;

		p->head = (p->head + lose) % PRINT_BYTES;
		p->used -= lose;
		while (p->used && take_char(p) != '\n')
			;
	}
	at = (p->head + p->used) % PRINT_BYTES;
	first = PRINT_BYTES - at < len ? PRINT_BYTES - at : len;
	memcpy(p->buf + at, text, first);
	memcpy(p->buf, text + first, len - first);
	p->used += len;
	pthread_mutex_unlock(&p->lock);
}

void soft_env_print(void *ctx, const char *text, size_t len)
{
	add(&((struct soft_device *)ctx)->be->print, text, len);
}

/* What failed assertions say. */
void soft_env_complain(void *ctx, const char *text, size_t len)
{
	add(&((struct soft_device *)ctx)->be->complaints, text, len);
}

static int read_out(struct soft_print *p, void *buf, size_t max, size_t *got)
{
	pthread_mutex_lock(&p->lock);
	*got = p->used;
	if (buf) {
		if (*got > max)
			*got = max;
		take(p, buf, *got);
	}
	pthread_mutex_unlock(&p->lock);
	return QCU_ERR_Success;
}

/* Also after an error: what a kernel said before its assertion failed is wanted most. */
int soft_print_read(struct be *be, void *buf, size_t max, size_t *got)
{
	return read_out(&be->print, buf, max, got);
}

int soft_assert_read(struct be *be, void *buf, size_t max, size_t *got)
{
	return read_out(&be->complaints, buf, max, got);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Buffers for what kernels print, until the guest program fetches it. As on a GPU, a buffer has a
 * fixed size, and if the program does not fetch in time, the oldest output is lost. Here it is
 * always whole lines that are lost. Lines for the operator go to complain(). Where the first kernel
 * has failed is kept here, too.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/soft/gpu/soft.h"

#define PRINT_BYTES (8u << 20) /* the initial size */

void soft_say(const char *fmt, ...)
{
	char text[480];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	complain("soft GPU: %s", text);
}

bool soft_print_init(struct soft_print *p, uint64_t most)
{
	*p = (struct soft_print){.size = PRINT_BYTES, .most = most ? most : UINT64_MAX};

	if (p->size > p->most)
		p->size = p->most;
	p->buf = malloc(p->size);
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

int soft_print_resize(struct soft_print *p, size_t size)
{
	int err = QCU_ERR_InvalidValue;
	char *buf = size <= p->most ? malloc(size) : NULL;

	if (!buf)
		return QCU_ERR_MemoryAllocation;
	pthread_mutex_lock(&p->lock);
	if (!p->ever) {
		free(p->buf);
		p->buf = buf;
		p->size = size;
		buf = NULL;
		err = QCU_ERR_Success;
	}
	pthread_mutex_unlock(&p->lock);
	free(buf);
	return err;
}

static char take_char(struct soft_print *p)
{
	char c = p->buf[p->head];

	p->head = (p->head + 1) % p->size;
	p->used--;
	return c;
}

static void take_output_text(struct soft_print *p, char *to, size_t len)
{
	size_t first = p->size - p->head;

	if (first > len)
		first = len;
	memcpy(to, p->buf + p->head, first);
	memcpy(to + first, p->buf, len - first);
	p->head = (p->head + len) % p->size;
	p->used -= len;
}

/* True: some output is lost, for the first time. */
static bool add_output_text(struct soft_print *p, const char *text, size_t len)
{
	size_t at, first;
	bool lost = false;

	pthread_mutex_lock(&p->lock);
	p->ever = true;
	if (len > p->size - p->used) {
		lost = !p->lost;
		p->lost = true;
	}
	if (len > p->size) {
		text += len - p->size;
		len = p->size;
	}
	if (p->used + len > p->size) {
		size_t lose = p->used + len - p->size;

		p->head = (p->head + lose) % p->size;
		p->used -= lose;
		while (p->used && take_char(p) != '\n')
			;
	}
	at = (p->head + p->used) % p->size;
	first = p->size - at < len ? p->size - at : len;
	memcpy(p->buf + at, text, first);
	memcpy(p->buf, text + first, len - first);
	p->used += len;
	pthread_mutex_unlock(&p->lock);
	return lost;
}

void soft_env_print(void *ctx, const char *text, size_t len)
{
	struct be *be = ((struct soft_device *)ctx)->be;

	if (add_output_text(&be->print, text, len))
		soft_tell(be, "kernels print more than the program fetches: the oldest is lost");
}

/* The messages of failed assertions. */
void soft_env_complain(void *ctx, const char *text, size_t len)
{
	add_output_text(&((struct soft_device *)ctx)->be->complaints, text, len);
}

void soft_tell(struct be *be, const char *fmt, ...)
{
	char line[512] = "qCUDA software GPU: ";
	size_t n = strlen(line);
	va_list ap;
	int got;

	va_start(ap, fmt);
	got = vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	if (got < 0)
		return;
	n = strlen(line);
	line[n++] = '\n';
	add_output_text(&be->complaints, line, n);
}

static int read_out(struct soft_print *p, void *buf, size_t max, size_t *got)
{
	pthread_mutex_lock(&p->lock);
	*got = p->used;
	if (buf) {
		if (*got > max)
			*got = max;
		take_output_text(p, buf, *got);
	}
	pthread_mutex_unlock(&p->lock);
	return QCU_ERR_Success;
}

/* Works after an error, too: what a kernel printed before its assertion failed is needed most. */
int soft_print_read(struct be *be, void *buf, size_t max, size_t *got)
{
	return read_out(&be->print, buf, max, got);
}

int soft_assert_read(struct be *be, void *buf, size_t max, size_t *got)
{
	return read_out(&be->complaints, buf, max, got);
}

void soft_print_write(struct be *be, bool assertion, const char *text, size_t len)
{
	if (len)
		add_output_text(assertion ? &be->complaints : &be->print, text, len);
}

static void keep_text(char *to, size_t size, const char *text)
{
	if (text)
		snprintf(to, size, "%s", text);
}

static struct qcu_fault fault_at(const struct ptx_finding *at)
{
	struct qcu_fault f = {
		.flags = QCU_FAULT_THREAD | (at->access.size ? QCU_FAULT_ACCESS : 0),
		.addr = at->access.addr,
		.size = at->access.size,
		.line = at->line,
	};

	memcpy(f.block, at->block, sizeof(f.block));
	memcpy(f.thread, at->thread, sizeof(f.thread));
	keep_text(f.what, sizeof(f.what), at->what);
	keep_text(f.file, sizeof(f.file), at->file);
	keep_text(f.kernel, sizeof(f.kernel), at->kernel);
	return f;
}

void soft_fault(struct be *be, int err, const struct ptx_finding *at)
{
	struct soft_faults *t = &be->faults;

	pthread_mutex_lock(&be->print.lock);
	if (!t->first.error) {
		t->first = fault_at(at);
		t->first.error = (uint32_t)err;
		t->unread = true;
	}
	pthread_mutex_unlock(&be->print.lock);
}

/* If the program does not fetch in time, the newest findings are only counted. */
void soft_env_found(void *ctx, const struct ptx_finding *at)
{
	struct be *be = ((struct soft_device *)ctx)->be;
	struct soft_faults *t = &be->faults;

	pthread_mutex_lock(&be->print.lock);
	if (t->count < SOFT_FINDINGS) {
		t->found[t->count] = fault_at(at);
		t->found[t->count++].more = t->lost;
		t->lost = 0;
	} else if (t->lost < UINT32_MAX) {
		t->lost++;
	}
	pthread_mutex_unlock(&be->print.lock);
}

static bool take_next_fault(struct soft_faults *t, struct qcu_fault *to)
{
	if (t->count) {
		*to = t->found[0];
		memmove(t->found, t->found + 1, --t->count * sizeof(*to));
	} else if (t->lost) {
		*to = (struct qcu_fault){.more = t->lost};
		t->lost = 0;
	} else if (t->unread) {
		*to = t->first;
		t->unread = false;
	} else {
		return false;
	}
	return true;
}

int soft_fault_read(struct be *be, void *buf, size_t max, size_t *got)
{
	struct soft_faults *t = &be->faults;
	struct qcu_fault f;

	pthread_mutex_lock(&be->print.lock);
	*got = t->count || t->lost || t->unread ? sizeof(f) : 0;
	if (buf && *got > max)
		*got = 0;
	if (buf && *got && take_next_fault(t, &f))
		memcpy(buf, &f, sizeof(f));
	pthread_mutex_unlock(&be->print.lock);
	return QCU_ERR_Success;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Links: images of device code become one. As for a module, the mirror copies each image and checks
 * it before the backend sees it. The images count as those of modules do.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/commands/commands.h"

int mir_do_link_create(struct call *c)
{
	struct mirror *m = c->m;
	const struct qcu_link_create *lc = &c->cmd->link_create;
	struct be_jit jit;
	struct handle *h;
	int rc;

	if (!handles_free(&m->handles, HANDLE_LINK, lc->link))
		return QCU_ERR_InvalidResourceHandle;
	rc = mir_jit_begin(c, &lc->jit, &jit);
	mir_jit_end(&jit);
	if (rc)
		return rc;
	rc = mir_handle_new(c, HANDLE_LINK, &h);
	if (rc)
		return rc;
	h->device = c->cmd->device;
	h->jit = lc->jit;
	rc = m->cfg.ops->link_create(m->be, h->device, &h->jit, &h->link);
	if (rc) {
		mir_handle_drop(m, h);
		return rc;
	}
	rc = handles_add(&m->handles, lc->link, h);
	if (rc)
		handles_put(&m->handles, h);
	return rc;
}

/* Is the image, which has been checked, what the guest says that it is? */
static bool is_type(uint32_t type, const void *image, size_t len)
{
	bool elf = len >= 4 && !memcmp(image, "\177ELF", 4);
	bool fatbin = len >= 4 && !memcmp(image, "\x50\xed\x55\xba", 4);

	switch (type) {
	case QCU_LINK_CUBIN:
		return elf;
	case QCU_LINK_FATBIN:
		return fatbin;
	}
	return !elf && !fatbin;
}

static int add_image(struct call *c, struct handle *h, struct be_jit *jit)
{
	struct mirror *m = c->m;
	const struct qcu_link_add *la = &c->cmd->link_add;
	size_t len = la->buf.len;
	uint64_t memory; /* counts when what has been linked is loaded */
	void *image;
	int rc = mir_take(c, LIMIT_MODULE_BYTES, len);

	if (rc)
		return rc;
	h->bytes += len;
	rc = mir_image_read(c, len, jit, &image, &memory);
	if (!rc && !is_type(la->type, image, len))
		rc = QCU_ERR_InvalidKernelImage;
	if (!rc)
		rc = m->cfg.ops->link_add(m->be, h->link, la->type, image, len, jit);
	free(image);
	return rc;
}

/* A link is used by one lane at a time, and not after it has failed. */
static int begin_link_use(struct call *c, uint32_t link, const struct qcu_jit *own,
			  struct handle **out, struct be_jit *jit)
{
	struct mirror *m = c->m;
	struct handle *h = handles_get(&m->handles, HANDLE_LINK, link);
	struct qcu_jit options;
	int rc;

	if (!h)
		return QCU_ERR_InvalidResourceHandle;
	options = own ? *own : h->jit;
	if (options.flags & QCU_JIT_LOGS && own)
		rc = QCU_ERR_InvalidValue;
	else
		rc = QCU_ERR_Success;
	options.flags |= h->jit.flags & QCU_JIT_LOGS;
	if (!rc)
		rc = mir_jit_begin(c, &options, jit);
	if (rc) {
		handles_put(&m->handles, h);
		return rc;
	}
	pthread_mutex_lock(&m->link_lock);
	*out = h;
	return QCU_ERR_Success;
}

static int finish_link_use(struct call *c, struct handle *h, struct be_jit *jit, int rc)
{
	int err;

	h->failed |= rc != 0;
	pthread_mutex_unlock(&c->m->link_lock);
	err = mir_jit_tell(c, jit);
	mir_jit_end(jit);
	handles_put(&c->m->handles, h);
	return rc ? rc : err;
}

int mir_do_link_add(struct call *c)
{
	const struct qcu_link_add *la = &c->cmd->link_add;
	struct be_jit jit;
	struct handle *h;
	int rc;

	if (la->type > QCU_LINK_FATBIN || !la->buf.len)
		return QCU_ERR_InvalidValue;
	if (la->buf.len > MIR_IMAGE_MAX)
		return QCU_ERR_MemoryAllocation;
	rc = begin_link_use(c, la->link, &la->jit, &h, &jit);
	if (rc)
		return rc;
	rc = h->failed ? (int)QCU_ERR_InvalidValue : add_image(c, h, &jit);
	return finish_link_use(c, h, &jit, rc);
}

int mir_do_link_complete(struct call *c)
{
	struct mirror *m = c->m;
	struct qcu_link_complete *lc = &c->cmd->link_complete;
	uint64_t began = spin_clock();
	const void *image = NULL;
	struct be_jit jit;
	struct handle *h;
	size_t len = 0;
	int rc;

	if (lc->rsvd)
		return QCU_ERR_InvalidValue;
	rc = begin_link_use(c, lc->link, NULL, &h, &jit);
	if (rc)
		return rc;
	rc = h->failed ? (int)QCU_ERR_InvalidValue
		       : m->cfg.ops->link_complete(m->be, h->link, &jit, &image, &len);
	if (!rc)
		rc = mir_result_put(c, QCU_RESULT_DATA, image, len);
	rc = finish_link_use(c, h, &jit, rc);
	if (rc)
		return rc;
	lc->bytes = len;
	lc->micros = (uint32_t)((spin_clock() - began) / 1000);
	return QCU_ERR_Success;
}

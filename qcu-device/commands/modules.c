// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Modules, kernels and launches. The mirror first copies an image or a name out of guest memory, so
 * that the bytes cannot change while the backend parses them.
 */
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/backend/image.h"
#include "qcu-device/base/complain.h"
#include "qcu-device/base/sorted.h"
#include "qcu-device/commands/commands.h"

/* The backend gets only what is an image. */
static int check_image(struct mirror *m, const void *image, size_t len, struct be_jit *jit,
		       uint64_t *memory)
{
	const char *why;
	int rc;

	/* One at a time, because this unpacks what is packed: a quarter of a gigabyte at most. */
	pthread_mutex_lock(&m->image_lock);
	rc = image_measure(image, len, &why, memory);
	pthread_mutex_unlock(&m->image_lock);
	if (!rc)
		return rc;
	complain("the image is refused: %s", why);
	if (jit->error) {
		snprintf(jit->error, BE_LOG_BYTES, "the image is refused: %s\n", why);
		return rc;
	}
	pthread_mutex_lock(&m->lock);
	snprintf(m->refusal, sizeof(m->refusal), "qcuda: a module is refused: %s\n", why);
	pthread_mutex_unlock(&m->lock);
	return rc;
}

static int take_image(struct call *c, struct handle *h, size_t len)
{
	int rc = mir_take(c, LIMIT_MODULE_BYTES, len);

	if (rc)
		return rc;
	h->device = c->cmd->device;
	rc = mir_take_memory(c->m, h->device, len);
	if (rc)
		mir_give(c->m, LIMIT_MODULE_BYTES, len);
	else
		h->bytes = len;
	return rc;
}

static void give_image(struct mirror *m, const struct handle *h)
{
	mir_give(m, LIMIT_MODULE_BYTES, h->bytes);
	mir_give_memory(m, h->device, h->bytes);
	mir_give_memory(m, h->device, h->var_bytes);
}

/* The variables are charged before a device has them. */
static int take_vars(struct call *c, struct handle *h, uint64_t bytes)
{
	int rc = mir_take_memory_from_pools(c->m, h->device, bytes);

	if (!rc)
		h->var_bytes = bytes;
	return rc;
}

int mir_image_read(struct call *c, size_t len, struct be_jit *jit, void **image, uint64_t *memory)
{
	int rc;

	*image = malloc(len);
	rc = *image ? mir_buf_read(c, *image, len) : (int)QCU_ERR_MemoryAllocation;
	if (!rc)
		rc = check_image(c->m, *image, len, jit, memory);
	if (rc) {
		free(*image);
		*image = NULL;
	}
	return rc;
}

int mir_do_module_load(struct call *c)
{
	struct mirror *m = c->m;
	struct qcu_module_load *ml = &c->cmd->module_load;
	size_t len = ml->buf.len;
	struct be_jit jit;
	struct handle *h;
	uint64_t began, memory;
	void *image;
	int rc, err;

	if (!handles_free(&m->handles, HANDLE_MODULE, ml->module))
		return QCU_ERR_InvalidResourceHandle;
	if (!len)
		return QCU_ERR_InvalidValue;
	if (len > MIR_IMAGE_MAX)
		return QCU_ERR_MemoryAllocation;
	rc = mir_jit_begin(c, &ml->jit, &jit);
	if (rc)
		return rc;
	rc = mir_handle_new(c, HANDLE_MODULE, &h);
	if (rc)
		goto end_jit;
	rc = take_image(c, h, len);
	if (rc) {
		mir_handle_drop(m, h);
		goto end_jit;
	}
	began = spin_clock();
	rc = mir_image_read(c, len, &jit, &image, &memory);
	if (!rc)
		rc = take_vars(c, h, memory);
	if (!rc)
		rc = m->cfg.ops->module_load(m->be, image, len, &jit, &h->module);
	free(image);
	err = mir_jit_tell(c, &jit);
	if (rc) {
		give_image(m, h);
		mir_handle_drop(m, h);
		goto end_jit;
	}
	rc = err ? err : handles_add(&m->handles, ml->module, h);
	if (rc) {
		handles_put(&m->handles, h);
		goto end_jit;
	}
	ml->threads = jit.threads;
	ml->micros = (uint32_t)((spin_clock() - began) / 1000);
end_jit:
	mir_jit_end(&jit);
	return rc;
}

/* ---- variables: memory that goes with the module ---- */

struct module_var {
	uint64_t addr, size;
	struct held_leaving leaving;
	struct module_var *next;
};

/* The guest knows this variable, so commands can name its memory from now on. */
static int note_var(struct mirror *m, struct handle *h, uint64_t addr, uint64_t size)
{
	struct module_var *new = calloc(1, sizeof(*new)), **node;

	if (!new)
		return QCU_ERR_MemoryAllocation;
	*new = (struct module_var){.addr = addr, .size = size};
	pthread_mutex_lock(&m->lock);
	node = (struct module_var **)tsearch(new, &h->vars, sorted_compare);
	pthread_mutex_unlock(&m->lock);
	if (!node || *node != new)
		free(new);
	return node ? QCU_ERR_Success : QCU_ERR_MemoryAllocation;
}

void mir_module_end(struct mirror *m, struct handle *h)
{
	struct module_var *v, *all = NULL;

	while (h->vars) {
		v = *(struct module_var **)h->vars;
		tdelete(v, &h->vars, sorted_compare);
		held_leave(&m->held, &v->leaving, v->addr, v->size);
		v->next = all;
		all = v;
	}
	m->cfg.ops->module_unload(m->be, h->module);
	while ((v = all)) {
		all = v->next;
		held_gone(&m->held, &v->leaving);
		free(v);
	}
	give_image(m, h);
}

static bool match_parent(const struct handle *h, const void *arg)
{
	return h->parent == arg;
}

int mir_do_module_unload(struct call *c)
{
	struct mirror *m = c->m;
	uint32_t id = c->cmd->module_unload.module;
	struct handle *h = handles_get(&m->handles, HANDLE_MODULE, id);
	bool ours;

	if (!h)
		return QCU_ERR_InvalidResourceHandle;
	ours = handles_remove(&m->handles, HANDLE_MODULE, id);
	if (ours)
		handles_remove_if(&m->handles, HANDLE_KERNEL, match_parent, h);
	handles_put(&m->handles, h);
	return ours ? QCU_ERR_Success : QCU_ERR_InvalidResourceHandle;
}

/* Returns a name with a NUL at its end, which the caller frees. NULL: it is not a name. */
static char *copy_name(struct call *c)
{
	size_t len = c->cmd->buf.len;

	if (!len || len > MIR_NAME_MAX || memchr(c->req->msg, 0, len))
		return NULL;
	return strndup(c->req->msg, len);
}

/* Computes how many bytes the packed parameters of a kernel take. */
static int param_layout(struct call *c, struct handle *h)
{
	struct qcu_param params[MIR_KERNEL_PARAM_MAX];
	uint32_t i, max = MIR_KERNEL_PARAM_MAX;
	int rc;

	rc = c->m->cfg.ops->kernel_params(c->m->be, h->kernel, params, max, &h->params);
	if (rc)
		return rc;
	if (h->params > max)
		return QCU_ERR_NotSupported;
	for (i = 0; i < h->params; i++) {
		uint64_t end = (uint64_t)params[i].offset + params[i].size;

		/*
		 * No launch could carry these parameters. The image describes them, so the image is
		 * invalid.
		 */
		if (end > QCU_MSG_MAX)
			return QCU_ERR_InvalidKernelImage;
		if (end > h->param_bytes)
			h->param_bytes = (uint32_t)end;
	}
	return QCU_ERR_Success;
}

int mir_do_module_names(struct call *c)
{
	struct mirror *m = c->m;
	struct qcu_module_names *mn = &c->cmd->module_names;
	struct handle *h;
	size_t bytes = 0;
	char *names = NULL;
	uint32_t count = 0;
	int rc;

	if (mn->what > QCU_NAMES_MANAGED)
		return QCU_ERR_InvalidValue;
	h = handles_get(&m->handles, HANDLE_MODULE, mn->module);
	if (!h)
		return QCU_ERR_InvalidResourceHandle;
	rc = m->cfg.ops->module_names(m->be, h->module, mn->what, NULL, 0, &bytes, &count);
	if (!rc && bytes > UINT32_MAX)
		rc = QCU_ERR_NotSupported;
	if (!rc && bytes) {
		names = malloc(bytes);
		rc = names ? m->cfg.ops->module_names(m->be, h->module, mn->what, names, bytes,
						      &bytes, &count)
			   : (int)QCU_ERR_MemoryAllocation;
	}
	if (!rc && bytes)
		rc = mir_buf_write(c, 0, names, bytes < mn->buf.len ? bytes : mn->buf.len);
	if (!rc) {
		mn->count = count;
		mn->bytes = (uint32_t)bytes;
	}
	free(names);
	handles_put(&m->handles, h);
	return rc;
}

int mir_do_kernel_find(struct call *c)
{
	struct mirror *m = c->m;
	struct handles *t = &m->handles;
	struct qcu_kernel_find *kf = &c->cmd->kernel_find;
	struct handle *module, *now, *h = NULL;
	char *name;
	int rc;

	if (!handles_free(t, HANDLE_KERNEL, kf->kernel))
		return QCU_ERR_InvalidResourceHandle;
	module = handles_get(t, HANDLE_MODULE, kf->module);
	if (!module)
		return QCU_ERR_InvalidResourceHandle;
	name = copy_name(c);
	rc = name ? QCU_ERR_Success : QCU_ERR_SymbolNotFound;
	if (!rc)
		rc = mir_handle_new(c, HANDLE_KERNEL, &h);
	if (rc)
		goto out;
	h->parent = handle_hold(t, module);
	rc = m->cfg.ops->kernel_find(m->be, module->module, name, &h->kernel);
	if (!rc)
		rc = param_layout(c, h);
	if (!rc) {
		kf->params = h->params;
		kf->param_bytes = h->param_bytes;
		rc = handles_add(t, kf->kernel, h);
	}
	if (rc) {
		handles_put(t, h);
		goto out;
	}
	/*
	 * Unloading the module also removes the numbers of its kernels. An unload that came in
	 * between cannot have seen this kernel.
	 */
	now = handles_get(t, HANDLE_MODULE, kf->module);
	if (now != module)
		handles_remove(t, HANDLE_KERNEL, kf->kernel);
	handles_put(t, now);
out:
	if (rc)
		kf->params = kf->param_bytes = 0;
	free(name);
	handles_put(t, module);
	return rc;
}

int mir_do_kernel_info(struct call *c)
{
	struct mirror *m = c->m;
	const struct qcu_kernel_info *ki = &c->cmd->kernel_info;
	struct qcu_param params[MIR_KERNEL_PARAM_MAX];
	struct qcu_kernel_desc desc = {0};
	uint32_t count = 0;
	struct handle *h;
	uint64_t room;
	int rc;

	h = handles_get(&m->handles, HANDLE_KERNEL, ki->kernel);
	if (!h)
		return QCU_ERR_InvalidResourceHandle;
	rc = m->cfg.ops->kernel_desc(m->be, c->cmd->device, h->kernel, &desc);
	if (!rc)
		rc = m->cfg.ops->kernel_params(m->be, h->kernel, params, MIR_KERNEL_PARAM_MAX,
					       &count);
	handles_put(&m->handles, h);
	if (rc)
		return rc;
	desc.params = count;
	rc = mir_buf_write(c, 0, &desc, sizeof(desc));
	if (rc || !count)
		return rc;
	/*
	 * Write as many parameters as the guest has room for; desc.params says how many there are.
	 */
	room = (ki->buf.len - sizeof(desc)) / sizeof(params[0]);
	if (room > count)
		room = count;
	return mir_buf_write(c, sizeof(desc), params, room * sizeof(params[0]));
}

int mir_do_var_find(struct call *c)
{
	struct mirror *m = c->m;
	struct qcu_var_find *vf = &c->cmd->var_find;
	const struct be_ops *ops = m->cfg.ops;
	uint64_t addr = 0, size = 0;
	struct handle *module;
	char *name;
	int rc;

	if (vf->managed > 1)
		return QCU_ERR_InvalidValue;
	module = handles_get(&m->handles, HANDLE_MODULE, vf->module);
	if (!module)
		return QCU_ERR_InvalidResourceHandle;
	name = copy_name(c);
	rc = name ? (vf->managed ? ops->managed_find : ops->var_find)(
			    m->be, c->cmd->device, module->module, name, &addr, &size)
		  : (int)QCU_ERR_InvalidSymbol;
	if (!rc)
		rc = note_var(m, module, addr, size);
	if (!rc) {
		vf->addr = addr;
		vf->size = size;
	}
	free(name);
	handles_put(&m->handles, module);
	return rc;
}

int mir_do_var_bind(struct call *c)
{
	struct mirror *m = c->m;
	const struct qcu_var_bind *vb = &c->cmd->var_bind;
	struct handle *module;
	char *name;
	int rc;

	/* Not reported, because the guest works without it. */
	if (!m->cfg.ops->var_bind)
		return QCU_ERR_NotSupported;
	if (vb->rsvd || !vb->size || !window_pinned(&m->window, vb->addr, vb->size, &c->holds))
		return QCU_ERR_InvalidValue;
	module = handles_get(&m->handles, HANDLE_MODULE, vb->module);
	if (!module)
		return QCU_ERR_InvalidResourceHandle;
	name = copy_name(c);
	rc = name ? m->cfg.ops->var_bind(m->be, module->module, name, vb->addr, vb->size)
		  : (int)QCU_ERR_InvalidSymbol;
	free(name);
	handles_put(&m->handles, module);
	return rc;
}

bool mir_launch_params(const struct qcu_launch_msg *msg, const void *params, struct be_launch *l)
{
	*l = (struct be_launch){
		.grid = {msg->grid[0], msg->grid[1], msg->grid[2]},
		.block = {msg->block[0], msg->block[1], msg->block[2]},
		.dynamic_shared = msg->dynamic_shared,
		.flags = msg->flags,
		.cluster = {msg->cluster[0], msg->cluster[1], msg->cluster[2]},
		.cluster_policy = msg->cluster_policy,
		.priority = msg->priority,
		.params = params,
		.param_bytes = msg->param_bytes,
	};
	return !(msg->flags & ~QCU_LAUNCH_FLAGS) && !msg->rsvd[0] && !msg->rsvd[1];
}

/* Reads a launch message and the parameters that follow it. */
static int read_launch(struct call *c, struct be_launch *l)
{
	struct qcu_launch_msg msg;

	if (c->cmd->buf.len < sizeof(msg))
		return QCU_ERR_InvalidValue;
	memcpy(&msg, c->req->msg, sizeof(msg));
	if (msg.param_bytes != c->cmd->buf.len - sizeof(msg))
		return QCU_ERR_InvalidValue;
	return mir_launch_params(&msg, (const uint8_t *)c->req->msg + sizeof(msg), l)
		       ? QCU_ERR_Success
		       : QCU_ERR_InvalidValue;
}

int mir_do_launch(struct call *c)
{
	struct mirror *m = c->m;
	struct be_launch l;
	struct handle *h;
	struct stream_ref s;
	int rc;

	rc = read_launch(c, &l);
	if (rc)
		return rc;
	h = handles_get(&m->handles, HANDLE_KERNEL, c->cmd->launch.kernel);
	if (!h)
		return QCU_ERR_InvalidResourceHandle;
	rc = l.param_bytes == h->param_bytes ? QCU_ERR_Success : QCU_ERR_InvalidValue;
	if (!rc)
		rc = mir_stream_get(c, c->cmd->launch.stream, &s);
	if (!rc) {
		/* A launch runs on the current device, in a stream of that device. */
		if (s.device != c->cmd->device)
			rc = QCU_ERR_InvalidResourceHandle;
		if (!rc) {
			struct timed *t = mir_time_begin(c, &s);

			rc = m->cfg.ops->launch(m->be, h->kernel, &l, s.s);
			mir_time_end(c, &s, t, !rc);
			if (!rc)
				count_add(m->counts, COUNT_LAUNCHES, 1);
		}
		mir_stream_put(c, &s);
	}
	handles_put(&m->handles, h);
	return rc;
}

int mir_do_occupancy_cluster(struct call *c)
{
	struct mirror *m = c->m;
	struct qcu_occupancy_cluster *o = &c->cmd->occupancy_cluster;
	struct be_launch l;
	uint32_t count = 0;
	struct handle *h;
	int rc;

	rc = o->what > QCU_CLUSTERS_LARGEST ? (int)QCU_ERR_InvalidValue : read_launch(c, &l);
	if (rc)
		return rc;
	h = handles_get(&m->handles, HANDLE_KERNEL, o->kernel);
	if (!h)
		return QCU_ERR_InvalidResourceHandle;
	rc = m->cfg.ops->occupancy_cluster(m->be, c->cmd->device, h->kernel, &l, o->what, &count);
	o->count = count;
	handles_put(&m->handles, h);
	return rc;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The two commands for calls of libraries. LIB_CALL is posted and nobody reads its status. So a
 * failure becomes an error of CUDA, which the thread's next waiting call returns. LIB_ASK writes
 * its answer into the memory that it names.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/libs/impl.h"

static const struct lib_library *const libraries[QCU_LIBS] = {
	[QCU_LIB_CUBLAS] = &lib_cublas,	    [QCU_LIB_CUBLASLT] = &lib_cublaslt,
	[QCU_LIB_CUFFT] = &lib_cufft,	    [QCU_LIB_CURAND] = &lib_curand,
	[QCU_LIB_CUSOLVER] = &lib_cusolver, [QCU_LIB_CUSPARSE] = &lib_cusparse,
#ifdef LIB_HAVE_cudnn
	[QCU_LIB_CUDNN] = &lib_cudnn,
#endif
};

/* Is the library there, and do both sides number its functions in the same way? */
static int open_library(struct lib_call *c)
{
	uint64_t table = lib_value(c), len;
	char why[QCU_LIB_REASON] = "";
	char *reason = lib_out(c, &len);

	lib_sized(c, reason, len, sizeof(why));
	if (c->bad || !reason || c->at != c->end) {
		c->bad = true;
		return 0;
	}
	if (table != c->lib->table)
		snprintf(why, sizeof(why),
			 "%s of the guest was made from other headers than the device",
			 c->lib->soname);
	else if (lib_load(c->c->m, c->lib, why, sizeof(why)))
		return 0;
	memcpy(reason, why, sizeof(why));
	complain("%s", why);
	return QCU_LIB_MISSING;
}

/* What the library has put into a graph may use memory of its objects. */
static void keep_objects(const struct lib_call *c)
{
	if (c->object)
		c->graph->object = handle_hold(&c->c->m->handles, c->h);
	if (c->second)
		c->graph->second = handle_hold(&c->c->m->handles, c->second);
}

static int make_call(void *arg)
{
	struct lib_call *c = arg;

	return c->lib->functions[c->function].run(c);
}

static int run_function(struct lib_call *c, uint16_t function)
{
	char why[QCU_LIB_REASON];
	int status;

	if (function == QCU_LIB_OPEN)
		return open_library(c);
	c->loaded = lib_load(c->c->m, c->lib, why, sizeof(why));
	if (!c->loaded) {
		c->rc = QCU_ERR_NotSupported;
		return 0;
	}
	if (function == QCU_LIB_CREATE)
		return lib_create(c);
	if (function == QCU_LIB_DESTROY)
		return lib_destroy(c);
	if (function >= c->lib->count) {
		c->bad = true;
		return 0;
	}
	c->fn = lib_symbol(c->c->m, c->loaded, function);
	if (!c->fn)
		return c->lib->unserved;
	c->function = function;
	status = lib_guarded(c, c->lib->functions[function].name, make_call, c);
	lib_scalars_back(c);
	if (c->graph)
		keep_objects(c);
	/* Nobody counts how often the graph is launched. */
	if (c->graph && c->object && c->lib->functions[function].keeps)
		c->object->in_graph = true;
	lib_put(c, !status && !c->refused && !c->bad && !c->rc);
	return c->refused ? c->refused : status;
}

/* Makes the call in c->stream. Returns the mirror's own error. */
static int call_there(struct lib_call *c, uint16_t library, uint16_t function, int *status)
{
	if (library >= QCU_LIBS || !libraries[library])
		return QCU_ERR_InvalidValue;
	c->lib = libraries[library];
	c->mode = -1;
	*status = run_function(c, function);
	return c->rc ? c->rc : c->bad ? QCU_ERR_InvalidValue : QCU_ERR_Success;
}

/* Carries out the call whose message is `head` and `args`. Returns the mirror's own error. */
static int call_with_stream(struct lib_call *c, uint16_t library, uint16_t function, uint32_t id,
			    int *status)
{
	struct stream_ref s;
	int rc;

	rc = mir_stream_get(c->c, id, &s);
	if (rc)
		return rc;
	if (s.device != c->c->cmd->device)
		rc = QCU_ERR_InvalidResourceHandle;
	else
		rc = c->c->m->cfg.ops->native(c->c->m->be, s.s, &c->stream);
	c->ref = &s;
	if (!rc)
		rc = call_there(c, library, function, status);
	mir_time_call_end(c->c, &s, c->timed);
	mir_stream_put(c->c, &s);
	return rc;
}

/*
 * The stream is being captured. What the library does not do in a capture, the guest sends call by
 * call. Its arguments and scalars stay with the graph.
 */
int lib_graph_call(void *graph_call, void *stream)
{
	struct graph_call *g = graph_call;
	struct lib_call *l = aligned_alloc(_Alignof(struct lib_call), sizeof(*l));
	int status = 0, rc = QCU_ERR_InvalidValue;

	if (!l)
		return QCU_ERR_MemoryAllocation;
	*l = (struct lib_call){
		.c = g->c, .graph = g, .stream = stream, .at = g->args, .end = g->args + g->bytes};
	free(g->made);
	g->made = l;
	g->memory_count = 0;
	if (g->function < QCU_LIB_DESTROY)
		rc = call_there(l, g->library, g->function, &status);
	return rc || !status ? rc : (int)QCU_ERR_NotSupported;
}

enum lib_keeps lib_keeps(uint16_t library, uint16_t function)
{
	if (library >= QCU_LIBS || !libraries[library] || function >= libraries[library]->count)
		return LIB_KEEPS_NOTHING;
	return (enum lib_keeps)libraries[library]->functions[function].keeps;
}

int mir_do_lib_call(struct call *c)
{
	const struct qcu_lib_call *lc = &c->cmd->lib_call;
	struct qcu_lib_head head;
	int status = 0, rc;
	struct lib_call l;

	if (lc->buf.len < sizeof(head))
		return QCU_ERR_InvalidValue;
	memcpy(&head, c->req->msg, sizeof(head));
	if (head.args % 8 || head.args != lc->buf.len - sizeof(head) || head.outs)
		return QCU_ERR_InvalidValue;
	lib_begin(&l, c);
	l.at = (const uint8_t *)c->req->msg + sizeof(head);
	l.end = l.at + head.args;
	rc = call_with_stream(&l, lc->library, lc->function, lc->stream, &status);
	if (!rc && status) {
		complain("%s: function %u fails with status %d", l.lib->soname, lc->function,
			 status);
		rc = QCU_ERR_Unknown;
	}
	return rc;
}

/* The message has been copied, so it does not change any more. */
static int answer_lib_ask(struct call *c, uint8_t *msg, uint64_t len)
{
	const struct qcu_lib_ask *la = &c->cmd->lib_ask;
	struct qcu_lib_answer answer = {0};
	struct qcu_lib_head head;
	struct lib_call l;
	uint64_t behind;
	int rc;

	memcpy(&head, msg, sizeof(head));
	behind = sizeof(head) + (uint64_t)head.args;
	if (head.args % 8 || head.outs % 8 || behind + sizeof(answer) + head.outs != len)
		return QCU_ERR_InvalidValue;
	lib_begin(&l, c);
	l.at = msg + sizeof(head);
	l.end = l.at + head.args;
	l.outs = msg + behind + sizeof(answer);
	l.outs_left = head.outs;
	/* What the library leaves out must not be what was here before. */
	memset(l.outs, 0, head.outs);
	rc = call_with_stream(&l, la->library, la->function, la->stream, &answer.status);
	if (rc)
		return rc;
	memcpy(msg + behind, &answer, sizeof(answer));
	return mir_buf_write(c, behind, msg + behind, sizeof(answer) + head.outs);
}

int mir_do_lib_ask(struct call *c)
{
	uint64_t len = c->cmd->lib_ask.buf.len;
	uint8_t *msg;
	int rc;

	if (len < sizeof(struct qcu_lib_head) + sizeof(struct qcu_lib_answer) ||
	    len > (uint64_t)QCU_LIB_ARGS_MAX + QCU_LIB_OUTS_MAX)
		return QCU_ERR_InvalidValue;
	rc = mir_take(c, LIMIT_QUEUED, len);
	if (rc)
		return rc;
	msg = malloc(len);
	rc = msg ? mir_buf_read(c, msg, len) : (int)QCU_ERR_MemoryAllocation;
	if (!rc)
		rc = answer_lib_ask(c, msg, len);
	free(msg);
	mir_give(c->m, LIMIT_QUEUED, len);
	return rc;
}

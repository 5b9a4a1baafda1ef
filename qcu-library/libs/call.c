// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sends a packed call: posted, or with a wait for the library's answer.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/libs/impl.h"
#include "qcu-library/link/capture.h"
#include "qcu-library/stream/stream.h"

int qcul_lib_status(const struct qcul_lib *lib, int err)
{
	switch (err) {
	case cudaSuccess:
		return 0;
	case cudaErrorMemoryAllocation:
		return lib->memory;
	case cudaErrorNotSupported:
		return lib->unserved;
	case cudaErrorInvalidResourceHandle:
		return lib->unknown;
	case cudaErrorNoDevice:
	case cudaErrorInitializationError:
		return lib->missing;
	case cudaErrorInvalidValue:
	case cudaErrorInvalidDevicePointer:
	case cudaErrorInvalidPitchValue:
		return lib->invalid;
	}
	return lib->failed;
}

int qcul_lib_unserved(const struct qcul_lib *lib, const char *name, atomic_flag *said)
{
	qcul_say_once(said, "%s of %s is not supported", name, lib->soname);
	return lib->unserved;
}

int qcul_lib_drop(struct qcul_pack *p, int status)
{
	if (p->base != p->small)
		free(p->base);
	p->base = p->small;
	return p->failed ? p->status : status;
}

/* Sends the call and waits. *status: the library's. */
static cudaError_t ask_host_library(struct qcul_pack *p, uint32_t stream, int *status)
{
	uint32_t args = (uint32_t)(p->used - sizeof(struct qcu_lib_head));
	struct qCUcmd cmd = qcul_cmd(QCU_OP_LIB_ASK);
	struct qcu_lib_answer answer;
	unsigned char *behind = qcul_lib_room(p, sizeof(answer) + p->outs);
	struct qcu_lib_head *head = (struct qcu_lib_head *)p->base;
	unsigned int i;
	cudaError_t err;

	if (!behind)
		return cudaErrorMemoryAllocation;
	memset(behind, 0, sizeof(answer) + p->outs);
	*head = (struct qcu_lib_head){.args = args, .outs = p->outs};
	cmd.lib_ask.buf.addr = (uint64_t)(uintptr_t)p->base;
	cmd.lib_ask.buf.len = p->used;
	cmd.lib_ask.stream = stream;
	cmd.lib_ask.library = p->lib->number;
	cmd.lib_ask.function = p->function;
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	memcpy(&answer, behind, sizeof(answer));
	behind += sizeof(answer);
	*status = answer.status;
	for (i = 0; i < p->out_count; i++) {
		/* The reason why a library is missing comes with that status. */
		if (!answer.status || p->reports || p->function == QCU_LIB_OPEN)
			memcpy(p->out[i].to, behind, p->out[i].len);
		behind += p->out[i].padded;
	}
	return cudaSuccess;
}

static cudaError_t post_library_call(struct qcul_pack *p, uint32_t stream)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_LIB_CALL);
	struct qcu_lib_head *head = (struct qcu_lib_head *)p->base;

	*head = (struct qcu_lib_head){.args = (uint32_t)(p->used - sizeof(*head))};
	cmd.lib_call.buf.addr = (uint64_t)(uintptr_t)p->base;
	cmd.lib_call.buf.len = p->used;
	cmd.lib_call.stream = stream;
	cmd.lib_call.library = p->lib->number;
	cmd.lib_call.function = p->function;
	return qcul_post(&cmd, 1);
}

int qcul_lib_open(const struct qcul_lib *lib)
{
	static _Atomic unsigned int opened[QCU_LIBS];
	static atomic_flag said[QCU_LIBS];
	char reason[QCU_LIB_REASON] = "";
	struct qcul_pack p;
	int status = 0;
	cudaError_t err = qcul_ready();

	if (err)
		return qcul_lib_status(lib, err);
	if (atomic_load(&opened[lib->number]) == qcul_epoch())
		return 0;
	qcul_lib_begin(&p, lib, QCU_LIB_OPEN);
	qcul_lib_value(&p, lib->table);
	qcul_lib_out(&p, reason, sizeof(reason));
	err = ask_host_library(&p, QCU_STREAM_LEGACY, &status);
	if (!err && !status)
		atomic_store(&opened[lib->number], qcul_epoch());
	if (!err && status == QCU_LIB_MISSING) {
		reason[sizeof(reason) - 1] = 0;
		qcul_say_once(&said[lib->number], "%s", reason);
		status = lib->missing;
	}
	return qcul_lib_drop(&p, err ? qcul_lib_status(lib, err) : status);
}

/* ---- calls that are captured ---- */

struct captured {
	struct qcul_captured_call call;
	const struct qcul_lib *lib;
	uint16_t function;
	int device;
	size_t used;
	unsigned char message[];
};

/* A launch of a graph that the host does not have: the message says all but the stream. */
static cudaError_t run_captured(struct qcul_captured_call *call, cudaStream_t to)
{
	struct captured *c = (struct captured *)call;
	struct qcul_pack p = {
		.lib = c->lib,
		.function = c->function,
		.base = c->message,
		.used = c->used,
	};
	int current = qcul_self.device;
	uint32_t stream;
	cudaError_t err = qcul_stream_id(to, &stream);

	if (err)
		return err;
	qcul_self.device = stream < QCU_ID_FIRST ? c->device : qcul_stream_device(stream);
	err = post_library_call(&p, stream);
	qcul_self.device = current;
	return err;
}

static void end_captured(struct qcul_captured_call *call)
{
	free(call);
}

static cudaError_t capture_library_call(const struct qcul_pack *p)
{
	struct captured *c = malloc(sizeof(*c) + p->used);

	if (!c)
		return cudaErrorMemoryAllocation;
	*c = (struct captured){
		/* Natively the nodes are the library's kernels. */
		.call = {.refs = 1,
			 .type = cudaGraphNodeTypeKernel,
			 .run = run_captured,
			 .end = end_captured,
			 .packed = {.library = p->lib->number,
				    .function = p->function,
				    .bytes = (uint32_t)(p->used - sizeof(struct qcu_lib_head)),
				    .args = c->message + sizeof(struct qcu_lib_head)}},
		.lib = p->lib,
		.function = p->function,
		.device = qcul_self.device,
		.used = p->used,
	};
	memcpy(c->message, p->base, p->used);
	return qcul_capture_call(p->stream, &c->call);
}

/* Sends it on the device of its stream, or of its object. */
static int send_library_call(struct qcul_pack *p)
{
	uint64_t hash = p->seen;
	bool posts = !p->out_count && !p->waits && p->function < QCU_LIB_DESTROY &&
		     p->used <= QCU_MSG_MAX;
	uint32_t stream;
	int status = 0;
	cudaError_t err = qcul_stream_id(p->stream, &stream);

	if (err)
		return qcul_lib_status(p->lib, err);
	if (stream >= QCU_ID_FIRST)
		qcul_self.device = qcul_stream_device(stream);
	/* What only asks the library something does not go to a stream. */
	if ((posts || p->results) && qcul_captured(p->stream, &err)) {
		if (!err)
			err = posts ? capture_library_call(p) : qcul_capture_refuse(p->stream);
		return qcul_lib_status(p->lib, err);
	}
	qcul_lib_mix(&hash, p->state);
	if (posts && qcul_lib_seen(hash)) {
		err = post_library_call(p, stream);
		if (!err && qcul_blocking())
			err = qcul_stream_wait(stream);
		return qcul_lib_status(p->lib, err);
	}
	if (p->steady && p->out_count && qcul_lib_recall(hash, p))
		return 0;
	err = ask_host_library(p, stream, &status);
	if (!err && !status && posts)
		qcul_lib_see(hash);
	if (!err && !status && p->steady && p->out_count)
		qcul_lib_remember(hash, p);
	return err ? qcul_lib_status(p->lib, err) : status;
}

int qcul_lib_call(struct qcul_pack *p)
{
	int current = qcul_self.device, status = p->failed ? p->status : qcul_lib_open(p->lib);

	if (!status) {
		if (p->object && !p->object->descriptor)
			qcul_self.device = p->object->device;
		status = send_library_call(p);
		qcul_self.device = current;
		if (!status && p->changes)
			qcul_lib_note(p->object, p->function, p->seen);
	}
	return qcul_lib_drop(p, status);
}

int qcul_lib_ask(struct qcul_pack *p)
{
	p->waits = true;
	return qcul_lib_call(p);
}

int qcul_lib_set(struct qcul_pack *p)
{
	uint64_t hash = p->seen;
	int current = qcul_self.device;
	int status = p->failed ? p->status : p->object ? 0 : p->unknown;

	if (!status && p->made)
		status = qcul_lib_open(p->lib);
	/* What a handle is set to does not depend on what else is set in it. */
	if (p->object && p->object->descriptor)
		qcul_lib_mix(&hash, p->state);
	if (!status && !qcul_lib_seen(hash)) {
		/* The arguments must stay as they are: `ask` adds to the message. */
		size_t used = p->used;
		uint32_t stream;
		cudaError_t err = qcul_stream_id(p->object->stream, &stream);

		if (!p->object->descriptor)
			qcul_self.device = p->object->device;
		if (!err)
			err = ask_host_library(p, stream, &status);
		qcul_self.device = current;
		p->used = used;
		if (err)
			status = qcul_lib_status(p->lib, err);
		if (!status)
			qcul_lib_see(hash);
	}
	if (!status)
		status = qcul_lib_keep(p);
	if (p->made && status)
		p->object->number = 0;
	else if (p->made)
		*p->new_object = p->object;
	return qcul_lib_drop(p, status);
}

// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Creates and destroys objects of a library. Both calls wait, because another thread may use the
 * object as soon as the first call has returned. The mirror carries them out after everything that
 * was posted before.
 */
#include "qcu-library/libs/impl.h"

int qcul_lib_create(const struct qcul_lib *lib, uint32_t kind, void **handle)
{
	return qcul_lib_create_with(lib, kind, 0, handle);
}

int qcul_lib_describe(const struct qcul_lib *lib, uint32_t kind, void **handle)
{
	struct qcul_object *o;
	int status = handle ? qcul_lib_open(lib) : lib->invalid;

	if (status)
		return status;
	o = qcul_lib_reserve(kind);
	if (!o)
		return lib->memory;
	o->descriptor = true;
	*handle = o;
	return 0;
}

int qcul_lib_undescribe(const struct qcul_lib *lib, uint32_t kind, void *handle)
{
	struct qcul_object *o = qcul_lib_find(handle, kind);

	if (!o)
		return lib->invalid;
	o->number = 0;
	return 0;
}

int qcul_lib_create_with(const struct qcul_lib *lib, uint32_t kind, uint64_t with, void **handle)
{
	struct qcul_object *o;
	struct qcul_pack p;
	int status;

	if (!handle)
		return lib->invalid;
	status = qcul_lib_open(lib);
	if (status)
		return status;
	o = qcul_lib_reserve(kind);
	if (!o)
		return lib->memory;
	qcul_lib_begin(&p, lib, QCU_LIB_CREATE);
	qcul_lib_value(&p, o->number);
	qcul_lib_value(&p, kind);
	qcul_lib_value(&p, with);
	status = qcul_lib_call(&p);
	if (status) {
		o->number = 0;
		return status;
	}
	/* Which calls are right depends on it. */
	if (with)
		qcul_lib_note(o, QCU_LIB_CREATE, with);
	*handle = o;
	return 0;
}

int qcul_lib_destroy(const struct qcul_lib *lib, uint32_t kind, void *handle)
{
	struct qcul_object *o = qcul_lib_find(handle, kind);
	struct qcul_pack p;
	int status;

	if (!o || o->kind != kind)
		return lib->unknown;
	qcul_lib_begin(&p, lib, QCU_LIB_DESTROY);
	qcul_lib_value(&p, o->number);
	status = qcul_lib_call(&p);
	o->number = 0;
	return status;
}

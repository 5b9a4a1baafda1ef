/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the shims of libraries (cuBLAS and its sisters) build on. It lies in libcudart.so.13, under
 * the version QCUDA_PRIVATE, so that a process has one session and one table of objects, whichever
 * libraries it uses. A shim's function packs its arguments and sends them (include/qculib.h):
 *
 *	struct qcul_pack p;
 *
 *	qcul_lib_begin(&p, &qcul_cublas, FN_cublasSscal_v2);
 *	qcul_lib_object(&p, handle, KIND_cublasHandle_t);
 *	qcul_lib_value(&p, (uint64_t)n);
 *	...
 *	return (cublasStatus_t)qcul_lib_call(&p);
 *
 * A call that writes nothing into host memory is posted, if the same call has succeeded before. Its
 * addresses and scalars may differ. So a wrong call gets the library's own status, and a right call
 * does not wait from the second time on.
 *
 * No function here returns an error of CUDA. qcul_lib_call() returns the first error of the
 * packing, as a status of the library.
 */
#ifndef QCUL_LIBS_H
#define QCUL_LIBS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/qculib.h"

struct CUstream_st;

#define QCUL_LIB_EXPORT __attribute__((visibility("default")))

/* A library, as the generator writes it down. */
struct qcul_lib {
	const char *name, *soname;
	uint64_t table;	 /* the hash of its functions and their parameters */
	uint16_t number; /* QCU_LIB_* */
	/* The library's status for: a wrong argument, a function that is not served, an object that
	 * it does not know, a library that is not there, no memory, and everything else. */
	int invalid, unserved, unknown, missing, memory, failed;
};

#define QCUL_LIB_SETTINGS 24u

/* An object of a library: a slot of a table, whose address is the handle that programs see. */
struct qcul_object {
	uint64_t number; /* on the wire; 0: free */
	uint64_t version;
	uint32_t kind;
	uint32_t bytes;	    /* of settings */
	unsigned int epoch; /* of the session that knows it */
	int device;
	bool descriptor;	    /* it lives in the guest alone, and is of no device */
	bool device_scalars;	    /* scalars are in the GPU's memory */
	struct CUstream_st *stream; /* that its calls go to */
	void *own;		    /* what the shim knows of it */
	unsigned char settings[QCU_LIB_SETTINGS_MAX];
	/* For each function that has set or changed something: a hash of its arguments, without
	 * addresses. */
	unsigned int set_count;
	struct {
		uint16_t function;
		uint64_t seen;
	} set[QCUL_LIB_SETTINGS];
};

#define QCUL_LIB_OUTS 12u

struct qcul_pack {
	const struct qcul_lib *lib;
	struct qcul_object *object; /* the first one, but no descriptor before others; NULL: none */
	struct CUstream_st *stream;
	unsigned char *base;
	size_t used, room;
	uint64_t seen;	     /* a hash of what decides whether the call is right, */
	uint64_t state;	     /* and of the objects */
	size_t settings_end; /* where the arguments after the first object begin */
	uint32_t outs;	     /* bytes */
	uint16_t function;
	bool failed, queued, results;
	bool waits;	   /* the call is never posted */
	bool made;	   /* the object is new, and this call says what it is */
	bool reports;	   /* what the library writes is valid whatever its status */
	bool steady;	   /* the same call always has the same answer */
	bool changes;	   /* which calls of the object are right depends on this one */
	void **new_object; /* where the program wants the new object */
	int unknown;	   /* the status if the object is none */
	int status;
	unsigned int out_count;
	struct {
		void *to;
		uint32_t len, padded;
	} out[QCUL_LIB_OUTS];
	unsigned char small[1024] __attribute__((aligned(8)));
};

#define QCUL_LIB_IN  1u
#define QCUL_LIB_OUT 2u

QCUL_LIB_EXPORT void qcul_lib_begin(struct qcul_pack *p, const struct qcul_lib *lib,
				    uint16_t function);
/* The call fails if a number is outside of the bounds that the remarks give it. */
QCUL_LIB_EXPORT void qcul_lib_bound(struct qcul_pack *p, int64_t value, int64_t least,
				    int64_t greatest);
QCUL_LIB_EXPORT void qcul_lib_bound_real(struct qcul_pack *p, double value, double least,
					 double greatest);
QCUL_LIB_EXPORT void qcul_lib_value(struct qcul_pack *p, uint64_t value);
QCUL_LIB_EXPORT void qcul_lib_real(struct qcul_pack *p, double value);
QCUL_LIB_EXPORT void qcul_lib_device(struct qcul_pack *p, const void *address);
QCUL_LIB_EXPORT void qcul_lib_stream(struct qcul_pack *p, struct CUstream_st *stream);
QCUL_LIB_EXPORT void qcul_lib_object(struct qcul_pack *p, const void *handle, uint32_t kind);
/* The same where the library answers without an object, too: NULL travels. */
QCUL_LIB_EXPORT void qcul_lib_bare(struct qcul_pack *p, const void *handle, uint32_t kind);
/* An object that travels whole, or none. */
QCUL_LIB_EXPORT void qcul_lib_descriptor(struct qcul_pack *p, const void *handle, uint32_t kind);
/* An object beside the first one. */
QCUL_LIB_EXPORT void qcul_lib_second(struct qcul_pack *p, const void *handle, uint32_t kind);
/*
 * A new object that travels whole, and goes to *new_object. The arguments that follow say what it
 * is. The call is ended by qcul_lib_set().
 */
QCUL_LIB_EXPORT void qcul_lib_made(struct qcul_pack *p, void **new_object, uint32_t kind);
/* What the library writes comes back whatever its status is. */
QCUL_LIB_EXPORT void qcul_lib_report(struct qcul_pack *p);
/* The answer depends only on the arguments and on what is set in objects. It is kept. */
QCUL_LIB_EXPORT void qcul_lib_steady(struct qcul_pack *p);
/* Which other calls of the same object are right depends on this one. */
QCUL_LIB_EXPORT void qcul_lib_changes(struct qcul_pack *p);
/* A number on which it does not depend whether the call is right. */
QCUL_LIB_EXPORT void qcul_lib_plain(struct qcul_pack *p, uint64_t value);
/* Host memory that the library reads or writes. */
QCUL_LIB_EXPORT void qcul_lib_in(struct qcul_pack *p, const void *from, uint64_t len);
QCUL_LIB_EXPORT void qcul_lib_out(struct qcul_pack *p, void *to, uint64_t len);
QCUL_LIB_EXPORT void qcul_lib_inout(struct qcul_pack *p, void *at, uint64_t len);
/* As qcul_lib_device(), or as qcul_lib_out() if the object works on the host. */
QCUL_LIB_EXPORT void qcul_lib_either(struct qcul_pack *p, void *to, uint64_t count, size_t size);
/* As qcul_lib_in(), but for the question whether the call is right it is `like`, of the same size.
 */
QCUL_LIB_EXPORT void qcul_lib_in_like(struct qcul_pack *p, const void *from, uint64_t len,
				      const void *like);
/*
 * A scalar where the object's pointer mode says. The mirror gives the library `room` bytes,
 * whatever the size is. way: QCUL_LIB_IN, QCUL_LIB_OUT or both.
 */
QCUL_LIB_EXPORT void qcul_lib_scalar(struct qcul_pack *p, void *at, size_t len, size_t room,
				     unsigned int way);
/* The same where the caller knows where it is. */
QCUL_LIB_EXPORT void qcul_lib_scalar_at(struct qcul_pack *p, void *at, size_t len, size_t room,
					unsigned int way, bool device);
/* Returns the library's status. */
QCUL_LIB_EXPORT int qcul_lib_call(struct qcul_pack *p);
/* The same, and never posted. */
QCUL_LIB_EXPORT int qcul_lib_ask(struct qcul_pack *p);
/* The same for a function that only sets something in its object, which the guest keeps. */
QCUL_LIB_EXPORT int qcul_lib_set(struct qcul_pack *p);
/*
 * Keeps the arguments as a setting of the object, without asking whether they are right. The
 * packing has still to be ended.
 */
QCUL_LIB_EXPORT int qcul_lib_keep(struct qcul_pack *p);
/* Ends the packing. Returns the first failure of it, or else `status`. */
QCUL_LIB_EXPORT int qcul_lib_drop(struct qcul_pack *p, int status);

/* ---- objects ---- */

/* After a reset of the device: all its objects are gone. */

/* `with`: what the library's function gets besides the handle, if it gets anything. */
QCUL_LIB_EXPORT int qcul_lib_create_with(const struct qcul_lib *lib, uint32_t kind, uint64_t with,
					 void **handle);
QCUL_LIB_EXPORT int qcul_lib_create(const struct qcul_lib *lib, uint32_t kind, void **handle);
QCUL_LIB_EXPORT int qcul_lib_destroy(const struct qcul_lib *lib, uint32_t kind, void *handle);
/* Objects that live in the guest alone. Nothing is sent. */
QCUL_LIB_EXPORT int qcul_lib_describe(const struct qcul_lib *lib, uint32_t kind, void **handle);
QCUL_LIB_EXPORT int qcul_lib_undescribe(const struct qcul_lib *lib, uint32_t kind, void *handle);
/* The handle of the object with this number, for handles that are numbers. It may not be there. */
QCUL_LIB_EXPORT void *qcul_lib_by_number(int64_t number);
/* NULL: not a living object of this kind. Any pointer may be passed. */
QCUL_LIB_EXPORT struct qcul_object *qcul_lib_find(const void *handle, uint32_t kind);
/* The arguments with which this function has set something, or NULL. */
QCUL_LIB_EXPORT const unsigned char *qcul_lib_setting(const struct qcul_object *object,
						      uint16_t function);
/* The settings by this function are no longer in force. */
QCUL_LIB_EXPORT void qcul_lib_unset(struct qcul_object *object, uint16_t function);
QCUL_LIB_EXPORT void qcul_lib_unset_all(struct qcul_object *object);

/* ---- for functions that the shim carries out itself ---- */

/* Adds a word to a hash, such as that of what a function has set. */
QCUL_LIB_EXPORT void qcul_lib_mix(uint64_t *hash, uint64_t value);

/* The status for a result of the runtime. */
QCUL_LIB_EXPORT int qcul_lib_status(const struct qcul_lib *lib, int cuda_error);
QCUL_LIB_EXPORT int qcul_lib_unserved(const struct qcul_lib *lib, const char *name,
				      atomic_flag *said);

#define QCUL_LIB_UNSERVED(lib, name)                            \
	QCUL_LIB_EXPORT int name(void);                         \
	int name(void)                                          \
	{                                                       \
		static atomic_flag said = ATOMIC_FLAG_INIT;     \
                                                                \
		return qcul_lib_unserved(&(lib), #name, &said); \
	}

#endif

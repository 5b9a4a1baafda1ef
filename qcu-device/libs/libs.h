/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls of libraries (include/qculib.h). A stub for each function, made by scripts/shims/generate,
 * takes the arguments out of the message one by one, and calls the library. Nothing is believed:
 * each take checks that the words are there, and host pointers that the library gets are always the
 * mirror's own memory, of a size that has been checked. If anything is wrong, `bad` is set, the
 * takes return zeros, and lib_ready() keeps the library from being called.
 */
#ifndef QCU_LIBS_H
#define QCU_LIBS_H

#include "include/qculib.h"
#include "qcu-device/commands/call.h"

struct lib_call;

struct lib_function {
	const char *name;
	int (*run)(struct lib_call *c); /* returns the library's status */
	bool sets;			/* it sets something in its object, and no more */
};

/* Which functions of the library make and use an object of a kind. NULL: there is no such one. */
struct lib_kind {
	const char *create, *destroy;
	const char *stream; /* sets its stream */
	const char *mode;   /* sets where scalars are: 0 the host's memory, 1 the GPU's */
};

struct lib_library {
	const char *name, *soname;
	uint64_t table;
	const struct lib_function *functions;
	uint16_t count;
	const struct lib_kind *kinds; /* QCU_LIB_KINDS */
	int unserved; /* the library's status for a function that it does not have */
};

extern const struct lib_library lib_cublas, lib_cublaslt;

/* An object of a library. Its lock is held while the library works with it. */
struct lib_object {
	pthread_mutex_t lock;
	const struct lib_library *lib;
	uint32_t kind;
	void *native;
	void *stream; /* that is set */
	bool stream_set;
	int mode;	  /* that is set */
	uint64_t version; /* of the settings that were made last */
};

struct lib_call {
	struct call *c;
	const struct lib_library *lib;
	struct lib_loaded *loaded;
	void *fn;
	const uint8_t *at, *end;
	uint8_t *outs;
	uint64_t outs_left;
	bool bad;
	bool locked;  /* the object */
	int rc;	      /* an error of the mirror's own */
	int refused;  /* the library's status for one of the settings */
	void *stream; /* as the library takes it */
	void *self;   /* the object of a setting that is made; NULL: a call of the program */
	int mode;     /* where the scalars are; -1: there is none */
	struct handle *h;
	struct lib_object *object;
	uint64_t version;
	const uint8_t *settings, *settings_end;
};

#define LIB_IN	1u
#define LIB_OUT 2u

/* take.c */
uint64_t lib_value(struct lib_call *c);
double lib_real(struct lib_call *c);
void *lib_device(struct lib_call *c);
void *lib_object(struct lib_call *c, uint32_t kind);
void *lib_stream(struct lib_call *c);
/* Host memory, and how many bytes of it there are. NULL: the program passed a null pointer. */
void *lib_in(struct lib_call *c, uint64_t *len);
void *lib_out(struct lib_call *c, uint64_t *len);
void *lib_text(struct lib_call *c, uint64_t *len);
void *lib_scalar(struct lib_call *c, uint64_t room, unsigned int way);
/* Checks, after all has been taken: memory of this size; a string with an end. */
void lib_sized(struct lib_call *c, const void *at, uint64_t len, uint64_t wanted);
void lib_ended(struct lib_call *c, const void *at, uint64_t len);
/* All has been taken, and is right: prepares the object. False: the library is not called. */
bool lib_ready(struct lib_call *c);

/* For mirror.c: an object's last reference is gone; all objects have ended. */
void lib_object_end(struct mirror *m, struct handle *h);
void lib_unload(struct mirror *m);

#endif

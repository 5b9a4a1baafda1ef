/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls of libraries (include/qculib.h). A stub for each function, made by scripts/shims/generate,
 * takes the arguments out of the message one by one, and calls the library. The message is not
 * trusted. Each take checks that the words are there. Host pointers that the library gets always
 * point to the mirror's own memory, of a size that has been checked. If anything is wrong, `bad` is
 * set, the takes return zeros, and lib_ready() keeps the library from being called.
 */
#ifndef QCU_LIBS_H
#define QCU_LIBS_H

#include "include/qculib.h"
#include "qcu-device/commands/commands.h"

struct lib_call;

/* What is kept of such a call, so that its object can be made again (mirror/keep_calls.c). */
enum lib_keeps {
	LIB_KEEPS_NOTHING,
	LIB_KEEPS_CALL,	    /* the last one of this function */
	LIB_KEEPS_NUMBER,   /* the last one with its first number, of all such functions */
	LIB_KEEPS_READY,    /* it, and what was set before it apart from what is set after it */
	LIB_KEEPS_PLACE,    /* it sets where its generator is in its sequence */
	LIB_KEEPS_SEQUENCE, /* nothing, but the generator has moved by its last number */
	LIB_KEEPS_STATE,    /* nothing, but the object is not known any more */
};

struct lib_function {
	const char *name;
	int (*run)(struct lib_call *c); /* returns the library's status */
	uint32_t sets; /* the kind of object in which it sets something, and no more; 0: none */
	bool makes;    /* it makes that object, which no other function does */
	bool prepares; /* the object beside the first, for the functions that come after this one */
	uint16_t after; /* 1 + the number of the function that prepares for this one; 0: none */
	uint8_t keeps;	/* LIB_KEEPS_* */
};

/*
 * Which functions of the library make and use an object of a kind. NULL: there is no such one. What
 * a descriptor without `create` is, its first setting says, which makes it.
 */
struct lib_library;
struct lib_kind {
	const char *create, *destroy;
	bool numbered; /* the guest makes and ends it with CREATE and DESTROY */
	/* What the program has set comes with each call, and it has nothing else: CREATE makes it
	 * again. */
	bool bare;
	/* CREATE and the calls that are kept make it again. */
	bool kept;
	/* Is the place of such an object of this type in its sequence as many numbers on as it has
	 * made? NULL: it has no sequence. */
	bool (*counts)(const struct be_ops *ops, uint64_t type);
	const char *stream;	      /* sets its stream */
	const char *mode;	      /* sets where scalars are: 0 the host's memory, 1 the GPU's */
	const struct lib_library *of; /* whose functions set something in it; NULL: this one's */
};

struct lib_library {
	const char *name, *soname;
	uint32_t number; /* QCU_LIB_* */
	uint64_t table;
	const struct lib_function *functions;
	uint16_t count;
	const struct lib_kind *kinds; /* QCU_LIB_KINDS */
	/* Functions of the library that stubs written by hand call besides their own. */
	const char *const *helpers;
	uint16_t helper_count;
	int unserved; /* the library's status for a function that it does not have */
};

extern const struct lib_library lib_cublas, lib_cublaslt, lib_cufft, lib_curand, lib_cusolver,
	lib_cusparse;
/* Only where NVIDIA's headers of it were there: LIB_HAVE_cudnn. */
extern const struct lib_library lib_cudnn;

#define LIB_DESCRIPTORS 16u /* of a call */
#define LIB_SCALARS	8u  /* of a call */
#define LIB_SCALAR	16u /* bytes */
#define LIB_DEPTH	4u  /* of settings that hold descriptors */

/* An object of a library. Its lock is held while the library works with it. */
struct lib_object {
	pthread_mutex_t lock;
	const struct lib_library *lib;
	uint32_t kind;
	void *native;
	void *stream; /* that is set */
	bool stream_set;
	int mode;	   /* that is set */
	uint64_t version;  /* of the settings that were made last */
	uint16_t prepared; /* as lib_function.after */
	uint32_t number;   /* among those of its kind of handle */
	/* Of a kind that is kept: CREATE's second argument, and what is known of its state. */
	uint64_t type, place;
	enum { LIB_PLACE_KNOWN, LIB_PLACE_OLD, LIB_PLACE_UNKNOWN } placed;
	bool in_graph; /* a graph has such a call of it */
	struct lib_scratch *scratch;
	/* Objects that this one uses. Each is a counted reference. */
	struct handle **uses;
	uint32_t use_count;
	/*
	 * What the file of its library keeps of it, under a lock of that file, and what it has put
	 * here once, for all to read. Both are freed with the object.
	 */
	void *own;
	_Atomic(void *) shown;
};

struct lib_call {
	struct call *c;
	struct graph_call *graph; /* NULL: the call is not in a graph */
	const struct lib_library *lib;
	struct lib_loaded *loaded;
	void *fn;
	uint16_t function; /* its number */
	const uint8_t *at, *end;
	uint8_t *outs;
	uint64_t outs_left;
	bool bad;
	bool locked;		      /* the object */
	int rc;			      /* an error of the mirror's own */
	int refused;		      /* the library's status for one of the settings */
	void *stream;		      /* as the library takes it */
	const struct stream_ref *ref; /* NULL: what the call does is not timed by itself */
	struct timed *timed;
	void **self; /* the object of a setting that is made; NULL: a call of the program */
	int mode;    /* where the scalars are; -1: there is none */
	/*
	 * Scalars in host memory. Libraries read and write complex numbers as a whole, at addresses
	 * that are multiples of 16, which those in a message need not be. A scalar has one slot or
	 * more, side by side, and behind the last are two more: a library that took one for larger
	 * than it is would read the guest's own bytes, or zeros.
	 */
	uint8_t scalar[LIB_SCALARS + 2][LIB_SCALAR] __attribute__((aligned(16)));
	struct {
		void *back; /* where the guest gets it */
		uint64_t size;
	} scalars[LIB_SCALARS];
	unsigned int scalar_count;
	struct lib_known *known; /* of take.c */
	struct handle *h;
	struct lib_object *object;
	struct handle *second; /* an object beside that one */
	bool second_locked;
	uint64_t version;
	const uint8_t *settings, *settings_end;
	/* Of a setting: the program's call, and whether the object has been taken. */
	struct lib_call *root;
	unsigned int depth;
	bool self_taken;
	unsigned int made_count;
	/* Descriptors that were made for the call. The last member: lib_begin() leaves it as it is.
	 */
	struct {
		uint32_t kind;
		void *native;
	} made[LIB_DESCRIPTORS];
};

/* What a library gets instead of an address that is nobody's: no memory can lie there. */
#define LIB_NOWHERE 0x8000000000000000ull

#define LIB_IN	1u
#define LIB_OUT 2u

/* take.c */
uint64_t lib_value(struct lib_call *c);
double lib_real(struct lib_call *c);
/* A value as it came, which must lie in least..greatest. */
uint64_t lib_bounded(struct lib_call *c, uint64_t value, int64_t least, int64_t greatest);
double lib_bounded_real(struct lib_call *c, double value, double least, double greatest);
/* An address of device memory, a variable or guest memory. Any other becomes LIB_NOWHERE. */
void *lib_device(struct lib_call *c);
void *lib_address(struct lib_call *c, uint64_t at);
void *lib_object(struct lib_call *c, uint32_t kind);
/* The same, or NULL where the guest has none: such a function answers without one. */
void *lib_bare(struct lib_call *c, uint32_t kind);
void *lib_descriptor(struct lib_call *c, uint32_t kind);
/* Where the function shall put the descriptor that it makes. */
void *lib_made(struct lib_call *c, uint32_t kind);
/*
 * A new descriptor, which ends with the call. NULL: `bad` or `refused` is set. The kind must have a
 * function that makes one.
 */
void *lib_make(struct lib_call *c, uint32_t kind);
void *lib_stream(struct lib_call *c);
/* Host memory for the library to work in, or NULL. */
void *lib_scratch(struct lib_call *c, uint64_t len);
/* The next `len` bytes, with what pads them to a multiple of 8, or NULL. */
void *lib_bytes(struct lib_call *c, uint64_t len);
/* Host memory, and how many bytes of it there are. NULL: the program passed a null pointer. */
void *lib_in(struct lib_call *c, uint64_t *len);
void *lib_out(struct lib_call *c, uint64_t *len);
void *lib_inout(struct lib_call *c, uint64_t *len);
void *lib_text(struct lib_call *c, uint64_t *len);
/* As lib_device(), or as lib_out() if the call's object works on the host. */
void *lib_either(struct lib_call *c, uint64_t *len);
void *lib_scalar(struct lib_call *c, uint64_t room, unsigned int way);
/* A scalar whose type is a parameter: in host memory, `room` bytes must do. 0: no such type. */
void lib_fits(struct lib_call *c, uint64_t size, uint64_t room);
/* What the library has written into scalars goes to the guest. */
void lib_scalars_back(struct lib_call *c);
/* Checks, after all has been taken: memory of this size; a string with an end. */
void lib_sized(struct lib_call *c, const void *at, uint64_t len, uint64_t wanted);
void lib_ended(struct lib_call *c, const void *at, uint64_t len);
/* The same for what lib_either() has returned: room for `count` elements. */
void lib_elements(struct lib_call *c, const void *at, uint64_t len, uint64_t count, size_t size);
/* One of the library's helpers, or NULL. */
void *lib_helper(struct lib_call *c, uint16_t which);
/* All has been taken, and is right: prepares the object. False: the library is not called. */
bool lib_ready(struct lib_call *c);

/*
 * For what is written by hand. Puts an object of the library into the table, under a number that
 * the guest has chosen. False: `rc` or `bad` is set, and the object is the caller's.
 */
bool lib_object_add(struct lib_call *c, uint64_t number, uint32_t kind, void *native,
		    struct handle **out);
/* A reference to the object with this number, or NULL, and `rc` is set. */
struct handle *lib_object_get(struct lib_call *c, uint64_t number, uint32_t kind);
/* An object beside the call's first one. */
void *lib_second(struct lib_call *c, uint32_t kind);
/* The library's function with this number, or NULL. */
void *lib_symbol(struct mirror *m, struct lib_loaded *l, uint16_t function);

/* For mirror.c: an object's last reference is gone; all objects have ended. */
void lib_object_end(struct mirror *m, struct handle *h);
void lib_unload(struct mirror *m);
/*
 * For keeping.c: this call makes something that the library knows afterwards, and makes the same
 * each time: algorithms of cuBLASLt.
 */
bool lib_repeats(uint16_t library, uint16_t function);
/* Of such a call: is its first argument a handle? */
bool lib_needs_handle(uint16_t function);
/* For keep_calls.c: what is kept of such a call. A number of no function keeps nothing. */
enum lib_keeps lib_keeps(uint16_t library, uint16_t function);
/* The function of the object's library that sets its place, or QCU_LIB_OPEN. */
uint16_t lib_places(const struct lib_object *o);
/*
 * The object has made such a call, and `number` is the last of its arguments. True: it is at
 * o->place now, and that has to be kept.
 */
bool lib_moved(const struct be_ops *ops, struct lib_object *o, enum lib_keeps what,
	       uint64_t number);
/* For save.c: NULL, or the library of an object that CREATE does not make again as it is. */
const char *lib_unsaved(const struct handle *h);
/*
 * For save_graph.c: NULL, or what keeps a call in a graph from being made again in another mirror.
 * made: the number of the command that made the graph, among those that are kept.
 */
const char *lib_call_unsaved(struct mirror *m, const struct graph_call *call, uint64_t made);
/* For mirror.c: a call in a graph, as graph_call of struct mirror. */
int lib_graph_call(void *graph_call, void *stream);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What has made a session what it is: for each object the command that made it, and those that set
 * something of it. A session is saved as these commands (mirror/save.c). A setting that is
 * overtaken is kept once, and an object that ends takes its commands along.
 */
#ifndef QCU_KEPT_H
#define QCU_KEPT_H

#include <pthread.h>
#include <sys/queue.h>

#include "include/qcucmd.h"
#include "qcu-device/lanes/handles.h"

/* The kinds of objects: those with a handle, and these. */
enum kept_kind {
	KEPT_MEMORY = HANDLE_KINDS, /* an allocation, by its address */
	KEPT_TEXTURE,		    /* by the GPU's number */
	KEPT_SURFACE,
	KEPT_MAP,     /* guest memory in the mirror, by its address */
	KEPT_PAGE,    /* the page of the watches */
	KEPT_SETTING, /* of a device: a limit or a peer, by its number */
	KEPT_KINDS,
};

/* What a command does to the object that it names. */
enum kept_does {
	KEPT_NOTHING,
	KEPT_MAKES,
	KEPT_SETS,
	KEPT_SETS_NODES, /* of a graph, each on its own */
	KEPT_COPIES,	 /* the attributes of another stream */
	KEPT_ENDS,
	KEPT_ENDS_RANGE,  /* all maps in this range, and the page if it is there */
	KEPT_ENDS_THREAD, /* the default streams of a thread */
	KEPT_RESETS,	  /* ends what a device has */
	KEPT_LIBRARY,	  /* makes or ends an object of a library, or neither */
};

/*
 * device, tid and op: 0, unless the number stands for another object for each device, thread or
 * command.
 */
struct kept_name {
	uint32_t kind, device, tid, op;
	uint64_t id;
};

/* The key of what overtakes nothing. It is not kept of an object that is gone. */
#define KEPT_EACH UINT64_MAX

struct kept_step {
	struct qCUcmd cmd; /* as it was answered */
	uint64_t number;   /* the order in which the commands were carried out */
	uint64_t key;	   /* what it sets; of two with the same key and op the later one stays */
	void *data;	   /* its message, its buffer, or the segments of a map */
	size_t len;
	uint64_t lo, span; /* of a map, and of the page */
	STAILQ_ENTRY(kept_step) link;
};

STAILQ_HEAD(kept_steps, kept_step);

struct kept_object {
	struct kept_name name;
	struct kept_name of; /* an object on which it depends; kind KEPT_KINDS: none */
	uint64_t of_number;  /* of the command that made that one */
	unsigned int device; /* of the command that made it, or set something */
	bool made;
	uint64_t lo, len;	   /* of maps, and of the page */
	struct kept_steps records; /* the first one made it, if one did */
	TAILQ_ENTRY(kept_object) link;
};

TAILQ_HEAD(kept_objects, kept_object);

struct kept {
	pthread_mutex_t lock;
	void *tree; /* of all objects, by name */
	struct kept_objects objects[KEPT_KINDS];
	uint64_t number;
	bool lost; /* there was no memory for a record: the session cannot be saved */
};

void kept_init(struct kept *k);
void kept_fini(struct kept *k);

/*
 * Adds a record, and takes it over. With `made` it makes the object, which then depends on the
 * object `of`, or NULL. NULL as a record: there was no memory for it.
 */
void kept_add(struct kept *k, const struct kept_name *name, struct kept_step *r, bool made,
	      const struct kept_name *of);
void kept_end(struct kept *k, const struct kept_name *name);
/* Drops what such commands have set of the object. key: NULL, or only with that key. */
void kept_drop(struct kept *k, const struct kept_name *name, uint16_t op, const uint64_t *key);
/*
 * What such commands have set of one object is set of the other from now on, and nothing else is.
 * `about` has the other one's number in the first word of its body, its device and its thread.
 */
void kept_copy(struct kept *k, const struct kept_name *from, const struct kept_name *to,
	       uint16_t op, const struct qCUcmd *about);
/* Something cannot be kept: the session cannot be saved. */
void kept_lose(struct kept *k);
void kept_end_range(struct kept *k, uint64_t lo, uint64_t len);
void kept_end_device(struct kept *k, unsigned int device);

struct kept_step *kept_step_new(size_t len);
void kept_step_free(struct kept_step *r);
/* Has the object such a record? */
bool kept_holds(struct kept *k, const struct kept_name *name, uint16_t op, uint64_t key);
/* The session cannot be saved any more. */
bool kept_is_lost(struct kept *k);
/* How many records the object has. */
size_t kept_count(struct kept *k, const struct kept_name *name);

/* For the saver: no command runs. NULL: there is no such object. */
struct kept_object *kept_find(struct kept *k, const struct kept_name *name);
/* The number of the command that made the object; 0: there is none. */
uint64_t kept_made(const struct kept_object *o);

#endif

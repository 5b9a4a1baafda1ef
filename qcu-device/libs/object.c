// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The objects of libraries. The mirror creates and destroys them at the guest's command. Before a
 * call it gives them the state that the call needs: the stream, the program's settings, and where
 * scalars are. The guest sends this state with each call, so calls of several threads need no order
 * among themselves.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/libs/impl.h"

int lib_create(struct lib_call *c)
{
	struct mirror *m = c->c->m;
	uint64_t number = lib_value(c), kind = lib_value(c);
	uint64_t with = lib_value(c);
	/* A function that takes the handle alone does not see the second argument. */
	int (*create)(void **native, uint64_t with) = NULL;
	int (*destroy)(void *native) = NULL;
	void *native = NULL;
	struct handle *h;
	int status;

	if (c->bad || c->at != c->end || kind >= QCU_LIB_KINDS || !c->lib->kinds[kind].create ||
	    !c->lib->kinds[kind].numbered) {
		c->bad = true;
		return 0;
	}
	*(void **)&create = lib_kind_symbol(m, c->loaded, (uint32_t)kind, false);
	*(void **)&destroy = lib_kind_symbol(m, c->loaded, (uint32_t)kind, true);
	if (!create || !destroy)
		return c->lib->unserved;
	status = create(&native, with);
	if (status)
		return status;
	if (lib_object_add(c, number, (uint32_t)kind, native, &h))
		h->library->type = with;
	else
		destroy(native);
	return status;
}

bool lib_object_add(struct lib_call *c, uint64_t number, uint32_t kind, void *native,
		    struct handle **out)
{
	struct mirror *m = c->c->m;
	struct lib_object *o;
	struct handle *h;

	if (number < QCU_ID_FIRST || number > QCU_ID_MAX) {
		c->bad = true;
		return false;
	}
	if (!handles_free(&m->handles, HANDLE_LIBRARY, (uint32_t)number)) {
		c->rc = QCU_ERR_InvalidResourceHandle;
		return false;
	}
	c->rc = mir_handle_new(c->c, HANDLE_LIBRARY, &h);
	if (c->rc)
		return false;
	o = calloc(1, sizeof(*o));
	if (!o) {
		c->rc = QCU_ERR_MemoryAllocation;
		mir_handle_drop(m, h);
		return false;
	}
	pthread_mutex_init(&o->lock, NULL);
	o->lib = c->lib;
	o->kind = kind;
	o->native = native;
	o->number = (uint32_t)number;
	h->library = o;
	h->device = c->c->cmd->device;
	c->rc = handles_add(&m->handles, (uint32_t)number, h);
	if (c->rc) {
		/* Another thread was faster. The object stays the caller's: no kind ends it. */
		o->kind = 0;
		handles_put(&m->handles, h);
		return false;
	}
	*out = h;
	return true;
}

struct handle *lib_object_get(struct lib_call *c, uint64_t number, uint32_t kind)
{
	struct handles *t = &c->c->m->handles;
	struct handle *h =
		number <= QCU_ID_MAX ? handles_get(t, HANDLE_LIBRARY, (uint32_t)number) : NULL;

	if (h && h->library->lib == c->lib && h->library->kind == kind)
		return h;
	handles_put(t, h);
	c->rc = QCU_ERR_InvalidResourceHandle;
	return NULL;
}

void *lib_second(struct lib_call *c, uint32_t kind)
{
	uint64_t number = lib_value(c);

	if (c->self || c->second || c->bad) {
		c->bad = true;
		return NULL;
	}
	c->second = lib_object_get(c, number, kind);
	if (!c->second || c->second->device != c->c->cmd->device) {
		c->rc = QCU_ERR_InvalidResourceHandle;
		c->bad = true;
		return NULL;
	}
	return c->second->library->native;
}

int lib_destroy(struct lib_call *c)
{
	uint64_t number = lib_value(c);

	if (c->bad || c->at != c->end)
		c->bad = true;
	else if (number > QCU_ID_MAX ||
		 !handles_remove(&c->c->m->handles, HANDLE_LIBRARY, (uint32_t)number))
		c->rc = QCU_ERR_InvalidResourceHandle;
	return 0;
}

void lib_object_end(struct mirror *m, struct handle *h)
{
	struct lib_object *o = h->library;
	struct be_stream *s = m->cfg.ops->stream_legacy(m->be, h->device);
	char why[QCU_LIB_REASON];
	struct lib_loaded *l = lib_load(m, o->lib, why, sizeof(why));
	int (*destroy)(void *native) = NULL;
	void *stream;

	if (l)
		*(void **)&destroy = lib_kind_symbol(m, l, o->kind, true);
	/* After an error of the GPU, too: the library's own memory goes back. */
	if (destroy && s) {
		(void)m->cfg.ops->native(m->be, s, &stream);
		destroy(o->native);
	}
	while (o->use_count)
		handles_put(&m->handles, o->uses[--o->use_count]);
	free(o->uses);
	free(o->own);
	free(atomic_load(&o->shown));
	lib_scratch_free(m, o);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

const char *lib_unsaved(const struct handle *h)
{
	const struct lib_object *o = h->library;
	const struct lib_kind *kind = &o->lib->kinds[o->kind];

	return (!kind->bare && !kind->kept) || o->use_count || o->own || o->prepared ||
			       o->placed == LIB_PLACE_UNKNOWN || o->in_graph
		       ? o->lib->name
		       : NULL;
}

static bool has_ended(struct mirror *m, const struct handle *h)
{
	struct handle *now = handles_get(&m->handles, HANDLE_LIBRARY, h->library->number);

	handles_put(&m->handles, now);
	return now != h;
}

/* What it is now, it was when the command with this number came. */
static bool is_unchanged_since(struct mirror *m, const struct handle *h, uint64_t number)
{
	const struct kept_name name = {.kind = HANDLE_LIBRARY, .id = h->library->number};
	const struct kept_object *o = kept_find(&m->kept, &name);
	const struct kept_step *r = o ? STAILQ_FIRST(&o->records) : NULL;

	while (r && r->number < number)
		r = STAILQ_NEXT(r, link);
	return o && !r;
}

/*
 * All settings of an object come with the call. What else is set in one that is not of a bare kind
 * was in it when the library was called, and must still be.
 */
const char *lib_call_unsaved(struct mirror *m, const struct graph_call *call, uint64_t made)
{
	const struct handle *const of[] = {call->object, call->second};
	struct window *w = &m->window;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		if (!of[i])
			continue;
		if (has_ended(m, of[i]))
			return "an executable graph with calls of a library whose object has ended";
		if (!of[i]->library->lib->kinds[of[i]->library->kind].bare &&
		    !is_unchanged_since(m, of[i], made))
			return "an executable graph with calls of a plan that was changed later";
	}
	for (i = 0; i < call->memory_count; i++) {
		const uint64_t at = call->memory[i];

		if (!m->cfg.ops->mem_valid(m->be, at, 1) && !window_set_aside(w, at, 1) &&
		    !window_pinned(w, at, 1, NULL))
			return "an executable graph whose memory has been freed";
	}
	return NULL;
}

uint16_t lib_places(const struct lib_object *o)
{
	uint16_t i;

	for (i = 0; i < o->lib->count; i++)
		if (o->lib->functions[i].keeps == LIB_KEEPS_PLACE)
			return i;
	return QCU_LIB_OPEN;
}

bool lib_moved(const struct be_ops *ops, struct lib_object *o, enum lib_keeps what, uint64_t number)
{
	const struct lib_kind *kind = &o->lib->kinds[o->kind];
	bool moved = what == LIB_KEEPS_SEQUENCE;

	pthread_mutex_lock(&o->lock);
	switch (what) {
	case LIB_KEEPS_PLACE:
		o->place = number;
		o->placed = LIB_PLACE_KNOWN;
		break;
	case LIB_KEEPS_SEQUENCE:
		moved = o->placed == LIB_PLACE_KNOWN && kind->counts &&
			kind->counts(ops, o->type) &&
			!__builtin_add_overflow(o->place, number, &o->place);
		if (!moved)
			o->placed = LIB_PLACE_UNKNOWN;
		break;
	case LIB_KEEPS_STATE:
		o->placed = LIB_PLACE_UNKNOWN;
		break;
	case LIB_KEEPS_CALL:
		/* Whether it begins anew with another seed is the library's affair. */
		if (o->place && o->placed == LIB_PLACE_KNOWN)
			o->placed = LIB_PLACE_OLD;
		break;
	case LIB_KEEPS_NOTHING:
	case LIB_KEEPS_NUMBER:
	case LIB_KEEPS_READY:
		break;
	}
	pthread_mutex_unlock(&o->lock);
	return moved;
}

bool lib_make_settings(struct lib_call *c, void **native, uint32_t kind, const uint8_t *at,
		       const uint8_t *end)
{
	const struct lib_library *of = c->lib->kinds[kind].of;
	const struct lib_library *lib = of ? of : c->lib;
	char why[QCU_LIB_REASON];
	struct lib_loaded *loaded =
		of && at < end ? lib_load(c->c->m, of, why, sizeof(why)) : c->loaded;

	if (!loaded) {
		c->refused = c->lib->unserved;
		return true;
	}
	while (at < end) {
		struct qcu_lib_setting s;
		struct lib_call one = {
			.c = c->c,
			.lib = lib,
			.loaded = loaded,
			.stream = c->stream,
			.self = native,
			.mode = -1,
			.root = c->root ? c->root : c,
			.depth = c->depth + 1,
		};
		size_t left = (size_t)(end - at);
		bool none;

		if (left < sizeof(s) || c->depth == LIB_DEPTH)
			return false;
		memcpy(&s, at, sizeof(s));
		if (s.rsvd || s.args > left - sizeof(s) || s.function >= lib->count ||
		    lib->functions[s.function].sets != kind)
			return false;
		/* Only the first setting makes the object, where no other function does. */
		none = !c->lib->kinds[kind].create && !*native;
		if (!c->refused && lib->functions[s.function].makes != none)
			return false;
		one.at = at + sizeof(s);
		one.end = one.at + s.args;
		one.fn = lib_symbol(c->c->m, loaded, s.function);
		at = one.end;
		if (!c->refused)
			c->refused = one.fn ? lib->functions[s.function].run(&one) : lib->unserved;
		if (!c->refused)
			c->refused = one.refused;
		if (one.bad)
			return false;
	}
	return true;
}

static bool prepare_object(struct lib_call *c)
{
	struct lib_object *o = c->object;
	const struct lib_kind *kind = &o->lib->kinds[o->kind];
	int mode = c->mode < 0 ? 0 : c->mode;
	int (*set_stream)(void *native, void *stream) = NULL;
	int (*set_mode)(void *native, int mode) = NULL;

	if (kind->stream && (!o->stream_set || o->stream != c->stream)) {
		*(void **)&set_stream = lib_named(c->c->m, c->loaded, kind->stream);
		if (!set_stream || set_stream(o->native, c->stream))
			return false;
		o->stream = c->stream;
		o->stream_set = true;
		/* A library may forget settings with the stream, as cuBLAS does its workspace. */
		o->version = 0;
	}
	if (o->version != c->version) {
		o->version = 0;
		if (!lib_make_settings(c, &o->native, o->kind, c->settings, c->settings_end))
			return false;
		if (!c->refused)
			o->version = c->version;
	}
	/*
	 * An object beside the first may hold the address of a scalar from an earlier call, and the
	 * library uses it in the mode of the call that it makes now: so the mode stays the same.
	 */
	if (c->second && c->mode < 0)
		mode = c->second->library->mode;
	else if (c->second)
		c->second->library->mode = mode;
	if (kind->mode && o->mode != mode) {
		*(void **)&set_mode = lib_named(c->c->m, c->loaded, kind->mode);
		if (!set_mode || set_mode(o->native, mode))
			return false;
		o->mode = mode;
	}
	return true;
}

/* Has the call an object that can be told that its scalars are in the GPU's memory? */
static bool has_mode(const struct lib_call *c)
{
	return !c->self && c->object && c->object->lib == c->lib &&
	       c->lib->kinds[c->object->kind].mode;
}

/* Some libraries use what is in an object without a look whether anything is there. */
static bool is_prepared(struct lib_call *c)
{
	uint16_t after = c->lib->functions[c->function].after;

	return !after || (c->second && c->second->library->prepared == after);
}

static bool is_ready(struct lib_call *c)
{
	/* Without it the library would read host memory at an address of the guest's choice. */
	if (c->at != c->end || (c->mode == 1 && !has_mode(c)))
		c->bad = true;
	if (c->self || c->bad || c->refused || !c->object)
		return !c->bad && !c->refused;
	/* A handle of cuBLAS in a call of cuBLASLt: its stream and settings have no effect there.
	 */
	if (c->object->lib != c->lib)
		return true;
	pthread_mutex_lock(&c->object->lock);
	c->locked = true;
	/* An object of such a kind never comes first, so two calls cannot wait for each other. */
	if (c->second) {
		pthread_mutex_lock(&c->second->library->lock);
		c->second_locked = true;
	}
	if (!is_prepared(c)) {
		c->refused = c->lib->unserved;
		return false;
	}
	if (prepare_object(c))
		return !c->refused;
	c->bad = true;
	return false;
}

bool lib_ready(struct lib_call *c)
{
	bool ready = is_ready(c);

	/* Without an object there is no work for the GPU. */
	if (ready && c->object && c->ref && c->c->m->times.limit_ns && !c->timed)
		c->timed = mir_time_call_begin(c->c, c->ref);
	return ready;
}

void lib_put(struct lib_call *c, bool done)
{
	int (*destroy)(void *native) = NULL;

	while (c->made_count) {
		uint32_t kind = c->made[--c->made_count].kind;

		*(void **)&destroy = lib_kind_symbol(c->c->m, c->loaded, kind, true);
		if (destroy && c->made[c->made_count].native)
			destroy(c->made[c->made_count].native);
	}
	if (c->second_locked && done && c->lib->functions[c->function].prepares)
		c->second->library->prepared = (uint16_t)(c->function + 1);
	if (c->second_locked)
		pthread_mutex_unlock(&c->second->library->lock);
	handles_put(&c->c->m->handles, c->second);
	if (!c->object)
		return;
	if (c->locked)
		pthread_mutex_unlock(&c->object->lock);
	handles_put(&c->c->m->handles, c->h);
}

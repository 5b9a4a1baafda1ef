// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The backend API of cuDNN (include/qculib_cudnn.h). A descriptor holds references to the
 * descriptors that it uses, so none of these ends before it. One lock protects building, because a
 * descriptor may be part of several others. Executing does not need the lock.
 *
 * Only the execution says where tensors are. If a tensor is one number in the host's memory
 * (CUDNN_ATTR_TENSOR_IS_BY_VALUE), cuDNN reads the number at the address that it gets. So the
 * mirror knows these tensors of each plan. For them it gives cuDNN an address of its own memory,
 * and for all others the guest's address.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/libs/cudnn.h"
#include "qcu-device/libs/impl.h"

/* The most references of one descriptor, in all of its attributes. */
#define USES_MAX (2 * QCU_CUDNN_ELEMENTS)

/* More bytes than cuDNN writes behind the elements that are asked for. */
#define ROOM_BEHIND 4096

static pthread_mutex_t building = PTHREAD_MUTEX_INITIALIZER;

struct attribute {
	uint64_t name, type, count, bytes;
	const void *elements;
	const struct lib_attribute *rule;
};

/* What is known of a descriptor: `own` of its object. All of it is under `building`. */
struct known {
	uint64_t type;
	bool settled; /* finalized, or filled by cuDNN: nothing can be set in it any more */
	bool used;    /* by another one */
	/* Of a tensor. */
	int64_t id, vector;
	int32_t data_type;
	bool by_value, is_virtual, single;
	int64_t dims;
	/* Of a concatenation: along which dimension; which input is the output, too; of how many.
	 */
	int64_t axis, inplace, inputs;
	/* While a plan's tensors are listed. */
	uint64_t walk;
	struct lib_object *next;
};

/* The tensors of a plan: `shown` of its object. */
struct plan_tensors {
	uint32_t count;
	struct plan_tensor {
		int64_t id;
		bool by_value;
	} at[];
};

/* The functions of the library that these need. */
struct functions {
	__typeof__(&cudnnBackendCreateDescriptor) create;
	__typeof__(&cudnnBackendDestroyDescriptor) destroy;
	__typeof__(&cudnnBackendSetAttribute) set;
	__typeof__(&cudnnBackendGetAttribute) get;
	__typeof__(&cudnnBackendFinalize) finalize;
	__typeof__(&cudnnBackendExecute) execute;
};

static bool look_up(struct lib_call *c, struct functions *f)
{
	struct mirror *m = c->c->m;

	*(void **)&f->create = lib_symbol(m, c->loaded, lib_number_cudnnBackendCreateDescriptor);
	*(void **)&f->destroy = lib_symbol(m, c->loaded, lib_number_cudnnBackendDestroyDescriptor);
	*(void **)&f->set = lib_symbol(m, c->loaded, lib_number_cudnnBackendSetAttribute);
	*(void **)&f->get = lib_symbol(m, c->loaded, lib_number_cudnnBackendGetAttribute);
	*(void **)&f->finalize = lib_symbol(m, c->loaded, lib_number_cudnnBackendFinalize);
	*(void **)&f->execute = lib_symbol(m, c->loaded, lib_number_cudnnBackendExecute);
	return f->create && f->destroy && f->set && f->get && f->finalize && f->execute;
}

static struct handle *descriptor(struct lib_call *c, uint64_t number)
{
	return lib_object_get(c, number, QCU_LIB_CUDNN_BACKEND);
}

static struct known *known_of(const struct handle *h)
{
	return h->library->own;
}

/* Makes a descriptor with this number, and returns a reference of its own. */
static struct handle *make_backend_descriptor(struct lib_call *c, const struct functions *f,
					      uint64_t number, uint64_t type, int *status)
{
	cudnnBackendDescriptor_t native = NULL;
	struct handle *h = NULL;
	struct known *k;

	*status = CUDNN_STATUS_NOT_SUPPORTED;
	if (!lib_cudnn_descriptor(type))
		return NULL;
	k = calloc(1, sizeof(*k));
	if (!k) {
		c->rc = QCU_ERR_MemoryAllocation;
		return NULL;
	}
	k->type = type;
	k->inplace = -1;
	*status = (int)f->create((cudnnBackendDescriptorType_t)type, &native);
	if (!*status && lib_object_add(c, number, QCU_LIB_CUDNN_BACKEND, native, &h))
		/* The guest may have ended it already. */
		h = descriptor(c, number);
	else if (!*status)
		f->destroy(native);
	if (h)
		h->library->own = k;
	else
		free(k);
	return h;
}

/* `o` takes over the reference. */
static bool add_used_handle(struct lib_call *c, struct lib_object *o, struct handle *h)
{
	struct handle **uses = NULL;

	if (o->use_count < USES_MAX)
		uses = realloc(o->uses, (o->use_count + 1) * sizeof(*uses));
	if (!uses) {
		handles_put(&c->c->m->handles, h);
		c->rc = QCU_ERR_MemoryAllocation;
		return false;
	}
	o->uses = uses;
	o->uses[o->use_count++] = h;
	return true;
}

/* cuDNN takes a boolean for what C says that it is. */
static bool booleans_good(const uint8_t *elements, uint64_t count)
{
	while (count)
		if (elements[--count] > 1)
			return false;
	return true;
}

/* Numbers that cuDNN takes for an index. */
static bool indices_good(const struct attribute *a)
{
	const int64_t *number = a->elements;

	switch (a->name) {
	case CUDNN_ATTR_POINTWISE_AXIS:
	case CUDNN_ATTR_OPERATION_CONCAT_AXIS:
	case CUDNN_ATTR_OPERATION_EXPAND_BAND_MATRIX_AXIS:
	case CUDNN_ATTR_OPERATION_CONTRACT_BAND_MATRIX_AXIS:
	case CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION:
		return *number >= -1 && *number < (int64_t)QCU_CUDNN_DIMS;
	}
	return true;
}

/* Returns the library's status. */
static int take_attribute(struct lib_call *c, const struct known *k, struct attribute *a)
{
	a->name = lib_value(c);
	a->type = lib_value(c);
	a->count = lib_value(c);
	if (c->bad)
		return 0;
	a->rule = lib_cudnn_attribute(k->type, a->name, a->type, LIB_SET);
	if (!a->rule || a->count > a->rule->most)
		return CUDNN_STATUS_NOT_SUPPORTED;
	/* cuDNN reads the first element even if there is none. */
	if (!a->count && a->type != CUDNN_TYPE_BACKEND_DESCRIPTOR)
		return CUDNN_STATUS_BAD_PARAM;
	a->bytes = a->count * qcu_cudnn_attribute_size(a->type);
	a->elements = lib_bytes(c, a->bytes);
	if (!a->elements)
		return 0;
	return (a->type == CUDNN_TYPE_BOOLEAN && !booleans_good(a->elements, a->count)) ||
			       !indices_good(a)
		       ? CUDNN_STATUS_BAD_PARAM
		       : 0;
}

/* An element of an attribute. `o` takes over the reference. NULL: `status` or c->rc is set. */
static void *take_element(struct lib_call *c, struct lib_object *o, const struct attribute *a,
			  uint64_t number, int *status)
{
	bool handle = a->type == CUDNN_TYPE_HANDLE;
	struct handle *h =
		lib_object_get(c, number, handle ? QCU_LIB_CUDNN_HANDLE : QCU_LIB_CUDNN_BACKEND);
	struct known *k = h && !handle ? known_of(h) : NULL;
	void *native = h ? h->library->native : NULL;

	if (h && h->library == o)
		c->rc = QCU_ERR_InvalidValue;
	else if (k && !k->settled)
		*status = CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
	else if (k && !lib_cudnn_part(a->rule, k->type))
		*status = CUDNN_STATUS_BAD_PARAM;
	if (!h || c->rc || *status) {
		handles_put(&c->c->m->handles, h);
		return NULL;
	}
	if (k)
		k->used = true;
	/* Kept whether the library accepts it or not: it may have looked at it. */
	return add_used_handle(c, o, h) ? native : NULL;
}

/* All that an update holds. */
struct update {
	struct lib_call *c;
	struct functions f;
	bool finalize;
	uint64_t number, there;
	struct handle *h;
	void **native;
	struct plan_tensors *tensors;
};

/* Sets an attribute whose elements are objects. */
static int set_objects(struct update *u, struct lib_object *o, const struct attribute *a)
{
	struct lib_call *c = u->c;
	const uint64_t *number = a->elements;
	uint64_t i;
	int status = 0;

	free(u->native);
	u->native = calloc(a->count + 1, sizeof(*u->native));
	if (!u->native) {
		c->rc = QCU_ERR_MemoryAllocation;
		return 0;
	}
	for (i = 0; i < a->count && !c->rc && !status; i++)
		u->native[i] = take_element(c, o, a, number[i], &status);
	if (!c->rc && !status)
		status = (int)u->f.set(o->native, (cudnnBackendAttributeName_t)a->name,
				       (cudnnBackendAttributeType_t)a->type, (int64_t)a->count,
				       u->native);
	return status;
}

/* The library has accepted it. */
static void note_attribute(struct known *k, const struct attribute *a)
{
	const int64_t *number = a->elements;
	uint64_t i;

	if (!a->count)
		return;
	switch (a->name) {
	case CUDNN_ATTR_OPERATION_CONCAT_AXIS:
		k->axis = *number;
		break;
	case CUDNN_ATTR_OPERATION_CONCAT_INPLACE_INDEX:
		k->inplace = *number;
		break;
	case CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS:
		k->inputs = (int64_t)a->count;
		break;
	case CUDNN_ATTR_TENSOR_UNIQUE_ID:
		k->id = *number;
		break;
	case CUDNN_ATTR_TENSOR_VECTOR_COUNT:
		k->vector = *number;
		break;
	case CUDNN_ATTR_TENSOR_DATA_TYPE:
		memcpy(&k->data_type, a->elements, sizeof(k->data_type));
		break;
	case CUDNN_ATTR_TENSOR_IS_BY_VALUE:
		k->by_value = *(const uint8_t *)a->elements;
		break;
	case CUDNN_ATTR_TENSOR_IS_VIRTUAL:
		k->is_virtual = *(const uint8_t *)a->elements;
		break;
	case CUDNN_ATTR_TENSOR_DIMENSIONS:
		k->single = true;
		k->dims = (int64_t)a->count;
		for (i = 0; i < a->count; i++)
			k->single &= number[i] == 1;
		break;
	}
}

/* Of a number in the host's memory, no more than QCU_CUDNN_VALUE bytes may be read. */
static bool value_good(const struct known *k)
{
	return k->single && k->vector <= 1 && k->data_type >= 0 &&
	       k->data_type <= CUDNN_DATA_COMPLEX_FP64 && k->data_type != CUDNN_DATA_INT8x32;
}

/* cuDNN uses the axis and the index as they are. */
static bool concat_good(const struct lib_object *o)
{
	const struct known *k = o->own;
	uint32_t i;

	if (k->axis < 0 || k->inplace < -1 || k->inplace >= k->inputs)
		return false;
	for (i = 0; i < o->use_count; i++)
		if (known_of(o->uses[i])->dims <= k->axis)
			return false;
	return true;
}

/* ---- the tensors of a plan ---- */

static int by_id(const void *a, const void *b)
{
	const struct plan_tensor *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* All descriptors that can be reached from this one, as a list. */
static struct lib_object *list_reachable(struct lib_object *o)
{
	static uint64_t last;
	struct lib_object *end = o, *at;
	uint32_t i;

	last++;
	((struct known *)o->own)->walk = last;
	((struct known *)o->own)->next = NULL;
	for (at = o; at; at = ((struct known *)at->own)->next)
		for (i = 0; i < at->use_count; i++) {
			struct known *k = known_of(at->uses[i]);

			if (!k || k->walk == last)
				continue;
			k->walk = last;
			k->next = NULL;
			((struct known *)end->own)->next = at->uses[i]->library;
			end = at->uses[i]->library;
		}
	return o;
}

/* A tensor that only is between operations has no address. */
static bool listed(const struct known *k)
{
	return k->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR && (k->by_value || !k->is_virtual);
}

/* NULL: there are too many, or c->rc is set; or an id is of two tensors, of which one is a value.
 */
static struct plan_tensors *list_tensors(struct lib_call *c, struct lib_object *plan)
{
	struct lib_object *all = list_reachable(plan), *at;
	struct plan_tensors *t;
	uint32_t n = 0, kept = 0, i;

	for (at = all; at; at = ((struct known *)at->own)->next)
		n += listed(at->own);
	if (n > QCU_CUDNN_PLAN_TENSORS)
		return NULL;
	t = calloc(1, sizeof(*t) + n * sizeof(t->at[0]));
	if (!t) {
		c->rc = QCU_ERR_MemoryAllocation;
		return NULL;
	}
	for (at = all; at; at = ((struct known *)at->own)->next) {
		const struct known *k = at->own;

		if (listed(k))
			t->at[t->count++] = (struct plan_tensor){k->id, k->by_value};
	}
	qsort(t->at, n, sizeof(t->at[0]), by_id);
	for (i = 0; i < n; i++) {
		if (!kept || t->at[kept - 1].id != t->at[i].id) {
			t->at[kept++] = t->at[i];
		} else if (t->at[kept - 1].by_value != t->at[i].by_value) {
			free(t);
			return NULL;
		}
	}
	t->count = kept;
	return t;
}

/* ---- building ---- */

static int finalize(struct update *u)
{
	struct lib_object *o = u->h->library;
	struct known *k = o->own;
	int status;

	if (k->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR && k->by_value && !value_good(k))
		return CUDNN_STATUS_NOT_SUPPORTED;
	if (k->type == CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR && !concat_good(o))
		return CUDNN_STATUS_BAD_PARAM;
	/* cuDNN believes that there is an engine. */
	if (k->type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR && !o->use_count)
		return CUDNN_STATUS_BAD_PARAM;
	if (k->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
		u->tensors = list_tensors(u->c, o);
		if (!u->tensors)
			return CUDNN_STATUS_NOT_SUPPORTED;
	}
	status = (int)u->f.finalize(o->native);
	if (status)
		return status;
	k->settled = true;
	atomic_store(&o->shown, u->tensors);
	u->tensors = NULL;
	return 0;
}

static int update_guarded(void *arg)
{
	struct update *u = arg;
	struct lib_call *c = u->c;
	uint64_t type = lib_value(c), left = lib_value(c);
	struct attribute a;
	struct known *k;
	int status = 0;

	if (c->bad)
		return 0;
	u->h = u->there ? descriptor(c, u->number)
			: make_backend_descriptor(c, &u->f, u->number, type, &status);
	if (!u->h)
		return status;
	k = known_of(u->h);
	if (k->settled)
		return CUDNN_STATUS_NOT_INITIALIZED;
	while (left--) {
		status = take_attribute(c, k, &a);
		if (status || c->bad)
			return status;
		if (a.type == CUDNN_TYPE_HANDLE || a.type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
			status = set_objects(u, u->h->library, &a);
		else
			status = (int)u->f.set(u->h->library->native,
					       (cudnnBackendAttributeName_t)a.name,
					       (cudnnBackendAttributeType_t)a.type,
					       (int64_t)a.count, a.elements);
		if (status || c->rc)
			return status;
		note_attribute(k, &a);
	}
	return lib_ready(c) && u->finalize ? finalize(u) : 0;
}

/* Both functions that send attributes: with the last ones, the descriptor is finalized. */
static int update_descriptor(struct lib_call *c, bool with_finalize)
{
	struct update u = {.c = c, .finalize = with_finalize};
	int status;

	u.number = lib_value(c);
	u.there = lib_value(c);
	if (c->bad)
		return 0;
	if (!look_up(c, &u.f))
		return CUDNN_STATUS_NOT_SUPPORTED;
	pthread_mutex_lock(&building);
	status = lib_guarded(c, c->lib->functions[c->function].name, update_guarded, &u);
	/* The guest will send all of it again. */
	if (!u.there && u.h && (status || c->rc || c->bad))
		handles_remove(&c->c->m->handles, HANDLE_LIBRARY, (uint32_t)u.number);
	handles_put(&c->c->m->handles, u.h);
	pthread_mutex_unlock(&building);
	free(u.native);
	free(u.tensors);
	return status;
}

int lib_do_cudnnBackendSetAttribute(struct lib_call *c)
{
	return update_descriptor(c, false);
}

int lib_do_cudnnBackendFinalize(struct lib_call *c)
{
	return update_descriptor(c, true);
}

/* A question, and the descriptors that it fills. */
struct question {
	struct lib_call *c;
	struct functions f;
	struct handle *of;
	uint64_t count;
	void **native;
	struct handle **h;
	bool *is_new;
	void *room; /* what cuDNN writes to */
};

static int take_filled(struct question *q, const struct lib_attribute *rule)
{
	struct lib_call *c = q->c;
	const struct known *k;
	int status = 0;
	uint64_t i;

	for (i = 0; i < q->count; i++) {
		uint64_t number = lib_value(c), there = lib_value(c), type = lib_value(c);

		if (c->bad)
			return 0;
		q->h[i] = there ? descriptor(c, number)
				: make_backend_descriptor(c, &q->f, number, type, &status);
		if (!q->h[i])
			return status;
		q->is_new[i] = !there;
		k = known_of(q->h[i]);
		/* What others know must not change. */
		if (!lib_cudnn_part(rule, k->type) || k->used)
			return CUDNN_STATUS_BAD_PARAM;
		q->native[i] = q->h[i]->library->native;
	}
	return 0;
}

static bool same(const struct handle *h, const void *other)
{
	return h == other;
}

/* If it went wrong, the new ones go away. If not, they may know the one that was asked. */
static void keep_filled(struct question *q, bool good)
{
	struct handles *t = &q->c->c->m->handles;
	uint64_t i;

	for (i = 0; i < q->count; i++) {
		struct handle *h = q->h[i];

		if (!h)
			continue;
		if (good && h != q->of) {
			known_of(h)->settled = true;
			add_used_handle(q->c, h->library, handle_hold(t, q->of));
		} else if (!good && q->is_new[i]) {
			handles_remove_if(t, HANDLE_LIBRARY, same, h);
		}
		handles_put(t, h);
	}
}

static int get_guarded(void *arg)
{
	struct question *q = arg;
	struct lib_call *c = q->c;
	uint64_t name = lib_value(c), type = lib_value(c), wanted = lib_value(c), bytes, len;
	uint64_t size = qcu_cudnn_attribute_size(type), most = lib_value(c);
	const struct lib_attribute *rule;
	int64_t *count, found = 0;
	void *elements;
	int status;

	if (c->bad || !size || wanted > QCU_LIB_OUTS_MAX / size ||
	    (most && (most != wanted || type != CUDNN_TYPE_BACKEND_DESCRIPTOR))) {
		c->bad = true;
		return 0;
	}
	rule = lib_cudnn_attribute(known_of(q->of)->type, name, type, LIB_GET);
	if (!rule || most > rule->most)
		return CUDNN_STATUS_NOT_SUPPORTED;
	q->native = calloc(most + 1, sizeof(*q->native));
	q->h = calloc(most + 1, sizeof(*q->h));
	q->is_new = calloc(most + 1, sizeof(*q->is_new));
	if (!q->native || !q->h || !q->is_new) {
		c->rc = QCU_ERR_MemoryAllocation;
		return 0;
	}
	q->count = most;
	status = take_filled(q, rule);
	if (status || c->rc)
		return status;
	count = lib_out(c, &len);
	lib_sized(c, count, len, sizeof(*count));
	elements = lib_out(c, &bytes);
	lib_sized(c, elements, bytes, wanted * size);
	/* The addresses of descriptors are nothing that a guest may see. */
	if (elements && type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		c->bad = true;
	if (!lib_ready(c))
		return 0;
	/* There never are more, so asking for more is the same question. */
	if (wanted > rule->most)
		wanted = rule->most;
	/* cuDNN writes more than it is asked for: of some numbers, 16 bytes and not 8. */
	q->room = calloc(1, wanted * size + ROOM_BEHIND);
	if (!q->room) {
		c->rc = QCU_ERR_MemoryAllocation;
		return 0;
	}
	status = (int)q->f.get(q->of->library->native, (cudnnBackendAttributeName_t)name,
			       (cudnnBackendAttributeType_t)type, (int64_t)wanted, &found,
			       q->count	  ? q->native
			       : elements ? q->room
					  : NULL);
	if (elements)
		memcpy(elements, q->room, wanted * size);
	if (count)
		*count = found;
	return status;
}

int lib_do_cudnnBackendGetAttribute(struct lib_call *c)
{
	uint64_t number = lib_value(c);
	struct question q = {.c = c};
	int status;

	if (c->bad)
		return 0;
	if (!look_up(c, &q.f))
		return CUDNN_STATUS_NOT_SUPPORTED;
	pthread_mutex_lock(&building);
	q.of = descriptor(c, number);
	status = q.of ? lib_guarded(c, c->lib->functions[c->function].name, get_guarded, &q) : 0;
	keep_filled(&q, !status && !c->rc && !c->bad);
	pthread_mutex_unlock(&building);
	free(q.native);
	free(q.room);
	free(q.h);
	free(q.is_new);
	handles_put(&c->c->m->handles, q.of);
	return status;
}

/* An execution, and its tensors. */
struct execution {
	struct lib_call *c;
	struct functions f;
	cudnnHandle_t handle;
	struct handle *plan;
	cudnnBackendDescriptor_t pack;
	int64_t id[QCU_CUDNN_TENSORS];
	void *address[QCU_CUDNN_TENSORS];
	uint64_t count;
	void *workspace;
};

/*
 * Where a tensor is. A program's pinned memory is both the GPU's and the host's, so then the guest
 * sends both. NULL: the form is none of those that this tensor may have.
 */
static void *take_tensor_address(struct lib_call *c, const struct plan_tensor *t, bool *good)
{
	uint64_t form = lib_value(c);
	void *device = NULL, *value = NULL;

	if (form == QCU_LIB_DEVICE || form == QCU_LIB_BOTH)
		device = lib_device(c);
	if (form == QCU_LIB_HOST || form == QCU_LIB_BOTH)
		value = lib_bytes(c, QCU_CUDNN_VALUE);
	*good = form == QCU_LIB_BOTH || form == QCU_LIB_DEVICE || form == QCU_LIB_HOST;
	if (t && t->by_value)
		*good &= form != QCU_LIB_DEVICE;
	else if (t)
		*good &= form != QCU_LIB_HOST;
	return t && t->by_value ? value : device;
}

static void take_tensors(struct lib_call *c, const struct plan_tensors *plan, struct execution *e)
{
	uint64_t count, i;
	bool good = true;

	e->workspace = lib_device(c);
	count = lib_value(c);
	if (count > QCU_CUDNN_TENSORS)
		c->bad = true;
	for (i = 0; i < count && !c->bad; i++) {
		const struct plan_tensor key = {.id = (int64_t)lib_value(c)};
		const struct plan_tensor *t =
			bsearch(&key, plan->at, plan->count, sizeof(plan->at[0]), by_id);

		e->id[e->count] = key.id;
		e->address[e->count] = take_tensor_address(c, t, &good);
		c->bad |= !good;
		/* Of a tensor that is not the plan's, cuDNN need not know. */
		e->count += t != NULL;
	}
}

static int execute_guarded(void *arg)
{
	struct execution *e = arg;
	const struct functions *f = &e->f;
	int status = (int)f->create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &e->pack);

	if (status)
		return status;
	status = (int)f->set(e->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
			     (int64_t)e->count, e->address);
	if (!status)
		status = (int)f->set(e->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
				     (int64_t)e->count, e->id);
	if (!status)
		status = (int)f->set(e->pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
				     CUDNN_TYPE_VOID_PTR, 1, &e->workspace);
	if (!status)
		status = (int)f->finalize(e->pack);
	if (!status && lib_ready(e->c))
		status = (int)f->execute(e->handle, e->plan->library->native, e->pack);
	return status;
}

static int execute(struct lib_call *c, struct execution *e)
{
	const struct plan_tensors *tensors = atomic_load(&e->plan->library->shown);
	int status;

	/* It is no plan, or not finalized. */
	if (!tensors)
		return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
	take_tensors(c, tensors, e);
	if (c->bad)
		return 0;
	status = lib_guarded(c, c->lib->functions[c->function].name, execute_guarded, e);
	if (e->pack)
		e->f.destroy(e->pack);
	return status;
}

int lib_do_cudnnBackendExecute(struct lib_call *c)
{
	struct execution e = {.c = c, .handle = lib_object(c, QCU_LIB_CUDNN_HANDLE)};
	uint64_t number = lib_value(c);
	int status = 0;

	if (c->bad)
		return 0;
	if (!look_up(c, &e.f))
		return CUDNN_STATUS_NOT_SUPPORTED;
	e.plan = descriptor(c, number);
	if (e.plan)
		status = execute(c, &e);
	handles_put(&c->c->m->handles, e.plan);
	return status;
}

/* The guest makes and ends descriptors in other ways. */
int lib_do_cudnnBackendCreateDescriptor(struct lib_call *c)
{
	c->bad = true;
	return 0;
}

int lib_do_cudnnBackendDestroyDescriptor(struct lib_call *c)
{
	c->bad = true;
	return 0;
}

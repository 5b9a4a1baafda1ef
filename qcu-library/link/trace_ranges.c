// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Ranges that the program names itself (NVTX), for a trace. NVTX is a header: in the program it
 * loads the library that NVTX_INJECTION64_PATH names when it is first used, and hands it its table
 * of functions. That library is this one. What is not in the tables here, NVTX leaves out.
 *
 * Types and numbers are those of version 3 of the interface, which is binary and does not change.
 */
#include <pthread.h>
#include <stdlib.h>

#include "qcu-library/link/fork.h"
#include "qcu-library/link/trace.h"

#define PUBLIC __attribute__((visibility("default")))

#define DEPTH_MAX   1024 /* ranges of a thread in each other */
#define STARTED_MAX 256	 /* ranges that are not bound to a thread, at a time */
#define NO_LEVEL    (-1) /* NVTX: the level of a range is not known */

struct nvtx_attributes {
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type;
	union {
		const char *text;
		const wchar_t *wide;
		const char *registered; /* what register_text() gave out */
	} message;
};
_Static_assert(sizeof(struct nvtx_attributes) == 48, "as NVTX has it");
enum { MESSAGE_TEXT = 1, MESSAGE_WIDE, MESSAGE_REGISTERED };

/* A range that is not bound to a thread. Its number is id * STARTED_MAX + its place. */
struct started_range {
	uint64_t id; /* 0: free */
	const char *domain;
	char name[QCUL_TRACE_NAME];
};

static struct {
	struct started_range started[STARTED_MAX];
	uint64_t ids;
} process;
QCUL_AT_FORK(QCUL_FORK_TRACE_RANGES)

/* ---- text ---- */

/* As UTF-8. What is no character becomes a question mark. */
static void copy_wide_text(char *to, const wchar_t *text)
{
	size_t n = 0;

	for (; text && *text && n < QCUL_TRACE_NAME - 5; text++) {
		uint32_t c = (uint32_t)*text;

		if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
			c = '?';
		if (c < 0x80) {
			to[n++] = (char)c;
			continue;
		}
		if (c >= 0x10000) {
			to[n++] = (char)(0xf0 | c >> 18);
			to[n++] = (char)(0x80 | (c >> 12 & 63));
		} else if (c >= 0x800) {
			to[n++] = (char)(0xe0 | c >> 12);
		}
		to[n++] = c >= 0x800 ? (char)(0x80 | (c >> 6 & 63)) : (char)(0xc0 | c >> 6);
		to[n++] = (char)(0x80 | (c & 63));
	}
	to[n] = '\0';
}

static void copy_message(char *to, const struct nvtx_attributes *a)
{
	const size_t least = offsetof(struct nvtx_attributes, message) + sizeof(a->message);

	to[0] = '\0';
	if (!a || a->size < least)
		return;
	if (a->message_type == MESSAGE_WIDE)
		copy_wide_text(to, a->message.wide);
	else if (a->message_type == MESSAGE_TEXT || a->message_type == MESSAGE_REGISTERED)
		qcul_trace_cut_name(to, a->message.text ? a->message.text : "");
}

/* What has a handle in NVTX is its text here. The program keeps it, so it is never freed. */
static void *register_text(const char *text)
{
	return qcul_trace_keep_name(text ? text : "");
}

static void *register_wide_text(const wchar_t *text)
{
	char name[QCUL_TRACE_NAME];

	copy_wide_text(name, text);
	return qcul_trace_keep_name(name);
}

/* ---- ranges of a thread ---- */

/* A range for the caller to name; NULL: it is not traced. */
static struct qcul_traced_range *push_range(const char *domain)
{
	struct qcul_traced_thread *t = qcul_traced_thread();
	struct qcul_traced_range *r = t && t->depth < DEPTH_MAX ? malloc(sizeof(*r)) : NULL;

	if (!r) {
		if (t)
			t->too_deep++;
		return NULL;
	}
	r->below = t->ranges;
	r->domain = domain;
	r->begin = qcul_trace_now();
	t->ranges = r;
	t->depth++;
	return r;
}

static int level_of_range(const struct qcul_traced_range *r)
{
	const void *domain = r->domain;
	int level = 0;

	for (r = r->below; r; r = r->below)
		level += r->domain == domain;
	return level;
}

/* Each domain has a stack of its own, so the innermost range may be another domain's. */
static int pop_range(const char *domain)
{
	struct qcul_traced_thread *t = qcul_traced_thread();
	struct qcul_traced_range **at, *r;
	int level;

	if (t && t->too_deep) {
		t->too_deep--;
		return NO_LEVEL;
	}
	for (at = t ? &t->ranges : NULL; at && *at && (*at)->domain != domain; at = &(*at)->below)
		;
	if (!at || !*at)
		return NO_LEVEL;
	r = *at;
	level = level_of_range(r);
	*at = r->below;
	t->depth--;
	qcul_trace_span("range", r->name, domain, r->begin);
	free(r);
	return level;
}

static int domain_push_ex(const char *domain, const struct nvtx_attributes *a)
{
	struct qcul_traced_range *r = push_range(domain);

	if (!r)
		return NO_LEVEL;
	copy_message(r->name, a);
	return level_of_range(r);
}

static int push_ex(const struct nvtx_attributes *a)
{
	return domain_push_ex(NULL, a);
}

static int push_text(const char *text)
{
	struct qcul_traced_range *r = push_range(NULL);

	if (!r)
		return NO_LEVEL;
	qcul_trace_cut_name(r->name, text ? text : "");
	return level_of_range(r);
}

static int push_wide_text(const wchar_t *text)
{
	struct qcul_traced_range *r = push_range(NULL);

	if (!r)
		return NO_LEVEL;
	copy_wide_text(r->name, text);
	return level_of_range(r);
}

static int pop_default(void)
{
	return pop_range(NULL);
}

/* ---- ranges of no thread ---- */

/* Returns the number of the range. 0: too many have begun. */
static uint64_t start_named_range(const char *domain, const char *name)
{
	struct started_range *r = process.started;
	uint64_t id = 0;

	pthread_mutex_lock(&at_fork.lock);
	while (r < &process.started[STARTED_MAX] && r->id)
		r++;
	if (r < &process.started[STARTED_MAX]) {
		r->id = ++process.ids;
		r->domain = domain;
		qcul_trace_cut_name(r->name, name);
		id = r->id * STARTED_MAX + (uint64_t)(r - process.started);
		qcul_trace_bound(true, name, domain, id);
	}
	pthread_mutex_unlock(&at_fork.lock);
	return id;
}

static void end_started_range(uint64_t id)
{
	struct started_range *r = &process.started[id % STARTED_MAX];

	pthread_mutex_lock(&at_fork.lock);
	if (r->id && r->id == id / STARTED_MAX) {
		r->id = 0;
		qcul_trace_bound(false, r->name, r->domain, id);
	}
	pthread_mutex_unlock(&at_fork.lock);
}

static uint64_t domain_start_ex(const char *domain, const struct nvtx_attributes *a)
{
	char name[QCUL_TRACE_NAME];

	copy_message(name, a);
	return start_named_range(domain, name);
}

static uint64_t start_ex(const struct nvtx_attributes *a)
{
	return domain_start_ex(NULL, a);
}

static uint64_t start_text(const char *text)
{
	return start_named_range(NULL, text ? text : "");
}

static uint64_t start_wide_text(const wchar_t *text)
{
	char name[QCUL_TRACE_NAME];

	copy_wide_text(name, text);
	return start_named_range(NULL, name);
}

static void domain_end_started(const char *domain, uint64_t id)
{
	(void)domain;
	end_started_range(id);
}

/* ---- moments and names ---- */

static void domain_mark_ex(const char *domain, const struct nvtx_attributes *a)
{
	char name[QCUL_TRACE_NAME];

	copy_message(name, a);
	qcul_trace_mark(name, domain);
}

static void mark_ex(const struct nvtx_attributes *a)
{
	domain_mark_ex(NULL, a);
}

static void mark_text(const char *text)
{
	qcul_trace_mark(text ? text : "", NULL);
}

static void mark_wide_text(const wchar_t *text)
{
	char name[QCUL_TRACE_NAME];

	copy_wide_text(name, text);
	qcul_trace_mark(name, NULL);
}

static void name_thread_wide(uint32_t tid, const wchar_t *text)
{
	char name[QCUL_TRACE_NAME];

	copy_wide_text(name, text);
	qcul_trace_name_thread(tid, name);
}

static void *domain_register_text(const char *domain, const char *text)
{
	(void)domain;
	return register_text(text);
}

static void *domain_register_wide(const char *domain, const wchar_t *text)
{
	(void)domain;
	return register_wide_text(text);
}

/* ---- the tables of NVTX ---- */

typedef void nvtx_function(void);

struct nvtx_callbacks {
	size_t bytes;
	int (*module_table)(int module, nvtx_function ****table, unsigned int *size);
};

#define ENTRY(n, f) [n] = (nvtx_function *)(f)

static nvtx_function *const core[] = {
	ENTRY(1, mark_ex),
	ENTRY(2, mark_text),
	ENTRY(3, mark_wide_text),
	ENTRY(4, start_ex),
	ENTRY(5, start_text),
	ENTRY(6, start_wide_text),
	ENTRY(8, push_ex),
	ENTRY(9, push_text),
	ENTRY(10, push_wide_text),
	ENTRY(11, pop_default),
	ENTRY(14, qcul_trace_name_thread),
	ENTRY(15, name_thread_wide),
	ENTRY(7, end_started_range),
};
static nvtx_function *const core_2[] = {
	ENTRY(1, domain_mark_ex),      ENTRY(2, domain_start_ex),
	ENTRY(3, domain_end_started),  ENTRY(4, domain_push_ex),
	ENTRY(5, pop_range),	       ENTRY(10, domain_register_text),
	ENTRY(12, register_text),      ENTRY(11, domain_register_wide),
	ENTRY(13, register_wide_text),
};
enum { MODULE_CORE = 1, MODULE_CORE_2 = 5, TABLE_CALLBACKS = 1 };

static bool fill_nvtx_table(const struct nvtx_callbacks *c, int module, nvtx_function *const *own,
			    unsigned int count)
{
	nvtx_function ***table = NULL;
	unsigned int size = 0, i;

	if (!c->module_table(module, &table, &size) || !table)
		return false;
	for (i = 0; i < count && i < size; i++)
		if (own[i] && table[i])
			*table[i] = own[i];
	return true;
}

PUBLIC int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id));

/* Returns 0 if there is nothing to do: NVTX then does nothing, as without a tool. */
PUBLIC int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t id))
{
	const struct nvtx_callbacks *c;

	if (!qcul_traced_thread())
		return 0;
	c = export_table(TABLE_CALLBACKS);
	return c && c->bytes >= sizeof(*c) &&
	       fill_nvtx_table(c, MODULE_CORE, core, sizeof(core) / sizeof(core[0])) &&
	       fill_nvtx_table(c, MODULE_CORE_2, core_2, sizeof(core_2) / sizeof(core_2[0]));
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions that the runtime of a GPU provides to kernels: printf, the end of a failed assert, the
 * device heap, and setting the condition of a conditional node of a graph.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/ptx/exec/ptx_exec.h"
#include "qcu-device/soft/ptx/memory/ptx_mem.h"

#define MAX_STRING 4096u
#define MAX_TEXT   8192u

enum ptx_sys ptx_sys_find(const char *name)
{
	static const struct {
		const char *name;
		enum ptx_sys sys;
	} all[] = {{"vprintf", SYS_VPRINTF},
		   {"__assertfail", SYS_ASSERTFAIL},
		   {"malloc", SYS_MALLOC},
		   {"free", SYS_FREE},
		   {"cudaGraphSetConditional", SYS_SET_CONDITION}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (!strcmp(name, all[i].name))
			return all[i].sys;
	return ptx_runtime_find(name);
}

/* Reads a string of the kernel byte by byte: its memory may end right after the string. */
static bool get_string(struct ptx_warp *w, unsigned int lane, uint64_t addr, char *buf, size_t cap)
{
	for (size_t i = 0; i + 1 < cap; i++) {
		const uint8_t *p = ptx_resolve_one(w, lane, addr + i, 1, false);

		if (!p)
			return false;
		buf[i] = (char)*p;
		if (!buf[i])
			return true;
	}
	buf[cap - 1] = 0;
	return true;
}

struct out {
	char text[MAX_TEXT];
	size_t len;
};

static void append_printf_text(struct out *o, const char *s, size_t n)
{
	if (n > sizeof(o->text) - 1 - o->len)
		n = sizeof(o->text) - 1 - o->len;
	memcpy(o->text + o->len, s, n);
	o->len += n;
}

struct args {
	struct ptx_warp *w;
	unsigned int lane;
	uint64_t at;
};

/* Reads the next argument. Arguments are laid out like the members of a struct. */
static bool next_arg(struct args *a, unsigned int size, uint64_t *v)
{
	const uint8_t *p;

	a->at = (a->at + size - 1) & ~(uint64_t)(size - 1);
	p = ptx_resolve_one(a->w, a->lane, a->at, size, false);
	if (!p)
		return false;
	*v = 0;
	memcpy(v, p, size);
	a->at += size;
	return true;
}

/* Does one conversion; f is at its '%'. Returns the rest of the format, or NULL after a fault. */
static const char *print_conversion(struct args *a, const char *f, struct out *o,
				    unsigned int *count)
{
	char spec[64] = "%", buf[512], str[MAX_STRING];
	const char *start = f++;
	unsigned int n = 1, lng = 0;
	uint64_t v;
	double d;
	int len = 0;

	while (*f && strchr("-+ #0123456789.*", *f) && n < 40) {
		if (*f == '*') {
			if (!next_arg(a, 4, &v))
				return NULL;
			/* A larger width is a mistake. */
			n += (unsigned int)snprintf(spec + n, 8, "%d", (int)(int32_t)v % 500);
			f++;
		} else if (*f >= '1' && *f <= '9') {
			unsigned long width = strtoul(f, (char **)(uintptr_t)&f, 10);

			/* No line is wider than this, but the host's printf would try. */
			n += (unsigned int)snprintf(spec + n, 8, "%lu", width > 400 ? 400 : width);
		} else {
			spec[n++] = *f++;
		}
	}
	while (*f && strchr("hlLqjzt", *f)) {
		lng += *f == 'l' || *f == 'L' || *f == 'q' || *f == 'j' || *f == 'z' || *f == 't';
		f++;
	}
	switch (*f) {
	case 'd':
	case 'i':
		if (!next_arg(a, lng ? 8 : 4, &v))
			return NULL;
		snprintf(spec + n, 8, "lld");
		len = snprintf(buf, sizeof(buf), spec, lng ? (long long)v : (long long)(int32_t)v);
		break;
	case 'u':
	case 'o':
	case 'x':
	case 'X':
		if (!next_arg(a, lng ? 8 : 4, &v))
			return NULL;
		snprintf(spec + n, 8, "ll%c", *f);
		len = snprintf(buf, sizeof(buf), spec, (unsigned long long)v);
		break;
	case 'c':
		if (!next_arg(a, 4, &v))
			return NULL;
		snprintf(spec + n, 8, "c");
		len = snprintf(buf, sizeof(buf), spec, (int)v);
		break;
	case 'e':
	case 'E':
	case 'f':
	case 'F':
	case 'g':
	case 'G':
	case 'a':
	case 'A':
		if (!next_arg(a, 8, &v))
			return NULL;
		memcpy(&d, &v, 8);
		snprintf(spec + n, 8, "%c", *f);
		len = snprintf(buf, sizeof(buf), spec, d);
		break;
	case 'p':
		if (!next_arg(a, 8, &v))
			return NULL;
		len = snprintf(buf, sizeof(buf), "0x%llx", (unsigned long long)v);
		break;
	case 's':
		if (!next_arg(a, 8, &v) || !get_string(a->w, a->lane, v, str, sizeof(str)))
			return NULL;
		snprintf(spec + n, 8, "s");
		if (n == 1) {
			append_printf_text(o, str, strlen(str));
		} else {
			len = snprintf(buf, sizeof(buf), spec, str);
		}
		break;
	case '%':
		append_printf_text(o, "%", 1);
		return f + 1;
	default:
		append_printf_text(o, start, (size_t)(f - start));
		return f;
	}
	if (len > 0)
		append_printf_text(o, buf,
				   (size_t)len < sizeof(buf) ? (size_t)len : sizeof(buf) - 1);
	++*count;
	return f + 1;
}

static void do_printf(struct ptx_warp *w, const struct ptx_call *c, unsigned int lane)
{
	const struct ptx_env *env = &w->blk->grid->mod->env;
	struct args a = {.w = w, .lane = lane, .at = ptx_arg_get(w, &c->args[1], lane)};
	char format[MAX_STRING];
	unsigned int count = 0;
	const char *f = format;
	struct out o;

	o.len = 0;
	if (!get_string(w, lane, ptx_arg_get(w, &c->args[0], lane), format, sizeof(format)))
		return;
	while (*f) {
		if (*f != '%') {
			size_t n = strcspn(f, "%");

			append_printf_text(&o, f, n);
			f += n;
			continue;
		}
		f = print_conversion(&a, f, &o, &count);
		if (!f)
			return;
	}
	if (env->print)
		env->print(env->ctx, o.text, o.len);
	ptx_arg_put(w, c, lane, count);
}

static void do_assert(struct ptx_warp *w, const struct ptx_call *c, unsigned int lane)
{
	const struct ptx_env *env = &w->blk->grid->mod->env;
	const uint32_t *sp = w->special;
	void (*say)(void *ctx, const char *text, size_t len);
	char msg[512], file[512], func[512], text[2048];
	int n;

	if (!get_string(w, lane, ptx_arg_get(w, &c->args[0], lane), msg, sizeof(msg)) ||
	    !get_string(w, lane, ptx_arg_get(w, &c->args[1], lane), file, sizeof(file)) ||
	    !get_string(w, lane, ptx_arg_get(w, &c->args[3], lane), func, sizeof(func)))
		return;
	n = snprintf(text, sizeof(text),
		     "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
		     file, (unsigned int)ptx_arg_get(w, &c->args[2], lane), func, w->blk->ctaid[0],
		     w->blk->ctaid[1], w->blk->ctaid[2], sp[SP_TID_X * PTX_LANES + lane],
		     sp[SP_TID_Y * PTX_LANES + lane], sp[SP_TID_Z * PTX_LANES + lane], msg);
	say = env->complain ? env->complain : env->print;
	if (say && n > 0)
		say(env->ctx, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static void do_condition(struct ptx_warp *w, const struct ptx_call *c, unsigned int lane)
{
	const struct ptx_env *env = &w->blk->grid->mod->env;
	uint64_t handle = ptx_arg_get(w, &c->args[0], lane);
	uint32_t value = (uint32_t)ptx_arg_get(w, &c->args[1], lane);

	if (!env->condition || !env->condition(env->ctx, handle, value))
		ptx_fault(w, lane, PTX_ILLEGAL_ADDRESS, "0x%llx is no handle of a graph that runs",
			  (unsigned long long)handle);
}

void ptx_sys_call(struct ptx_warp *w, const struct ptx_call *c, enum ptx_sys sys, uint32_t m)
{
	struct ptx_module *mod = w->blk->grid->mod;
	static const uint8_t want[] = {[SYS_VPRINTF] = 2,
				       [SYS_ASSERTFAIL] = 5,
				       [SYS_MALLOC] = 1,
				       [SYS_FREE] = 1,
				       [SYS_SET_CONDITION] = 2};

	if (sys >= SYS_RUNTIME) {
		ptx_runtime_call(w, c, sys, m);
		return;
	}
	if (c->nargs != want[sys]) {
		ptx_fault(w, ptx_lane(m), PTX_ILLEGAL_ADDRESS, "%u arguments to a system function",
			  c->nargs);
		return;
	}
	for (uint32_t r = m; r && !w->fault; r &= r - 1) {
		unsigned int lane = ptx_lane(r);
		uint64_t v;

		switch (sys) {
		case SYS_VPRINTF:
			do_printf(w, c, lane);
			break;
		case SYS_ASSERTFAIL:
			do_assert(w, c, lane);
			break;
		case SYS_MALLOC:
			v = ptx_arg_get(w, c->args, lane);
			ptx_arg_put(w, c, lane, v ? ptx_heap_alloc(mod, v) : 0);
			break;
		case SYS_SET_CONDITION:
			do_condition(w, c, lane);
			break;
		default:
			v = ptx_arg_get(w, c->args, lane);
			if (v && !ptx_heap_free(mod, v))
				ptx_fault(w, lane, PTX_ILLEGAL_ADDRESS, "free of 0x%llx",
					  (unsigned long long)v);
		}
	}
	if (sys == SYS_ASSERTFAIL)
		ptx_fault(w, ptx_lane(m), PTX_ASSERT, "assertion failed");
}

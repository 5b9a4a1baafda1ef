/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The PTX machine of test_soft_fake.h. */
#include "tests/unit/soft/test_soft_fake.h"

#define KERNELS 10

struct ptx_kernel {
	struct ptx_module *m;
	struct ptx_kernel_info info;
};

struct ptx_module {
	struct ptx_env env;
	uint64_t var;
	struct ptx_kernel kernel[KERNELS];
};

_Atomic int fake_modules;

static const char *const names[KERNELS] = {"step",  "gate",    "open",	 "store",  "status",
					   "print", "bounded", "shared", "hungry", "held"};
static const struct ptx_param params[3] = {{0, 8, 8}, {8, 8, 8}, {16, 8, 8}};

/* Three kernels need many registers; bounded and held declare how large a block is. */
static void specials(struct ptx_kernel_info *info)
{
	if (!strcmp(info->name, "bounded"))
		info->max_threads = 128, info->min_blocks = 8;
	if (!strcmp(info->name, "held"))
		info->max_threads = 800, info->min_blocks = 2; /* more than there is room for */
	if (!strcmp(info->name, "hungry") || info->min_blocks)
		info->regs = 100;
	info->bounded = info->max_threads < 1024;
}

enum ptx_status ptx_load(const char *text, size_t len, const struct ptx_env *env,
			 struct ptx_module **out, struct ptx_diag *diag)
{
	struct ptx_module *m;
	unsigned int i;

	if (len > strlen(FAKE_PTX) && strstr(text, "bad")) {
		diag->line = 7;
		strcpy(diag->text, "bad");
		return PTX_INVALID_PTX;
	}
	m = calloc(1, sizeof(*m));
	m->env = *env;
	m->var = env->alloc(env->ctx, 64);
	if (!m->var) {
		free(m);
		return PTX_NO_MEMORY;
	}
	for (i = 0; i < KERNELS; i++) {
		m->kernel[i].m = m;
		m->kernel[i].info = (struct ptx_kernel_info){
			.name = names[i],
			.param_count = 3,
			.params = params,
			.param_bytes = 24,
			.regs = 32,
			.max_threads = 1024,
			.shared_bytes = strcmp(names[i], "shared") ? 0 : 4096,
			.ptx_version = 75,
		};
		specials(&m->kernel[i].info);
	}
	atomic_fetch_add(&fake_modules, 1);
	*out = m;
	return PTX_OK;
}

void ptx_unload(struct ptx_module *m)
{
	m->env.free(m->env.ctx, m->var);
	atomic_fetch_sub(&fake_modules, 1);
	free(m);
}

const struct ptx_kernel *ptx_kernel_at(const struct ptx_module *m, unsigned int i)
{
	return i < KERNELS ? &m->kernel[i] : NULL;
}

const struct ptx_kernel *ptx_kernel_find(const struct ptx_module *m, const char *name)
{
	unsigned int i;

	for (i = 0; i < KERNELS; i++)
		if (!strcmp(names[i], name))
			return &m->kernel[i];
	return NULL;
}

const struct ptx_kernel_info *ptx_kernel_info(const struct ptx_kernel *k)
{
	return &k->info;
}

const char *ptx_missing(const struct ptx_module *m)
{
	(void)m;
	return NULL;
}

const char *ptx_managed_at(const struct ptx_module *m, unsigned int i)
{
	(void)m;
	return i ? NULL : "var";
}

bool ptx_var_at(const struct ptx_module *m, uint32_t i, uint64_t *addr, uint64_t *size)
{
	(void)m;
	(void)i;
	(void)addr;
	(void)size;
	return false;
}

enum ptx_status ptx_var_find(const struct ptx_module *m, const char *name, uint64_t *addr,
			     size_t *size)
{
	if (strcmp(name, "var"))
		return PTX_NOT_FOUND;
	*addr = m->var;
	*size = 64;
	return PTX_OK;
}

static void *at(uint64_t addr)
{
	return (void *)(uintptr_t)addr;
}

static bool cancelled(const struct ptx_launch *l)
{
	return __atomic_load_n((const int *)l->cancel, __ATOMIC_RELAXED);
}

static enum ptx_status step(const struct ptx_launch *l, const uint64_t p[3])
{
	uint64_t ms;

	for (ms = 0; ms < p[2]; ms++) {
		if (cancelled(l))
			return PTX_KILLED;
		sleep_ms(1);
	}
	*(uint64_t *)at(p[1]) = atomic_fetch_add((_Atomic uint64_t *)at(p[0]), 1) + 1;
	return PTX_OK;
}

enum ptx_status ptx_run(const struct ptx_kernel *k, const struct ptx_launch *l,
			struct ptx_diag *diag)
{
	const char *name = k->info.name;
	const struct ptx_env *env = &k->m->env;
	struct ptx_range r;
	uint64_t p[3];

	memcpy(p, l->params, sizeof(p));
	if (!strcmp(name, "gate")) {
		while (!atomic_load((_Atomic int *)at(p[0]))) {
			if (cancelled(l))
				return PTX_KILLED;
			sleep_ms(1);
		}
		return PTX_OK;
	}
	if (!strcmp(name, "open")) {
		atomic_store((_Atomic int *)at(p[0]), 1);
		return PTX_OK;
	}
	if (!strcmp(name, "store")) {
		r = env->range(env->ctx, p[0]);
		if (p[0] < r.lo || p[0] >= r.hi || r.hi - p[0] < 8) {
			strcpy(diag->text, "store outside of memory");
			return PTX_ILLEGAL_ADDRESS;
		}
		*(uint64_t *)at(p[0]) = p[1];
		return PTX_OK;
	}
	if (!strcmp(name, "status")) {
		strcpy(diag->text, "as the test wants it");
		return (enum ptx_status)p[0];
	}
	if (!strcmp(name, "print")) {
		char *line = malloc(p[0]);

		memset(line, 'a' + (int)(p[1] % 26), p[0]);
		line[p[0] - 1] = '\n';
		env->print(env->ctx, line, p[0]);
		free(line);
		return PTX_OK;
	}
	return step(l, p);
}

const char *ptx_status_name(enum ptx_status s)
{
	static const char *const text[] = {"ok",	  "invalid PTX",    "unsupported",
					   "no memory",	  "not found",	    "bad launch",
					   "bad address", "misaligned",	    "trap",
					   "assert",	  "stack overflow", "killed"};

	return text[s];
}

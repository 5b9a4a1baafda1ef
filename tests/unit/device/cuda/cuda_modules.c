// SPDX-License-Identifier: GPL-2.0-or-later
/* Modules of the stand-in for CUDA: see cuda_stand_in.h. */
#include "tests/unit/device/cuda/cuda_stand_in.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/device/cuda/cuda_addresses.h"

/* Modules share units of 2 MiB, in which they have the first room that is large enough. */
#define GRAINS (CU_UNIT / CU_GRAIN)
static struct unit {
	uint64_t at;
	unsigned char taken[GRAINS];
} units[64];

static uint64_t take_in_unit(struct unit *u, uint64_t grains)
{
	uint64_t i, free_grains = 0;

	for (i = 0; i < GRAINS && free_grains < grains; i++)
		free_grains = u->taken[i] ? 0 : free_grains + 1;
	if (free_grains < grains)
		return 0;
	memset(u->taken + i - grains, 1, grains);
	return u->at + (i - grains) * CU_GRAIN;
}

static uint64_t take_for_module(uint64_t bytes)
{
	const uint64_t grains = (bytes + CU_GRAIN - 1) / CU_GRAIN;
	uint64_t at = 0;
	unsigned int i;

	if (!bytes)
		return 0;
	if (grains > GRAINS)
		return addresses_reserve(cu_units(bytes), 0);
	for (i = 0; units[i].at && !at; i++)
		at = take_in_unit(&units[i], grains);
	assert_true(i + 1 < sizeof(units) / sizeof(*units));
	if (at)
		return at;
	units[i].at = addresses_reserve(CU_UNIT, 0);
	return take_in_unit(&units[i], grains);
}

static void give_for_module(uint64_t at, uint64_t bytes)
{
	unsigned int i;

	if (!bytes)
		return;
	if (bytes > CU_UNIT) {
		addresses_free(at, cu_units(bytes));
		return;
	}
	for (i = 0; units[i].at != at / CU_UNIT * CU_UNIT; i++)
		;
	memset(units[i].taken + at % CU_UNIT / CU_GRAIN, 0, (bytes + CU_GRAIN - 1) / CU_GRAIN);
	if (memchr(units[i].taken, 1, GRAINS))
		return;
	addresses_free(units[i].at, CU_UNIT);
	for (; units[i].at; i++)
		units[i] = units[i + 1];
}

void cuda_use_module(struct be *be, struct cuda_module *m)
{
	if (be)
		cu_rooms_prefer(be);
	if (m->used)
		return;
	m->used = true;
	m->at[2] = take_for_module(m->other);
	m->at[0] = take_for_module(m->size[0]);
	m->at[1] = take_for_module(m->size[1]);
}

void cuda_end_module(struct cuda_module *m)
{
	if (!m->used)
		return;
	m->used = false;
	give_for_module(m->at[2], m->other);
	give_for_module(m->at[0], m->size[0]);
	give_for_module(m->at[1], m->size[1]);
}

int cu_module_unload_code(struct be *be, struct be_module *m)
{
	(void)be;
	if (cuda_call_fails() || !m->lib)
		return CUDA_BROKEN;
	cuda_end_module((struct cuda_module *)m->lib);
	return 0;
}

int cu_module_load_code(struct be *be, struct be_module *m)
{
	(void)be;
	assert_non_null(m->lib);
	return cuda_call_fails() ? CUDA_BROKEN : 0;
}

void cu_module_drop_image(struct be_module *m)
{
	free(m->wanted);
	m->wanted = NULL;
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t *lib, const void *code, enum cudaJitOption *options,
				void **values, unsigned int count, enum cudaLibraryOption *more,
				void **more_values, unsigned int more_count)
{
	const char *bytes = strchr(code, '[');
	struct cuda_module *m;

	(void)options;
	(void)values;
	(void)more;
	(void)more_values;
	assert_true(!count && !more_count && bytes);
	if (cuda_call_fails())
		return (cudaError_t)CUDA_BROKEN;
	m = calloc(1, sizeof(*m));
	assert_non_null(m);
	m->size[0] = strtoull(bytes + 1, NULL, 10);
	assert_true(m->size[0] && m->size[0] <= CU_UNIT && m->size[0] % CU_GRAIN == 0);
	*lib = (cudaLibrary_t)m;
	return cudaSuccess;
}

cudaError_t cudaLibraryGetGlobal(void **p, size_t *size, cudaLibrary_t lib, const char *name)
{
	struct cuda_module *m = (struct cuda_module *)lib;

	assert_string_equal(name, "filler");
	if (cuda_call_fails())
		return (cudaError_t)CUDA_BROKEN;
	cuda_use_module(NULL, m);
	*p = (void *)(uintptr_t)m->at[0];
	*size = m->size[0];
	return cudaSuccess;
}

cudaError_t cudaLibraryUnload(cudaLibrary_t lib)
{
	cuda_end_module((struct cuda_module *)lib);
	free(lib);
	return cudaSuccess;
}

static int find_in_module(struct be *be, struct cuda_module *m, const char *name, uint64_t *addr,
			  uint64_t *size)
{
	const size_t i = (size_t)(name[0] - m->name);

	if (i > 1 || !m->size[i])
		return QCU_ERR_SymbolNotFound;
	cuda_use_module(be, m);
	*addr = m->at[i];
	*size = m->size[i];
	return QCU_ERR_Success;
}

int cu_var_find(struct be *be, unsigned int dev, struct be_module *m, const char *name,
		uint64_t *addr, uint64_t *size)
{
	const struct cuda_variable *v = cuda.variables;

	(void)dev;
	if (m->lib)
		return find_in_module(be, (struct cuda_module *)m->lib, name, addr, size);
	for (; v && v->name; v++) {
		*addr = v->addr;
		*size = v->size;
		if (!strcmp(v->name, name))
			return QCU_ERR_Success;
	}
	return QCU_ERR_SymbolNotFound;
}

void cuda_forget_modules(void)
{
	memset(units, 0, sizeof(units));
}

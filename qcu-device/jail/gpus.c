// SPDX-License-Identifier: GPL-2.0-or-later
/* GPUs that the operator chooses by their names (gpus.h). */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/jail/gpus.h"

#define PREFIX	   4u /* "GPU-", "MIG-" */
#define UUID_CHARS (GPU_NAME_BYTES - 1 - PREFIX)

static bool is_prefix(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, PREFIX);
}

bool gpus_are_names(const char *text)
{
	return is_prefix(text, "GPU-") || is_prefix(text, "MIG-");
}

/* The part of a name behind the prefix: 8-4-4-4-12 digits, as nvidia-smi prints them. */
static bool parse_uuid(const char *text, unsigned char uuid[16])
{
	unsigned int i, digits = 0;

	memset(uuid, 0, 16);
	for (i = 0; i < UUID_CHARS; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		const char *digit = strchr("0123456789abcdef", text[i]);

		if (!text[i] || (dash ? text[i] != '-' : !digit))
			return false;
		if (dash)
			continue;
		uuid[digits / 2] |=
			(unsigned char)((digit - "0123456789abcdef") << (digits % 2 ? 0 : 4));
		digits++;
	}
	return true;
}

const char *gpus_choose(struct jail_gpus *g, const char *text)
{
	const char *at = text;
	bool part;

	g->named = 0;
	g->part[0] = '\0';
	do {
		part = is_prefix(at, "MIG-");
		if (g->named == JAIL_GPUS)
			return "these are too many GPUs";
		if (!gpus_are_names(at) || !parse_uuid(at + PREFIX, g->chosen[g->named]))
			return "names as nvidia-smi -L prints them are wanted, GPU- or MIG- and 36 "
			       "characters";
		if (part)
			snprintf(g->part, sizeof(g->part), "%s", at);
		g->named++;
		if (g->named > 1 && g->part[0])
			return "CUDA uses only one part (MIG) of a GPU in a process, and no other "
			       "GPU beside it";
		at += GPU_NAME_BYTES - 1;
	} while (*at++ == ',');
	if (at[-1])
		return "names of GPUs are separated by commas";
	return setenv("CUDA_VISIBLE_DEVICES", text, 1) ? "there is no memory" : NULL;
}

const char *gpus_add_store(struct jail_gpus *g, const char *name)
{
	char text[JAIL_GPUS * GPU_NAME_BYTES + 1];
	const char *own = getenv("CUDA_VISIBLE_DEVICES"), *why;

	if (!g->named || !own)
		return "it needs --gpu soft, or the VM's GPUs by their names, --gpu GPU-...";
	if (strstr(own, name))
		return "this GPU is one of the VM's own";
	if (snprintf(text, sizeof(text), "%s,%s", own, name) >= (int)sizeof(text))
		return "these are too many GPUs";
	why = gpus_choose(g, text);
	if (!why && g->named > TURNS_GPUS)
		why = "the VM has too many GPUs for it";
	g->store = !why;
	return why;
}

const char *gpus_add_soft_store(struct jail_gpus *g, unsigned int soft, const char *name)
{
	char end;

	/* The first one is called soft. */
	if (sscanf(name, "soft%2u%c", &g->soft_store, &end) != 1 || g->soft_store >= TURNS_GPUS ||
	    name[4] < '1' || name[4] > '9')
		return "soft1 to soft15 are wanted";
	return g->soft_store < soft ? "this GPU is one of the VM's own" : NULL;
}

const char *gpus_check(const struct jail_gpus *g)
{
	unsigned int i, k;

	if (!g->named)
		return NULL;
	if (g->devices != g->named)
		return "CUDA has not found all of these GPUs";
	/* For a part CUDA may say the UUID of the whole GPU. */
	for (i = 0; i < g->named && !g->part[0]; i++) {
		for (k = 0; k < g->devices; k++)
			if (!memcmp(g->chosen[i], g->uuid[k], sizeof(g->uuid[k])))
				break;
		if (k == g->devices)
			return "CUDA has found other GPUs than these";
	}
	if (g->store && g->store_unreached)
		return "the others cannot use the memory of the last one, that of --swap-gpu: "
		       "there is "
		       "no access between them (nvidia-smi topo -p2p rw)";
	return NULL;
}

void gpus_name(const struct jail_gpus *g, unsigned int i, char *name, size_t size)
{
	const unsigned char *u = g->uuid[i];

	if (g->part[0]) {
		snprintf(name, size, "%s", g->part);
		return;
	}
	snprintf(name, size,
		 "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
		 u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
		 u[14], u[15]);
}

void gpus_name_numbers(const struct jail_gpus *g)
{
	char text[JAIL_GPUS * GPU_NAME_BYTES + 1];
	const char *own = getenv("CUDA_VISIBLE_DEVICES");
	unsigned int i;

	if (!own || !isdigit((unsigned char)*own) || !g->known)
		return;
	for (i = 0; i < g->devices; i++) {
		/* CUDA may say the UUID of the whole GPU. */
		if (g->split[i])
			return;
		gpus_name(g, i, text + i * GPU_NAME_BYTES, GPU_NAME_BYTES);
		text[(i + 1) * GPU_NAME_BYTES - 1] = i + 1 < g->devices ? ',' : '\0';
	}
	setenv("CUDA_VISIBLE_DEVICES", text, 1);
}

unsigned int gpus_for_keeper(const struct jail_gpus *g, unsigned int soft, uint64_t store,
			     struct keeper_gpu *gpu)
{
	unsigned int n = soft ? soft + !!store : g->devices, i, number;

	if (n > TURNS_GPUS)
		n = TURNS_GPUS;
	for (i = 0; i < n; i++) {
		number = store && i + 1 == n ? g->soft_store : i;
		if (soft)
			snprintf(gpu[i].name, KEEPER_GPU_NAME, number ? "soft%u" : "soft", number);
		else
			gpus_name(g, i, gpu[i].name, KEEPER_GPU_NAME);
		gpu[i].memory = soft ? 0 : g->memory[i];
		gpu[i].store = i + 1 == n ? store : 0;
	}
	return n;
}

void gpus_find_part(struct jail_gpus *g)
{
	int (*init)(void);
	int (*by_uuid)(const char *uuid, void **device);
	int (*instance)(void *device, unsigned int *id);
	int (*compute)(void *device, unsigned int *id);
	void *lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL), *device = NULL;

	if (!lib)
		return;
	*(void **)&init = dlsym(lib, "nvmlInit_v2");
	*(void **)&by_uuid = dlsym(lib, "nvmlDeviceGetHandleByUUID");
	*(void **)&instance = dlsym(lib, "nvmlDeviceGetGpuInstanceId");
	*(void **)&compute = dlsym(lib, "nvmlDeviceGetComputeInstanceId");
	g->part_known = init && by_uuid && instance && compute && !init() &&
			!by_uuid(g->part, &device) && !instance(device, &g->part_instance) &&
			!compute(device, &g->part_compute);
}

/* A line of the list is about a part (gpu0/gi1/access 30), or about work on all GPUs (config 1). */
static bool is_part_file(const struct jail_gpus *g, const char *name, unsigned int gpu)
{
	char of[32], own[64];
	int n = snprintf(of, sizeof(of), "gpu%u/gi", gpu);

	if (strncmp(name, of, (size_t)n) != 0 || !isdigit((unsigned char)name[n]))
		return false;
	if (!g->part_known)
		return true;
	snprintf(own, sizeof(own), "%s%u/access", of, g->part_instance);
	if (!strcmp(name, own))
		return true;
	snprintf(own, sizeof(own), "%s%u/ci%u/access", of, g->part_instance, g->part_compute);
	return !strcmp(name, own);
}

unsigned int gpus_part_files(const struct jail_gpus *g, const char *minors, unsigned int gpu,
			     unsigned int *minor, unsigned int room)
{
	FILE *f = fopen(minors, "re");
	char line[128], name[64];
	unsigned int n = 0;

	while (f && n < room && fgets(line, sizeof(line), f))
		n += sscanf(line, "%63s %u", name, &minor[n]) == 2 && is_part_file(g, name, gpu);
	if (f)
		fclose(f);
	return n;
}

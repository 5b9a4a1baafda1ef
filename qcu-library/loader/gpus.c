// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reads the headers of the fat binaries in a program: containers in a row, each with entries of
 * machine code or PTX. The code itself is not looked at.
 */
#include <stdio.h>
#include <string.h>

#include "qcu-library/loader/gpus.h"

#define MAGIC	     0xba55ed50u
#define CONTAINER    16u
#define ENTRY	     64u
#define KIND_PTX     1u
#define KIND_SM	     2u
#define FLAG_ONE_GPU 0x100000u
#define FLAG_FAMILY  0x200000u

static uint64_t read_header_number(const unsigned char *p, size_t bytes)
{
	uint64_t v = 0;

	memcpy(&v, p, bytes);
	return v;
}

static void add_gpu_once(struct qcul_gpus *g, struct qcul_gpu gpu)
{
	size_t i;

	for (i = 0; i < g->count; i++)
		if (g->gpu[i].kind == gpu.kind && g->gpu[i].arch == gpu.arch &&
		    g->gpu[i].suffix == gpu.suffix)
			return;
	if (g->count < QCUL_GPUS_MAX)
		g->gpu[g->count++] = gpu;
}

static void read_entries(const unsigned char *p, size_t size, struct qcul_gpus *g)
{
	while (size) {
		struct qcul_gpu gpu = {.kind = QCUL_GPU_OTHER};
		uint64_t head, payload, kind, flags;

		head = size < ENTRY ? 0 : read_header_number(p + 4, 4);
		if (head < ENTRY || head > size || read_header_number(p + 8, 8) > size - head) {
			g->damaged = true;
			return;
		}
		payload = read_header_number(p + 8, 8);
		kind = read_header_number(p, 2);
		flags = read_header_number(p + 40, 8);
		if (kind == KIND_PTX)
			gpu.kind = QCUL_GPU_PTX;
		else if (kind == KIND_SM)
			gpu.kind = QCUL_GPU_SM;
		gpu.arch = (unsigned int)read_header_number(p + 28, 4);
		if (flags & FLAG_ONE_GPU)
			gpu.suffix = 'a';
		else if (flags & FLAG_FAMILY)
			gpu.suffix = 'f';
		add_gpu_once(g, gpu);
		p += head + payload;
		size -= head + payload;
	}
}

void qcul_gpus_add(const void *fatbins, size_t size, struct qcul_gpus *g)
{
	const unsigned char *p = fatbins;

	while (size) {
		uint64_t head, payload;

		/* Containers begin at multiples of 8. Between them are zeros. */
		if (size >= 8 && !read_header_number(p, 8)) {
			p += 8;
			size -= 8;
			continue;
		}
		if (size < 8 && !read_header_number(p, size))
			return;
		head = size < CONTAINER || read_header_number(p, 4) != MAGIC
			       ? 0
			       : read_header_number(p + 6, 2);
		if (head < CONTAINER || head > size || read_header_number(p + 8, 8) > size - head) {
			g->damaged = true;
			return;
		}
		payload = read_header_number(p + 8, 8);
		read_entries(p + head, payload, g);
		p += head + payload;
		size -= head + payload;
	}
}

void qcul_gpus_text(const struct qcul_gpus *g, char *text, size_t size)
{
	static const char *const kind[] = {"sm_", "compute_", "other code for "};
	size_t i, used = 0;
	int n;

	text[0] = '\0';
	for (i = 0; i < g->count; i++) {
		const struct qcul_gpu *p = &g->gpu[i];

		n = snprintf(text + used, size - used, "%s%s%u%.1s%s", i ? ", " : "", kind[p->kind],
			     p->arch, &p->suffix, p->kind == QCUL_GPU_PTX ? " (PTX)" : "");
		if (n < 0 || (size_t)n >= size - used) {
			snprintf(text + used, size - used, "...");
			return;
		}
		used += (size_t)n;
	}
}

/* PTX can be compiled for newer GPUs. Machine code runs on GPUs of the same major number. */
static bool fits_gpu(const struct qcul_gpu *p, unsigned int sm, bool only_ptx)
{
	bool same = p->arch == sm, family = p->arch / 10 == sm / 10 && p->arch <= sm;

	if (p->kind == QCUL_GPU_OTHER || p->suffix == 'a')
		return p->kind == QCUL_GPU_OTHER ||
		       (same && (p->kind == QCUL_GPU_PTX || !only_ptx));
	if (p->kind == QCUL_GPU_SM)
		return family && !only_ptx;
	return p->suffix == 'f' ? family : p->arch <= sm;
}

bool qcul_gpus_fit(const struct qcul_gpus *g, unsigned int sm, bool only_ptx)
{
	size_t i;

	for (i = 0; i < g->count; i++)
		if (fits_gpu(&g->gpu[i], sm, only_ptx))
			return true;
	return false;
}

void qcul_gpus_read(const struct qcul_elf *e, struct qcul_gpus *g)
{
	/* The second one has the code of programs built with -rdc=true, before nvlink. */
	static const char *const names[] = {".nv_fatbin", "__nv_relfatbin"};
	struct qcul_elf_range part;
	size_t i;

	memset(g, 0, sizeof(*g));
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (qcul_elf_section(e, names[i], &part))
			qcul_gpus_add(e->data + part.offset, part.size, g);
}

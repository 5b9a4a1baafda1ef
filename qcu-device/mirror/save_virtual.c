// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Virtual memory of a session is written from what the mirror knows of it, not from commands that
 * were kept: memory lives as long as its number or a mapping, so a command that made it may have
 * been overtaken. Contents are read and written where the memory is mapped.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/commands/driver/virtual.h"
#include "qcu-device/mirror/save_virtual.h"

#define ACCESS_BOTH 3u

static const char no_memory[] = "there is no memory";

/* Mappings in the order of their memory, and of the places in it. The longest comes first. */
struct sorted_mappings {
	struct mir_area *all;
	size_t count;
};

struct numbered {
	struct handle *h;
	uint32_t id;
};

static int compare_mappings(const void *a, const void *b)
{
	const struct mir_area *x = a, *y = b;

	if (x->mem != y->mem)
		return (uintptr_t)x->mem < (uintptr_t)y->mem ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->size > y->size ? -1 : x->size < y->size;
}

static bool list_sorted_mappings(struct mirror *m, struct sorted_mappings *p)
{
	p->all = mir_virtual_list(m, true, &p->count);
	if (p->all && p->count)
		qsort(p->all, p->count, sizeof(*p->all), compare_mappings);
	return p->all;
}

/* The first device that may read the mapping, or m->devices. */
static unsigned int reader_of(const struct mirror *m, const struct mir_area *mapping)
{
	unsigned int dev;

	for (dev = 0; dev < m->devices && !mapping->access[dev]; dev++)
		continue;
	return dev;
}

static size_t first_mapping_of(const struct sorted_mappings *p, const struct handle *mem)
{
	size_t low = 0, high = p->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if ((uintptr_t)p->all[middle].mem < (uintptr_t)mem)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_mapped(const struct sorted_mappings *p, const struct handle *mem)
{
	const size_t i = first_mapping_of(p, mem);

	return i < p->count && p->all[i].mem == mem;
}

/* How far the memory is readable without a gap, by all of its mappings. */
static uint64_t readable_bytes(const struct mirror *m, const struct sorted_mappings *p,
			       const struct handle *mem)
{
	size_t i = first_mapping_of(p, mem);
	uint64_t end = 0;

	for (; i < p->count && p->all[i].mem == mem && p->all[i].offset <= end; i++)
		if (reader_of(m, &p->all[i]) < m->devices &&
		    p->all[i].offset + p->all[i].size > end)
			end = p->all[i].offset + p->all[i].size;
	return end;
}

static const char *check_mapped_memory(const struct mirror *m, const struct sorted_mappings *p,
				       const struct handle *mem)
{
	if (mem->shared || mem->imported)
		return "it shares memory that has no address of its own";
	if (mem->reached && readable_bytes(m, p, mem) < mem->bytes)
		return "it has memory without an address that no GPU may read";
	return NULL;
}

const char *save_virtual_check(struct mirror *m)
{
	struct sorted_mappings p;
	const char *why = NULL;
	struct handle *h;
	uint32_t id;
	size_t i;

	if (!list_sorted_mappings(m, &p))
		return no_memory;
	for (id = QCU_ID_FIRST; !why && (h = handles_next(&m->handles, HANDLE_PHYS, &id)); id++) {
		why = check_mapped_memory(m, &p, h);
		handles_put(&m->handles, h);
	}
	for (i = 0; i < p.count && !why; i++)
		if (!i || p.all[i].mem != p.all[i - 1].mem)
			why = check_mapped_memory(m, &p, p.all[i].mem);
	free(p.all);
	return why;
}

bool save_virtual_addresses(struct mirror *m, const struct save_out *out)
{
	struct qCUcmd cmd = {.op = QCU_OP_VA_RESERVE};
	struct be_wanted wanted = {0};
	size_t count, i;
	struct mir_area *all = mir_virtual_list(m, false, &count);
	bool ok = all;

	for (i = 0; i < count && ok; i++) {
		wanted.addr = all[i].addr;
		wanted.size = all[i].size;
		cmd.va_reserve = (struct qcu_va_reserve){.size = all[i].size, .addr = all[i].addr};
		ok = out->command(out->arg, &cmd, &wanted);
	}
	free(all);
	return ok;
}

static bool write_access(const struct save_out *out, const struct mir_area *mapping,
			 unsigned int dev, uint32_t flags)
{
	struct qCUcmd cmd = {.op = QCU_OP_PHYS_ACCESS_SET, .device = (uint8_t)mapping->mem->device};

	cmd.phys_access_set = (struct qcu_phys_access_set){
		.addr = mapping->addr, .size = mapping->size, .peer = dev, .flags = flags};
	return out->command(out->arg, &cmd, NULL);
}

/* The mapping, and what it has beyond *end of the memory. */
static bool write_mapping(struct mirror *m, const struct save_out *out,
			  const struct mir_area *mapping, uint32_t id, uint64_t *end)
{
	const unsigned int reader = reader_of(m, mapping);
	struct qCUcmd cmd = {.op = QCU_OP_PHYS_MAP, .device = (uint8_t)mapping->mem->device};
	uint64_t skip = *end > mapping->offset ? *end - mapping->offset : 0;
	struct be_wanted memory = {.dev = reader};
	unsigned int dev;
	bool ok;

	cmd.phys_map = (struct qcu_phys_map){
		.addr = mapping->addr, .size = mapping->size, .offset = mapping->offset, .mem = id};
	ok = out->command(out->arg, &cmd, NULL);
	if (reader < m->devices && skip < mapping->size) {
		memory.addr = mapping->addr + skip;
		memory.size = mapping->size - skip;
		*end = mapping->offset + mapping->size;
		ok = ok && write_access(out, mapping, reader, ACCESS_BOTH) &&
		     out->contents(out->arg, &memory);
	}
	for (dev = reader; dev < m->devices && ok; dev++)
		if (mapping->access[dev])
			ok = write_access(out, mapping, dev, mapping->access[dev]);
	return ok;
}

static bool write_create(const struct save_out *out, const struct handle *mem, uint32_t id)
{
	struct qCUcmd cmd = {.op = QCU_OP_PHYS_CREATE, .device = (uint8_t)mem->device};

	cmd.phys_create = (struct qcu_phys_create){
		.size = mem->bytes, .mem = id, .flags = mem->shareable ? QCU_PHYS_SHAREABLE : 0};
	return out->command(out->arg, &cmd, NULL);
}

/* Only its mappings have it. */
static bool write_release(const struct save_out *out, const struct handle *mem, uint32_t id)
{
	struct qCUcmd cmd = {.op = QCU_OP_PHYS_RELEASE, .device = (uint8_t)mem->device};

	cmd.phys_release.mem = id;
	return out->command(out->arg, &cmd, NULL);
}

static int compare_numbered(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;

	return (uintptr_t)x->h < (uintptr_t)y->h ? -1 : (uintptr_t)x->h > (uintptr_t)y->h;
}

/* Which number each memory has, for the caller to free. */
static struct numbered *list_numbers(struct mirror *m, size_t *count)
{
	struct numbered *all = NULL, *more;
	struct handle *h;
	uint32_t id;

	*count = 0;
	for (id = QCU_ID_FIRST; (h = handles_next(&m->handles, HANDLE_PHYS, &id)); id++) {
		handles_put(&m->handles, h);
		more = realloc(all, (*count + 2) * sizeof(*all));
		if (!more) {
			free(all);
			return NULL;
		}
		all = more;
		all[(*count)++] = (struct numbered){h, id};
	}
	if (*count)
		qsort(all, *count, sizeof(*all), compare_numbered);
	return all ? all : calloc(1, sizeof(*all));
}

/* A number that nobody has: it is free again at once. */
static uint32_t free_number(struct mirror *m)
{
	uint32_t id = QCU_ID_MAX;

	while (!handles_free(&m->handles, HANDLE_PHYS, id))
		id--;
	return id;
}

bool save_virtual_memory(struct mirror *m, const struct save_out *out)
{
	size_t count, i;
	struct numbered *numbers = list_numbers(m, &count);
	const uint32_t spare = free_number(m);
	const struct numbered *found = NULL;
	struct sorted_mappings p = {0};
	uint64_t end = 0;
	bool ok = numbers && list_sorted_mappings(m, &p);

	for (i = 0; i < count && ok; i++)
		if (!is_mapped(&p, numbers[i].h))
			ok = write_create(out, numbers[i].h, numbers[i].id);
	for (i = 0; i < p.count && ok; i++) {
		const struct mir_area *mapping = &p.all[i];
		const struct numbered key = {.h = mapping->mem};

		if (!i || mapping->mem != p.all[i - 1].mem) {
			found = bsearch(&key, numbers, count, sizeof(key), compare_numbered);
			ok = write_create(out, mapping->mem, found ? found->id : spare);
			end = 0;
		}
		ok = ok && write_mapping(m, out, mapping, found ? found->id : spare, &end);
		if (ok && !found && (i + 1 == p.count || p.all[i + 1].mem != mapping->mem))
			ok = write_release(out, mapping->mem, spare);
	}
	free(numbers);
	free(p.all);
	return ok;
}

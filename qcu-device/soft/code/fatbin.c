/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads fat binaries: the containers in which nvcc stores the device code of a program. The device
 * code is PTX and machine code for several GPUs, compressed or not. All of it comes from the guest,
 * so every size and offset is checked against the length of the image before it is used.
 *
 * A container is a header followed by entries. A program that was built with -rdc=true has several
 * containers in a row, one for each translation unit.
 */
#define _GNU_SOURCE /* memmem */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lz4.h>
#include <zstd.h>

#include "qcu-device/backend/image.h"
#include "qcu-device/backend/ptx_text.h"
#include "qcu-device/soft/code/code.h"

#define CONTAINER_MAGIC	  0xba55ed50u
#define CONTAINER_VERSION 1u
#define TEXT_MAX	  (256u << 20)
#define UNITS_MAX	  4096u

struct container_header {
	uint32_t magic;
	uint16_t version;
	uint16_t header_size;
	uint64_t payload_size; /* of all entries */
};
_Static_assert(sizeof(struct container_header) == 16, "container header");

enum { KIND_PTX = 1 };

#define ENTRY_LZ4	0x2000ull
#define ENTRY_ZSTD	0x8000ull
#define ENTRY_ARCH_ONLY 0x100000ull /* compute_XYa: that GPU and no other */
#define ENTRY_FAMILY	0x200000ull /* compute_XYf: that GPU and later ones of its family */

/* The fields that this file needs. The real header may be longer; header_size is its length. */
struct entry_header {
	uint16_t kind;
	uint16_t version;
	uint32_t header_size;
	uint64_t payload_size;	  /* padded to 8 bytes */
	uint32_t compressed_size; /* without the padding; 0: not compressed */
	uint32_t options_offset;
	uint16_t isa_minor, isa_major;
	uint32_t arch; /* 10 * major + minor */
	uint32_t name_offset, name_size;
	uint64_t flags;
	uint64_t rsvd;
	uint64_t text_size; /* the size after unpacking */
};
_Static_assert(sizeof(struct entry_header) == 64, "entry header");

/* The best entry found in a container so far, and what else was seen. */
struct choice {
	const unsigned char *payload; /* NULL: no entry that this device can run */
	struct entry_header entry;
	unsigned int lowest_ptx; /* the lowest PTX entry that the device cannot run; 0: none */
	unsigned int other;	 /* entries that are not PTX */
};

static const char *const damaged = "the fat binary is damaged";

static int reject_image(char *why, size_t why_size, const char *text)
{
	snprintf(why, why_size, "%s", text);
	return QCU_ERR_InvalidKernelImage;
}

static bool runs_on(const struct entry_header *e, unsigned int sm)
{
	if (e->flags & ENTRY_ARCH_ONLY)
		return e->arch == sm;
	if (e->flags & ENTRY_FAMILY && e->arch / 10 != sm / 10)
		return false;
	return e->arch <= sm;
}

static void consider(struct choice *c, const struct entry_header *e, const unsigned char *payload,
		     unsigned int sm)
{
	if (e->kind != KIND_PTX) {
		c->other++;
	} else if (!runs_on(e, sm)) {
		if (!c->lowest_ptx || e->arch < c->lowest_ptx)
			c->lowest_ptx = e->arch;
	} else if (!c->payload || e->arch > c->entry.arch) {
		c->payload = payload;
		c->entry = *e;
	}
}

/* Reads the entries of one container: exactly `len` bytes at p, after its header. */
static bool read_container(const unsigned char *p, size_t len, unsigned int sm, struct choice *c)
{
	struct entry_header e;

	while (len) {
		if (len < sizeof(e))
			return false;
		memcpy(&e, p, sizeof(e));
		if (e.header_size < sizeof(e) || e.header_size > len ||
		    e.payload_size > len - e.header_size || e.compressed_size > e.payload_size)
			return false;
		consider(c, &e, p + e.header_size, sm);
		p += e.header_size + e.payload_size;
		len -= e.header_size + e.payload_size;
	}
	return true;
}

static bool unpack_ptx_text(const struct choice *c, char *to, size_t size)
{
	size_t from_size =
		c->entry.compressed_size ? c->entry.compressed_size : c->entry.payload_size;
	size_t got;
	int n;

	if (c->entry.flags & ENTRY_ZSTD) {
		got = ZSTD_decompress(to, size, c->payload, from_size);
		return !ZSTD_isError(got) && got == size;
	}
	if (from_size > LZ4_MAX_INPUT_SIZE)
		return false;
	n = LZ4_decompress_safe((const char *)c->payload, to, (int)from_size, (int)size);
	return n >= 0 && (size_t)n == size;
}

/*
 * Returns N of the option -maxrregcount=N, or 0 if it is not given. The header of an entry holds
 * the options for ptxas: at options_offset are the offset and the length of the option text, 32
 * bits each. No other option matters here.
 */
static unsigned int max_regs(const struct choice *c)
{
	static const char name[] = "maxrregcount";
	const unsigned char *head = c->payload - c->entry.header_size, *at;
	uint32_t text[2], size = c->entry.header_size;
	unsigned int n = 0;
	size_t left;

	if (c->entry.options_offset > size || size - c->entry.options_offset < sizeof(text))
		return 0;
	memcpy(text, head + c->entry.options_offset, sizeof(text));
	if (text[0] > size || text[1] > size - text[0])
		return 0;
	at = memmem(head + text[0], text[1], name, sizeof(name) - 1);
	if (!at)
		return 0;
	left = (size_t)(head + text[0] + text[1] - at) - (sizeof(name) - 1);
	for (at += sizeof(name) - 1; left && (*at == '=' || *at == ' '); left--)
		at++;
	for (; left && isdigit(*at) && n < 1000; left--)
		n = n * 10 + (unsigned int)(*at++ - '0');
	return n;
}

static int add_unit(struct soft_units *units, char *text, size_t len, unsigned int arch)
{
	struct soft_unit *more = realloc(units->unit, (units->count + 1) * sizeof(*units->unit));

	if (!more)
		return QCU_ERR_MemoryAllocation;
	units->unit = more;
	more[units->count++] = (struct soft_unit){.text = text, .len = len, .arch = arch};
	return 0;
}

static int take_text(const struct choice *c, struct soft_units *units, char *why, size_t why_size)
{
	const uint64_t packed = ENTRY_LZ4 | ENTRY_ZSTD;
	uint64_t size = c->entry.flags & packed ? c->entry.text_size : c->entry.payload_size;
	uint64_t room = TEXT_MAX;
	char *text;
	size_t i;
	int err;

	if ((c->entry.flags & packed) == packed)
		return reject_image(why, why_size, damaged);
	for (i = 0; i < units->count; i++)
		room -= units->unit[i].len;
	if (size > room)
		return reject_image(why, why_size,
				    "the PTX in the fat binary is larger than 256 MiB");
	text = malloc(size + 1);
	if (!text)
		return QCU_ERR_MemoryAllocation;
	if (!(c->entry.flags & packed)) {
		memcpy(text, c->payload, size);
	} else if (!unpack_ptx_text(c, text, size)) {
		free(text);
		return reject_image(why, why_size, "the PTX in the fat binary does not unpack");
	}
	text[size] = '\0';
	if (image_ptx_fault(text, size)) {
		free(text);
		return reject_image(why, why_size, "the PTX in the fat binary is damaged");
	}
	err = add_unit(units, text, strlen(text), c->entry.arch);
	if (err)
		free(text);
	else
		units->unit[units->count - 1].max_regs = max_regs(c);
	return err;
}

static bool is_only_zeros(const unsigned char *p, size_t len)
{
	while (len && !*p) {
		p++;
		len--;
	}
	return !len;
}

static int nothing_to_run(const struct choice *seen, unsigned int sm, char *why, size_t why_size)
{
	if (seen->lowest_ptx)
		snprintf(why, why_size,
			 "the program has PTX only for compute_%u, and this device has compute "
			 "capability %u.%u: compile with -arch=compute_%u, or set QCU_SOFT_SM=%u",
			 seen->lowest_ptx, sm / 10, sm % 10, sm, seen->lowest_ptx);
	else
		snprintf(why, why_size,
			 "the program has no PTX%s: compile with -arch=compute_%u or -gencode "
			 "arch=compute_%u,code=compute_%u",
			 seen->other ? ", only machine code of a GPU" : "", sm, sm, sm);
	return QCU_ERR_NoKernelImageForDevice;
}

static int read_containers(const unsigned char *p, size_t len, unsigned int sm,
			   struct soft_units *units, char *why, size_t why_size)
{
	struct choice seen = {0};
	struct container_header h;
	int err;

	while (!is_only_zeros(p, len)) {
		struct choice c = {0};

		if (len < sizeof(h))
			return reject_image(why, why_size, damaged);
		memcpy(&h, p, sizeof(h));
		if (h.magic != CONTAINER_MAGIC || h.version != CONTAINER_VERSION ||
		    h.header_size < sizeof(h) || h.header_size > len ||
		    h.payload_size > len - h.header_size)
			return reject_image(why, why_size, damaged);
		if (!read_container(p + h.header_size, h.payload_size, sm, &c))
			return reject_image(why, why_size, damaged);
		if (c.payload && units->count == UNITS_MAX)
			return reject_image(why, why_size, "the fat binary has too many parts");
		if (c.payload) {
			err = take_text(&c, units, why, why_size);
			if (err)
				return err;
		}
		if (c.lowest_ptx && (!seen.lowest_ptx || c.lowest_ptx < seen.lowest_ptx))
			seen.lowest_ptx = c.lowest_ptx;
		seen.other += c.other;
		p += h.header_size + h.payload_size;
		len -= h.header_size + h.payload_size;
	}
	return units->count ? 0 : nothing_to_run(&seen, sm, why, why_size);
}

/* Returns the number in ".target sm_XY", or 0 if there is none. */
static unsigned int target_of(const char *text)
{
	const char *t = strstr(text, ".target");
	unsigned int n = 0, digits = 0;

	if (!t)
		return 0;
	t += strcspn(t, "\n0123456789");
	while (isdigit((unsigned char)*t) && digits++ < 4)
		n = n * 10 + (unsigned int)(*t++ - '0');
	return n;
}

static int read_text(const void *image, size_t len, unsigned int sm, struct soft_units *units,
		     char *why, size_t why_size)
{
	char *text;
	int err;

	if (len > TEXT_MAX)
		return reject_image(why, why_size, "the image is larger than 256 MiB");
	text = malloc(len + 1);
	if (!text)
		return QCU_ERR_MemoryAllocation;
	memcpy(text, image, len);
	text[len] = '\0';
	if (!ptx_text_begins(text)) {
		err = reject_image(why, why_size, "the image is neither a fat binary nor PTX");
	} else if (target_of(text) > sm) {
		struct choice seen = {.lowest_ptx = target_of(text)};

		err = nothing_to_run(&seen, sm, why, why_size);
	} else {
		err = add_unit(units, text, strlen(text), target_of(text));
	}
	if (err)
		free(text);
	return err;
}

int soft_fatbin_read(const void *image, size_t len, unsigned int sm, struct soft_units *units,
		     char *why, size_t why_size)
{
	const struct choice machine_code = {.other = 1};
	uint32_t magic = 0;
	int err;

	*units = (struct soft_units){0};
	if (why_size)
		*why = '\0';
	if (len >= sizeof(magic))
		memcpy(&magic, image, sizeof(magic));
	if (magic == CONTAINER_MAGIC)
		err = read_containers(image, len, sm, units, why, why_size);
	else if (len >= 4 && !memcmp(image, "\177ELF", 4))
		err = nothing_to_run(&machine_code, sm, why, why_size);
	else
		err = read_text(image, len, sm, units, why, why_size);
	if (err)
		soft_units_free(units);
	return err;
}

void soft_units_free(struct soft_units *units)
{
	size_t i;

	for (i = 0; i < units->count; i++)
		free(units->unit[i].text);
	free(units->unit);
	*units = (struct soft_units){0};
}

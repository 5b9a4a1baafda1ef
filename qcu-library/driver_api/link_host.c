// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Device code in the host's object files and archives. A link gets the fat binaries in them, one by
 * one. The mirror checks these like all others, so that no file of the host's format goes to a GPU
 * driver. The files may be anyone's: each number in them is checked before it is used.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/driver_api/link_host.h"
#include "qcu-library/loader/elf.h"

#define FATBIN_MAGIC 0xba55ed50u

struct fatbin_head {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t payload_size;
};
_Static_assert(sizeof(struct fatbin_head) == 16, "the head of a fat binary");

/* One after the other, with zeros in between. */
static cudaError_t add_fatbins(const unsigned char *p, size_t left,
			       const struct qcul_fatbin_sink *to, size_t *found)
{
	cudaError_t err = cudaSuccess;
	struct fatbin_head h;
	size_t size;

	for (; !err && left; p += size, left -= size) {
		size = 1;
		if (!*p)
			continue;
		if (left < sizeof(h))
			return cudaErrorInvalidKernelImage;
		memcpy(&h, p, sizeof(h));
		if (h.magic != FATBIN_MAGIC || h.header_size < sizeof(h) || h.header_size > left ||
		    h.payload_size > left - h.header_size)
			return cudaErrorInvalidKernelImage;
		size = h.header_size + h.payload_size;
		++*found;
		err = to->add(to->ctx, p, size);
	}
	return err;
}

static cudaError_t add_sections(const struct qcul_elf *e, const struct qcul_fatbin_sink *to,
				size_t *found)
{
	/* Device code that is linked by itself, and other code. */
	static const char *const names[] = {"__nv_relfatbin", ".nv_fatbin"};
	cudaError_t err = cudaSuccess;
	struct qcul_elf_range part;
	size_t i, at, left = e->size;

	for (i = 0; i < sizeof(names) / sizeof(names[0]) && !err; i++)
		for (at = 0; !err && qcul_elf_next_section(e, names[i], &at, &part);) {
			/* Sections that lie in one another would be sent again and again. */
			if (part.size > left)
				return cudaErrorInvalidKernelImage;
			left -= part.size;
			err = add_fatbins(e->data + part.offset, part.size, to, found);
		}
	return err;
}

cudaError_t qcul_host_object(const void *data, size_t size, const struct qcul_fatbin_sink *to)
{
	size_t found = 0;
	struct qcul_elf e;
	cudaError_t err;

	if (qcul_elf_open_object(&e, data, size))
		return cudaErrorInvalidKernelImage;
	err = add_sections(&e, to, &found);
	return err || found ? err : cudaErrorInvalidKernelImage;
}

/* ---- archives ---- */

static const char archive_magic[8] = "!<arch>\n";

struct member {
	char name[16], date[12], uid[6], gid[6], mode[8], size[10], end[2];
};
_Static_assert(sizeof(struct member) == 60, "the head of a file in an archive");

/* A decimal number, filled up with spaces. */
static bool read_size(const char text[10], size_t *size)
{
	size_t i;

	*size = 0;
	for (i = 0; i < 10 && text[i] >= '0' && text[i] <= '9'; i++)
		*size = *size * 10 + (size_t)(text[i] - '0');
	if (!i)
		return false;
	while (i < 10 && text[i] == ' ')
		i++;
	return i == 10;
}

/* Files in it that are no object files, such as its list of symbols, are passed over. */
cudaError_t qcul_host_library(const void *data, size_t size, const struct qcul_fatbin_sink *to)
{
	const unsigned char *p = data;
	size_t at = sizeof(archive_magic), len, found = 0;
	cudaError_t err = cudaSuccess;
	struct qcul_elf e;
	struct member m;

	if (size < at || memcmp(p, archive_magic, at) != 0)
		return cudaErrorInvalidKernelImage;
	while (!err && at < size) {
		if (size - at < sizeof(m))
			return cudaErrorInvalidKernelImage;
		memcpy(&m, p + at, sizeof(m));
		at += sizeof(m);
		if (memcmp(m.end, "`\n", 2) != 0 || !read_size(m.size, &len) || len > size - at)
			return cudaErrorInvalidKernelImage;
		if (!qcul_elf_open_object(&e, p + at, len))
			err = add_sections(&e, to, &found);
		at += len + (len & 1 && len < size - at);
	}
	return err || found ? err : cudaErrorInvalidKernelImage;
}

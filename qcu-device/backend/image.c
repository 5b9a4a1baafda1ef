// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks images of device code, from the outside in: the kind of image, the containers and entries
 * of fat binaries, and PTX. image_elf.c checks machine code.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <lz4.h>
#include <zstd.h>

#include "include/qcuerror.h"
#include "qcu-device/backend/image.h"
#include "qcu-device/backend/ptx_text.h"
#include "qcu-device/base/zero.h"

#define CONTAINER_MAGIC	  0xba55ed50u
#define CONTAINER_VERSION 1u
/* The first word of a structure that has pointers to images. */
#define WRAPPER_MAGIC 0x466243b1u

struct container_header {
	uint32_t magic;
	uint16_t version;
	uint16_t header_size;
	uint64_t payload_size; /* of all entries */
};
_Static_assert(sizeof(struct container_header) == 16, "container header");

enum {
	KIND_PTX = 1,
	KIND_ELF = 2,
	KIND_LINKER = 8, /* code between source and PTX, for optimising at link time */
};

#define ENTRY_VERSION	0x101u
#define ENTRY_LZ4	0x2000ull
#define ENTRY_ZSTD	0x8000ull
#define ENTRY_ENCRYPTED 0x10000ull /* always set for the linker's code */

struct entry_header {
	uint16_t kind;
	uint16_t version;
	uint32_t header_size;
	uint64_t payload_size;
	uint32_t packed_size; /* 0: not packed */
	uint32_t options_offset;
	uint16_t isa_minor, isa_major;
	uint32_t arch;
	uint32_t name_offset, name_size;
	uint64_t flags;
	uint64_t rsvd;
	uint64_t unpacked_size;
};
_Static_assert(sizeof(struct entry_header) == 64, "entry header");

/*
 * A walk through a fat binary. The first walk checks only sizes; the second looks inside the
 * entries.
 */
struct walk {
	bool inside;
	size_t unpacked; /* bytes, as the entries declare */
	uint64_t memory; /* of variables: of the fat binaries so far, */
	uint64_t entry;	 /* and of the largest entry of this one */
	bool no_memory;
	struct image_names *names; /* NULL: they are not wanted */
};

/*
 * Only one entry is unpacked at a time. This limits how much memory all lanes together use for it.
 */
static pthread_mutex_t unpack_lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t first_word_of(const unsigned char *p, size_t len)
{
	uint32_t word = 0;

	if (len >= sizeof(word))
		memcpy(&word, p, sizeof(word));
	return word;
}

const char *image_ptx_fault(const void *image, size_t len)
{
	const unsigned char *text = image;
	size_t n = strnlen(image, len);

	if (n == len)
		return "it is no fat binary and no machine code, and no zero byte ends it as PTX";
	if (!is_all_zero(text + n, len - n))
		return "PTX has a zero byte in it";
	if (!ptx_text_begins(image))
		return "it is neither a fat binary, nor machine code, nor PTX";
	return NULL;
}

/* ---- fat binaries ---- */

static const char *unpack_entry(const struct entry_header *e, const unsigned char *payload,
				unsigned char *to)
{
	size_t size = e->unpacked_size, got;
	int n;

	if (e->flags & ENTRY_ZSTD) {
		got = ZSTD_decompress(to, size, payload, e->packed_size);
		if (!ZSTD_isError(got) && got == size)
			return NULL;
	} else if (e->packed_size <= LZ4_MAX_INPUT_SIZE) {
		n = LZ4_decompress_safe((const char *)payload, (char *)to, (int)e->packed_size,
					(int)size);
		if (n >= 0 && (size_t)n == size)
			return NULL;
	}
	return "an entry of the fat binary does not unpack";
}

static const char *code_fault(unsigned int kind, const void *code, size_t len, uint64_t *memory,
			      struct image_names *names)
{
	const char *why =
		kind == KIND_PTX ? image_ptx_fault(code, len) : image_elf_fault(code, len);
	uint64_t bytes;

	if (why)
		return why;
	bytes = kind == KIND_PTX ? image_ptx_memory(code) : image_elf_memory(code, len);
	if (bytes > *memory)
		*memory = bytes;
	if (names && kind == KIND_PTX)
		image_ptx_names(code, names);
	else if (names)
		image_elf_names(code, len, names);
	return NULL;
}

static const char *packed_fault(const struct entry_header *e, const unsigned char *payload,
				struct walk *w)
{
	unsigned char *code;
	const char *why;

	if (!w->inside) {
		if (!e->unpacked_size || e->unpacked_size > IMAGE_ENTRY_MAX ||
		    e->unpacked_size > IMAGE_UNPACKED_MAX - w->unpacked)
			return "the fat binary unpacks to more than it may";
		w->unpacked += e->unpacked_size;
		return NULL;
	}
	pthread_mutex_lock(&unpack_lock);
	code = malloc(e->unpacked_size);
	if (code) {
		why = unpack_entry(e, payload, code);
		if (!why)
			why = code_fault(e->kind, code, e->unpacked_size, &w->entry, w->names);
	} else {
		w->no_memory = true;
		why = "there is no memory to unpack it";
	}
	free(code);
	pthread_mutex_unlock(&unpack_lock);
	return why;
}

/* An entry's options are a text. Its offset and length are stored at options_offset. */
static bool options_fit(const unsigned char *head, const struct entry_header *e)
{
	uint32_t text[2];

	if (!e->options_offset)
		return true;
	if (e->options_offset > e->header_size || e->header_size - e->options_offset < sizeof(text))
		return false;
	memcpy(text, head + e->options_offset, sizeof(text));
	return text[0] <= e->header_size && text[1] <= e->header_size - text[0];
}

static const char *header_fault(const unsigned char *head, size_t len, struct entry_header *e)
{
	if (len < sizeof(*e))
		return "the fat binary is damaged: an entry is cut short";
	memcpy(e, head, sizeof(*e));
	if (e->version != ENTRY_VERSION)
		return "the fat binary is damaged: an entry has an unknown version";
	if (e->header_size < sizeof(*e) || e->header_size > len ||
	    e->payload_size > len - e->header_size || e->packed_size > e->payload_size)
		return "the fat binary is damaged: an entry is longer than the rest";
	if (!options_fit(head, e))
		return "the fat binary is damaged: options lie outside of their entry";
	if (e->name_size &&
	    (e->name_offset > e->header_size || e->name_size > e->header_size - e->name_offset))
		return "the fat binary is damaged: a name lies outside of its entry";
	return NULL;
}

static const char *payload_fault(const struct entry_header *e, const unsigned char *payload,
				 struct walk *w)
{
	uint64_t how = e->flags & (ENTRY_LZ4 | ENTRY_ZSTD);

	if (e->kind == KIND_LINKER) {
		/* The content cannot be read here, so only sizes are checked. */
		return e->unpacked_size > IMAGE_ENTRY_MAX
			       ? "the fat binary unpacks to more than it may"
			       : NULL;
	}
	if (e->kind != KIND_PTX && e->kind != KIND_ELF)
		return "the fat binary has an entry of an unknown kind";
	if (e->flags & ENTRY_ENCRYPTED)
		return "the fat binary has an entry that cannot be read";
	if (!how && !e->packed_size)
		return w->inside
			       ? code_fault(e->kind, payload, e->payload_size, &w->entry, w->names)
			       : NULL;
	if (how == (ENTRY_LZ4 | ENTRY_ZSTD) || !how || !e->packed_size)
		return "the fat binary is damaged: it is not clear how an entry is packed";
	return packed_fault(e, payload, w);
}

static const char *container_fault(const unsigned char *p, size_t len, struct walk *w)
{
	struct entry_header e;
	const char *why;

	while (len) {
		why = header_fault(p, len, &e);
		if (!why)
			why = payload_fault(&e, p + e.header_size, w);
		if (why)
			return why;
		p += e.header_size + e.payload_size;
		len -= e.header_size + e.payload_size;
	}
	return NULL;
}

static const char *fatbin_fault(const unsigned char *p, size_t len, struct walk *w)
{
	struct container_header h;
	const char *why;

	while (!is_all_zero(p, len)) {
		if (len < sizeof(h))
			return "the fat binary is damaged: it is cut short";
		memcpy(&h, p, sizeof(h));
		if (h.magic != CONTAINER_MAGIC)
			return "the fat binary is damaged: there is something else behind it";
		if (h.version != CONTAINER_VERSION)
			return "the fat binary is damaged: it has an unknown version";
		if (h.header_size < sizeof(h) || h.header_size > len ||
		    h.payload_size > len - h.header_size)
			return "the fat binary is damaged: it is longer than the image";
		w->entry = 0;
		why = container_fault(p + h.header_size, h.payload_size, w);
		if (why)
			return why;
		w->memory = image_add(w->memory, w->entry);
		p += h.header_size + h.payload_size;
		len -= h.header_size + h.payload_size;
	}
	return NULL;
}

int image_check(const void *image, size_t len, const char **why)
{
	uint64_t memory;

	return image_measure(image, len, why, &memory);
}

static int walk_image(const void *image, size_t len, const char **why, struct walk *w)
{
	uint32_t magic = first_word_of(image, len);

	if (magic == WRAPPER_MAGIC)
		*why = "it names an image by a pointer";
	else if (magic == CONTAINER_MAGIC)
		*why = fatbin_fault(image, len, w);
	else
		*why = code_fault(len >= 4 && !memcmp(image, "\177ELF", 4) ? KIND_ELF : KIND_PTX,
				  image, len, &w->memory, w->names);
	if (!*why && magic == CONTAINER_MAGIC) {
		w->inside = true;
		*why = fatbin_fault(image, len, w);
	}
	if (!*why)
		return QCU_ERR_Success;
	return w->no_memory ? QCU_ERR_MemoryAllocation : QCU_ERR_InvalidKernelImage;
}

int image_measure(const void *image, size_t len, const char **why, uint64_t *memory)
{
	struct walk w = {.inside = false};
	int ret;

	*why = NULL;
	ret = walk_image(image, len, why, &w);
	*memory = w.memory;
	return ret;
}

int image_names(const void *image, size_t len, struct image_names *names)
{
	struct walk w = {.names = names};
	const char *why = NULL;
	int ret;

	*names = (struct image_names){0};
	ret = walk_image(image, len, &why, &w);
	if (!ret && names->no_memory)
		ret = QCU_ERR_MemoryAllocation;
	image_names_sort(names);
	return ret;
}

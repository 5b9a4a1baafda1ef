// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes seeds for the fuzzers from nvcc's output. The program reads fat binaries (the section
 * .nv_fatbin of a program). It writes their PTX kernel by kernel, because a fuzzer works best with
 * small inputs. It also writes machine code that is small and not packed.
 *
 *   seeds FOLDER FATBIN...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/code/code.h"

#define SEED_BYTES_MAX 12288u

static const char *folder;
static unsigned int written;

static char *slurp(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	char *p = NULL;
	long size;

	if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0)
		goto out;
	rewind(f);
	p = malloc((size_t)size + 1);
	*len = p ? fread(p, 1, (size_t)size, f) : 0;
out:
	if (f)
		fclose(f);
	return p;
}

static void put_seed(const char *name, unsigned int i, const char *kind, const char *head,
		     size_t head_len, const char *text, size_t len)
{
	char path[4096];
	FILE *f;

	if (head_len + len > SEED_BYTES_MAX)
		return;
	snprintf(path, sizeof(path), "%s/%s-%u.%s", folder, name, i, kind);
	f = fopen(path, "wb");
	if (!f || fwrite(head, 1, head_len, f) != head_len || fwrite(text, 1, len, f) != len ||
	    fclose(f)) {
		perror(path);
		exit(1);
	}
	written++;
}

/*
 * Returns the end of an item of the outer level: behind its ';', or behind the brace that closes
 * its body.
 */
static size_t item_end(const char *s, size_t at)
{
	unsigned int depth = 0;

	for (; s[at]; at++) {
		if (s[at] == '{')
			depth++;
		else if (s[at] == '}' && depth && !--depth && s[at + 1] != ';')
			return at + 1;
		else if (s[at] == ';' && !depth)
			return at + 1;
	}
	return at;
}

/* Debug sections are most of the text, and of no use here. */
static bool is_section(const char *s)
{
	return !strncmp(s + strspn(s, " \t\n"), ".section", 8);
}

/* Everything that is not a kernel goes before each kernel. */
static void split(const char *name, const char *text)
{
	size_t len = strlen(text), head_len, at, end;
	const char *first = strstr(text, ".address_size");
	char *head = malloc(len + 1);
	unsigned int n = 0;
	int pass;

	first = first ? strchr(first, '\n') : NULL;
	if (!head || !first) {
		free(head);
		return;
	}
	head_len = (size_t)(first - text);
	memcpy(head, text, head_len);
	for (pass = 0; pass < 2; pass++) {
		for (at = (size_t)(first - text); at < len; at = end) {
			const char *entry;

			end = item_end(text, at);
			entry = strstr(text + at, ".entry");
			if (entry && entry < text + end) {
				if (pass)
					put_seed(name, n++, "ptx", head, head_len, text + at,
						 end - at);
			} else if (!pass && !is_section(text + at)) {
				memcpy(head + head_len, text + at, end - at);
				head_len += end - at;
			}
		}
	}
	free(head);
}

/* The entries follow one another. Their headers hold their lengths. */
static void cut_code(const char *name, const char *image, size_t len)
{
	unsigned int n = 0;
	size_t at = 16;

	while (len > 64 && at < len - 64) {
		uint32_t header;
		uint64_t payload;

		memcpy(&header, image + at + 4, sizeof(header));
		memcpy(&payload, image + at + 8, sizeof(payload));
		if (header > len - at || payload > len - at - header)
			return;
		at += header;
		if (payload > 4 && !memcmp(image + at, "\177ELF", 4))
			put_seed(name, n++, "elf", "", 0, image + at, payload);
		at += payload;
	}
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	folder = argv[1];
	for (int i = 2; i < argc; i++) {
		const char *name = strrchr(argv[i], '/');
		struct soft_units units;
		size_t len, text_len;
		char why[256], *text, *image = slurp(argv[i], &len);

		name = name ? name + 1 : argv[i];
		if (!image || soft_fatbin_read(image, len, 90, &units, why, sizeof(why))) {
			fprintf(stderr, "%s: not read\n", argv[i]);
			free(image);
			continue;
		}
		cut_code(name, image, len);
		if (!soft_link(&units, &text, &text_len, why, sizeof(why))) {
			split(name, text);
			free(text);
		}
		soft_units_free(&units);
		free(image);
	}
	fprintf(stderr, "%u seeds\n", written);
	return written ? 0 : 1;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Feeds saved inputs to a fuzz target: files, or all files of folders. So an input that a fuzzer
 * once found stays a test, with any compiler and without libFuzzer. Each file is also fed in
 * shorter versions.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

/* How many shorter versions of each file are tried. */
#define CUTS 4u

static unsigned int files;

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max)
{
	(void)data;
	(void)max;
	return size;
}

static void one_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data;
	struct stat st;
	size_t size;

	if (!f || fstat(fileno(f), &st)) {
		perror(path);
		exit(1);
	}
	data = malloc((size_t)st.st_size + 1);
	size = data ? fread(data, 1, (size_t)st.st_size, f) : 0;
	if (!data || size != (size_t)st.st_size) {
		fprintf(stderr, "%s: cannot be read\n", path);
		exit(1);
	}
	fclose(f);
	/* Printed before the run, so that the last line names the input of a crash. */
	printf("%s\n", path);
	fflush(stdout);
	for (size_t i = CUTS; i; i--)
		LLVMFuzzerTestOneInput(data, size * i / CUTS);
	free(data);
	files++;
}

static void one_path(const char *path)
{
	struct dirent **entry;
	struct stat st;
	int n;

	if (stat(path, &st) || !S_ISDIR(st.st_mode)) {
		one_file(path);
		return;
	}
	n = scandir(path, &entry, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		char name[4096];

		snprintf(name, sizeof(name), "%s/%s", path, entry[i]->d_name);
		if (entry[i]->d_name[0] != '.')
			one_file(name);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		one_path(argv[i]);
	printf("%u inputs\n", files);
	return files ? 0 : 1;
}

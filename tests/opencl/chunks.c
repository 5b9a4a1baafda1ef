// SPDX-License-Identifier: GPL-2.0-or-later
// Where malloc memory lies: in chunks of the driver's, or where the C library has it. Copies of
// memory in chunks need no copy on the way.
#include "cl.h"

const char *const group_source = "";

TEST(malloc_memory)
{
	size_t size = 8 << 20;
	char *memory = malloc(size), line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	const char *where = "elsewhere";

	CHECK(memory && maps);
	memset(memory, 1, size);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long from, to, at = (unsigned long)memory;

		if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from <= at && at < to &&
		    strstr(line, "[qcuda]"))
			where = "in chunks";
	}
	fclose(maps);
	printf(" %s\n", where);
	cl_mem v = counting(size / sizeof(cl_int), 0, CL_MEM_READ_WRITE);
	CL(clEnqueueWriteBuffer(queue, v, CL_TRUE, 0, size, memory, 0, NULL, NULL));
	memset(memory, 0, size);
	CL(clEnqueueReadBuffer(queue, v, CL_TRUE, 0, size, memory, 0, NULL, NULL));
	CHECK(memory[0] == 1 && memory[size - 1] == 1);
	CL(clReleaseMemObject(v));
	free(memory);
}

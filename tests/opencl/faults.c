// SPDX-License-Identifier: GPL-2.0-or-later
// A kernel that writes where nothing is, or one that does not end: the first argument says which.
// PoCL ends the program when the driver reports an error. So the test is what the program says, and
// that others go on.
#include "cl.h"
#include <unistd.h>

const char *const group_source =
	"kernel void write_nowhere(global int *v) { v[((size_t)1 << 44) + get_global_id(0)] = 1; "
	"}\n"
	"kernel void without_end(global volatile int *v) { while (v[0] >= 0) v[1]++; }\n"
	"kernel void add_one(global int *v) { v[get_global_id(0)] += 1; }\n";

static void end_with(const char *name)
{
	cl_mem v = counting(64, 0, CL_MEM_READ_WRITE);
	cl_int numbers[64];
	/* A thread of the driver may end the program, too: what follows says that none did. */
	run_on(kernel("add_one"), 64, 32, v, NULL);
	printf(" before: ok\n");
	run_on(kernel(name), 32, 32, v, NULL);
	read_ints(v, numbers, 64);
	printf(" no error was seen\n");
	_exit(3);
}

TEST(write_nowhere)
{
	end_with("write_nowhere");
}

TEST(without_end)
{
	end_with("without_end");
}

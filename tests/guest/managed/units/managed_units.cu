// SPDX-License-Identifier: GPL-2.0-or-later
/* The other unit of tests/guest/managed/managed_units.cu. */
#include "managed_units.h"

extern __managed__ int ours[4];
__managed__ int theirs = 1000;
static __managed__ int hidden = 200;

__global__ void add(int n)
{
	ours[n] += 10;
	theirs += hidden++;
}

int hidden_there(void)
{
	return hidden;
}

void add_there(int n)
{
	add<<<1, 1>>>(n);
	CHECK_LAUNCH();
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Managed variables in a program of several units that are linked for the device. Each unit uses
 * a variable that the other one defines, and each has a private variable of the same name.
 */
#include "units/managed_units.h"

extern __managed__ int theirs;
__managed__ int ours[4] = {1, 2, 3, 4};
static __managed__ int hidden = 100;

__global__ void add_here(int n)
{
	ours[n]++;
	theirs += hidden++;
}

int main(void)
{
	REQUIRE(theirs == 1000 && hidden_there() == 200, "%d %d", theirs, hidden_there());
	add_here<<<1, 1>>>(1);
	CHECK_LAUNCH();
	add_there(2);
	CHECK(cudaDeviceSynchronize());
	REQUIRE(ours[0] == 1 && ours[1] == 3 && ours[2] == 13, "%d %d", ours[1], ours[2]);
	REQUIRE(theirs == 1300, "%d", theirs);
	REQUIRE(hidden == 101 && hidden_there() == 201, "%d %d", hidden, hidden_there());
	theirs = ours[3] = 0;
	add_there(3);
	CHECK(cudaDeviceSynchronize());
	REQUIRE(ours[3] == 10 && theirs == 201, "%d %d", ours[3], theirs);
	return verified("units share managed variables, and keep their own");
}

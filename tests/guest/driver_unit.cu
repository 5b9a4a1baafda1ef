// SPDX-License-Identifier: GPL-2.0-or-later
/* The second unit of driver_link, as an object file of the host's. */
extern "C" {
__device__ unsigned int base = 21;

__device__ unsigned int twice(unsigned int v)
{
	return v + v;
}
}

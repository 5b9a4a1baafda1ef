// SPDX-License-Identifier: LGPL-2.1-or-later
/* The second unit of linked.cu, when it is built with -rdc=true. */
__device__ int twice(int x)
{
	return 2 * x;
}

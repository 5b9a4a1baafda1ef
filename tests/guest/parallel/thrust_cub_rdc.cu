// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Thrust and CUB compiled with -rdc=true, which declares the shared memory of all their kernels in
 * one place. See thrust_cub.h. The sorts come first: their kernels have the most shared memory.
 */
#include "thrust_cub.h"

int main()
{
	test_sort<int>("sort of int");
	test_sort<double>("sort of double");
	test_merge_sort();
	test_scan<float>("scan of float");
	test_reduce<double>("reduction of double");
	test_select();
	test_runs();
	test_histogram();
	test_segments();
	return verified("the same with separate compilation");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Thrust and CUB, see thrust_cub.h. */
#include "thrust_cub.h"

int main()
{
	test_sort<int>("sort of int");
	test_sort<float>("sort of float");
	test_sort<uint64_t>("sort of uint64_t");
	test_merge_sort();
	test_scan<int>("scan of int");
	test_scan<double>("scan of double");
	test_reduce<int>("reduction of int");
	test_reduce<float>("reduction of float");
	test_reduce<uint64_t>("reduction of uint64_t");
	test_select();
	test_runs();
	test_histogram();
	test_segments();
	return verified(
		"sort, scan, reduce, select, unique, histogram and segments of Thrust and CUB");
}

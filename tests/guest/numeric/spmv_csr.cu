// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A sparse matrix (compressed rows) times a vector, one thread per row and one warp per row, in
 * double. Rows have 0 to 40 elements; one row is long.
 */
#include <math.h>
#include <vector>

#include "check.h"

#define ROWS 500

__global__ void row_per_thread(const int *start, const int *column, const double *value,
			       const double *x, double *y)
{
	int row = blockIdx.x * blockDim.x + threadIdx.x;

	if (row < ROWS) {
		double sum = 0;

		for (int k = start[row]; k < start[row + 1]; k++)
			sum += value[k] * x[column[k]];
		y[row] = sum;
	}
}

__global__ void row_per_warp(const int *start, const int *column, const double *value,
			     const double *x, double *y)
{
	int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
	double sum = 0;

	if (row >= ROWS)
		return;
	for (int k = start[row] + lane; k < start[row + 1]; k += 32)
		sum += value[k] * x[column[k]];
	for (int step = 16; step; step /= 2)
		sum += __shfl_xor_sync(0xffffffffu, sum, step);
	if (lane == 0)
		y[row] = sum;
}

template <typename T> static T *upload(const std::vector<T> &v)
{
	T *dev;

	CHECK(cudaMalloc(&dev, v.size() * sizeof(T)));
	CHECK(cudaMemcpy(dev, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice));
	return dev;
}

int main(void)
{
	std::vector<int> start(1, 0), column;
	std::vector<double> value, x, y(2 * ROWS), want(ROWS);
	int *dev_start, *dev_column;
	double *dev_value, *dev_x, *dev_y;

	for (int row = 0; row < ROWS; row++) {
		int count = row == 77 ? ROWS : (int)(scramble(row, 13) % 41);

		for (int k = 0; k < count; k++) {
			column.push_back(count == ROWS ? k : (int)(scramble(k, row) % ROWS));
			value.push_back((int)(scramble(k, row + 1000) % 2001) / 1000.0 - 1);
		}
		start.push_back((int)column.size());
		x.push_back(sin(row));
	}
	dev_start = upload(start);
	dev_column = upload(column);
	dev_value = upload(value);
	dev_x = upload(x);
	dev_y = upload(y);
	row_per_thread<<<(ROWS + 127) / 128, 128>>>(dev_start, dev_column, dev_value, dev_x, dev_y);
	row_per_warp<<<(ROWS + 3) / 4, 128>>>(dev_start, dev_column, dev_value, dev_x,
					      dev_y + ROWS);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(y.data(), dev_y, 2 * ROWS * sizeof(double), cudaMemcpyDeviceToHost));
	for (int row = 0; row < ROWS; row++) {
		for (int k = start[row]; k < start[row + 1]; k++)
			want[row] += value[k] * x[column[k]];
		REQUIRE(fabs(y[row] - want[row]) < 1e-12 && fabs(y[ROWS + row] - want[row]) < 1e-12,
			"row %d: %.15g and %.15g, expected %.15g", row, y[row], y[ROWS + row],
			want[row]);
	}
	CHECK(cudaFree(dev_start));
	CHECK(cudaFree(dev_column));
	CHECK(cudaFree(dev_value));
	CHECK(cudaFree(dev_x));
	CHECK(cudaFree(dev_y));
	return verified("%d rows, %zu elements", ROWS, column.size());
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Poisson's equation in a periodic box, in three dimensions, by cuFFT: spectra of the right side in
 * double, a kernel that divides by the eigenvalues, and back. The same two plans serve several right
 * sides. The solutions are put back into the equation on the CPU. Wrong boxes come first.
 */
#include "fft.h"

#define NX   10
#define NY   12
#define NZ   15
#define ALL  (NX * NY * NZ)
#define HALF (NZ / 2 + 1)
#define SPECTRUM (NX * NY * HALF)

static void wrong_boxes(void)
{
	int box[] = {NX, NY, NZ, 2};
	cufftHandle plan;
	size_t size;

	FAILS(cufftPlan3d(&plan, 0, NY, NZ, CUFFT_D2Z));
	FAILS(cufftPlan3d(&plan, NX, NY, -1, CUFFT_Z2D));
	OK(cufftCreate(&plan));
	FAILS(cufftMakePlan3d(plan, -NX, NY, NZ, CUFFT_D2Z, &size));
	FAILS(cufftMakePlanMany(plan, 4, box, NULL, 1, 0, NULL, 1, 0, CUFFT_D2Z, 1, &size));
	OK(cufftDestroy(plan));
	FAILS(cufftMakePlan3d(plan, NX, NY, NZ, CUFFT_D2Z, &size));
}

/* What the sum of a point's two neighbours along a line, less twice the point, is for the wave k. */
static __device__ double eigenvalue(int k, int n)
{
	return 2 * cos(2 * M_PI * k / n) - 2;
}

/* The mean of the solution is free, and becomes zero. */
static __global__ void divide(cufftDoubleComplex *spectrum)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	double by;

	if (i >= SPECTRUM)
		return;
	by = eigenvalue(i / HALF / NY, NX) + eigenvalue(i / HALF % NY, NY) + eigenvalue(i % HALF, NZ);
	spectrum[i].x = i ? spectrum[i].x / by / ALL : 0;
	spectrum[i].y = i ? spectrum[i].y / by / ALL : 0;
}

static size_t place(int x, int y, int z)
{
	return ((size_t)(x + NX) % NX * NY + (y + NY) % NY) * NZ + (z + NZ) % NZ;
}

/* The left side of the equation. */
static std::vector<double> laplace(const std::vector<double> &u)
{
	std::vector<double> f(ALL);

	for (int x = 0; x < NX; x++)
		for (int y = 0; y < NY; y++)
			for (int z = 0; z < NZ; z++)
				f[place(x, y, z)] = u[place(x - 1, y, z)] + u[place(x + 1, y, z)] +
						    u[place(x, y - 1, z)] + u[place(x, y + 1, z)] +
						    u[place(x, y, z - 1)] + u[place(x, y, z + 1)] -
						    6 * u[place(x, y, z)];
	return f;
}

static double mean(const std::vector<double> &v)
{
	double sum = 0;

	for (double d : v)
		sum += d;
	return sum / v.size();
}

static std::vector<double> solve(cufftHandle there, cufftHandle back, const std::vector<double> &f)
{
	std::vector<double> u;
	double *gpu = up(f);
	Z *spectrum = up(std::vector<Z>(SPECTRUM));

	OK(execute(there, gpu, spectrum));
	divide<<<blocks(SPECTRUM), 256>>>(raw(spectrum));
	CHECK_LAUNCH();
	OK(execute(back, spectrum, gpu));
	u = down(gpu, ALL);
	CHECK(cudaFree(gpu));
	CHECK(cudaFree(spectrum));
	return u;
}

int main(void)
{
	cufftHandle there, back;
	size_t size;

	begin();
	wrong_boxes();
	OK(cufftCreate(&there));
	OK(cufftMakePlan3d(there, NX, NY, NZ, CUFFT_D2Z, &size));
	OK(cufftCreate(&back));
	OK(cufftMakePlan3d(back, NX, NY, NZ, CUFFT_Z2D, &size));

	/* A source and a sink. */
	std::vector<double> f(ALL), u;

	f[place(2, 3, 4)] = 1;
	f[place(7, 8, 9)] = -1;
	u = solve(there, back, f);
	compare("a source and a sink", laplace(u), f);
	REQUIRE(u[place(2, 3, 4)] < 0 && u[place(7, 8, 9)] > 0, "the signs are wrong");

	/* Right sides that look random. Their mean must be zero. */
	for (int i = 0; i < 4; i++) {
		double middle;

		f = numbers<double>(ALL);
		middle = mean(f);
		for (double &v : f)
			v -= middle;
		u = solve(there, back, f);
		compare("a right side", laplace(u), f);
		REQUIRE(fabs(mean(u)) < 1e-10, "the mean of the solution is %g", mean(u));
	}

	/* The right side of a known solution. */
	std::vector<double> known = numbers<double>(ALL);
	double middle = mean(known);

	for (double &v : known)
		v -= middle;
	compare("a known solution", solve(there, back, laplace(known)), known);
	OK(cufftDestroy(there));
	OK(cufftDestroy(back));
	printf("6 solutions in a box of %d x %d x %d\n", NX, NY, NZ);
	return 0;
}

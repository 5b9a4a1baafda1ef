// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The workspace is the program's: plans made without one say how much they need, take turns in one
 * area, and move to another one between two transforms. What lies in the area before and after does
 * not count. The sizes that are asked afterwards are those that were told. Wrong plans come first.
 */
#include "fft.h"

#define ROW   1009 /* a prime number */
#define BATCH 3
#define H     48
#define W     70
#define SIDE  14

static void wrong_plans(void)
{
	cufftHandle plan = CUFFT_PLAN_NULL;
	size_t size;
	void *area;

	CHECK(cudaMalloc(&area, 1024));
	FAILS(cufftSetAutoAllocation(plan, 0));
	FAILS(cufftSetWorkArea(plan, area));
	FAILS(cufftGetSize(plan, &size));
	OK(cufftCreate(&plan));
	OK(cufftSetAutoAllocation(plan, 0));
	FAILS(cufftMakePlan3d(plan, 0, H, W, CUFFT_C2C, &size));
	OK(cufftDestroy(plan));
	FAILS(cufftSetAutoAllocation(plan, 1));
	FAILS(cufftSetWorkArea(plan, area));
	FAILS(cufftGetSize(plan, &size));
	CHECK(cudaFree(area));
}

/* What a plan without a workspace of its own needs. */
struct need {
	cufftHandle plan;
	size_t bytes;

	need(void) : bytes((size_t)-1)
	{
		OK(cufftCreate(&plan));
		OK(cufftSetAutoAllocation(plan, 0));
	}
	void check(void) const
	{
		size_t asked;

		REQUIRE(bytes < 8 << 20, "a workspace of %zu bytes", bytes);
		OK(cufftGetSize(plan, &asked));
		REQUIRE(asked == bytes, "%zu bytes, not %zu", asked, bytes);
	}
};

int main(void)
{
	std::vector<C> row = numbers<C>(ROW * BATCH);
	std::vector<Z> plane = numbers<Z>(H * W), got;
	std::vector<float> box = numbers<float>(SIDE * SIDE * SIDE);
	std::vector<Z> row_there = transform(row.data(), ROW, -1), plane_there = transform(plane, {H, W}, -1);
	std::vector<Z> box_there = transform(box, {SIDE, SIDE, SIDE}, -1);
	int size[] = {H, W};
	size_t most;
	void *area[2];

	begin();
	wrong_plans();

	need rows, planes, boxes, many;

	OK(cufftMakePlan1d(rows.plan, ROW, CUFFT_C2C, BATCH, &rows.bytes));
	OK(cufftMakePlan2d(planes.plan, H, W, CUFFT_Z2Z, &planes.bytes));
	OK(cufftMakePlan3d(boxes.plan, SIDE, SIDE, SIDE, CUFFT_R2C, &boxes.bytes));
	OK(cufftMakePlanMany(many.plan, 2, size, NULL, 1, 0, NULL, 1, 0, CUFFT_Z2Z, 1, &many.bytes));
	for (const need *n : {&rows, &planes, &boxes, &many})
		n->check();
	most = std::max(std::max(rows.bytes, planes.bytes), std::max(boxes.bytes, many.bytes));
	for (void *&p : area) {
		CHECK(cudaMalloc(&p, most + 1));
		CHECK(cudaMemset(p, 0xff, most + 1));
	}

	C *gpu_row = up(row), *gpu_box_there = up(std::vector<C>(SIDE * SIDE * (SIDE / 2 + 1)));
	Z *gpu_plane = up(plane), *gpu_many = up(plane);
	float *gpu_box = up(box);

	for (int turn = 0; turn < 4; turn++) {
		int sign = turn % 2 ? CUFFT_INVERSE : CUFFT_FORWARD;
		void *now = area[turn / 2], *other = area[1 - turn / 2];

		for (const need *n : {&rows, &planes, &boxes, &many})
			OK(cufftSetWorkArea(n->plan, now));
		/* The area that is not used has no part in it. */
		CHECK(cudaMemset(other, 0xff, most + 1));
		OK(execute(rows.plan, gpu_row, gpu_row, sign));
		OK(execute(planes.plan, gpu_plane, gpu_plane, sign));
		CHECK(cudaMemset(gpu_box_there, 0xff, SIDE * SIDE * (SIDE / 2 + 1) * sizeof(C)));
		OK(execute(boxes.plan, gpu_box, gpu_box_there));
		OK(execute(many.plan, gpu_many, gpu_many, sign));
		CHECK(cudaMemset(now, 0xff, most + 1));

		std::vector<C> half = down(gpu_box_there, SIDE * SIDE * (SIDE / 2 + 1));

		for (int i = 0; i < SIDE * SIDE; i++)
			compare("a box", &half[i * (SIDE / 2 + 1)], &box_there[i * SIDE], SIDE / 2 + 1);
		got = down(gpu_plane, H * W);
		compare("another plan of the same transform", down(gpu_many, H * W), got);
		if (sign == CUFFT_FORWARD) {
			compare("a row of a prime length", down(gpu_row, ROW), row_there);
			compare("a plane", got, plane_there);
			continue;
		}
		compare("rows, and back", down(gpu_row, ROW * BATCH), row, 1.0 / ROW);
		compare("a plane, and back", got, plane, 1.0 / (H * W));
		CHECK(cudaMemcpy(gpu_row, row.data(), row.size() * sizeof(C), cudaMemcpyHostToDevice));
		for (Z *p : {gpu_plane, gpu_many})
			CHECK(cudaMemcpy(p, plane.data(), plane.size() * sizeof(Z), cudaMemcpyHostToDevice));
	}
	for (const need *n : {&rows, &planes, &boxes, &many})
		OK(cufftDestroy(n->plan));
	for (void *p : {(void *)gpu_row, (void *)gpu_box, (void *)gpu_box_there, (void *)gpu_plane, (void *)gpu_many,
			area[0], area[1]})
		CHECK(cudaFree(p));
	printf("four plans take turns in two areas\n");
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Gravity between all pairs of bodies: positions go through shared memory in tiles of float4,
 * accelerations use rsqrtf. A few steps, compared with double on the CPU. Momentum must not
 * change.
 */
#include <math.h>

#include "check.h"

#define N	  256
#define TILE	  64
#define STEPS	  3
#define DT	  0.01f
#define SOFTENING 0.01f

__global__ void step(const float4 *from, float4 *to, float3 *velocity)
{
	__shared__ float4 tile[TILE];
	int i = blockIdx.x * TILE + threadIdx.x;
	float4 me = from[i];
	float3 a = make_float3(0, 0, 0), v = velocity[i];

	for (int t = 0; t < N; t += TILE) {
		tile[threadIdx.x] = from[t + threadIdx.x];
		__syncthreads();
#pragma unroll 4
		for (int k = 0; k < TILE; k++) {
			float dx = tile[k].x - me.x, dy = tile[k].y - me.y, dz = tile[k].z - me.z;
			float inv = rsqrtf(dx * dx + dy * dy + dz * dz + SOFTENING);
			float pull = tile[k].w * inv * inv * inv;

			a.x += dx * pull;
			a.y += dy * pull;
			a.z += dz * pull;
		}
		__syncthreads();
	}
	v.x += a.x * DT;
	v.y += a.y * DT;
	v.z += a.z * DT;
	velocity[i] = v;
	to[i] = make_float4(me.x + v.x * DT, me.y + v.y * DT, me.z + v.z * DT, me.w);
}

int main(void)
{
	static float4 in[N], out[N];
	static float3 speed[N];
	static double pos[N][3], vel[N][3], old[N][3];
	double momentum[3] = {0};
	float4 *dev[2];
	float3 *dev_speed;

	for (int i = 0; i < N; i++) {
		for (int k = 0; k < 3; k++)
			pos[i][k] = (float)(scramble(i * 3 + k, 10) / 4294967296.0 * 2 - 1);
		in[i] = make_float4((float)pos[i][0], (float)pos[i][1], (float)pos[i][2],
				    1.0f / N * (1 + i % 4));
	}
	for (int s = 0; s < 2; s++)
		CHECK(cudaMalloc(&dev[s], sizeof(in)));
	CHECK(cudaMalloc(&dev_speed, sizeof(speed)));
	CHECK(cudaMemset(dev_speed, 0, sizeof(speed)));
	CHECK(cudaMemcpy(dev[0], in, sizeof(in), cudaMemcpyHostToDevice));
	for (int s = 0; s < STEPS; s++) {
		step<<<N / TILE, TILE>>>(dev[s % 2], dev[1 - s % 2], dev_speed);
		CHECK_LAUNCH();
		memcpy(old, pos, sizeof(pos));
		for (int i = 0; i < N; i++) {
			for (int j = 0; j < N; j++) {
				double d[3], r2 = SOFTENING;

				for (int k = 0; k < 3; k++) {
					d[k] = old[j][k] - old[i][k];
					r2 += d[k] * d[k];
				}
				for (int k = 0; k < 3; k++)
					vel[i][k] += in[j].w * d[k] / (r2 * sqrt(r2)) * DT;
			}
			for (int k = 0; k < 3; k++)
				pos[i][k] += vel[i][k] * DT;
		}
	}
	CHECK(cudaMemcpy(out, dev[STEPS % 2], sizeof(out), cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(speed, dev_speed, sizeof(speed), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		double off = fabs(out[i].x - pos[i][0]) + fabs(out[i].y - pos[i][1]) +
			     fabs(out[i].z - pos[i][2]);

		REQUIRE(off < 1e-5 && out[i].w == in[i].w, "body %d is off by %g", i, off);
		momentum[0] += in[i].w * (double)speed[i].x;
		momentum[1] += in[i].w * (double)speed[i].y;
		momentum[2] += in[i].w * (double)speed[i].z;
	}
	for (int k = 0; k < 3; k++)
		REQUIRE(fabs(momentum[k]) < 1e-4, "momentum %d became %g", k, momentum[k]);
	CHECK(cudaFree(dev[0]));
	CHECK(cudaFree(dev[1]));
	CHECK(cudaFree(dev_speed));
	return verified("%d bodies, %d steps", N, STEPS);
}

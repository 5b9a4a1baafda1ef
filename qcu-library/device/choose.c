// SPDX-License-Identifier: LGPL-2.1-or-later
/* Chooses the device of a program that names none: the first of a list, or the most similar one.
 */
#include "qcu-library/device/device.h"

cudaError_t cudaSetValidDevices(int *devices, int len)
{
	cudaError_t err = qcul_open();
	int i;

	if (err)
		return qcul_done(err);
	if (len < 0 || len > qcul_device_count() || (len && !devices))
		return qcul_done(cudaErrorInvalidValue);
	for (i = 0; i < len; i++)
		if (devices[i] < 0 || devices[i] >= qcul_device_count())
			return qcul_done(cudaErrorInvalidDevice);
	qcul_device_set_default(len ? devices[0] : 0);
	return cudaSuccess;
}

/* How well a device matches the request. A missing capability or too little memory outweighs all
 * else. */
static int match(const struct cudaDeviceProp *want, const struct cudaDeviceProp *have)
{
	int points = 0;

	points += 16 * (have->major * 10 + have->minor >= want->major * 10 + want->minor);
	points += 8 * (have->totalGlobalMem >= want->totalGlobalMem);
	points += have->major == want->major && have->minor == want->minor;
	points += have->multiProcessorCount >= want->multiProcessorCount;
	points += have->sharedMemPerBlock >= want->sharedMemPerBlock;
	points += have->integrated == want->integrated;
	points += have->canMapHostMemory >= want->canMapHostMemory;
	return points;
}

cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *prop)
{
	cudaError_t err = device && prop ? qcul_open() : cudaErrorInvalidValue;
	struct cudaDeviceProp have;
	int i, points, best = -1;

	for (i = 0; !err && i < qcul_device_count(); i++) {
		err = cudaGetDeviceProperties(&have, i);
		if (err)
			break;
		points = match(prop, &have);
		if (points > best) {
			best = points;
			*device = i;
		}
	}
	return qcul_done(err);
}

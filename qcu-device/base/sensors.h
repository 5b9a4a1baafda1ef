/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What programs of a VM can learn of its GPUs now: clocks, how busy they are, and more if the
 * operator lets it (--nvml). The main process writes the numbers into memory that all mirrors of
 * the VM share. They come from the process that asks NVML (host/memwatch.c), at most once a second,
 * and only while programs ask for them. A mirror that has been broken into can forge what its own
 * VM sees.
 */
#ifndef QCU_SENSORS_H
#define QCU_SENSORS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "include/qcucmd.h"
#include "qcu-device/base/busy.h"

enum sensors_for {
	SENSORS_OWN, /* what the VM itself does, the clocks, the driver's version: the default */
	SENSORS_ALL, /* also what the whole GPU does */
	SENSORS_NONE,
};

/* Numbers older than this are not shown. A program that asks has made them fresh by then. */
#define SENSORS_OLD_MS 3000u
/* So long after a program has asked, the next numbers are still taken. */
#define SENSORS_WANTED_MS 5000u
#define SENSORS_GPUS	  64u

struct gpu_sensors {
	uint32_t known; /* a bit for each value; 0: no such GPU */
	uint32_t value[QCU_SENSOR_COUNT];
};

/* How busy each session keeps a GPU, and whether that is known. */
struct gpu_work {
	bool known;
	struct busy_percent of[BUSY_SESSIONS];
};

struct sensors {
	_Atomic bool on;	 /* numbers come */
	_Atomic uint64_t wanted; /* when a mirror last wanted them, in ms; no mirror is trusted */
	_Atomic uint64_t taken;	 /* when these were taken; 0: never */
	struct {
		_Atomic uint64_t bus; /* sensors_bus(), and a bit above: there is one */
		_Atomic uint32_t known, value[QCU_SENSOR_COUNT];
		_Atomic bool shares_known;
		_Atomic uint8_t share[BUSY_SESSIONS][BUSY_KINDS];
	} gpu[SENSORS_GPUS];
};

/* The GPU's place: CUDA and NVML count GPUs in different orders. */
static inline uint64_t sensors_bus(uint32_t domain, uint32_t bus, uint32_t device)
{
	return 1ull << 63 | (uint64_t)(domain & 0xffffff) << 32 | (uint64_t)(bus & 0xffff) << 16 |
	       (device & 0xffff);
}

/* The milliseconds of the clock that both processes have. */
uint64_t sensors_now(void);
/* Takes out what is impossible, or what `whose` does not let programs see. */
void sensors_check(struct gpu_sensors *g, enum sensors_for whose);

/* The main process: writes what is known of the GPU in this place. */
void sensors_put(struct sensors *s, unsigned int slot, uint64_t bus, const struct gpu_sensors *g,
		 const struct gpu_work *shares);
/* Has a mirror wanted numbers lately? */
bool sensors_wanted(const struct sensors *s, uint64_t now);

/*
 * A mirror: what is known of the GPU. Returns false if that is on its way. s NULL: nothing is
 * known.
 */
bool sensors_get(struct sensors *s, uint64_t bus, uint64_t now, struct gpu_sensors *g);
/*
 * A mirror: how busy the sessions kept the GPU, as far as that has been asked for lately. Returns
 * how many milliseconds ago that was.
 */
uint64_t sensors_shares(const struct sensors *s, uint64_t bus, uint64_t now, struct gpu_work *to);

#endif

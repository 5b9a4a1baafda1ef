/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * GPUs that the operator chooses by their names (--gpu): whole ones by UUID, GPU-..., or one part
 * of a GPU (MIG), MIG-... . CUDA uses at most one part in a process.
 */
#ifndef QCU_GPUS_H
#define QCU_GPUS_H

#include "qcu-device/jail/jail.h"
#include "qcu-device/turns/keeper.h"

/* Is this meant to be names of GPUs? */
bool gpus_are_names(const char *text);

/*
 * Parses names, separated by commas. CUDA then shows only these GPUs to this process's children,
 * and to mirrors. Returns NULL, or what is wrong, a sentence.
 */
const char *gpus_choose(struct jail_gpus *g, const char *text);

/*
 * Adds a GPU that is only for the memory which leaves those that have been named. Returns NULL, or
 * what is wrong, a sentence.
 */
const char *gpus_add_store(struct jail_gpus *g, const char *name);
/* The same of software GPUs, of which the VM has so many. */
const char *gpus_add_soft_store(struct jail_gpus *g, unsigned int soft, const char *name);

/*
 * What each GPU is called for its broker. soft: how many software GPUs there are; 0: they are
 * NVIDIA's. store: bytes that the last one has for the store; 0: it is one of the VM's. Returns how
 * many there are, at most TURNS_GPUS.
 */
unsigned int gpus_for_keeper(const struct jail_gpus *g, unsigned int soft, uint64_t store,
			     struct keeper_gpu *gpu);

/*
 * When GPUs have been found: if the operator has chosen them by numbers (CUDA_VISIBLE_DEVICES), the
 * names take their place. A mirror can open only these GPUs, so there they have other numbers.
 */
void gpus_name_numbers(const struct jail_gpus *g);

/* Whether the GPUs that were found are those that were named. Returns NULL, or what is wrong. */
const char *gpus_check(const struct jail_gpus *g);

/* Writes what the GPU is called: its UUID, or the part's. size: at least GPU_NAME_BYTES. */
void gpus_name(const struct jail_gpus *g, unsigned int i, char *name, size_t size);

/*
 * For a process of its own, because it loads NVML: finds out which part of the GPU was named. If it
 * cannot be found out, part_known stays false.
 */
void gpus_find_part(struct jail_gpus *g);

/*
 * Finds the numbers N of the files /dev/nvidia-caps/nvidia-capN that a process needs to use the
 * VM's part of this GPU; those of all its parts if it is not known which one is the VM's. minors:
 * the driver's list. Returns how many there are in `minor`, at most `room`.
 */
#define GPU_MIG_MINORS "/proc/driver/nvidia-caps/mig-minors"
unsigned int gpus_part_files(const struct jail_gpus *g, const char *minors, unsigned int gpu,
			     unsigned int *minor, unsigned int room);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What curand_native.c and its backend share. */
#ifndef CURAND_NATIVE_H
#define CURAND_NATIVE_H

/* NVIDIA's library. By its name alone the dynamic linker finds the shim. */
#define CURAND_NATIVE "/usr/local/cuda/lib64/libcurand.so.10"

#endif

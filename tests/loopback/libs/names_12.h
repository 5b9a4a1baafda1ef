/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What names_12 and its library agree on. */
#ifndef NAMES_12_H
#define NAMES_12_H

#define NAMES_12_N	3   /* rows of a matrix of cuSOLVER's */
#define NAMES_12_DEVICE 640 /* bytes of the GPU's memory that it works in, */
#define NAMES_12_HOST	48  /* and of the host's */
#define NAMES_12_WORK	64  /* numbers from the matrix to this memory, */
#define NAMES_12_INFO	512 /* and to where the result is */
/* The size of a transform with the first status that CUDA 12 lacks. The next sizes have the next.
 */
#define NAMES_12_SIZE 12345

#endif

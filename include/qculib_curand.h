/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The tables of cuRAND on the wire. A question for one has two arguments: which set (0 if there is
 * only one), and room for the whole table.
 */
#ifndef QCULIB_CURAND_H
#define QCULIB_CURAND_H

/* Bytes. NVIDIA's documentation tells how many dimensions Sobol's sequences have. */
#define QCU_CURAND_DIMENSIONS	20000u
#define QCU_CURAND_VECTORS_32	(QCU_CURAND_DIMENSIONS * 32u * 4u)
#define QCU_CURAND_VECTORS_64	(QCU_CURAND_DIMENSIONS * 64u * 8u)
#define QCU_CURAND_CONSTANTS_32 (QCU_CURAND_DIMENSIONS * 4u)
#define QCU_CURAND_CONSTANTS_64 (QCU_CURAND_DIMENSIONS * 8u)

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The matrix of sparse_calls, which its cuSPARSE expects too. */
#ifndef SPARSE_H
#define SPARSE_H

#define SPARSE_ROWS   12
#define SPARSE_COLS   9
#define SPARSE_NNZ    40
#define SPARSE_FOUND  17 /* elements, when the library has counted them */
#define SPARSE_PIVOT  5
#define SPARSE_BUFFER 4096

/* The n-th pointer: nobody reads what is there. */
#define SPARSE_AT(n)	((void *)(0x70000000ul + 0x100000ul * (n)))
#define SPARSE_POINTERS 10

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What names_12 and its library agree on. */
#ifndef NAMES_12_H
#define NAMES_12_H

#define NAMES_12_N	  3	/* rows of a matrix of cuSOLVER's */
#define NAMES_12_DEVICE	  640	/* bytes of the GPU's memory that it works in, */
#define NAMES_12_HOST	  48	/* and of the host's */
#define NAMES_12_SIZE	  12345 /* of a transform for which something on the host is missing, */
#define NAMES_12_STRANGER 12346 /* and of one with a status that no version of CUDA has */

#endif

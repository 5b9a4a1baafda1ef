/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A gap of a random size between what the process has mapped and what it maps next. Device
 * addresses go to the guest, and CUDA takes them from where the process maps next: without a gap,
 * they would tell where its libraries are.
 */
#ifndef QCU_GAP_H
#define QCU_GAP_H

#include <stdbool.h>

/*
 * It stays, and what holes there are below it are filled: what is mapped next would lie there
 * otherwise. In a process that is no mirror there are no gaps.
 *
 * False: there have been 16 gaps, or there are more holes than the process may spend mappings on.
 * Then nothing may be mapped whose address is to stay secret.
 */
bool gap_leave(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A gap between what the process has mapped and what it maps next, whose size nobody knows. Device
 * addresses go to the guest, and CUDA takes some from where the process maps next: without a gap,
 * they would tell where its libraries are.
 */
#ifndef QCU_GAP_H
#define QCU_GAP_H

#include <stdbool.h>

/*
 * The first gap. It ends at the same address in each mirror, so that what CUDA maps next has the
 * same addresses in another mirror (a session that is restored needs that). Where it begins is
 * random. It stays, and what holes there are below its end are filled. False: it cannot be.
 */
bool gap_begin(void);

/*
 * A gap of a random size. It stays, and what holes there are below it are filled: what is mapped
 * next would lie there otherwise. In a process that is no mirror there are no gaps.
 *
 * False: there have been 15 gaps, or there are more holes than the process may spend mappings on.
 * Then nothing may be mapped whose address is to stay secret.
 */
bool gap_leave(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef MANAGED_UNITS_H
#define MANAGED_UNITS_H

#include "check.h"

/* The variables are declared where they are not defined: nvcc does not accept both in one unit. */
int hidden_there(void);
void add_there(int n);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A control group for each mirror, with bounds for memory and tasks, where the host has version 2
 * of them and gives this process a group that it shares with no other program (as systemd does with
 * Delegate=). Elsewhere mirrors have none.
 */
#ifndef QCU_GROUPS_H
#define QCU_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#define GROUPS_MAX 128u

/*
 * For the main process, before it has children and before it goes to jail. Makes groups for as many
 * mirrors at one time, at most GROUPS_MAX, each with at most so many tasks; UINT64_MAX: any number.
 * False, with errno: there are fewer groups, or none.
 */
bool groups_begin(unsigned int mirrors, uint64_t tasks);

/*
 * Returns a group that no mirror is in, or -1: there is none. memory: in bytes; UINT64_MAX: any
 * amount.
 */
int groups_take(uint64_t memory);
/* The file with which the mirror enters the group. */
int groups_file(int group);
/* The mirror has ended. group: may be -1. */
void groups_give_back(int group);

/* For a mirror. file: of its group; is closed. */
void groups_enter(int file);

#endif

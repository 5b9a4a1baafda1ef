/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the service manager (systemd) must know when a process that it has not started itself takes
 * a service over. The reload of a service starts a process that has to end. So it leaves a child
 * behind, and says that the child is the service now, before the old main process ends.
 */
#ifndef QCU_SERVICE_H
#define QCU_SERVICE_H

#include <stdbool.h>

/*
 * Called in a process that has one thread. If a service manager wants to hear of it, goes on in a
 * child, and this process ends when the child has called service_is_mine(), or has ended. Returns
 * false on error, with errno.
 */
bool service_leave_child(void);

/*
 * The child is the service. Returns when the manager knows, so the old main process may end.
 * Without a manager nothing happens.
 */
void service_is_mine(void);

#endif

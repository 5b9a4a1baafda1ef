// SPDX-License-Identifier: GPL-2.0-or-later
/* Objects that a graph keeps until it is destroyed. */
#include "driver.h"

static volatile int destroyed;

static void CUDA_CB destroy(void *data)
{
	destroyed += *(int *)data;
}

int main()
{
	CUuserObject object;
	CUgraph graph;
	int ten = 10;

	driver_start();
	DCHECK(cuUserObjectCreate(&object, &ten, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	DCHECK(cuUserObjectRetain(object, 1));
	DCHECK(cuGraphCreate(&graph, 0));
	DCHECK(cuGraphRetainUserObject(graph, object, 1, 0));
	DCHECK(cuUserObjectRelease(object, 2));
	DCHECK(cuGraphRetainUserObject(graph, object, 1, 0));
	DCHECK(cuGraphReleaseUserObject(graph, object, 1));
	REQUIRE(!destroyed, "%d", destroyed);
	DCHECK(cuGraphDestroy(graph));
	/* The destructor runs in another thread. */
	while (!destroyed)
		;
	REQUIRE(destroyed == 10, "%d", destroyed);
	DEXPECT(cuUserObjectCreate(NULL, &ten, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuUserObjectCreate(&object, &ten, destroy, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
		CUDA_ERROR_INVALID_VALUE);
	return verified("a graph keeps an object");
}

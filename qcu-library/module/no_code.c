// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program that has no code for the device: says for which GPUs it has some.
 */
#include "qcu-library/device/device.h"
#include "qcu-library/loader/gpus.h"
#include "qcu-library/module/module.h"

void qcul_module_say_no_code(const void *image, size_t bytes)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	const struct qcu_device_desc *desc;
	struct qcul_gpus there = {0};
	char text[256];

	qcul_gpus_add(image, bytes, &there);
	/* An image without a list is machine code for one GPU, or PTX. */
	if (!there.count || qcul_device_desc(qcul_self.device, &desc))
		return;
	qcul_gpus_text(&there, text, sizeof(text));
	qcul_say_once(
		&said,
		"the program has no code for this GPU, of compute capability %d.%d; there is: %s",
		desc->attr[cudaDevAttrComputeCapabilityMajor],
		desc->attr[cudaDevAttrComputeCapabilityMinor], text);
}

// SPDX-License-Identifier: GPL-2.0-or-later
// Multiplies each element by a factor and adds its index.
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data {
	uint data[];
};
layout(push_constant) uniform Push {
	uint count;
	uint factor;
};

void main()
{
	uint i = gl_GlobalInvocationID.x;

	if (i < count)
		data[i] = data[i] * factor + i;
}

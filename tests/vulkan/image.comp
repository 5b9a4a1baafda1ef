// SPDX-License-Identifier: GPL-2.0-or-later
// Multiplies each pixel by a factor and adds its number. The second number is the width.
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, r32ui) uniform uimage2D image;
layout(push_constant) uniform Push {
	uint factor;
	uint width;
};

void main()
{
	ivec2 at = ivec2(gl_GlobalInvocationID.xy);

	if (all(lessThan(at, imageSize(image))))
		imageStore(image, at, uvec4(imageLoad(image, at).x * factor + at.y * width + at.x));
}

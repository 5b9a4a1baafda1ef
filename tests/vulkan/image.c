// SPDX-License-Identifier: GPL-2.0-or-later
/* An image is cleared to one colour, a shader changes it twice, and it is copied into a buffer. */
#include "image.h"

#include <stdio.h>
#include <stdlib.h>

#include "image_spv.h"

/* No multiples of the shader's groups, which are 8 by 8. */
enum { WIDTH = 67, HEIGHT = 33, FACTOR = 3, PASSES = 2, COLOUR = 0xc0ffee };

struct picture {
	VkImage image;
	VkDeviceMemory memory;
	VkImageView view;
};

static const VkImageSubresourceRange whole = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};

static void make_picture(struct vk *vk, struct picture *p)
{
	VkImageCreateInfo info = {.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
				  .imageType = VK_IMAGE_TYPE_2D,
				  .format = VK_FORMAT_R32_UINT,
				  .extent = {WIDTH, HEIGHT, 1},
				  .mipLevels = 1,
				  .arrayLayers = 1,
				  .samples = VK_SAMPLE_COUNT_1_BIT,
				  .usage = VK_IMAGE_USAGE_STORAGE_BIT |
					   VK_IMAGE_USAGE_TRANSFER_SRC_BIT |
					   VK_IMAGE_USAGE_TRANSFER_DST_BIT};
	VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
	VkImageViewCreateInfo view = {.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO,
				      .viewType = VK_IMAGE_VIEW_TYPE_2D,
				      .format = VK_FORMAT_R32_UINT,
				      .subresourceRange = whole};
	VkMemoryRequirements needs;

	VK(vkCreateImage(vk->device, &info, NULL, &p->image));
	vkGetImageMemoryRequirements(vk->device, p->image, &needs);
	allocate.allocationSize = needs.size;
	allocate.memoryTypeIndex = (uint32_t)vk_memory_type(vk, needs.memoryTypeBits, 0);
	VK(vkAllocateMemory(vk->device, &allocate, NULL, &p->memory));
	VK(vkBindImageMemory(vk->device, p->image, p->memory, 0));
	view.image = p->image;
	VK(vkCreateImageView(vk->device, &view, NULL, &p->view));
}

static void free_picture(struct vk *vk, struct picture *p)
{
	vkDestroyImageView(vk->device, p->view, NULL);
	vkDestroyImage(vk->device, p->image, NULL);
	vkFreeMemory(vk->device, p->memory, NULL);
}

/* What comes after waits for what came before, copies and shaders. */
static void wait_for_all(VkCommandBuffer commands, VkImage image, VkImageLayout from)
{
	VkAccessFlags reads = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_SHADER_READ_BIT;
	VkAccessFlags writes = VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_SHADER_WRITE_BIT;
	VkPipelineStageFlags stages =
		VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
	VkImageMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
					.srcAccessMask =
						from == VK_IMAGE_LAYOUT_UNDEFINED ? 0 : writes,
					.dstAccessMask = reads | writes,
					.oldLayout = from,
					.newLayout = VK_IMAGE_LAYOUT_GENERAL,
					.srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
					.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
					.image = image,
					.subresourceRange = whole};

	vkCmdPipelineBarrier(commands, stages, stages, 0, 0, NULL, 0, NULL, 1, &barrier);
}

static void record(struct vk *vk, struct job *job, const struct shader *shader,
		   const struct picture *p, const struct buffer *b)
{
	VkDescriptorImageInfo info = {.imageView = p->view, .imageLayout = VK_IMAGE_LAYOUT_GENERAL};
	VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
				      .descriptorCount = 1,
				      .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_IMAGE,
				      .pImageInfo = &info};
	VkClearColorValue colour = {.uint32 = {COLOUR}};
	VkBufferImageCopy copy = {.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
				  .imageExtent = {WIDTH, HEIGHT, 1}};
	const uint32_t numbers[2] = {FACTOR, WIDTH};

	vk_begin(vk, job, shader);
	write.dstSet = job->set;
	vkUpdateDescriptorSets(vk->device, 1, &write, 0, NULL);
	wait_for_all(job->commands, p->image, VK_IMAGE_LAYOUT_UNDEFINED);
	vkCmdClearColorImage(job->commands, p->image, VK_IMAGE_LAYOUT_GENERAL, &colour, 1, &whole);
	for (int i = 0; i < PASSES; i++) {
		wait_for_all(job->commands, p->image, VK_IMAGE_LAYOUT_GENERAL);
		vk_dispatch(job, shader, (WIDTH + 7) / 8, (HEIGHT + 7) / 8, numbers);
	}
	wait_for_all(job->commands, p->image, VK_IMAGE_LAYOUT_GENERAL);
	vkCmdCopyImageToBuffer(job->commands, p->image, VK_IMAGE_LAYOUT_GENERAL, b->buffer, 1,
			       &copy);
	VK(vkEndCommandBuffer(job->commands));
}

static void verify(const struct buffer *b)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < WIDTH * HEIGHT; i++) {
		uint32_t x = COLOUR;

		for (int pass = 0; pass < PASSES; pass++)
			x = x * FACTOR + i;
		if (b->data[i] != x) {
			fprintf(stderr, "image: pixel %u is %u, expected %u\n", i, b->data[i], x);
			exit(1);
		}
		sum += x;
	}
	printf("image: %08x\n", sum);
}

void image(struct vk *vk)
{
	struct shader shader;
	struct picture p;
	struct buffer b;
	struct job job;

	vk_shader(vk, &shader, image_spv, sizeof(image_spv), VK_DESCRIPTOR_TYPE_STORAGE_IMAGE);
	make_picture(vk, &p);
	vk_buffer(vk, &b, WIDTH * HEIGHT * 4);
	record(vk, &job, &shader, &p, &b);
	vk_run(vk, &job, 0);
	verify(&b);
	vk_end(vk, &job);
	vk_free(vk, &b);
	free_picture(vk, &p);
	vk_shader_end(vk, &shader);
}

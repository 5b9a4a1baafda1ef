// SPDX-License-Identifier: GPL-2.0-or-later
/* The parts of a Vulkan program that all programs here share. */
#include "vk.h"

#include <stdio.h>
#include <stdlib.h>

#include "scale_spv.h"

void vk_failed(const char *what, VkResult result, const char *file, int line)
{
	fprintf(stderr, "%s:%d: %s: %d\n", file, line, what, result);
	exit(1);
}

static void show_driver(VkPhysicalDevice gpu)
{
	VkPhysicalDeviceDriverProperties driver = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
	VkPhysicalDeviceProperties2 properties = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &driver};
	const char *wanted = getenv("VULKAN_DRIVER");

	vkGetPhysicalDeviceProperties2(gpu, &properties);
	fprintf(stderr, "driver %d, %s: %s\n", driver.driverID, driver.driverName,
		properties.properties.deviceName);
	if (wanted && atoi(wanted) != (int)driver.driverID) {
		fprintf(stderr, "the driver should be %s\n", wanted);
		exit(3);
	}
}

static void choose_family(struct vk *vk)
{
	VkQueueFamilyProperties families[16];
	uint32_t n = 16;

	vkGetPhysicalDeviceQueueFamilyProperties(vk->gpu, &n, families);
	for (vk->family = 0; vk->family < n; vk->family++)
		if (families[vk->family].queueFlags & VK_QUEUE_COMPUTE_BIT)
			break;
	if (vk->family == n) {
		fprintf(stderr, "this GPU does not compute\n");
		exit(1);
	}
	vk->queues = families[vk->family].queueCount;
	if (vk->queues > 4)
		vk->queues = 4;
}

static void open_device(struct vk *vk)
{
	static const float priorities[4] = {1, 1, 1, 1};
	VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
		.timelineSemaphore = VK_TRUE};
	VkDeviceQueueCreateInfo queues = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
					  .pQueuePriorities = priorities};
	VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
				   .pNext = &timeline,
				   .queueCreateInfoCount = 1,
				   .pQueueCreateInfos = &queues};

	choose_family(vk);
	queues.queueFamilyIndex = vk->family;
	queues.queueCount = vk->queues;
	VK(vkCreateDevice(vk->gpu, &info, NULL, &vk->device));
	for (uint32_t i = 0; i < vk->queues; i++)
		vkGetDeviceQueue(vk->device, vk->family, i, &vk->queue[i]);
}

void vk_shader(struct vk *vk, struct shader *s, const uint32_t *words, size_t size,
	       VkDescriptorType type)
{
	VkDescriptorSetLayoutBinding binding = {.descriptorType = type,
						.descriptorCount = 1,
						.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
	VkDescriptorSetLayoutCreateInfo set = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
		.bindingCount = 1,
		.pBindings = &binding};
	VkPushConstantRange push = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = 8};
	VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
					     .setLayoutCount = 1,
					     .pSetLayouts = &s->set_layout,
					     .pushConstantRangeCount = 1,
					     .pPushConstantRanges = &push};
	VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
					 .codeSize = size,
					 .pCode = words};
	VkComputePipelineCreateInfo info = {.sType =
						    VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
	VkShaderModule module;

	s->type = type;
	VK(vkCreateDescriptorSetLayout(vk->device, &set, NULL, &s->set_layout));
	VK(vkCreatePipelineLayout(vk->device, &layout, NULL, &s->layout));
	VK(vkCreateShaderModule(vk->device, &code, NULL, &module));
	info.layout = s->layout;
	info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
	info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
	info.stage.module = module;
	info.stage.pName = "main";
	VK(vkCreateComputePipelines(vk->device, VK_NULL_HANDLE, 1, &info, NULL, &s->pipeline));
	vkDestroyShaderModule(vk->device, module, NULL);
}

void vk_shader_end(struct vk *vk, struct shader *s)
{
	vkDestroyPipeline(vk->device, s->pipeline, NULL);
	vkDestroyPipelineLayout(vk->device, s->layout, NULL);
	vkDestroyDescriptorSetLayout(vk->device, s->set_layout, NULL);
}

void vk_open(struct vk *vk)
{
	VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
				 .apiVersion = VK_API_VERSION_1_2};
	VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
				     .pApplicationInfo = &app};
	uint32_t n = 1;
	VkResult rc;

	VK(vkCreateInstance(&info, NULL, &vk->instance));
	rc = vkEnumeratePhysicalDevices(vk->instance, &n, &vk->gpu);
	if (rc != VK_INCOMPLETE)
		VK(rc);
	if (n == 0) {
		fprintf(stderr, "there is no GPU\n");
		exit(1);
	}
	show_driver(vk->gpu);
	open_device(vk);
	vk_shader(vk, &vk->scale, scale_spv, sizeof(scale_spv), VK_DESCRIPTOR_TYPE_STORAGE_BUFFER);
}

void vk_close(struct vk *vk)
{
	vk_shader_end(vk, &vk->scale);
	vkDestroyDevice(vk->device, NULL);
	vkDestroyInstance(vk->instance, NULL);
}

int vk_memory_type(const struct vk *vk, uint32_t bits, VkMemoryPropertyFlags wanted)
{
	VkPhysicalDeviceMemoryProperties p;

	vkGetPhysicalDeviceMemoryProperties(vk->gpu, &p);
	for (uint32_t i = 0; i < p.memoryTypeCount; i++)
		if (bits & 1u << i && (p.memoryTypes[i].propertyFlags & wanted) == wanted)
			return (int)i;
	return -1;
}

void vk_buffer(struct vk *vk, struct buffer *b, VkDeviceSize size)
{
	VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
				   .size = size,
				   .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
					    VK_BUFFER_USAGE_TRANSFER_DST_BIT};
	VkMemoryAllocateInfo memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
	VkMemoryRequirements needs;
	void *p;

	VK(vkCreateBuffer(vk->device, &info, NULL, &b->buffer));
	vkGetBufferMemoryRequirements(vk->device, b->buffer, &needs);
	memory.allocationSize = needs.size;
	memory.memoryTypeIndex = (uint32_t)vk_memory_type(
		vk, needs.memoryTypeBits,
		VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
	VK(vkAllocateMemory(vk->device, &memory, NULL, &b->memory));
	VK(vkBindBufferMemory(vk->device, b->buffer, b->memory, 0));
	VK(vkMapMemory(vk->device, b->memory, 0, VK_WHOLE_SIZE, 0, &p));
	b->data = p;
	b->size = size;
}

void vk_free(struct vk *vk, struct buffer *b)
{
	vkDestroyBuffer(vk->device, b->buffer, NULL);
	vkFreeMemory(vk->device, b->memory, NULL);
}

void vk_begin(struct vk *vk, struct job *job, const struct shader *s)
{
	VkDescriptorPoolSize size = {s->type, 1};
	VkDescriptorPoolCreateInfo sets = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
					   .maxSets = 1,
					   .poolSizeCount = 1,
					   .pPoolSizes = &size};
	VkDescriptorSetAllocateInfo set = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
					   .descriptorSetCount = 1,
					   .pSetLayouts = &s->set_layout};
	VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
					.queueFamilyIndex = vk->family};
	VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
					    .commandBufferCount = 1};
	VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};

	VK(vkCreateDescriptorPool(vk->device, &sets, NULL, &job->sets));
	set.descriptorPool = job->sets;
	VK(vkAllocateDescriptorSets(vk->device, &set, &job->set));
	VK(vkCreateCommandPool(vk->device, &pool, NULL, &job->pool));
	info.commandPool = job->pool;
	VK(vkAllocateCommandBuffers(vk->device, &info, &job->commands));
	VK(vkBeginCommandBuffer(job->commands, &begin));
}

void vk_dispatch(struct job *job, const struct shader *s, uint32_t x, uint32_t y,
		 const uint32_t numbers[2])
{
	vkCmdBindPipeline(job->commands, VK_PIPELINE_BIND_POINT_COMPUTE, s->pipeline);
	vkCmdBindDescriptorSets(job->commands, VK_PIPELINE_BIND_POINT_COMPUTE, s->layout, 0, 1,
				&job->set, 0, NULL);
	vkCmdPushConstants(job->commands, s->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 8, numbers);
	vkCmdDispatch(job->commands, x, y, 1);
}

void vk_record(struct vk *vk, struct job *job, const struct buffer *b, uint32_t count,
	       uint32_t factor)
{
	VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
				   .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
				   .dstAccessMask = VK_ACCESS_HOST_READ_BIT |
						    VK_ACCESS_SHADER_READ_BIT |
						    VK_ACCESS_SHADER_WRITE_BIT};
	VkDescriptorBufferInfo buffer = {b->buffer, 0, VK_WHOLE_SIZE};
	VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
				      .descriptorCount = 1,
				      .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
				      .pBufferInfo = &buffer};
	const uint32_t numbers[2] = {count, factor};

	vk_begin(vk, job, &vk->scale);
	write.dstSet = job->set;
	vkUpdateDescriptorSets(vk->device, 1, &write, 0, NULL);
	vk_dispatch(job, &vk->scale, (count + 63) / 64, 1, numbers);
	vkCmdPipelineBarrier(job->commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
			     VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0,
			     1, &barrier, 0, NULL, 0, NULL);
	VK(vkEndCommandBuffer(job->commands));
}

void vk_end(struct vk *vk, struct job *job)
{
	vkDestroyCommandPool(vk->device, job->pool, NULL);
	vkDestroyDescriptorPool(vk->device, job->sets, NULL);
}

void vk_run(struct vk *vk, const struct job *job, uint32_t queue)
{
	VkFenceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
	VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
			       .commandBufferCount = 1,
			       .pCommandBuffers = &job->commands};
	VkFence fence;

	VK(vkCreateFence(vk->device, &info, NULL, &fence));
	VK(vkQueueSubmit(vk->queue[queue], 1, &submit, fence));
	VK(vkWaitForFences(vk->device, 1, &fence, VK_TRUE, UINT64_MAX));
	vkDestroyFence(vk->device, fence, NULL);
}

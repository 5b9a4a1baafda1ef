/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the Vulkan programs here share: a device, buffers that the program can write, and a pipeline
 * that computes data[i] = data[i] * factor + i. Each failure of Vulkan ends the program with its
 * code.
 */
#ifndef VK_H
#define VK_H

#include <stddef.h>
#include <stdint.h>
#include <vulkan/vulkan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A compute shader that has one descriptor, as binding 0, and two numbers as push constants. */
struct shader {
	VkDescriptorType type;
	VkDescriptorSetLayout set_layout;
	VkPipelineLayout layout;
	VkPipeline pipeline;
};

struct vk {
	VkInstance instance;
	VkPhysicalDevice gpu;
	VkDevice device;
	uint32_t family;
	uint32_t queues; /* of those that the family has, we take up to 4 */
	VkQueue queue[4];
	struct shader scale;
};

struct buffer {
	VkBuffer buffer;
	VkDeviceMemory memory;
	VkDeviceSize size;
	uint32_t *data;
};

/* What one thread needs to submit work: recorded once, it can be submitted again. */
struct job {
	VkCommandPool pool;
	VkDescriptorPool sets;
	VkDescriptorSet set;
	VkCommandBuffer commands;
};

#define VK(call)                                                         \
	do {                                                             \
		VkResult vk_result = (call);                             \
		if (vk_result != VK_SUCCESS)                             \
			vk_failed(#call, vk_result, __FILE__, __LINE__); \
	} while (0)

void vk_failed(const char *what, VkResult result, const char *file, int line)
	__attribute__((noreturn));

/*
 * Opens the first GPU. Its name goes to standard error. With VULKAN_DRIVER in the environment, the
 * program ends with 3 unless the driver has this number (VkDriverId).
 */
void vk_open(struct vk *vk);
void vk_close(struct vk *vk);

/* The kind of memory that has all these properties and is in bits, or -1. */
int vk_memory_type(const struct vk *vk, uint32_t bits, VkMemoryPropertyFlags wanted);

void vk_buffer(struct vk *vk, struct buffer *b, VkDeviceSize size);
void vk_free(struct vk *vk, struct buffer *b);

/* Records one pass over the first count elements. */
void vk_record(struct vk *vk, struct job *job, const struct buffer *b, uint32_t count,
	       uint32_t factor);
void vk_end(struct vk *vk, struct job *job);

/* Submits the job to a queue, and waits until it is done. */
void vk_run(struct vk *vk, const struct job *job, uint32_t queue);

/*
 * For other shaders. vk_begin() begins the job's commands, and makes job->set, into which the
 * caller writes what the shader works on. Then vk_dispatch() records x by y groups of it.
 */
void vk_shader(struct vk *vk, struct shader *s, const uint32_t *code, size_t size,
	       VkDescriptorType type);
void vk_shader_end(struct vk *vk, struct shader *s);
void vk_begin(struct vk *vk, struct job *job, const struct shader *s);
void vk_dispatch(struct job *job, const struct shader *s, uint32_t x, uint32_t y,
		 const uint32_t numbers[2]);

#ifdef __cplusplus
}
#endif

#endif

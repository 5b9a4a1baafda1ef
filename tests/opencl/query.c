// SPDX-License-Identifier: GPL-2.0-or-later
// Platform, device and context: what they tell, how they are counted. Images, which this PoCL does
// not have.
#include "cl.h"

const char *const group_source = "kernel void nothing(void) {}\n";

static void text_of(cl_device_info what, char *text, size_t size)
{
	size_t used;
	CL(clGetDeviceInfo(device, what, size, text, &used));
	CHECK(used > 0 && used <= size && strlen(text) == used - 1);
}

TEST(platform_queries)
{
	char text[8192];
	size_t size;
	cl_uint count;
	CL(clGetPlatformIDs(0, NULL, &count));
	CHECK(count >= 1);
	CL(clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(text), text, NULL));
	printf(" %s\n", text);
	CHECK(!strcmp(text, "Portable Computing Language"));
	CL(clGetPlatformInfo(platform, CL_PLATFORM_PROFILE, sizeof(text), text, &size));
	CHECK(!strcmp(text, "FULL_PROFILE") && size == 13);
	CL(clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof(text), text, NULL));
	CHECK(!strncmp(text, "OpenCL 3.0 ", 11));
	EXPECT(CL_INVALID_VALUE, clGetPlatformInfo(platform, CL_PLATFORM_NAME, 3, text, NULL));
}

TEST(device_queries)
{
	static const char *const expected[] = {"cl_khr_byte_addressable_store", "cl_khr_fp64",
					       "cl_khr_fp16", "cl_khr_int64_base_atomics",
					       "cl_khr_global_int32_base_atomics"};
	char text[16384];
	cl_device_type type;
	cl_bool compiler, available;
	text_of(CL_DEVICE_VENDOR, text, sizeof(text));
	CHECK(!strcmp(text, "NVIDIA Corporation"));
	text_of(CL_DEVICE_VERSION, text, sizeof(text));
	CHECK(!strncmp(text, "OpenCL 3.0 ", 11));
	text_of(CL_DEVICE_OPENCL_C_VERSION, text, sizeof(text));
	CHECK(!strncmp(text, "OpenCL C ", 9));
	text_of(CL_DEVICE_EXTENSIONS, text, sizeof(text));
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		printf(" %s: %s\n", expected[i], strstr(text, expected[i]) ? "yes" : "no");
	CL(clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof(type), &type, NULL));
	CL(clGetDeviceInfo(device, CL_DEVICE_COMPILER_AVAILABLE, sizeof(compiler), &compiler,
			   NULL));
	CL(clGetDeviceInfo(device, CL_DEVICE_AVAILABLE, sizeof(available), &available, NULL));
	CHECK(type == CL_DEVICE_TYPE_GPU && compiler && available);
}

TEST(device_limits)
{
	cl_ulong memory, most, local, constant;
	size_t group, items[3];
	cl_uint units, bits, dimensions, align;
	cl_device_svm_capabilities svm;
	CL(clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, 8, &memory, NULL));
	CL(clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 8, &most, NULL));
	CL(clGetDeviceInfo(device, CL_DEVICE_LOCAL_MEM_SIZE, 8, &local, NULL));
	CL(clGetDeviceInfo(device, CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, 8, &constant, NULL));
	CL(clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(group), &group, NULL));
	CL(clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, 4, &dimensions, NULL));
	CL(clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof(items), items, NULL));
	CL(clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, 4, &units, NULL));
	CL(clGetDeviceInfo(device, CL_DEVICE_ADDRESS_BITS, 4, &bits, NULL));
	CL(clGetDeviceInfo(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, 4, &align, NULL));
	CL(clGetDeviceInfo(device, CL_DEVICE_SVM_CAPABILITIES, sizeof(svm), &svm, NULL));
	CHECK(memory >= most / 2 && most >= 128 << 20 && units > 0);
	CHECK(svm & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER);
	printf(" %llu bytes of local, %llu of constant memory; work groups of %zu; %zu x %zu x "
	       "%zu; %u bits\n",
	       (unsigned long long)local, (unsigned long long)constant, group, items[0], items[1],
	       items[2], bits);
	CHECK(dimensions == 3 && align >= 128);
}

TEST(contexts)
{
	cl_int code;
	cl_uint devices, count;
	const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
						    (cl_context_properties)platform, 0};
	cl_context other =
		clCreateContextFromType(properties, CL_DEVICE_TYPE_GPU, NULL, NULL, &code);
	CL(code);
	CL(clGetContextInfo(other, CL_CONTEXT_NUM_DEVICES, sizeof(devices), &devices, NULL));
	CHECK(devices >= 1);
	CL(clRetainContext(other));
	CL(clGetContextInfo(other, CL_CONTEXT_REFERENCE_COUNT, sizeof(count), &count, NULL));
	CHECK(count == 2);
	cl_command_queue q = clCreateCommandQueueWithProperties(other, device, NULL, &code);
	CL(code);
	cl_mem foreign = counting(16, 0, CL_MEM_READ_WRITE);
	cl_int numbers[16];
	EXPECT(CL_INVALID_CONTEXT,
	       clEnqueueReadBuffer(q, foreign, CL_TRUE, 0, 64, numbers, 0, NULL, NULL));
	CL(clReleaseMemObject(foreign));
	CL(clReleaseContext(other));
	/* The queue keeps its context. */
	CL(clFinish(q));
	CL(clReleaseContext(other));
	CL(clReleaseCommandQueue(q));
}

TEST(buffer_queries)
{
	cl_mem buffer = counting(100, 0, CL_MEM_READ_ONLY);
	cl_mem_object_type type;
	cl_mem_flags flags;
	size_t size;
	cl_context c;
	CL(clGetMemObjectInfo(buffer, CL_MEM_TYPE, sizeof(type), &type, NULL));
	CL(clGetMemObjectInfo(buffer, CL_MEM_FLAGS, sizeof(flags), &flags, NULL));
	CL(clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof(size), &size, NULL));
	CL(clGetMemObjectInfo(buffer, CL_MEM_CONTEXT, sizeof(c), &c, NULL));
	CHECK(type == CL_MEM_OBJECT_BUFFER && (flags & CL_MEM_READ_ONLY) && size == 400 &&
	      c == context);
	CL(clReleaseMemObject(buffer));
}

TEST(sub_devices)
{
	const cl_device_partition_property equally[] = {CL_DEVICE_PARTITION_EQUALLY, 2, 0};
	cl_device_id parts[8], parent;
	cl_uint count;
	cl_int code = clCreateSubDevices(device, equally, 8, parts, &count);
	printf(" in equal parts: %s\n", code_name(code));
	CHECK(code != CL_SUCCESS);
	CL(clGetDeviceInfo(device, CL_DEVICE_PARENT_DEVICE, sizeof(parent), &parent, NULL));
	CHECK(!parent);
	CL(clRetainDevice(device));
	CL(clReleaseDevice(device));
}

TEST(images)
{
	cl_bool images;
	cl_int code;
	cl_uint formats = 0;
	const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
	const cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 16, .image_height = 16};
	CL(clGetDeviceInfo(device, CL_DEVICE_IMAGE_SUPPORT, sizeof(images), &images, NULL));
	printf(" images: %s\n", images ? "yes" : "no");
	CHECK(!images);
	clCreateImage(context, CL_MEM_READ_ONLY, &format, &desc, NULL, &code);
	printf(" an image: %s\n", code_name(code));
	CHECK(code == CL_INVALID_OPERATION);
	clCreateSamplerWithProperties(context, NULL, &code);
	printf(" a sampler: %s\n", code_name(code));
	code = clGetSupportedImageFormats(context, CL_MEM_READ_ONLY, CL_MEM_OBJECT_IMAGE2D, 0, NULL,
					  &formats);
	printf(" formats: %s, %u\n", code_name(code), formats);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The software GPU's properties, and which compute capability it accepts. */
#include <stdio.h>

#include "qcu-device/soft/gpu/soft.h"
#include "tests/unit/soft/test_soft_fake.h"

static int try_sm(const char *sm, struct qcu_device_desc *desc)
{
	struct be_options opt = {.gpus = 3, .vram = 64u << 20, .threads = 5};
	struct be *be;
	int err;

	if (sm)
		setenv("QCU_SOFT_SM", sm, 1);
	else
		unsetenv("QCU_SOFT_SM");
	err = be_soft.open(&be, &opt);
	if (err) {
		assert_null(be);
		return err;
	}
	assert_int_equal(be_soft.device_desc(be, 2, desc), QCU_ERR_Success);
	be_soft.close(be);
	return 0;
}

static void refuses_capabilities_that_no_gpu_has(void **state)
{
	static const char *const bad[] = {"0",	 "1",	  "74",	 "76",	"99",
					  "7.5", "sm_75", "-75", "75x", "9999999999999999999999",
					  "1075"};
	struct qcu_device_desc d;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(try_sm(bad[i], &d), QCU_ERR_InvalidValue);
}

static void is_a_plausible_gpu(void **state)
{
	struct qcu_device_desc d;

	(void)state;
	assert_int_equal(try_sm(NULL, &d), 0);
	assert_string_equal(d.name, "qCUDA software GPU");
	assert_int_equal(d.uuid[15], 2);
	assert_int_equal(d.total_mem, 64u << 20);
	assert_int_equal(d.attr[1], 1024);	 /* cudaDevAttrMaxThreadsPerBlock */
	assert_int_equal(d.attr[4], 64);	 /* cudaDevAttrMaxBlockDimZ */
	assert_int_equal(d.attr[5], INT32_MAX);	 /* cudaDevAttrMaxGridDimX */
	assert_int_equal(d.attr[8], 48 << 10);	 /* cudaDevAttrMaxSharedMemoryPerBlock */
	assert_int_equal(d.attr[10], 32);	 /* cudaDevAttrWarpSize */
	assert_int_equal(d.attr[16], 5);	 /* cudaDevAttrMultiProcessorCount */
	assert_int_equal(d.attr[33], 3);	 /* cudaDevAttrPciBusId */
	assert_int_equal(d.attr[39], 2048);	 /* cudaDevAttrMaxThreadsPerMultiProcessor */
	assert_int_equal(d.attr[75], 9);	 /* cudaDevAttrComputeCapabilityMajor */
	assert_int_equal(d.attr[76], 0);	 /* cudaDevAttrComputeCapabilityMinor */
	assert_int_equal(d.attr[97], 227 << 10); /* cudaDevAttrMaxSharedMemoryPerBlockOptin */
	assert_int_equal(d.attr[131], -1);	 /* cudaDevAttrNumaId */
}

static void follows_the_capability_asked_for(void **state)
{
	struct qcu_device_desc d;

	(void)state;
	assert_int_equal(try_sm("75", &d), 0);
	assert_int_equal(d.attr[75], 7);
	assert_int_equal(d.attr[76], 5);
	assert_int_equal(d.attr[39], 1024);
	assert_int_equal(d.attr[97], 64 << 10);
	assert_int_equal(try_sm("120", &d), 0);
	assert_int_equal(d.attr[75], 12);
	assert_int_equal(try_sm("", &d), 0);
	assert_int_equal(d.attr[75], 9);
}

/*
 * Every attribute by which programs size their work must be nonzero. The list of these attributes
 * comes from the toolkit, so that a new one is noticed.
 */
static void has_every_limit_that_the_toolkit_knows(void **state)
{
	const char *home = getenv("CUDA_HOME");
	char path[512], line[512], name[128];
	struct qcu_device_desc d;
	unsigned int n = 0;
	int attr;
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/include/driver_types.h", home ? home : "/usr/local/cuda");
	f = fopen(path, "r");
	if (!f) {
		print_message("skipped: no %s\n", path);
		skip();
	}
	assert_int_equal(try_sm(NULL, &d), 0);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, " cudaDevAttr%127[A-Za-z0-9] = %d", name, &attr) != 2)
			continue;
		n++;
		assert_in_range(attr, 1, QCU_ATTRS - 1);
		if ((strncmp(name, "Max", 3) || !strncmp(name, "MaxPersisting", 13) ||
		     !strncmp(name, "MaxAccessPolicy", 15)) &&
		    !strstr(name, "Alignment"))
			continue;
		if (d.attr[attr] <= 0)
			fail_msg("cudaDevAttr%s is %d", name, d.attr[attr]);
	}
	fclose(f);
	assert_in_range(n, 100, QCU_ATTRS);
}

static void the_library_version_is_the_toolkits(void **state)
{
	struct be *be = fake_open(1, 1 << 20);
	uint32_t driver = 0, runtime = 0;
	unsigned int n = 0;

	(void)state;
	assert_int_equal(be_soft.versions(be, &driver, &runtime), QCU_ERR_Success);
	assert_in_range(driver, 13000, 13999);
	assert_in_range(runtime, 13000, driver);
	assert_int_equal(be_soft.device_count(be, &n), QCU_ERR_Success);
	assert_int_equal(n, 1);
	be_soft.close(be);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_capabilities_that_no_gpu_has),
		cmocka_unit_test(is_a_plausible_gpu),
		cmocka_unit_test(follows_the_capability_asked_for),
		cmocka_unit_test(has_every_limit_that_the_toolkit_knows),
		cmocka_unit_test(the_library_version_is_the_toolkits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

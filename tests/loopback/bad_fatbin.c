// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Programs whose device code cannot be used: no code for this GPU, or code that is damaged, cut
 * short, or wrong PTX. The first use returns CUDA's error, and a message on stderr gives the
 * reason. Everything else in the program goes on, also kernels of its other fat binaries.
 */
#include "check.h"

#include <elf.h>
#include <unistd.h>

#include "qcu-library/link/compiler_abi.h"

#define HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"
#define GOOD                                                           \
	HEAD ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %d<2>;\n" \
	     "ld.param.u64 %d1, [p];\nst.u32 [%d1], 42;\nret;\n}\n"

struct wrapper {
	int magic, version;
	const void *data;
	void *unused;
};

/* The layout that nvcc writes: a container with one entry, see qcu-device/soft/code/fatbin.c. */
struct image {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size;
	uint16_t kind, entry_version;
	uint32_t entry_header_size;
	uint64_t payload_size;
	uint32_t packed_size, options;
	uint16_t minor, major;
	uint32_t arch;
	uint32_t name_at, name_size;
	uint64_t flags, rsvd, text_size;
	char payload[512];
};

static void make_image(struct image *im, int kind, unsigned int arch, const void *text, size_t len)
{
	memset(im, 0, sizeof(*im));
	im->magic = 0xba55ed50;
	im->version = 1;
	im->header_size = 16;
	im->size = 64 + sizeof(im->payload);
	im->kind = (uint16_t)kind;
	im->entry_version = 0x101;
	im->entry_header_size = 64;
	im->payload_size = sizeof(im->payload);
	im->arch = arch;
	REQUIRE(len < sizeof(im->payload), "%zu", len);
	memcpy(im->payload, text, len);
}

static void make_ptx(struct image *im, unsigned int arch, const char *text)
{
	make_image(im, 1, arch, text, strlen(text));
}

/* An ELF file without any machine code in it. */
static void make_machine_code(struct image *im)
{
	const Elf64_Ehdr head = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_machine = 190,
		.e_ehsize = sizeof(head),
	};

	make_image(im, 2, 75, &head, sizeof(head));
}

static int *dev;

/* Launches an image's kernel `k` and returns the error. */
static cudaError_t launch(const struct image *im)
{
	/* Never unregistered, as in a program that goes on. */
	static struct wrapper wrappers[64];
	static unsigned int used;
	struct image *copy = malloc(sizeof(*copy));
	struct wrapper *w = &wrappers[used++];
	char *host = malloc(1);
	void *args[] = {&dev};
	const dim3 one = {1, 1, 1};
	void **handle;

	REQUIRE(copy && host && used <= 64, "no memory");
	*copy = *im;
	*w = (struct wrapper){.magic = 0x466243b1, .version = 1, .data = copy};
	handle = __cudaRegisterFatBinary(w);
	__cudaRegisterFunction(handle, host, (char *)"k", "k", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFatBinaryEnd(handle);
	return cudaLaunchKernel(host, one, one, args, 0, NULL);
}

static void good_one_works(void)
{
	struct image im;
	int value = 0;

	make_ptx(&im, 75, GOOD);
	OK(cudaMemset(dev, 0, sizeof(*dev)));
	OK(launch(&im));
	OK(cudaDeviceSynchronize());
	OK(cudaMemcpy(&value, dev, sizeof(value), cudaMemcpyDeviceToHost));
	REQUIRE(value == 42, "%d", value);
}

/* How often it was said which code there is. */
static unsigned int there_is;

/* The launch must return this code, twice, and stderr must hold the text. */
static void refused(const struct image *im, cudaError_t code, const char *sentence)
{
	char said[4096];
	FILE *f = tmpfile();
	int err = dup(2);
	cudaError_t got;
	size_t n;

	REQUIRE(f && err >= 0, "no file");
	dup2(fileno(f), 2);
	got = launch(im);
	dup2(err, 2);
	close(err);
	rewind(f);
	n = fread(said, 1, sizeof(said) - 1, f);
	said[n] = '\0';
	fclose(f);
	EXPECT(got, code);
	EXPECT(cudaGetLastError(), code);
	OK(cudaGetLastError());
	REQUIRE(strstr(said, sentence), "it says: %s", said);
	there_is += !!strstr(said, "there is: ");
	good_one_works();
}

int main(void)
{
	struct image im;

	OK(cudaMalloc((void **)&dev, sizeof(*dev)));
	good_one_works();

	make_image(&im, 2, 75, "machine code", 12);
	refused(&im, cudaErrorInvalidKernelImage, "no machine code of a GPU");
	make_machine_code(&im);
	refused(&im, cudaErrorNoKernelImageForDevice,
		"qcuda: the program has no code for this GPU, of compute capability 9.0; there is: "
		"sm_75\n");
	refused(&im, cudaErrorNoKernelImageForDevice, "compile with -arch=compute_90");
	make_ptx(&im, 100, GOOD);
	refused(&im, cudaErrorNoKernelImageForDevice, "compile with -arch=compute_90");

	make_ptx(&im, 75, GOOD);
	im.version = 9;
	refused(&im, cudaErrorInvalidKernelImage, "damaged");
	make_ptx(&im, 75, GOOD);
	im.payload_size++;
	refused(&im, cudaErrorInvalidKernelImage, "damaged");
	make_ptx(&im, 75, GOOD);
	im.size = 100; /* ends within its one entry */
	refused(&im, cudaErrorInvalidKernelImage, "damaged");
	make_ptx(&im, 75, GOOD);
	im.flags = 0x8000; /* says Zstandard, but is not */
	im.packed_size = sizeof(im.payload);
	im.text_size = sizeof(im.payload);
	refused(&im, cudaErrorInvalidKernelImage, "unpack");

	make_ptx(&im, 75, HEAD ".frobnicate 1;\n");
	refused(&im, cudaErrorInvalidPtx, "line 4");
	make_ptx(&im, 75, HEAD ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %d<2>;\nadd.u");
	refused(&im, cudaErrorInvalidPtx, "line 7");
	make_ptx(&im, 75,
		 HEAD ".visible .entry k(.param .u64 p)\n{\n.reg .f64 %f<2>;\n"
		      "add.u32 %f1, %f1, %f1;\nret;\n}\n");
	refused(&im, cudaErrorInvalidPtx, "line 7");
	make_ptx(&im, 75,
		 HEAD ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %d<2>;\n"
		      "add.u64 %d1, %d1, %d7;\nret;\n}\n");
	refused(&im, cudaErrorInvalidPtx, "line 7");
	REQUIRE(there_is == 1, "%u", there_is);
	return 0;
}

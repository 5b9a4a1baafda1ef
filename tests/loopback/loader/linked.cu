// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program with the runtime linked in, and, with PLUGIN, a library with one. cases.sh builds
 * nothing: it runs this file as make has built it in several ways, and says what to do.
 */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cuda_runtime.h>

#ifdef RDC
__device__ int twice(int x); /* in another unit */
#else
__device__ int twice(int x)
{
	return 2 * x;
}
#endif

__device__ int bias = 1;

__global__ void compute(int *v)
{
	v[threadIdx.x] = twice(v[threadIdx.x]) + bias;
}

/* Returns 0 if the GPU computes. */
static int run(void)
{
	int v[32], *dev, i, bad = 0;
	cudaStream_t stream;

	for (i = 0; i < 32; i++)
		v[i] = i;
	if (cudaMalloc((void **)&dev, sizeof(v)) || cudaStreamCreate(&stream) ||
	    cudaMemcpyAsync(dev, v, sizeof(v), cudaMemcpyHostToDevice, stream) ||
	    cudaStreamSynchronize(stream))
		return 1;
	compute<<<1, 32>>>(dev);
	if (cudaGetLastError() || cudaMemcpy(v, dev, sizeof(v), cudaMemcpyDeviceToHost))
		return 1;
	for (i = 0; i < 32; i++)
		bad |= v[i] != 2 * i + 1;
	return bad || cudaFree(dev) || cudaStreamDestroy(stream);
}

static int version(void)
{
	int v = 0;

	return cudaRuntimeGetVersion(&v) ? -1 : v;
}

#ifdef PLUGIN

extern "C" int plugin_run(void)
{
	return run();
}

extern "C" int plugin_version(void)
{
	return version();
}

#else

#ifdef NEEDS
extern "C" int plugin_run(void);
#endif

static int plugin(const char *path, const char *function)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int (*f)(void) = lib ? (int (*)(void))dlsym(lib, function) : NULL;

	if (!f) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	return f();
}

/* The program checks its own code: are the loaded functions those of the file? */
static int own_code(void)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	const unsigned char *file;
	struct stat st;
	Dl_info info;

	if (fd < 0 || fstat(fd, &st) || !dladdr((void *)run, &info))
		return 2;
	file = (const unsigned char *)mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (file == MAP_FAILED)
		return 2;
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)file;
	const Elf64_Phdr *p = (const Elf64_Phdr *)(file + h->e_phoff);
	const unsigned char *base = h->e_type == ET_DYN ? (const unsigned char *)info.dli_fbase : NULL;

	for (int i = 0; i < h->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_flags & PF_X &&
		    memcmp(base + p[i].p_vaddr, file + p[i].p_offset, p[i].p_filesz) != 0)
			return 3;
	return 0;
}

/* No page may be writable and executable at once. */
static int pages(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4200], rights[8];
	int bad = 0;

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%*s %7s", rights) == 1 && rights[1] == 'w' && rights[2] == 'x') {
			fputs(line, stderr);
			bad = 1;
		}
	return !maps || bad;
}

/* From here on this process can make no memory executable, so it can load no library. */
static int no_more_code(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static pthread_barrier_t together;

static void *one_thread(void *bad)
{
	pthread_barrier_wait(&together);
	if (run())
		*(int *)bad = 1;
	return NULL;
}

/* All threads use the functions for the first time, at the same time. */
static int threads(void)
{
	pthread_t thread[8];
	int bad = 0, i;

	pthread_barrier_init(&together, NULL, 8);
	for (i = 0; i < 8; i++)
		if (pthread_create(&thread[i], NULL, one_thread, &bad))
			exit(2);
	for (i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
	return bad;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "run";

	if (!strcmp(what, "version"))
		return printf("%d\n", version()) < 0;
	if (!strcmp(what, "own-code"))
		return own_code();
	if (!strcmp(what, "pages"))
		return run() || pages();
	if (!strcmp(what, "no-more-code"))
		return no_more_code() || run();
	if (!strcmp(what, "threads"))
		return threads();
	if (!strcmp(what, "versions"))
		return printf("%d\n%d\n", version(), plugin(argv[2], "plugin_version")) < 0;
	if (!strcmp(what, "plugins")) {
		for (int i = 2; i < argc; i++)
			if (plugin(argv[i], "plugin_run"))
				return 1;
		return run();
	}
#ifdef NEEDS
	return plugin_run() || run();
#else
	return run();
#endif
}

#endif

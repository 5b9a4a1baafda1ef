// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * From the name of a function to our library's function. When code is patched, our library may not
 * be loaded yet, and the dynamic linker is busy, so it cannot be loaded then. So a patched function
 * jumps to a stub, as calls between libraries do. The first call loads the library that serves this
 * version of CUDA, looks for the function, and stores its address in the stub's slot. Later calls
 * cost one jump.
 *
 * No lock is held while the library is loaded: another thread may hold the dynamic linker's lock
 * and be in qcul_bind_stub(). Two threads that bind the same slot store the same address.
 */
#define _GNU_SOURCE /* dlmopen */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/qcuerror.h"
#include "qcu-library/loader/loader.h"

#define STUB_BYTES 16
#define STRING(x)  #x
#define TEXT(x)	   STRING(x)

/*
 * A stub jumps to where its slot points. At first that is the stub's second half, which calls
 * qcul_bind() with the slot's number and jumps to the result. All registers that may hold arguments
 * are kept.
 */
__asm__(".text\n"
	".balign 16\n"
	"qcul_stubs:\n"
	".set i, 0\n"
	".rept " TEXT(QCUL_STUBS) "\n"
				  "	.balign 16\n"
				  "	jmp *qcul_slots+8*i(%rip)\n"
				  "	.byte 0x68\n" /* push, with a number of 4 bytes */
				  "	.long i\n"
				  "	jmp 1f\n"
				  ".set i, i + 1\n"
				  ".endr\n"
				  "1:	push %rbp\n"
				  "	mov %rsp, %rbp\n"
				  "	and $-16, %rsp\n"
				  "	sub $192, %rsp\n"
				  "	mov %rax, 0(%rsp)\n"
				  "	mov %rdi, 8(%rsp)\n"
				  "	mov %rsi, 16(%rsp)\n"
				  "	mov %rdx, 24(%rsp)\n"
				  "	mov %rcx, 32(%rsp)\n"
				  "	mov %r8, 40(%rsp)\n"
				  "	mov %r9, 48(%rsp)\n"
				  "	mov %r10, 56(%rsp)\n"
				  "	movaps %xmm0, 64(%rsp)\n"
				  "	movaps %xmm1, 80(%rsp)\n"
				  "	movaps %xmm2, 96(%rsp)\n"
				  "	movaps %xmm3, 112(%rsp)\n"
				  "	movaps %xmm4, 128(%rsp)\n"
				  "	movaps %xmm5, 144(%rsp)\n"
				  "	movaps %xmm6, 160(%rsp)\n"
				  "	movaps %xmm7, 176(%rsp)\n"
				  "	mov 8(%rbp), %rdi\n"
				  "	call qcul_bind\n"
				  "	mov %rax, %r11\n"
				  "	mov 0(%rsp), %rax\n"
				  "	mov 8(%rsp), %rdi\n"
				  "	mov 16(%rsp), %rsi\n"
				  "	mov 24(%rsp), %rdx\n"
				  "	mov 32(%rsp), %rcx\n"
				  "	mov 40(%rsp), %r8\n"
				  "	mov 48(%rsp), %r9\n"
				  "	mov 56(%rsp), %r10\n"
				  "	movaps 64(%rsp), %xmm0\n"
				  "	movaps 80(%rsp), %xmm1\n"
				  "	movaps 96(%rsp), %xmm2\n"
				  "	movaps 112(%rsp), %xmm3\n"
				  "	movaps 128(%rsp), %xmm4\n"
				  "	movaps 144(%rsp), %xmm5\n"
				  "	movaps 160(%rsp), %xmm6\n"
				  "	movaps 176(%rsp), %xmm7\n"
				  "	leave\n"
				  "	lea 8(%rsp), %rsp\n" /* the slot's number */
				  "	jmp *%r11\n");

extern char qcul_stubs[] __attribute__((visibility("hidden")));
/* Read by the stubs. */
_Atomic(void *) qcul_slots[QCUL_STUBS];

static struct {
	char *name;
	unsigned int major;
} slot_of[QCUL_STUBS];
static size_t slots;

static _Atomic(void *) library[QCUL_MAJOR_MAX - QCUL_MAJOR_MIN + 1];
static atomic_bool wanted[QCUL_MAJOR_MAX - QCUL_MAJOR_MIN + 1];

/*
 * The slots by name: open addressing. A slot's number is one less than what is stored, and 0 is an
 * empty bucket.
 */
#define BUCKETS (4u * QCUL_STUBS)
static uint16_t bucket[BUCKETS];

static uint16_t *find_slot_bucket(unsigned int major, const char *name)
{
	uint32_t h = major;
	const char *c;
	uint16_t *p;

	for (c = name; *c; c++)
		h = (h ^ (unsigned char)*c) * 16777619u;
	for (h ^= h >> 15;; h++) {
		p = &bucket[h % BUCKETS];
		if (!*p || (slot_of[*p - 1].major == major && !strcmp(slot_of[*p - 1].name, name)))
			return p;
	}
}

void *qcul_bind_stub(unsigned int major, const char *name)
{
	uint16_t *p = find_slot_bucket(major, name);
	char *stub;

	if (!*p) {
		if (slots == QCUL_STUBS)
			return NULL;
		slot_of[slots].name = strdup(name);
		slot_of[slots].major = major;
		if (!slot_of[slots].name)
			return NULL;
		stub = qcul_stubs + slots * STUB_BYTES;
		/* Its second half, behind an instruction of 6 bytes. */
		atomic_store(&qcul_slots[slots], (void *)(stub + 6));
		*p = (uint16_t)++slots;
		atomic_store(&wanted[major - QCUL_MAJOR_MIN], true);
	}
	return qcul_stubs + (size_t)(*p - 1) * STUB_BYTES;
}

/* A copy of NVIDIA's shared runtime may have this name, too. Its functions lead back here. */
static bool leads_back(void *handle)
{
	return qcul_is_patched(dlsym(handle, "__cudaRegisterFatBinary"));
}

/*
 * The library beside this module goes before others of its name, such as NVIDIA's. If one is loaded
 * already, this one is used: the program has been linked to it, or it was preloaded.
 */
static void *load_runtime_library(unsigned int major)
{
	char name[32], path[4096];
	void *handle;
	Dl_info self;
	const char *end;

	snprintf(name, sizeof(name), "libcudart.so.%u", qcul_linked_library(major));
	handle = dlmopen(LM_ID_BASE, name, RTLD_NOW | RTLD_NOLOAD);
	if (handle && !leads_back(handle))
		return handle;
	if (dladdr(qcul_stubs, &self) && (end = strrchr(self.dli_fname, '/')) &&
	    (size_t)snprintf(path, sizeof(path), "%.*s/%s", (int)(end - self.dli_fname),
			     self.dli_fname, name) < sizeof(path) &&
	    !access(path, F_OK))
		handle = dlmopen(LM_ID_BASE, path, RTLD_NOW);
	else
		handle = dlmopen(LM_ID_BASE, name, RTLD_NOW);
	if (!handle || leads_back(handle)) {
		qcul_loader_say("this program has the runtime of CUDA %u in it, and the library "
				"that takes its place cannot be loaded: %s",
				major, handle ? "there is only NVIDIA's" : dlerror());
		_exit(127);
	}
	return handle;
}

static void *runtime_of_major(unsigned int major)
{
	_Atomic(void *) *l = &library[major - QCUL_MAJOR_MIN];
	void *handle = atomic_load(l);

	if (!handle) {
		handle = load_runtime_library(major);
		atomic_store(l, handle);
	}
	return handle;
}

void qcul_bind_load(void)
{
	unsigned int major;

	for (major = QCUL_MAJOR_MIN; major <= QCUL_MAJOR_MAX; major++)
		if (atomic_load(&wanted[major - QCUL_MAJOR_MIN]))
			runtime_of_major(major);
}

static int not_supported(void)
{
	return QCU_ERR_NotSupported;
}

/* What CUDA 11 has in another form than 12 stands in the library under a name of its own. */
static void *find_function(unsigned int major, const char *name)
{
	void *library = runtime_of_major(major), *f = NULL;
	char own[128];

	if (major == 11 && (size_t)snprintf(own, sizeof(own), "qcul_11_%s", name) < sizeof(own))
		f = dlsym(library, own);
	return f ? f : dlsym(library, name);
}

void *qcul_bind(unsigned long slot)
{
	int saved = errno;
	void *f = find_function(slot_of[slot].major, slot_of[slot].name);

	if (!f) {
		qcul_loader_say("%s is not supported", slot_of[slot].name);
		f = (void *)not_supported;
	}
	atomic_store(&qcul_slots[slot], f);
	errno = saved;
	return f;
}

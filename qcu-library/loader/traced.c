// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Calls of CUDA and its libraries, for a trace (QCU_TRACE_FILE). Without one nothing here runs, and
 * no call takes a step more.
 *
 * When the dynamic linker shows one of these libraries, nothing has been bound to it yet. So its
 * table of symbols is changed in memory: each public function has the address of a stub. What
 * programs and other libraries take from it later, also by dlsym(), leads to the stub, which tells
 * libcudart.so.13 when the call begins and ends (link/trace_calls.c). Calls that a call makes
 * itself go on to the function at once: they are not the program's.
 */
#define _GNU_SOURCE /* struct link_map, qsort */
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qcu-library/loader/loader.h"

#define STUBS	    8192 /* all functions of all libraries are 6200 */
#define STUB_BYTES  16
#define STACK_BYTES 512 /* of arguments on the stack; the most that a function has is 200 */
#define STRING(x)   #x
#define TEXT(x)	    STRING(x)

/*
 * A stub keeps all registers that may hold arguments, and asks what to call. If the call is not to
 * be told, the stub jumps there. Otherwise it calls the function with a copy of the arguments on
 * the stack. With the lines that begin with .cfi, an exception of the program may pass.
 */
#define KEEP(op, r, m) op " " r ", " m "\n"
#define TAKE(op, r, m) op " " m ", " r "\n"
#define ARGUMENTS(how)                                                                             \
	how("mov", "%rax", "-200(%rbp)") how("mov", "%rdi", "-192(%rbp)") how(                     \
		"mov", "%rsi", "-184(%rbp)") how("mov", "%rdx", "-176(%rbp)")                      \
		how("mov", "%rcx", "-168(%rbp)") how("mov", "%r8", "-160(%rbp)") how(              \
			"mov", "%r9", "-152(%rbp)") how("mov", "%r10", "-144(%rbp)")               \
			how("movups", "%xmm0", "-128(%rbp)") how("movups", "%xmm1", "-112(%rbp)")  \
				how("movups", "%xmm2", "-96(%rbp)") how("movups", "%xmm3",         \
									"-80(%rbp)")               \
					how("movups", "%xmm4", "-64(%rbp)") how("movups", "%xmm5", \
										"-48(%rbp)")       \
						how("movups", "%xmm6", "-32(%rbp)")                \
							how("movups", "%xmm7", "-16(%rbp)")
#define RESULTS(how)                                                      \
	how("mov", "%rax", "-200(%rbp)") how("mov", "%rdx", "-176(%rbp)") \
		how("movups", "%xmm0", "-128(%rbp)") how("movups", "%xmm1", "-112(%rbp)")

/* clang-format off */
__asm__(".text\n"
	".balign 16\n"
	"qcul_traced_stubs:\n"
	".set i, 0\n"
	".rept " TEXT(STUBS) "\n"
	"	.balign 16\n"
	"	.byte 0x68\n" /* push, with a number of 4 bytes */
	"	.long i\n"
	"	jmp 1f\n"
	".set i, i + 1\n"
	".endr\n"
	".cfi_startproc\n"
	".cfi_def_cfa_offset 16\n"
	"1:	push %rbp\n"
	"	.cfi_def_cfa_offset 24\n"
	"	.cfi_offset %rbp, -24\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_def_cfa_register %rbp\n"
	"	sub $200, %rsp\n"
	ARGUMENTS(KEEP)
	"	mov 8(%rbp), %rdi\n"
	"	call qcul_traced_begins\n"
	"	mov %rax, %r11\n"
	"	test %edx, %edx\n"
	"	jne 2f\n"
	ARGUMENTS(TAKE)
	"	leave\n"
	"	lea 8(%rsp), %rsp\n" /* the stub's number */
	"	jmp *%r11\n"
	"2:	sub $" TEXT(STACK_BYTES) ", %rsp\n"
	"	lea 24(%rbp), %rsi\n"
	"	mov %rsp, %rdi\n"
	"	mov $" TEXT(STACK_BYTES) " / 8, %ecx\n"
	"	rep movsq\n"
	ARGUMENTS(TAKE)
	"	call *%r11\n"
	RESULTS(KEEP)
	"	call qcul_traced_ends\n"
	RESULTS(TAKE)
	"	leave\n"
	"	.cfi_def_cfa %rsp, 16\n"
	"	lea 8(%rsp), %rsp\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	".cfi_endproc\n");
/* clang-format on */

extern char qcul_traced_stubs[] __attribute__((visibility("hidden")));

struct traced_call {
	const char *name;
	void *function;
};

/* The dynamic linker shows one object at a time. A stub is used only after it was filled in. */
static struct traced_call calls[STUBS];
static size_t used;
static _Atomic(qcul_call_begins_fn *) call_begins;
static _Atomic(qcul_call_ends_fn *) call_ends;

/* Two words, as the stub takes them: what to call, and whether its end is to be told. */
struct traced_way {
	void *function;
	unsigned long told;
};
struct traced_way qcul_traced_begins(unsigned long stub);
void qcul_traced_ends(void);

struct traced_way qcul_traced_begins(unsigned long stub)
{
	qcul_call_begins_fn *begins = atomic_load_explicit(&call_begins, memory_order_acquire);

	return (struct traced_way){calls[stub].function, begins && begins(calls[stub].name)};
}

void qcul_traced_ends(void)
{
	atomic_load_explicit(&call_ends, memory_order_acquire)();
}

/* The name of a public function as programs know it; NULL: its calls are not told. */
static const char *public_call_name(const char *name)
{
	static const char driver[] = "qcul_drv_"; /* libcuda.so.1 jumps to these */

	if (!strcmp(name, "__cudaLaunchKernel")) /* what nvcc makes of <<<>>> */
		return name + 2;
	if (!strncmp(name, driver, sizeof(driver) - 1))
		return name + sizeof(driver) - 1;
	return !strncmp(name, "cu", 2) || !strncmp(name, "nccl", 4) ? name : NULL;
}

/* What tells the calls is in libcudart.so.13, and is found with its functions. */
static void take_teller(const char *name, void *at)
{
	if (!strcmp(name, "qcul_call_begins"))
		atomic_store_explicit(&call_begins, (qcul_call_begins_fn *)at,
				      memory_order_release);
	else if (!strcmp(name, "qcul_call_ends"))
		atomic_store_explicit(&call_ends, (qcul_call_ends_fn *)at, memory_order_release);
}

static void lead_to_stubs(const struct qcul_elf_symbols *t, Elf64_Sym *table, uintptr_t base)
{
	struct qcul_elf_symbol s;
	const char *name;
	size_t i;

	for (i = 0; i < t->count && used < STUBS; i++) {
		if (!qcul_elf_symbol(t, i, &s) || !s.defined || s.type != STT_FUNC)
			continue;
		take_teller(s.name, (void *)(base + s.addr));
		name = public_call_name(s.name);
		calls[used].name = name ? strdup(name) : NULL;
		if (!calls[used].name)
			continue;
		calls[used].function = (void *)(base + s.addr);
		table[i].st_value = (uintptr_t)(qcul_traced_stubs + used++ * STUB_BYTES) - base;
	}
}

void qcul_trace_object(const struct qcul_elf *e, uintptr_t base)
{
	uint64_t addr;
	struct qcul_elf_symbols t;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes, offset;
	uintptr_t from;

	if (!qcul_elf_symbols(e, SHT_DYNSYM, &t) || !qcul_elf_dynamic(e, DT_SYMTAB, 0, &addr))
		return;
	bytes = t.count * sizeof(Elf64_Sym);
	if (!qcul_elf_offset(e, addr, bytes, PF_R, &offset) || e->data + offset != t.first)
		return;
	from = (base + addr) & ~(page - 1);
	bytes += base + addr - from;
	if (mprotect((void *)from, bytes, PROT_READ | PROT_WRITE))
		return;
	lead_to_stubs(&t, (Elf64_Sym *)(base + addr), base);
	mprotect((void *)from, bytes, PROT_READ);
}

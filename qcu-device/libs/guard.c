// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * NVIDIA's libraries are written in C++, and some of their functions let exceptions out. In a
 * program of C that would end the process. lib_guarded() does the same as `try { } catch (...) { }`
 * in C++: the unwinder finds a personality routine at its frame, which says that it handles every
 * exception. So all frames of the library between here and the throw are cleaned up as in a C++
 * program, and release their locks and memory. Our own frames in between are not cleaned up. So
 * everything that they hold must be in the argument of `run`.
 */
#include <unwind.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/libs/impl.h"

#ifndef __x86_64__
#error "the frame below is for x86-64"
#endif

/* Calls run(arg). If an exception comes out, *thrown is set and 0 returned. */
__attribute__((visibility("hidden"))) int lib_guard_frame(int (*run)(void *arg), void *arg,
							  bool *thrown);
__attribute__((visibility("hidden"))) _Unwind_Reason_Code
lib_guard_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class exception_class,
		      struct _Unwind_Exception *exception, struct _Unwind_Context *context);

/* Where the exception is handled is the frame's "language-specific data". */
__asm__(".text\n"
	".p2align 4\n"
	".globl lib_guard_frame\n"
	".hidden lib_guard_frame\n"
	".type lib_guard_frame, @function\n"
	"lib_guard_frame:\n"
	"	.cfi_startproc\n"
	"	.cfi_personality 0x1b, lib_guard_personality\n"
	"	.cfi_lsda 0x1b, .Llib_guard_caught\n"
	"	endbr64\n"
	"	pushq %rbx\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbx, -16\n"
	"	movq %rdx, %rbx\n"
	"	movq %rdi, %rax\n"
	"	movq %rsi, %rdi\n"
	"	call *%rax\n"
	".Llib_guard_end:\n"
	"	popq %rbx\n"
	"	.cfi_remember_state\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	".Llib_guard_caught:\n"
	"	.cfi_restore_state\n"
	"	endbr64\n"
	"	movb $1, (%rbx)\n"
	"	movq %rax, %rdi\n"
	"	call _Unwind_DeleteException@PLT\n"
	"	xorl %eax, %eax\n"
	"	jmp .Llib_guard_end\n"
	"	.cfi_endproc\n"
	".size lib_guard_frame, . - lib_guard_frame\n");

_Unwind_Reason_Code lib_guard_personality(int version, _Unwind_Action actions,
					  _Unwind_Exception_Class exception_class,
					  struct _Unwind_Exception *exception,
					  struct _Unwind_Context *context)
{
	(void)exception_class;
	if (version != 1)
		return _URC_FATAL_PHASE1_ERROR;
	/* The end of a thread is not an exception. */
	if (actions & _UA_FORCE_UNWIND)
		return _URC_CONTINUE_UNWIND;
	if (actions & _UA_SEARCH_PHASE)
		return _URC_HANDLER_FOUND;
	if (!(actions & _UA_HANDLER_FRAME))
		return _URC_CONTINUE_UNWIND;
	_Unwind_SetGR(context, __builtin_eh_return_data_regno(0), (uintptr_t)exception);
	_Unwind_SetIP(context, (uintptr_t)_Unwind_GetLanguageSpecificData(context));
	return _URC_INSTALL_CONTEXT;
}

int lib_guarded(struct lib_call *c, const char *name, int (*run)(void *arg), void *arg)
{
	bool thrown = false;
	int status = lib_guard_frame(run, arg, &thrown);

	if (thrown) {
		complain("%s: %s has thrown an exception", c->lib->soname, name);
		c->rc = QCU_ERR_Unknown;
	}
	return status;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a launch runs: blocks, their warps, frames of functions, barriers, and what lanes do
 * together.
 */
#ifndef QCU_SOFT_PTX_EXEC_H
#define QCU_SOFT_PTX_EXEC_H

#include "qcu-device/soft/ptx/base/ptx_int.h"

/* ptx_frame.c */
struct ptx_frame *ptx_frame_get(struct ptx_warp *w, const struct ptx_func *fn, struct ptx_frame *up,
				uint32_t lanes);
void ptx_frame_put(struct ptx_block *b, struct ptx_frame *f);
void ptx_frame_drop(struct ptx_block *b, struct ptx_frame *f, uint32_t lanes);
void ptx_frames_free(struct ptx_block *b);
void ptx_frames_reset(struct ptx_block *b);
uint32_t ptx_frame_top(const struct ptx_frame *f, unsigned int lane);
uint8_t *ptx_frame_area(const struct ptx_frame *f, uint32_t off);
uint64_t ptx_arg_get(struct ptx_warp *w, const struct ptx_arg *a, unsigned int lane);
void ptx_arg_put(struct ptx_warp *w, const struct ptx_call *c, unsigned int lane, uint64_t v);
struct ptx_func *ptx_func_real(struct ptx_func *f);
bool ptx_call_fits(const struct ptx_call *c, const struct ptx_func *f);
void ptx_call_enter(struct ptx_warp *w, const struct ptx_call *c, const struct ptx_frame *from,
		    struct ptx_frame *to);
void ptx_call_leave(struct ptx_warp *w, const struct ptx_call *c, const struct ptx_frame *from,
		    struct ptx_frame *to, uint32_t m);

/* ptx_exec.c, ptx_sched.c */
enum ptx_ran ptx_warp_run(struct ptx_warp *w);
int ptx_pick(struct ptx_warp *w, bool force, uint32_t *stop);
unsigned int ptx_split_add(struct ptx_warp *w, uint32_t mask, uint32_t pc, struct ptx_frame *frame);
void ptx_split_drop(struct ptx_warp *w, unsigned int i);

/* ptx_warpop.c: instructions that several lanes do together */
bool ptx_warpop(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_warpop_wait(struct ptx_warp *w, const struct ptx_insn *in, unsigned int cur);
bool ptx_warpop_retry(struct ptx_warp *w);

/* ptx_bar.c: block barriers */
void ptx_bar_arrive(struct ptx_warp *w, const struct ptx_insn *in, unsigned int cur);
void ptx_bar_exit(struct ptx_block *b);

/* ptx_sys.c: functions that the machine provides */
enum ptx_sys ptx_sys_find(const char *name);
void ptx_sys_call(struct ptx_warp *w, const struct ptx_call *c, enum ptx_sys sys, uint32_t m);

/* ptx_runtime.c: the runtime API in kernels, and the launches from them */
enum ptx_sys ptx_runtime_find(const char *name);
void ptx_runtime_call(struct ptx_warp *w, const struct ptx_call *c, enum ptx_sys sys, uint32_t m);
enum ptx_status ptx_runtime_end(struct ptx_grid *g, struct ptx_child **tails,
				struct ptx_diag *diag);

/* ptx_limits.c: may this launch run at all? */
enum ptx_status ptx_launch_check(const struct ptx_kernel *k, const struct ptx_launch *l,
				 struct ptx_diag *diag);
#define MAX_COOPERATIVE 2048u /* blocks of a cooperative launch */

/* ptx_block.c */
struct ptx_block *ptx_block_get(void);
void ptx_block_put(struct ptx_block *b);
void ptx_block_forked(void);
bool ptx_block_start(struct ptx_block *b, struct ptx_grid *g, uint64_t number);
enum ptx_ran ptx_block_run(struct ptx_block *b);
void ptx_block_end(struct ptx_block *b);

/* ptx_check.c */
struct ptx_check;
bool ptx_check_install(struct ptx_module *m);
bool ptx_check_start(struct ptx_block *b);
void ptx_check_frame(struct ptx_warp *w, const struct ptx_frame *f);
void ptx_check_free(struct ptx_block *b);

/* ptx_link.c */
enum ptx_status ptx_link(struct ptx_module *m, struct ptx_diag *diag);

/* ptx_shared.c */
enum ptx_status ptx_shared_place(struct ptx_module *m, struct ptx_diag *diag);

/* ptx_pool.c */
void ptx_pool_run(struct ptx_grid *g, unsigned int threads);

/* ptx_stack.c */
void ptx_h_alloca(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_stacksave(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_stackrestore(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);

/* Operations that several lanes do together, in ptx_insn.sub. */
enum ptx_lanes_op {
	LANES_SHFL_UP,
	LANES_SHFL_DOWN,
	LANES_SHFL_BFLY,
	LANES_SHFL_IDX,
	LANES_VOTE_ALL,
	LANES_VOTE_ANY,
	LANES_VOTE_UNI,
	LANES_VOTE_BALLOT,
	LANES_MATCH_ANY,
	LANES_MATCH_ALL,
	LANES_REDUX_ADD,
	LANES_REDUX_MIN,
	LANES_REDUX_MAX,
	LANES_REDUX_AND,
	LANES_REDUX_OR,
	LANES_REDUX_XOR,
	LANES_SYNC,
	LANES_ELECT,
};

/* Kinds of barrier, in ptx_insn.sub. */
enum ptx_bar_op {
	BAR_SYNC,
	BAR_ARRIVE,
	BAR_POPC,
	BAR_AND,
	BAR_OR,
	BAR_CLUSTER_ARRIVE,
	BAR_CLUSTER_WAIT,
};

#endif

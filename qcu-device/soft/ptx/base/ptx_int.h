/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the parts of the PTX machine: the decoded form of a module, and the state of a running
 * grid.
 *
 * Decoded form: one flat array of 64-byte instructions for the whole module. An operand is a "ref":
 * a byte offset into one of three areas, with the area in the two low bits. All areas hold one
 * value per lane, side by side (structure of arrays), so an instruction is one loop over 32 lanes.
 * Predicates are the exception: they have one bit per lane in a single word.
 */
#ifndef QCU_SOFT_PTX_INT_H
#define QCU_SOFT_PTX_INT_H

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>

#include "qcu-device/soft/ptx/base/ptx.h"

#define PTX_LANES    32u
#define PTX_FULL     0xffffffffu
#define PTX_BARRIERS 16u
/*
 * Shared memory reserved for the system, behind the block's own. It exists only if the module reads
 * %reserved_smem_offset.
 */
#define PTX_RESERVED_SHARED 1024u

#define ptx_likely(x)	__builtin_expect(!!(x), 1)
#define ptx_unlikely(x) __builtin_expect(!!(x), 0)

/*
 * Bases of the generic addresses of all spaces other than global memory. No user pointer of x86-64
 * (47 or 56 bits) has one of these bits, so the top four bits tell the space.
 */
#define PTX_SPACE_SHIFT 60
#define PTX_SHARED_BASE 0x4000000000000000ull
#define PTX_LOCAL_BASE	0x5000000000000000ull
#define PTX_PARAM_BASE	0x6000000000000000ull
#define PTX_CODE_BASE	0x7000000000000000ull

enum ptx_type {
	T_NONE,
	T_PRED,
	T_B8,
	T_U8,
	T_S8,
	T_B16,
	T_U16,
	T_S16,
	T_F16,
	T_BF16,
	T_B32,
	T_U32,
	T_S32,
	T_F32,
	T_F16X2,
	T_BF16X2,
	T_U16X2,
	T_S16X2,
	T_B64,
	T_U64,
	T_S64,
	T_F64,
	T_B128,
	/* formats that only conversions and packed arithmetic use */
	T_TF32,
	T_F32X2,
	T_E4M3X2,
	T_E5M2X2,
	T_E2M3X2,
	T_E3M2X2,
	T_E2M1X2,
	T_UE8M0X2,
	T_COUNT
};

enum ptx_space {
	SPACE_GENERIC,
	SPACE_GLOBAL,
	SPACE_SHARED,
	SPACE_LOCAL,
	SPACE_CONST,
	SPACE_PARAM,
};

/* Areas that a ref points into. */
#define REF_REG	    0u /* the frame of the running function */
#define REF_CONST   1u /* constants of the module */
#define REF_SPECIAL 2u /* special registers of the warp */
#define REF_AREA    3u
#define REF_OFF	    (~3u)

/* Special registers whose value does not change while a warp lives; 32 words of 32 bits each. */
enum ptx_special {
	SP_TID_X,
	SP_TID_Y,
	SP_TID_Z,
	SP_NTID_X,
	SP_NTID_Y,
	SP_NTID_Z,
	SP_CTAID_X,
	SP_CTAID_Y,
	SP_CTAID_Z,
	SP_NCTAID_X,
	SP_NCTAID_Y,
	SP_NCTAID_Z,
	SP_LANEID,
	SP_WARPID,
	SP_NWARPID,
	SP_SMID,
	SP_NSMID,
	SP_LANEMASK_EQ,
	SP_LANEMASK_LE,
	SP_LANEMASK_LT,
	SP_LANEMASK_GE,
	SP_LANEMASK_GT,
	SP_DYN_SMEM_SIZE,
	SP_TOTAL_SMEM_SIZE,
	SP_ZERO,
	SP_ONE,
	SP_ENVREG1,		       /* upper half of the workspace for grid-wide barriers */
	SP_ENVREG2,		       /* lower half */
	SP_GRIDID,		       /* 64 bits: two words per lane */
	SP_DYN_SHARED = SP_GRIDID + 2, /* where dynamic shared memory starts, 32 bits */
	SP_FUNC_SHARED,		       /* where shared variables of functions start */
	SP_DYN_SHARED64,	       /* the two above, in 64 bits */
	SP_FUNC_SHARED64 = SP_DYN_SHARED64 + 2,
	SP_RESERVED = SP_FUNC_SHARED64 + 2, /* start of the shared memory reserved for the system */
	SP_RESERVED1,			    /* start of the part that cooperative groups use */
	SP_RESERVED_END,
	SP_COUNT,
};

/* Special registers that change while a warp runs: a separate instruction reads them. */
enum {
	PTX_SP_CLOCK = SP_COUNT,
	PTX_SP_CLOCK_HI,
	PTX_SP_CLOCK64,
	PTX_SP_TIMER,
	PTX_SP_TIMER_LO,
	PTX_SP_TIMER_HI,
	PTX_SP_WARP_SZ,
};
#define SP_REF(n) ((uint32_t)(n)*PTX_LANES * 4u | REF_SPECIAL)

/* What the main loop does with an instruction before or instead of calling its handler. */
enum ptx_ctl {
	CTL_OP, /* just the handler */
	CTL_BRA,
	CTL_BRX,
	CTL_CALL,
	CTL_RET,
	CTL_EXIT,
	CTL_BAR,
	CTL_WARP,  /* gathers lanes: shfl, vote, ... */
	CTL_YIELD, /* the handler may find that other lanes or warps must run first */
	CTL_TRAP,
	CTL_UNSUPPORTED,
};

/* ptx_insn.flags; each family of instructions uses some of them. */
#define IF_RND	 0x03u /* rounding: 0 rn, 1 rz, 2 rm, 3 rp */
#define IF_FTZ	 0x04u
#define IF_SAT	 0x08u
#define IF_RELU	 0x10u
#define IF_NAN	 0x20u
#define IF_CCIN	 0x40u
#define IF_CCOUT 0x80u
#define IF_NEGC	 0x100u /* the predicate in c is negated */
#define IF_AND	 0x200u /* setp combines with c */
#define IF_OR	 0x400u
#define IF_XOR	 0x800u
#define IF_A32	 0x1000u /* the address register has 32 bits */
#define IF_HI	 0x2000u /* multiply: upper half */
/*
 * Of loads, stores and atomics. STRONG: it does not race with another thread's strong access to the
 * same bytes. ORDER: it also orders the accesses around it.
 */
#define IF_STRONG 0x01u
#define IF_ORDER  0x02u
#define IF_FIN	  0x4000u /* a value that does not fit becomes the largest number */

struct ptx_warp;
struct ptx_insn;
typedef void (*ptx_fn)(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);

struct ptx_insn {
	ptx_fn fn;
	uint32_t d, d2;	     /* refs that it writes; 0: none */
	uint32_t a, b, c, e; /* refs that it reads */
	uint32_t pred;	     /* ref of the guard, bit 0: negated; 0: none */
	uint32_t loc;	     /* source line, from .loc: file << 20 | line; 0: unknown */
	int64_t imm;	     /* address offset, branch target, immediate */
	uint32_t x;	     /* first of nx refs in module.xops, or an index (calls, tables) */
	uint32_t line;	     /* of the PTX text */
	uint16_t flags;
	uint8_t ctl;
	uint8_t nx;
	uint8_t sub; /* operation within a family */
	uint8_t type, type2;
	uint8_t space;
};
_Static_assert(sizeof(struct ptx_insn) == 64, "an instruction is one cache line");

/* One argument or result of a call: bytes of a parameter area, or a register. */
struct ptx_arg {
	bool in_area;
	uint32_t ref; /* register or constant */
	uint32_t off; /* in the area; multiple of 8 */
	uint32_t size;
};

enum ptx_sys {
	SYS_NONE,
	SYS_VPRINTF,
	SYS_ASSERTFAIL,
	SYS_MALLOC,
	SYS_FREE,
	SYS_SET_CONDITION,
	SYS_RUNTIME, /* from here on: the runtime API in kernels, ptx_runtime.c */
};

struct ptx_func;

struct ptx_call {
	struct ptx_func *callee; /* NULL: ref has the address */
	uint32_t ref;
	unsigned int nargs, nrets;
	struct ptx_arg *args, *rets;
};

struct ptx_func {
	const char *name;
	unsigned int index;
	bool entry, defined, indirect;
	bool allocates; /* it has an alloca */
	enum ptx_sys sys;
	uint32_t pc;		   /* first instruction */
	uint32_t end;		   /* one past the last */
	uint32_t frame_bytes;	   /* registers and parameter area */
	uint32_t area_bytes;	   /* parameter area, bytes per lane */
	uint32_t local_bytes;	   /* .local of this function */
	uint32_t shared_bytes;	   /* entry: of the variables that are declared in its body */
	struct ptx_shared *shared; /* the other shared variables that it names itself */
	unsigned int nparams, nrets;
	struct ptx_arg *params, *rets;
	struct ptx_param *kparams; /* entry: layout of the parameter buffer */
	const char **pnames, **rnames;
	uint32_t param_bytes;
	uint32_t max_threads, req_threads[3];
	uint32_t min_blocks, max_regs; /* 0: not given */
	uint32_t regs;		       /* from ptx_regs.c; later with called functions */
	uint32_t call_line;	       /* first call or definition, for messages */
	struct ptx_func **callees;     /* functions that it calls directly */
	unsigned int ncallees, callee_cap;
	enum ptx_status bad; /* why it cannot run; PTX_OK: it can */
	uint32_t bad_line;
	char bad_text[112];
	/* ptx_link.c: the needs of this function with all calls below it */
	unsigned int walked;
	uint32_t stack_need;
	bool recursive;
	unsigned int stamp; /* ptx_shared.c: the last kernel that was seen to reach it */
	const struct ptx_func *reach_bad;
	struct ptx_func *next;	   /* .alias: the function that this one is another name of */
	struct ptx_kernel *kernel; /* of an entry that is defined */
};

struct ptx_kernel {
	struct ptx_kernel_info info;
	struct ptx_module *mod;
	struct ptx_func *fn;
	uint32_t shared_top;   /* end of the shared variables that it reaches, behind its own */
	uint32_t shared_total; /* its own and those that it reaches */
	uint32_t stack_bytes;  /* per thread, with calls */
	enum ptx_status bad;
	uint32_t bad_line;
	const char *bad_func;
	char bad_text[112];
};

struct ptx_var {
	const char *name;
	enum ptx_space space;
	uint32_t align;
	uint64_t size;
	uint64_t off;	     /* local and shared: offset in its space */
	uint64_t addr;	     /* global and const: address, once it is placed */
	uint32_t placed;     /* the n-th that got memory; 0: it has none of its own */
	uint32_t addr_const; /* ref of the constant for its address, if used before it is defined */
	bool is_extern;
	bool own;    /* shared: declared in the body of a kernel, so no other function names it */
	bool linked; /* shared, not own: ptx_shared.c gives it its address */
	const struct ptx_func *user; /* linked: the last function that named it */
	uint32_t kernels;	     /* linked: how many kernels reach it */
	bool managed;
	bool bound;    /* at an address from ptx_env.bound: not ours to initialise or free */
	uint8_t *init; /* NULL: zero */
	uint64_t init_len;
	struct ptx_reloc *relocs;
	struct ptx_var *next;
};

/* A function names this shared variable. */
struct ptx_shared {
	struct ptx_var *var;
	struct ptx_shared *next;
};

/*
 * The address of a shared variable goes here: into the offset of an instruction (width 0), or into
 * a constant of 4 or 8 bytes.
 */
struct ptx_shared_fix {
	struct ptx_var *var;
	uint32_t where;
	unsigned int width;
	uint64_t add;
	struct ptx_shared_fix *next;
};

/* An initialiser that is the address of something. */
struct ptx_reloc {
	uint64_t off;
	unsigned int size;
	const char *name;
	int64_t add;
	unsigned int shift; /* right shift of the address, for 0xFF00(name) */
	uint32_t line;
	struct ptx_reloc *next;
};

struct ptx_arena {
	struct ptx_arena_memory *head;
};

struct ptx_ops;

struct ptx_module {
	struct ptx_env env;
	struct ptx_arena arena;
	const struct ptx_ops *ops;

	struct ptx_insn *code;
	uint32_t ncode, code_cap;
	uint32_t *xops;
	uint32_t nxops, xops_cap;
	struct ptx_call *calls;
	uint32_t ncalls, calls_cap;
	uint8_t *consts;
	uint32_t const_len, const_cap;
	uint32_t *const_hash;
	uint32_t const_hash_cap, const_count;

	struct ptx_func **funcs;
	unsigned int nfuncs, funcs_cap;
	struct ptx_var *vars, **vars_tail;
	uint32_t placed; /* variables that have memory of their own */
	struct ptx_kernel *kernels;
	unsigned int nkernels;

	uint64_t const_size;
	pthread_mutex_t heap_lock;
	struct ptx_heap *heap; /* allocations by malloc() in kernels */
	bool bounded;	       /* some function has .maxntid, .reqntid or .maxnreg */
	struct ptx_shared_fix *shared_fixes;
	struct ptx_mma_layout *layouts; /* shapes of matrices, ptx_mma.h */
	_Atomic uint64_t error_texts;	/* ptx_runtime.c: in device memory; 0: not there yet */
	ptx_fn *plain; /* with checks: the real handlers, called by those of ptx_check.c */
	char **files;  /* file names from .file, by number */
	uint32_t nfiles, files_cap;
	bool reserved_used;   /* the module reads %reserved_smem_offset */
	unsigned int target;  /* sm_75: 75 */
	unsigned int running; /* number of running launches; under heap_lock */
};

/* ---- running ---- */

struct ptx_frame {
	struct ptx_frame *up;  /* the caller's frame */
	struct ptx_frame *all; /* next in the list of all frames that the block has allocated */
	const struct ptx_func *fn;
	uint32_t lanes; /* the lanes that are in this call */
	uint32_t ret_pc;
	uint32_t depth;
	unsigned int cls;
	uint32_t local;		 /* where its .local starts in a thread's stack */
	uint32_t dyn[PTX_LANES]; /* bytes of alloca behind .local, if fn->allocates */
	_Alignas(64) uint8_t mem[];
};
#define PTX_FRAME_AREA (PTX_LANES * 8u) /* the parameter area follows the local-base slot */

enum ptx_wait { WAIT_NOT, WAIT_BARRIER, WAIT_LANES };

/* Lanes of a warp that run together: they have the same frame and the same pc. */
struct ptx_split {
	uint32_t mask;
	uint32_t pc;
	struct ptx_frame *frame;
	uint8_t wait;
	uint8_t bar;
	uint32_t want; /* WAIT_LANES: the member mask */
	uint64_t seq;  /* when it last ran */
};

struct ptx_block;

struct ptx_warp {
	uint8_t *base[4];
	uint32_t dead;	 /* lanes that never existed or have ended */
	uint32_t cc;	 /* carry, one bit per lane */
	uint32_t pc;	 /* of the running instruction */
	uint32_t active; /* lanes of the running split */
	enum ptx_status fault;
	struct ptx_frame *frame;
	struct ptx_block *blk;
	uint8_t *local; /* stacks of its threads, interleaved in units of 8 bytes */
	unsigned int id, nsplit;
	bool yield;	    /* CTL_YIELD: let other lanes and warps run */
	uint32_t sync;	    /* counts the events that order its lanes, for ptx_check.c */
	uint32_t cluster;   /* lanes that arrived at the cluster's barrier, which is not complete */
	unsigned int spent; /* fuel used since the last turn of the split that had waited longest */
	uint64_t seq;
	struct ptx_split split[PTX_LANES];
	_Alignas(64) uint32_t special[SP_COUNT * PTX_LANES];
};

struct ptx_barrier {
	uint32_t arrived;     /* threads */
	uint32_t need;	      /* 0: all of the block */
	uint32_t waiting;     /* threads of these that are blocked */
	uint32_t voted, popc; /* bar.red: threads that voted, and that voted true */
};

#define PTX_RANGES	  64u
#define PTX_FRAME_CLASSES 32u

struct ptx_grid;

/* One running block, with everything it needs. It is kept and used again for the next block. */
struct ptx_block {
	struct ptx_grid *grid;
	uint32_t ctaid[3];
	uint32_t threads, nwarps, live;
	uint8_t *shared;
	uint32_t shared_bytes, shared_cap;
	uint8_t *local;
	size_t local_cap;
	uint32_t stack_bytes;
	struct ptx_warp *warps;
	unsigned int warp_cap;
	struct ptx_barrier bar[PTX_BARRIERS + 1]; /* the last one is the cluster's barrier */
	struct ptx_range range[PTX_RANGES];
	struct ptx_frame *spare[PTX_FRAME_CLASSES]; /* free frames to use again, by size class */
	struct ptx_frame *all_frames;
	size_t frame_total;
	uint32_t smid;
	uint32_t sync; /* counts the events that order its threads, for ptx_check.c */
	struct ptx_check *check;
	int32_t *errors; /* ptx_runtime.c: of each thread; NULL: none has one */
	enum ptx_status status;
	struct ptx_diag diag;
	struct ptx_block *next;
};

struct ptx_child;

struct ptx_grid {
	struct ptx_module *mod;
	const struct ptx_kernel *kernel;
	const struct ptx_insn *code;
	struct ptx_launch l;
	uint8_t *params;
	uint8_t *seen; /* with checks: what has been reported, for each instruction */
	uint32_t shared_bytes, func_off, dyn_off, reserved_off;
	uint64_t workspace; /* cooperative: the barrier of the grid, in device memory */
	uint64_t id, nblocks;
	_Atomic uint64_t next_block;
	_Atomic int status;
	_Atomic uint32_t smid;
	unsigned int helpers; /* pool threads that work on it; under the pool's lock */
	unsigned int wanted;  /* how many more pool threads may join */
	pthread_mutex_t lock; /* protects diag */
	struct ptx_diag diag;
	unsigned int depth; /* launches above it, if a kernel has launched it */
	/* Runs a launch that a kernel of this grid made; see ptx_runtime_end() for tails. */
	enum ptx_status (*below)(const struct ptx_kernel *k, const struct ptx_launch *l,
				 unsigned int depth, struct ptx_child **tails,
				 struct ptx_diag *diag);
	struct ptx_child *child, *tail; /* under lock; ptx_runtime.c */
	struct ptx_grid *next;
	unsigned int fuel; /* for one turn of a warp; see ptx_exec.c */
	void (*work)(struct ptx_grid *g);
};

enum ptx_ran { RAN_DONE, RAN_BLOCKED, RAN_YIELD, RAN_FAULT };

/* ptx_arena.c */
void *ptx_alloc(struct ptx_arena *a, size_t n);
char *ptx_strndup(struct ptx_arena *a, const char *s, size_t n);
void ptx_arena_free(struct ptx_arena *a);
bool ptx_grow(void **p, uint32_t *cap, uint32_t need, size_t elem);

/* ptx_types.c */
unsigned int ptx_type_size(enum ptx_type t);
bool ptx_type_float(enum ptx_type t);
bool ptx_type_signed(enum ptx_type t);
enum ptx_type ptx_type_from(const char *s, size_t n);
const char *ptx_type_name(enum ptx_type t);

/* ptx_fault.c */
const char *ptx_file_name(const struct ptx_module *m, uint32_t loc);
/* The present instruction of a lane. */
struct ptx_finding ptx_finding_of(const struct ptx_warp *w, unsigned int lane);
__attribute__((format(printf, 4, 5))) void ptx_fault(struct ptx_warp *w, unsigned int lane,
						     enum ptx_status st, const char *fmt, ...);
/* The same for an access to an address of this space. */
void ptx_fault_access(struct ptx_warp *w, unsigned int lane, enum ptx_status st, const char *space,
		      const struct ptx_access *a);
__attribute__((format(printf, 3, 4))) void ptx_diag_set(struct ptx_diag *d, unsigned int line,
							const char *fmt, ...);

#define PTX_MAX_FILES 4095u

static inline uint32_t ptx_loc_line(uint32_t loc)
{
	return loc & 0xfffff;
}

static inline unsigned int ptx_lane(uint32_t m)
{
	return (unsigned int)__builtin_ctz(m);
}

static inline void *ptx_at(struct ptx_warp *w, uint32_t ref)
{
	return w->base[ref & REF_AREA] + (ref & REF_OFF);
}

/* The address of byte off of one lane's part of interleaved memory. */
static inline uint8_t *ptx_cell(uint8_t *mem, unsigned int lane, uint64_t off)
{
	return mem + (off >> 3) * (PTX_LANES * 8) + lane * 8 + (off & 7);
}

/* The address of the byte o bytes after p, where p points into interleaved memory. */
static inline uint8_t *ptx_cell_next(uint8_t *p, unsigned int o)
{
	unsigned int in = ((uintptr_t)p & 7) + o;

	return p - ((uintptr_t)p & 7) + (size_t)(in >> 3) * (PTX_LANES * 8) + (in & 7);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much of the host's resources a guest may use. All limits are defined once, in the table
 * below: their names for --limit, their defaults, and what they count. Each has two values: one for
 * a guest program (a session, so one mirror) and one for all programs of the VM together.
 * docs/limits.md adds them up.
 *
 * usage.h counts the use and compares it with these limits.
 */
#ifndef QCU_LIMITS_H
#define QCU_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIMIT_NONE UINT64_MAX
/* As a VM's value: there is no limit for the VM, only one for each session. */
#define LIMIT_EACH (UINT64_MAX - 1)
/* Filled in when the VM's memory is known. */
#define LIMIT_OF_RAM 0

#define LIMIT_KIB(n) ((uint64_t)(n) << 10)
#define LIMIT_MIB(n) ((uint64_t)(n) << 20)
#define LIMIT_GIB(n) ((uint64_t)(n) << 30)

/* X(NAME, "name", unit, value per session, value per VM, "what is counted") */
/* clang-format off */
#define LIMITS(X) \
	X(DEVICE_MEMORY, "device-memory", BYTES, LIMIT_NONE, LIMIT_NONE, \
	  "memory of each GPU, allocated or kept by a pool, with arrays, module images and variables") \
	X(LIBRARY_MEMORY, "library-memory", BYTES, LIMIT_GIB(1), LIMIT_EACH, \
	  "memory of each GPU beyond device-memory: the context, libraries, local memory") \
	X(ALLOCATIONS, "allocations", COUNT, 262144, 1048576, \
	  "allocations of device memory, the program's own and those of others that it has opened; reservations and mappings") \
	X(RESERVED, "reserved", BYTES, LIMIT_GIB(32768), LIMIT_GIB(131072), \
	  "addresses that are reserved for memory to be mapped there") \
	X(MAPPED, "mapped", BYTES, LIMIT_OF_RAM, LIMIT_OF_RAM, \
	  "guest memory that a mirror has mapped and registered with the GPU") \
	X(MODULES, "modules", COUNT, 16384, 32768, "modules (fat binaries) that are loaded") \
	X(MODULE_BYTES, "module-bytes", BYTES, LIMIT_GIB(8), LIMIT_GIB(16), \
	  "the images of these modules") \
	X(KERNELS, "kernels", COUNT, 65534, 262144, "kernels that have been looked up") \
	X(STREAMS, "streams", COUNT, 4096, 16384, "streams, per-thread default streams too; green contexts") \
	X(EVENTS, "events", COUNT, 65534, 262144, "events") \
	X(POOLS, "pools", COUNT, 1024, 4096, "memory pools, without the default ones") \
	X(ARRAYS, "arrays", COUNT, 16384, 65536, "arrays and mipmapped arrays") \
	X(TEXTURES, "textures", COUNT, 65536, 262144, "texture and surface objects") \
	X(GRAPHS, "graphs", COUNT, 4096, 16384, "executable graphs; graphs with conditions, and the conditions") \
	X(GRAPH_NODES, "graph-nodes", COUNT, 262144, 1048576, \
	  "work that is kept in graphs") \
	X(LIBRARY_OBJECTS, "library-objects", COUNT, 4096, 16384, "objects of libraries, such as handles of cuBLAS") \
	X(LANES, "lanes", COUNT, 256, 1024, \
	  "threads that carry out commands; beyond it guest threads share them") \
	X(QUEUED, "queued", BYTES, LIMIT_MIB(256), LIMIT_GIB(1), \
	  "commands and work that have been taken and not been done; host memory that "  \
	  "libraries work in") \
	X(PRINTED, "printed", BYTES, LIMIT_MIB(8), LIMIT_EACH, \
	  "what kernels have printed and the program has not fetched, for stdout and for stderr") \
	X(HOST_MEMORY, "host-memory", BYTES, LIMIT_GIB(16), LIMIT_EACH, \
	  "the host's memory beyond the VM's own, if the host gives each mirror a control group") \
	X(SWAP, "swap", BYTES, LIMIT_NONE, LIMIT_NONE, \
	  "memory of the host for GPU memory that has left the GPU (--swap)") \
	X(SWAP_GPU, "swap-gpu", BYTES, LIMIT_NONE, LIMIT_NONE, \
	  "memory of another GPU for GPU memory that has left the GPU (--swap-gpu)") \
	X(SWAP_FILE, "swap-file", BYTES, LIMIT_NONE, LIMIT_NONE, \
	  "bytes of files for GPU memory that has left the GPU (--swap-file)") \
	X(KERNEL_TIME, "kernel-time", SECONDS, LIMIT_NONE, LIMIT_EACH, \
	  "how long one kernel may run")
/* clang-format on */

enum limit {
#define X(NAME, name, unit, session, vm, help) LIMIT_##NAME,
	LIMITS(X)
#undef X
		LIMIT_KINDS
};

enum limit_unit { LIMIT_UNIT_BYTES, LIMIT_UNIT_COUNT, LIMIT_UNIT_SECONDS };

/* Plain numbers only, because the structure is passed to mirrors byte by byte. 0: the default. */
struct limits {
	uint64_t session[LIMIT_KINDS];
	uint64_t vm[LIMIT_KINDS];
};

/* Replaces each 0 with the default. */
void limits_default(struct limits *l);

/* Replaces LIMIT_OF_RAM with the value for a VM with this much memory. */
void limits_for_ram(struct limits *l, uint64_t bytes);

/*
 * Parses NAME=VALUE, or vm-NAME=VALUE for the VM. VALUE is bytes with K, M or G, a number, seconds,
 * or "none". False: nothing has changed, and `why` holds a sentence about the error.
 */
bool limits_parse(struct limits *l, const char *text, char *why, size_t size);

const char *limit_name(enum limit what);

/* Writes "12 MiB", "4096", "30 s" or "none" to buf. Returns buf. */
const char *limit_text(enum limit what, uint64_t value, char *buf, size_t size);

/* Writes one line of the table, as --limit help prints it and docs/limits.md shows it. */
void limits_line(const struct limits *l, enum limit what, char *buf, size_t size);

#endif

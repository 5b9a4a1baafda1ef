/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The functions of a backend, each once, with what the caller may rely on. From this list are made:
 * the members of struct be_ops, the prototypes of each backend's functions (cu_X, soft_X) and its
 * table. So this file is included several times. Whoever includes it defines
 * BE_OP_OF(type, name, parameters...), and what else becomes of the others:
 *
 * BE_OP(name, parameters...): it returns a value of enum qcu_error, and each backend has it.
 * QCU_ERR_NotSupported: the backend cannot do this.
 * BE_SOFT_OP(type, name, ...), BE_CUDA_OP(type, name, ...): only one backend has it.
 */
#ifndef BE_OP
#define BE_OP(name, ...) BE_OP_OF(int, name, __VA_ARGS__)
#endif
#ifndef BE_SOFT_OP
#define BE_SOFT_OP BE_OP_OF
#endif
#ifndef BE_CUDA_OP
#define BE_CUDA_OP BE_OP_OF
#endif

/*
 * Is there a GPU? Called once in the device process, before any mirror exists. Must not
 * keep state.
 */
BE_OP_OF(bool, probe, void)
BE_OP_OF(int, open, struct be **be, const struct be_options *opt)
BE_OP_OF(void, close, struct be *be)

/*
 * Bytes of memory of each device, for a backend whose device memory is host memory that
 * each mirror allocates for itself. All mirrors of a VM must then share the amount of one
 * device.
 */
BE_SOFT_OP(uint64_t, memory, const struct be_options *opt)
BE_OP_OF(int, device_count, struct be *be, unsigned int *count)
BE_OP_OF(int, versions, struct be *be, uint32_t *driver, uint32_t *runtime)
BE_OP(device_desc, struct be *be, unsigned int dev, struct qcu_device_desc *desc)
/*
 * The values of QCU_SENSORS, and a bit for each that is known. Without it NVML is asked. With it
 * options.busy is told what keeps a device busy.
 */
BE_SOFT_OP(void, sensors, struct be *be, unsigned int dev, uint32_t *known, uint32_t *value)
BE_OP(device_sync, struct be *be, unsigned int dev)
BE_OP(device_reset, struct be *be, unsigned int dev)
BE_OP(mem_info, struct be *be, unsigned int dev, uint64_t *free, uint64_t *total)
/*
 * From dev to peer, which must differ. attr: QCU_PEER_* or a cudaDeviceP2PAttr. With
 * QCU_PEER_HOST_ATOMICS, peer may have any value.
 */
BE_OP(peer_access, struct be *be, unsigned int dev, unsigned int peer, bool enable)
BE_OP(peer_info, struct be *be, unsigned int dev, unsigned int peer, uint32_t attr, int32_t *value)
/* limit: cudaLimit. limit_set is a request; limit_get returns the value in effect. */
BE_OP(limit_set, struct be *be, unsigned int dev, uint32_t limit, uint64_t value)
BE_OP(limit_get, struct be *be, unsigned int dev, uint32_t limit, uint64_t *value)

BE_OP(mem_alloc, struct be *be, unsigned int dev, uint64_t size, uint64_t *addr)
BE_OP(mem_free, struct be *be, uint64_t addr)
/*
 * Of memory from mem_alloc: how much of the device stays taken if nothing but this is kept.
 * Without this function: its size.
 */
BE_CUDA_OP(uint64_t, mem_taken, struct be *be, uint64_t addr)
/*
 * Memory from mem_alloc that leaves the device and comes back to the same addresses, and arrays,
 * with options.movable. Without these functions, and without that option, all memory stays.
 *
 * - The caller has waited for the work of all devices, and makes no other call meanwhile.
 * - mem_leave copies pieces to the store and gives their memory back, until `want` bytes have left
 *   or nothing more can leave; *left says how many have. It succeeds if nothing has left, and if
 *   the store is full. After an error, too, *left is right, and each piece is either here or away.
 *   What another process may have open stays.
 *   What a pool keeps and does not use is given back first. It counts as what has left, but it is
 *   not away and does not come back.
 * - mem_return brings back all that is away. cudaErrorMemoryAllocation: there is no room for the
 *   rest, which stays away. cudaErrorOperatingSystem: the store cannot give its bytes, and it stays
 *   away, too. *back says how many bytes are back.
 * - mem_movable: how many bytes could leave now; mem_away: how many are away.
 * - mem_valid knows memory that is away, and mem_free and device_reset free it, without bringing it
 *   back. Nothing else may use it: copies, kernels and exports need mem_return before.
 * - The backend keeps a copy of *store. What it calls lives until nothing is away, or until the
 *   backend is closed, which gives all back.
 */
BE_OP_OF(int, mem_leave, struct be *be, unsigned int dev, uint64_t want,
	 const struct be_store *store, uint64_t *left)
BE_OP_OF(int, mem_return, struct be *be, unsigned int dev, uint64_t *back)
BE_OP_OF(uint64_t, mem_movable, struct be *be, unsigned int dev)
BE_OP_OF(uint64_t, mem_away, struct be *be, unsigned int dev)
/*
 * Memory of the device that is only for the store (options.store). The device whose memory leaves
 * can copy to it and from it. No program is told its address, and mem_valid does not know it.
 * store_take returns NULL if there is no such memory. What it returns is zero, or has what this
 * process had there before.
 */
BE_OP_OF(void *, store_take, struct be *be, uint64_t bytes)
BE_OP_OF(void, store_give, struct be *be, void *p, uint64_t bytes)
/*
 * Stream-ordered memory. Work put into the stream after pool_alloc may use the memory; so
 * may work put there before pool_free. mem_free accepts such memory, too. A destroyed pool
 * stays until the last of its memory is freed. Default pools always exist.
 */
BE_OP(pool_default, struct be *be, unsigned int dev, struct be_pool **p)
BE_OP(pool_create, struct be *be, unsigned int dev, uint64_t max_size, struct be_pool **p)
BE_OP(pool_destroy, struct be *be, struct be_pool *p)
BE_OP(pool_set, struct be *be, struct be_pool *p, uint32_t attr, uint64_t value)
BE_OP(pool_get, struct be *be, struct be_pool *p, uint32_t attr, uint64_t *value)
BE_OP(pool_trim, struct be *be, struct be_pool *p, uint64_t keep)
BE_OP(pool_access_set, struct be *be, struct be_pool *p, unsigned int dev, uint32_t flags)
BE_OP(pool_access_get, struct be *be, struct be_pool *p, unsigned int dev, uint32_t *flags)
BE_OP(pool_alloc, struct be *be, struct be_pool *p, uint64_t size, struct be_stream *s,
      uint64_t *addr)
BE_OP(pool_free, struct be *be, uint64_t addr, struct be_stream *s)
/*
 * Virtual memory. The caller has checked that sizes and addresses are multiples of what
 * phys_grain says, that nothing overlaps, and that each address lies in a reservation.
 * Reserved addresses lie outside of the window. phys_unmap and phys_access are about one
 * mapping; phys_unmap returns when nothing uses it any more. flags of phys_create: QCU_PHYS_*.
 * flags of phys_access: CUmemAccess_flags. phys_destroy comes when nothing maps the memory any
 * more.
 */
BE_OP(va_reserve, struct be *be, uint64_t size, uint64_t align, uint64_t *addr)
BE_OP(va_free, struct be *be, uint64_t addr, uint64_t size)
BE_OP(phys_grain, struct be *be, unsigned int dev, bool recommended, uint64_t *bytes)
BE_OP(phys_create, struct be *be, unsigned int dev, uint64_t size, uint32_t flags,
      struct be_phys **p, bool *compressible)
BE_OP(phys_destroy, struct be *be, struct be_phys *p)
BE_OP(phys_map, struct be *be, struct be_phys *p, uint64_t offset, uint64_t addr, uint64_t size)
BE_OP(phys_unmap, struct be *be, uint64_t addr, uint64_t size)
BE_OP(phys_access, struct be *be, uint64_t addr, uint64_t size, unsigned int dev, uint32_t flags)
/* As mem_export and mem_import. */
BE_OP(phys_export, struct be *be, struct be_phys *p, void *handle)
BE_OP(phys_import, struct be *be, unsigned int dev, const void *handle, uint64_t size,
      struct be_phys **p)
/*
 * Does [addr, addr + len) lie in one allocation of device memory, in one module variable,
 * or in mappings without a gap that a device may use?
 */
BE_OP_OF(bool, mem_valid, struct be *be, uint64_t addr, uint64_t len)
/*
 * Makes device memory, all zero, at an address of the window: the first `len` bytes of the
 * `room` bytes at `addr`, which are reserved without access. All devices can use it.
 * mem_unplace waits until nothing uses it any more. After it, and after an error, the
 * caller reserves the addresses again. mem_valid does not know this memory.
 */
BE_OP(mem_place, struct be *be, unsigned int dev, uint64_t addr, uint64_t len, uint64_t room)
BE_OP(mem_unplace, struct be *be, unsigned int dev, uint64_t addr, uint64_t len, uint64_t room)
/*
 * From now on, copy engines and kernels may use this host memory in place, at the same
 * address. Unregister waits until nothing uses it any more.
 */
BE_OP(host_register, struct be *be, void *addr, size_t len)
BE_OP(host_unregister, struct be *be, void *addr)

/*
 * Copies in stream order. The host side lies within one registration, or wholly in memory
 * that is not registered.
 */
BE_OP(copy_h2d, struct be *be, uint64_t dst, const void *src, size_t len, struct be_stream *s)
BE_OP(copy_d2h, struct be *be, void *dst, uint64_t src, size_t len, struct be_stream *s)
/*
 * As copy_d2h, and waits for the copy. Without this function the mirror waits for the
 * stream.
 */
BE_OP_OF(int, copy_d2h_wait, struct be *be, void *dst, uint64_t src, size_t len,
	 struct be_stream *s)
/*
 * Copies between several pieces of registered host memory and one range of device memory.
 * The pieces may be copied in any order. Without this function the mirror copies each piece
 * on its own.
 */
BE_OP_OF(int, copy_pieces, struct be *be, bool h2d, uint64_t device, const struct iovec *host,
	 size_t count, struct be_stream *s)
/* host: BE_HOST_*, the sides that are registered host memory. */
BE_OP(copy_d2d, struct be *be, uint64_t dst, uint64_t src, size_t len, unsigned int host,
      struct be_stream *s)
BE_OP(mem_set, struct be *be, const struct be_memset *m, struct be_stream *s)

/*
 * CUDA arrays. The caller of copy_box has checked that the box lies within the array.
 * Destroy waits until nothing uses the array any more. With p, a mipmapped array lies in
 * that memory, which was made shareable or imported, and lives longer than the array.
 * With options.movable an array may leave, as memory from mem_alloc. The caller charges for the
 * elements. A backend that has `charges` charges for what else such an array takes.
 */
BE_OP(array_create, struct be *be, unsigned int dev, const struct be_array_desc *desc,
      struct be_phys *p, uint64_t offset, struct be_array **a)
BE_OP(array_destroy, struct be *be, struct be_array *a)
BE_OP(copy_box, struct be *be, const struct be_box *box, struct be_stream *s)

/*
 * The objects through which kernels read textures and surfaces. If t->array names an array,
 * `a` is that array; it lives longer than the object. If t describes memory, the GPU can
 * use all of that memory now.
 */
BE_OP(texture_create, struct be *be, unsigned int dev, const struct qcu_texture_msg *t,
      struct be_array *a, uint64_t *object)
BE_OP(texture_destroy, struct be *be, unsigned int dev, uint64_t object)
BE_OP(surface_create, struct be *be, unsigned int dev, struct be_array *a, uint32_t level,
      uint64_t *object)
BE_OP(surface_destroy, struct be *be, unsigned int dev, uint64_t object)

/* flags: cudaStreamNonBlocking. The legacy stream of each device always exists. */
BE_OP(stream_create, struct be *be, unsigned int dev, uint32_t flags, int priority,
      struct be_stream **s)
BE_OP_OF(struct be_stream *, stream_legacy, struct be *be, unsigned int dev)
BE_OP(stream_destroy, struct be *be, struct be_stream *s) /* queued work still completes */
BE_OP(stream_sync, struct be *be, struct be_stream *s)
BE_OP(stream_query, struct be *be, struct be_stream *s)
BE_OP(stream_wait_event, struct be *be, struct be_stream *s, struct be_event *e, uint32_t flags)

/*
 * Green contexts. green_parts: how many groups a split makes, and how many multiprocessors the
 * first of them and the rest have. green_create: members has a bit for each group that the context
 * gets, and QCU_GREEN_GROUPS for the rest; at least one bit is set. Its streams are non-blocking.
 * The caller destroys them before it.
 */
BE_OP(green_parts, struct be *be, unsigned int dev, const struct be_split *split, uint32_t *made,
      struct be_sms *group, struct be_sms *rest)
BE_OP(green_create, struct be *be, unsigned int dev, const struct be_split *split,
      const uint8_t *members, struct be_green **g)
BE_OP(green_destroy, struct be *be, struct be_green *g)
BE_OP(green_stream, struct be *be, struct be_green *g, int priority, struct be_stream **s)

/* Only t->what and t->rank have been checked. map: QCU_TENSOR_MAP_BYTES. */
BE_OP(tensor_map, struct be *be, unsigned int dev, const struct qcu_tensor_msg *t, void *map)

/* Memory and flags have been checked. */
BE_OP(stream_value, struct be *be, struct be_stream *s, const struct qcu_stream_value *v)
/*
 * The guest is gone, and nobody will write the numbers that streams wait for: they go on.
 * Not needed if close, or the end of the process, ends such work.
 */
BE_SOFT_OP(void, values_end, struct be *be)

/* value: QCU_STREAM_ATTR bytes. */
BE_OP(stream_attr_set, struct be *be, struct be_stream *s, uint32_t attr, const void *value)
BE_OP(stream_attr_get, struct be *be, struct be_stream *s, uint32_t attr, void *value)
BE_OP(stream_attr_copy, struct be *be, struct be_stream *to, struct be_stream *from)
/*
 * Libraries such as cuBLAS, which work on the backend's streams. lib_open: NULL, with a
 * sentence about the reason, if there is none with this soname; it stays open. lib_symbol:
 * its function, or NULL. native: makes the stream's device the thread's current one, and
 * gives what the library's functions take as a stream.
 */
BE_OP_OF(void *, lib_open, struct be *be, const char *soname, char *why, size_t size)
BE_OP_OF(void *, lib_symbol, struct be *be, void *lib, const char *name)
BE_OP(native, struct be *be, struct be_stream *s, void **stream)
/*
 * Queues a call of fn(arg, 0) in a stream. The stream waits until fn returns. fn runs on a
 * thread of the backend and must not call the backend. After an error that has ended
 * everything, fn is not called, unless `always` is true: then it is called with that error.
 */
BE_OP(host_func, struct be *be, void (*fn)(void *arg, int error), void *arg, bool always,
      struct be_stream *s)

BE_OP(event_create, struct be *be, unsigned int dev, uint32_t flags, struct be_event **e)
BE_OP(event_destroy, struct be *be, struct be_event *e)
BE_OP(event_record, struct be *be, struct be_event *e, struct be_stream *s, uint32_t flags)
BE_OP(event_sync, struct be *be, struct be_event *e)
BE_OP(event_query, struct be *be, struct be_event *e)
BE_OP(event_elapsed, struct be *be, struct be_event *start, struct be_event *end, float *ms)

/*
 * Memory and events shared with other processes. Export writes BE_IPC_BYTES; import takes
 * those bytes in another mirror of the same host, and never gets bytes from any other
 * source. Only memory from mem_alloc and events created for it can be exported. Imported
 * memory and events cannot.
 */
BE_OP(mem_export, struct be *be, unsigned int dev, uint64_t addr, void *handle)
BE_OP(mem_import, struct be *be, unsigned int dev, const void *handle, uint64_t size,
      uint64_t *addr)
BE_OP(mem_unimport, struct be *be, uint64_t addr)
BE_OP(event_export, struct be *be, struct be_event *e, void *handle)
BE_OP(event_import, struct be *be, unsigned int dev, const void *handle, struct be_event **e)

/*
 * image: a fat binary, an ELF image or PTX. The backend copies it if it needs it after the
 * call. jit may be NULL.
 */
BE_OP(module_load, struct be *be, const void *image, size_t len, struct be_jit *jit,
      struct be_module **m)
BE_OP(module_unload, struct be *be, struct be_module *m)
/*
 * Links images: type is QCU_LINK_*, and the image is of that kind. jit of link_add and
 * link_complete gets the texts; link_add has options for its image there. The image of
 * link_complete lives until link_destroy, which may come at any time.
 */
BE_OP(link_create, struct be *be, unsigned int dev, const struct qcu_jit *options,
      struct be_link **l)
BE_OP(link_add, struct be *be, struct be_link *l, uint32_t type, const void *image, size_t len,
      struct be_jit *jit)
BE_OP(link_complete, struct be *be, struct be_link *l, struct be_jit *jit, const void **image,
      size_t *len)
BE_OP(link_destroy, struct be *be, struct be_link *l)
/*
 * what: QCU_NAMES_*. Writes each name with its NUL, up to `room` bytes in all; *bytes is
 * the size of all names. A backend that cannot list managed variables returns "not
 * supported".
 */
BE_OP(module_names, struct be *be, struct be_module *m, uint32_t what, char *names, size_t room,
      size_t *bytes, uint32_t *count)
/* A kernel lives as long as its module. */
BE_OP(kernel_find, struct be *be, struct be_module *m, const char *name, struct be_kernel **k)
/* Writes at most max entries; *count is how many there are. */
BE_OP(kernel_params, struct be *be, struct be_kernel *k, struct qcu_param *params, uint32_t max,
      uint32_t *count)
BE_OP(kernel_desc, struct be *be, unsigned int dev, struct be_kernel *k,
      struct qcu_kernel_desc *desc)
BE_OP(kernel_set, struct be *be, unsigned int dev, struct be_kernel *k, uint32_t attr, int value)
BE_OP(occupancy, struct be *be, unsigned int dev, struct be_kernel *k, uint32_t block_threads,
      uint64_t dynamic_shared, uint32_t flags, uint32_t *blocks)
BE_OP(occupancy_shared, struct be *be, unsigned int dev, struct be_kernel *k, uint32_t blocks,
      uint32_t block_threads, uint64_t *bytes)
/* what: QCU_CLUSTERS_* */
BE_OP(occupancy_cluster, struct be *be, unsigned int dev, struct be_kernel *k,
      const struct be_launch *l, uint32_t what, uint32_t *count)
BE_OP(var_find, struct be *be, unsigned int dev, struct be_module *m, const char *name,
      uint64_t *addr, uint64_t *size)
/* The same, for managed variables only. */
BE_OP(managed_find, struct be *be, unsigned int dev, struct be_module *m, const char *name,
      uint64_t *addr, uint64_t *size)
/*
 * Places a variable in host memory, on all devices. The memory is registered and already
 * holds the variable's content. Call it before any kernel_find in the module. Addresses
 * that var_find returned before are void.
 */
BE_SOFT_OP(int, var_bind, struct be *be, struct be_module *m, const char *name, uint64_t addr,
	   uint64_t size)
BE_OP(launch, struct be *be, struct be_kernel *k, const struct be_launch *l, struct be_stream *s)

/*
 * Graphs; qcucmd.h describes them. The caller keeps kernels and events that a graph names
 * for as long as the graph, and the memory until it is no longer launched. The nodes, and
 * what they point to, may be gone after the call.
 *
 * - graph_update: the types are those of the nodes. The numbers of dependencies are 0.
 *   cudaErrorGraphExecUpdateFailure: the graph must be made again.
 * - graph_destroy: launches that are under way still complete.
 */
BE_OP(graph_make, struct be *be, unsigned int dev, const struct be_node *nodes, uint32_t count,
      struct be_graph **g)
BE_OP(graph_update, struct be *be, struct be_graph *g, const struct be_node *nodes, uint32_t count)
BE_OP(graph_launch, struct be *be, struct be_graph *g, struct be_stream *s)
BE_OP(graph_upload, struct be *be, struct be_graph *g, struct be_stream *s)
BE_OP(graph_destroy, struct be *be, struct be_graph *g)

/*
 * Handles of conditional nodes; qcucmd.h describes them. The caller keeps them as long as a
 * graph that uses them. There is one graph at a time for each outermost graph, and each of
 * its nodes is in the graph or body that its handle is for.
 *
 * - cond_create: `in` lives longer than what is made in it. If `in` is NULL, the outermost
 *   graph is made, and body and first are not used. Otherwise the body exists. If first is
 *   NULL, a launch does not change the present value.
 * - cond_node: makes the node of a handle, with its bodies, unless it has been made already
 *   in this way. size is at most QCU_COND_BODIES and fits the type.
 */
BE_OP(cond_create, struct be *be, unsigned int dev, struct be_cond *in, uint32_t body,
      const uint32_t *first, struct be_cond **c, uint64_t *handle)
BE_OP(cond_node, struct be *be, struct be_cond *c, uint32_t type, uint32_t size)
BE_OP(cond_destroy, struct be *be, struct be_cond *c) /* queued work still completes */

/*
 * Text that kernels have printed: copies up to max bytes into buf and stores their number
 * in *got. With buf NULL it only asks whether there is any (*got != 0).
 */
BE_OP(print_read, struct be *be, void *buf, size_t max, size_t *got)
/* The same for the text of failed assertions, which belongs on stderr. */
BE_OP(assert_read, struct be *be, void *buf, size_t max, size_t *got)
/*
 * The same for struct qcu_fault, of which each call copies one, or none if max is less: what
 * the checks of a software GPU have found, and where the first kernel has failed. Of faults
 * there is at most one in the life of a backend.
 */
BE_OP(fault_read, struct be *be, void *buf, size_t max, size_t *got)

/*
 * A session is saved and restored (mirror/save.h). A backend without these functions cannot do it.
 * Nobody else calls the backend meanwhile.
 *
 * - unsaved: a sentence about what cannot be made again, or NULL. *busy: work is not done yet.
 * - want: until the next call, allocations and the variables of modules get these addresses of each
 *   device in this order, or fail; their memory is zero. A texture or surface gets the first one as
 *   its number, a conditional handle what cond_saved has said, and reserved addresses begin there.
 *   The caller keeps the list until then. NULL: any addresses and numbers again.
 * - hold: memory at these places is wanted later, so nothing else gets their addresses. size is
 * that of what mem_block says, if it says something. NULL: those that are left are free again.
 * - mem_block: the memory from mem_alloc or pool_alloc lies in a block with others; it is wanted
 *   behind the memory.
 * - cond_saved: what must be wanted for the same handle with the same value. A backend without this
 *   function makes no handle that is wanted.
 * - module_vars: where the module's variables are. Writes at most max; returns how many there
 * are. With be_ops.vars_by_name, names has those that the image shows; else it is NULL.
 * - module_settle: makes those variables of a module that were wanted and are not made yet.
 * - event_age: how long before `at` (spin_clock()) the event was recorded, or (set) was to have
 *   been. The event's work is done. QCU_ERR_NotReady: it was never recorded.
 * - print_write: text that print_read, or assert_read, will return.
 */
BE_OP_OF(const char *, unsaved, struct be *be, bool *busy)
BE_OP_OF(void, want, struct be *be, const struct be_wanted *wanted, size_t count)
BE_CUDA_OP(int, hold, struct be *be, const struct be_wanted *places, size_t count)
BE_CUDA_OP(bool, mem_block, struct be *be, uint64_t addr, struct be_wanted *block)
BE_SOFT_OP(void, cond_saved, struct be *be, struct be_cond *c, struct be_wanted *as)
BE_OP_OF(size_t, module_vars, struct be *be, struct be_module *m, const struct image_names *names,
	 struct be_wanted *wanted, size_t max)
BE_OP_OF(int, module_settle, struct be *be, struct be_module *m, const struct image_names *names)
BE_OP_OF(int, event_age, struct be *be, struct be_event *e, bool set, uint64_t at, uint64_t *ns)
BE_OP_OF(void, print_write, struct be *be, bool assertion, const char *text, size_t len)

#undef BE_OP
#undef BE_OP_OF
#undef BE_SOFT_OP
#undef BE_CUDA_OP

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of commands: one line per command, with everything that differs between commands. Many
 * of the lines are made from commands.list, and stand in qcucmd_made.h. These are made from the
 * table: ids, names, the union in the record, the checks of the driver and the device, the device's
 * dispatch and its order between threads, what the library knows about unfinished work, and
 * docs/commands.md.
 *
 * X(number, NAME, name, who, buffer, in, order, stream, event, until, traits)
 *
 *   who      who may send the command. CTL: the driver, on the control queue. DRV: the driver, on a
 *            session queue. USR: guest programs. POST: guest programs, which may also post it. A
 *            posted command gets no answer. A later submit of the thread reports the first error
 *            among the commands that the thread has posted (struct qcu_submit).
 *   buffer   what `buf` is. NONE: there is no buf. IN: guest memory that the host reads in place.
 *            OUT: guest memory that the host writes in place. MSG: bytes that travel with the
 *            record. STAY: memory that does not move from now on and that the mirror has mapped:
 *            chunks, or pages that the driver has pinned.
 *   in       how many bytes of the struct a request fills in. All bytes after them must be zero.
 *   order    order between the threads of one program (qcu-device/lanes/order.c). ABOUT: after what
 *            other threads have posted about the same stream or event. ALL: after everything
 *            posted. FREE: after nothing.
 *   stream   the field with the stream that the command is about, or none.
 *   event    the field with the event that the command is about, or none. With `start` there is a
 *            second event, in the field `end`.
 *   until    when the answer says that all earlier work of the stream is done: always, never
 *            (none), or, with `flags`, if that field has QCU_COPY_SYNC. With `device` all work of
 *            the device is done then, with `recorded` what the event's last record came after.
 *   traits   QCU_ANY_DEVICE, QCU_WAITS ... below.
 */
#ifndef QCUCMD_TABLE_H
#define QCUCMD_TABLE_H

#define QCU_ANY_DEVICE 0x001u /* does not depend on the thread's current device */
#define QCU_WAITS      0x002u /* waits for the GPU, unless posted; returns errors of earlier work */
#define QCU_ASKS       0x004u /* asks whether the GPU is done; returns errors of earlier work */
#define QCU_WORK       0x008u /* may leave unfinished work on the GPU */
#define QCU_MEMORY     0x010u /* the GPU reads or writes memory */
#define QCU_AT_ONCE    0x020u /* for the program, the command is done when it is sent */
#define QCU_RECORDS    0x040u /* records the event that it is about */
#define QCU_PARKS      0x080u /* is answered only after the program itself has done something */
#define QCU_ALONE      0x100u /* no other command of its session runs at the same time */
#define QCU_LOOKS      0x200u /* only looks at the device: not counted as a use of it */
#define QCU_MAKES      0x400u /* makes the stream that it is about */
#define QCU_TIMED      0x800u /* a copy that says, if its flags ask for it, how long it took */

/* It has work for the GPU's processors, or copies up or down the bus: one of these. */
#define QCU_TURN_GPU  0x1000u
#define QCU_TURN_UP   0x2000u
#define QCU_TURN_DOWN 0x4000u
#define QCU_BACK      0x8000u /* needs device memory where it was, as QCU_MEMORY does */
#define QCU_TURN      (QCU_TURN_GPU | QCU_TURN_UP | QCU_TURN_DOWN)

#define QCU_COPY (QCU_WAITS | QCU_WORK | QCU_MEMORY)

#define QCU_UPTO(s, f) (offsetof(struct s, f) + sizeof(((struct s *)0)->f))

/* clang-format off */
#define QCU_COMMANDS_BY_HAND(X) \
	X(1,   OPEN,              open,              CTL,  NONE, QCU_UPTO(qcu_open, comm),               ALL,   none,   none,  none,   0) \
	X(2,   CLOSE,             close,             CTL,  NONE, QCU_UPTO(qcu_close, queue),             ALL,   none,   none,  none,   0) \
	X(3,   MAP,               map,               DRV,  NONE, QCU_UPTO(qcu_map, chunk_bytes),         FREE,  none,   none,  none,   0) \
	X(4,   UNMAP,             unmap,             DRV,  NONE, QCU_UPTO(qcu_unmap, len),               FREE,  none,   none,  none,   0) \
	X(5,   MANAGED_MOVE,      managed_move,      DRV,  NONE, QCU_UPTO(qcu_managed_move, rsvd),       FREE,  none,   none,  none,   0) \
	X(16,  INFO,              info,              USR,  NONE, 0,                                      FREE,  none,   none,  none,   QCU_ANY_DEVICE) \
	X(17,  DEVICE_INFO,       device_info,       USR,  OUT,  QCU_UPTO(qcu_device_info, buf),         FREE,  none,   none,  none,   QCU_LOOKS) \
	X(18,  DEVICE_SYNC,       device_sync,       USR,  NONE, 0,                                      ALL,   none,   none,  device, QCU_WAITS) \
	X(19,  DEVICE_RESET,      device_reset,      USR,  NONE, 0,                                      ALL,   none,   none,  none,   QCU_WORK | QCU_ALONE) \
	X(20,  MEM_INFO,          mem_info,          USR,  NONE, 0,                                      ALL,   none,   none,  none,   0) \
	X(21,  THREAD_EXIT,       thread_exit,       POST, NONE, 0,                                      FREE,  none,   none,  none,   QCU_ANY_DEVICE) \
	X(24,  VM_USE,            vm_use,            USR,  OUT,  QCU_UPTO(qcu_vm_use, buf),              FREE,  none,   none,  none,   QCU_LOOKS) \
	X(25,  SENSORS,           sensors,           USR,  NONE, 0,                                      FREE,  none,   none,  none,   QCU_LOOKS) \
	X(32,  MALLOC,            malloc,            USR,  NONE, QCU_UPTO(qcu_malloc, size),             ALL,   none,   none,  none,   0) \
	X(33,  FREE,              free,              POST, NONE, QCU_UPTO(qcu_free, ptr),                ALL,   none,   none,  none,   0) \
	X(34,  HOST_REGISTER,     host_register,     USR,  STAY, QCU_UPTO(qcu_host_register, flags),     ALL,   none,   none,  none,   0) \
	X(35,  HOST_UNREGISTER,   host_unregister,   USR,  NONE, QCU_UPTO(qcu_host_unregister, len),     ALL,   none,   none,  none,   0) \
	X(36,  COPY_H2D,          copy_h2d,          POST, IN,   QCU_UPTO(qcu_copy_h2d, flags),          ABOUT, stream, none,  flags,  QCU_COPY | QCU_TIMED | QCU_TURN_UP) \
	X(37,  COPY_D2H,          copy_d2h,          POST, OUT,  QCU_UPTO(qcu_copy_d2h, flags),          ABOUT, stream, none,  flags,  QCU_COPY | QCU_TIMED | QCU_TURN_DOWN) \
	X(38,  COPY_D2D,          copy_d2d,          POST, NONE, QCU_UPTO(qcu_copy_d2d, flags),          ABOUT, stream, none,  none,   QCU_COPY | QCU_TURN_GPU) \
	X(39,  MEMSET,            memset,            POST, NONE, QCU_UPTO(qcu_memset, flags),            ABOUT, stream, none,  none,   QCU_WORK | QCU_MEMORY | QCU_TURN_GPU) \
	X(40,  MANAGED,           managed,           USR,  NONE, QCU_UPTO(qcu_managed, bytes),           FREE,  none,   none,  none,   0) \
	X(41,  MANAGED_END,       managed_end,       USR,  NONE, QCU_UPTO(qcu_managed_end, len),         FREE,  none,   none,  none,   0) \
	X(47,  COPY_SMALL,        copy_small,        POST, MSG,  QCU_UPTO(qcu_copy_small, stream),       ABOUT, stream, none,  none,   QCU_MEMORY | QCU_AT_ONCE) \
	X(50,  STREAM_SYNC,       stream_sync,       USR,  NONE, QCU_UPTO(qcu_stream_sync, stream),      ABOUT, stream, none,  always, QCU_WAITS) \
	X(51,  STREAM_QUERY,      stream_query,      USR,  NONE, QCU_UPTO(qcu_stream_query, token),      ABOUT, stream, none,  none,   QCU_ASKS) \
	X(58,  EVENT_RECORD,      event_record,      POST, NONE, QCU_UPTO(qcu_event_record, flags),      ABOUT, stream, event, none,   QCU_WORK | QCU_RECORDS) \
	X(60,  EVENT_QUERY,       event_query,       USR,  NONE, QCU_UPTO(qcu_event_query, token),       ABOUT, none,   event, none,   QCU_ASKS) \
	X(61,  EVENT_ELAPSED,     event_elapsed,     USR,  NONE, QCU_UPTO(qcu_event_elapsed, end),       ABOUT, none,   start, none,   0) \
	X(62,  WATCH,             watch,             USR,  STAY, QCU_UPTO(qcu_watch, buf),               FREE,  none,   none,  none,   0) \
	X(64,  MODULE_LOAD,       module_load,       USR,  IN,   QCU_UPTO(qcu_module_load, jit),         FREE,  none,   none,  none,   QCU_WORK) \
	X(65,  MODULE_UNLOAD,     module_unload,     USR,  NONE, QCU_UPTO(qcu_module_unload, module),    ALL,   none,   none,  none,   QCU_WORK) \
	X(66,  KERNEL_FIND,       kernel_find,       USR,  MSG,  QCU_UPTO(qcu_kernel_find, kernel),      FREE,  none,   none,  none,   0) \
	X(67,  KERNEL_INFO,       kernel_info,       USR,  OUT,  QCU_UPTO(qcu_kernel_info, kernel),      FREE,  none,   none,  none,   0) \
	X(68,  VAR_FIND,          var_find,          USR,  MSG,  QCU_UPTO(qcu_var_find, managed),        FREE,  none,   none,  none,   0) \
	X(69,  LAUNCH,            launch,            POST, MSG,  QCU_UPTO(qcu_launch, stream),           ABOUT, stream, none,  none,   QCU_WORK | QCU_MEMORY | QCU_TURN_GPU) \
	X(72,  PRINT_READ,        print_read,        USR,  OUT,  QCU_UPTO(qcu_print_read, rsvd),         FREE,  none,   none,  none,   QCU_ANY_DEVICE) \
	X(73,  STATS,             stats,             USR,  OUT,  QCU_UPTO(qcu_stats, buf),               ALL,   none,   none,  none,   QCU_ANY_DEVICE) \
	X(74,  VAR_BIND,          var_bind,          USR,  MSG,  QCU_UPTO(qcu_var_bind, size),           FREE,  none,   none,  none,   QCU_WORK) \
	X(75,  MODULE_NAMES,      module_names,      USR,  OUT,  QCU_UPTO(qcu_module_names, what),       FREE,  none,   none,  none,   0) \
	X(80,  IPC_MEM_EXPORT,    ipc_mem_export,    USR,  NONE, QCU_UPTO(qcu_ipc_mem_export, ptr),      ALL,   none,   none,  none,   QCU_BACK) \
	X(81,  IPC_MEM_OPEN,      ipc_mem_open,      USR,  NONE, QCU_UPTO(qcu_ipc_mem_open, token),      ALL,   none,   none,  none,   0) \
	X(82,  IPC_MEM_CLOSE,     ipc_mem_close,     USR,  NONE, QCU_UPTO(qcu_ipc_mem_close, ptr),       ALL,   none,   none,  none,   0) \
	X(83,  IPC_EVENT_EXPORT,  ipc_event_export,  USR,  NONE, QCU_UPTO(qcu_ipc_event_export, rsvd),   ALL,   none,   none,  none,   0) \
	X(84,  IPC_EVENT_OPEN,    ipc_event_open,    USR,  NONE, QCU_UPTO(qcu_ipc_event_open, rsvd),     ALL,   none,   none,  none,   0) \
	X(85,  GRAPH_MAKE,        graph_make,        USR,  IN,   QCU_UPTO(qcu_graph_make, nodes),         ALL,   none,   none,  none,   QCU_WORK | QCU_BACK) \
	X(86,  GRAPH_UPDATE,      graph_update,      USR,  IN,   QCU_UPTO(qcu_graph_update, nodes),       ALL,   none,   none,  none,   QCU_WORK | QCU_BACK) \
	X(87,  GRAPH_LAUNCH,      graph_launch,      POST, NONE, QCU_UPTO(qcu_graph_launch, flags),       ABOUT, stream, event, none,   QCU_WORK | QCU_MEMORY | QCU_RECORDS | QCU_TURN_GPU) \
	X(88,  COND_CREATE,       cond_create,       USR,  NONE, QCU_UPTO(qcu_cond_create, size),        ALL,   none,   none,  none,   QCU_WORK) \
	X(96,  HOST_FUNC,         host_func,         POST, NONE, QCU_UPTO(qcu_host_func, flags),         ABOUT, stream, none,  none,   QCU_WORK) \
	X(97,  HOST_NEXT,         host_next,         USR,  NONE, QCU_UPTO(qcu_host_next, wait),          ALL,   none,   none,  none,   QCU_ANY_DEVICE | QCU_PARKS) \
	X(101, OCCUPANCY_CLUSTER, occupancy_cluster, USR,  MSG,  QCU_UPTO(qcu_occupancy_cluster, what),  ALL,   none,   none,  none,   0) \
	X(109, MALLOC_ASYNC,      malloc_async,      USR,  NONE, QCU_UPTO(qcu_malloc_async, stream),     ALL,   none,   none,  none,   QCU_WORK) \
	X(110, FREE_ASYNC,        free_async,        POST, NONE, QCU_UPTO(qcu_free_async, stream),       ABOUT, stream, none,  none,   QCU_WORK) \
	X(112, ARRAY_CREATE,      array_create,      USR,  NONE, QCU_UPTO(qcu_array_create, offset),     ALL,   none,   none,  none,   QCU_WORK) \
	X(114, ARRAY_WRITE,       array_write,       POST, IN,   QCU_UPTO(qcu_array_write, stream),      ABOUT, stream, none,  none,   QCU_COPY | QCU_TURN_UP) \
	X(115, ARRAY_READ,        array_read,        POST, OUT,  QCU_UPTO(qcu_array_read, stream),       ABOUT, stream, none,  none,   QCU_COPY | QCU_TURN_DOWN) \
	X(116, ARRAY_DEVICE,      array_device,      POST, NONE, QCU_UPTO(qcu_array_device, stream),     ABOUT, stream, none,  none,   QCU_COPY | QCU_TURN_GPU) \
	X(117, ARRAY_COPY,        array_copy,        POST, NONE, QCU_UPTO(qcu_array_copy, depth),        ABOUT, stream, none,  none,   QCU_COPY | QCU_TURN_GPU) \
	X(118, TEXTURE_CREATE,    texture_create,    USR,  MSG,  QCU_UPTO(qcu_texture_create, buf),      ALL,   none,   none,  none,   QCU_WORK | QCU_BACK) \
	X(119, TEXTURE_DESTROY,   texture_destroy,   USR,  NONE, QCU_UPTO(qcu_texture_destroy, object),  ALL,   none,   none,  none,   QCU_WORK) \
	X(120, SURFACE_CREATE,    surface_create,    USR,  NONE, QCU_UPTO(qcu_surface_create, level),    ALL,   none,   none,  none,   QCU_WORK | QCU_BACK) \
	X(121, SURFACE_DESTROY,   surface_destroy,   USR,  NONE, QCU_UPTO(qcu_surface_destroy, object),  ALL,   none,   none,  none,   QCU_WORK) \
	X(122, RECT_H2D,          rect_h2d,          POST, IN,   QCU_UPTO(qcu_rect_h2d, flags),          ABOUT, stream, none,  flags,  QCU_COPY | QCU_TURN_UP) \
	X(123, RECT_D2H,          rect_d2h,          POST, OUT,  QCU_UPTO(qcu_rect_d2h, flags),          ABOUT, stream, none,  flags,  QCU_COPY | QCU_TURN_DOWN) \
	X(124, RECT_D2D,          rect_d2d,          POST, NONE, QCU_UPTO(qcu_rect_d2d, flags),          ABOUT, stream, none,  none,   QCU_COPY | QCU_TURN_GPU) \
	X(125, RESULT_READ,       result_read,       USR,  OUT,  QCU_UPTO(qcu_result_read, forget),      FREE,  none,   none,  none,   QCU_ANY_DEVICE) \
	X(126, LINK_CREATE,       link_create,       USR,  NONE, QCU_UPTO(qcu_link_create, jit),         FREE,  none,   none,  none,   QCU_WORK) \
	X(127, LINK_ADD,          link_add,          USR,  IN,   QCU_UPTO(qcu_link_add, jit),            FREE,  none,   none,  none,   QCU_WORK) \
	X(128, LINK_COMPLETE,     link_complete,     USR,  NONE, QCU_UPTO(qcu_link_complete, rsvd),      FREE,  none,   none,  none,   QCU_WORK) \
	X(141, STREAM_VALUE,      stream_value,      POST, NONE, QCU_UPTO(qcu_stream_value, flags),      ABOUT, stream, none,  none,   QCU_WORK | QCU_MEMORY) \
	X(142, TENSOR_MAP,        tensor_map,        USR,  MSG,  QCU_UPTO(qcu_tensor_map, buf),          FREE,  none,   none,  none,   0) \
	X(143, LIB_CALL,          lib_call,          POST, MSG,  QCU_UPTO(qcu_lib_call, function),       ABOUT, stream, none,  none,   QCU_WORK | QCU_MEMORY | QCU_TURN_GPU) \
	X(144, LIB_ASK,           lib_ask,           USR,  OUT,  QCU_UPTO(qcu_lib_ask, function),        ALL,   none,   none,  none,   QCU_WORK | QCU_MEMORY)
/* clang-format on */

#define QCU_COMMANDS(X)         \
	QCU_COMMANDS_BY_HAND(X) \
	QCU_COMMANDS_MADE(X)

/* Offsets in a record's body of the fields that the table names. */
#define QCU_FIELD_NONE		 0xff
#define QCU_FIELD_ALWAYS	 0xfe
#define QCU_FIELD_DEVICE	 0xfd
#define QCU_FIELD_RECORDED	 0xfc
#define QCU_FIELD_none(name)	 QCU_FIELD_NONE
#define QCU_FIELD_always(name)	 QCU_FIELD_ALWAYS
#define QCU_FIELD_device(name)	 QCU_FIELD_DEVICE
#define QCU_FIELD_recorded(name) QCU_FIELD_RECORDED
#define QCU_FIELD_stream(name)	 offsetof(struct qcu_##name, stream)
#define QCU_FIELD_event(name)	 offsetof(struct qcu_##name, event)
#define QCU_FIELD_start(name)	 offsetof(struct qcu_##name, start)
#define QCU_FIELD_flags(name)	 offsetof(struct qcu_##name, flags)

#endif

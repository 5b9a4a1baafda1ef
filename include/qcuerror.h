/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * CUDA's error codes with their names and texts, for the parts that are built without CUDA.
 * Programs print these names and texts. QCU_ERR_X has the value of cudaErrorX. A test compares all
 * of them with the toolkit's header and library.
 */
#ifndef QCUERROR_H
#define QCUERROR_H

/* clang-format off */
#define QCU_ERRORS(X) \
	X(0, Success, "no error") \
	X(1, InvalidValue, "invalid argument") \
	X(2, MemoryAllocation, "out of memory") \
	X(3, InitializationError, "initialization error") \
	X(4, CudartUnloading, "driver shutting down") \
	X(5, ProfilerDisabled, "profiler disabled while using external profiling tool") \
	X(6, ProfilerNotInitialized, "profiler not initialized: call cudaProfilerInitialize()") \
	X(7, ProfilerAlreadyStarted, "profiler already started") \
	X(8, ProfilerAlreadyStopped, "profiler already stopped") \
	X(9, InvalidConfiguration, "invalid configuration argument") \
	X(12, InvalidPitchValue, "invalid pitch argument") \
	X(13, InvalidSymbol, "invalid device symbol") \
	X(16, InvalidHostPointer, "invalid host pointer") \
	X(17, InvalidDevicePointer, "invalid device pointer") \
	X(18, InvalidTexture, "invalid texture reference") \
	X(19, InvalidTextureBinding, "texture is not bound to a pointer") \
	X(20, InvalidChannelDescriptor, "invalid channel descriptor") \
	X(21, InvalidMemcpyDirection, "invalid copy direction for memcpy") \
	X(22, AddressOfConstant, "invalid address of constant") \
	X(23, TextureFetchFailed, "fetch from texture failed") \
	X(24, TextureNotBound, "cannot fetch from a texture that is not bound") \
	X(25, SynchronizationError, "incorrect use of __syncthreads()") \
	X(26, InvalidFilterSetting, "linear filtering not supported for non-float type") \
	X(27, InvalidNormSetting, "read as normalized float not supported for data type") \
	X(28, MixedDeviceExecution, "device emulation mode and device execution mode cannot be mixed") \
	X(31, NotYetImplemented, "feature not yet implemented") \
	X(32, MemoryValueTooLarge, "memory size or pointer value too large to fit in 32 bit") \
	X(34, StubLibrary, "CUDA driver is a stub library") \
	X(35, InsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version") \
	X(36, CallRequiresNewerDriver, "API call is not supported in the installed CUDA driver") \
	X(37, InvalidSurface, "invalid surface reference") \
	X(43, DuplicateVariableName, "duplicate global variable looked up by string name") \
	X(44, DuplicateTextureName, "duplicate texture looked up by string name") \
	X(45, DuplicateSurfaceName, "duplicate surface looked up by string name") \
	X(46, DevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable") \
	X(49, IncompatibleDriverContext, "incompatible driver context") \
	X(52, MissingConfiguration, "__global__ function call is not configured") \
	X(53, PriorLaunchFailure, "unspecified launch failure in prior launch") \
	X(65, LaunchMaxDepthExceeded, "launch would exceed maximum depth of nested launches") \
	X(66, LaunchFileScopedTex, "launch failed because kernel uses unsupported, file-scoped textures (texture objects are supported)") \
	X(67, LaunchFileScopedSurf, "launch failed because kernel uses unsupported, file-scoped surfaces (surface objects are supported)") \
	X(68, SyncDepthExceeded, "cudaDeviceSynchronize failed because caller's grid depth exceeds cudaLimitDevRuntimeSyncDepth") \
	X(69, LaunchPendingCountExceeded, "launch failed because launch would exceed cudaLimitDevRuntimePendingLaunchCount") \
	X(98, InvalidDeviceFunction, "invalid device function") \
	X(100, NoDevice, "no CUDA-capable device is detected") \
	X(101, InvalidDevice, "invalid device ordinal") \
	X(102, DeviceNotLicensed, "device doesn't have valid Grid license") \
	X(103, SoftwareValidityNotEstablished, "integrity checks failed") \
	X(127, StartupFailure, "startup failure in cuda runtime") \
	X(200, InvalidKernelImage, "device kernel image is invalid") \
	X(201, DeviceUninitialized, "invalid device context") \
	X(205, MapBufferObjectFailed, "mapping of buffer object failed") \
	X(206, UnmapBufferObjectFailed, "unmapping of buffer object failed") \
	X(207, ArrayIsMapped, "array is mapped") \
	X(208, AlreadyMapped, "resource already mapped") \
	X(209, NoKernelImageForDevice, "no kernel image is available for execution on the device") \
	X(210, AlreadyAcquired, "resource already acquired") \
	X(211, NotMapped, "resource not mapped") \
	X(212, NotMappedAsArray, "resource not mapped as array") \
	X(213, NotMappedAsPointer, "resource not mapped as pointer") \
	X(214, ECCUncorrectable, "uncorrectable ECC error encountered") \
	X(215, UnsupportedLimit, "limit is not supported on this architecture") \
	X(216, DeviceAlreadyInUse, "exclusive-thread device already in use by a different thread") \
	X(217, PeerAccessUnsupported, "peer access is not supported between these two devices") \
	X(218, InvalidPtx, "a PTX JIT compilation failed") \
	X(219, InvalidGraphicsContext, "invalid OpenGL or DirectX context") \
	X(220, NvlinkUncorrectable, "uncorrectable NVLink error detected during the execution") \
	X(221, JitCompilerNotFound, "PTX JIT compiler library not found") \
	X(222, UnsupportedPtxVersion, "the provided PTX was compiled with an unsupported toolchain.") \
	X(223, JitCompilationDisabled, "PTX JIT compilation was disabled") \
	X(224, UnsupportedExecAffinity, "the provided execution affinity is not supported") \
	X(225, UnsupportedDevSideSync, "the provided PTX contains unsupported call to cudaDeviceSynchronize") \
	X(226, Contained, "Invalid access of peer GPU memory over nvlink or a hardware error") \
	X(300, InvalidSource, "device kernel image is invalid") \
	X(301, FileNotFound, "file not found") \
	X(302, SharedObjectSymbolNotFound, "shared object symbol not found") \
	X(303, SharedObjectInitFailed, "shared object initialization failed") \
	X(304, OperatingSystem, "OS call failed or operation not supported on this OS") \
	X(400, InvalidResourceHandle, "invalid resource handle") \
	X(401, IllegalState, "the operation cannot be performed in the present state") \
	X(402, LossyQuery, "attempted introspection would be semantically lossy") \
	X(500, SymbolNotFound, "named symbol not found") \
	X(600, NotReady, "device not ready") \
	X(700, IllegalAddress, "an illegal memory access was encountered") \
	X(701, LaunchOutOfResources, "too many resources requested for launch") \
	X(702, LaunchTimeout, "the launch timed out and was terminated") \
	X(703, LaunchIncompatibleTexturing, "launch uses incompatible texturing mode") \
	X(704, PeerAccessAlreadyEnabled, "peer access is already enabled") \
	X(705, PeerAccessNotEnabled, "peer access has not been enabled") \
	X(708, SetOnActiveProcess, "cannot set while device is active in this process") \
	X(709, ContextIsDestroyed, "context is destroyed") \
	X(710, Assert, "device-side assert triggered") \
	X(711, TooManyPeers, "peer mapping resources exhausted") \
	X(712, HostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped") \
	X(713, HostMemoryNotRegistered, "pointer does not correspond to a registered memory region") \
	X(714, HardwareStackError, "hardware stack error") \
	X(715, IllegalInstruction, "an illegal instruction was encountered") \
	X(716, MisalignedAddress, "misaligned address") \
	X(717, InvalidAddressSpace, "operation not supported on global/shared address space") \
	X(718, InvalidPc, "invalid program counter") \
	X(719, LaunchFailure, "unspecified launch failure") \
	X(720, CooperativeLaunchTooLarge, "too many blocks in cooperative launch") \
	X(721, TensorMemoryLeak, "tensor memory not completely freed") \
	X(800, NotPermitted, "operation not permitted") \
	X(801, NotSupported, "operation not supported") \
	X(802, SystemNotReady, "system not yet initialized") \
	X(803, SystemDriverMismatch, "system has unsupported display driver / cuda driver combination") \
	X(804, CompatNotSupportedOnDevice, "forward compatibility was attempted on non supported HW") \
	X(805, MpsConnectionFailed, "MPS client failed to connect to the MPS control daemon or the MPS server") \
	X(806, MpsRpcFailure, "the remote procedural call between the MPS server and the MPS client failed") \
	X(807, MpsServerNotReady, "MPS server is not ready to accept new MPS client requests") \
	X(808, MpsMaxClientsReached, "the hardware resources required to create MPS client have been exhausted") \
	X(809, MpsMaxConnectionsReached, "the hardware resources required to support device connections have been exhausted") \
	X(810, MpsClientTerminated, "the MPS client has been terminated by the server") \
	X(811, CdpNotSupported, "is using CUDA Dynamic Parallelism, but the current configuration, like MPS, does not support it") \
	X(812, CdpVersionMismatch, "unsupported interaction between different versions of CUDA Dynamic Parallelism") \
	X(900, StreamCaptureUnsupported, "operation not permitted when stream is capturing") \
	X(901, StreamCaptureInvalidated, "operation failed due to a previous error during capture") \
	X(902, StreamCaptureMerge, "operation would result in a merge of separate capture sequences") \
	X(903, StreamCaptureUnmatched, "capture was not ended in the same stream as it began") \
	X(904, StreamCaptureUnjoined, "capturing stream has unjoined work") \
	X(905, StreamCaptureIsolation, "dependency created on uncaptured work in another stream") \
	X(906, StreamCaptureImplicit, "operation would make the legacy stream depend on a capturing blocking stream") \
	X(907, CapturedEvent, "operation not permitted on an event last recorded in a capturing stream") \
	X(908, StreamCaptureWrongThread, "attempt to terminate a thread-local capture sequence from another thread") \
	X(909, Timeout, "wait operation timed out") \
	X(910, GraphExecUpdateFailure, "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update") \
	X(911, ExternalDevice, "an async error has occured in external entity outside of CUDA") \
	X(912, InvalidClusterSize, "a kernel launch error has occurred due to cluster misconfiguration") \
	X(913, FunctionNotLoaded, "the function handle is not loaded when calling an API that requires a loaded function") \
	X(914, InvalidResourceType, "one or more resources passed in are not valid resource types for the operation") \
	X(915, InvalidResourceConfiguration, "one or more resources are insufficient or non-applicable for the operation") \
	X(999, Unknown, "unknown error")
/* clang-format on */

enum qcu_error {
#define X(n, name, text) QCU_ERR_##name = n,
	QCU_ERRORS(X)
#undef X
};

#endif

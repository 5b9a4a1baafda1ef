# SPDX-License-Identifier: LGPL-2.1-or-later
# The shims of NVIDIA's libraries. scripts/shims/generate makes most of each from NVIDIA's headers and a file of
# remarks. SHIMS (in the Makefile) lists them.
# Sets: SHIM_LIBRARIES, SHIM_LIBRARIES_12, CUDNN_LIBRARIES.

SHIM_SONAME_cublas := libcublas.so.13
SHIM_SRCS_cublas := cublas.c cublas_copy.c cublas_status.c cublas_xt.c
SHIM_SONAME_cublaslt := libcublasLt.so.13
SHIM_SRCS_cublaslt := cublaslt.c cublaslt_desc.c cublaslt_matmul.c cublas_status.c
SHIM_SONAME_cufft := libcufft.so.12
SHIM_SRCS_cufft := cufft.c cufft_xt.c
SHIM_SONAME_curand := libcurand.so.10
SHIM_SRCS_curand := curand.c
SHIM_SONAME_cusolver := libcusolver.so.12
SHIM_SRCS_cusolver := cusolver.c cusolver_rf.c
SHIM_SONAME_cusparse := libcusparse.so.12
SHIM_SRCS_cusparse := cusparse.c cusparse_matrix.c
SHIM_SONAME_cudnn := libcudnn.so.9
SHIM_SRCS_cudnn := cudnn.c cudnn_backend.c cudnn_ctc.c cudnn_status.c cudnn_types.c
# The libraries that NVIDIA's libcudnn.so.9 loads. Some programs are linked with all of them; four export nothing public.
CUDNN_PARTS := adv cnn engines_precompiled engines_runtime_compiled engines_tensor_ir ext graph heuristic ops
# NVIDIA's libraries that have another name in CUDA 12.
SHIM_SONAME_12_cublas := libcublas.so.12
SHIM_SONAME_12_cublaslt := libcublasLt.so.12
SHIM_SONAME_12_cufft := libcufft.so.11
SHIM_SONAME_12_cusolver := libcusolver.so.11

SHIM_DIR := $(B)/qcu-library/shims
SHIM_MADE_IN := $(MADE_IN)/qcu-library/shims

define SHIM
# All that is made of one library, in one go, as the headers take long to read: here, and in the mirror's and the
# fuzzer's folders. The last two are read by tests/check/library_functions.sh only.
SHIM_FILES_$(1) := guest=$(SHIM_MADE_IN)/$(1)_guest.c unserved=$(SHIM_MADE_IN)/$(1)_unserved.c map=$(SHIM_MADE_IN)/$(1).map \
	mirror=$(MADE_IN)/qcu-device/libs/$(1)_mirror.c fuzz=$(MADE_IN)/tests/fuzz/libs/$(1)_fuzz.c $(if $(SHIM_SONAME_12_$(1)),older=$(SHIM_MADE_IN)/$(1)_12.c) \
	$(if $(filter cudnn,$(1)),parts=$(SHIM_MADE_IN)/cudnn_parts.c) \
	served=$(SHIM_MADE_IN)/$(1).served table=$(SHIM_MADE_IN)/$(1).table
SHIM_WRITTEN_$(1) := $$(foreach f,$$(SHIM_FILES_$(1)),$$(lastword $$(subst =, ,$$(f))))
$$(SHIM_WRITTEN_$(1)) &: $$(addprefix qcu-library/shims/remarks/$(1).,remarks syms$(if $(SHIM_SONAME_12_$(1)), cuda12)) $$(SHIM_PARTS) | deps cudart-header
	@mkdir -p $$(dir $$(SHIM_WRITTEN_$(1)))
	$(PYTHON) scripts/shims/generate $$(SHIM_FILES_$(1)) qcu-library/shims/remarks/$(1).remarks -I $(dir $(CUDART_INC))

SHIM_MADE_$(1) := $(SHIM_DIR)/$(1)_guest.o $(SHIM_DIR)/$(1)_unserved.o
$$(SHIM_MADE_$(1)): $(B)/%.o: $(MADE_IN)/%.c | deps
	@mkdir -p $$(@D)
	$(RUN) $(CC) $$(CFLAGS) -MMD -MP -c $$< -o $$@
SHIM_OBJS_$(1) := $$(SHIM_MADE_$(1)) $$(SHIM_SRCS_$(1):%.c=$(B)/qcu-library/shims/%.o)
$$(SHIM_OBJS_$(1)): override CFLAGS += -isystem $(dir $(CUDART_INC))
$$(SHIM_OBJS_$(1)): | cudart-header

# It finds the runtime in its own folder. What it takes of it is public, or has the version QCUDA_PRIVATE.
$(B)/qcu-library/$$(SHIM_SONAME_$(1)): $$(SHIM_OBJS_$(1)) $(SHIM_MADE_IN)/$(1).map $(B)/qcu-library/libcudart.so.13
	$(RUN) $(CC) -shared $(LDFLAGS) -Wl,-soname,$$(SHIM_SONAME_$(1)) -Wl,--version-script=$(SHIM_MADE_IN)/$(1).map \
		-Wl,-z,relro,-z,now '-Wl,-rpath,$$$$ORIGIN' -Wl,--disable-new-dtags -o $$@ $$(SHIM_OBJS_$(1)) \
		$(B)/qcu-library/libcudart.so.13
PARTS += $(B)/qcu-library/$$(SHIM_SONAME_$(1))
endef
$(foreach s,$(SHIMS),$(eval $(call SHIM,$(s))))

SHIM_LIBRARIES := $(foreach s,$(SHIMS),$(SHIM_SONAME_$(s)))

# Jumps into the shims, which must lie in the same folder. A sanitizer's build does not have them, as it does not have
# libcudart.so.12.
# JUMPS SONAME OBJECT SHIM
define JUMPS
$(B)/qcu-library/$(1): $(2) $(B)/qcu-library/$(3)
	echo '$(1) { *; };' >$(2:.o=.map)
	$(RUN) $(CC) -shared $(LDFLAGS) -Wl,-soname,$(1) -Wl,--version-script=$(2:.o=.map) \
		-Wl,-z,relro,-z,now,-z,defs '-Wl,-rpath,$$$$ORIGIN' -Wl,--disable-new-dtags -o $$@ $$^ $(B)/qcu-library/libcudart.so.13
endef

# The libraries of CUDA 12, and what remarks/NAME.cuda12 says.
SHIMS_12 := $(filter cublas cublaslt cufft cusolver,$(SHIMS))

define SHIM_12
$(SHIM_DIR)/$(1)_12.o: $(SHIM_MADE_IN)/$(1)_12.c | deps
	@mkdir -p $$(@D)
	$(RUN) $(CC) $$(CFLAGS) -isystem $(dir $(CUDART_INC)) -MMD -MP -c $$< -o $$@
endef
$(foreach s,$(SHIMS_12),$(eval $(call SHIM_12,$(s))))
$(foreach s,$(SHIMS_12),$(eval $(call JUMPS,$(SHIM_SONAME_12_$(s)),$(SHIM_DIR)/$(s)_12.o,$(SHIM_SONAME_$(s)))))

define CUDNN_PART
$(SHIM_DIR)/cudnn_$(1).o: $(SHIM_MADE_IN)/cudnn_parts.c | deps
	@mkdir -p $$(@D)
	$(RUN) $(CC) $$(CFLAGS) -DPART_$(1) -c $$< -o $$@
endef
$(foreach p,$(CUDNN_PARTS),$(eval $(call CUDNN_PART,$(p))))
$(foreach p,$(CUDNN_PARTS),$(eval $(call JUMPS,libcudnn_$(p).so.9,$(SHIM_DIR)/cudnn_$(p).o,libcudnn.so.9)))

SHIM_LIBRARIES_12 := $(if $(SAN),,$(foreach s,$(SHIMS_12),$(SHIM_SONAME_12_$(s))))
CUDNN_LIBRARIES := $(if $(SAN),,$(if $(filter cudnn,$(SHIMS)),$(CUDNN_PARTS:%=libcudnn_%.so.9)))
PARTS += $(addprefix $(B)/qcu-library/,$(SHIM_LIBRARIES_12) $(CUDNN_LIBRARIES))

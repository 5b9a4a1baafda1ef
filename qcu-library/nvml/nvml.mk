# SPDX-License-Identifier: LGPL-2.1-or-later
# libnvidia-ml.so.1, through which people's tools see this VM's devices, and qcu-smi, which prints them.
# nvml.syms lists what is exported. Nothing of libcudart is in it.

NVML := $(B)/qcu-library/nvml
NVML_SYMS := qcu-library/nvml/nvml.syms
NVML_OBJS := $(addprefix $(NVML)/,device.o sensors.o state.o system.o topology.o unknown.o use.o)
NVML_LIBRARY := $(B)/qcu-library/libnvidia-ml.so.1
QCU_SMI := $(B)/qcu-library/qcu-smi
QCU_SMI_OBJS := $(addprefix $(NVML)/,smi.o smi_fields.o smi_show.o)

$(NVML)/unknown.inc: $(NVML_SYMS) qcu-library/nvml/nvml.mk
	@mkdir -p $(@D)
	awk '/^#/ { next } $$2 == "quiet" { print "QUIET(" $$1 ", " $$3 ")" } \
		$$2 == "unsupported" { print "UNSUPPORTED(" $$1 ")" }' $< >$@

$(NVML)/unknown.o: $(NVML)/unknown.inc
$(NVML)/unknown.o: override CFLAGS += -I$(NVML)
$(NVML)/device.o $(NVML)/topology.o: override CFLAGS += -isystem $(dir $(CUDART_INC))
$(NVML)/device.o $(NVML)/topology.o: | cudart-header

NVML_LDFLAGS := -shared -Wl,-soname,libnvidia-ml.so.1 -Wl,-z,relro,-z,now $(if $(SAN),,-Wl,-z,defs)

$(NVML_LIBRARY): $(NVML_OBJS) $(NVML)/host_dev.o
	$(RUN) $(CC) $(LDFLAGS) $(NVML_LDFLAGS) -o $@ $^

# It needs no library, wherever it lies.
$(QCU_SMI): $(QCU_SMI_OBJS) $(NVML_OBJS) $(NVML)/host_dev.o
	$(RUN) $(CC) $(LDFLAGS) -o $@ $^

PARTS += $(NVML_LIBRARY) $(QCU_SMI)

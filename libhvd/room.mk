# SPDX-License-Identifier: Apache-2.0
# libhvd: the collective library. Knows MPI; knows nothing of the device.

# How files that a user names are opened, written and replaced: a room that needs
# nothing but libc. Both libraries contain it, hidden, and so do programs that
# link neither of their archives.
DISK_SRC := $(wildcard libhvd/disk/*.c)
DISK_OBJ := $(DISK_SRC:%.c=$(B)/obj/%.o)

# Command lines, on argp: a room of its own for programs of any room, which
# needs nothing but libc. No library contains it.
COMMAND_SRC := $(wildcard libhvd/command/*.c)

# UCX is a second transport, where its headers are. Its libraries are opened when
# they are needed (transport/ucx/library.h).
HAS_UCX := $(shell $(PKG_CONFIG) --exists ucx && echo y)
UCX_ABSENT := libhvd/transport/ucx/absent.c
UCX_SRC := $(if $(HAS_UCX),$(filter-out $(UCX_ABSENT),$(wildcard \
	libhvd/transport/ucx/*.c)),$(UCX_ABSENT))

HVD_SRC := $(UCX_SRC) $(wildcard libhvd/base/*.c libhvd/cluster/*.c libhvd/core/*/*.c libhvd/watch/*.c libhvd/trace/*.c \
	libhvd/transport/*.c libhvd/transport/tcp/*.c \
	libhvd/transport/algo/*.c libhvd/transport/shm/*.c libhvd/kernels/*.c libhvd/state/*.c libhvd/strategy/*.c)
HVD_OBJ := $(HVD_SRC:%.c=$(B)/obj/%.o) $(DISK_OBJ)
HVD_SO := $(B)/lib/libhvd.so
LIBS += $(HVD_SO) $(B)/lib/libhvd.a

# In libhvd.so gcc optimises the files together through which requests go, since
# calls between them are a tenth of the time of many small tensors. The other
# files would take the linker as long again. The archive has machine code alone:
# its users' compilers may be others.
IS_GCC := $(findstring gcc version,$(shell LC_ALL=C $(CC) -v 2>&1))
LTO := $(if $(IS_GCC),$(if $(filter release,$(FLAVOUR)),-flto=auto))
LTO_ROOMS := base core/% trace transport transport/algo transport/shm
LTO_OBJ := $(if $(LTO),$(foreach o,$(HVD_OBJ),$(if \
	$(filter $(LTO_ROOMS:%=$(B)/obj/libhvd/%/),$(dir $(o))),$(o))))
$(LTO_OBJ): BASE_CFLAGS += $(LTO) -ffat-lto-objects

# Nobody looks at errno after sqrt, whose loop can then be vectorised.
CFLAGS_libhvd = -Ilibhvd/include -Ilibhvd -fno-math-errno $(MPI_CFLAGS)

# The loops of the kernels round the same whatever instructions they are made
# of: a product and a sum must not become one.
KERNEL_VARIANT = -ffp-contract=off
CFLAGS_FILE_libhvd_kernels_variant_generic.c = $(KERNEL_VARIANT)
CFLAGS_FILE_libhvd_kernels_variant_avx2.c = $(KERNEL_VARIANT) \
	$(if $(IS_X86_64),-mavx2 -mf16c)
CFLAGS_FILE_libhvd_kernels_variant_avx512.c = $(KERNEL_VARIANT) \
	$(if $(IS_X86_64),-mavx2 -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl)
IS_X86_64 := $(filter x86_64-%,$(shell $(CC) -dumpmachine))

# Programs of ours find the library beside them, wherever build/ is.
HVD_LINK = -L$(B)/lib -lhvd $(call rpath,'$$ORIGIN/../lib')

$(HVD_SO).$(SOVERSION): $(HVD_OBJ) libhvd/libhvd.map
	$(call say,LD,$@)mkdir -p $(@D)
	$(Q)$(CC) -shared $(if $(LTO),$(CFLAGS) $(LTO)) $(BASE_LDFLAGS) $(LDFLAGS) \
		-Wl,-soname,libhvd.so.$(SOVERSION) \
		-Wl,--version-script=libhvd/libhvd.map -Wl,-z,nodelete \
		$(if $(SANITIZE),,-Wl,-z,defs) \
		-o $@ $(HVD_OBJ) $(HVD_NEEDS) -lm -pthread

$(HVD_SO): $(HVD_SO).$(SOVERSION)
	$(Q)ln -sf $(<F) $@

$(B)/lib/libhvd.a: $(HVD_OBJ)
	$(call say,AR,$@)mkdir -p $(@D) && rm -f $@
	$(Q)$(AR) rcs $@ $^
	$(if $(LTO),$(Q)objcopy --wildcard -R '.gnu.lto_*' -R '.gnu.debuglto_*' $@)

# Starts tasks of a cluster as processes of this host: a room of its own for
# programs, which needs libhvd's public functions. No library contains it.
LAUNCH_SRC := $(filter-out %/hvd-run.c,$(wildcard libhvd/launch/*.c))
PROGRAMS += $(B)/bin/hvd-run
SRC_hvd-run := libhvd/launch/hvd-run.c $(LAUNCH_SRC) $(COMMAND_SRC)
DEPS_hvd-run = $(HVD_SO)
LIBS_hvd-run = $(HVD_LINK)

# hvd-info sees the settings, which are not exported.
PROGRAMS += $(B)/bin/hvd-info
SRC_hvd-info := $(wildcard libhvd/tools/*.c)
LIBS_hvd-info = $(B)/lib/libhvd.a $(HVD_NEEDS)
DEPS_hvd-info = $(B)/lib/libhvd.a

# The package hvd for Python: what is installed, and what is used from the build.
# Its extension is written against the stable ABI of Python 3.11, so it is built
# once for all versions, if Python's headers are there. Sanitizers would have to
# be loaded by the interpreter.
PYTHON_FROM := libhvd/bindings/python
PYTHON_SRC := $(sort $(patsubst $(PYTHON_FROM)/%,%,$(shell find $(PYTHON_FROM) -name "*.py" -o -name "*.pyi" -o -name py.typed -o -name horovodrun)))
PYTHON_TO := $(B)/lib/python
PYTHON_MODULES := $(PYTHON_SRC:%=$(PYTHON_TO)/%)
HAS_PYTHON := $(if $(SANITIZE),,$(shell $(PKG_CONFIG) --atleast-version=3.11 python3 && echo y))
PYTHON_EXTENSION := $(if $(HAS_PYTHON),$(PYTHON_TO)/hvd/_hvd.abi3.so)
EXTENSION_SRC := $(wildcard $(PYTHON_FROM)/extension/*.c)
EXTENSION_OBJ := $(EXTENSION_SRC:%.c=$(B)/obj/%.o)
LIBS += $(PYTHON_MODULES) $(PYTHON_EXTENSION)

PYTHON_CFLAGS = $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags python3))
$(foreach f,$(EXTENSION_SRC),$(eval CFLAGS_FILE_$(subst /,_,$(f)) = $$(PYTHON_CFLAGS)))

$(PYTHON_MODULES): $(PYTHON_TO)/%: $(PYTHON_FROM)/%
	$(Q)mkdir -p $(@D) && cp $< $@

$(PYTHON_TO)/hvd/_hvd.abi3.so: $(EXTENSION_OBJ)
	$(call say,LD,$@)mkdir -p $(@D)
	$(Q)$(CC) -shared $(BASE_LDFLAGS) $(LDFLAGS) -o $@ $(EXTENSION_OBJ)

# libhvd-mpi.so is loaded before MPI, and does collectives of MPI programs. It
# contains a libhvd of its own, hidden, whose calls of MPI go to PMPI, and not to
# it, and whose threads are made by a function of it.
MPI_SO := $(B)/lib/libhvd-mpi.so
ACCEL_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(wildcard libhvd/mpi/*.c))
ACCEL_NAMES := $(B)/obj/libhvd/mpi/names
ACCEL_LIBHVD := $(B)/obj/libhvd/mpi/libhvd.a
LIBS += $(MPI_SO)

$(ACCEL_LIBHVD): $(B)/lib/libhvd.a
	$(Q)mkdir -p $(@D)
	$(Q)nm -u $< | sed -n 's/^ *U \(MPI_[A-Za-z0-9_]*\)$$/\1 P\1/p' | sort -u > $(ACCEL_NAMES)
	$(Q)echo pthread_create hvd__accel_pthread_create >> $(ACCEL_NAMES)
	$(Q)objcopy --redefine-syms=$(ACCEL_NAMES) $< $@

$(MPI_SO): $(ACCEL_OBJ) $(ACCEL_LIBHVD) libhvd/mpi/libhvd-mpi.map
	$(call say,LD,$@)mkdir -p $(@D)
	$(Q)$(CC) -shared $(BASE_LDFLAGS) $(LDFLAGS) -Wl,-z,nodelete \
		-Wl,--version-script=libhvd/mpi/libhvd-mpi.map \
		$(if $(SANITIZE),,-Wl,-z,defs) \
		-o $@ $(ACCEL_OBJ) $(ACCEL_LIBHVD) $(HVD_NEEDS) -lm -pthread

# SPDX-License-Identifier: Apache-2.0
# device: the software IPU. Knows OpenBLAS and jansson; knows nothing of ranks or MPI.

IPU_SRC := $(filter-out device/tools/%,$(wildcard device/*/*.c device/*/*/*.c))
# The page of reports, made into a C file by the embed script.
IPU_PAGE := $(B)/gen/report_page.c
IPU_OBJ := $(IPU_SRC:%.c=$(B)/obj/%.o) $(IPU_PAGE:%.c=$(B)/obj/%.o) \
	$(DISK_OBJ)
IPU_LIB := $(B)/lib/libipu.a
IPU_SO := $(B)/lib/libipu.so
LIBS += $(IPU_LIB) $(IPU_SO)

# These flags let loops become vector code: no code reads errno after sqrt, and
# none reads the flags that a comparison of NaN raises, so that both sides of a
# choice may be computed. Neither changes a value. Products and sums are not
# contracted: every set of instructions (ops/wide.h) gives the same bits.
CFLAGS_device = -Idevice/include -Idevice -Ilibhvd $(BLAS_CFLAGS) -fno-math-errno \
	-fno-trapping-math -ffp-contract=off \
	-fvisibility=default -fno-semantic-interposition
# libipu.map lists what libipu.so exports. Its functions cannot be replaced from
# outside, so they can be inlined.
# The project's own programs link the archive.
IPU_LINK = $(IPU_LIB) $(BLAS_LIBS) $(JSON_LIBS)

$(IPU_LIB): $(IPU_OBJ)
	$(call say,AR,$@)mkdir -p $(@D) && rm -f $@
	$(Q)$(AR) rcs $@ $^

$(IPU_SO).$(SOVERSION): $(IPU_OBJ) device/libipu.map
	$(call say,LD,$@)mkdir -p $(@D)
	$(Q)$(CC) -shared $(BASE_LDFLAGS) $(LDFLAGS) -Wl,-soname,libipu.so.$(SOVERSION) \
		-Wl,--version-script=device/libipu.map $(if $(SANITIZE),,-Wl,-z,defs) \
		-o $@ $(IPU_OBJ) $(BLAS_LIBS) $(JSON_LIBS) -lm -pthread

$(IPU_SO): $(IPU_SO).$(SOVERSION)
	$(Q)ln -sf $(<F) $@

$(IPU_PAGE): $(wildcard device/report/page/*)
	$(call say,EMBED,$@)mkdir -p $(@D)
	$(Q)device/report/page/embed device/report/page > $@.new && mv $@.new $@

# ipu-report shows a profile, or compares two.
PROGRAMS += $(B)/bin/ipu-report
SRC_ipu-report := device/tools/ipu_report.c $(COMMAND_SRC)
DEPS_ipu-report = $(IPU_LIB)
LIBS_ipu-report = $(IPU_LINK)

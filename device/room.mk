# SPDX-License-Identifier: Apache-2.0
# device: the software IPU. Knows OpenBLAS and jansson; knows nothing of ranks or MPI.

IPU_SRC := $(wildcard device/*/*.c)
# The page of reports, as a C file.
IPU_PAGE := $(B)/gen/report_page.c
IPU_OBJ := $(IPU_SRC:%.c=$(B)/obj/%.o) $(IPU_PAGE:%.c=$(B)/obj/%.o)
IPU_LIB := $(B)/lib/libipu.a
LIBS += $(IPU_LIB)

# Without errno, which nobody reads, loops over sqrt become vector code.
CFLAGS_device = -Idevice/include -Idevice $(BLAS_CFLAGS) -fno-math-errno
IPU_LINK = $(IPU_LIB) $(BLAS_LIBS) $(JSON_LIBS)

$(IPU_LIB): $(IPU_OBJ)
	$(call say,AR,$@)mkdir -p $(@D) && rm -f $@
	$(Q)$(AR) rcs $@ $^

$(IPU_PAGE): $(wildcard device/report/page/*)
	$(call say,EMBED,$@)mkdir -p $(@D)
	$(Q)device/report/page/embed device/report/page > $@.new && mv $@.new $@

# SPDX-License-Identifier: Apache-2.0
# bench: measures collectives against MPI and against the machine.

CFLAGS_bench = -Ilibhvd/include -Ibench $(MPI_CFLAGS)
BENCH_COMMON_SRC := $(filter-out bench/main.c,$(wildcard bench/*.c))
BENCH_LINK = $(HVD_LINK) $(MPI_LIBS) $(JSON_LIBS)

PROGRAMS += $(B)/bin/hvd-bench
SRC_hvd-bench := bench/main.c $(BENCH_COMMON_SRC)
DEPS_hvd-bench = $(HVD_SO)
LIBS_hvd-bench = $(BENCH_LINK)

# hvd-bench hosts runs it.
SCRIPTS += $(B)/bin/hvd-bench-hosts
$(B)/bin/hvd-bench-hosts: bench/hvd-bench-hosts
	$(call say,COPY,$@)mkdir -p $(@D)
	$(Q)install -m 755 $< $@

# SPDX-License-Identifier: Apache-2.0
# bench: measures collectives against MPI and against the machine, and tells
# what a modelled chip would measure.

CFLAGS_bench = -Ilibhvd/include -Idevice/include -Ibench -Ilibhvd $(MPI_CFLAGS)
BENCH_COMMON_SRC := $(filter-out bench/main.c bench/ipu_%.c bench/train_%.c,\
	$(wildcard bench/*.c)) $(COMMAND_SRC)
BENCH_LINK = $(HVD_LINK) $(MPI_LIBS) $(JSON_LIBS)

PROGRAMS += $(B)/bin/hvd-bench
SRC_hvd-bench := bench/main.c $(BENCH_COMMON_SRC) $(DISK_SRC)
DEPS_hvd-bench = $(HVD_SO)
LIBS_hvd-bench = $(BENCH_LINK)

# hvd-bench hosts runs it.
SCRIPTS += $(B)/bin/hvd-bench-hosts
$(B)/bin/hvd-bench-hosts: bench/hvd-bench-hosts
	$(call say,COPY,$@)mkdir -p $(@D)
	$(Q)install -m 755 $< $@

# ipu-bench needs neither MPI nor libhvd, only what tables and command lines
# have in common.
IPU_BENCH_SRC := $(filter-out bench/ipu_main.c,$(wildcard bench/ipu_*.c))
PROGRAMS += $(B)/bin/ipu-bench
SRC_ipu-bench := bench/ipu_main.c $(COMMAND_SRC) bench/table.c $(IPU_BENCH_SRC)
DEPS_ipu-bench = $(IPU_LIB)
LIBS_ipu-bench = $(IPU_LINK)

# train-bench runs the training programs; only its yardstick is its own.
PROGRAMS += $(B)/bin/train-bench
SRC_train-bench := $(wildcard bench/train_*.c) $(COMMAND_SRC) bench/table.c
LIBS_train-bench = $(BLAS_LIBS) $(JSON_LIBS)
# train-bench --peer torch runs it.
SCRIPTS += $(B)/bin/train-bench-torch
$(B)/bin/train-bench-torch: bench/train-bench-torch
	$(call say,COPY,$@)mkdir -p $(@D)
	$(Q)install -m 755 $< $@
CFLAGS_FILE_bench_train_run.c = $(BLAS_CFLAGS)

# SPDX-License-Identifier: Apache-2.0
# bench: measures collectives against MPI and against the machine, prints what
# a modelled chip would measure, and times the training programs.
#
#   tables/       calls, results and the tables that print them: pure functions
#   collectives/  hvd-bench: collectives, latency, gradients, commits, hosts
#   project/      hvd-bench project: a training step on hosts that are not there
#   cluster/      hvd-bench cluster: processes without MPI, against Gloo
#   chaos/        hvd-chaos: hurts the ranks of any job
#   ipu/          ipu-bench: the cost model's figures for a chip
#   train/        train-bench: the training programs
#   pytorch/      scripts: trainings, gradients and networks, beside PyTorch
#   report/       scripts of "make bench": measurements into one page

CFLAGS_bench = -Ilibhvd/include -Idevice/include -Ibench -Ilibhvd $(MPI_CFLAGS)
BENCH_COMMON_SRC := $(wildcard bench/tables/*.c) $(COMMAND_SRC) \
	$(filter-out %/main.c,$(wildcard bench/collectives/*.c))
BENCH_LINK = $(HVD_LINK) $(MPI_LIBS) $(JSON_LIBS)

PROGRAMS += $(B)/bin/hvd-bench
SRC_hvd-bench := bench/collectives/main.c $(BENCH_COMMON_SRC) $(DISK_SRC)
DEPS_hvd-bench = $(HVD_SO)
LIBS_hvd-bench = $(BENCH_LINK)

# hvd-bench hosts runs it.
SCRIPTS += $(B)/bin/hvd-bench-hosts
$(B)/bin/hvd-bench-hosts: bench/collectives/hvd-bench-hosts
	$(call say,COPY,$@)mkdir -p $(@D)
	$(Q)install -m 755 $< $@

# hvd-bench project becomes it. It asks libhvd's insides, which are not exported.
PROJECT_SRC := bench/tables/stats.c bench/tables/table.c $(COMMAND_SRC) \
	$(filter-out %/main.c,$(wildcard bench/project/*.c))
PROJECT_LINK = $(B)/lib/libhvd.a $(HVD_NEEDS)
PROGRAMS += $(B)/bin/hvd-bench-project
SRC_hvd-bench-project := bench/project/main.c $(PROJECT_SRC)
DEPS_hvd-bench-project = $(B)/lib/libhvd.a
LIBS_hvd-bench-project = $(PROJECT_LINK)

# hvd-bench cluster becomes it. Gloo is there to compare with, where its headers
# are (libgloo-dev); it takes the only C++ of this tree's programs.
GLOO_HEADER ?= /usr/include/gloo/allreduce.h
HAS_GLOO := $(wildcard $(GLOO_HEADER))
CXX := $(if $(filter default,$(origin CXX)),g++,$(CXX))
CLUSTER_SRC := $(filter-out %_absent.c,$(wildcard bench/cluster/*.c)) \
	$(if $(HAS_GLOO),,bench/cluster/backend_gloo_absent.c)
GLOO_OBJ := $(if $(HAS_GLOO),$(B)/obj/bench/cluster/backend_gloo.o)
PROGRAMS += $(B)/bin/hvd-bench-cluster
SRC_hvd-bench-cluster := $(CLUSTER_SRC) $(COMMAND_SRC) \
	bench/tables/stats.c bench/tables/table.c
DEPS_hvd-bench-cluster = $(GLOO_OBJ) $(HVD_SO)
LIBS_hvd-bench-cluster = $(HVD_LINK) $(JSON_LIBS) \
	$(if $(HAS_GLOO),-lgloo -lstdc++)

$(GLOO_OBJ): bench/cluster/backend_gloo.cc
	$(call say,CXX,$<)mkdir -p $(@D)
	$(Q)$(CXX) -std=c++14 -fPIC -pthread -MMD -MP -Wall -Wextra -Ibench \
		$(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# bench/pytorch/gradients opens it, beside the libhvd of the package hvd.
GRADIENTS_SO := $(B)/lib/hvd-bench-gradients.so
GRADIENTS_OBJ := $(B)/obj/bench/pytorch/gradients.o $(B)/obj/bench/collectives/models.o
LIBS += $(GRADIENTS_SO)

$(GRADIENTS_SO): $(GRADIENTS_OBJ) $(HVD_SO)
	$(call say,LD,$@)mkdir -p $(@D)
	$(Q)$(CC) -shared $(BASE_LDFLAGS) $(LDFLAGS) -o $@ $(GRADIENTS_OBJ) $(HVD_LINK)

# hvd-chaos needs libhvd for its version only.
PROGRAMS += $(B)/bin/hvd-chaos
SRC_hvd-chaos := $(wildcard bench/chaos/*.c) $(COMMAND_SRC)
DEPS_hvd-chaos = $(HVD_SO)
LIBS_hvd-chaos = $(HVD_LINK) $(JSON_LIBS)

# ipu-bench needs neither MPI nor libhvd.
IPU_BENCH_SRC := bench/tables/table.c \
	$(filter-out %/main.c,$(wildcard bench/ipu/*.c))
PROGRAMS += $(B)/bin/ipu-bench
SRC_ipu-bench := bench/ipu/main.c $(COMMAND_SRC) $(IPU_BENCH_SRC)
DEPS_ipu-bench = $(IPU_LIB)
LIBS_ipu-bench = $(IPU_LINK)

# train-bench starts the training programs; it only computes sgemm by itself.
PROGRAMS += $(B)/bin/train-bench
SRC_train-bench := $(wildcard bench/train/*.c) $(COMMAND_SRC) bench/tables/table.c
LIBS_train-bench = $(BLAS_LIBS) $(JSON_LIBS)
# train-bench --peer torch runs it.
SCRIPTS += $(B)/bin/train-bench-torch
$(B)/bin/train-bench-torch: bench/train/train-bench-torch
	$(call say,COPY,$@)mkdir -p $(@D)
	$(Q)install -m 755 $< $@
CFLAGS_FILE_bench_train_run.c = $(BLAS_CFLAGS)

# SPDX-License-Identifier: Apache-2.0
# tests: one program a file of tests/unit, tests/fuzz and tests/mpi, linked with
# what the file needs. They land in $(B)/bin/tests-*, and are not installed.

CFLAGS_tests = -Ilibhvd/include -Ilibhvd -Idevice/include -Idevice -Imodels/include -Imodels \
	-Ibench -Itests/support $(MPI_CFLAGS) $(BLAS_CFLAGS)

# Their compilation takes longer than what they compute by themselves.
$(foreach d,unit mpi fuzz support,$(B)/obj/tests/$(d)/%.o): CFLAGS := $(subst -O3,-Og,$(CFLAGS))

UNIT_TESTS := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/*.c))
FUZZ_TESTS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c))
MPI_TESTS := $(patsubst tests/mpi/%.c,%,$(wildcard tests/mpi/*.c))
TEST_PROGRAMS += $(UNIT_TESTS:%=$(B)/bin/tests-unit-%) \
	$(FUZZ_TESTS:%=$(B)/bin/tests-fuzz-%) \
	$(MPI_TESTS:%=$(B)/bin/tests-mpi-%)

# A unit test sees the insides of one room, named by the first word of its
# file: those of libhvd are linked statically for that.
TEST_LINK_libhvd = $(B)/lib/libhvd.a $(HVD_NEEDS)
TEST_LINK_device = $(IPU_LINK)
TEST_SRC_models = $(MODELS_COMMON_SRC)
TEST_LINK_models = $(MODELS_LINK)
TEST_SRC_train = $(TRAIN_SRC)
TEST_LINK_train = $(MODELS_LINK)
TEST_SRC_bench = $(BENCH_COMMON_SRC) $(DISK_SRC)
TEST_LINK_bench = $(BENCH_LINK)
TEST_SRC_project = $(PROJECT_SRC)
TEST_LINK_project = $(PROJECT_LINK)
test_room = $(if $(filter device models train bench project,$(1)),$(1),libhvd)

# $(1): the file, $(2): its room
define unit_test
SRC_tests-unit-$(1) := tests/unit/$(1).c tests/support/suite.c $(TEST_SRC_$(2))
LIBS_tests-unit-$(1) = $$(TEST_LINK_$(2)) $$(CHECK_LIBS)
DEPS_tests-unit-$(1) = $$(filter %.a,$$(TEST_LINK_$(2))) $$(IPU_LIB) $$(HVD_SO)
endef
$(foreach t,$(UNIT_TESTS),$(eval $(call unit_test,$(t),$(call \
	test_room,$(firstword $(subst _, ,$(t)))))))
# ipu-bench is a program of its own.
SRC_tests-unit-bench_ipu := tests/unit/bench_ipu.c tests/support/suite.c \
	$(IPU_BENCH_SRC)
LIBS_tests-unit-bench_ipu = $(IPU_LINK) $(CHECK_LIBS)
# They simulate ranks.
$(foreach t,adasum broadcast exchange reduce,$(eval SRC_tests-unit-transport_$(t) \
	+= tests/support/simulated.c tests/support/simulated_run.c))

# Fuzzing is of what libhvd reads, and of the device's files.
# $(1): the file, $(2): its room
define fuzz_test
SRC_tests-fuzz-$(1) := tests/fuzz/$(1).c tests/support/suite.c
LIBS_tests-fuzz-$(1) = $$(TEST_LINK_$(2)) $$(CHECK_LIBS)
DEPS_tests-fuzz-$(1) = $$(filter %.a,$$(TEST_LINK_$(2)))
endef
$(foreach t,$(FUZZ_TESTS),$(eval $(call fuzz_test,$(t),$(call \
	test_room,$(firstword $(subst _, ,$(t)))))))
SRC_tests-fuzz-wire += tests/support/wire_messages.c
SRC_tests-fuzz-models_description += models/remote/description.c \
	models/output/problem.c
DEPS_tests-fuzz-models_description += $(B)/lib/libhvd.a
LIBS_tests-fuzz-models_description += $(B)/lib/libhvd.a

define mpi_test
SRC_tests-mpi-$(1) := tests/mpi/$(1).c tests/support/ranks.c \
	tests/support/expected.c tests/support/suite.c
LIBS_tests-mpi-$(1) = $$(HVD_LINK) $$(MPI_LIBS) $$(CHECK_LIBS)
DEPS_tests-mpi-$(1) = $$(HVD_SO)
endef
$(foreach t,$(MPI_TESTS),$(eval $(call mpi_test,$(t))))
SRC_tests-mpi-metrics += $(wildcard models/metric/*.c) models/output/problem.c
# They have the device, and what joins the two.
SRC_tests-mpi-pipeline += models/trainer/pipeline_exchange.c \
	models/trainer/exchange.c models/trainer/serving.c \
	models/trainer/agree.c models/model/optimizer.c models/output/problem.c
$(foreach t,net_connect $(filter estimator%,$(MPI_TESTS)),\
	$(eval SRC_tests-mpi-$(t) += tests/support/lines.c)\
	$(eval LIBS_tests-mpi-$(t) += -lhvd-train -lipu)\
	$(eval DEPS_tests-mpi-$(t) += $$(TRAIN_SO) $$(IPU_SO)))
SRC_tests-mpi-device_collective += $(addprefix models/trainer/,\
	device_collective.c program.c update.c compiling.c agree.c) $(addprefix \
	models/output/,problem.c progress.c progress_text.c terminal.c launcher.c outfile.c) models/model/model.c models/model/orthogonal.c \
	models/model/weights.c models/files/safetensors.c \
	models/model/optimizer.c
$(foreach t,pipeline device_collective,\
	$(eval LIBS_tests-mpi-$(t) += $$(IPU_LINK))\
	$(eval DEPS_tests-mpi-$(t) += $$(IPU_LIB)))

# Draws digits for the tests of models that train on the same ones.
TEST_PROGRAMS += $(B)/bin/tests-draw-digits
SRC_tests-draw-digits := tests/support/draw_digits.c $(ALONE_SRC)
DEPS_tests-draw-digits = $(B)/lib/libhvd.a $(IPU_LIB)
LIBS_tests-draw-digits = $(B)/lib/libhvd.a $(IPU_LINK) $(JSON_LIBS) $(ZLIB_LIBS)

# The simulator: libhvd's archive, in which its own files stand for two of it.
TEST_PROGRAMS += $(B)/bin/hvd-sim
SRC_hvd-sim := $(wildcard tests/sim/*.c) $(COMMAND_SRC)
# Files that look at the memory of other ranks, with atoms.h in front of them.
SIM_OBJ := $(patsubst libhvd/%.c,$(B)/obj/tests/sim/libhvd/%.o,$(wildcard \
	libhvd/core/agree/*.c libhvd/transport/algo/*.c libhvd/transport/shm/shm.c))
$(B)/obj/tests/sim/libhvd/%.o: libhvd/%.c tests/sim/atoms.h
	$(call say,CC,$< for hvd-sim)mkdir -p $(@D)
	$(Q)$(CC) $(BASE_CFLAGS) $(CFLAGS_libhvd) $(CPPFLAGS) $(CFLAGS) \
		-include tests/sim/atoms.h -c -o $@ $<
$(B)/bin/hvd-sim: $(SIM_OBJ)
SIM_WRAPS := hvd__world_get hvd_is_initialized hvd_rank hvd_size hvd__execute \
	hvd__execute_skip clock_gettime sched_yield pthread_mutex_lock \
	pthread_mutex_unlock
LIBS_hvd-sim = $(SIM_WRAPS:%=-Wl,--wrap=%) $(B)/lib/libhvd.a $(HVD_NEEDS)
DEPS_hvd-sim = $(B)/lib/libhvd.a
# The same for the watchdogs alone, of which there can be more.
TEST_PROGRAMS += $(B)/bin/hvd-sim-watch
SRC_hvd-sim-watch := $(wildcard tests/sim/watch/*.c) $(COMMAND_SRC)
SIM_WATCH_WRAPS := clock_gettime eventfd getrandom gethostname getpid hvd__log \
	hvd__thread_start hvd__page_create hvd__page_attach hvd__page_unmap \
	hvd__segment_address_of hvd__segment_settle hvd__process_open \
	hvd__process_start_time hvd__process_fate hvd__socket_open \
	hvd__socket_filter hvd__socket_send hvd__socket_receive \
	hvd__socket_next_refusal
LIBS_hvd-sim-watch = $(SIM_WATCH_WRAPS:%=-Wl,--wrap=%) $(B)/lib/libhvd.a \
	$(HVD_NEEDS)
DEPS_hvd-sim-watch = $(B)/lib/libhvd.a
# The agreement on who is left, which needs nothing else.
TEST_PROGRAMS += $(B)/bin/hvd-sim-recovery
SRC_hvd-sim-recovery := $(wildcard tests/sim/recovery/*.c) $(COMMAND_SRC)
LIBS_hvd-sim-recovery = $(B)/lib/libhvd.a $(HVD_NEEDS)
DEPS_hvd-sim-recovery = $(B)/lib/libhvd.a

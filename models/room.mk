# SPDX-License-Identifier: Apache-2.0
# models: the trainer library, training programs, and what these share.

# libhvd-train.map lists what libhvd-train.so exports.
CFLAGS_models = -Ilibhvd/include -Idevice/include -Imodels/include -Imodels -Ilibhvd \
	-fvisibility=default -fno-semantic-interposition
# libhvd-train is made of the rooms that its public headers describe, and of those
# that they need.
TRAIN_SRC := $(wildcard $(patsubst %,models/%/*.c,output files data dataset model \
	net estimator schedule metric checkpoint log trainer))
TRAIN_OBJ := $(TRAIN_SRC:%.c=$(B)/obj/%.o)
TRAIN_SO := $(B)/lib/libhvd-train.so
TRAIN_LIB := $(B)/lib/libhvd-train.a
LIBS += $(TRAIN_SO) $(TRAIN_LIB)
TRAIN_NEEDS = -L$(B)/lib -lhvd -lipu $(JSON_LIBS) $(ZLIB_LIBS)

$(TRAIN_SO).$(SOVERSION): $(TRAIN_OBJ) $(DISK_OBJ) models/libhvd-train.map $(HVD_SO) $(IPU_SO)
	$(call say,LD,$@)mkdir -p $(@D)
	$(Q)$(CC) -shared $(BASE_LDFLAGS) $(LDFLAGS) -Wl,-soname,libhvd-train.so.$(SOVERSION) $(call rpath,'$$ORIGIN') \
		-Wl,--version-script=models/libhvd-train.map $(if $(SANITIZE),,-Wl,-z,defs) \
		-o $@ $(TRAIN_OBJ) $(DISK_OBJ) $(TRAIN_NEEDS) -lm -pthread

$(TRAIN_SO): $(TRAIN_SO).$(SOVERSION)
	$(Q)ln -sf $(<F) $@

# One object, whose private names cannot meet those of a program.
$(TRAIN_LIB): $(TRAIN_OBJ) $(DISK_OBJ)
	$(call say,AR,$@)mkdir -p $(@D) && rm -f $@
	$(Q)$(LD) -r -o $@.o $^ && objcopy --wildcard --keep-global-symbol='hvd_*' $@.o
	$(Q)$(AR) rcs $@ $@.o && rm -f $@.o

MODELS_COMMON_SRC := $(TRAIN_SRC) $(wildcard $(patsubst %,models/%/*.c,command options \
	networks remote gpt mnist)) $(LAUNCH_SRC)
# A command line, problems and profiles: for programs without ranks.
MODELS_PLAIN_SRC := $(addprefix models/,options/line.c options/values.c \
	output/problem.c output/problem_print.c output/profile.c)
# The archive: models/remote proves by the handshake and the key of libhvd, which
# are not exported.
MODELS_LINK = $(B)/lib/libhvd.a $(HVD_NEEDS) $(IPU_LINK) $(JSON_LIBS) $(ZLIB_LIBS)

PROGRAMS += $(B)/bin/mnist
SRC_mnist := models/mnist.c $(MODELS_COMMON_SRC)
DEPS_mnist = $(B)/lib/libhvd.a $(IPU_LIB)
LIBS_mnist = $(MODELS_LINK)

PROGRAMS += $(B)/bin/char_gpt
SRC_char_gpt := models/char_gpt.c $(MODELS_COMMON_SRC)
DEPS_char_gpt = $(B)/lib/libhvd.a $(IPU_LIB)
LIBS_char_gpt = $(MODELS_LINK)

PROGRAMS += $(B)/bin/hvd-server
SRC_hvd-server := models/hvd_server.c $(wildcard models/remote/*.c) \
	$(MODELS_PLAIN_SRC)
DEPS_hvd-server = $(B)/lib/libhvd.a $(IPU_LIB)
LIBS_hvd-server = $(MODELS_LINK)

# Runs ONNX models, and trains them on ranks.
PROGRAMS += $(B)/bin/ipu-run
SRC_ipu-run := models/ipu_run.c $(wildcard models/run/*.c) $(COMMAND_SRC) $(TRAIN_SRC)
DEPS_ipu-run = $(B)/lib/libhvd.a $(IPU_LIB)
LIBS_ipu-run = $(MODELS_LINK)

# Files of tensors alone.
PROGRAMS += $(B)/bin/hvd-checkpoint
SRC_hvd-checkpoint := models/hvd_checkpoint.c $(wildcard $(patsubst %,models/%/*.c,\
	inspect checkpoint files)) $(MODELS_PLAIN_SRC)
DEPS_hvd-checkpoint = $(B)/lib/libhvd.a $(IPU_LIB)
LIBS_hvd-checkpoint = $(B)/lib/libhvd.a $(IPU_LINK) $(JSON_LIBS) $(ZLIB_LIBS)

PROGRAMS += $(B)/bin/hvd-log-page
SRC_hvd-log-page := models/hvd_log_page.c $(wildcard $(patsubst %,models/%/*.c,\
	log files)) $(MODELS_PLAIN_SRC)
DEPS_hvd-log-page = $(B)/lib/libhvd.a $(IPU_LIB)
LIBS_hvd-log-page = $(B)/lib/libhvd.a $(IPU_LINK) $(JSON_LIBS) $(ZLIB_LIBS)

# The parts of the trainer library that need no ranks: no strategy either.
ALONE_SRC := $(filter-out models/net/connect.c,$(wildcard $(patsubst \
	%,models/%/*.c,output files data dataset model net)))

# The device alone, without MPI; of libhvd only the text of the last error.
PROGRAMS += $(B)/bin/memory_tools
SRC_memory_tools := models/memory_tools.c $(wildcard models/memory/*.c) \
	$(addprefix models/,options/line.c options/values.c \
	$(addprefix trainer/,engine.c replicas.c pipeline.c pipeline_exchange.c feed.c)) \
	$(ALONE_SRC)
DEPS_memory_tools = $(B)/lib/libhvd.a $(IPU_LIB)
LIBS_memory_tools = $(B)/lib/libhvd.a $(IPU_LINK) $(JSON_LIBS) $(ZLIB_LIBS)

# Programs of one idea each, on the parts of the trainer library that need no
# ranks.
CHAPTER_SRC := $(addprefix models/,options/line.c options/values.c chapter/loop.c) \
	$(ALONE_SRC)
CHAPTER_PROGRAMS := ipu-feeds ipu-losses ipu-replicas ipu-dataset-bench
PROGRAMS += $(CHAPTER_PROGRAMS:%=$(B)/bin/%)
SRC_ipu-feeds := models/chapter/feeds.c $(CHAPTER_SRC)
SRC_ipu-losses := models/chapter/losses.c models/chapter/source.c models/mnist/dataset.c $(CHAPTER_SRC)
SRC_ipu-replicas := models/chapter/replicas.c models/chapter/source.c models/mnist/dataset.c $(CHAPTER_SRC)
SRC_ipu-dataset-bench := models/chapter/dataset_bench.c models/chapter/source.c models/mnist/dataset.c $(CHAPTER_SRC)
$(foreach p,$(CHAPTER_PROGRAMS),$(eval DEPS_$(p) = $$(B)/lib/libhvd.a $$(IPU_LIB)))
$(foreach p,$(CHAPTER_PROGRAMS),$(eval LIBS_$(p) = $$(B)/lib/libhvd.a $$(IPU_LINK) $$(JSON_LIBS) $$(ZLIB_LIBS)))

PROGRAMS += $(B)/bin/pipelined
SRC_pipelined := models/pipelined.c $(wildcard models/pipeline/*.c) $(MODELS_COMMON_SRC)
DEPS_pipelined = $(B)/lib/libhvd.a $(IPU_LIB)
LIBS_pipelined = $(MODELS_LINK)

# The package ipu for Python, beside the package hvd, which it needs. Its extension
# is linked with the libraries by their sonames alone: ipu/_library.py opens them.
IPU_PYTHON_FROM := models/bindings/python
IPU_PYTHON_SRC := $(sort $(patsubst $(IPU_PYTHON_FROM)/%,%,$(wildcard \
	$(addprefix $(IPU_PYTHON_FROM)/ipu/,*.py *.pyi py.typed))))
IPU_PYTHON_EXTENSION := $(if $(HAS_PYTHON),$(PYTHON_TO)/ipu/_ipu.abi3.so)
IPU_EXTENSION_SRC := $(wildcard $(IPU_PYTHON_FROM)/extension/*.c)
IPU_EXTENSION_OBJ := $(IPU_EXTENSION_SRC:%.c=$(B)/obj/%.o)
IPU_PYTHON_MODULES := $(IPU_PYTHON_SRC:%=$(PYTHON_TO)/%)
LIBS += $(IPU_PYTHON_MODULES) $(IPU_PYTHON_EXTENSION)

$(foreach f,$(IPU_EXTENSION_SRC),$(eval CFLAGS_FILE_$(subst /,_,$(f)) = \
	$$(PYTHON_CFLAGS) -fvisibility=hidden))

$(IPU_PYTHON_MODULES): $(PYTHON_TO)/%: $(IPU_PYTHON_FROM)/%
	$(Q)mkdir -p $(@D) && cp $< $@

$(PYTHON_TO)/ipu/_ipu.abi3.so: $(IPU_EXTENSION_OBJ) $(TRAIN_SO)
	$(call say,LD,$@)mkdir -p $(@D)
	$(Q)$(CC) -shared $(BASE_LDFLAGS) $(LDFLAGS) -o $@ $(IPU_EXTENSION_OBJ) \
		-L$(B)/lib -lhvd-train -lipu -lhvd

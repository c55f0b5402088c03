# SPDX-License-Identifier: Apache-2.0
# models: training programs and what they share.

CFLAGS_models = -Ilibhvd/include -Idevice/include -Imodels -Ilibhvd
MODELS_COMMON_SRC := $(wildcard $(patsubst %,models/%/*.c,command options output \
	data model trainer gpt mnist))
# A command line, problems and profiles: for programs without ranks.
MODELS_PLAIN_SRC := $(addprefix models/,options/line.c options/values.c \
	output/problem.c output/problem_print.c output/profile.c)
MODELS_LINK = $(HVD_LINK) $(IPU_LINK) $(JSON_LIBS) $(ZLIB_LIBS)

PROGRAMS += $(B)/bin/mnist
SRC_mnist := models/mnist.c $(MODELS_COMMON_SRC)
DEPS_mnist = $(HVD_SO) $(IPU_LIB)
LIBS_mnist = $(MODELS_LINK)

PROGRAMS += $(B)/bin/char_gpt
SRC_char_gpt := models/char_gpt.c $(MODELS_COMMON_SRC)
DEPS_char_gpt = $(HVD_SO) $(IPU_LIB)
LIBS_char_gpt = $(MODELS_LINK)

# The device alone, without MPI; of libhvd only the text of the last error.
PROGRAMS += $(B)/bin/memory_tools
SRC_memory_tools := models/memory_tools.c $(wildcard models/memory/*.c) \
	$(addprefix models/trainer/,engine.c replicas.c pipeline.c \
	pipeline_exchange.c feed.c) models/model/model.c $(MODELS_PLAIN_SRC)
DEPS_memory_tools = $(B)/lib/libhvd.a $(IPU_LIB)
LIBS_memory_tools = $(B)/lib/libhvd.a $(IPU_LINK)

# Programs of one idea each, likewise.
CHAPTER_DIGITS_SRC := $(MODELS_PLAIN_SRC) models/chapter/digits_source.c \
	models/chapter/perceptron.c models/data/digits.c \
	models/data/idx.c models/output/progress.c
CHAPTER_PROGRAMS := ipu-feeds ipu-losses ipu-replicas ipu-dataset-bench
PROGRAMS += $(CHAPTER_PROGRAMS:%=$(B)/bin/%)
SRC_ipu-feeds := models/chapter/feeds.c $(MODELS_PLAIN_SRC)
SRC_ipu-losses := models/chapter/losses.c $(CHAPTER_DIGITS_SRC)
SRC_ipu-replicas := models/chapter/replicas.c $(CHAPTER_DIGITS_SRC)
SRC_ipu-dataset-bench := models/chapter/dataset_bench.c $(CHAPTER_DIGITS_SRC)
$(foreach p,$(CHAPTER_PROGRAMS),$(eval DEPS_$(p) = $$(B)/lib/libhvd.a $$(IPU_LIB)))
$(foreach p,$(CHAPTER_PROGRAMS),$(eval LIBS_$(p) = $$(B)/lib/libhvd.a $$(IPU_LINK) $$(ZLIB_LIBS)))

PROGRAMS += $(B)/bin/pipelined
SRC_pipelined := models/pipelined.c $(wildcard models/pipeline/*.c) $(MODELS_COMMON_SRC)
DEPS_pipelined = $(HVD_SO) $(IPU_LIB)
LIBS_pipelined = $(MODELS_LINK)

# hvd: collective library, software IPU, training programs.
#
# One non-recursive file. Each room lists its sources in its room.mk; objects
# go to $(B)/obj, libraries to $(B)/lib, programs to $(B)/bin. Nothing is
# written outside build/ but by install. Local settings: config.mk.
#
#   make FLAVOUR=asan …   builds in build/asan with ASan and UBSan
#   make FLAVOUR=tsan …   builds in build/tsan with TSan
#   make V=1 …            shows every command

-include config.mk

# ---------------------------------------------------------------- settings

VERSION := 0.1.0
SOVERSION := 0
PREFIX ?= /usr/local
DESTDIR ?=
LIBDIR ?= $(PREFIX)/lib
CC := $(if $(filter default,$(origin CC)),gcc,$(CC))
PKG_CONFIG ?= pkg-config
FLAVOUR ?= release
B := $(if $(filter release,$(FLAVOUR)),build,build/$(FLAVOUR))

OPT_release := -O3 -g
OPT_asan := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined \
	-fno-sanitize-recover=undefined
OPT_tsan := -O1 -g -fsanitize=thread
CFLAGS ?= $(OPT_$(FLAVOUR))
SANITIZE := $(filter -fsanitize=%,$(OPT_$(FLAVOUR)))

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes \
	-Wmissing-prototypes -Wpointer-arith -Wcast-qual -Wvla -Wundef
HARDEN := -fstack-protector-strong \
	$(if $(SANITIZE),,-D_FORTIFY_SOURCE=2)
BASE_CFLAGS := -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden -pthread \
	-MMD -MP $(WARNINGS) $(HARDEN) -DHVD_VERSION_STRING='"$(VERSION)"'
BASE_LDFLAGS := -Wl,-z,relro,-z,now $(SANITIZE)

# -isystem: the warnings are for our headers, not for theirs.
MPI_CFLAGS = $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags ompi-c))
MPI_LIBS = $(shell $(PKG_CONFIG) --libs ompi-c)
BLAS_CFLAGS = $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags openblas))
BLAS_LIBS = $(shell $(PKG_CONFIG) --libs openblas)
JSON_LIBS = $(shell $(PKG_CONFIG) --libs jansson)
ZLIB_LIBS = $(shell $(PKG_CONFIG) --libs zlib)
CHECK_LIBS = $(shell $(PKG_CONFIG) --libs check)

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-5s %s\n' '$(1)' '$(patsubst $(B)/%,%,$(2))';)

# --------------------------------------------------------------- the rooms

.PHONY: all
all:

include libhvd/room.mk
include device/room.mk
include models/room.mk
include bench/room.mk
include tests/room.mk

all: $(LIBS) $(PROGRAMS)

# A room's room.mk adds to LIBS, PROGRAMS and TEST_PROGRAMS, and says for each
# program P, by its base name: SRC_P (sources), CFLAGS_P, LIBS_P.

# ------------------------------------------------------------ how to build

$(B)/obj/%.o: %.c
	$(call say,CC,$<)mkdir -p $(@D)
	$(Q)$(CC) $(BASE_CFLAGS) $(ROOM_CFLAGS) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

define program_rules
$(B)/bin/$(1): $(patsubst %.c,$(B)/obj/%.o,$(SRC_$(1))) $(DEPS_$(1))
	$$(call say,LINK,$$@)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(BASE_LDFLAGS) $$(LDFLAGS) -o $$@ \
		$$(filter %.o,$$^) $$(LIBS_$(1)) -lm -pthread
endef
$(foreach p,$(notdir $(PROGRAMS) $(TEST_PROGRAMS)),\
	$(eval $(call program_rules,$(p))))

# Deferred (=): evaluated for each object by its path.
ROOM_CFLAGS = $(CFLAGS_$(firstword $(subst /, ,$<))) $(CFLAGS_FILE_$(subst /,_,$<))

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)

.PHONY: clean
clean: ## remove build/
	$(Q)rm -rf build

.PHONY: format
format: ## reformat every source file in place
	$(Q)git ls-files '*.c' '*.h' '*.inc' | xargs clang-format -i

.PHONY: help
help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' Makefile | sort | \
		awk -F ':.*## ' '{ printf "  %-14s %s\n", $$1, $$2 }'

# SPDX-License-Identifier: Apache-2.0
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
# Programs, and those that pkg-config helps to build, find the libraries where
# they were built or installed. Packages set it empty: theirs are where the
# loader looks anyway.
RPATH ?= y
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
NETTLE_LIBS = $(shell $(PKG_CONFIG) --libs nettle)
# What libhvd needs of others.
HVD_NEEDS = $(MPI_LIBS) $(NETTLE_LIBS) $(JSON_LIBS)
JSON_LIBS = $(shell $(PKG_CONFIG) --libs jansson)
ZLIB_LIBS = $(shell $(PKG_CONFIG) --libs zlib)
CHECK_LIBS = $(shell $(PKG_CONFIG) --libs check)

, := ,
# $(1): a directory. Expands to what has the linker write it into a file.
rpath = $(if $(RPATH),-Wl$(,)-rpath$(,)$(1))

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-5s %s\n' '$(1)' '$(patsubst $(B)/%,%,$(2))';)

# --------------------------------------------------------------- the rooms

.PHONY: all
all: ## build libraries and programs (the default)

include libhvd/room.mk
include device/room.mk
include models/room.mk
include bench/room.mk
include tests/room.mk

all: $(LIBS) $(PROGRAMS) $(SCRIPTS)

# What cannot work without packages says so before a compiler does.
ifeq ($(filter deps demo check check-full sanitize tsan bench clean deb help format,$(MAKECMDGOALS)),)
ifneq ($(shell $(PKG_CONFIG) --exists ompi-c openblas jansson nettle zlib && echo y),y)
$(error packages are missing: "make deps" installs them)
endif
endif

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

.PHONY: all-tests
all-tests: $(LIBS) $(PROGRAMS) $(SCRIPTS) $(TEST_PROGRAMS) ## build everything, including the tests

# ------------------------------------------------------ packages, demo, tests

PACKAGES := gcc g++ make pkg-config openmpi-bin libopenmpi-dev libucx-dev libopenblas-dev \
	uthash-dev libjansson-dev nettle-dev zlib1g-dev check bats procps iproute2 python3 \
	python3-dev python3-numpy python3-yaml gfortran groff-base
# A test that is skipped has failed: those of HTML pages look at them, those of
# completion complete words, those of hvd.torch train, those of libhvd-mpi.so call
# MPI by mpi4py, and a cluster of Slurm runs.
TEST_PACKAGES := chromium nodejs bash-completion python3-torch python3-torchvision python3-mpi4py \
	libonnx-testdata python3-onnx \
	slurmctld slurmd slurm-client munge

.PHONY: deps
deps: ## install missing Debian packages, and say which
	$(Q)tests/tools/install-packages $(PACKAGES)

# The README's two commands use all cores to build, unless make was told how many.
ON_ALL_CORES = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

# Packages first: what follows asks pkg-config, which may only now be there.
.PHONY: demo
demo: deps ## train the MNIST network on 2 ranks, on drawn digits
	$(Q)$(MAKE) --no-print-directory $(ON_ALL_CORES) all
	$(Q)./mpi-launch.sh -np 2 $(B)/bin/mnist $(DEMO_ARGS)

.PHONY: check
check: deps ## build and run all tests; TESTS='core mpi' selects by name
	$(Q)tests/tools/install-packages $(TEST_PACKAGES)
	$(Q)$(MAKE) --no-print-directory $(ON_ALL_CORES) all-tests
	$(Q)HVD_BUILD=$(abspath $(B)) tests/run $(TESTS)

.PHONY: check-full
check-full: deps ## run all tests with more sizes of every operation
	$(Q)HVD_TEST_FULL=1 $(MAKE) --no-print-directory check

.PHONY: sanitize
sanitize: deps ## run the tests of C code with ASan and UBSan
	$(Q)$(MAKE) --no-print-directory FLAVOUR=asan all-tests
	$(Q)HVD_BUILD=$(abspath build/asan) tests/run --programs $(TESTS)

.PHONY: tsan
tsan: deps ## run the tests of C code with TSan
	$(Q)$(MAKE) --no-print-directory FLAVOUR=tsan all-tests
	$(Q)HVD_BUILD=$(abspath build/tsan) tests/run --programs $(TESTS)

# Minutes. BENCH_MODELS='resnet50 vgg16' chooses the models.
.PHONY: bench
bench: ## measure against MPI, and draw build/bench/report.html
	$(Q)tests/tools/install-packages $(PACKAGES) gnuplot-nox libgloo-dev
	$(Q)$(MAKE) --no-print-directory all
	$(Q)bench/report/measure $(B)/bin $(B)/bench
	$(Q)bench/report/page $(B)/bench

# ------------------------------------------------------------------- install

PC := libhvd/hvd.pc device/ipu.pc models/hvd-train.pc
HEADERS := $(wildcard libhvd/include/*.h device/include/*.h models/include/*.h)
# Each as a shared and as a static library.
LIBRARIES := libhvd libipu libhvd-train
# For C++ and Fortran, which compile them; and for Python, below PYTHON_TO.
BINDINGS := libhvd/bindings/hvd.hpp libhvd/bindings/hvd.f90
PYTHON := $(PYTHON_SRC) $(IPU_PYTHON_SRC) \
	$(patsubst $(PYTHON_TO)/%,%,$(PYTHON_EXTENSION) $(IPU_PYTHON_EXTENSION))
MAN1 := $(wildcard docs/man/*.1)
# The pages for people, which char_gpt learns by default.
PAGES := $(wildcard docs/*.md)
MAN3 := $(wildcard docs/man/*.3)
# These headers are their own pages, to which the name of each function leads.
PAGED := $(wildcard device/include/*.h models/include/*.h)
MAN3_MADE := $(patsubst %.h,$(B)/man/%.3,$(notdir $(PAGED)))
PAGE_OF := docs/page-of-header
MAN7 := $(wildcard docs/man/*.7)
# Those for which bash completes words, by its own list.
COMPLETION := libhvd/command/completion.bash
COMPLETED := $(shell sed -n '/^complete/,$$p' $(COMPLETION) | tr -d '\\' | \
	sed 's/^complete -F _hvd//')
COMPLETIONS := $(COMPLETED:%=share/bash-completion/completions/%)
TO = $(DESTDIR)$(PREFIX)
LIBTO = $(DESTDIR)$(LIBDIR)

# They say where things are installed, so they are not part of the build.
SET_PLACES = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
	-e 's|@RPATH@|$(call rpath,$${libdir})|' -e 's|@VERSION@|$(VERSION)|'

vpath %.h device/include models/include
$(B)/man/%.3: %.h $(PAGE_OF)
	$(Q)mkdir -p $(@D) && $(PAGE_OF) --names $< > $(@:.3=.names)
	$(Q)$(PAGE_OF) $< $(VERSION) > $@.$$$$ && mv $@.$$$$ $@

.PHONY: install
install: all $(MAN3_MADE) ## install to PREFIX (/usr/local), below DESTDIR
	$(Q)install -d $(TO)/include $(LIBTO)/pkgconfig $(TO)/bin \
		$(TO)/share/man/man1 $(TO)/share/man/man3 $(TO)/share/man/man7
	$(Q)install -m 644 $(HEADERS) $(BINDINGS) $(TO)/include
	$(Q)for m in $(PYTHON); do \
		case $$m in */bin/*) mode=755 ;; *) mode=644 ;; esac; \
		install -D -m $$mode $(PYTHON_TO)/$$m $(LIBTO)/hvd/$$m || exit 1; done
	$(Q)for l in $(LIBRARIES); do \
		install -m 755 $(B)/lib/$$l.so.$(SOVERSION) $(LIBTO) && \
		ln -sf $$l.so.$(SOVERSION) $(LIBTO)/$$l.so && \
		install -m 644 $(B)/lib/$$l.a $(LIBTO) || exit 1; done
	$(Q)install -D -m 755 $(MPI_SO) $(LIBTO)/hvd/$(notdir $(MPI_SO))
	$(Q)for p in $(PC); do \
		$(SET_PLACES) $$p.in > $(LIBTO)/pkgconfig/$${p##*/} || exit 1; done
	$(Q)install -m 755 $(PROGRAMS) $(SCRIPTS) $(TO)/bin
	$(Q)install -m 755 mpi-launch.sh $(TO)/bin
	$(Q)install -d $(TO)/share/bash-completion/completions
	$(Q)for c in $(COMPLETIONS); do install -m 644 $(COMPLETION) $(TO)/$$c || exit 1; done
	$(Q)install -d $(TO)/share/doc/hvd
	$(Q)install -m 644 $(PAGES) $(TO)/share/doc/hvd
	$(Q)install -m 644 $(MAN3_MADE) $(TO)/share/man/man3
	$(Q)for p in $(basename $(MAN3_MADE)); do for n in $$(cat $$p.names); do \
		test $$n = $${p##*/} || ln -sf $${p##*/}.3 $(TO)/share/man/man3/$$n.3 || \
		exit 1; done; done
	$(Q)for s in 1 3 7; do for m in docs/man/*.$$s; do test ! -f $$m || \
		install -m 644 $$m $(TO)/share/man/man$$s; done; done

INSTALLED = $(addprefix $(TO)/include/,$(notdir $(HEADERS))) \
	$(BINDINGS:libhvd/bindings/%=$(TO)/include/%) $(PYTHON:%=$(LIBTO)/hvd/%) \
	$(foreach l,$(LIBRARIES),$(addprefix $(LIBTO)/$(l),.so .so.$(SOVERSION) .a)) \
	$(MPI_SO:$(B)/lib/%=$(LIBTO)/hvd/%) $(addprefix $(LIBTO)/pkgconfig/,$(notdir $(PC))) $(PROGRAMS:$(B)/bin/%=$(TO)/bin/%) \
	$(SCRIPTS:$(B)/bin/%=$(TO)/bin/%) \
	$(TO)/bin/mpi-launch.sh $(MAN1:docs/man/%=$(TO)/share/man/man1/%) \
	$(patsubst docs/man/%,$(TO)/share/man/man3/%,$(MAN3)) \
	$(MAN3_MADE:$(B)/man/%=$(TO)/share/man/man3/%) \
	$(patsubst %,$(TO)/share/man/man3/%.3,$(shell $(foreach h,$(PAGED),$(PAGE_OF) --names $(h);))) \
	$(MAN7:docs/man/%=$(TO)/share/man/man7/%) \
	$(COMPLETIONS:%=$(TO)/%) $(PAGES:docs/%=$(TO)/share/doc/hvd/%)

.PHONY: uninstall
uninstall: ## remove installed files, given the same variables
	$(Q)rm -f $(INSTALLED)
	$(Q)rm -rf $(addsuffix __pycache__,$(addprefix $(LIBTO)/hvd/,$(sort $(dir $(PYTHON)))))
	$(Q)for d in share/man/man1 share/man/man3 share/man/man7 share/man \
		share/bash-completion/completions share/bash-completion \
		share/doc/hvd share/doc share bin include; do rmdir $(TO)/$$d 2>/dev/null || true; done
	$(Q)cd $(LIBTO)/hvd 2>/dev/null && rmdir -p $(sort $(dir $(PYTHON))) 2>/dev/null || true
	$(Q)rmdir $(LIBTO)/pkgconfig $(LIBTO)/hvd $(LIBTO) $(TO) 2>/dev/null || true

# Packages for Debian, from a copy of the tree: .debian/ holds what they are.
DEB_PACKAGES := debhelper dh-python help2man dpkg-dev
DEB_TREE := $(B)/deb/hvd-$(VERSION)
.PHONY: deb
deb: ## build Debian packages in build/deb/
	$(Q)tests/tools/install-packages $(PACKAGES) $(DEB_PACKAGES)
	$(Q)rm -rf $(B)/deb && mkdir -p $(DEB_TREE)
	$(Q)tar -c --exclude=./build --exclude=./.git --exclude=./config.mk . | tar -x -C $(DEB_TREE)
	$(Q)mv $(DEB_TREE)/.debian $(DEB_TREE)/debian
	$(Q)cd $(DEB_TREE) && DEB_BUILD_OPTIONS="noautodbgsym $$DEB_BUILD_OPTIONS" \
		dpkg-buildpackage -b -us -uc
	$(Q)rm -rf $(DEB_TREE) && ls $(B)/deb/*.deb

# For pip: the packages for Python, and the libraries that they open.
.PHONY: wheel
wheel: $(TRAIN_SO) $(addprefix $(PYTHON_TO)/,$(PYTHON)) ## pack the Python packages into build/wheel/
	$(Q)mkdir -p $(B)/wheel
	$(Q)$(PYTHON_FROM)/wheel $(VERSION) $(PYTHON_TO) $(B)/lib $(B)/wheel

# ------------------------------------------------------------------- quality

SOURCES = $(shell git ls-files '*.c' '*.h' '*.inc' 2>/dev/null)

.PHONY: format
format: ## reformat every source file in place
	$(Q)tests/tools/install-packages clang-format
	$(Q)clang-format -i $(SOURCES)

.PHONY: check-format
check-format: ## list the files that make format would change
	$(Q)tests/tools/install-packages clang-format
	$(Q)clang-format --dry-run -Werror $(SOURCES)

.PHONY: lint
lint: ## run clang-tidy, cppcheck and shellcheck; FILES="...": clang-tidy on these
	$(Q)tests/tools/install-packages clang-tidy cppcheck shellcheck $(PACKAGES)
	$(Q)tests/tools/lint $(B)/lint '$(MPI_CFLAGS) $(BLAS_CFLAGS) $(PYTHON_CFLAGS)' $(FILES)

.PHONY: check-rooms
check-rooms: all-tests ## check which rooms include headers of which
	$(Q)tests/tools/check-rooms $(B)/obj

.PHONY: check-headers
check-headers: ## check that every header compiles alone, public ones as C++ too
	$(Q)tests/tools/check-headers '$(CC)' '$(MPI_CFLAGS) $(BLAS_CFLAGS) $(PYTHON_CFLAGS)'

.PHONY: check-symbols
check-symbols: $(HVD_SO) $(IPU_SO) $(TRAIN_SO) ## check that libraries export what their headers declare
	$(Q)tests/tools/check-symbols $(B)/lib

.PHONY: check-vectors
check-vectors: $(IPU_LIB) ## check that loops that should be vector code are
	$(Q)tests/tools/check-vectors $(IPU_OBJ)

.PHONY: check-names
check-names: ## check that no name stands for several things
	$(Q)tests/tools/check-names

.PHONY: check-docs
check-docs: ## check that files and names in the documents exist
	$(Q)tests/tools/check-docs

.PHONY: shape
shape: ## report sizes of files and functions
	$(Q)tests/tools/shape

.PHONY: clean
clean: ## remove build/
	$(Q)rm -rf build

.PHONY: help
help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' Makefile | sort | \
		awk -F ':.*## ' '{ printf "  %-14s %s\n", $$1, $$2 }'

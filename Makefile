# meshsim. `make help` lists the targets. One object tree per configuration (build/opt,
# build/address, ...), so switching needs no clean. New .c files are found by themselves. Probes, flags and static
# programs are in base/make, tests, lint and what documents show in tests/make.
#
#   SAN=address|undefined|thread (or several: SAN=address,undefined)   sanitizer build
#   CUDA_ARCHS="80 90 100"       compute capabilities that kernels are compiled for
#   CUDA=0|1 MPI=0|1 BLAS=0|1 EXPAT=0|1   0 leaves a backend or XML out, 1 insists on it; otherwise: if found
#   V=1                          print the commands
#   T=pattern                    only tests whose file name contains the pattern
#   UPDATE=1                     rewrite the golden files

.DEFAULT_GOAL := all
.SECONDARY:
.DELETE_ON_ERROR:
SHELL := /bin/bash

CC     ?= gcc
ifeq ($(origin CC),default)
  CC   := gcc
endif
CXX    ?= g++
CLANG  ?= clang
AR     ?= ar
MPICC  ?= mpicc
PREFIX ?= /usr/local
# where a program or library that was not installed looks for configs and plots
SOURCE_DIR ?= $(CURDIR)
SAN    ?=
T      ?=
UPDATE ?=
FUZZ_SECONDS ?= 30

comma  := ,
config := $(if $(SAN),$(subst $(comma),-,$(SAN)),$(if $(STATIC),static,opt))
B      := build/$(config)

bad_san := $(filter-out address undefined thread,$(subst $(comma), ,$(SAN)))
ifneq ($(bad_san),)
  $(error SAN=$(SAN): "$(bad_san)" is unknown, use address, undefined, thread)
endif

include base/make/found.mk

# ---- sources

# $(call in_rooms,folders,ending): sources of folders and of their rooms, but not of base/static
in_rooms   = $(sort $(filter-out base/static/%,$(wildcard $(foreach d,$(1),$(d)/*.$(2) $(d)/*/*.$(2)))))
LIB_DIRS  := base topo costmodel sim
RUN_DIRS  := exec plots
vendor    := $(if $(filter no,$(use_mpi)),$(wildcard exec/backends/mpi.c)) $(if $(filter no,$(use_blas)),exec/cpu/vendor_blas.c) \
    $(if $(filter no,$(use_cuda)),$(wildcard exec/cuda/vendor_*.c)) $(if $(filter no,$(use_cudnn)),$(wildcard exec/cuda/vendor_cudnn_*.c))
LIB_SRCS  := $(call in_rooms,$(LIB_DIRS),c)
RUN_SRCS  := $(filter-out $(vendor),$(call in_rooms,$(RUN_DIRS),c))
ALL_CU_SRCS := $(call in_rooms,exec,cu)
EMULATION := $(wildcard tests/support/*.cpp tests/support/*.cu)
CU_SRCS   := $(if $(filter yes,$(use_cuda)),$(ALL_CU_SRCS))
CLI_SRCS  := $(call in_rooms,cli,c)
API_SRCS  := $(wildcard api/*.c)
SRCS      := $(LIB_SRCS) $(RUN_SRCS) $(CLI_SRCS) $(API_SRCS)
STATIC_SRCS := $(wildcard base/static/*.c)
HEADERS   := $(call in_rooms,$(LIB_DIRS) $(RUN_DIRS) cli api,h)
SUPPORT   := $(sort $(wildcard tests/support/*.c tests/frameworks/*.c))
# T= leaves out the test files whose name does not contain it
tests_of   = $(foreach f,$(sort $(wildcard $(foreach p,$(1),$(p) $(dir $(p))*/$(notdir $(p)) $(dir $(p))*/*/$(notdir $(p))))),$(if $(T),$(if $(findstring $(T),$(notdir $f)),$f),$f))
TEST_SRCS := $(call tests_of,tests/unit/test_*.c tests/property/prop_*.c tests/oracle/test_*.c tests/exec/test_*.c)
FUZZ_SRCS := $(call tests_of,tests/fuzz/fuzz_*.c)
SOAK_SRCS := $(call tests_of,tests/soak/*.c)
BENCH_SRCS := $(call tests_of,tests/bench/bench_*.c)
GAP_SRCS := tests/bench/gap_engines.c
ALL_TEST_SRCS := $(TEST_SRCS) $(FUZZ_SRCS) $(SOAK_SRCS) $(BENCH_SRCS) $(GAP_SRCS) $(SUPPORT) $(wildcard tests/fuzz/driver.c)

include base/make/flags.mk base/make/objects.mk

# ---- build

.PHONY: all
all: $(LIB) $(RUN_LIB) $(PROGRAM) $(if $(SAN),,$(if $(CLI_SRCS),build/meshsim)) ## library and build/meshsim; needs no GPU, MPI or BLAS
ifeq ($(CLI_SRCS),)
	@echo "cli/ has no sources: only $(LIB) was built"
endif

# Rules below have prerequisites that need the stem.
.SECONDEXPANSION:
include base/make/library.mk base/make/install.mk base/make/deb.mk base/make/static.mk tests/make/tests.mk tests/make/documents.mk tests/make/lint.mk

# ---- the rest

.PHONY: ci
ci: ## what the continuous integration runs; ends with the summed count
	@tests/run_ci.sh

compile_commands.json: $(filter %Makefile %.mk,$(MAKEFILE_LIST)) $(SRCS) $(ALL_TEST_SRCS) ## for editors
	@{ echo '['; sep=; for f in $(SRCS) $(ALL_TEST_SRCS); do \
	    printf '%s{"directory": "%s", "file": "%s", "arguments": ["$(CC)", "-std=c17", "-D_POSIX_C_SOURCE=200809L", "-I.", "-DMS_SOURCE_DIR=\\"$(CURDIR)\\"", "-c", "%s"]}' "$$sep" '$(CURDIR)' "$$f" "$$f"; \
	    sep=$$',\n'; done; echo; echo ']'; } > $@

.PHONY: deps
deps: ## install what the build and the tests need (Debian, Ubuntu)
	@tests/install_deps.sh

.PHONY: clean
clean: ## remove build/
	rm -rf build

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z_.-]+:.*## /{printf "  %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

-include $(patsubst %.o,%.d,$(call obj,$(SRCS) $(ALL_TEST_SRCS)) $(call cu_obj,$(CU_SRCS)) $(emulated_obj))

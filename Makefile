# meshsim. `make help` lists the targets. One object tree per configuration (build/opt,
# build/address, ...), so switching needs no clean. New .c files are found by themselves.
#
#   SAN=address|undefined|thread (or several: SAN=address,undefined)   sanitizer build
#   CUDA=0|1 MPI=0|1 BLAS=0|1    0 leaves a backend out, 1 insists on it; otherwise: if found
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

# ---- what this machine has. Every probe says yes or no; insisting on what is missing is an error.

# $(call compiles,header,flags): yes when the header can be compiled
compiles = $(shell printf '\#include <%s>\n' '$(1)' | $(CC) $(2) -E - >/dev/null 2>&1 && echo yes || echo no)

ifndef NVCC
  NVCC    := $(shell command -v nvcc 2>/dev/null || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
endif
CUDA_HOME ?= $(if $(NVCC),$(patsubst %/bin/,%,$(dir $(NVCC))))
found_cuda    := $(shell { [ -n "$(NVCC)" ] && "$(NVCC)" --version; } >/dev/null 2>&1 && echo yes || echo no)
found_nccl    := $(call compiles,nccl.h,-I$(or $(CUDA_HOME),/usr)/include)
found_mpi     := $(shell printf '\#include <mpi.h>\n' | OMPI_CC=$(CC) MPICH_CC=$(CC) $(MPICC) -E - >/dev/null 2>&1 && echo yes || echo no)
# where cblas.h is: Debian keeps OpenBLAS's in the include path, others in a folder of its own
blas_flags    := $(shell pkg-config --cflags openblas 2>/dev/null)
found_blas    := $(call compiles,cblas.h,$(blas_flags))
found_gnuplot := $(shell command -v gnuplot >/dev/null 2>&1 && echo yes || echo no)

# $(call wanted,NAME,switch,found): yes or no, or an error
wanted = $(if $(filter 0,$(2)),no,$(if $(filter 1,$(2)),$(if $(filter yes,$(3)),yes,$(error $(1)=1 but it was not found on this machine)),$(3)))
use_mpi  := $(call wanted,MPI,$(MPI),$(found_mpi))
# The threads of a BLAS are not instrumented.
use_blas := $(if $(findstring thread,$(SAN)),no,$(call wanted,BLAS,$(BLAS),$(found_blas)))
# The CUDA run time maps memory where sanitizers keep their shadow.
use_cuda := $(if $(SAN),no,$(call wanted,CUDA,$(CUDA),$(if $(filter yesyes,$(found_cuda)$(found_nccl)),yes,no)))

note = $(if $(filter $(1),$(2)),$(1),$(1) (not used))
ifeq ($(MAKELEVEL),0)
  $(info found: CUDA nvcc $(found_cuda), NCCL header $(found_nccl), MPI mpicc $(call note,$(found_mpi),$(use_mpi)), BLAS cblas header $(call note,$(found_blas),$(use_blas)), gnuplot $(found_gnuplot))
endif

# ---- sources

LIB_DIRS  := base topo costmodel sim
RUN_DIRS  := exec plots
vendor    := $(if $(filter no,$(use_mpi)),$(wildcard exec/backend_mpi*.c)) $(if $(filter no,$(use_blas)),exec/backend_blas.c) \
    $(if $(filter no,$(use_cuda)),$(wildcard exec/backend_cuda_driver*.c))
LIB_SRCS  := $(sort $(wildcard $(addsuffix /*.c,$(LIB_DIRS))))
RUN_SRCS  := $(filter-out $(vendor),$(sort $(wildcard $(addsuffix /*.c,$(RUN_DIRS)))))
ALL_CU_SRCS := $(sort $(wildcard exec/*.cu))
EMULATION := $(wildcard tests/support/*.cpp tests/support/*.cu)
CU_SRCS   := $(if $(filter yes,$(use_cuda)),$(ALL_CU_SRCS))
CLI_SRCS  := $(sort $(wildcard cli/*.c))
SRCS      := $(LIB_SRCS) $(RUN_SRCS) $(CLI_SRCS)
STATIC_SRCS := $(wildcard base/static/*.c)
HEADERS   := $(sort $(wildcard $(addsuffix /*.h,$(LIB_DIRS) $(RUN_DIRS) cli)))
SUPPORT   := $(sort $(wildcard tests/support/*.c))
# T= leaves out the test files whose name does not contain it
tests_of   = $(foreach f,$(sort $(wildcard $(1))),$(if $(T),$(if $(findstring $(T),$(notdir $f)),$f),$f))
TEST_SRCS := $(call tests_of,tests/unit/test_*.c tests/property/prop_*.c tests/oracle/test_*.c tests/exec/test_*.c)
FUZZ_SRCS := $(call tests_of,tests/fuzz/fuzz_*.c)
SOAK_SRCS := $(call tests_of,tests/soak/*.c)
BENCH_SRCS := $(call tests_of,tests/bench/bench_*.c)
GAP_SRCS := tests/bench/gap_engines.c
ALL_TEST_SRCS := $(TEST_SRCS) $(FUZZ_SRCS) $(SOAK_SRCS) $(BENCH_SRCS) $(GAP_SRCS) $(SUPPORT) $(wildcard tests/fuzz/driver.c)

# ---- flags

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wdouble-promotion \
    -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef -Wformat=2 -Wswitch-enum -Wcast-qual \
    -Wwrite-strings -Werror
# No fused multiply-add and no value-changing optimisation: the same numbers on every machine.
# What runs for milliseconds is optimised less, since compiling it takes longer: most tests, and under sanitizers the
# commands, too. Properties and the interpreter of programs run for seconds. Sanitized code vectorises with no option,
# and for the lines of a report -g1 is enough.
brief_tests := tests/unit/% tests/exec/% tests/oracle/%
plain_level = $(if $(filter $(brief_tests),$<),-O1,-O3)
sanitized_level = $(if $(filter $(brief_tests) cli/% plots/%,$<),-O0,-O1)
OPTIMISE = $(if $(SAN),$(sanitized_level) -g1,$(plain_level) -g) -fno-math-errno -ffp-contract=off
# Link-time optimisation of the library in the program and the benchmarks: evaluations call across its files, commands
# and kernels do not. Objects hold both forms, so that tests link quickly without it.
lto := $(if $(SAN),,$(shell echo 'int x;' | $(CC) -flto=auto -ffat-lto-objects -x c -c - -o /dev/null >/dev/null 2>&1 && echo yes))
lto_compile := $(if $(lto),-flto=auto -ffat-lto-objects)
lto_link := $(if $(lto),-flto=auto)
no_lto := $(if $(lto),-fno-lto)
# Hundreds of programs are linked for tests: gold takes a third of the time, where there is one.
test_ld := $(shell echo 'int main(void) { return 0; }' | $(CC) -fuse-ld=gold -x c - -o /dev/null >/dev/null 2>&1 && echo -fuse-ld=gold)
# instrumented code makes gcc see truncations that are not there
san_flags := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer -Wno-error=format-truncation)
CPPFLAGS += -D_POSIX_C_SOURCE=200809L -I.
CFLAGS   ?= $(OPTIMISE)
ALL_CFLAGS = -std=c17 $(CFLAGS) $(WARNINGS) $(san_flags) -pthread
# Kernels for these GPUs, and for later ones from the PTX of the last.
CUDA_ARCHS ?= 80 90 100
last_arch := $(lastword $(CUDA_ARCHS))
cuda_codes := $(foreach a,$(filter-out $(last_arch),$(CUDA_ARCHS)),-gencode arch=compute_$a$(comma)code=sm_$a) \
    -gencode arch=compute_$(last_arch),code=[sm_$(last_arch)$(comma)compute_$(last_arch)]
NVCCFLAGS ?= -O3 -std=c++17 --threads 2 -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror
features := $(if $(filter yes,$(use_mpi)),$(if $(wildcard exec/backend_mpi.c),-DMS_WITH_MPI)) \
    $(if $(filter yes,$(use_blas)),-DMS_WITH_BLAS $(blas_flags)) $(if $(filter yes,$(use_cuda)),-DMS_WITH_CUDA)
# what `meshsim info` reports
have = -DMS_HAVE_$(1)=$(if $(filter yes,$(2)),1,0)
info_flags := $(call have,CUDA,$(use_cuda)) $(call have,NCCL,$(if $(filter yes,$(use_cuda)),$(found_nccl))) \
    $(call have,MPI,$(use_mpi)) $(call have,BLAS,$(use_blas)) $(call have,GNUPLOT,$(found_gnuplot))
mpi_used := $(findstring MS_WITH_MPI,$(features))
mpi_dirs := $(if $(mpi_used),$(shell $(MPICC) --showme:incdirs 2>/dev/null))
LINK     := $(if $(mpi_used),OMPI_CC=$(CC) MPICH_CC=$(CC) $(MPICC),$(CC))
# OpenBLAS before gslcblas: both define cblas_*, the first one wins.
# The CUDA run time is in the program; cuBLASLt and NCCL are opened when they are needed, where the build found them or where the machine has them.
LIBS     := $(if $(filter yes,$(use_cuda)),-L$(CUDA_HOME)/lib64 -lcudart_static -Wl$(comma)-rpath$(comma)$(CUDA_HOME)/lib64 -ldl -lrt -lstdc++) \
    $(if $(filter yes,$(use_blas)),$(or $(shell pkg-config --libs openblas 2>/dev/null),-lopenblas)) \
    -lcjson -lgsl -lgslcblas -lm -lpthread
# `make static`: all but the C library. $(call archive,NAME) is empty where there is none; Debian's cJSON comes without.
archive   = $(filter /%,$(shell $(CC) -print-file-name=lib$(1).a))
STATIC_CJSON := $(if $(STATIC),$(or $(call archive,cjson),$B/base/static/cjson.o))
ifneq ($(STATIC),)
  LIBS := $(if $(CU_SRCS),$(CUDA_HOME)/lib64/libcudart_static.a -Wl$(comma)-Bstatic -lstdc++ -Wl$(comma)-Bdynamic -ldl -lrt) \
      $(if $(filter yes,$(use_blas)),$(call archive,openblas) $(call archive,gfortran) $(call archive,quadmath)) \
      $(STATIC_CJSON) $(or $(call archive,gsl),$(error no libgsl.a)) $(call archive,gslcblas) -static-libgcc -lm -lpthread
endif

# kernels are compiled once for each real type (exec/real.h)
typed   = $(filter exec/cpu_%,$(1))
objects = $(foreach x,$(basename $(filter-out exec/cpu_%,$(1))),$(2)/$x.o) \
    $(foreach x,$(basename $(call typed,$(1))),$(2)/$x.fp32.o $(2)/$x.fp64.o)
obj     = $(call objects,$(1),$B)
LIB     := $B/libmeshsim.a
# Kernels are in an archive of their own: the program takes those of nvcc, tests those for the processor (tests/support/cuda_emulated.h).
cu_obj  = $(foreach x,$(1),$B/$x.o)
emulated_obj = $(foreach x,$(ALL_CU_SRCS) $(EMULATION),$B/$x.emulated.o)
RUN_LIB := $(if $(RUN_SRCS),$B/libmeshsim_run.a)
CUDA_LIB := $(if $(CU_SRCS),$B/libmeshsim_cuda.a)
EMULATED_LIB := $B/libmeshsim_emulated.a
# the commands without main, so that tests can call them
CLI_LIB := $(if $(CLI_SRCS),$B/libmeshsim_cli.a)
PROGRAM := $(if $(CLI_SRCS),$B/meshsim)

# ---- build

# Commands appear as one short line; V=1 shows them in full.
run = $(if $(filter 1,$(V)),,@printf '  %-4s %s\n' $(1) $(2); )

.PHONY: all
all: $(LIB) $(RUN_LIB) $(PROGRAM) $(if $(SAN),,$(if $(CLI_SRCS),build/meshsim)) ## library and build/meshsim; needs no GPU, MPI or BLAS
ifeq ($(CLI_SRCS),)
	@echo "cli/ has no sources: only $(LIB) was built"
endif

# Rewritten only when it changes, so that switching a backend rebuilds exec/.
$B/features: FORCE
	@mkdir -p $(@D)
	@echo '$(strip $(features) $(info_flags) $(vendor))' | cmp -s - $@ || echo '$(strip $(features) $(info_flags) $(vendor))' > $@
.PHONY: FORCE
FORCE:

compile = $(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(if $(filter $(LIB_DIRS:%=%/%),$<),$(lto_compile)) -MMD -MP -c $< -o $@
$B/%.o: %.c
	@mkdir -p $(@D)
	$(call run,CC,$@)$(compile)

$B/%.fp32.o: %.c
	@mkdir -p $(@D)
	$(call run,CC,$@)$(compile)

$B/%.fp64.o: %.c
	@mkdir -p $(@D)
	$(call run,CC,$@)$(compile) -DMS_REAL_IS_FP64

$B/%.cu.o: %.cu
	@mkdir -p $(@D)
	$(call run,NVCC,$@)$(NVCC) $(CPPFLAGS) $(NVCCFLAGS) $(cuda_codes) -MMD -MP -MF $(@:.o=.d) -c $< -o $@

# No exceptions and no guards: programs in C are linked with it.
emulate = $(CXX) $(CPPFLAGS) -x c++ -std=c++17 -O2 -g -ffp-contract=off -fno-math-errno -fno-exceptions -fno-threadsafe-statics -Wall -Wextra -Wshadow \
    -Wno-unknown-pragmas -Werror $(san_flags) -pthread -DMS_CUDA_EMULATED -include tests/support/cuda_emulated.h -MMD -MP -c $< -o $@
$B/%.cu.emulated.o: %.cu
	@mkdir -p $(@D)
	$(call run,CXX,$@)$(emulate)

$B/%.cpp.emulated.o: %.cpp
	@mkdir -p $(@D)
	$(call run,CXX,$@)$(emulate)

$B/base/paths.o: CPPFLAGS += -DMS_SOURCE_DIR='"$(CURDIR)"'
$B/tests/%.o: CPPFLAGS += -DMS_SOURCE_DIR='"$(CURDIR)"'
$B/cli/cmd_info.o: CPPFLAGS += $(info_flags)
$B/cli/cmd_info.o: $B/features
$B/exec/%.o: CPPFLAGS += $(features)
$(filter $B/exec/%,$(call obj,$(RUN_SRCS))): $B/features
cuda_driver_obj := $(filter $B/exec/backend_cuda_driver%,$(call obj,$(RUN_SRCS)))
$(cuda_driver_obj): CPPFLAGS += -isystem $(CUDA_HOME)/include
# their code with libraries made by the tests: headers are enough
$(if $(CUDA_HOME),$B/tests/exec/test_cuda_blas.o $B/tests/exec/test_cuda_nccl.o: CPPFLAGS += -isystem $(CUDA_HOME)/include)
$B/exec/backend_mpi.o: CC := OMPI_CC=$(CC) MPICH_CC=$(CC) $(MPICC) $(addprefix -isystem ,$(mpi_dirs))

$(LIB): $(call obj,$(LIB_SRCS))
	@rm -f $@
	$(call run,AR,$@)$(AR) rcs $@ $^

$B/libmeshsim_run.a: $(call obj,$(RUN_SRCS))
	@rm -f $@
	$(call run,AR,$@)$(AR) rcs $@ $^

$B/libmeshsim_cuda.a: $(call cu_obj,$(CU_SRCS))
	@rm -f $@
	$(call run,AR,$@)$(AR) rcs $@ $^

$(EMULATED_LIB): $(emulated_obj)
	@rm -f $@
	$(call run,AR,$@)$(AR) rcs $@ $^

$B/libmeshsim_cli.a: $(filter-out $B/cli/main.o,$(call obj,$(CLI_SRCS)))
	@rm -f $@
	$(call run,AR,$@)$(AR) rcs $@ $^

$B/meshsim: $B/cli/main.o $(CLI_LIB) $(RUN_LIB) $(CUDA_LIB) $(LIB) | $(filter $B/%,$(STATIC_CJSON))
	$(call run,LINK,$@)$(LINK) $(ALL_CFLAGS) $(lto_link) $^ -o $@ $(LDFLAGS) $(LIBS)

build/meshsim: build/opt/meshsim
	@cp -f $< $@

# One program for machines that have nothing but a C library and perhaps a GPU's driver. OpenBLAS has kernels for all processors: BLAS=1 makes it ten times as large.
.PHONY: static bundle
.SECONDEXPANSION:
static: ## build/meshsim-static, which runs elsewhere: it needs libc alone, and configs/ beside it; BLAS=1 for fast CPU products
	@$(MAKE) --no-print-directory STATIC=1 MPI=0 BLAS=$(or $(BLAS),0) build/meshsim-static

build/meshsim-static: build/static/meshsim
	$(call run,STRIP,$@)strip -o $@ $<

# ... and the tests of kernels on a GPU, with cmocka beside them, which exists as a shared library only.
bundle: static ## build/bundle: what tests/exec/gpu_report.sh needs on a machine that cannot build
	@$(MAKE) --no-print-directory STATIC=1 MPI=0 BLAS=$(or $(BLAS),0) build/bundle/complete

build/bundle/complete: $$(patsubst $$B/gpu/%,build/bundle/%,$$(gpu_tests)) build/meshsim-static
	@mkdir -p $(@D)
	@cp -f build/meshsim-static build/bundle/meshsim
	@cp -Lf $$($(CC) -print-file-name=libcmocka.so.0) build/bundle/
	@touch $@
build/bundle/test_%: build/static/gpu/test_%
	@mkdir -p $(@D)
	$(call run,STRIP,$@)strip -o $@ $<

# ---- tests

# an archive, so that fuzz targets, which have no cmocka, take only what they use
SUPPORT_LIB := $B/libmeshsim_support.a
$(SUPPORT_LIB): $(call obj,$(SUPPORT))
	@rm -f $@
	$(call run,AR,$@)$(AR) rcs $@ $^
bin = $(patsubst %.c,$B/%,$(1))

# archives that need each other: kernels the device in memory of tests/support, that the program
link_test = $(LINK) $(ALL_CFLAGS) $(no_lto) $(if $(filter -flto%,$(no_lto)),,$(test_ld)) -Wl,--start-group $^ -Wl,--end-group -o $@ $(LDFLAGS)
$(call bin,$(FUZZ_SRCS)): $B/%: $B/%.o $B/tests/fuzz/driver.o $(SUPPORT_LIB) $(CLI_LIB) $(RUN_LIB) $(EMULATED_LIB) $(LIB)
	$(call run,LINK,$@)$(link_test) $(LIBS)

$(call bin,$(SOAK_SRCS) $(BENCH_SRCS)): no_lto := $(lto_link)
$(call bin,$(TEST_SRCS) $(SOAK_SRCS) $(BENCH_SRCS) $(GAP_SRCS)): $B/%: $B/%.o $(SUPPORT_LIB) $(CLI_LIB) $(RUN_LIB) $(EMULATED_LIB) $(LIB) | $(filter $B/%,$(STATIC_CJSON))
	$(call run,LINK,$@)$(link_test) $(if $(STATIC),-Wl$(comma)-rpath$(comma)'$$ORIGIN') -lcmocka $(LIBS)

# Tests of kernels once more, with what nvcc makes of them: on a GPU, or skipped.
KERNEL_TESTS := $(patsubst tests/exec/%.c,%,$(filter-out %_emulated.c,$(filter $(TEST_SRCS),$(shell grep -lE 'cuda_cases\.h|attention_cases\.h' tests/exec/test_cuda_*.c))))
gpu_tests := $(if $(CU_SRCS),$(KERNEL_TESTS:%=$B/gpu/%))
$B/tests/exec/gpu_memory.o: CPPFLAGS += -isystem $(CUDA_HOME)/include
$(gpu_tests): $B/gpu/%: $B/tests/exec/%.o $B/tests/exec/gpu_memory.o $(SUPPORT_LIB) $(CLI_LIB) $(RUN_LIB) $(CUDA_LIB) $(LIB) | $(filter $B/%,$(STATIC_CJSON))
	@mkdir -p $(@D)
	$(call run,LINK,$@)$(link_test) $(if $(STATIC),-Wl$(comma)-rpath$(comma)'$$ORIGIN') -lcmocka $(LIBS)

.PHONY: gpu-tests
gpu-tests: $(gpu_tests) ## build/opt/gpu: tests of kernels that run on a GPU

.PHONY: check soak golden-update
check: $(call bin,$(TEST_SRCS) $(FUZZ_SRCS)) $(gpu_tests) $(PROGRAM) ## unit, property, oracle, exec, golden and fuzz-corpus tests; SAN=, T=, UPDATE=1
	@B=$B T='$T' UPDATE='$(UPDATE)' tests/run_tests.sh $(call bin,$(TEST_SRCS) $(FUZZ_SRCS)) $(gpu_tests) $(call tests_of,tests/golden/*.test)

soak: $(call bin,$(SOAK_SRCS)) $(PROGRAM) ## long tests: tests/soak
	@B=$B T='$T' SUMMARY=$B/soak.summary LIMIT_S=7200 tests/run_tests.sh $(call bin,$(SOAK_SRCS))

golden-update: $(PROGRAM) ## rewrite tests/golden/*.test from what the program prints now
	@B=$B T='$T' UPDATE=1 SUMMARY=$B/golden.summary tests/run_tests.sh $(call tests_of,tests/golden/*.test)

.PHONY: asan ubsan tsan
asan: ## check with the address sanitizer
	@$(MAKE) --no-print-directory check SAN=address
ubsan: ## check with the undefined-behaviour sanitizer
	@$(MAKE) --no-print-directory check SAN=undefined
tsan: ## check with the thread sanitizer
	@$(MAKE) --no-print-directory check SAN=thread

.PHONY: bench
bench: $(call bin,$(BENCH_SRCS)) $(PROGRAM) ## speed of search, replay and engine
	@for b in $(call bin,$(BENCH_SRCS)); do echo "== $$b"; MESHSIM=$(PROGRAM) $$b || exit 1; done

.PHONY: gaps
gaps: $(call bin,$(GAP_SRCS)) ## predictions against events on random plans, by class; PLANS=30 of each model, SEED=1, LIST=file for a line a plan
	@$< $(or $(PLANS),30) $(or $(SEED),1) $(LIST)

.PHONY: demo
demo: $(PROGRAM) ## search a plan for this machine's cores, run it, calibrate, predict again
	@docs/demo.sh $(PROGRAM)

.PHONY: docs
docs: $(PROGRAM) ## commands shown in README.md and docs/commands.md, run again
	@docs/refresh.sh README.md docs/commands.md

.PHONY: names
names: ## the tables of docs/names.md, from configs/names/
	@docs/names.sh

# Tables of measurements are no part of this repository.
.PHONY: accuracy accuracy-holdout
accuracy: $(PROGRAM) ## the tables of docs/accuracy/ and the picture of docs/accuracy.md, from RUNS=runs.csv; KERNELS=, COLLECTIVES=file.csv for theirs
	$(if $(RUNS),,$(error accuracy: which published runs? RUNS=file.csv))
	@RUNS='$(RUNS)' KERNELS='$(KERNELS)' COLLECTIVES='$(COLLECTIVES)' docs/accuracy.sh $(PROGRAM) docs/accuracy/*.md
	@$(PROGRAM) validate '$(RUNS)' --quiet --plot docs/accuracy.png >/dev/null

accuracy-holdout: $(PROGRAM) ## the tables that take minutes: each source by constants fitted without it, from RUNS=runs.csv
	$(if $(RUNS),,$(error accuracy-holdout: which published runs? RUNS=file.csv))
	@RUNS='$(RUNS)' COLLECTIVES='$(COLLECTIVES)' HOLDOUT=1 docs/accuracy.sh $(PROGRAM) docs/accuracy/*.md

.PHONY: pictures
pictures: $(PROGRAM) ## docs/*.png, made again by the commands of docs/howto.md; needs gnuplot
	@docs/pictures.sh $(PROGRAM)

.PHONY: oracle
oracle: ## tests/data/run made again by PyTorch; needs Debian's python3-torch (or another torch: PYTHON=...)
	@for python in $(PYTHON) python3 /usr/bin/python3; do \
	    if "$$python" -c 'import torch' 2>/dev/null; then exec "$$python" tests/oracle/torch/make_oracle.py tests/data/run; fi; \
	done; echo "oracle: no python3 with torch: install python3-torch, or name one with PYTHON=..." >&2; exit 1

# libFuzzer builds everything again with clang, in one go per target.
.PHONY: fuzz
fuzz: ## every fuzzer for FUZZ_SECONDS (30) under clang's address and undefined sanitizers
	@CLANG=$(CLANG) SECONDS_EACH=$(FUZZ_SECONDS) CPPFLAGS='$(CPPFLAGS)' LIBS='-lcjson -lgsl -lgslcblas -lm -lpthread' \
	    tests/fuzz/run_fuzz.sh $(FUZZ_SRCS) -- $(LIB_SRCS) plots/sizes.c exec/safetensors.c exec/tokens.c $(SUPPORT)

# What ptxas says of the kernels, for each GPU; needs nvcc, no GPU.
PTXAS_FILES := $(patsubst %.cu,build/ptxas/%.txt,$(ALL_CU_SRCS))
build/ptxas/%.txt: %.cu $(wildcard exec/*.cuh exec/cuda_*.h) exec/scalar.h exec/array_args.h
	@mkdir -p $(@D)
	$(call run,NVCC,$@)$(NVCC) $(CPPFLAGS) $(NVCCFLAGS) $(cuda_codes) -Xptxas -v -fatbin $< -o $@.fatbin >$@.new 2>&1 || { cat $@.new >&2; exit 1; }; mv $@.new $@

.PHONY: cuda-report
cuda-report: $(PTXAS_FILES) ## registers, shared memory and spills of every kernel by nvcc; fails on spills
	@tests/cuda_report.sh $(PTXAS_FILES)

# ---- lint

.PHONY: lint tidy
lint: ## layers, lengths, forbidden calls, format, clang-tidy
	@MAKE='$(MAKE)' tests/lint/run_lint.sh $(SRCS) $(STATIC_SRCS) $(HEADERS) $(ALL_TEST_SRCS) $(wildcard tests/*.h tests/*/*.h)

# Nodes that the static analyser visits for a function before it gives up: its own limit, 225000, takes four times as long over all files (make lint TIDY_NODES=225000).
TIDY_NODES ?= 40000
TIDY_DIR := build/lint/nodes-$(TIDY_NODES)
# A stamp per object: its file and headers are checked again only after a change.
TIDY_STAMPS := $(patsubst %.c,$(TIDY_DIR)/%.tidy,$(SRCS) $(STATIC_SRCS) $(SUPPORT))
tidy: $(TIDY_STAMPS)
# a file is checked once it compiles
$(TIDY_DIR)/%.tidy: %.c $$(firstword $$(strip $$(call objects,$$*.c,build/opt))) .clang-tidy
	@mkdir -p $(@D)
	@clang-tidy --quiet $< -- -std=c17 $(CPPFLAGS) -Xclang -analyzer-config -Xclang max-nodes=$(TIDY_NODES) \
	    $(if $(filter tests/%,$<),-DMS_SOURCE_DIR='"$(CURDIR)"') $(if $(filter exec/%,$<),$(features) $(addprefix -isystem ,$(mpi_dirs) $(if $(CUDA_HOME),$(CUDA_HOME)/include))) 2>$@.err \
	    || { cat $@.err >&2; echo "clang-tidy: $<" >&2; exit 1; }
	@rm -f $@.err; touch $@

# ---- the rest

.PHONY: ci
ci: ## what the continuous integration runs; ends with the summed count
	@tests/run_ci.sh

compile_commands.json: Makefile $(SRCS) $(ALL_TEST_SRCS) ## for editors
	@{ echo '['; sep=; for f in $(SRCS) $(ALL_TEST_SRCS); do \
	    printf '%s{"directory": "%s", "file": "%s", "arguments": ["$(CC)", "-std=c17", "-D_POSIX_C_SOURCE=200809L", "-I.", "-DMS_SOURCE_DIR=\\"$(CURDIR)\\"", "-c", "%s"]}' "$$sep" '$(CURDIR)' "$$f" "$$f"; \
	    sep=$$',\n'; done; echo; echo ']'; } > $@

.PHONY: deps
deps: ## install what the build and the tests need (Debian, Ubuntu)
	@tests/install_deps.sh

.PHONY: install
install: all ## into PREFIX (/usr/local), DESTDIR honoured
ifeq ($(CLI_SRCS),)
	$(error cli/ has no sources: nothing to install)
endif
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/meshsim
	install -m 755 build/opt/meshsim $(DESTDIR)$(PREFIX)/bin/meshsim
	cp -r configs $(DESTDIR)$(PREFIX)/share/meshsim/
	@for f in plots/*.gp; do [ -e "$$f" ] || continue; install -D -m 644 "$$f" $(DESTDIR)$(PREFIX)/share/meshsim/"$$f"; done

.PHONY: clean
clean: ## remove build/
	rm -rf build

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z_.-]+:.*## /{printf "  %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

-include $(patsubst %.o,%.d,$(call obj,$(SRCS) $(ALL_TEST_SRCS)) $(call cu_obj,$(CU_SRCS)) $(emulated_obj))

# Flags of compilers and linkers, and what the configuration makes of them.

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
features := $(if $(filter yes,$(use_mpi)),$(if $(wildcard exec/backends/mpi.c),-DMS_WITH_MPI)) \
    $(if $(filter yes,$(use_blas)),-DMS_WITH_BLAS $(blas_flags)) $(if $(filter yes,$(use_cuda)),-DMS_WITH_CUDA) $(if $(filter yes,$(use_cudnn)),-DMS_WITH_CUDNN)
# XML, where the machine has expat
expat_flag := $(if $(filter yes,$(use_expat)),-DMS_WITH_EXPAT)
expat_lib  := $(if $(filter yes,$(use_expat)),-lexpat)
# what `meshsim info` reports
have = -DMS_HAVE_$(1)=$(if $(filter yes,$(2)),1,0)
info_flags := $(call have,CUDA,$(use_cuda)) $(call have,NCCL,$(if $(filter yes,$(use_cuda)),$(found_nccl))) \
    $(call have,CUDNN,$(use_cudnn)) $(call have,MPI,$(use_mpi)) $(call have,BLAS,$(use_blas)) $(call have,EXPAT,$(use_expat)) $(call have,GNUPLOT,$(found_gnuplot))
# where the program finds CUDA's libraries that the loader does not know
CUDA_RPATH ?= $(CUDA_HOME:%=%/lib64)
mpi_used := $(findstring MS_WITH_MPI,$(features))
mpi_dirs := $(if $(mpi_used),$(shell $(MPICC) --showme:incdirs 2>/dev/null))
LINK     := $(if $(mpi_used),OMPI_CC=$(CC) MPICH_CC=$(CC) $(MPICC),$(CC))
# OpenBLAS before gslcblas: both define cblas_*, the first one wins.
# The CUDA run time is in the program; cuBLASLt, cuDNN and NCCL are opened when they are needed, where the build found them or where the machine has them.
LIBS     := $(if $(filter yes,$(use_cuda)),-L$(CUDA_HOME)/lib64 -lcudart_static $(CUDA_RPATH:%=-Wl$(comma)-rpath$(comma)%) -ldl -lrt -lstdc++) \
    $(if $(filter yes,$(use_blas)),$(or $(shell pkg-config --libs openblas 2>/dev/null),-lopenblas)) \
    -lcjson -lyaml $(expat_lib) -lgsl -lgslcblas -lm -lpthread
# `make static`: all but the C library. $(call archive,NAME) is empty where there is none; Debian's cJSON comes without.
archive   = $(filter /%,$(shell $(CC) -print-file-name=lib$(1).a))
STATIC_CJSON := $(if $(STATIC),$(or $(call archive,cjson),$B/base/static/cjson.o))
ifneq ($(STATIC),)
  LIBS := $(if $(CU_SRCS),$(CUDA_HOME)/lib64/libcudart_static.a -Wl$(comma)-Bstatic -lstdc++ -Wl$(comma)-Bdynamic -ldl -lrt) \
      $(if $(filter yes,$(use_blas)),$(call archive,openblas) $(call archive,gfortran) $(call archive,quadmath)) \
      $(STATIC_CJSON) $(or $(call archive,yaml),$(error no libyaml.a)) $(if $(expat_lib),$(or $(call archive,expat),$(error no libexpat.a))) $(or $(call archive,gsl),$(error no libgsl.a)) $(call archive,gslcblas) -static-libgcc -lm -lpthread
endif

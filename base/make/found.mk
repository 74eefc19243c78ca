# What this machine has: compilers, CUDA, MPI, BLAS, expat, gnuplot. Every probe says yes or no; insisting on what is
# missing is an error.

# $(call compiles,header,flags): yes when the header can be compiled
compiles = $(shell printf '\#include <%s>\n' '$(1)' | $(CC) $(2) -E - >/dev/null 2>&1 && echo yes || echo no)

ifndef NVCC
  NVCC    := $(shell command -v nvcc 2>/dev/null || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
endif
CUDA_HOME ?= $(if $(NVCC),$(patsubst %/bin/,%,$(dir $(NVCC))))
found_cuda    := $(shell { [ -n "$(NVCC)" ] && "$(NVCC)" --version; } >/dev/null 2>&1 && echo yes || echo no)
found_nccl    := $(call compiles,nccl.h,-I$(or $(CUDA_HOME),/usr)/include)
found_cudnn   := $(call compiles,cudnn_graph.h,-I$(or $(CUDA_HOME),/usr)/include)
found_mpi     := $(shell printf '\#include <mpi.h>\n' | OMPI_CC=$(CC) MPICH_CC=$(CC) $(MPICC) -E - >/dev/null 2>&1 && echo yes || echo no)
# where cblas.h is: Debian keeps OpenBLAS's in the include path, others in a folder of its own
blas_flags    := $(shell pkg-config --cflags openblas 2>/dev/null)
found_blas    := $(call compiles,cblas.h,$(blas_flags))
found_expat   := $(call compiles,expat.h)
found_gnuplot := $(shell command -v gnuplot >/dev/null 2>&1 && echo yes || echo no)

# $(call wanted,NAME,switch,found): yes or no, or an error
wanted = $(if $(filter 0,$(2)),no,$(if $(filter 1,$(2)),$(if $(filter yes,$(3)),yes,$(error $(1)=1 but it was not found on this machine)),$(3)))
use_mpi  := $(call wanted,MPI,$(MPI),$(found_mpi))
# The threads of a BLAS are not instrumented.
use_blas := $(if $(findstring thread,$(SAN)),no,$(call wanted,BLAS,$(BLAS),$(found_blas)))
# The CUDA run time maps memory where sanitizers keep their shadow.
use_cuda := $(if $(SAN),no,$(call wanted,CUDA,$(CUDA),$(if $(filter yesyes,$(found_cuda)$(found_nccl)),yes,no)))
use_expat := $(call wanted,EXPAT,$(EXPAT),$(found_expat))
use_cudnn := $(if $(filter yes,$(use_cuda)),$(call wanted,CUDNN,$(CUDNN),$(found_cudnn)),no)

note = $(if $(filter $(1),$(2)),$(1),$(1) (not used))
ifeq ($(MAKELEVEL),0)
  $(info found: CUDA nvcc $(found_cuda), NCCL header $(found_nccl), cuDNN header $(call note,$(found_cudnn),$(use_cudnn)), MPI mpicc $(call note,$(found_mpi),$(use_mpi)), BLAS cblas header $(call note,$(found_blas),$(use_blas)), expat $(call note,$(found_expat),$(use_expat)), gnuplot $(found_gnuplot))
endif

# Objects, archives and the program.

# kernels are compiled once for each real type (exec/core/real.h)
typed   = $(filter exec/cpu/cpu_%,$(1))
objects = $(foreach x,$(basename $(filter-out exec/cpu/cpu_%,$(1))),$(2)/$x.o) \
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
# an archive, so that fuzz targets, which have no cmocka, take only what they use
SUPPORT_LIB := $B/libmeshsim_support.a

# Commands appear as one short line; V=1 shows them in full.
run = $(if $(filter 1,$(V)),,@printf '  %-4s %s\n' $(1) $(2); )

# Rewritten only when it changes, so that switching a backend rebuilds exec/.
$B/features: FORCE
	@mkdir -p $(@D)
	@echo '$(strip $(features) $(info_flags) $(vendor))' | cmp -s - $@ || echo '$(strip $(features) $(info_flags) $(vendor))' > $@
.PHONY: FORCE
FORCE:

# ... and other GPUs rebuild kernels
$B/archs: FORCE
	@mkdir -p $(@D)
	@echo '$(CUDA_ARCHS)' | cmp -s - $@ || echo '$(CUDA_ARCHS)' > $@

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

# ptxas says what each kernel needs: registers, shared memory, spills
$B/%.cu.o $B/%.cu.ptxas: %.cu $B/archs
	@mkdir -p $(@D)
	$(call run,NVCC,$B/$<.o)$(NVCC) $(CPPFLAGS) $(NVCCFLAGS) -Xptxas -v $(cuda_codes) -MMD -MP -MF $B/$<.d -c $< -o $B/$<.o >$B/$<.ptxas 2>&1 || { cat $B/$<.ptxas >&2; exit 1; }

$B/%.sm_90.cubin: %.cu $B/%.cu.o
	$(call run,NVCC,$@)$(NVCC) $(CPPFLAGS) $(filter-out --threads 2,$(NVCCFLAGS)) -arch=sm_90 -cubin $< -o $@

# No exceptions and no guards: programs in C are linked with it.
emulate = $(CXX) $(CPPFLAGS) -x c++ -std=c++17 -O2 -g -ffp-contract=off -fno-math-errno -fno-exceptions -fno-threadsafe-statics -Wall -Wextra -Wshadow \
    -Wno-unknown-pragmas -Werror $(san_flags) -pthread -DMS_CUDA_EMULATED -include tests/support/cuda_emulated.h -MMD -MP -c $< -o $@
$B/%.cu.emulated.o: %.cu
	@mkdir -p $(@D)
	$(call run,CXX,$@)$(emulate)

$B/%.cpp.emulated.o: %.cpp
	@mkdir -p $(@D)
	$(call run,CXX,$@)$(emulate)

$B/base/paths.o: CPPFLAGS += -DMS_SOURCE_DIR='"$(SOURCE_DIR)"'
$B/tests/%.o: CPPFLAGS += -DMS_SOURCE_DIR='"$(CURDIR)"'
$B/cli/cmd/cmd_info.o: CPPFLAGS += $(info_flags)
$B/cli/cmd/cmd_info.o: $B/features
$B/topo/site_xml.o $B/pic/topo/site_xml.o: CPPFLAGS += $(expat_flag)
$B/topo/site_xml.o $B/pic/topo/site_xml.o: $B/features
$B/exec/%.o: CPPFLAGS += $(features)
$(filter $B/exec/%,$(call obj,$(RUN_SRCS))): $B/features
cuda_driver_obj := $(filter $B/exec/cuda/vendor_%,$(call obj,$(RUN_SRCS)))
$(cuda_driver_obj): CPPFLAGS += -isystem $(CUDA_HOME)/include
# their code with libraries made by the tests: headers are enough
$(if $(CUDA_HOME),$B/tests/exec/cuda/test_cuda_blas.o $B/tests/exec/cuda/test_cuda_gemm_timing.o $B/tests/exec/cuda/test_cuda_nccl.o $B/tests/exec/cuda/test_cuda_cudnn.o $B/tests/support/cudnn_fake.o $B/tests/support/cudnn_fake_run.o: CPPFLAGS += -isystem $(CUDA_HOME)/include)
$B/exec/backends/mpi.o: CC := OMPI_CC=$(CC) MPICH_CC=$(CC) $(MPICC) $(addprefix -isystem ,$(mpi_dirs))

$(LIB): $(call obj,$(LIB_SRCS))
$B/libmeshsim_run.a: $(call obj,$(RUN_SRCS))
$B/libmeshsim_cuda.a: $(call cu_obj,$(CU_SRCS))
$(EMULATED_LIB): $(emulated_obj)
$B/libmeshsim_cli.a: $(filter-out $B/cli/cmd/main.o,$(call obj,$(CLI_SRCS)))
$(SUPPORT_LIB): $(call obj,$(SUPPORT))
$(LIB) $B/libmeshsim_run.a $B/libmeshsim_cuda.a $(EMULATED_LIB) $B/libmeshsim_cli.a $(SUPPORT_LIB):
	@rm -f $@
	$(call run,AR,$@)$(AR) rcs $@ $^

$B/meshsim: $B/cli/cmd/main.o $(CLI_LIB) $(RUN_LIB) $(CUDA_LIB) $(LIB) | $(filter $B/%,$(STATIC_CJSON))
	$(call run,LINK,$@)$(LINK) $(ALL_CFLAGS) $(lto_link) $^ -o $@ $(LDFLAGS) $(LIBS)

build/meshsim: build/opt/meshsim
	@cp -f $< $@

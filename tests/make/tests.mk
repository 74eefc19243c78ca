# Test programs, and the targets that run them; speed, and reports of nvcc.

bin = $(patsubst %.c,$B/%,$(1))

# archives that need each other: kernels the device in memory of tests/support, that the program
link_test = $(LINK) $(ALL_CFLAGS) $(no_lto) $(if $(filter -flto%,$(no_lto)),,$(test_ld)) -Wl,--start-group $^ -Wl,--end-group -o $@ $(LDFLAGS)
$(call bin,$(FUZZ_SRCS)): $B/%: $B/%.o $B/tests/fuzz/driver.o $(SUPPORT_LIB) $(CLI_LIB) $(RUN_LIB) $(EMULATED_LIB) $(LIB)
	$(call run,LINK,$@)$(link_test) $(LIBS)

$(call bin,$(SOAK_SRCS) $(BENCH_SRCS)): no_lto := $(lto_link)
$(call bin,$(TEST_SRCS) $(SOAK_SRCS) $(BENCH_SRCS) $(GAP_SRCS)): $B/%: $B/%.o $(SUPPORT_LIB) $(API_LIB) $(CLI_LIB) $(RUN_LIB) $(EMULATED_LIB) $(LIB) | $(filter $B/%,$(STATIC_CJSON))
	$(call run,LINK,$@)$(link_test) $(if $(STATIC),-Wl$(comma)-rpath$(comma)'$$ORIGIN') -lcmocka $(LIBS)

# Tests of kernels once more, with what nvcc makes of them: on a GPU, or skipped.
KERNEL_TESTS := $(patsubst tests/exec/cuda/%.c,%,$(filter-out %_emulated.c %_cudnn.c,$(filter $(TEST_SRCS),$(shell grep -lE 'cuda_cases\.h|attention_cases\.h' tests/exec/cuda/test_cuda_*.c))))
gpu_tests := $(if $(CU_SRCS),$(KERNEL_TESTS:%=$B/gpu/%))
$B/tests/exec/gpu_memory.o: CPPFLAGS += -isystem $(CUDA_HOME)/include
$(gpu_tests): $B/gpu/%: $B/tests/exec/cuda/%.o $B/tests/exec/gpu_memory.o $(SUPPORT_LIB) $(CLI_LIB) $(RUN_LIB) $(CUDA_LIB) $(LIB) | $(filter $B/%,$(STATIC_CJSON))
	@mkdir -p $(@D)
	$(call run,LINK,$@)$(link_test) $(if $(STATIC),-Wl$(comma)-rpath$(comma)'$$ORIGIN') -lcmocka $(LIBS)

.PHONY: gpu-tests
gpu-tests: $(gpu_tests) ## build/opt/gpu: tests of kernels that run on a GPU

# The built kernels and the machine code of those that multiply on tensor cores, compared with tests/data/cuda_kernels.tsv.
record_test := $(call tests_of,tests/cuda_record.sh)
ptxas_files := $(if $(record_test),$(CU_SRCS:%.cu=$B/%.cu.ptxas))
cubins := $(if $(SAN),,$(patsubst %.cu,$B/%.sm_90.cubin,$(if $(ptxas_files),$(filter %/cuda_flash.cu %/cuda_flash_grad.cu,$(CU_SRCS)))))

# what is installed, where the build has no sanitizer
install_test := $(if $(SAN),,$(call tests_of,tests/install.sh tests/python.sh tests/abi.sh))

.PHONY: check soak golden-update
check: $(call bin,$(TEST_SRCS) $(FUZZ_SRCS)) $(gpu_tests) $(ptxas_files) $(cubins) $(PROGRAM) $(if $(install_test),$(install_parts)) ## unit, property, oracle, exec, golden and fuzz-corpus tests; SAN=, T=, UPDATE=1
	@B=$B T='$T' UPDATE='$(UPDATE)' CC='$(CC)' NVCC='$(NVCC)' PTXAS='$(ptxas_files)' CUBINS='$(cubins)' tests/run_tests.sh $(call bin,$(TEST_SRCS) $(FUZZ_SRCS)) $(gpu_tests) $(call tests_of,tests/golden/*.test tests/run_framework_cases.sh tests/json_docs.sh tests/schemas.sh tests/search_work.sh tests/search_interrupt.sh tests/final_weights.sh tests/report_pages.sh) $(install_test) $(record_test)

soak: $(call bin,$(SOAK_SRCS)) $(PROGRAM) ## long tests: tests/soak
	@B=$B T='$T' SUMMARY=$B/soak.summary LIMIT_S=7200 tests/run_tests.sh $(call bin,$(SOAK_SRCS))

golden-update: $(PROGRAM) ## rewrite tests/golden/*.test from what the program prints now
	@B=$B T='$T' UPDATE=1 SUMMARY=$B/golden.summary tests/run_tests.sh $(call tests_of,tests/golden/*.test)

.PHONY: report-check
report-check: $(PROGRAM) ## pages of report in an HTML validator and headless Chromium, pictures in build/report-check; VNU=vnu.jar, CHROMIUM=
	@tests/report_check.sh $(PROGRAM) || [ $$? -eq 77 ]

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
gaps: $(call bin,$(GAP_SRCS)) ## node replay (LINKS=shared: events) against predictions on random plans, by class; PLANS=30 of each model, SEED=1, LIST=file for a line a plan
	@$< $(or $(PLANS),30) $(or $(SEED),1) $(or $(LINKS),alone) $(LIST)

.PHONY: oracle
oracle: ## tests/data/run made again by PyTorch; needs Debian's python3-torch (or another torch: PYTHON=...)
	@for python in $(PYTHON) python3 /usr/bin/python3; do \
	    if "$$python" -c 'import torch' 2>/dev/null; then \
	        "$$python" tests/oracle/torch/make_oracle.py tests/data/run && \
	        "$$python" tests/oracle/torch/make_features.py tests/data/run/features && \
	        exec "$$python" tests/oracle/torch/make_architectures.py tests/data/run/architectures; \
	        exit; \
	    fi; \
	done; echo "oracle: no python3 with torch: install python3-torch, or name one with PYTHON=..." >&2; exit 1

# libFuzzer builds everything again with clang, in one go per target.
.PHONY: fuzz
fuzz: ## every fuzzer for FUZZ_SECONDS (30) under clang's address and undefined sanitizers
	@CLANG=$(CLANG) SECONDS_EACH=$(FUZZ_SECONDS) CPPFLAGS='$(CPPFLAGS) $(expat_flag)' LIBS='-lcjson -lyaml $(expat_lib) -lgsl -lgslcblas -lm -lpthread' \
	    tests/fuzz/run_fuzz.sh $(FUZZ_SRCS) -- $(LIB_SRCS) exec/params/safetensors.c exec/params/tokens.c exec/cuda/cuda_gemm_choices.c exec/core/scalar.c $(SUPPORT)

# What ptxas said of the kernels that are built, for each GPU; needs nvcc, no GPU.
.PHONY: cuda-report
cuda-report: $(call cu_obj,$(ALL_CU_SRCS)) $(patsubst %.cu,$B/%.cu.ptxas,$(ALL_CU_SRCS)) ## registers, shared memory and spills of every kernel by nvcc; fails on spills
	@tests/cuda_report.sh $(filter %.ptxas,$^)

# Programs that run on machines which cannot build them.

# One program for machines that have nothing but a C library and perhaps a GPU's driver. OpenBLAS has kernels for all processors: BLAS=1 makes it ten times as large.
.PHONY: static bundle
static: ## build/meshsim-static, which runs elsewhere: it needs libc alone, and configs/ beside it; BLAS=1 for fast CPU products
	@$(MAKE) --no-print-directory STATIC=1 MPI=0 BLAS=$(or $(BLAS),0) build/meshsim-static

build/meshsim-static: build/static/meshsim
	$(call run,STRIP,$@)strip -o $@ $<

# ... and the tests of kernels on a GPU, with cmocka beside them, which exists as a shared library only.
bundle: static ## build/bundle: what tests/exec/gpu_report.sh needs on a machine that cannot build; CUDA_ARCHS=90 for one kind of GPU
	@$(MAKE) --no-print-directory STATIC=1 MPI=0 BLAS=$(or $(BLAS),0) build/bundle/complete
	@tests/bundle_size.sh $(CUDA_ARCHS)

build/bundle/complete: $$(patsubst $$B/gpu/%,build/bundle/%,$$(gpu_tests)) build/meshsim-static
	@mkdir -p $(@D)
	@cp -f build/meshsim-static build/bundle/meshsim
	@cp -Lf $$($(CC) -print-file-name=libcmocka.so.0) build/bundle/
	@touch $@
build/bundle/test_%: build/static/gpu/test_%
	@mkdir -p $(@D)
	$(call run,STRIP,$@)strip -o $@ $<

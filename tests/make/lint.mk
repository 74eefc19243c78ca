# Include rules, lengths, format and clang-tidy.

.PHONY: lint tidy
lint: ## layers, lengths, forbidden calls, format, clang-tidy
	@MAKE='$(MAKE)' tests/lint/run_lint.sh $(SRCS) $(STATIC_SRCS) $(HEADERS) $(ALL_TEST_SRCS) $(wildcard tests/*.h tests/*/*.h tests/*/*/*.h)

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
	    $(if $(filter tests/%,$<),-DMS_SOURCE_DIR='"$(CURDIR)"') $(if $(filter topo/site_xml.c,$<),$(expat_flag)) $(if $(filter exec/%,$<),$(features) $(addprefix -isystem ,$(mpi_dirs) $(if $(CUDA_HOME),$(CUDA_HOME)/include))) 2>$@.err \
	    || { cat $@.err >&2; echo "clang-tidy: $<" >&2; exit 1; }
	@rm -f $@.err; touch $@

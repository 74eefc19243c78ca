# Installing: program, data, library, manual pages, completion, examples. Pages and completion are made from the program's
# option tables and from the comments of api/meshsim.h.

VERSION := $(shell sed -n 's/^.define MS_VERSION "\(.*\)"/\1/p' base/version.h)
commands := $(shell sed -n 's/^    {"\([a-z]*\)", ms_cmd_.*/\1/p' cli/options/commands.c)
PAGES := build/opt/pages
page_date = $(shell date -u -d "@$${SOURCE_DATE_EPOCH:-$$(date +%s)}" +%F)
to_page = awk -v version=$(VERSION) -v date=$(page_date) -f base/make/$(1).awk

$(PAGES)/complete: build/opt/meshsim api/meshsim.h base/version.h $(wildcard base/make/*.awk)
	@rm -rf $(@D); mkdir -p $(@D)/man1 $(@D)/man3
	$(call run,PAGE,$(@D))$< help | $(call to_page,man_program) >$(@D)/man1/meshsim.1; \
	$< help --json >$(@D)/00.json; \
	for c in $(commands); do \
	    $< $$c --help --wide | $(call to_page,man_command) >$(@D)/man1/meshsim-$$c.1 && $< $$c --help --json >$(@D)/10-$$c.json || exit 1; \
	done; \
	$(call to_page,man_library) api/meshsim.h >$(@D)/man3/meshsim.3; \
	for f in $$(sed -nE 's/.*\b(meshsim_[a-z_]+)\(.*/\1/p' api/meshsim.h); do echo ".so man3/meshsim.3" >$(@D)/man3/$$f.3; done; \
	for s in bash zsh fish; do awk -v shell=$$s -f base/make/completion.awk $(@D)/*.json >$(@D)/meshsim.$$s || exit 1; done; \
	rm $(@D)/*.json
	@touch $@

LIBDIR ?= $(PREFIX)/lib
at = $(DESTDIR)$(PREFIX)
lib_at = $(DESTDIR)$(LIBDIR)
# folders that hold nothing but what is installed, and single files
installed_folders = $(at)/share/meshsim $(at)/share/doc/meshsim
installed_files = $(at)/bin/meshsim $(at)/include/meshsim.h $(addprefix $(lib_at)/,$(SONAME) libmeshsim.so libmeshsim.a pkgconfig/meshsim.pc) \
    $(at)/share/man/man1/meshsim.1 $(commands:%=$(at)/share/man/man1/meshsim-%.1) $(at)/share/man/man3/meshsim.3 $(at)/share/man/man3/meshsim_*.3 \
    $(at)/share/bash-completion/completions/meshsim $(at)/share/zsh/site-functions/_meshsim $(at)/share/fish/vendor_completions.d/meshsim.fish
install_parts := build/opt/meshsim build/opt/$(SONAME) build/opt/api/libmeshsim.a $(PAGES)/complete
put = install -D -m 644

.PHONY: install uninstall
install: $(install_parts) ## into PREFIX (/usr/local), DESTDIR honoured: program, data, library, manual pages, completion, examples
	install -D -m 755 build/opt/meshsim $(at)/bin/meshsim
	install -d $(at)/share/meshsim $(at)/share/man/man1 $(at)/share/man/man3
	cp -r configs docs/schemas $(at)/share/meshsim/
	@for f in plots/*.gp; do $(put) "$$f" $(at)/share/meshsim/"$$f" || exit 1; done
	$(put) api/meshsim.h $(at)/include/meshsim.h
	install -D -m 755 build/opt/$(SONAME) $(lib_at)/$(SONAME)
	ln -sf $(SONAME) $(lib_at)/libmeshsim.so
	$(put) build/opt/api/libmeshsim.a $(lib_at)/libmeshsim.a
	install -d $(lib_at)/pkgconfig
	sed -e 's/@VERSION@/$(VERSION)/' -e 's/@EXPAT@/$(if $(expat_lib), expat)/' api/meshsim.pc.in >$(lib_at)/pkgconfig/meshsim.pc
	install -m 644 $(PAGES)/man1/* $(at)/share/man/man1/
	install -m 644 $(PAGES)/man3/* $(at)/share/man/man3/
	$(put) $(PAGES)/meshsim.bash $(at)/share/bash-completion/completions/meshsim
	$(put) $(PAGES)/meshsim.zsh $(at)/share/zsh/site-functions/_meshsim
	$(put) $(PAGES)/meshsim.fish $(at)/share/fish/vendor_completions.d/meshsim.fish
	@for f in api/examples/*.*; do $(put) "$$f" $(at)/share/doc/meshsim/examples/"$${f##*/}" || exit 1; done

.PHONY: wheel
wheel: ## build/meshsim-VERSION-py3-none-any.whl, the Python package; it needs no network, and libmeshsim where it is used
	@mkdir -p build
	@python3 -B api/python/wheel_builder.py build

.PHONY: dist
dist: ## build/meshsim-VERSION.tar.gz, the committed sources
	@mkdir -p build
	git archive --format=tar --prefix=meshsim-$(VERSION)/ HEAD | gzip -n >build/meshsim-$(VERSION).tar.gz

uninstall: ## removes what install has put into PREFIX
	rm -rf $(installed_folders)
	rm -f $(installed_files)

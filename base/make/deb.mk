# Debian packages, built from the committed sources; base/make/debian describes them.

DEB_MAINTAINER ?= meshsim developers <meshsim@packages.debian.org>
deb_tree := build/deb/meshsim-$(VERSION)
commit_date = $(shell git log -1 --format=%cd --date=rfc)

.PHONY: deb
deb: dist ## build/deb/*.deb: meshsim, meshsim-data, libmeshsim0, libmeshsim-dev, python3-meshsim (needs debhelper, dh-python)
	@rm -rf build/deb; mkdir -p build/deb
	tar -C build/deb -xzf build/meshsim-$(VERSION).tar.gz
	cp -r base/make/debian $(deb_tree)/
	@sed -i 's/@MAINTAINER@/$(DEB_MAINTAINER)/' $(deb_tree)/debian/control
	@printf 'meshsim (%s) unstable; urgency=medium\n\n  * Sources of this day.\n\n -- %s  %s\n' '$(VERSION)' \
	    '$(DEB_MAINTAINER)' '$(commit_date)' >$(deb_tree)/debian/changelog
	cd $(deb_tree) && MAKEFLAGS= dpkg-buildpackage -b -us -uc

.PHONY: deb-check
deb-check: deb ## lintian, then the packages in a bare Debian of their own (needs lintian, debootstrap, root, Debian's packages)
	tests/deb.sh build/deb

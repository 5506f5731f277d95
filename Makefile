# SPDX-License-Identifier: BSD-2-Clause
# Thin: meson and ninja build, tests/run tests, tests/demo shows. `make` alone builds the program.
#
#   make            build/weft, optimised
#   make demo       two virtual machines and the host on one network, measured, in two minutes
#   make check      every test that fits in a quarter of an hour
#   make check-full the whole feature matrix as well
#   make bench      the numbers of docs/performance.md
#   make install    DESTDIR= and PREFIX= (default /usr/local) as usual

PREFIX ?= /usr/local
DESTDIR ?=
MESON ?= meson
NINJA ?= ninja
# -k: one broken file does not hide the others
NINJAFLAGS ?=

.DEFAULT_GOAL := build
.PHONY: build build-check build-fuzz demo check check-full bench deps install clean

build/build.ninja:
	$(MESON) setup --buildtype=release -Db_lto=true -Dtests=disabled -Dprefix=$(PREFIX) build

build-check/build.ninja:
	$(MESON) setup --buildtype=debug -Db_sanitize=address,undefined build-check

# the fuzzer's run-time belongs to clang; without clang the fuzz runs are skipped, and say so
build-fuzz/build.ninja:
	@if command -v clang >/dev/null; then \
		CC=clang $(MESON) setup --buildtype=debugoptimized -Db_sanitize=address,undefined \
			-Db_lundef=false -Dfuzz=true \
			"-Dc_args=['-fsanitize=fuzzer-no-link', '-fsanitize-coverage=trace-div']" -Dtests=disabled build-fuzz; \
	else echo "no clang: fuzz targets are not built"; fi

build: deps build/build.ninja
	$(NINJA) $(NINJAFLAGS) -C build
	@ln -sf src/app/weft build/weft

build-check: deps build-check/build.ninja
	$(NINJA) $(NINJAFLAGS) -C build-check

build-fuzz: deps build-fuzz/build.ninja
	@if [ -f build-fuzz/build.ninja ]; then $(NINJA) $(NINJAFLAGS) -C build-fuzz; fi

deps:
	@tools/deps

demo: build
	@tests/demo

check: build build-check build-fuzz
	@tests/run

check-full: build build-check build-fuzz
	@tests/run --full

bench: build
	@bench/run

# also after a build by another user: what is configured is not configured again
install: build
	@[ "$$($(MESON) introspect --buildoptions build | \
		python3 -c 'import json,sys; print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"))')" = "$(PREFIX)" ] || \
		$(MESON) configure -Dprefix=$(PREFIX) build
	DESTDIR=$(DESTDIR) $(MESON) install -C build

clean:
	rm -rf build build-check build-fuzz

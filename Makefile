# The front door. CMake does the work: see CMakePresets.json and CONTRIBUTING.md.
# PRESETS="dev asan" limits make test to some of its presets; PREFIX is where make install installs.
PREFIX = /usr/local

.PHONY: help demo test format install clean

help:
	@echo 'make demo      build, measure this machine and a 4-bit kernel on it'
	@echo 'make test      build and test: gcc, clang, sanitizers, static binary'
	@echo 'make format    clang-format over the C files'
	@echo 'make install   install the release build under PREFIX ($(PREFIX))'
	@echo 'make clean     remove build/'

demo:
	@sh scripts/demo.sh

test:
	@sh scripts/test.sh $(PRESETS)

format:
	@sh scripts/need.sh format
	@git ls-files '*.c' '*.h' | xargs clang-format -i

install:
	@sh scripts/need.sh build
	@sh scripts/build.sh release
	@cmake --install build/release --prefix '$(PREFIX)'

clean:
	rm -rf build

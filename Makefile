# From a fresh clone, with nothing before:
#   make         sets up, builds, leaves the program at build/rooftile
#   make run     ... and runs the main job; ARGS="plan gemm --m 64 ..." runs that instead
#   make test    ... and runs every test this machine can run, of the long ones a few cases drawn by the commit;
#                ARGS="-L cpu" goes to ctest, GTEST_FILTER='Units*' to GoogleTest
#   make test-all ... and all cases, plants a knob in a copy of the tree, and the CPU tests themselves: of 40 small mistakes
#                in planner code, drawn by SEED=, they notice 85 %
#   make bench   ... and runs the CPU benchmarks; ARGS go to them
#   make results ... and writes README.md's results from bench/results/current/
#   make wheel   ... and leaves the Python package as PyPI takes it in build/wheel/dist; sdist: its sources in build/sdist
#   make all     builds everything; install (PREFIX=), format, lint, clean
# PRESET=release|ci|dev|asan picks from CMakePresets.json; CI=true makes warnings errors.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := program
# What ccache asks for before it keeps objects that were compiled with a precompiled header.
export CCACHE_SLOPPINESS ?= pch_defines,time_macros

PRESET ?= $(if $(CI),ci,release)
BUILD := $(if $(filter release ci,$(PRESET)),build,build-$(PRESET))
PREFIX ?= /usr/local
# The up-projection of Llama-3-8B's MLP over 4096 tokens.
JOB := gemm --m 4096 --n 14336 --k 4096 --type bf16
PROGRAM := $(BUILD)/rooftile
say = echo '$$ $(1)' >&2 && $(1)

.PHONY: program run test test-all bench results wheel sdist all install format lint clean setup configure

setup:
	@tools/setup

# Configured again only where the preset or the CUDA folder is another; ninja sees every other change itself.
configure: setup
	@wanted="$(PRESET) $$(tools/setup --cuda-path)"; \
	if [ ! -e $(BUILD)/build.ninja ] || [ "$$(cat $(BUILD)/.configured 2>/dev/null)" != "$$wanted" ]; then \
	    cmake --preset $(PRESET) -DROOFTILE_CUDA_PATH="$$(tools/setup --cuda-path)"; \
	    echo "$$wanted" > $(BUILD)/.configured; \
	fi

program: configure
	@cmake --build $(BUILD) --target rooftile_cli

all: configure
	@cmake --build $(BUILD)

# `machine show` ends with 0 where any GPU is: the derivation is then of that GPU. `doctor --require gpu` does only
# where a kernel can run on it.
run: program
ifneq ($(strip $(ARGS)),)
	@$(PROGRAM) $(ARGS)
else
	@if $(PROGRAM) machine show >/dev/null 2>&1; then \
	    $(call say,$(PROGRAM) plan $(JOB) --explain); \
	else \
	    $(call say,$(PROGRAM) plan $(JOB) --machine h100-sxm --explain); \
	fi; \
	if $(PROGRAM) doctor --require gpu >/dev/null 2>&1; then \
	    $(call say,$(PROGRAM) measure $(JOB) --baseline cublaslt); \
	else \
	    echo 'No usable GPU here, so nothing was measured; $(PROGRAM) doctor says why.' >&2; \
	fi
endif

test: all
	@tools/setup --cutlass
	@tools/run-tests $(BUILD) $(ARGS)

test-all: all
	@tools/setup --cutlass
	@tools/setup --browser
	@tools/setup --fresh-system
	@ROOFTILE_TEST_ALL=1 tools/run-tests $(BUILD) $(ARGS)
	@tools/plant-knob $(BUILD)
	@ROOFTILE_TEST_ALL=1 tools/mutate $(BUILD) --count 40 --seed $(or $(SEED),1) --require 0.85

bench: configure
	@cmake --build $(BUILD) --target rooftile_benchmarks
	@$(BUILD)/rooftile_benchmarks $(ARGS)

results: program
	@tools/results-table $(PROGRAM)

wheel: configure
	@cmake --build $(BUILD) --target rooftile_cli rooftile_shared rooftile_shells
	@tools/wheel $(BUILD)

sdist:
	@tools/sdist $(BUILD)/sdist

install: all
	@cmake --install $(BUILD) --prefix $(PREFIX)

format:
	@git ls-files -co --exclude-standard '*.cpp' '*.hpp' '*.cuh' | xargs -r clang-format -i

lint: configure
	@git ls-files -co --exclude-standard 'rooftile/*.cpp' 'cli/*.cpp' | xargs -r clang-tidy -p $(BUILD) --quiet

clean:
	@rm -rf build build-dev build-asan

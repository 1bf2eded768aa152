# Everything a person does with a checkout. `make help` lists it; nothing here needs configuring.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo demo-reset setup test lint types contracts bench lock packages messages

help: ## List what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- demo: a checkout that runs --------------------------------------------------------------

PORT ?= 8000
DATA := $(if $(SEKISHO_DATA_DIR),$(SEKISHO_DATA_DIR),var)

demo: setup ## Run everything on this machine with a demo world (PORT=8000)
	@SEKISHO_DEMO=1 exec $(PY) manage.py demo --port $(PORT)

demo-reset: ## Forget the demo's data; the next `make demo` starts over
	@$(PYTHON) portal/demo/reset.py $(DATA)

setup: $(VENV)/.ready ## Make .venv, install the pinned packages, compile the engine
	@if ls portal/locale/*/LC_MESSAGES/*.po >/dev/null 2>&1; then \
	  $(BIN)/pybabel --quiet compile --directory portal/locale --domain django; fi
	@$(PY) -m planner warm

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Sekisho needs Python 3.11 or newer; \`$(PYTHON)\` is older, or not there." >&2; \
	  echo "Name another one (make demo PYTHON=python3.12), or: apt install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) portal/demo/install.py $(VENV)
	@touch $@

# --- end of demo -----------------------------------------------------------------------------

# --- house: tests and checks -----------------------------------------------------------------

test: packages $(VENV)/.dev messages ## Run all tests; installs and starts what they need (ARGS="-k word" narrows)
	@$(PY) -m planner warm
	@exec $(PY) -m tests.services -- sh tests/all.sh $(PY) $(ARGS)

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

messages: $(VENV)/.dev # The translations in the form that the site reads
	@if ls portal/locale/*/LC_MESSAGES/*.po >/dev/null 2>&1; then \
	  $(BIN)/pybabel --quiet compile --directory portal/locale --domain django; fi

packages: # Debian packages that the tests start; says what is missing when it may not install
	@PYTHON="$(PYTHON)" tests/machine.sh

$(VENV)/.dev: pyproject.toml constraints.txt
	@$(PYTHON) portal/demo/install.py $(VENV) dev
	@touch $@ $(VENV)/.ready

# --- end of house ----------------------------------------------------------------------------

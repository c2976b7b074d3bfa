# One command each. Everything runs in .venv, which is created and kept up to date on demand.
#
#   PYTHON  the interpreter that creates .venv              (make test PYTHON=python3.12)
#   JOBS    how many processes run the tests                (make test JOBS=8)
#   ARGS    passed on to pytest, the demo or the benchmarks (make test ARGS="-m 'not slow' -x")

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
ARGS ?=

BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_DOCS := $(VENV)/.installed-docs

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-browser check bench docs clean

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(INSTALLED)  ## show the library at work
	$(BIN)/outweigh demo $(ARGS)

# The processes share the cores among themselves, so each computes on one thread.
test: export OMP_NUM_THREADS = 1
test: export OPENBLAS_NUM_THREADS = 1
test: export MKL_NUM_THREADS = 1
test: export BLIS_NUM_THREADS = 1
test: export VECLIB_MAXIMUM_THREADS = 1
test: export POLARS_MAX_THREADS = 1
test: $(INSTALLED)  ## run the tests and the examples in the docstrings
	$(BIN)/python -m pytest -n $(JOBS) $(ARGS)

test-browser: export OUTWEIGH_NEEDS_BROWSER = 1
test-browser: $(INSTALLED)  ## open the report page in a real browser; fails where there is none
	$(BIN)/python -m pytest -m browser tests/browser $(ARGS)

check: $(INSTALLED)  ## lint, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy src

bench: $(INSTALLED)  ## compare with the oracle and the baselines
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(INSTALLED_DOCS)  ## build the documentation into docs/_build
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build

clean:  ## remove what was built, except .venv
	rm -rf build dist docs/_build docs/auto_gallery docs/auto_tutorials docs/generated .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find benchmarks docs examples src tests -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	    "outweigh needs Python 3.11 or newer: make ... PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,plot,io,dask,storage,sdp]'
	touch $@

$(INSTALLED_DOCS): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

# Every target sets itself up in .venv from the package registries; nothing else to install by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CLIPS ?=

.PHONY: help setup demo test coverage lint bench soak fuzz test-browser test-hf clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(STAMP): pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=24"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e ".[dev]"
	@touch $@

setup: $(STAMP)  ## make .venv with the locked versions

demo: $(STAMP)  ## run the benchmark end to end and write build/demo/report.html
	$(BIN)/python demo/run.py --out build/demo $(if $(CLIPS),--clips "$(CLIPS)")

test: lint  ## lint, types, import contract, tests
	$(BIN)/python -m pytest -n 2 -m "not browser"

coverage: $(STAMP)  ## the same tests with coverage by line and branch (twice the time)
	$(BIN)/python -m pytest -n 2 --cov --cov-report=term -m "not browser"

lint: $(STAMP)  ## format check, lint, strict types, import contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)  ## speed and memory, beside a peer in the same run
	$(BIN)/python -m benchmarks

soak: $(STAMP)  ## 20,000 items through a misbehaving service, 200 kills: nothing lost, nothing doubled
	$(BIN)/python -m benchmarks.soak

fuzz: $(STAMP)  ## random bytes against the ledger's reader and the reply parsers, two minutes a target
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e ".[dev,fuzz]"
	$(BIN)/python -m benchmarks.fuzz 120

test-browser: $(STAMP)  ## the pages in headless Chromium (skips with a reason where there is none)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e ".[dev,browser]"
	$(BIN)/python -m pytest -n 2 -m browser -ra

test-hf: $(STAMP)  ## local transformers models, on tiny ones the test makes (brings torch)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e ".[dev,hf]"
	$(BIN)/python -m pytest tests_hf -W default

clean:  ## remove .venv and build
	rm -rf $(VENV) build

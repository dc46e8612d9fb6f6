# 'make demo' and 'make test' do everything, set-up included.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test lint scatter clean

demo: $(VENV)/.installed
	$(BIN)/kblrn data Families
	$(BIN)/kblrn demo
	$(BIN)/python viz/rbf_hist.py --relation spouse --relation parent_of --relation capital_of --out out/rbf_hist.png

test: $(VENV)/.installed
	$(BIN)/pytest

lint: $(VENV)/.installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[lint]'
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/codespell

# Compiles for about eight minutes; only an accelerator, nothing needs it.
scatter: $(VENV)/.installed
	$(BIN)/pip install --constraint constraints.txt setuptools wheel
	$(BIN)/pip install --constraint constraints.txt --no-build-isolation torch-scatter

clean:
	rm -rf $(VENV) build out *.egg-info

# The constraints name a torch whose CPU build is enough.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --constraint constraints.txt --editable '.[test]'
	touch $@

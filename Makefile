# 'make demo' and 'make test' do everything, set-up included.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test attack kill-test wheel-test docs notebooks lint pictures paper-smoke scatter clean

demo: $(VENV)/.installed
	$(BIN)/kblrn data Families
	$(BIN)/kblrn demo
	$(BIN)/python viz/rbf_hist.py --relation spouse --relation parent_of --relation capital_of --out out/rbf_hist.png

# A file of tests stays with one of the two processes, which sets it up once.
test: $(VENV)/.installed
	$(BIN)/pytest -n 2 --dist loadfile

# What SECURITY.md promises, under attack: about half an hour each.
attack: $(VENV)/.installed
	PYTHONPATH=tests $(BIN)/python -u -m attack

kill-test: $(VENV)/.installed
	PYTHONPATH=tests $(BIN)/python -u -m attack.kills

# A wheel in an environment of its own, outside of the clone.
wheel-test: $(VENV)/.installed
	$(BIN)/pytest -m wheel tests/test_wheel.py

# The documentation site, in out/docs; a warning is an error.
docs: $(VENV)/.installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[docs]'
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet docs out/docs

# Runs the notebooks, and writes them with their output.
NOTEBOOKS := docs/notebooks
notebooks: $(VENV)/.installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[notebooks]'
	$(BIN)/python docs/notebooks/execute.py --out $(NOTEBOOKS)

# The pictures of the README and of docs/, from the embedded data set.
PICTURED := "Adea Hazelwright" grandparent_of "Selen Frostshaw"
pictures: $(VENV)/.installed
	rm -rf out/pictured
	$(BIN)/kblrn train Families --experts lrn --hidden-channels 32 --num-negatives all --dropout 0.3 --lr 0.02 --epochs 8 --validate-every 2 --out out/pictured
	$(BIN)/python viz/kb_fragment.py --entity "Jora Crowgarth" --out docs/fragment.png
	$(BIN)/python viz/rbf_hist.py --relation spouse --relation parent_of --out docs/rbf_hist.png
	$(BIN)/python viz/explanation.py --run out/pictured $(PICTURED) --out docs/explanation.png
	$(BIN)/python viz/experts.py --run out/pictured --out docs/experts.png
	$(BIN)/python viz/page.py --run out/pictured --title Families --entity "Adea Hazelwright" --relation grandparent_of --answer "Selen Frostshaw" --k 4 --height 1100 --out docs/serve.png

# The reproduction of the paper's tables, in short and on the embedded data set.
PAPER := $(BIN)/python benchmarks/paper.py --runs out/paper/runs --results out/paper/results
paper-smoke: $(VENV)/.installed
	rm -rf out/paper
	mkdir -p out/paper/benchmarks
	cp README.md out/paper
	$(PAPER) --dataset Families --short --recipe paper
	$(PAPER) --dataset Families --short --recipe modern --instances lr
	$(PAPER) --report out/paper

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

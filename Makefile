# make run          install and run the demo: the most similar pairs of 10,000 sentences, and three searches
# make test         install and run all tests
# make check        check formatting, lint and types, and run all tests
# make fix          auto-fix formatting and lint
# make docs         regenerate the pages and tables that come from code and benchmark results
# make bench        compare encoding with the rivals on MiniLM (downloaded), in a separate environment
# make bench-train  compare training with sentence-transformers; requires TWINVEC_DATA and BACKBONE=<folder>

PYTHON ?= python3
VENV ?= .venv
BENCH_VENV ?= .venv-bench
MODEL ?= .models/minilm
PIP = $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: run test check lint fix docs bench bench-train clean

run: $(VENV)/.core
	$(VENV)/bin/twinvec demo

test: $(VENV)/.dev
	$(VENV)/bin/python -m pytest -q $(PYTEST)

check: lint test

lint: $(VENV)/.dev
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

fix: $(VENV)/.dev
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

docs: $(VENV)/.dev
	$(VENV)/bin/python -m twinvec.cli.reference > docs/cli.md
	$(VENV)/bin/python scripts/result_tables.py
	$(VENV)/bin/python scripts/scale_sums.py
	$(VENV)/bin/python scripts/rooms.py

bench: $(BENCH_VENV)/.ready $(MODEL)
	$(BENCH_VENV)/bin/python benchmarks/encode.py --model $(MODEL)
	$(BENCH_VENV)/bin/python benchmarks/start.py --model $(MODEL)

bench-train: $(VENV)/.dev
	$(PIP) datasets
	$(VENV)/bin/python benchmarks/train.py --model $(BACKBONE)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) torch -e '.[eval,fast,ray,search,tables,train]' -r requirements-dev.txt
	touch $@ $(VENV)/.core

$(BENCH_VENV)/.ready: pyproject.toml constraints-bench.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-bench.txt \
		torch -e '.[fast,tables]' -r requirements-bench.txt
	touch $@

$(MODEL): | $(VENV)/bin/python
	$(VENV)/bin/python scripts/fetch_model.py $(MODEL)

clean:
	rm -rf $(VENV) $(BENCH_VENV) .models

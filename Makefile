# make run          install and run the demo: the most similar pairs of 10,000 sentences, and three searches
# make test         install and run all tests
# make test-clients test the server with the official clients, in a separate environment
# make check        check formatting, lint and types, and run all tests
# make fix          auto-fix formatting and lint
# make docs         regenerate the pages and tables that come from code and benchmark results
# make bench        compare encoding with the rivals on MiniLM (downloaded), in a separate environment
# make bench-train  compare training with sentence-transformers; requires TWINVEC_DATA and BACKBONE=<folder>

PYTHON ?= python3
VENV ?= .venv
BENCH_VENV ?= .venv-bench
CLIENTS_VENV ?= .venv-clients
MODEL ?= .models/minilm
# Two processes; the tests of a file stay together and in order, for the models that they share. One thread of torch in
# each, since threads that wait for each other on busy cores take many times longer.
IN_PARALLEL = -n 2 --dist loadfile --no-loadscope-reorder
PIP = $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: run test test-clients check lint fix docs bench bench-train clean

run: $(VENV)/.core
	$(VENV)/bin/twinvec demo

test: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest -q $(IN_PARALLEL) $(PYTEST)

test-clients: $(VENV)/.dev $(CLIENTS_VENV)/.ready
	TWINVEC_SERVER_PYTHON=$(abspath $(VENV))/bin/python $(CLIENTS_VENV)/bin/python -m pytest -q \
		-c tests/clients/pytest.ini --rootdir tests/clients --confcutdir tests/clients tests/clients

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
	$(PIP) torch -e '.[eval,fast,mcp,ray,search,serve,tables,train]' -r requirements-dev.txt
	touch $@ $(VENV)/.core

$(BENCH_VENV)/.ready: pyproject.toml constraints-bench.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-bench.txt \
		torch -e '.[fast,serve,tables]' -r requirements-bench.txt
	touch $@

$(CLIENTS_VENV)/.ready: requirements-clients.txt constraints-clients.txt
	$(PYTHON) -m venv $(CLIENTS_VENV)
	$(CLIENTS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-clients.txt \
		-r requirements-clients.txt
	touch $@

$(MODEL): | $(VENV)/bin/python
	$(VENV)/bin/python scripts/fetch_model.py $(MODEL)

clean:
	rm -rf $(VENV) $(BENCH_VENV) $(CLIENTS_VENV) .models

# Everything lives in .venv; `make demo` and `make test` need nothing but Python 3.11, pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: setup check test test-cluster bench demo docs clean help

help:           ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/'

setup: $(STAMP) ## create .venv with everything that tests and demo need

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

check: $(STAMP) ## lint, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	# Benchmarks are not run by the tests: calls of what is no longer there are found here.
	$(BIN)/mypy --config-file= --ignore-missing-imports --exclude scrapy_side \
	  --disable-error-code misc --disable-error-code index --disable-error-code union-attr --disable-error-code operator \
	  --disable-error-code func-returns-value --disable-error-code var-annotated --disable-error-code assignment benchmarks

# Many tests wait for real clocks, so one process more than there are cores keeps them busy.
JOBS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

# Tests with real servers and clocks can fail on a machine that is busy: what failed gets one more try, alone.
test: $(STAMP)  ## all tests, on all cores
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --ignore tests/cluster/live $(ARGS) || { [ $$? -eq 1 ] && \
	echo "== once more, and alone: the tests that failed (above)" && \
	$(BIN)/python -m pytest --last-failed --last-failed-no-failures none --ignore tests/cluster/live $(ARGS); }

# What failed here is remembered apart, so that neither of the two targets forgets what the other found.
LIVE := -o cache_dir=.pytest_cache/live tests/cluster/live

test-cluster: $(STAMP) ## clusters of processes and of Ray's actors under faults: two to three minutes
	@$(BIN)/python -m pytest -n 2 --dist loadfile $(LIVE) $(ARGS) || { [ $$? -eq 1 ] && \
	echo "== once more, and alone: the tests that failed (above)" && \
	$(BIN)/python -m pytest --last-failed --last-failed-no-failures none $(LIVE) $(ARGS); }

bench: $(STAMP) ## the benchmarks: each prints ratios measured in one run
	@for file in benchmarks/bench_*.py benchmarks/crawl.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

demo: $(STAMP)  ## keep a changing web site fresh for a minute, beside two other schedules
	$(BIN)/afresh demo $(ARGS)

clean:          ## remove the environment and all caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

docs: $(STAMP)  ## write the generated pages again
	$(BIN)/python -c "from afresh.config import reference; open('docs/settings.md', 'w').write(reference())"

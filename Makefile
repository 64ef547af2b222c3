# Everything a fresh machine needs: Python 3.10 or later with venv, and for the browser tests Chromium.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
WORKERS := $(shell nproc 2>/dev/null || echo 2)
READY := $(VENV)/.ready

.PHONY: help setup demo test test-all lint types unit long torch bench pages site man digests fixtures record lowest clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

setup: $(READY)  ## create the virtual environment

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(READY)

demo: $(READY)  ## analyse an embedded report of an H200: summary on the terminal, page in out/
	@mkdir -p out
	@$(RUN)/ncuroof demo out

test: $(READY)  ## style, types and unit tests: 5 minutes on two cores
	@echo "make test: style, types and unit tests; about 5 minutes on two cores (make test-all: everything, about 20)"
	@$(MAKE) --no-print-directory lint types unit

test-all: $(READY)  ## everything: also recordings, damage, Chromium, Dask and what needs PyTorch: 20 minutes
	@echo "make test-all: style, types and every test; about 20 minutes on two cores"
	@$(MAKE) --no-print-directory lint types
	$(RUN)/python -m pytest -n $(WORKERS)

lint: $(READY)  ## style
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .

types: $(READY)  ## types
	$(RUN)/mypy

unit: $(READY)  ## tests, without the long ones
	$(RUN)/python -m pytest -n $(WORKERS) -m "not long"

long: $(READY)  ## the long tests alone, and those that need Chromium, tmux, Dask, PyTorch or ncu (TESTS='long and not corpus': fewer)
	$(RUN)/python -m pytest -n $(WORKERS) -m "$(or $(TESTS),long)"

lowest: $(READY)  ## tests of what computes, with the lowest version of each dependency that is allowed
	$(PYTHON) -m venv $(VENV)-lowest
	$(RUN)/python -m tests.support.lowest_versions > $(VENV)-lowest/constraints.txt
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(VENV)-lowest/constraints.txt \
		--editable '.[nvidia,pandas]' 'pytest>=8.3,<10' 'pytest-xdist>=3.6,<4' 'hypothesis>=6.100,<7'
	$(VENV)-lowest/bin/python -m pytest -q -n $(WORKERS) tests/metrics tests/roofline tests/whatif tests/comparison tests/test_document.py

torch: $(READY)  ## add PyTorch, so that the tests of ncuroof.torch run too
	$(RUN)/python -m pip install --quiet --disable-pip-version-check 'torch==2.13.0'

bench: $(READY)  ## benchmarks, as ratios measured side by side
	$(RUN)/python -m benchmarks

pages: $(READY)  ## write again what docs/ and README.md take from profiles/, fixtures/ and the program
	$(RUN)/python -m tools.quantity_pages
	$(RUN)/python -m tools.column_page
	$(RUN)/python -m tools.document_page
	$(RUN)/python -m tools.latency_causes
	$(RUN)/python -m tools.recording_page
	$(RUN)/python -m tools.demo_summary
	$(RUN)/python -m tools.command_pages
	$(RUN)/python -m tools.brief_questions
	$(RUN)/python -m tools.tutorial_pages
	$(RUN)/python fixtures/suite/suite_page.py

site: $(READY)  ## build the documentation as a site into out/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(RUN)/python -m mkdocs build

man: $(READY)  ## write a man page per command into out/man
	$(RUN)/python -m tools.command_pages out/man

digests: $(READY)  ## digests of every output, to compare two commits by (FILE=out/digests.txt; ARGS='--only PATTERN …')
	@mkdir -p out
	$(RUN)/python -m tools.output_digests write $(or $(FILE),out/digests.txt) $(ARGS)

fixtures: $(READY)  ## write the simulated report again
	$(RUN)/python -m tests.support.demo

record:  ## record of the suite what ten minutes allow (needs a GPU, nvcc and ncu; ARGS='--only PATTERN …')
	$(PYTHON) fixtures/suite/record.py --out out/recordings --budget-seconds 570 $(ARGS)

clean:  ## remove what was made here
	rm -rf $(VENV) $(VENV)-lowest out build dist

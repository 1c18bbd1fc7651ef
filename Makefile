# `make demo` and `make test` work on a fresh machine: each first makes .venv with the Python that is there.

.PHONY: help venv demo test test-all check faults load bench lowest package release docs lock clean
.DEFAULT_GOAL := help

BIN := .venv/bin
# One process more than processors: tests of commands, terminals and servers wait for others a seventh of their time.
PARALLEL := -n $(or $(JOBS),$(shell expr 1 + $$(getconf _NPROCESSORS_ONLN))) --maxprocesses 8
PYTEST := $(BIN)/pytest $(PARALLEL)
# What tells most in the least time: real rows, races and model servers, but few processes and no terminals.
TURNS := answers calls database forks requests steering stopping tasks threads waits wakes
TURN_FILES := $(TURNS:%=tests/engine/test_%.py)
QUICK := $(addprefix tests/,api architecture llm migrations store unit) $(TURN_FILES)
# These wait for rows and servers half of the time, so each processor takes two at once.
TWICE := $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))
# What a version of PostgreSQL can make different: the SQL, and what stands right on it.
ON_EACH_VERSION := $(addprefix tests/,api migrations races store) $(TURN_FILES)
# Minutes of questions that no version changes: the order of our own locks, the embedded server.
ON_NEWEST_ONLY := $(addprefix --deselect=tests/,races/test_pairs.py store/test_embedded.py)
PG15 := $(or $(AGENTMESH_PG15_BIN),/usr/lib/postgresql/15/bin)

help:  ## show this
	@awk -F ':|## ' '/^[a-z-]+:.*## / {printf "make %-8s %s\n", $$1, $$3}' Makefile

venv:  ## make .venv and install the locked dependencies; done once
	@sh scripts/venv.sh

demo: venv  ## let a root agent and three children work on this directory; needs no key, server or Docker
	@$(BIN)/agentmesh demo

test: venv  ## run the tests of the verbs, the engine and the models in some minutes; JOBS=n processes, ARGS="-k word" for some
	$(BIN)/pytest -n $(or $(JOBS),$(TWICE)) -m 'not slow' $(QUICK) $(ARGS)

test-all: venv  ## run the whole test suite on the embedded PostgreSQL: also terminals, commands, documents, faults and walls
	$(PYTEST) $(ARGS)

check: venv  ## check format, lint, types, imports, dependencies, dead code, words and tests; most database tests on PostgreSQL 15 too where it is
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry agentmesh tui
	$(BIN)/vulture
	$(BIN)/python -m scripts.prose
	sh scripts/test.sh $(PARALLEL)
	@if [ -x $(PG15)/postgres ]; then \
	    set -x; AGENTMESH_TEST_PG_BIN=$(PG15) sh scripts/test.sh $(PARALLEL) $(ON_NEWEST_ONLY) $(ON_EACH_VERSION); \
	else \
	    echo "PostgreSQL 15 is not in $(PG15): nothing was tested on it. AGENTMESH_PG15_BIN names another folder."; \
	fi

faults: venv  ## kill workers at every commit, hurt them FAULTS_ROUNDS times, run FAULTS_LINES (a million) attacks (FAULTS_SEED)
	FAULTS_ROUNDS=$(or $(FAULTS_ROUNDS),200) FAULTS_SEED=$(or $(FAULTS_SEED),$(shell date +%s)) $(PYTEST) tests/faults tests/walls/test_bites.py $(ARGS)

load: venv  ## 200 agents at once for MINUTES (10), they and their workers killed at random: what it holds and leaves
	$(BIN)/python -m tests.faults.load --minutes $(or $(MINUTES),10) $(ARGS)

bench: venv  ## measure, and write bench/RESULTS.md
	$(BIN)/python -m bench

lowest: venv  ## run tests with the oldest releases that pyproject.toml allows, of what is committed; ARGS="tests/cli" for some
	sh scripts/lowest.sh $(PARALLEL) -m 'not slow' $(or $(ARGS),$(addprefix tests/,api cli git llm mcp store tools tui unit))

package: venv  ## build sdist and wheel into dist/, install them elsewhere and try them with every Python that is here
	$(BIN)/python -m scripts.package $(ARGS)

release: venv  ## make packages, their hashes and the tag of the version in agentmesh/__init__.py; ARGS=--dry-run sets no tag
	$(BIN)/python -m scripts.release $(ARGS)

docs: venv  ## write what docs/reference has from the code anew, and build the site into build/site, strictly
	AGENTMESH_UPDATE_DOCS=1 $(BIN)/pytest -q tests/docs/test_reference.py
	$(BIN)/python scripts/site.py

lock: venv  ## write requirements/ anew, the newest releases that pyproject.toml allows, hashed
	@sh scripts/lock.sh

clean:  ## remove what make made
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

# Two commands: `make run` starts the service, `make test` checks everything. `make help` lists the rest.

VENV ?= .venv
PYTHON ?= python3
# Test processes at once: three per CPU, for a good part of a test is waiting.
JOBS ?= $(shell expr 3 '*' $$(nproc))
# How long `make soak` lasts.
MINUTES ?= 5
# How often `make hosts` stops a host, cuts it off and kills the database.
ROUNDS ?= 20
# Since which revision modules count as changed for `make mutants`.
SINCE ?= $(shell git merge-base HEAD origin/main 2>/dev/null || echo HEAD~1)

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Empty marks: the environment is as pyproject.toml wants it, without and with the tools of developers.
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
# pytest keeps its rewritten modules as bytecode; where the environment forbids that, every process rewrites all.
PYTEST := env -u PYTHONDONTWRITEBYTECODE -u MAKEFLAGS $(BIN)/python -m pytest
# mypy uses one CPU; the tests have the others meanwhile.
BESIDE_LINT := @$(MAKE) --no-print-directory --jobs=2 lint
# What `requirements/` is resolved for. On any other host, the ranges of pyproject.toml decide.
IS_LOCKED := import platform, sys; sys.exit((sys.version_info[:2], platform.system(), platform.machine()) != ((3, 11), "Linux", "x86_64"))
LOCK := uv pip compile --quiet --generate-hashes --no-emit-index-url --custom-compile-command 'make lock' \
	--python-version 3.11 --python-platform x86_64-unknown-linux-gnu

# $(1): a file of requirements/, $(2): the extra it is for. The project itself cannot have a hash; the locked
# setuptools builds it.
install = @if $(BIN)/python -c '$(IS_LOCKED)'; then \
	set -ex; $(PIP) install --require-hashes -r requirements/$(1).txt; $(PIP) install --no-deps --no-build-isolation -e .; \
	else set -ex; $(PIP) install -e '.[$(2)]'; fi

.DEFAULT_GOAL := help
.PHONY: vendor console help run test test-agents test-clients suite check rules soak hosts mutants lint compiled programs bench lock clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

run: $(INSTALLED) ## install, fetch the weights that the settings want, run the service here
	@for weights in $$($(BIN)/python -P -E -s -m supervisor.llm.wanted_weights 2>/dev/null); do $(BIN)/hermesctl models pull $$weights; done
	@exec $(BIN)/hermesctl run

test: $(INSTALLED_DEV) ## lint, types and all tests
	$(BESIDE_LINT) suite

suite: compiled programs
	$(PYTEST) -n $(JOBS) --dist worksteal

# Installs about a gigabyte into .agents/ at first: AGENTS='opencode mcp-server-git' installs only these.
test-agents: $(INSTALLED_DEV) ## real agents and MCP servers against a scripted model; AGENTS=… installs only these
	$(BIN)/python -m tests.agents_real.peers $(AGENTS)
	$(PYTEST) tests/agents_real

# Installs two gigabytes into .agents/ at first, most of them for Open WebUI.
test-clients: $(INSTALLED_DEV) ## real programs that use the gateway, Open WebUI in a browser; CLIENTS=… installs only these
	$(BIN)/python -m tests.agents_real.peers --clients $(CLIENTS)
	$(PYTEST) tests/clients_real

check: $(INSTALLED_DEV) ## what a change is tried with while it is made: lint, types, rules, a short simulation
	$(BESIDE_LINT) rules

rules: $(INSTALLED_DEV)
	HERMES_SIMULATION_EXAMPLES=50 $(PYTEST) -q tests/core tests/simulation/test_simulation.py tests/test_house_rules.py tests/test_docs.py

soak: $(INSTALLED_DEV) ## simulate, then break the service at random, MINUTES=5 each; SEED=… repeats a run
	$(BIN)/python -m tests.simulation --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m tests.soak --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

hosts: $(INSTALLED_DEV) ## stop a host, cut it off, kill the database under load, ROUNDS=20 each
	HERMES_HOST_ROUNDS=$(ROUNDS) $(PYTEST) -n 4 tests/hosts/test_leases.py tests/hosts/test_cut_line.py tests/hosts/test_database_killed.py

# A sample per changed module, at a minute or more each: all faults of all modules would take days.
mutants: $(INSTALLED_DEV) ## plant faults in the modules that changed since SINCE=, and show which go unnoticed
	$(BIN)/python -m tests.mutation --since $(SINCE)

lint: $(INSTALLED_DEV) ## lint and types only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Where the environment forbids to write bytecode, each of hundreds of processes would compile all modules. And in a new
# checkout each test process would rewrite the assertions of all tests: one does it for all of them.
compiled: $(INSTALLED_DEV)
	@$(BIN)/python -m compileall -q -j 0 ipc supervisor worker stt_service model_service client gateway hermesctl tests
	@ls tests/__pycache__/conftest.*-pytest-*.pyc >/dev/null 2>&1 || $(PYTEST) --collect-only -qq >/dev/null

# What agents do ordinary work with (tests/acceptance/test_real_work.py), a browser for tests/console, PostgreSQL, whose package
# would start a server of its own, and a proxy for tests/gateway, which is unpacked only. Without them those tests are skipped
# by name.
programs:
	@missing=$$(for each in git:git cc:gcc,libc6-dev node:nodejs tmux:tmux chromium:chromium; do command -v $${each%%:*} >/dev/null || echo $${each#*:} | tr ',' ' '; done); \
	[ -z "$$missing" ] || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update && apt-get install -y --no-install-recommends $$missing; } || \
	echo "These are not installed, and what needs them is not tested:" $$missing
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	apt-get install -y --no-install-recommends postgresql-common && \
	sed -i 's/^#*create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf && \
	apt-get install -y --no-install-recommends postgresql; } || echo "PostgreSQL is not installed, and what needs it is not tested"
	@command -v nginx >/dev/null || [ -x .nginx/usr/sbin/nginx ] || \
	{ mkdir -p .nginx && cd .nginx && apt-get download --quiet nginx && dpkg -x nginx_*.deb . ; } || \
	echo "There is no nginx here, and what needs it is not tested."
	@[ -d vendor/node_modules/axe-core ] || ! command -v npm >/dev/null || npm ci --prefix vendor --silent || echo "axe-core is not installed, and what needs it is not tested"

bench: $(INSTALLED_DEV) ## the measurements of bench/
	$(BIN)/python -m bench

# `make lock LOCK_OPTIONS=--upgrade` takes the newest versions; without, what still fits stays.
lock: ## write requirements/ anew from pyproject.toml; needs uv
	@command -v uv >/dev/null || { echo "There is no uv here: \`pipx install uv\`, then this again."; exit 1; }
	echo 'setuptools>=77' | $(LOCK) $(LOCK_OPTIONS) --extra all --output-file requirements/run.txt pyproject.toml -
	$(LOCK) $(LOCK_OPTIONS) --extra dev --constraints requirements/run.txt --output-file requirements/dev.txt pyproject.toml

vendor: ## install the packages of vendor/package-lock.json, and make the console's scripts; needs npm
	npm ci --prefix vendor --no-audit --no-fund
	node vendor/build.js

console: ## make the console's scripts again after a change of its modules; needs node, once npm
	@[ -d vendor/node_modules/esbuild ] || npm ci --prefix vendor --no-audit --no-fund
	node vendor/build.js

clean: ## remove the environment and what tools left behind; settings and state stay
	rm -rf $(VENV) .nginx build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +

$(INSTALLED): $(BIN)/python pyproject.toml requirements/run.txt
	$(call install,run,all)
	@touch $@

$(INSTALLED_DEV): $(BIN)/python pyproject.toml requirements/dev.txt
	$(call install,dev,dev)
	@touch $@ $(INSTALLED)

# ensurepip is what Debian leaves out of python3 until python3-venv is there.
$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "There is no $(PYTHON) here: install Python 3.11 or newer, or name it: make PYTHON=/path/to/python3 …"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "$$($(PYTHON) --version) is too old, 3.11 or newer is needed: make PYTHON=/path/to/newer/python3 …"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update && apt-get install -y python3-venv; } || \
	{ echo "Python's venv module is missing: run \`sudo apt install python3-venv\`, then this again."; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

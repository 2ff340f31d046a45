# Commands people learn. `make help` lists them. Everything runs in .venv, made on first use.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUNTIME := $(VENV)/.runtime
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup demo test check conformance controlplane e2e kubernetes-e2e upstream truth chaos fuzz bench bench-decide bench-gate bench-memory bench-neighbours bench-hammering bench-apiserver bench-gangs openb openb-variants soak clean

help: ## list the commands
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(RUNTIME): pyproject.toml
	@echo "installing into $(VENV) (less than a minute, once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(STAMP): $(RUNTIME)
	@echo "installing the tools of the tests"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev
	@touch $@

setup: $(STAMP) ## create the environment and install everything

test: $(STAMP) ## unit, property and parity tests (under five minutes)
	@$(BIN)/python -m pytest -n $(JOBS) $(PYTEST_ARGS)
	@$(BIN)/python -m tests.controlplane --check

check: $(STAMP) ## ruff, mypy strict, import contracts, sizes
	@$(BIN)/ruff check src tests bench examples docs
	@$(BIN)/ruff format --check src tests bench examples
	@$(BIN)/mypy
	@$(BIN)/lint-imports

controlplane: ## build the real control plane of the end-to-end tests; prints its folder last
	@tests/controlplane/build.sh

e2e: $(STAMP) ## tests against a real kube-apiserver, etcd, kubectl and kube-scheduler
	@tests/controlplane/build.sh || test $$? -eq 3
	@$(BIN)/python -m pytest -m e2e tests -rs $(PYTEST_ARGS)

kubernetes-e2e: $(STAMP) ## Kubernetes' own end-to-end specs on the embedded cluster (an hour; see tests/upstream)
	@tests/controlplane/build.sh --only kubectl >/dev/null
	@$(BIN)/python -m tests.upstream.specs --jobs $(JOBS) $(UPSTREAM_ARGS)

upstream: $(STAMP) ## kube-scheduler's own integration tests, with Bayplan as the scheduler (an hour; see tests/upstream)
	@tests/controlplane/build.sh --only etcd,kube-scheduler >/dev/null
	@$(BIN)/python -m tests.upstream.integration $(UPSTREAM_ARGS)

SEED = 1
CASES = 500
truth: $(STAMP) ## every sentence about generated clusters, done and compared (SEED=1 CASES=500)
	@$(BIN)/python -m tests.truth --seed $(SEED) --cases $(CASES) --jobs $(JOBS)

MINUTES = 6
SERVER = kube-apiserver
chaos: $(STAMP) ## two replicas, mixed workloads, faults in random order (SEED=1 MINUTES=6 SERVER=embedded)
	@test $(SERVER) = embedded || tests/controlplane/build.sh
	@$(BIN)/python -m tests.chaos --seed $(SEED) --minutes $(MINUTES) --server $(SERVER)

TARGET = all
fuzz: $(STAMP) ## mutated input for every parser (TARGET=all SEED=1 MINUTES=6)
	@$(BIN)/python -m tests.fuzz --target $(TARGET) --seed $(SEED) --minutes $(MINUTES)

demo: $(RUNTIME) ## a cluster on this machine, six scenarios, each decision as a table
	@$(BIN)/python -m examples.demo

conformance: $(STAMP) ## all golden cases of kube-scheduler 1.36, a table by category
	@$(BIN)/python -m tests.parity.conformance

bench: $(STAMP) ## side by side with kube-scheduler on one real API server (over an hour; see bench/README.md)
	@tests/controlplane/build.sh
	@$(BIN)/python -m bench.versus $(BENCH_ARGS)

bench-decide: $(STAMP) ## decisions per second without an API server, and with each shipped plugin alone
	@$(BIN)/python -m bench.decide
	@$(BIN)/python -m bench.plugins

bench-gate: $(STAMP) ## fail when a decision, a whole pod or a start became 30 % dearer
	@$(BIN)/python -m bench.gate

bench-memory: $(STAMP) ## 150,000 pods on 5,000 nodes
	@$(BIN)/python -m bench.memory

bench-neighbours: $(STAMP) ## plain pods beside 30 kinds of hostile objects; fails beyond 1.5 times (BENCH_ARGS=--versus: beside kube-scheduler)
	@$(BIN)/python -m bench.neighbours $(BENCH_ARGS)

bench-hammering: $(STAMP) ## binding latency beside twenty clients that ask everything; fails beyond twice
	@tests/controlplane/build.sh
	@$(BIN)/python -m bench.hammering $(BENCH_ARGS)

bench-apiserver: $(STAMP) ## the embedded API server: creates per second, memory
	@$(BIN)/python -m bench.apiserver

bench-gangs: $(STAMP) ## 100 groups of 50 pods beside single pods; fails below half the rate
	@$(BIN)/python -m bench.gangs

openb: $(STAMP) ## the openb GPU trace by six policies, ten seeds, beside the published results (JOBS=2)
	@$(BIN)/python -m bench.openb --jobs $(JOBS) $(BENCH_ARGS)

openb-variants: $(STAMP) ## a variant of each family of the trace, and what tie rules do to FGD (JOBS=2)
	@$(BIN)/python -m bench.openb --variants --jobs $(JOBS) $(BENCH_ARGS)

soak: $(STAMP) ## ten minutes of pods coming and going; memory and descriptors must stay flat
	@tests/controlplane/build.sh
	@$(BIN)/python -m bench.soak --minutes 10

clean: ## remove the environment and caches
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

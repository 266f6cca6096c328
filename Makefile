# Conclave. Everything sets itself up: Node >= 20.19, make and git are enough.
#
#   make demo            three candidates in one terminal; watch leadership change hands
#   make test            everything that must be green before a change lands
#   make help            the rest

SHELL := /bin/bash
.DEFAULT_GOAL := help
.NOTPARALLEL:

NODE_ID ?= node1
SEEDS ?= 2000
RACE_SEEDS ?= 10000
ARGS ?=

CLI := node "$(CURDIR)/dist/cli/main.js"
INSTALLED := node_modules/.package-lock.json
SOURCES := $(shell find src -type f 2>/dev/null)

.PHONY: help node-version deps build tools demo run run-node1 run-node2 run-node3 demo-parallel kill-demo \
        servers check test test-law test-coverage test-mutation test-race test-race-sim test-race-mutants test-race-long test-race-stores test-race-etcd \
        model bench sim package release format clean

help: ## this list
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile

node-version:
	@scripts/check-node

# npm's own record of what is installed: older than the lock file means install anew.
$(INSTALLED): package-lock.json | node-version
	npm ci --no-audit --no-fund --ignore-scripts
	@touch $@

deps: $(INSTALLED)

# Built afresh: a file left over from a deleted source would be published.
dist/.built: $(SOURCES) tsconfig.json $(INSTALLED)
	@rm -rf dist
	npm run --silent build
	@chmod +x dist/cli/main.js 2>/dev/null || true
	@touch $@

build: dist/.built ## compile src/ to dist/

# Tests, benches, examples and scripts, compiled. Type errors are `make check`'s business.
TOOLS := $(shell find src test bench examples scripts -name '*.ts' 2>/dev/null)
.build/.built: $(TOOLS) tsconfig.json tsconfig.tools.json $(INSTALLED)
	@rm -rf .build
	@npm run --silent build:tools || echo "compiled with type errors"
	@touch $@

tools: .build/.built

demo: build ## three candidates: handover, crash, freeze; in this terminal and on a page (ARGS=--once ends by itself)
	@$(CLI) demo $(ARGS)

run: build ## one candidate: make run NODE_ID=x
	@$(CLI) run --id "$(NODE_ID)" $(ARGS)

run-node1: build ## the candidate node1 (run-node2, run-node3: in other terminals)
	@$(CLI) run --id node1 $(ARGS)

run-node2: build
	@$(CLI) run --id node2 $(ARGS)

run-node3: build
	@$(CLI) run --id node3 $(ARGS)

demo-parallel: build ## three candidates side by side in tmux
	@scripts/demo-parallel

kill-demo: ## end every demo and candidate started from this checkout
	@scripts/kill-demo

servers: ## install the servers and tools that tests use, where that is allowed
	@scripts/servers/install

check: deps ## lint, format, types, package shape
	npm run --silent lint
	npm run --silent format:check
	npm run --silent typecheck
	@$(MAKE) --no-print-directory build
	npm run --silent check:package

test: deps servers check ## all of it; installs servers for the tests first (CONCLAVE_INSTALL=no: nothing); CONCLAVE_REQUIRE=etcd,… makes an absent store a failure
	scripts/run-tests
	npm run --silent sim -- --seeds $(SEEDS)
	@node scripts/stores-report.mjs

test-law: deps ## under a minute: types, law, record, 300 schedules, and that every mutant's patch applies
	npm run --silent typecheck
	npx --no-install vitest run test/kit test/law test/election test/lock/locks.test.ts test/record test/sim/patches.test.ts
	npm run --silent sim -- --seeds 300

test-coverage: deps servers build ## the tests, with a coverage report in coverage/
	scripts/run-tests --coverage
	@node scripts/stores-report.mjs

test-mutation: deps ## the code changed one place at a time; the share that the fast tests notice (ARGS=record: one folder)
	@node scripts/mutation/run.mjs $(ARGS)

test-race: test-race-sim test-race-mutants test-race-long test-race-stores test-race-etcd model ## the five below and `make model`, one after the other

test-race-sim: deps ## many more simulated schedules: RACE_SEEDS=10000
	npm run --silent sim -- --seeds $(RACE_SEEDS)

test-race-mutants: deps ## every safety rule broken in turn; the simulator must notice each
	npm run --silent sim:mutants

test-race-long: deps servers build ## real processes, long runs with faults: the library, exec, cron, locks, files, etcd, Kubernetes
	scripts/run-tests --long=law
	@node scripts/stores-report.mjs --long

test-race-stores: deps servers build ## real servers, long runs with faults: PostgreSQL, Redis, ZooKeeper, Consul, Raft, moving between stores
	scripts/run-tests --long=stores
	@node scripts/stores-report.mjs --long

test-race-etcd: deps build ## the tests on etcd, with each version of etcd that is tested
	scripts/test-etcd-versions

model: node-version ## the rules of peers, proved by spin; and each rule removed gives a counterexample (docs/model.md)
	@scripts/servers/install spin gcc
	@node scripts/model.mjs $(ARGS)

sim: deps ## simulated schedules only: make sim SEEDS=10000
	npm run --silent sim -- --seeds $(SEEDS) $(ARGS)

bench: build tools ## handover, failover and idle cost, measured
	@node .build/bench/main.js $(ARGS)

package: deps build ## what is published, as conclave-VERSION.tgz
	@node scripts/package.mjs

release: deps ## a release tried dry: what would be published, and what is still to be done; changes and publishes nothing
	@$(MAKE) --no-print-directory build
	@node scripts/release.mjs

format: deps ## rewrite sources in the house style
	npm run --silent format

clean: ## remove everything that was built
	rm -rf dist .build coverage artifacts

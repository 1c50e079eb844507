# Each target is one line that calls hack/podenv; see `make help`.
SHELL := /bin/bash
SERIES ?= v1.33
NAME ?= podenv
export SERIES
# Static programs, and one set of compiled packages for all of them, those in images and trees included.
export CGO_ENABLED := 0
export GOFLAGS := $(shell go env GOFLAGS) -trimpath

# Built first and then run: `go run` would hide the exit status and take the last line.
PODENV := go build -o _output/bin/podenv ./hack/podenv && _output/bin/podenv
PLUGIN ?= _output/bin/kubectl-podenv

.DEFAULT_GOAL := help
.PHONY: help up down test conformance test-fresh verify-series doctor tree patches build image kubectl-podenv e2e e2e-full atlas soak export push unit bench bench-cluster bench-harness fuzz clean distclean

help: ## list the targets and the verbs of podenv
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo; echo "  SERIES=$(SERIES) chooses the Kubernetes minor, NAME=$(NAME) the cluster."; echo
	@$(PODENV) --help

up: ## from a release tag, or the published node image IMAGE, to a running cluster, with examples of env files and of a PodPreset
	@$(PODENV) up --name $(NAME) $(if $(IMAGE),--image '$(IMAGE)')

down: ## delete the cluster and everything of it
	@$(PODENV) down --name $(NAME)

test: ## run all checks but the slow ones (docs/testing.md) on one series, or the groups in ONLY; last line: N passed, N failed, N skipped
	@$(PODENV) test $(if $(ONLY),--only '$(ONLY)')

conformance: ## run the release's own conformance suite on a cluster with two workers: hours
	@$(PODENV) conformance

test-fresh: ## `make up` and `make test`, or RUN, as on a new machine: a bare Debian 12, an engine of its own, empty caches
	@hack/test-fresh.sh $(if $(RUN),'$(RUN)')

unit: ## the quick part of `make test`: formatting, linters, unit tests
	@$(PODENV) test --only lint,unit

verify-series: ## apply, generate, compile and test all series, and print a table
	@$(PODENV) series --verify

doctor: ## can this host do it?
	@$(PODENV) doctor

tree: ## assemble the patched source
	@$(PODENV) tree

patches: ## write the tree's commits back to patches/
	@$(PODENV) patches

build: ## compile the seven binaries
	@$(PODENV) build

image: ## build the kind node image
	@$(PODENV) image

push: ## rebuild COMPONENT (kubelet) from the tree and swap it on the nodes
	@$(PODENV) push --name $(NAME) $(or $(COMPONENT),kubelet)

e2e: ## run SUITE (envfiles), a folder of test/e2e, on the cluster
	@$(PODENV) e2e --name $(NAME) --suite $(or $(SUITE),envfiles)

kubectl-podenv: ## what operators run on any cluster, as `kubectl podenv`: one static file, for a folder of PATH
	@go build -ldflags='-s -w' -o $(PLUGIN) ./hack/kubectl-podenv

e2e-full: ## all suites with all their specs, those that move a cluster up and down included, each patch by itself, and what else takes long
	@$(PODENV) test --only patches,source,upstream,image,e2e,upgrade --full

atlas: ## by kubeadm from the stock minor before through all newer minors, and back: hours
	@$(PODENV) test --only atlas

soak: ## take a kubelet of the cluster up and down WALKS times (20), and check every environment
	@$(PODENV) e2e --name $(NAME) --suite upgrade --procs 1 --focus 'many times' --walks $(or $(WALKS),20) --timeout 6h

export: ## write the series for `git am` in a kubernetes checkout, to _output/export
	@$(PODENV) export

bench: ## env files, names of variables and expansion beside upstream and others, and the kubelet
	@$(PODENV) bench

bench-cluster: ## start latency and API requests of pods with fileKeyRef beside others; PodPresets
	@$(PODENV) bench --only cluster,presets --name $(NAME)

bench-harness: ## measure the harness: tree, build, image, cluster, e2e, rebase, push, swap, stock
	@$(PODENV) bench --only harness

fuzz: ## run every fuzz target for 10 million executions (FUZZ chooses some)
	@$(PODENV) fuzz --target '$(FUZZ)'

clean: ## remove images, builds and caches that no series needs (podenv clean --dry-run lists them)
	@$(PODENV) clean

distclean: ## delete all of _output; the trees in trees/ stay
	@$(PODENV) clean --dry-run >/dev/null # refuses if an earlier podenv's trees are in _output
	rm -rf _output

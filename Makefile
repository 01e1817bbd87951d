# goodput_exporter. Run `make` alone for the list of what can be made.
#
# run, build and test need nothing but Go, make, git and a POSIX shell. check installs what it needs beyond that
# into .cache/, from Debian, npm and the Go module proxy.

GO            ?= go
BUILD         := build
TOOLS         := $(CURDIR)/.cache/tools
LLM_URL       ?=
RUN_FLAGS     ?=
TEST_FLAGS    ?=
FUZZTIME      ?= 20s
# Tests that are about milliseconds, which the race detector distorts. They run without it, in make test.
TIMED         := ^(TestCases|TestMoreCases|TestProtocolCases)$$|^TestSimulatedFaults$$/^too_large$$
BENCH_FLAGS   ?=

# The version is the newest heading with a number in the changelog, so that a clone without tags knows it; the
# rest is the commit's, so that the same commit gives the same binary. Outside of git they are unknown.
hash     := \#
VERSION  := $(shell sed -n 's/^$(hash)$(hash) *\[*v*\([0-9][0-9A-Za-z.+-]*\).*/\1/p' CHANGELOG.md 2>/dev/null | head -n 1)
REVISION := $(shell git rev-parse --verify -q HEAD 2>/dev/null)
BRANCH   := $(shell git symbolic-ref -q --short HEAD 2>/dev/null)
DATE     := $(shell git show -s --format=%cd --date=format:%Y%m%d-%H:%M:%S HEAD 2>/dev/null)
PKG      := github.com/prometheus/common/version
unknown   = $(if $(1),$(1),unknown)
LDFLAGS  := -s -w \
	-X $(PKG).Version=$(call unknown,$(VERSION)) \
	-X $(PKG).Revision=$(call unknown,$(REVISION)) \
	-X $(PKG).Branch=$(call unknown,$(BRANCH)) \
	-X $(PKG).BuildDate=$(call unknown,$(DATE))

# Go keeps its caches under HOME. Where there is none that it can write to, they go beside ours.
ifneq ($(shell test -d "$$HOME" && test -w "$$HOME" && echo usable),usable)
export GOPATH  ?= $(CURDIR)/.cache/go
export GOCACHE ?= $(CURDIR)/.cache/go-build
endif
# Static programs, and tests that are compiled the same way, so that the second of `make run` and `make test` finds
# the work of the first. Only the race detector needs cgo.
export CGO_ENABLED := 0
export GOLANGCI_LINT_CACHE ?= $(CURDIR)/.cache/golangci-lint

# gotest runs `go test` and counts; a shell without pipefail hands go's exit status down the pipe.
gotest = { $(GO) test -json $(1); echo "exit $$?"; } 2>&1 | awk -f $(CURDIR)/.ci/count.awk

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help build run test check tools tidy lint race thirdparty deploy browser differential bench fuzz operating-curve fmt clean

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

build: ## build goodput_exporter and goodputctl into build/
	@echo "building goodput_exporter and goodputctl $(call unknown,$(VERSION)); the first time compiles everything"
	@$(GO) build -buildvcs=false -ldflags '$(LDFLAGS)' -o $(BUILD)/ ./cmd/...

run: build ## run the demo on :10042; with LLM_URL (LLM_MODEL, LLM_API_KEY) probe that endpoint instead
	exec $(BUILD)/goodput_exporter $(if $(LLM_URL),,--demo) $(RUN_FLAGS)

test: ## run the tests
	@$(call gotest,$(TEST_FLAGS) ./...)

check: tools tidy lint race thirdparty differential fuzz deploy browser ## everything else: lint, race detector, real servers, fuzzing, rules, dashboards, manifests, browser

tools:
	@TOOLS='$(TOOLS)' GO='$(GO)' sh .ci/install

tidy:
	@echo 'check: go.mod and go.sum are tidy'
	@$(GO) mod tidy -diff

lint: tools ## run golangci-lint
	@echo 'check: golangci-lint'
	@$(TOOLS)/bin/golangci-lint run --build-tags thirdparty ./...

race: export CGO_ENABLED := 1
race: tools ## run the tests with the race detector
	@echo 'check: the tests again, with the race detector'
	@$(call gotest,-race -skip '$(TIMED)' $(TEST_FLAGS) ./...)

thirdparty: export GOODPUTCTL       := $(CURDIR)/$(BUILD)/goodputctl
thirdparty: export GOODPUT_EXPORTER := $(CURDIR)/$(BUILD)/goodput_exporter
thirdparty: export AIMOCK           := $(TOOLS)/bin/aimock
thirdparty: export NGINX            := $(TOOLS)/bin/nginx
thirdparty: export PROMTOOL         := $(TOOLS)/bin/promtool
thirdparty: tools build ## run the tests against aimock and nginx, and promtool on the live metrics
	@echo 'check: tests against third-party servers'
	@$(call gotest,-tags thirdparty -run ThirdParty -count 1 $(TEST_FLAGS) ./cmd/...)

differential: ## compare the decoders with the vendors' own
	@echo 'check: decoders against the vendors'"'"' SDKs'
	@cd probe/wire/differential && $(call gotest,$(TEST_FLAGS) ./...)

deploy: tools build ## check rules, dashboards and manifests, with real Prometheus, Alertmanager and Helm
	@echo 'check: rules, dashboards, manifests'
	@export GOODPUT_EXPORTER='$(CURDIR)/$(BUILD)/goodput_exporter' \
		PROMTOOL='$(TOOLS)/bin/promtool' PROMETHEUS='$(TOOLS)/bin/prometheus' AMTOOL='$(TOOLS)/bin/amtool' \
		ALERTMANAGER='$(TOOLS)/bin/alertmanager' HELM='$(TOOLS)/bin/helm'; \
		cd deploy/tools && $(call gotest,-p 1 -timeout 15m -tags remove_all_sd $(TEST_FLAGS) $$($(GO) list ./... | grep -v /browser$$))

browser: tools build ## take the live page through a real browser
	@echo 'check: the live page in Chromium'
	@export GOODPUT_EXPORTER='$(CURDIR)/$(BUILD)/goodput_exporter' AXE='$(TOOLS)/share/axe.min.js'; \
		cd deploy/tools && $(call gotest,-count 1 -run '^TestLivePage$$' $(TEST_FLAGS) ./browser)

operating-curve: ## simulate the alerts: how soon they page, and how often for nothing
	@cd deploy/tools && $(GO) run ./curve

# The part "load" also compares with hey and aiohttp. Where they are not installed it says so, and goes on without them.
bench: ## measure accuracy and cost beside a plain client, about 13 minutes; BENCH_FLAGS="-parts paced,catchup,load,footprint,scrape -repeats 5"
	$(GO) test -tags bench -run '^TestGoals$$' -count 1 -timeout 40m -v ./probe/accuracy $(BENCH_FLAGS)

# Two targets at a time, each with one worker: a fuzz run waits a good part of its time for builds and for its own corpus.
# Go's fuzzer can fail by running into its own deadline, hence the second try. A finding is kept in testdata/fuzz, and fails
# that one too.
fuzz: ## run each fuzz target for FUZZTIME
	@echo 'check: each fuzz target for $(FUZZTIME)'
	@$(GO) test -list '^Fuzz' ./... | \
		awk '/^Fuzz/ { names[n++] = $$1 } /^(ok|\?)/ { for (i = 0; i < n; i++) print $$2, names[i]; n = 0 }' | \
		xargs -P 2 -n 2 sh -c ' \
			fuzz() { $(GO) test -run "^$$" -fuzz "^$$2\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x -parallel 1 "$$1"; }; \
			fuzz "$$@" || fuzz "$$@" || exit 255' fuzz

fmt: tools ## format the code
	$(TOOLS)/bin/golangci-lint fmt

clean: ## remove what was built and installed
	rm -rf $(BUILD)
	if [ -d .cache ]; then chmod -R u+w .cache; fi # Go's module cache is read-only
	rm -rf .cache

# What the README and CI call. Nothing here needs more than Go, make and a shell, but for test-mongodb and test-browser (see there), and the race
# detector, gcc.

GO          ?= go
GOTESTSUM    = $(GO) run gotest.tools/gotestsum@v1.13.0
# A line for each package, and all that a failed test said. make lint vets, and nobody debugs these binaries.
GOTEST       = internal/in-memory $(GOTESTSUM) --format pkgname --format-hide-empty-pkg --hide-summary skipped -- -vet=off -ldflags=-w
STATICCHECK  = honnef.co/go/tools/cmd/staticcheck@v0.8.2
MONGODB      = internal/mongotest/mongodb-for-tests
# What is compiled once serves the binary, the tests, the analysers, and another clone. The race detector alone needs cgo.
export CGO_ENABLED = 0
export GOFLAGS    := -trimpath $(GOFLAGS)
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
BUILD        = -ldflags "-s -w -X main.version=$(VERSION)"
# Packages with goroutines that share state, or that several processes share.
CONCURRENT   = ./den/... ./internal/roll ./plugins/... ./internal/runner/... ./internal/store/... ./internal/cli/... ./internal/api/... ./internal/auth ./internal/dci ./internal/telemetry
# The suite of the MongoDB driver, which runs beside the rest, the routes over it, the program itself, and the API for Go programs.
OVER_MONGODB = ./internal/store/mongodb/... ./internal/store/storetest ./internal/roll ./internal/api/... ./cmd/sluice ./.
# What of it has many goroutines at one handle, or many handles at one database: it runs once more, with the race detector.
AT_ONCE      = 'TestStore/concurrent|TestStore/(delete|instances|take|foreign)/(any_number_of|beside_a|however_many|of_both)|OppositeOrders|ThatClash|AtOnce'
# The race detector without its calls in SQLite's own code, which is translated to Go. The memory of that is not the Go heap, so that the
# detector drops what it is told of it: the calls show nothing, and are four fifths of the work. A package that has a sync.Map keeps the
# calls: the linker may take its copy of that generic code for all packages, and without the calls the detector would see races where
# there are none.
RACE         = -race -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc/...=-race=false -gcflags=modernc.org/memory=-race=false

.PHONY: help build demo oste-demo examples cluster-demo test test-browser test-mongodb test-whole test-mongodb-whole search check race lint cross bench release release-twice clean

help: ## what there is
	@sed -n "s/^\\([a-z-]*\\):.*## /\\1: /p" $(MAKEFILE_LIST)

build: ## the binary, in bin/
	$(GO) build $(BUILD) -o bin/sluice ./cmd/sluice

demo: build ## the main job on a real example: a migration in several steps, with a store of its own
	@rm -rf tmp/demo && mkdir -p tmp/demo
	bin/sluice plan run examples/migration/plan.yaml --store sqlite:tmp/demo/sluice.db --param target=$(CURDIR)/tmp/demo/mail
	bin/sluice task list --store sqlite:tmp/demo/sluice.db --plan migrate-mail

oste-demo: build ## the case study of the Open Scheduled Task Engine: songs are published again when their rights change, and handed over
	$(GO) run ./examples/oste bin/sluice

examples: build ## every example, from a store of its own
	examples/run-all bin/sluice

cluster-demo: build ## three nodes and a plan of 500 tasks on one database, and a kill; on SLUICE_TEST_MONGODB or as test-mongodb
	@uri="$$SLUICE_TEST_MONGODB"; [ -n "$$uri" ] || uri=$$($(MONGODB) up) || exit 1; \
	examples/cluster/run "$${uri%/}/sluice-cluster-demo"

test: ## all tests; of MongoDB only with SLUICE_TEST_MONGODB=mongodb://HOST:PORT/
	@mkdir -p tmp
	@$(subst --hide,--jsonfile tmp/test.json --hide,$(GOTEST)) -p 4 ./...; code=$$?; \
	echo; echo "The ten slowest tests:"; $(GOTESTSUM) tool slowest --jsonfile tmp/test.json | awk '{ at[NR] = $$0; name = $$1 " " $$2; \
	  while (sub("/[^/]*$$", "", name)) above[name] } END { for (i = 1; i <= NR && n < 10; i++) { split(at[i], f); \
	  if (!((f[1] " " f[2]) in above)) { print "  " at[i]; n++ } } }'; exit $$code
	@if [ -z "$$SLUICE_TEST_MONGODB" ]; then echo; \
	  echo "The MongoDB suite did not run. To run it: make test-mongodb (Debian, root), or set SLUICE_TEST_MONGODB=mongodb://HOST:PORT/"; fi

test-mongodb: ## the suite of the MongoDB driver, on SLUICE_TEST_MONGODB or on a server that this stands up (Debian, root)
	@uri="$$SLUICE_TEST_MONGODB"; [ -n "$$uri" ] || uri=$$($(MONGODB) up) || exit 1; \
	echo "the MongoDB suite runs on $$uri"; \
	export SLUICE_TEST_MONGODB="$$uri" SLUICE_TEST_STORES=mongodb; \
	$(GOTEST) -count=1 -timeout 20m -parallel 4 -run '^TestStore$$' ./internal/store/mongodb & suite=$$!; \
	$(GOTEST) -count=1 -timeout 20m -parallel 4 -skip '^TestStore$$' $(OVER_MONGODB); code=$$?; \
	wait $$suite && [ $$code = 0 ] && \
	CGO_ENABLED=1 $(GOTEST) -count=1 -timeout 10m -race -run $(AT_ONCE) ./internal/store/mongodb && \
	echo "The MongoDB suite passed."

test-whole: test-mongodb-whole ## all sizes, every late write and every death, on every store: hours
	SLUICE_TEST_WHOLE=1 $(GOTEST) -count=1 -timeout 4h ./...

test-mongodb-whole: ## the store tests of it at full size, and with a death at each write: most of an hour
	@uri="$$SLUICE_TEST_MONGODB"; [ -n "$$uri" ] || uri=$$($(MONGODB) up) || exit 1; \
	SLUICE_TEST_WHOLE=1 SLUICE_TEST_MONGODB="$$uri" $(GO) test -count=1 -timeout 4h ./internal/store/mongodb && \
	SLUICE_TEST_WHOLE=1 SLUICE_TEST_MONGODB="$$uri" $(GO) test -count=1 -timeout 4h -run TestHistoriesOnMongoDB ./internal/store/storetest

search: ## new seeds of the random tests, for FOR=10m on each of STORES="model sqlite mongodb schedules": what fails, and how to repeat it
	@internal/in-memory internal/store/storetest/search $(or $(FOR),10m) $(STORES)

test-browser: ## the pages in a browser; installs chromium where it is missing (Debian, root)
	@command -v chromium >/dev/null || { echo "installing chromium"; apt-get update -qq && apt-get install -y -qq chromium >/dev/null; }
	$(GO) vet -tags browser ./internal/web/webtest
	$(GOTEST) -tags browser -count=1 -timeout 15m ./internal/web/webtest && echo "The browser tests passed."

check: lint race ## gofmt, vet, staticcheck, and the race detector on the concurrent packages

lint:
	@left=$$(gofmt -l .); if [ -n "$$left" ]; then echo "gofmt would change:"; echo "$$left"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

race: # but for the scripts, hundreds of processes of a goroutine or two (what these share is tested in its package), and plans of 100,000 tasks
	CGO_ENABLED=1 GORACE=atexit_sleep_ms=50 SLUICE_TEST_MONGODB= $(GOTEST) $(RACE) -timeout 15m -skip '^TestScripts$$|^TestLargePlans' $(CONCURRENT)

cross: ## that it builds for the systems that it is for
	@for target in linux/amd64 linux/arm64 darwin/arm64 windows/amd64; do \
	  echo "build $$target"; \
	  GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) build -o /dev/null ./cmd/sluice || exit 1; \
	done

bench: build ## every figure of docs/benchmarks.md, on this machine; RUN=noop/sqlite some of them, QUICK=1 each once, small and not judged
	SLUICE_BENCH_RIVER='$(RIVER)' $(GO) test ./internal/bench -vet=off -run '^$$' -bench '$(if $(RUN),/$(RUN),.)' -benchtime $(if $(QUICK),1x -short,3x) -timeout 0 $(BENCH)

release: ## what there is to install, in dist/: archives, packages, bills of materials and checksums; each run gives the same bytes
	$(GO) run ./internal/release

release-twice: ## a part of it twice, for the sums
	$(GO) run ./internal/release -targets linux/amd64 -packages deb -sbom=false -out tmp/release
	$(GO) run ./internal/release -targets linux/amd64 -packages deb -sbom=false -out tmp/release-again >/dev/null
	cmp tmp/release/SHA256SUMS tmp/release-again/SHA256SUMS

clean:
	rm -rf bin dist tmp

PYTHON ?= python3
BIN := .venv/bin
MODEL ?=
SEEDS ?= 200
PAGE := src/quire/server/page
# Three processes for two cores: some tests wait. Work is stolen, not dealt: so most tests of a file share its fixtures.
PYTEST := $(BIN)/python -m pytest -n 3 --dist worksteal
DENO := DENO_NO_UPDATE_CHECK=1 $(abspath $(BIN)/deno)

# Without compiled code every process that a test starts would compile the whole package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test test-bare test-slow test-long test-pythons test-vscode package docs image-wheels image test-image pin-actions release vscode check vendor bench simulate chaos chaos-cluster lock clean

setup: .venv/.ready

.venv/.ready: pyproject.toml constraints.txt bootstrap.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes -r bootstrap.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: setup
	@sh examples/demo.sh $(MODEL)

test: setup
	$(PYTEST) -m "not slow" tests

# The same as on a machine with Python, make and git only: sandbox, browser, editors and databases are hidden.
test-bare: setup
	$(BIN)/python -m tests.bare $(MAKE) test

# The tests that take long: attacks, a browser, killed processes, servers, models and editors (tests/conftest.py).
test-slow: setup
	$(PYTEST) -m slow tests

# All tests with many more random cases, kills and points of death in each (tests/depth.py).
test-long: setup
	QUIRE_LONG=1 $(PYTEST) tests

# The suites of formats, expressions, plan and engine on every CPython from 3.11 on that this machine has, each in an
# environment of its own below .venv (VERSIONS=3.13 chooses).
test-pythons: setup
	$(BIN)/python -m tests.pythons $(VERSIONS)

# Wheel and sdist in dist/, each installed into an empty environment that runs the playbook of docs/start/playbook.md.
package: setup
	$(BIN)/python -m tests.packaging

# The site of the documentation in .site. The generator has an environment of its own.
docs: setup .venv-docs/.ready
	.venv-docs/bin/zensical build --strict --clean
	$(BIN)/python -m tests.docs.site

.venv-docs/.ready: docs-requirements.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes -r docs-requirements.txt
	@touch $@

# The wheels of the image, by the hashes of constraints.txt, in dist/image (EXTRAS, and PYTHON_OF_IMAGE and MACHINE of the base).
EXTRAS ?= web,mcp,llm,cluster,otel
PYTHON_OF_IMAGE ?= 3.13
MACHINE ?= $(shell uname -m)
image-wheels: setup
	$(BIN)/python packaging/wheels.py $(EXTRAS) $(PYTHON_OF_IMAGE) $(MACHINE)

# The image, by docker, podman or buildah (ENGINE=podman). EXTRAS=web,mcp,llm,cluster,otel,local and TAG=quire:0.2.0-full make the large one.
ENGINE ?= docker
TAG ?= quire:latest
image: image-wheels
	$(ENGINE) build --file Containerfile --build-arg EXTRAS=$(EXTRAS) $(LABELS) --tag $(TAG) .

# The image built and used without an engine, by Debian's buildah and mmdebstrap as root; skipped elsewhere.
test-image: image-wheels
	$(BIN)/python -m tests.packaging.image

# Actions in workflows by hash instead of by tag, as their repositories have them now. A release does this first.
pin-actions:
	$(PYTHON) packaging/pin_actions.py

# What names the repository, for a release: dist/release (GITHUB_REPOSITORY=owner/name).
release: setup
	$(BIN)/python packaging/release.py

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	cd $(PAGE) && $(DENO) check --quiet . && $(DENO) lint --quiet && $(DENO) fmt --check --quiet
	cd editors/vscode && $(DENO) lint --quiet && $(DENO) fmt --check --quiet

# The extension for VS Code as a file in editors/vscode/dist. Needs node and npm.
vscode:
	cd editors/vscode && npm install --no-package-lock --no-audit --no-fund && npm run package

# The extension in VS Code itself: a server of it in editors/vscode/.code-server, and a real browser. Needs ripgrep too.
# Takes minutes.
test-vscode: setup vscode
	$(BIN)/python -m tests.lsp.vscode

# The page's modules of others, as VENDOR.toml lists them, from the npm registry (UPDATE=1 records the sums of new versions).
vendor: setup
	$(BIN)/python -m tests.vendor $(if $(UPDATE),--update)

bench: setup
	$(BIN)/python -m bench

# Every point of the hand-written documents, then so many random ones (STORE=postgresql: these on a server instead of
# a file). A seed that fails says how to see it again.
simulate: setup
ifneq ($(filter postgres%,$(STORE)),)
	$(BIN)/python -m tests.simulation --seeds $(SEEDS) --jobs 2
else
	QUIRE_EVERY_POINT=1 $(BIN)/python -m pytest -n 2 tests/simulation/test_every_point.py
	$(BIN)/python -m tests.simulator --seeds $(SEEDS) --jobs 2
endif

# Kills so many real processes with -9 (STORE=postgresql, STORY=pipeline and SEED=1 choose which and how).
chaos: setup
	$(BIN)/python -m tests.chaos --kills $(or $(N),2000) $(if $(STORE),--store $(STORE)) $(if $(STORY),--story $(STORY)) $(if $(SEED),--seed $(SEED))

# The same for workers of a cluster, and for Temporal and PostgreSQL under them.
chaos-cluster: setup
	QUIRE_CHAOS=1 $(BIN)/python -m pytest tests/cluster/test_cluster_chaos.py

# Needs the `uv` command; everybody else only reads the result.
lock:
	uv pip compile --universal --generate-hashes --no-header --no-annotate --all-extras pyproject.toml -o constraints.txt
	uv pip compile --universal --generate-hashes --no-header --no-annotate --group docs -o docs-requirements.txt

clean:
	rm -rf .venv .venv-docs .site

"""What holds for all tests: a module of tools that one of them has written is not there for the next, the random
documents of a test run begin at a seed that is drawn anew, and printed, files are written to memory, and no time is
spent on certificates of others and on garbage that is none."""

from __future__ import annotations

import gc
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests.depth import LONG, depth
from tests.given import given
from tests.play import Play

from quire.models.choose import MODEL_BY_KEY

SLOW = (
    "actions/",
    "chaos/",
    "cluster/",
    "examples/",
    "lsp/",
    "real/",
    "security/",
    "server/",
    "simulation/",
    "analysis/test_tightness.py",
    "cli/test_help_servers.py",
    "cli/test_serve.py",
    "cli/test_startup.py",
    "cli/test_terminal.py",
    "docs/test_pull_request_page.py",
    "mcp_server/test_stdio.py",
    "models/test_local.py",
    "stores/test_postgres",
    "telemetry/test_phoenix.py",
    "telemetry/test_server_logs.py",
    "test_pytest_plugin.py",
    "tools/test_mcp_gate.py",
)
"""Below this folder: the tests of `make test-slow`. They attack, kill processes, start servers, browsers, models,
terminals and editors, or do one thing some thousand times."""

collect_ignore = ["formats/test/samples"]
"""Test files that are only read: their documents are not there. pytest would collect them with Quire's own plugin."""

FRESH_SEED = "QUIRE_FRESH_SEED"
"""The environment variable that gives `tests/simulation/test_seeds.py` the seeds of an earlier test run."""

MEMORY = Path("/dev/shm")
"""Where Linux keeps files in memory. Tests write many small files, which takes long on a disk."""

ENOUGH_MEMORY = 2_000_000_000

CERTIFICATE = Path(__file__).parent / "fixtures" / "one_certificate.pem"
"""The only authority that tests believe: each client for HTTP reads all of them when it is made, and a system has some
hundred. No test calls a server of others."""

_first_seed = pytest.StashKey[int]()
_known_modules = pytest.StashKey[set[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Draws the first seed once: the processes of pytest-xdist get that of the process that started them."""
    given: dict[str, Any] = getattr(config, "workerinput", {})
    drawn = given.get(FRESH_SEED) or os.environ.get(FRESH_SEED) or 10**6 + secrets.randbelow(10**12)
    config.stash[_first_seed] = int(drawn)
    _write_to_memory()
    os.environ["SSL_CERT_FILE"] = str(CERTIFICATE)
    # A machine that does other things is slow. The check for filters counts on many examples, which begin small.
    ignored = (HealthCheck.too_slow,) if LONG else (HealthCheck.too_slow, HealthCheck.filter_too_much)
    settings.register_profile("quire", max_examples=depth(30, 100), deadline=2000, suppress_health_check=ignored)
    settings.load_profile("quire")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's space, which does not exist yet."""
    monkeypatch.setenv("QUIRE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def here(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the test as a workspace that is the current folder."""
    monkeypatch.chdir(tmp_path)
    return given({"quire.toml": ""}, tmp_path)


@pytest.fixture
def workspace(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, no_model_here: None) -> Path:
    """An empty workspace that is the current folder, beside an empty user's space."""
    folder = given({"quire.toml": ""}, tmp_path / "work")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
async def play(here: Path) -> AsyncIterator[Play]:
    """Runs of documents in the folder of the test."""
    play = Play(here)
    yield play
    await play.close()


@pytest.fixture
def no_model_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key and no model file of the machine chooses the model that `show` counts with."""
    monkeypatch.setenv("QUIRE_MODELS", str(tmp_path / "no-models"))
    for variable in MODEL_BY_KEY:
        monkeypatch.delenv(variable, raising=False)


def _write_to_memory() -> None:
    """Unless a place is named for temporary files, or there is too little room. Processes that are started do the
    same."""
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < ENOUGH_MEMORY:
        return
    # Containers often mount it so that no program can be started from there, which some tests do.
    if not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """Spares each collection of garbage a look at some million objects that stay for the whole test run, and collects
    less often: not at all while these objects are made."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent.as_posix()}/"
    for item in items:
        if item.path.as_posix().removeprefix(here).startswith(SLOW):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput[FRESH_SEED] = node.config.stash[_first_seed]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Also where all is well, and also with `-q`: a failure that comes later can be looked for there."""
    reports = [one for found in terminalreporter.stats.values() for one in found]
    if any("test_fresh_seeds" in getattr(one, "nodeid", "") for one in reports):
        again = f"{FRESH_SEED}={config.stash[_first_seed]} python -m pytest tests/simulation/test_seeds.py"
        terminalreporter.write_line(f"fresh seeds of the simulator from {config.stash[_first_seed]}; again: {again}")


@pytest.fixture(scope="session")
def first_seed(pytestconfig: pytest.Config) -> int:
    """The first of the seeds that were drawn for this test run."""
    return pytestconfig.stash[_first_seed]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Forgets the modules that a test has written and imported. It is not a fixture, which costs more in every test."""
    if (known := item.config.stash.get(_known_modules, None)) is None:
        known = item.config.stash[_known_modules] = set(sys.modules)
    ended = yield
    if len(sys.modules) != len(known):
        factory: pytest.TempPathFactory = item.config._tmp_path_factory  # type: ignore[attr-defined]
        _forget_modules(sys.modules.keys() - known, factory.getbasetemp())
        # Not `|=` and `&=`: with the keys of a dictionary they make another set, and this one would never learn.
        known.update(sys.modules)
        known.intersection_update(sys.modules)
    return ended


def _forget_modules(names: Iterable[str], written: Path) -> None:
    for name in names:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).is_relative_to(written):
            del sys.modules[name]

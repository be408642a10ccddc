"""Verbs load only what they need: which modules each of them imports, and which it must not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from tests.depth import LONG

from quire.trust.seal import seal_key

CODE = """
import contextlib, io, sys
from quire.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    code = main(sys.argv[1:])
print(code, *sorted(sys.modules))
"""
ENGINE = ("quire.engine", "quire.runs", "quire.stores", "quire.models", "quire.tools", "asyncio", "sqlite3")
HEAVY = (
    *("rich", "lxml", "pydantic", "pydantic_ai", "mcp", "cryptography", "jsonschema_rs", "httpx", "prompt_toolkit"),
    "quire.operations",
)
OTHER_FORMATS = ("quire.expr", "quire.formats.pipeline", "quire.formats.directive", "yaml")
DRIVING = ("asyncio", "quire.engine.interpreter", "quire.engine.driver")
INTERPRETERS = ("quire.engine.interpreter.pipeline", "quire.engine.interpreter.thread")

SCRIPTED = ("--script", "script.json", "--unattended", "--quiet")

VERBS = {
    "help": (["--help"], (*ENGINE, *HEAVY, "quire.formats", "quire.library")),
    "help of run": (["run", "--help"], (*ENGINE, *HEAVY, "quire.formats", "quire.library")),
    "check of a playbook": (["check", "one.playbook.md"], (*ENGINE, *HEAVY, *OTHER_FORMATS)),
    "show of a playbook": (["show", "one.playbook.md"], (*HEAVY, *OTHER_FORMATS, *DRIVING, "dataclasses")),
    "runs": (["runs"], (*HEAVY, *OTHER_FORMATS, *DRIVING)),
    "inbox": (["inbox"], (*HEAVY, *OTHER_FORMATS, *DRIVING)),
    "run of a playbook": (
        ["run", "one.playbook.md", *SCRIPTED],
        (*HEAVY, *OTHER_FORMATS, *INTERPRETERS, "secrets"),
    ),
    "run of a pipeline": (
        ["run", "two.pipeline.yaml", *SCRIPTED],
        (*HEAVY, "quire.formats.playbook", "quire.formats.directive", "quire.engine.interpreter.thread", "secrets"),
    ),
    "help of test": (["test", "--help"], (*ENGINE, *HEAVY, "yaml", "quire.library")),
    "test of a playbook": (["test", "one.test.yaml"], (*HEAVY, *INTERPRETERS, "multiprocessing")),
}
"""The arguments, and modules that are not loaded."""


@pytest.fixture(autouse=True)
def user_with_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first run of a user makes a key, and loads what that needs."""
    monkeypatch.setenv("QUIRE_HOME", str(tmp_path / "user"))
    seal_key(tmp_path / "user")


def _documents(folder: Path) -> None:
    (folder / "quire.toml").write_text("")
    (folder / "one.playbook.md").write_text('# One\n\n## STEP 1: Say\n\nSay "hello".\n')
    (folder / "two.pipeline.yaml").write_text("pipeline: two\nsteps: [{agent: {prompt: Say hello}}]\n")
    (folder / "script.json").write_text('[{"default": "Hello."}]')
    case = 'name: a, model: {"1": Hello.}, expect: {output: Hello., prompts: {"1": {contains: hello}}}'
    (folder / "one.test.yaml").write_text(f"cases: [{{{case}}}]")


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_loads_only_what_it_needs(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, absent = VERBS[verb]
    _documents(tmp_path)
    _modules(tmp_path, arguments, absent)


def test_show_reads_earlier_runs_without_an_event_loop(tmp_path: Path) -> None:
    _documents(tmp_path)
    subprocess.run([sys.executable, "-m", "quire", *VERBS["run of a playbook"][0]], check=True, cwd=tmp_path)
    arguments, absent = VERBS["show of a playbook"]
    assert "quire.stores.sqlite.store" in _modules(tmp_path, arguments, absent)


def test_a_locked_playbook_is_compared_without_the_tables_of_tools(tmp_path: Path) -> None:
    _documents(tmp_path)
    subprocess.run([sys.executable, "-m", "quire", "lock"], check=True, cwd=tmp_path, capture_output=True)
    tables = ("quire.trust.risk", "quire.trust.capabilities", "quire.library.registered", "quire.tools", "quire.stores")
    works = ("quire.plan.pipeline_work", "quire.plan.thread", "quire.models.prices", "quire.runs", "json", "tomllib")
    rare = ("quire.analysis.lock.compare", "quire.analysis.flow_paths", "quire.trust", "quire.plan.envelope")
    absent = (*HEAVY, *OTHER_FORMATS, *DRIVING, *tables, *works, *rare)
    _modules(tmp_path, ["check", "--locked", "one.playbook.md"], absent)


@pytest.mark.parametrize(("verb", "file", "expected"), [("check", "one.playbook.md", 0), ("show", "none.md", 2)])
def test_a_verb_that_ends_at_once_runs_what_was_registered_for_the_end(
    verb: str, file: str, expected: int, tmp_path: Path
) -> None:
    _documents(tmp_path)
    code = f"import atexit, sys; sys.argv = ['quire', '{verb}', '{file}']; from quire.cli import main; "
    code += "atexit.register(print, 'the end'); main(); print('not reached')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == expected
    assert done.stdout.endswith("the end\n")


def _modules(folder: Path, arguments: list[str], absent: tuple[str, ...]) -> list[str]:
    """Run a verb, check that it has not loaded some modules, and return those that it has loaded."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, *arguments], capture_output=True, text=True, cwd=folder, check=True
    )
    code, *modules = done.stdout.split()
    assert code == "0", done.stderr
    assert {module for module in modules if any(f"{module}.".startswith(f"{name}.") for name in absent)} == set()
    return modules


SETTINGS = "[runs]\nreply_tokens = 4096\n\n[trust]\nlocked = false\n"
HOSTED = '[models]\ndefault = "anthropic:claude-sonnet-4-5"\n'
PRICED = '[models.prices."anthropic:claude-sonnet-4-5"]\ninput = 3\noutput = 15\nwindow = 200000\n'
INSTRUCTIONS = {
    "help": ("", 6),
    "check of a playbook": ("", 6.4),
    "show of a playbook": ("", 9.2),
    "show of a playbook beside a model of the price list": (HOSTED, 10),
    "show of a playbook beside a model with a price of the user's own": (HOSTED, 10),
    "runs": ("", 9),
    "runs beside settings": (SETTINGS, 9.3),
    "run of a playbook": ("", 14.7),
    "run of a playbook beside settings": (SETTINGS, 14.9),
    "run of a pipeline": ("", 20),
}
"""The text of `quire.toml`, and how many times the instructions of a Python that does nothing a verb may take. The
numbers only fall. The library of the price list alone takes 20, once a day.

Counting takes seconds: the short suite counts for two of them, which do most of what the others do."""


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind, which counts instructions, is not installed")
@pytest.mark.parametrize("verb", list(INSTRUCTIONS) if LONG else ["check of a playbook", "run of a playbook"])
def test_a_verb_takes_few_instructions(verb: str, tmp_path: Path) -> None:
    settings, most = INSTRUCTIONS[verb]
    _documents(tmp_path)
    (tmp_path / "quire.toml").write_text(settings)
    (tmp_path / "user" / "quire.toml").write_text(PRICED if verb.endswith("of the user's own") else "")
    command = ("-m", "quire", *VERBS[verb.partition(" beside ")[0]][0])
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, *command], check=True, cwd=tmp_path, env=environ, capture_output=True)  # compiles
    assert _instructions(tmp_path, *command) / _bare() < most


@cache
def _bare() -> int:
    return _instructions(Path("/"), "-c", "pass")


def _instructions(folder: Path, *arguments: str) -> int:
    count = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
    done = subprocess.run(
        [*count, sys.executable, *arguments], check=True, cwd=folder, capture_output=True, text=True, timeout=120
    )
    counted = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    assert counted, done.stderr
    return int(counted[1].replace(",", ""))

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
DRIVING = ("asyncio", "hashlib", "quire.engine.interpreter", "quire.engine.driver")
INTERPRETERS = ("quire.engine.interpreter.pipeline", "quire.engine.interpreter.thread")

VERBS = {
    "help": (["--help"], 7, (*ENGINE, *HEAVY, "quire.formats", "quire.library")),
    "help of run": (["run", "--help"], 10, (*ENGINE, *HEAVY, "quire.formats", "quire.library")),
    "check of a playbook": (["check", "one.playbook.md"], 37, (*ENGINE, *HEAVY, *OTHER_FORMATS)),
    "show of a playbook": (
        ["show", "one.playbook.md"],
        108,
        (*HEAVY, *OTHER_FORMATS, *DRIVING, "dataclasses"),
    ),
    "runs": (["runs"], 60, (*HEAVY, *OTHER_FORMATS, *DRIVING)),
    "inbox": (["inbox"], 58, (*HEAVY, *OTHER_FORMATS, *DRIVING)),
    "run of a playbook": (
        ["run", "one.playbook.md", "--script", "script.json", "--unattended", "--quiet"],
        170,
        (*HEAVY, *OTHER_FORMATS, *INTERPRETERS, "secrets"),
    ),
    "help of test": (["test", "--help"], 25, (*ENGINE, *HEAVY, "yaml", "quire.library")),
    "test of a playbook": (["test", "one.test.yaml"], 229, (*HEAVY, *INTERPRETERS, "sqlite3", "multiprocessing")),
}
"""The arguments, the most modules of Quire, and modules that are not loaded. The numbers only fall."""


@pytest.fixture(autouse=True)
def user_with_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first run of a user makes a key, and loads what that needs."""
    monkeypatch.setenv("QUIRE_HOME", str(tmp_path / "user"))
    seal_key(tmp_path / "user")


def _documents(folder: Path) -> None:
    (folder / "quire.toml").write_text("")
    (folder / "one.playbook.md").write_text('# One\n\n## STEP 1: Say\n\nSay "hello".\n')
    (folder / "script.json").write_text('[{"default": "Hello."}]')
    case = 'name: a, model: {"1": Hello.}, expect: {output: Hello., prompts: {"1": {contains: hello}}}'
    (folder / "one.test.yaml").write_text(f"cases: [{{{case}}}]")


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_loads_only_what_it_needs(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, most, absent = VERBS[verb]
    _documents(tmp_path)
    _loads_at_most(tmp_path, arguments, most, absent)


def test_show_reads_earlier_runs_without_an_event_loop(tmp_path: Path) -> None:
    _documents(tmp_path)
    subprocess.run([sys.executable, "-m", "quire", *VERBS["run of a playbook"][0]], check=True, cwd=tmp_path)
    arguments, most, absent = VERBS["show of a playbook"]
    stores = _loads_at_most(tmp_path, arguments, most + 9, absent)
    assert "quire.stores.sqlite.store" in stores


def test_a_locked_playbook_is_compared_without_the_tables_of_tools(tmp_path: Path) -> None:
    _documents(tmp_path)
    subprocess.run([sys.executable, "-m", "quire", "lock"], check=True, cwd=tmp_path, capture_output=True)
    tables = ("quire.trust.risk", "quire.trust.capabilities", "quire.library.registered", "quire.tools", "quire.stores")
    works = ("quire.plan.pipeline_work", "quire.plan.thread", "quire.models.prices", "quire.runs", "json", "tomllib")
    rare = ("quire.analysis.lock.compare", "quire.analysis.flow_paths", "quire.trust", "quire.plan.envelope")
    absent = (*HEAVY, *OTHER_FORMATS, *DRIVING, *tables, *works, *rare)
    _loads_at_most(tmp_path, ["check", "--locked", "one.playbook.md"], 87, absent)


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


def test_a_process_loads_msgspec_without_typing_extensions(tmp_path: Path) -> None:
    _documents(tmp_path)
    code = CODE.replace("main(sys.argv[1:])", "main()") + "\nimport typing_extensions, msgspec.inspect"
    command = [sys.executable, "-c", code, "runs"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    modules = done.stdout.split()
    assert "msgspec" in modules and "typing_extensions" not in modules


def _loads_at_most(folder: Path, arguments: list[str], most: int, absent: tuple[str, ...]) -> list[str]:
    """Run a verb, and return the modules of Quire that it has loaded."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, *arguments], capture_output=True, text=True, cwd=folder, check=True
    )
    code, *modules = done.stdout.split()
    assert code == "0", done.stderr
    loaded = {module for module in modules if any(module == one or module.startswith(f"{one}.") for one in absent)}
    assert loaded == set()
    own = [module for module in modules if module.partition(".")[0] == "quire"]
    assert len(own) <= most, own
    return own


INSTRUCTIONS = {"help": 6, "check of a playbook": 6.4, "show of a playbook": 8.3, "runs": 9, "run of a playbook": 14.7}
"""How many times the instructions of a Python that does nothing a verb may take. The numbers only fall.

Counting takes seconds: the short suite counts for two of them, which do most of what the others do."""


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind, which counts instructions, is not installed")
@pytest.mark.parametrize("verb", list(INSTRUCTIONS) if LONG else ["check of a playbook", "run of a playbook"])
def test_a_verb_takes_few_instructions(verb: str, tmp_path: Path) -> None:
    _documents(tmp_path)
    command = ("-m", "quire", *VERBS[verb][0])
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, *command], check=True, cwd=tmp_path, env=environ, capture_output=True)  # compiles
    assert _instructions(tmp_path, *command) / _bare() < INSTRUCTIONS[verb]


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

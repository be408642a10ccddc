"""Verbs load only what they need: which modules each of them imports, and which it must not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import contextlib, io, sys
from quire.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    code = main(sys.argv[1:])
print(code, *sorted(sys.modules))
"""
ENGINE = ("quire.engine", "quire.runs", "quire.stores", "quire.models", "quire.tools", "asyncio", "sqlite3")
HEAVY = ("rich", "lxml", "pydantic", "pydantic_ai", "mcp", "cryptography", "jsonschema_rs", "httpx", "prompt_toolkit")
OTHER_FORMATS = ("quire.expr", "quire.formats.pipeline", "quire.formats.directive", "yaml")
INTERPRETERS = ("quire.engine.interpreter.pipeline", "quire.engine.interpreter.thread")

VERBS = {
    "help": (["--help"], 10, (*ENGINE, *HEAVY, "quire.formats", "quire.library")),
    "help of run": (["run", "--help"], 15, (*ENGINE, *HEAVY, "quire.formats", "quire.library")),
    "check of a playbook": (["check", "one.playbook.md"], 42, (*ENGINE, *HEAVY, *OTHER_FORMATS)),
    "runs": (["runs"], 66, (*HEAVY, *OTHER_FORMATS, "asyncio", "quire.engine.interpreter", "quire.engine.driver")),
    "inbox": (["inbox"], 62, (*HEAVY, *OTHER_FORMATS, "asyncio", "quire.engine.interpreter", "quire.engine.driver")),
    "run of a playbook": (
        ["run", "one.playbook.md", "--script", "script.json", "--unattended", "--quiet"],
        175,
        (*HEAVY, *OTHER_FORMATS, *INTERPRETERS),
    ),
}
"""The arguments, the most modules of Quire, and modules that are not loaded. The numbers only fall."""


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_loads_only_what_it_needs(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, most, absent = VERBS[verb]
    (tmp_path / "quire.toml").write_text("")
    (tmp_path / "one.playbook.md").write_text("# One\n\n## STEP 1: Say\n\nSay hello.\n")
    (tmp_path / "script.json").write_text('[{"default": "Hello."}]')
    done = subprocess.run(
        [sys.executable, "-c", CODE, *arguments], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    code, *modules = done.stdout.split()
    assert code == "0", done.stderr
    loaded = {module for module in modules if any(module == one or module.startswith(f"{one}.") for one in absent)}
    assert loaded == set()
    own = [module for module in modules if module.partition(".")[0] == "quire"]
    assert len(own) <= most, own

"""Prints everything that is public, one sorted line each: `python -m bench.surface > before`.

A change that keeps behaviour may only add lines: `comm -23 before after` prints the lost ones. Codes and help texts
stand in whole lines, so a changed word shows as one lost and one new line.
"""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
from tests.docs.cli_page import _commands, _context
from tests.server.test_contract import Api

import quire
from quire import errors
from quire.cli import verbs
from quire.cli.app import group
from quire.cli.help import help_text
from quire.library.check import all_codes
from quire.operations.problems import KINDS

ROOT = Path(__file__).parents[1]
JOURNALS = ROOT / "tests" / "fixtures" / "journals"
VERBS = (
    "check --json hello",
    "check --json broken",
    "list --json review",
    "show --json hello/hello.playbook.md",
    "show --json review-board/review-board.yaml",
    "run --json hello/hello.playbook.md --script hello/hello.script.json",
    "run --json expenses/expenses.yaml --script expenses/expenses.json --allow shell=unsandboxed",
    "runs --json",
    "runs last --json",
    "runs why last 1 --json",
    "inbox --json",
    "test --json --cov arms=0 hello",
    "test --json hello --mutate",
    "verify --json hello",
    "parse hello/hello.playbook.md",
    "doctor --json",
    "model list --json",
)
"""Lines of the command line that print JSON; their keys are part of the surface."""


def surface() -> Iterator[str]:
    yield from _help()
    yield from (f"code {code.id} {code.severity.value} {code.name}: {code.explanation!r}" for code in all_codes())
    yield from (f"exit {name} {error.exit_code}" for name, error in inspect.getmembers(errors, _is_error))
    yield from (f"problem {name} {kind}" for name, kind in KINDS.items())
    yield from (f"python {name}{_signature(getattr(quire, name))}" for name in quire.__all__)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", folder, dirs_exist_ok=True)
        Path(folder, "broken").mkdir()
        Path(folder, "broken", "broken.yaml").write_text("pipeline:\n  name: broken\n  steps:\n    - thnk: {}\n")
        yield from _served(Path(folder, "served"))
        for verb in VERBS:
            yield from _printed(verb, folder)
        for journal in sorted(JOURNALS.glob("*.jsonl")):
            yield f"journal {journal.stem} exit {_quire(f'runs import {journal}', folder).returncode}"


def _served(folder: Path) -> Iterator[str]:
    """The OpenAPI document, and the keys of the answers that need nothing but the workspace."""
    folder.mkdir()
    (folder / "quire.toml").write_text("")
    api = Api(folder)
    description = api.request("GET", "/openapi.json").json()
    yield from _paths("openapi", description)
    for path, methods in description["paths"].items():
        yield from (f"operation {method} {path} {operation['operationId']}" for method, operation in methods.items())
        if "get" in methods and "events" not in path and path != "/openapi.json":
            answer = api.request("GET", path.replace("{run}", api.runs[0]))
            if answer.headers["Content-Type"] == "application/json":
                yield from _paths(f"GET {path}", answer.json())
    api.close()


def _help() -> Iterator[str]:
    top = _context(group, None, "quire")
    older = {name: group.get_command(top, name) for name, verb in verbs.VERBS.items() if verb.group == "Older"}
    hidden = (_context(command, top, name) for name, command in older.items() if command is not None)
    for path, context in (pair for root in (top, *hidden) for pair in _commands(root)):
        yield from (f"help {path}: {line}" for line in help_text(context).splitlines() if line.strip())
        for option in context.command.params:
            if isinstance(option, click.Option):
                yield f"flag {path} {' '.join((*option.opts, *option.secondary_opts))}"


def _is_error(member: object) -> bool:
    return isinstance(member, type) and issubclass(member, errors.QuireError)


def _signature(member: object) -> str:
    return str(inspect.signature(member)) if inspect.isfunction(member) else ""


def _printed(verb: str, folder: str) -> Iterator[str]:
    done = _quire(verb, folder)
    yield f"verb {verb}: exit {done.returncode}"
    for line in (done.stdout,) if done.stdout.startswith(("{\n", "[\n")) else done.stdout.splitlines():
        yield from _paths(f"json {' '.join(verb.split()[:2])}", json.loads(line))


def _quire(verb: str, folder: str) -> subprocess.CompletedProcess[str]:
    home = {**os.environ, "HOME": folder, "XDG_CONFIG_HOME": f"{folder}/.config", "XDG_DATA_HOME": f"{folder}/.data"}
    command = [sys.executable, "-m", "quire", *verb.split()]
    return subprocess.run(command, cwd=folder, env=home, text=True, capture_output=True, stdin=subprocess.DEVNULL)


def _paths(place: str, value: object) -> Iterator[str]:
    """The path of every key in a JSON value; items of a list share one."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{place}.{key}"
            yield from _paths(f"{place}.{key}", inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(f"{place}[]", inner)


if __name__ == "__main__":
    print("\n".join(sorted(set(surface()))))

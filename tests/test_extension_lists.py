"""What docs/internals/extending-the-code.md lists as one change: each table that a new thing has to be in has it."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click
import pytest
from tests.expr.test_function_limits import HOSTILE, SMALL_WORK
from tests.testing.bench import only, run, told

from quire.cli.app import Verbs
from quire.engine import ports
from quire.engine.interpreter.thread import loop
from quire.expr.functions import FUNCTIONS
from quire.formats.test.expected import Subject
from quire.models import open as opening
from quire.plan.vocabulary import SENT_EVENTS
from quire.server.assets import IMPORTS
from quire.stores import contract, run_pages
from quire.stores.postgres.store import PostgresStore
from quire.stores.sqlite.store import SqliteStore

ROOT = Path(__file__).parents[1]


def test_every_function_is_measured_and_meets_hostile_values() -> None:
    spec = importlib.util.spec_from_file_location("bench_expr", ROOT / "bench" / "expr.py")
    assert spec is not None and spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    assert set(FUNCTIONS) <= set(bench.FUNCTIONS)
    attacked = {name for text, _, _ in HOSTILE for name in re.findall(r"(\w+)\(", text)}
    assert set(FUNCTIONS) - attacked == SMALL_WORK


def test_every_event_that_hooks_are_sent_is_fired() -> None:
    calls = [node for node in ast.walk(ast.parse(inspect.getsource(loop))) if isinstance(node, ast.Call)]
    fired = {
        call.args[0].value
        for call in calls
        if isinstance(call.func, ast.Attribute)
        and call.func.attr in ("_fire", "_decide")
        and isinstance(call.args[0], ast.Constant)
    }
    assert set(SENT_EVENTS) - fired == {"build_system_prompt"}, "fired where the first message is composed"


def test_every_kind_of_model_has_a_row_on_its_page() -> None:
    tree = ast.parse(inspect.getsource(opening._open))
    kinds = {node.value.value for node in ast.walk(tree) if isinstance(node, ast.MatchValue)}  # type: ignore[attr-defined]
    page = (ROOT / "docs" / "guides/models.md").read_text(encoding="utf-8")
    assert kinds
    assert [kind for kind in kinds if f"| `{kind}:" not in page] == []


@pytest.mark.parametrize("store", [SqliteStore, PostgresStore])
def test_every_method_of_a_store_is_one_that_a_caller_looks_for(store: type) -> None:
    wanted = {name for protocol in _protocols() for name in dir(protocol) if not name.startswith("_")}
    assert {name for name in dir(store) if not name.startswith("_")} - wanted == set()


def _protocols() -> Iterator[type]:
    for module in (ports, contract, run_pages):
        for value in vars(module).values():
            if inspect.isclass(value) and getattr(value, "_is_protocol", False):
                yield value


@pytest.mark.parametrize("verb", ["trust", "model", "keys"])
def test_the_help_of_a_verb_below_another_says_what_it_costs(verb: str) -> None:
    context = click.Context(Verbs())
    command = Verbs().get_command(context, verb)
    assert isinstance(command, click.Group)
    parts = [command.get_command(context, name) for name in command.list_commands(context)]
    assert all(part is not None and re.search(r"\b(?:FREE|PAID|WRITES)\b", part.help or "") for part in parts)


def test_the_page_and_its_checker_import_the_same_modules() -> None:
    page = ROOT / "src" / "quire" / "server" / "page"
    checked = json.loads((page / "deno.json").read_text(encoding="utf-8"))["imports"]
    assert set(checked) == set(IMPORTS)


NEVER = {
    "status": "paused",
    "exit": "9",
    "output": "x",
    "artifact": "x",
    "error": "x",
    "named": "{best: x}",
    "stores": "{best: x}",
    "outputs": "{best: x}",
    "steps": '{"1": failed}',
    "prompts": '{"1": {contains: a brewery}}',
    "asked": '{"2": x}',
    "calls": "{read: 1}",
    "refused": "[rye.execute.tool.rye.bash]",
    "hooks": "{stop: 1}",
    "files": "{a.txt: x}",
    "events": "[run_failed]",
    "warnings": "[x]",
    "used": "{model_calls: 7}",
    "that": "[!expr \"named.best == 'x'\"]",
}
"""Expectations that do not hold for the case below."""


def test_every_subject_of_expectations_is_known_here() -> None:
    assert set(NEVER) == set(get_args(Subject))


@pytest.mark.parametrize("subject", NEVER)
def test_every_expectation_can_fail(subject: str, tmp_path: Path) -> None:
    text = f"""
cases:
  - name: it
    inputs: {{product: a bakery, tone: dry}}
    answers: {{"2": "yes"}}
    model: {{"1": 'Three. {{"best": "Bread."}}', "3a": "Bread, then."}}
    expect: {{{subject}: {NEVER[subject]}}}
"""
    result = run(tmp_path, "tagline", text)
    if subject in ("stores", "outputs"):  # of pipelines and directives
        assert result.problems
    else:
        problems = told(only(result))
        assert problems and all(problem.startswith("TS110 ") for problem in problems)

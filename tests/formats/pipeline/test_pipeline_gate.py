"""The gate of definitions that agents write: every step at every depth, and the path of what is refused."""

from __future__ import annotations

import pytest
from tests.formats.pipeline.reading import file_of, steps

from quire.formats.pipeline.inline import _HARMLESS, Refusal, _Checker, gate
from quire.formats.pipeline.language import BODY_KEYS, ROLES, Key
from quire.formats.pipeline.syntax import Name, Pipeline, PipelineFile, Step, TransformBody

KNOWN = ("file__read", "web_search")
COLLECT = "collect: {transform: {value: pipe}}"


def refused(step: str, *, shell: bool = False, known: tuple[str, ...] = KNOWN) -> Refusal | None:
    schema = "schema: S\nfields: {x: {type: ref, schema: T}}\n---\nschema: T\nfields: {y: {type: bool}}\n---\n"
    dangling = "schema: D\nfields: {x: {type: ref, schema: Nowhere}}\n---\n"
    return gate(file_of(schema + dangling + steps("transform: {value: '1'}", step)), "me", known, shell)


@pytest.mark.parametrize(
    "step",
    [
        "tool: {name: file__read}",
        "tool: {name: ask, args: {prompt: hi}}",
        "agent: {prompt: hi, schema: S}",
        "agent: {prompt: hi, identity: me, capabilities: {tools: [anything]}}",
        "call: {pipeline: ghost}",
        "match: {on: x, cases: {a: {pipeline: ghost}}}",
    ],
)
def test_passes(step: str) -> None:
    assert refused(step) is None


@pytest.mark.parametrize(
    ("step", "path", "word"),
    [
        ("tool: {name: no_such_tool}", "2", "no_such_tool"),
        ("tool: {name: t, schema: S}", "2", "t"),
        ("tool: {name: web_search, schema: Missing}", "2", "Missing"),
        ("agent: {prompt: hi, schema: D}", "2", "Nowhere"),
        ("agent: {prompt: hi, identity: boss}", "2", "boss"),
        ("shell: {command: ls}", "2", "shell"),
        ("shell: {command: ls, schema: Missing}", "2", "Missing"),
        ("tool: {name: shell, args: {command: ls}}", "2", "shell"),
        *((f"tool: {{name: {name}}}", "2", name)
          for name in ("run_pipeline", "run_pipeline_async", "run_pipeline_inline", "run_pipeline_inline_async",
                       "delegate_to_agent", "pipeline__run", "pipeline__hello", "multi_agent__delegate")),
        (f"for_each: {{items: [1], on_error: abort, do: {{tool: {{name: x}}}}, {COLLECT}}}", "2.for_each.do", "x"),
        ("for_each: {items: [1], on_error: abort, do: {transform: {value: item}}, collect: {tool: {name: x}}}",
         "2.for_each.collect", "x"),
        ("fold: {items: [1], init: '0', do: {agent: {prompt: a, identity: boss}}, output: t}", "2.fold.do", "boss"),
        (f"parallel: {{branches: {{a: {{fold: {{init: '0', do: {{tool: {{name: x}}}}, output: t}}}}}}, {COLLECT}}}",
         "2.parallel.a.fold.do", "x"),
        ("parallel: {branches: {a: {transform: {value: '1'}}}, collect: {agent: {prompt: a, schema: No}}}",
         "2.parallel.collect", "No"),
    ],
)  # fmt: skip
def test_refuses(step: str, path: str, word: str) -> None:
    refusal = refused(step)
    assert refusal is not None
    found = refusal.problems[0]
    assert found.path == path and word in found.message
    assert str(refusal).startswith(f"step {path}: {found.message}")


def test_a_launch_is_refused_even_if_it_is_a_known_tool() -> None:
    assert refused("tool: {name: run_pipeline}", known=("run_pipeline",)) is not None
    file = file_of(steps("tool: {name: web_search}"))
    assert gate(file, "me", KNOWN, shell=False, denied=("web_search",)) is not None


@pytest.mark.parametrize(("shell", "known"), [(True, KNOWN), (False, ("shell",))])
def test_a_shell_that_is_there(shell: bool, known: tuple[str, ...]) -> None:
    assert refused("shell: {command: ls}", shell=shell, known=known) is None
    assert refused("tool: {name: shell, args: {command: ls}}", shell=shell, known=known) is None


def test_all_problems_in_the_order_of_the_text() -> None:
    fan = f"for_each: {{items: [1], on_error: abort, do: {{tool: {{name: y, schema: No}}}}, {COLLECT}}}"
    file = file_of(steps("agent: {prompt: a, identity: boss}", "tool: {name: file__read}", fan, "tool: {name: x}"))
    refusal = gate(file, "me", KNOWN, shell=False)
    assert refusal is not None
    assert [one.path for one in refusal.problems] == ["1", "3.for_each.do", "3.for_each.do", "4"]
    told = str(refusal)
    assert told.index("step 1: ") < told.index('"No"') < told.index('"y"') < told.index('step 4: the tool "x"')


def test_a_hundred_problems_are_counted_not_listed() -> None:
    refusal = gate(file_of(steps(*["tool: {name: x}"] * 100)), "me", KNOWN, shell=False)
    assert refusal is not None and len(refusal.problems) == 100
    assert str(refusal).count("does not resolve") == 20 and str(refusal).endswith("; and 80 more")


def test_a_kind_that_the_gate_does_not_know_is_refused() -> None:
    """Someone may add a kind of step and forget the gate."""
    known = file_of(steps("tool: {name: ghost}")).pipelines[0].steps
    new = Step("wait", object())  # type: ignore[arg-type]
    file = PipelineFile((Pipeline(Name("p"), "", (*known, new)),), ())
    refusal = gate(file, "me", KNOWN, shell=True)
    assert refusal is not None
    assert [problem.path for problem in refusal.problems] == ["1", "2"]
    assert str(refusal.problems[1]) == 'step 2: an inline pipeline has no steps of the kind "wait"'


def test_a_kind_with_a_key_in_a_role_that_the_gate_does_not_know_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    file = file_of(steps("transform: {value: '1'}"))
    assert gate(file, "me", KNOWN, shell=True) is None
    monkeypatch.setitem(BODY_KEYS, TransformBody, (Key("value", "spell"),))  # type: ignore[arg-type]
    refusal = gate(file, "me", KNOWN, shell=True)
    assert refusal is not None and [one.path for one in refusal.problems] == ["1"]
    assert set(ROLES) == _HARMLESS | set(_Checker.CHECKS) and not _HARMLESS & set(_Checker.CHECKS)

"""Whatever the text: reading and checking never raise, and what is written reads the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.depth import depth
from tests.formats.trees import without_spans

from quire.diagnostics import Severity
from quire.formats.pipeline.check import check
from quire.formats.pipeline.inline import gate
from quire.formats.pipeline.inputs import inferred_inputs
from quire.formats.pipeline.language import GUARD_KEYS, KINDS, Kind, Role
from quire.formats.pipeline.lower import lower
from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.syntax import PipelineFile
from quire.formats.pipeline.write import write
from quire.source import Source

CASES = Path(__file__).parents[4] / "shared" / "conformance" / "cases" / "pipeline"

names = st.sampled_from(["a", "b-c", "_d", "null", "True", "x1", "pipe", "no", "on"])
texts = st.one_of(
    st.sampled_from(
        ["", "x", "{ctx.a}", "two\nlines", "block\n\n  of {b}\nlines\n", "12", "true", "a: b # c", "\u2028\x85", "~"]
    ),
    st.text(alphabet=st.characters(blacklist_categories=["Cs"]), max_size=12),
)
expressions = st.sampled_from(
    ["1", "ctx.a + b", "'it\\'s'", "pipe", '"q" + item', "map(xs, x -> x.y)", "{'k': [1, null]}"]
)
literals = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)


class Tagged(str):
    """An expression that is to be written with its tag."""


Written = st.SearchStrategy[object]
passes = st.one_of(st.lists(names, max_size=2), st.dictionaries(names, expressions, max_size=2))
pipelines = st.one_of(names, st.just("key.name"))
targets = st.fixed_dictionaries({"pipeline": pipelines}, optional={"pass": passes})
arguments = st.one_of(literals, expressions.map(Tagged))
titles = st.text(st.characters(codec="utf-8"), min_size=1, max_size=9).filter(
    lambda text: text.isprintable() and text.strip()
)
PLAIN: dict[Role, Written] = {
    "expression": expressions,
    "argument": st.one_of(texts, expressions.map(Tagged)),
    "arguments": st.dictionaries(texts, arguments, max_size=3),
    "command": arguments,
    "items": st.lists(literals, max_size=2),
    "prompt": texts,
    "tool": st.one_of(names, st.just("a/b")),
    "tools": st.lists(names, max_size=2).map(lambda tools: {"tools": tools}),
    "variables": st.lists(st.sampled_from(["HOME", "_x1"]), max_size=2),
    "identity": names,
    "model": names,
    "schema": names,
    "store": names,
    "target": pipelines,
    "passes": passes,
    "number": st.integers(1, 2),
    "flag": st.booleans(),
    "word": st.sampled_from(["fail", "keep"]),
    "policy": st.sampled_from(["continue", "abort", "retry(3)"]),
    "duration": st.sampled_from(["30s", "1.5m", "5ms"]),
}
"""What is written for a key, by its role."""


def holding(inner: Written, dialect: bool) -> dict[Role, Written]:
    """The same for keys that hold steps."""
    block = st.lists(inner, min_size=1, max_size=2)
    chosen = st.one_of(targets, block.map(lambda steps: {"steps": steps})) if dialect else targets
    return {
        "step": inner,
        "steps": block,
        "branches": st.dictionaries(names, inner, min_size=1, max_size=2),
        "cases": st.dictionaries(texts, chosen, min_size=1, max_size=2),
        "choice": st.one_of(chosen, expressions) if dialect else chosen,
    }


def step_of(kind: Kind, written: Mapping[Role, Written], dialect: bool) -> Written:
    keys = [key for key in (*kind.keys, WHEN) if dialect or not key.dialect]
    values = {key.name: written[key.role] for key in keys if key.role in written}
    bodies = st.fixed_dictionaries(
        {key.name: values[key.name] for key in keys if key.needed},
        optional={key.name: values[key.name] for key in keys if not key.needed and key.name in values}
        | ({"title": titles} if dialect else {}),
    )
    return bodies.map(lambda body: {kind.name: valid(kind, body)})


def valid(kind: Kind, body: dict[str, object]) -> dict[str, object]:
    """Leave one list of two, and survive the failures that a default is for."""
    if "over" in body:
        body = {key: value for key, value in body.items() if key != "items"}
    return {**body, "on_error": "continue"} if "default" in body and kind.name != "match" else body


def steps(dialect: bool) -> Written:
    kinds = [kind for kind in KINDS if dialect or not kind.dialect]
    holds = {kind.name for kind in kinds if any(key.role in ("step", "steps", "branches") for key in kind.keys)}
    simple = [kind for kind in kinds if kind.name not in (*holds, "match", "stop")]
    any_step = st.recursive(
        st.one_of([step_of(kind, PLAIN, dialect) for kind in simple]),
        lambda inner: st.one_of(
            [step_of(kind, PLAIN | holding(inner, dialect), dialect) for kind in kinds if kind not in (*simple, STOP)]
        ),
        max_leaves=4,
    )
    # Inside of a fan a stop is wrong.
    return st.one_of(any_step, step_of(STOP, PLAIN, dialect)) if dialect else any_step


STOP = next(kind for kind in KINDS if kind.name == "stop")
WHEN = GUARD_KEYS[0]


def as_yaml(value: object) -> str:
    """In flow style and with everything quoted, by no code of ours."""
    if isinstance(value, Tagged):
        return f"!expr {as_yaml(str(value))}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{as_yaml(key)}: {as_yaml(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_yaml, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return repr(value)
    return yaml.dump(value, default_style='"', width=10**9, allow_unicode=False).strip()


def same_again(file: PipelineFile) -> None:
    written = write(file)
    again = parse(Source.of(written), registered=True)
    assert again.file is not None, (written, again.diagnostics)
    assert without_spans(again.file) == without_spans(file), written


@settings(max_examples=depth(30, 150), deadline=None)
@given(
    st.one_of(
        st.tuples(st.just(""), st.lists(steps(dialect=False), min_size=1, max_size=3)),
        st.tuples(st.just("dialect: quire\n"), st.lists(steps(dialect=True), min_size=1, max_size=3)),
    ),
    texts,
)
def test_what_is_written_reads_the_same(document: tuple[str, list[object]], description: str) -> None:
    head, written = document
    text = f"pipeline: p\ndescription: {as_yaml(description)}\n{head}steps:\n" + "".join(
        f"- {as_yaml(step)}\n" for step in written
    )
    reading = parse(Source.of(text))
    assert reading.file is not None, (text, reading.diagnostics)
    same_again(reading.file)
    lower(reading.file, reading.file.pipelines[0])
    inferred_inputs(reading.file.pipelines[0])
    gate(reading.file, "me", ["a"], shell=False)
    check(reading.source)


WORDS = [
    "pipeline: p", "pipeline:", "schema: S", "---", "fields: {x: {type: bool}}", "description: d", "steps:",
    "steps: []", "- transform: {value: ctx.a + 1, output: a}", "- transform:", "    value: '1 +'",
    "- tool: {name: t, args: {x: !expr y}}",
    "- agent: {prompt: 'x {ctx.a} { ctx.b }', schema: S, output: r}",
    "- match: {on: r.x, cases: {true: {pipeline: q}}}",
    "- for_each: {on_error: retry(1), do: {transform: {value: item}}, collect: {transform: {value: pipe}}}",
    "- fold:", "    init: 0", "    do: {call: {pipeline: p, pass: {a: item}}}",
    "- parallel: {branches: {a: {shell: {command: 5}}}}",
    "- !expr x", "- [", "{", "}", "]", "&a *a", "  - 3", "? a", "<<: b", "\t", "'", "|",
    "- transform: {value: r.y < 'a'}",
    "dialect: quire", "input:", "input: {a: {type: string, default: 3}, b: {type: ref, schema: S}}",
    "  a: {type: list, of: {type: string, pattern: '(['}, max_items: 0}", "  b: {type: number, minimum: 2, maximum: 1}",
    "fields: {x: {type: string, max_length: 3, pattern: '^a', description: d}}",
]  # fmt: skip


@settings(max_examples=depth(60, 300), deadline=None)
@given(
    st.one_of(st.text(), st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=8)), max_size=14).map("\n".join))
)
@example("pipeline: p\nsteps: [{transform: {value: \ud800}}]")
@example("pipeline: p\nsteps: [{agent: {prompt: }}]")
def test_nothing_raises(text: str) -> None:
    source = Source.of(text)
    for registered in (False, True):
        reading = parse(source, registered=registered)
        assert (reading.file is None) == bool(reading.of(Severity.ERROR))
        if reading.file:
            for pipeline in reading.file.pipelines:
                lower(reading.file, pipeline)
            same_again(reading.file)
    for found in check(source):
        assert 0 <= found.span.start <= found.span.end <= len(source.text)


@pytest.mark.skipif(not CASES.is_dir(), reason="the conformance kit is not beside this clone")
def test_every_definition_of_the_kit_reads_the_same_when_it_is_written() -> None:
    seen = 0
    for path in sorted(CASES.glob("*.yaml")):
        for case in yaml.safe_load(path.read_text()):
            for text in (*case["given"].get("pipelines", []), *case["given"].get("registered", [])):
                file = parse(Source.of(text)).file
                if file is not None:
                    seen += 1
                    same_again(file)
    assert seen > 100

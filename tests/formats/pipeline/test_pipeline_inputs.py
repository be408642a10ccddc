"""Inputs that nobody declares: the stores that are read before a step has written them."""

from __future__ import annotations

import pytest
from tests.formats.pipeline.reading import pipeline_of, steps

from quire.formats.pipeline.inputs import inferred_inputs, optional_inputs, unread_inputs


@pytest.mark.parametrize(
    ("texts", "inputs"),
    [
        (["transform: {value: ctx.a + b}"], ["a", "b"]),
        (["transform: {value: '1', output: a}", "transform: {value: ctx.a + a}"], []),
        (["transform: {value: a, output: a}"], ["a"]),
        (["transform: {value: a}", "transform: {value: '1', output: a}"], ["a"]),
        (["transform: {value: '[pipe, item, acc, ctx]'}"], []),
        (["transform: {value: 'map(xs, x -> x + y)'}"], ["xs", "y"]),
        (["transform: {value: \"get(ctx, 'n', d)\"}"], ["d"]),
        (["transform: {value: \"get(r, 'n')\"}"], ["r"]),
        (["tool: {name: t, args: {a: b, c: !expr d}}"], ["d"]),
        (["shell: {command: !expr '[a]'}"], ["a"]),
        (["agent: {prompt: '{ctx.a} {b} {pipe} {{ctx.c}} {ctx} {ctx.d e}'}"], ["a"]),
        (["call: {pipeline: q, pass: [a, b-c]}"], ["a", "b-c"]),
        (["call: {pipeline: q, pass: {a: b + item}}"], ["b"]),
        (["match: {on: a, cases: {x: {pipeline: q, pass: [b]}}, default: {pipeline: q, pass: {z: c}}}"],
         ["a", "b", "c"]),
        (["fold: {over: xs, init: a, do: {transform: {value: acc + item + b}}, output: t}", "transform: {value: t}"],
         ["xs", "a", "b"]),
        (["for_each: {over: xs, on_error: continue, do: {transform: {value: errors}}, "
          "collect: {transform: {value: errors}}}"], ["xs", "errors"]),
        (["parallel: {branches: {a: {transform: {value: c}}}, collect: {transform: {value: '[a, errors, b, ctx.a]'}}}"],
         ["c", "b", "a"]),
        (["parallel: {branches: {a: {transform: {value: '1'}}}, "
          "collect: {fold: {over: a, init: '0', do: {transform: {value: a}}, output: t}}}"], ["a"]),
        (["for_each: {items: [1], on_error: abort, do: {transform: {value: '1', output: a}}, "
          "collect: {transform: {value: a, output: c}}, output: b}", "transform: {value: '[a, b, c]'}"], ["a", "c"]),
    ],
)  # fmt: skip
def test_inferred(texts: list[str], inputs: list[str]) -> None:
    assert sorted(inferred_inputs(pipeline_of(steps(*texts)))) == sorted(inputs)


def test_what_only_get_reads_is_optional() -> None:
    pipeline = pipeline_of(steps("transform: {value: \"get(ctx, 'a', 1) + get(ctx, 'b.c') + b\"}"))
    assert (inferred_inputs(pipeline), optional_inputs(pipeline)) == (("b",), ("a",))


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("transform: {value: \"ctx.a + get(ctx, 'b.c')\"}", ["c"]),
        ("agent: {prompt: '{a} {b.x} {c}'}", []),
        ("call: {pipeline: q, pass: [a]}", ["b", "c"]),
        ("transform: {value: '1', output: a}", ["a", "b", "c"]),
        ("transform: {value: 'count([ctx])'}", []),
        ("transform: {value: \"get(ctx, 'a', ctx)\"}", []),
        ("agent: {prompt: '{ctx}'}", []),
    ],
)
def test_what_no_step_reads(text: str, unread: list[str]) -> None:
    read_after_it_was_written = "transform: {value: ctx.a}"
    texts = [text, read_after_it_was_written] if "output: a" in text else [text]
    assert list(unread_inputs(pipeline_of(steps(*texts)), ["a", "b", "c"])) == unread

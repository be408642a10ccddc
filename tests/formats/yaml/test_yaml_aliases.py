from __future__ import annotations

from typing import cast

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.depth import depth
from tests.formats.trees import without_spans
from tests.formats.yaml.test_yaml_read import problems, read
from tests.growth import within

from quire.diagnostics import Diagnostic
from quire.engine.interpreter.thread.hooks import read_hooks_yaml
from quire.formats.directive.knowledge import read_knowledge
from quire.formats.pipeline.check import check
from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.write import write
from quire.formats.yaml import Mapping, Node, Scalar, Sequence, literal, read_yaml
from quire.source import MAX_DOCUMENT_BYTES, Source
from quire.values import Value, encode


def values_of(text: str) -> list[Value]:
    reading = read(text)
    assert reading.diagnostics == ()
    found: list[Diagnostic] = []
    values = [literal(one, found) for one in reading.documents]
    assert not found
    return values


def size(node: Node) -> int:
    """How many nodes there are, each as often as it is met; by the memory of it, so that no bomb keeps it busy."""
    known: dict[int, int] = {}

    def of(one: Node) -> int:
        if id(one) not in known:
            parts = one.items if isinstance(one, Sequence) else ()
            entries = one.entries if isinstance(one, Mapping) else ()
            known[id(one)] = 1 + sum(map(of, parts)) + sum(1 + of(entry.value) for entry in entries)
        return known[id(one)]

    return of(node)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: &x 1\nb: *x", {"a": 1, "b": 1}),
        ("a: &x\nb: *x", {"a": None, "b": None}),
        ("a: &x '1'\nb: [*x, *x]", {"a": "1", "b": ["1", "1"]}),
        ("a: &x !!str 1\nb: *x", {"a": "1", "b": "1"}),
        ("a: !!str &x 1\nb: *x", {"a": "1", "b": "1"}),
        ("a: &x [1, &y {c: 2}]\nb: *x\nd: *y", {"a": [1, {"c": 2}], "b": [1, {"c": 2}], "d": {"c": 2}}),
        ("a: &x\n  - 1\nb:\n  c: *x\nd: 2", {"a": [1], "b": {"c": [1]}, "d": 2}),
        ("- &x |\n  one\n  two\n- *x", ["one\ntwo\n", "one\ntwo\n"]),
        ("&x a: b\nc: *x", {"a": "b", "c": "a"}),
        ("a: &x b\n*x : c", {"a": "b", "b": "c"}),
        ("&x\na: 1", {"a": 1}),
        ("a: {<<: {b: 1}, c: 2}", {"a": {"b": 1, "c": 2}}),
        ("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
        ("a: &x {b: 1, c: 2}\nd: {c: 3, <<: *x}", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
        (
            "a: &x {b: 1, c: 1}\nd: &y {c: 2, e: 2}\nf: {<<: [*x, *y], g: 3}",
            {"a": {"b": 1, "c": 1}, "d": {"c": 2, "e": 2}, "f": {"b": 1, "c": 1, "e": 2, "g": 3}},
        ),
        (
            "a: &x {b: 1}\nc: &y {<<: *x, d: 2}\ne: {<<: *y, b: 3}",
            {"a": {"b": 1}, "c": {"b": 1, "d": 2}, "e": {"b": 3, "d": 2}},
        ),
        ("a: &x {b: {c: 1, d: 2}}\ne: {<<: *x, b: {c: 3}}", {"a": {"b": {"c": 1, "d": 2}}, "e": {"b": {"c": 3}}}),
        ("<<: []\na: 1", {"a": 1}),
        ("<<: {}", {}),
        ("a: '<<'\n'<<': b", {"a": "<<", "<<": "b"}),
        ('"<<": {a: 1}', {"<<": {"a": 1}}),
        ("? <<\n: {a: 1}", {"a": 1}),
    ],
)
def test_values_are_those_of_the_safe_loader(text: str, value: Value, loader: str) -> None:
    assert values_of(text) == [value]
    assert yaml.safe_load(text) == value


def test_merged_keys_come_first_in_the_order_of_the_list() -> None:
    [value] = values_of("a: {c: 1, <<: [{x: 1, c: 0}, {y: 2, x: 0}], d: 2}")
    assert isinstance(value, dict)
    assert list(cast("dict[str, Value]", value["a"]).items()) == [("x", 1), ("c", 1), ("y", 2), ("d", 2)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: *x", [("YM008", "*x")]),
        ("*x", [("YM008", "*x")]),
        ("- *x\n- &x 1\n- *x", [("YM008", "*x")]),
        ("a: &x 1\n---\nb: *x", [("YM008", "*x")]),
        ("a: &x [\n---\nb: *x", [("YM001", "-"), ("YM008", "*x")]),
        ("a: &x 1\nb: &x 2", [("YM008", "&x")]),
        ("a: &x 1\n---\nb: &x 2", []),
        ("&x [*x]", [("YM008", "*x")]),
        ("a: &x {b: [*x]}", [("YM008", "*x")]),
        ("&x {<<: *x}", [("YM008", "*x")]),
        ("&x [&x [*x], *x]", [("YM008", "&x"), ("YM008", "*x")]),
        ("&x a: *x", []),
        ("a: &x 1\n<<: *x", [("YM007", "<<")]),
        ("<<: 1", [("YM007", "<<")]),
        ("<<:", [("YM007", "<<")]),
        ("<<: [{a: 1}, 2, [{b: 1}]]", [("YM007", "<<"), ("YM007", "<<")]),
        ("<<: *x", [("YM008", "*x")]),
        ("<<: [*x, *y]", [("YM008", "*x"), ("YM008", "*y")]),
        ("{<<: {a: 1}, <<: {b: 1}}", [("YM005", "<<")]),
        ("&x a: 1\n*x : 2", [("YM005", "*x")]),
        ("- &x [a]\n- ? *x\n  : b", [("YM006", "*x")]),
        ("a: &x {b: 1, b: 2}\nc: *x\nd: {<<: *x}", [("YM005", "b")]),
        ("a: &x .inf\nb: *x", [("YM011", "&x .inf")]),
        ("a: *x b", [("YM008", "*x"), ("YM001", "b")]),
    ],
)
def test_problems(text: str, expected: list[tuple[str, str]], loader: str) -> None:
    assert sorted(problems(text)) == sorted(expected)


def test_messages_say_where_the_anchor_is() -> None:
    [twice] = read("a: 1\nb: &x 1\nc: &x 2").diagnostics
    assert (twice.message, twice.help) == (
        "the anchor &x is here twice",
        "the first is on line 2; give this one another name",
    )
    [circle] = read("a: 1\nb: &x\n  c: *x").diagnostics
    assert (circle.message, circle.help) == (
        "the alias *x stands inside of what it names",
        "the anchor is on line 2; nothing can contain itself",
    )
    [nothing] = read("a: *x").diagnostics
    assert (nothing.message, nothing.help) == (
        "the alias *x does not name an anchor of this document",
        "an anchor &x must come before it; put text that begins with * in quotes",
    )


def test_places_are_those_of_the_anchor_and_of_the_text_around_the_alias() -> None:
    text = "a: &x 'é y'\nb:\n  - *x\n\nc: {d: *x}\n"
    [root] = read(text).documents
    assert isinstance(root, Mapping)
    first, second, third = (entry.value for entry in root.entries)
    assert isinstance(first, Scalar) and isinstance(second, Sequence) and isinstance(third, Mapping)
    assert second.items[0] is first and third.get("d") is first
    assert text[first.span.start : first.span.end] == "&x 'é y'"
    assert text[first.body.start : first.body.end] == "'é y'"
    assert text[second.span.start : second.span.end] == "- *x"
    assert text[third.span.start : third.span.end] == "{d: *x}"
    assert text[root.span.start : root.span.end] == text.rstrip()


def test_a_value_made_of_a_shared_node_is_not_shared() -> None:
    [value] = values_of("a: &x {b: [1]}\nc: *x\nd: {<<: *x}")
    changed = cast("dict[str, dict[str, list[int]]]", value)
    changed["a"]["b"].append(2)
    assert (changed["c"], changed["d"]) == ({"b": [1]}, {"b": [1]})


def test_merging_leaves_the_merged_mapping_as_it_is() -> None:
    [value] = values_of("a: &x {b: 1}\nc: {<<: *x, b: 2, d: 3}\ne: *x")
    assert value == {"a": {"b": 1}, "c": {"b": 2, "d": 3}, "e": {"b": 1}}


@pytest.mark.parametrize("inner", [50, 51])
def test_depth_counts_through_aliases(inner: int) -> None:
    text = "[" * 49 + "a, &x " + "[" * inner + "b" + "]" * inner + "]" * 49
    deeper = f"[{text}, {'[' * 49}*x{']' * 49}]"
    assert [code for code, _ in problems(deeper)] == (["YM003"] if inner > 50 else [])


def test_depth_counts_through_aliases_of_aliases() -> None:
    text = "- &a0 [x]\n" + "".join(f"- &a{n} [*a{n - 1}]\n" for n in range(1, 150))
    reading = read(text)
    assert [one.code.id for one in reading.diagnostics] == ["YM003"]
    assert literal(reading.documents[0], [])


@pytest.mark.parametrize("more", [0, 1])
def test_an_alias_counts_as_what_it_stands_for(more: int) -> None:
    body = "y" * 90_000
    text = f"- &x {body}\n- *x\n- "
    # Where the alias stands its own two characters give way to those of the text.
    text += "z" * (MAX_DOCUMENT_BYTES + more - len(text) - len(body) + len("*x"))
    assert [code for code, _ in problems(text)] == ["YM008"] * more


def test_a_merge_key_is_text_where_it_is_no_key() -> None:
    assert values_of("a: <<\nb: [<<]") == [{"a": "<<", "b": ["<<"]}]


SHARED = """\
pipeline: p
steps:
- &one {transform: &body {value: "[16, 2]", output: a}}
- for_each: &each
    over: a
    on_error: &policy retry(1)
    do: {tool: {name: t, args: &args {x: &list [0x1, {y: .5}], z: !expr item}}}
    collect: &all {transform: {value: pipe}}
    output: b
- for_each: {<<: *each, over: b, output: c}
- parallel: {on_error: *policy, branches: {d: *one, e: {transform: {<<: *body, output: f}}}, collect: *all}
- tool: {name: t, args: {<<: [*args, {z: 1, w: *list}], x: 3}}
"""
WRITTEN_OUT = """\
pipeline: p
steps:
- {transform: {value: "[16, 2]", output: a}}
- for_each:
    over: a
    on_error: retry(1)
    do: {tool: {name: t, args: {x: [1, {y: 0.5}], z: !expr item}}}
    collect: {transform: {value: pipe}}
    output: b
- for_each:
    over: b
    on_error: retry(1)
    do: {tool: {name: t, args: {x: [1, {y: 0.5}], z: !expr item}}}
    collect: {transform: {value: pipe}}
    output: c
- parallel:
    on_error: retry(1)
    branches: {d: {transform: {value: "[16, 2]", output: a}}, e: {transform: {value: "[16, 2]", output: f}}}
    collect: {transform: {value: pipe}}
- tool: {name: t, args: {x: 3, z: !expr item, w: [1, {y: 0.5}]}}
"""


def test_a_pipeline_that_shares_parts_is_the_one_that_is_written_out() -> None:
    shared, plain = (parse(Source.of(text)) for text in (SHARED, WRITTEN_OUT))
    assert shared.diagnostics == plain.diagnostics == ()
    assert shared.file and plain.file
    assert without_spans(shared.file) == without_spans(plain.file)
    again = parse(Source.of(write(shared.file)))
    assert again.file and without_spans(again.file) == without_spans(plain.file)


def test_a_mistake_in_a_shared_part_is_reported_once() -> None:
    text = "pipeline: p\nsteps:\n- &one {transform: {valeu: '1', output: a}}\n- *one\n- *one\n"
    found = parse(Source.of(text)).diagnostics
    assert [(one.code.id, text[one.span.start : one.span.end]) for one in found] == [
        ("PL012", "transform"),
        ("PL011", "valeu"),
    ]


def test_metadata_of_knowledge_and_hooks_share_parts() -> None:
    text = "```yaml\nname: &n a\ntitle: *n\nversion: 1.0.0\nentry_type: t\ntags: [*n]\n```\n\nText.\n"
    knowledge = read_knowledge(Source.of(text))
    assert (knowledge.diagnostics, knowledge.metadata["title"], knowledge.metadata["tags"]) == ((), "a", ["a"])
    hooks, problems = read_hooks_yaml(
        "hooks:\n- &h {id: one, event: after_step, action: &a {item_id: x, params: {n: 1}}}\n"
        "- {<<: *h, id: two}\n- {id: three, event: error, actions: [*a, *a]}\n",
        "hooks.yaml",
    )
    assert problems == ()
    assert [(hook.id, hook.event, len(hook.actions)) for hook in hooks] == [
        ("one", "after_step", 1),
        ("two", "after_step", 1),
        ("three", "error", 2),
    ]
    assert {dict(action.parameters)["n"] for hook in hooks for action in hook.actions} == {1}


LAUGHS = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 21))
PART = depth(4, 1)


def part(count: int) -> int:
    """A smaller text may take less time in proportion."""
    return count // PART


LONG = "{" + ", ".join(f"k{n}: 1" for n in range(part(9_000))) + "}"
HOSTILE = {
    "laughs": LAUGHS,
    "many laughs": "".join(f"---\n{LAUGHS}" for _ in range(100)),
    "merged laughs": "a0: &a0 {x: 1}\n"
    + "".join(
        f"a{n}: &a{n} {{<<: [{f'*a{n - 1}, ' * 9}], {', '.join(f'k{n}{at}: *a{n - 1}' for at in range(9))}}}\n"
        for n in range(1, 21)
    ),
    "long text": f"a: &a {'x' * 100_000}\nb: [{'*a, ' * part(24_000)}]\n",
    "long list": f"a: &a [{'1,' * part(50_000)}]\nb: [{'*a, ' * part(24_000)}]\n",
    "long mapping": f"a: &a {LONG}\nb: [{'{<<: *a}, ' * part(9_000)}]\n",
    "merged by one": f"a: &a {LONG}\nb: {{<<: [{'*a, ' * part(20_000)}]}}\n",
    "anchors": "".join(f"- &a{n} 1\n" for n in range(part(15_000))),
    "anchors with aliases": "".join(f"- &a{n} 1\n- *a{n}\n" for n in range(part(10_000))),
    "one anchor": "- &a 1\n" * part(27_000),
    "one anchor, many aliases": "- &a 1\n" + "- *a\n" * part(38_000),
    "aliases of nothing": "- *a\n" * part(38_000),
    "aliases as keys": "a: &a b\n" + "*a : 1\n" * part(25_000),
    "chain": "- &a0 [x]\n" + "".join(f"- &a{n} [*a{n - 1}]\n" for n in range(1, part(9_000))),
    "merge chain": "- &a0 {x: 1}\n" + "".join(f"- &a{n} {{<<: *a{n - 1}, k{n}: 1}}\n" for n in range(1, part(6_000))),
    "merge keys": "{" + "<<: {}, " * part(24_000) + "}",
    "merge lists": f"<<: [{'{}, ' * part(45_000)}]",
    "circles": "&a [" + "*a, " * part(48_000) + "]",
    "nested anchors": "".join(f"&a{n} [" for n in range(100)) + "1, " * part(60_000) + "]" * 100,
    "anchors of nothing": "[" + ", ".join(f"&a{n}" for n in range(part(20_000))) + "]",
}
SECONDS = 6.0 / PART


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_aliases_are_read_in_linear_time_and_memory(name: str) -> None:
    source = Source.of(HOSTILE[name])
    assert 1_000 < source.size <= MAX_DOCUMENT_BYTES
    with within(SECONDS):
        reading = read_yaml(source)
    assert sum(map(size, reading.documents)) <= MAX_DOCUMENT_BYTES


@pytest.mark.parametrize("name", HOSTILE)
def test_whoever_walks_hostile_aliases_is_not_kept_busy(name: str) -> None:
    inside = "\n      ".join(HOSTILE[name].split("---\n")[-1].splitlines())
    source = Source.of(f"pipeline: p\nsteps:\n- tool:\n    name: t\n    args:\n      {inside}")
    with within(SECONDS):
        found: list[Diagnostic] = []
        values = [
            encode(literal(one, found)) for one in read_yaml(source, limit=source.size + MAX_DOCUMENT_BYTES).documents
        ]
        check(source)
    assert sum(map(len, values)) < 6 * MAX_DOCUMENT_BYTES


@pytest.mark.parametrize("name", ["anchors", "anchors with aliases", "one anchor, many aliases"])
def test_many_anchors_are_no_mistake(name: str) -> None:
    assert read(HOSTILE[name]).diagnostics == ()


@pytest.mark.parametrize(
    "name", ["laughs", "many laughs", "merged laughs", "long text", "long list", "long mapping", "merged by one"]
)
def test_bombs_are_refused(name: str) -> None:
    assert {code for code, _ in problems(HOSTILE[name])} == {"YM008"}


LEAVES = st.none() | st.booleans() | st.integers() | st.sampled_from(["a", "on", "12:30", "*x", "&x", "<<", ""])
NAMES = st.sampled_from(["a", "b", "c", "<<", "*d"])


@st.composite
def sharing(draw: st.DrawFn) -> Value:
    """A value in which lists and mappings stand in several places, for which a dumper writes anchors and aliases."""
    pool: list[Value] = [draw(LEAVES)]
    for _ in range(draw(st.integers(1, 8))):
        part = st.sampled_from(pool) | LEAVES
        pool.append(draw(st.lists(part, max_size=3) | st.dictionaries(NAMES, part, max_size=3)))
    return pool


@settings(max_examples=depth(40, 200), deadline=None)
@given(value=sharing())
def test_shared_parts_come_back(value: Value) -> None:
    assert values_of(yaml.safe_dump(value)) == [value]


@st.composite
def merging(draw: st.DrawFn) -> str:
    """A list of mappings, each of which merges some of those before it."""
    lines: list[str] = []
    for number in range(draw(st.integers(1, 6))):
        keys = draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=3))
        parts = [f"{key}: {number}{at}" for at, key in enumerate(keys)]
        named = draw(st.lists(st.integers(0, number - 1), max_size=3)) if number else []
        if named:
            merged = ", ".join(f"*m{one}" for one in named)
            merged = merged if len(named) == 1 and draw(st.booleans()) else f"[{merged}]"
            parts.insert(draw(st.integers(0, len(parts))), f"<<: {merged}")
        lines.append(f"- &m{number} {{{', '.join(parts)}}}\n")
    return "".join(lines)


@settings(max_examples=depth(40, 200), deadline=None)
@given(text=merging())
def test_merging_is_that_of_the_safe_loader(text: str) -> None:
    assert values_of(text) == [yaml.safe_load(text)]

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.depth import depth
from tests.growth import within

from quire.diagnostics import Code, Diagnostic
from quire.formats.yaml import Mapping, Node, Scalar, Sequence, YamlReading, describe, label_of, literal, read_yaml
from quire.formats.yaml import codes as yaml_codes
from quire.formats.yaml import parser_events as yaml_events
from quire.source import Source, Span
from quire.values import Value


def read(text: str) -> YamlReading:
    return read_yaml(Source.of(text))


def value_of(text: str) -> Value:
    reading = read(text)
    assert reading.diagnostics == ()
    found: list[Diagnostic] = []
    value = literal(reading.documents[0], found)
    assert not found
    return value


def problems(text: str) -> list[tuple[str, str]]:
    """The code of each finding and the text that it points at."""
    reading = read(text)
    return [(one.code.id, reading.source.text[one.span.start : one.span.end]) for one in reading.diagnostics]


def below(node: Node) -> list[Node]:
    if isinstance(node, Scalar):
        return [node]
    if isinstance(node, Sequence):
        return [node, *(part for item in node.items for part in below(item))]
    return [node, *(part for one in node.entries for part in (one.key, *below(one.value)))]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("True", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("on", "on"),
        ("no", "no"),
        ("Yes", "Yes"),
        ("y", "y"),
        ("None", "None"),
        ("12:30", "12:30"),
        ("12:30:45", "12:30:45"),
        ("2026-01-01", "2026-01-01"),
        ("2026-01-01T12:30:00Z", "2026-01-01T12:30:00Z"),
        ("1_000", "1_000"),
        ("1,000", "1,000"),
        ("0b11", "0b11"),
        ("0o18", "0o18"),
        ("0O17", "0O17"),
        ("0x", "0x"),
        ("0xG", "0xG"),
        ("-0x1F", "-0x1F"),
        ("+0o7", "+0o7"),
        ("--1", "--1"),
        ("1.2.3", "1.2.3"),
        ("1e", "1e"),
        ("e3", "e3"),
        (".", "."),
        ("+.", "+."),
        (".e3", ".e3"),
        ("+", "+"),
        ("inf", "inf"),
        ("007", 7),
        ("-08", -8),
        ("+5", 5),
        ("0x1F", 31),
        ("0xdeadBEEF", 3735928559),
        ("0o17", 15),
        ("0o0", 0),
        (".5", 0.5),
        ("-.5", -0.5),
        ("+.5e1", 5.0),
        ("1.", 1.0),
        ("+1.", 1.0),
        ("1.e2", 100.0),
        ("007.5", 7.5),
        ("1E+3", 1000.0),
        ("NaN", "NaN"),
        ("Infinity", "Infinity"),
        ("0", 0),
        ("-0", 0),
        ("-17", -17),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("1.5", 1.5),
        ("2.0", 2.0),
        ("1e3", 1000.0),
        ("-1.5E-3", -0.0015),
        ("'true'", "true"),
        ('"3"', "3"),
        ("|\n  3", "3"),
        ("٣", "٣"),
        ('"a\\/\\u00e9"', "a/é"),
        ("{}", {}),
        ("[]", []),
        ("a: [1, {b: null}, ]", {"a": [1, {"b": None}]}),
        ("a:\n- 1\n-\n- b: 2", {"a": [1, None, {"b": 2}]}),
        ("a: >-\n  one\n  two", {"a": "one two"}),
        ("=: 1\nx: =", {"=": 1, "x": "="}),
        ("a: x#y", {"a": "x#y"}),
        ("a: x\u2028y\u0085z", {"a": "x\u2028y\u0085z"}),
        ("a: |\n  x\u0085y\n", {"a": "x\u0085y\n"}),
        ("a: \ue000\u2028", {"a": "\ue000\u2028"}),
    ],
)
def test_values(text: str, value: Value, loader: str) -> None:
    found = value_of(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("!!str 12", "12"),
        ("!!str true", "true"),
        ("{a: !!str }", {"a": ""}),
        ("[!!str ]", [""]),
        ("!!int '3'", 3),
        ("!!int 0x1F", 31),
        ("!!float 3", 3.0),
        ('!!float "1.5"', 1.5),
        ("!!bool 'true'", True),
        ("[!!null '']", [None]),
        ("!!null null", None),
        ("!!seq [1]", [1]),
        ("!!map {a: 1}", {"a": 1}),
        ("!!map\na: !!seq\n- 1", {"a": [1]}),
        ("{!!str 3: a}", {"3": "a"}),
        ("{!!str <<: a}", {"<<": "a"}),
        ("!<tag:yaml.org,2002:str> 12", "12"),
        ("%TAG !y! tag:yaml.org,2002:\n---\n!y!str 12", "12"),
    ],
)
def test_tags_of_yaml(text: str, value: Value, loader: str) -> None:
    found = value_of(text)
    assert (found, type(found)) == (value, type(value))
    assert value == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: b: c", [("YM001", ":")]),
        ("a:\n\t- b", [("YM001", "\t")]),
        ("a: @b", [("YM001", "@")]),
        ('a: "x', [("YM001", "")]),
        ("a: [", [("YM001", "")]),
        ("a: 1\nb", [("YM001", "")]),
        ("a: [\n---\nb: 'x\n---\nc: {", [("YM001", "-"), ("YM001", "-"), ("YM001", "")]),
        ("a: \x07", [("YM004", "\x07")]),
        ("a: \ud800", [("YM004", "\ud800")]),
        ("\ufeff\ufeffa: 1", [("YM004", "\ufeff")]),
        ("{é: 1, é: 2}", [("YM005", "é")]),
        ("a: 1\nb: 2\n'a': 3", [("YM005", "'a'")]),
        ("{1: a, 1: b}", [("YM005", "1")]),
        ("{{x.y}}: 1", [("YM006", "{{x.y}}"), ("YM006", "{x.y}")]),
        ("? [a]\n: 1", [("YM006", "[a]")]),
        ("!expr a: 1", [("YM006", "!expr a")]),
        ("a: !date 2026", [("YM009", "!date")]),
        ("a: !!binary aGk=", [("YM009", "!!binary")]),
        ("a: !!set {b}", [("YM009", "!!set")]),
        ("a: !!merge <<", [("YM009", "!!merge")]),
        ("a: !!str [b]", [("YM009", "!!str")]),
        ("a: !!seq {b: c}", [("YM009", "!!seq")]),
        ("a: !!map\n  - b", [("YM009", "!!map")]),
        ("a: !!map b", [("YM009", "!!map")]),
        ("a: !!int b", [("YM009", "!!int b")]),
        ("a: !!int 1.5", [("YM009", "!!int 1.5")]),
        ("a: !!int true", [("YM009", "!!int true")]),
        ("a: !!float b", [("YM009", "!!float b")]),
        ("a: !!bool yes", [("YM009", "!!bool yes")]),
        ("a: !!null b", [("YM009", "!!null b")]),
        ("a: !!float .inf", [("YM011", "!!float .inf")]),
        (f"a: !!float {'9' * 400}", [("YM011", f"!!float {'9' * 400}")]),
        ("a: !expr [b]", [("YM009", "!expr")]),
        ("a: [!foo b]", [("YM009", "!foo")]),
        ("a: ! b", [("YM009", "!")]),
        ("%TAG ! tag:x,\n---\na: !expr b", [("YM009", "!expr")]),
        ("a: [.inf, -.INF, .nan]", [("YM011", ".inf"), ("YM011", "-.INF"), ("YM011", ".nan")]),
        ("a: 1e999", [("YM011", "1e999")]),
        (f"a: 0x{'f' * 5000}", [("YM011", f"0x{'f' * 5000}")]),
        (f"a: 0o{'7' * 5000}", [("YM011", f"0o{'7' * 5000}")]),
    ],
)
def test_problems(text: str, expected: list[tuple[str, str]], loader: str) -> None:
    assert sorted(problems(text)) == sorted(expected)


def test_all_mistakes_of_all_documents_at_once() -> None:
    text = "a: 1\na: 2\nb: *x\n---\nc: [\n---\nd: !foo 1\n"
    assert [code for code, _ in problems(text)] == ["YM005", "YM008", "YM001", "YM009"]
    assert len(read(text).documents) == 2


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("a: b: c", "needs quotes"),
        ("a:\n\t- b", "spaces"),
        ("a: @b", "begins with @ in quotes"),
        ("x: 1\na: {b: [1,\n---\n", "the [ on line 2 may not be closed"),
        ("a: 'x\n---\n", "closing quote"),
        ("a: 1\n- b", "begin in one column"),
        ('a: "\\q"', "backslash"),
        ("a: *bold* text", "begins with * or & in quotes"),
        ("a: & b", "begins with * or & in quotes"),
    ],
)
def test_syntax_errors_help(text: str, help: str) -> None:
    [found] = read(text).diagnostics
    assert help in found.help


def test_duplicate_says_where_the_first_is() -> None:
    [found] = read("a: 1\nb: 2\na: 3").diagnostics
    assert (found.message, found.help) == ('the key "a" is here twice', "the first is on line 1")


def test_labels_of_keys_that_are_not_text() -> None:
    [mapping] = read("{true: 1, 3: 2, null: 3, 2.0: 4, yes: 5, 'False': 6, TRUE x: 7}").documents
    assert isinstance(mapping, Mapping)
    labels = [label_of(entry.key) for entry in mapping.entries]
    assert labels == ["True", "3", "None", "2.0", "yes", "False", "TRUE x"]


def test_keys_that_are_not_text_are_no_literals() -> None:
    [node] = read("{a: {3: x, true: y, b: z}, c: [!expr d]}").documents
    found: list[Diagnostic] = []
    assert literal(node, found) == {"a": {"b": "z"}, "c": [None]}
    assert [(one.code.id, one.message, one.help) for one in found] == [
        ("YM006", "a key must be text, not the number 3", 'write "3" if text is meant'),
        ("YM006", "a key must be text, not the boolean true", 'write "true" if text is meant'),
        ("YM010", "!expr cannot stand here: it marks the whole value of an argument", ""),
    ]


@pytest.mark.parametrize(
    ("written", "text", "body"),
    [
        ("!expr ctx.x", "ctx.x", "ctx.x"),
        ("!expr  'a + 1'", "a + 1", "'a + 1'"),
        ("!expr 12", "12", "12"),
        ("!expr true", "true", "true"),
        ("!expr", "", ""),
        ("!expr # why\n   ctx.x", "ctx.x", "ctx.x"),
        ("!expr |\n   a\n   + b", "a\n+ b", "|\n   a\n   + b"),
        ("!<!expr> a", "a", "a"),
    ],
)
def test_expr(written: str, text: str, body: str, loader: str) -> None:
    reading = read(f"é: {written}")
    assert reading.diagnostics == ()
    [mapping] = reading.documents
    assert isinstance(mapping, Mapping)
    node = mapping.get("é")
    assert isinstance(node, Scalar)
    assert (node.tag, node.value, node.text) == ("!expr", text, text)
    assert reading.source.text[node.body.start : node.body.end] == body
    assert node.span == Span(3, node.body.end)
    assert describe(node) == "an !expr"


def test_spans(loader: str) -> None:
    # The parser in Python takes a tab between tokens for an error.
    gap = "\t" if loader.startswith("C") else " "
    text = "# ü\n'ké': |  # c\n  a\n\n  b\n\n# after\n"
    text += f'list:\n  - [x,{gap}{{y: ü z }}]\n  -\nlast: "q\\n"\n\n# end\n...\n'
    reading = read(text)
    assert reading.diagnostics == ()
    [root] = reading.documents
    spans = [reading.source.text[node.span.start : node.span.end] for node in below(root)]
    assert spans == [
        text[4 : text.index("\n\n# end")],
        "'ké'",
        "|  # c\n  a\n\n  b",
        "list",
        f"- [x,{gap}{{y: ü z }}]\n  -",
        f"[x,{gap}{{y: ü z }}]",
        "x",
        "{y: ü z }",
        "y",
        "ü z",
        "",
        "last",
        '"q\\n"',
    ]


def test_crlf_and_byte_order_mark_do_not_move_spans(loader: str) -> None:
    reading = read("\ufeffa: 1\r\nb: |\r\n  x\r\n  y\r\nc: 'z'\r\n")
    [root] = reading.documents
    assert isinstance(root, Mapping)
    assert [reading.source.position(entry.key.span.start).line for entry in root.entries] == [1, 2, 5]
    assert [entry.value.value for entry in root.entries if isinstance(entry.value, Scalar)] == [1, "x\ny\n", "z"]


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("# only this\n", 0), ("---\n---\n", 0), ("a: 1\n---\n---\nb: 2\n", 2), ("~", 1)]
)
def test_empty_documents_are_left_out(text: str, count: int) -> None:
    reading = read(text)
    assert (len(reading.documents), reading.diagnostics) == (count, ())


def test_too_large() -> None:
    reading = read("a: " + "x" * 200_000)
    assert reading.documents == ()
    assert [one.code for one in reading.diagnostics] == [yaml_codes.TOO_LARGE]


def test_findings_about_unreadable_parts_are_dropped() -> None:
    reading = read("type: *x\nfields: 3")
    [mapping] = reading.documents
    assert isinstance(mapping, Mapping)
    later = [Diagnostic(yaml_codes.KEY, "later", entry.value.span) for entry in mapping.entries]
    assert [one.code.id for one in reading.with_findings(later)] == ["YM008", "YM006"]


@pytest.mark.parametrize("depth", [100, 101])
@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_depth(opening: str, depth: int) -> None:
    closing = {"[": "]", "{a: ": "}"}.get(opening, "")
    found = [code for code, _ in problems(opening * depth + "x" + closing * depth)]
    assert ("YM003" in found) == (depth > 100)


PART = depth(2, 1)


def part(count: int) -> int:
    """Half of a text has a quarter of the time, which is what quadratic work would take of it."""
    return count // PART


HOSTILE = {
    "flow": "[" * part(190_000),
    "block": "- " * part(90_000),
    "pairs": "{a: " * part(45_000),
    "keys": "".join(f"k{i}: 1\n" for i in range(part(18_000))),
    "same key": "a: 1\n" * part(38_000),
    "tags": "- !a 1\n" * part(27_000),
    "documents": "---\n" * part(48_000),
    "broken documents": "--- [\n" * part(30_000),
    "digits": "- " + "9" * part(190_000),
    "quote": '"' + "\n" * part(190_000),
    "breaks": "a: |\n" + "\n" * part(190_000),
    "blocks": "- |\n\n" * part(38_000),
    "directives": "".join(f"%TAG !a{i}! x\n" for i in range(part(10_000))) + "--- a",
    "controls": "\x07" * part(190_000),
    "foreign breaks": "\u2028" * part(60_000),
    "complex keys": "? []\n" * part(38_000),
}


# Many times what the slowest takes; quadratic work on the whole texts would take minutes.
SECONDS = 6.0 / PART**2


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_read_in_linear_time(name: str) -> None:
    source = Source.of(HOSTILE[name])
    assert 800 < source.size < 200_000
    with within(SECONDS):
        read_yaml(source)


PIECES = [
    "a",
    ": ",
    "- ",
    "\n",
    "\n  ",
    "[",
    "]",
    "{",
    "}",
    ",",
    "'",
    '"',
    "!expr ",
    "!x ",
    "&a ",
    "&b ",
    "*a ",
    "*b ",
    "!!str ",
    "<<: *a",
    "| ",
    ">",
    "#",
    "? ",
]
PIECES += [
    "\t",
    "---\n",
    "...\n",
    "%YAML 1.2\n",
    "é",
    "\u2028",
    "\x85",
    "\ufeff",
    "\x07",
    "\ud800",
    "\\",
    "1",
    "<<",
    "~",
    "`",
]


@pytest.mark.parametrize("name", ["CSafeLoader", "SafeLoader"])
@settings(max_examples=depth(60, 300), deadline=None)
@given(text=st.one_of(st.lists(st.sampled_from(PIECES), max_size=40).map("".join), st.text(max_size=60)))
@example(text='"\\ud800"')
@example(text='"\\U00110000"')
@example(text="%YAML 1." + "9" * 5000 + "\n---\na")
def test_any_text_is_read(name: str, text: str) -> None:
    if not hasattr(yaml, name):
        pytest.skip("the C parser was not built here")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_events, "_LOADER", getattr(yaml, name))
        reading = read(text)
    size = len(reading.source.text)
    for one in reading.diagnostics:
        assert 0 <= one.span.start <= one.span.end <= size
    assert list(reading.diagnostics) == sorted(reading.diagnostics, key=lambda one: (one.span.start, one.span.end))
    for document in reading.documents:
        whole = document.span
        for node in below(document):
            assert whole.start <= node.span.start <= node.span.end <= whole.end or node.span.start == node.span.end
            if isinstance(node, Scalar):
                assert node.span.start <= node.body.start <= node.body.end == node.span.end
                if node.style == "plain" and "\n" not in reading.source.text[node.body.start : node.body.end]:
                    written = reading.source.text[node.body.start : node.body.end]
                    assert node.text == written


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=depth(40, 200), deadline=None)
@given(value=JSON)
def test_json_is_yaml(value: Value) -> None:
    text = json.dumps(value, ensure_ascii=False)
    reading = read(text)
    if any(one.code is yaml_codes.CHARACTER for one in reading.diagnostics):
        return
    assert value_of(text) == value


# Text like `0E0` needs quotes in YAML 1.2 but not in 1.1, which is what is dumped here.
WORDS = st.text(st.characters(exclude_categories=["Nd", "Cs"]), max_size=8)
DUMPED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=depth(40, 200), deadline=None)
@given(value=DUMPED)
def test_dumped_yaml_comes_back(value: Value) -> None:
    assert value_of(yaml.safe_dump(value, allow_unicode=False)) == value


ILLUSTRATED = {"YM002", "YM003", "YM004"}
"""Pages whose wrong example is only told: it would be too large, or invisible."""


@pytest.mark.parametrize("code", yaml_codes.codes(), ids=lambda code: code.id)
def test_examples_of_pages_are_true(code: Code) -> None:
    parts = code.explanation.split("Wrong:\n\n")[1].split("\n\nRight:\n\n")
    ids: list[set[str]] = []
    for part in parts:
        reading = read("\n".join(line[4:] for line in part.split("\n")))
        found: list[Diagnostic] = []
        for document in reading.documents:
            literal(document, found)
        ids.append({one.code.id for one in reading.with_findings(found)})
    assert code.id in ids[0] or code.id in ILLUSTRATED
    # The right place of an `!expr` is not that of a literal either; only the reader of steps can tell.
    assert ids[1] - {"YM010"} == set()

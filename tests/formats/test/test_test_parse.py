"""A test file is read into its tree: settings with their defaults, scripts, acts, rows, and expectations."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import UNSET
from tests.formats.test.readings import SAMPLES, case_of, file_of

from quire.formats.test import expected as e
from quire.formats.test.expected import Matcher, counts
from quire.formats.test.syntax import ActKind, Entry, ScriptedError


def matchers_of(lines: str) -> list[tuple[str, str, Matcher]]:
    expect = case_of(f"expect: {lines}").expect
    assert expect is not None
    return [(check.subject, check.name, bare(check.matcher)) for check in expect.checks]


def bare(matcher: Matcher) -> Matcher:
    """A matcher without its positions."""
    match matcher:
        case e.Equal(value=value):
            return e.Equal(value)
        case e.Contains(parts=parts, negated=negated):
            return e.Contains(parts, negated)
        case e.Matches(pattern=pattern):
            return e.Matches(pattern)
        case e.JsonAt(paths=paths):
            return e.JsonAt(tuple((path, bare(one)) for path, one in paths))
        case e.FitsSchema(schema=schema):
            return e.FitsSchema(schema)
        case e.Limit(bound=bound, least=least):
            return e.Limit(bound, least)
        case e.OneOf(matchers=matchers):
            return e.OneOf(tuple(map(bare, matchers)))
        case e.AllOf(matchers=matchers):
            return e.AllOf(tuple(map(bare, matchers)))
        case e.Items(matcher=one, every=every):
            return e.Items(bare(one), every)
        case e.Listed(matchers=matchers):
            return e.Listed(tuple(map(bare, matchers)))
        case e.Fields(fields=fields):
            return e.Fields(tuple((name, bare(one)) for name, one in fields))
        case e.Absent(wanted=wanted):
            return e.Absent(wanted)
        case e.Snapshot():
            return e.Snapshot()
        case e.Holds(formula=formula):
            return e.Equal(f"!expr {formula.text}")


EXPECTED: dict[str, list[tuple[str, str, Matcher]]] = {
    "{status: failed, exit: 3}": [("status", "", e.Equal("failed")), ("exit", "", e.Equal(3))],
    "{output: null}": [("output", "", e.Equal(None))],
    "{output: {a: [1, {b: c}]}}": [("output", "", e.Equal({"a": [1, {"b": "c"}]}))],
    "{output: {contains: a}}": [("output", "", e.Contains(("a",)))],
    "{output: {not_contains: [a, b]}}": [("output", "", e.Contains(("a", "b"), True))],
    "{output: {contains: a, matches: b+}}": [("output", "", e.AllOf((e.Contains(("a",)), e.Matches("b+"))))],
    "{output: {json: {a.b: {most: 2}}}}": [("output", "", e.JsonAt((("a.b", e.Limit(2)),)))],
    "{output: {schema: {type: object}}}": [("output", "", e.FitsSchema({"type": "object"}))],
    "{output: {any: [a, {contains: b}]}}": [("output", "", e.OneOf((e.Equal("a"), e.Contains(("b",)))))],
    "{output: {all: [a]}}": [("output", "", e.AllOf((e.Equal("a"),)))],
    "{output: {any: {contains: b}}}": [("output", "", e.Items(e.Contains(("b",)), False))],
    "{output: {all: a}}": [("output", "", e.Items(e.Equal("a"), True))],
    "{output: {absent: true}}": [("output", "", e.Absent())],
    '{output: !expr "value > 1"}': [("output", "", e.Equal("!expr value > 1"))],
    "{output: [a, !snapshot , c]}": [("output", "", e.Listed((e.Equal("a"), e.Snapshot(), e.Equal("c"))))],
    "{output: {a: b, c: {least: 1}}}": [
        ("output", "", e.Fields((("a", e.Equal("b")), ("c", e.Limit(1, True))))),
    ],
    "{named: {best: x, other: {absent: true}}}": [
        ("named", "best", e.Equal("x")),
        ("named", "other", e.Absent()),
    ],
    "{stores: {contains: x}}": [("stores", "contains", e.Equal("x"))],
    "{stores: !snapshot }": [("stores", "", e.Snapshot())],
    "{prompts: !snapshot }": [("prompts", "", e.Snapshot())],
    "{asked: {any: [a, b]}}": [("asked", "", e.OneOf((e.Equal("a"), e.Equal("b"))))],
    "{asked: [a]}": [("asked", "", e.Listed((e.Equal("a"),)))],
    '{prompts: {1: {contains: a}, "2": b}}': [
        ("prompts", "1", e.Contains(("a",))),
        ("prompts", "2", e.Equal("b")),
    ],
    '{prompts: {"1": [a, {contains: b}], "2": []}}': [
        ("prompts", "1", e.Listed((e.Equal("a"), e.Contains(("b",))))),
        ("prompts", "2", e.Listed(())),
    ],
    "{steps: {3a: completed}}": [("steps", "3a", e.Equal("completed"))],
    "{calls: {a: 0}}": [("calls", "a", e.Equal(0))],
    "{calls: {a: {most: 2, least: 1}}}": [("calls", "a", e.AllOf((e.Limit(2), e.Limit(1, True))))],
    "{calls: {a: [{x: 1}, {y: {contains: b}}]}}": [
        ("calls", "a", e.Listed((e.Equal({"x": 1}), e.Fields((("y", e.Contains(("b",))),))))),
    ],
    "{calls: {a: {x: 1}}}": [("calls", "a", e.Equal({"x": 1}))],
    "{calls: {a: {json: {x: 1}}}}": [("calls", "a", e.JsonAt((("x", e.Equal(1)),)))],
    "{refused: [a]}": [("refused", "", e.Equal(["a"]))],
    "{warnings: []}": [("warnings", "", e.Listed(()))],
    "{events: {any: {json: {type: a}}}}": [
        ("events", "", e.Items(e.JsonAt((("type", e.Equal("a")),)), False)),
    ],
    "{files: {a.txt: null, b/c: x}}": [("files", "a.txt", e.Absent()), ("files", "b/c", e.Equal("x"))],
    "{used: {cost: {most: 0.5}, turns: 3}}": [("used", "cost", e.Limit(0.5)), ("used", "turns", e.Equal(3))],
    "{that: [!expr \"count(calls) == 1\", 'row.x']}": [
        ("that", "", e.Equal("!expr count(calls) == 1")),
        ("that", "", e.Equal("!expr row.x")),
    ],
}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_samples_have_no_findings(path: Path) -> None:
    assert len(file_of(path.read_text(encoding="utf-8")).cases) >= 3


@pytest.mark.parametrize("lines", EXPECTED)
def test_expectations(lines: str) -> None:
    assert matchers_of(lines) == EXPECTED[lines]


@pytest.mark.parametrize(
    ("lines", "counted"),
    [("0", True), ("{most: 1}", True), ("{most: 2, least: 1}", True), ("[]", False), ("{a: 1}", False)],
)
def test_matchers_of_calls_count_or_look_at_arguments(lines: str, counted: bool) -> None:
    ((_, _, matcher),) = matchers_of(f"{{calls: {{a: {lines}}}}}")
    assert counts(matcher) is counted


def test_a_check_points_at_its_name() -> None:
    text = "cases: [{name: a, expect: {named: {best: x}}}]"
    (case,) = file_of(text).cases
    assert case.expect is not None
    (check,) = case.expect.checks
    assert text[check.span.start : check.span.end] == "best"
    assert text[check.matcher.span.start : check.matcher.span.end] == "x"


def entries_of(lines: str) -> list[Entry]:
    script = case_of(lines).setting.model
    assert script is not None
    return list(script.entries)


REPLIES: dict[str, list[dict[str, object]]] = {
    "model: [a, b]": [{"reply": "a", "in_order": True}, {"reply": "b"}],
    "model: {1: a, 3a: [b, {reply: c, times: any}]}": [
        {"step": "1", "reply": "a", "times": 1, "in_order": False},
        {"step": "3a", "reply": "b"},
        {"step": "3a", "reply": "c", "times": None},
    ],
    'model: {"2>1": a}': [{"step": "2 › 1"}],
    "model: {default: a}": [{"step": "", "is_default": True, "times": None, "reply": "a"}],
    "model: {1.do: [{item: 1, reply: a}]}": [{"step": "1.do", "item": 1}],
    "model: [{default: {a: 1}}]": [{"is_default": True, "times": None, "reply": '{"a":1}'}],
    "model: [{reply: [1, null]}]": [{"reply": "[1,null]"}],
    "model: [{step: 1.10, reply: a}]": [{"step": "1.10"}],
    "model: [{path: 1/0, thread: t, turn: 2, item: 0, contains: x, reply: a}]": [
        {"path": "1/0", "thread": "t", "turn": 2, "item": 0, "contains": "x", "in_order": False},
    ],
    "model: [{error: {kind: rate_limit, transient: true}}]": [
        {"error": ScriptedError("rate_limit", "a scripted failure of kind rate_limit", True)},
    ],
    "model: [{error: no}]": [{"error": ScriptedError("model", "no")}],
    "model: [{crash: before}, {crash: after, reply: a}]": [{"crash": "before"}, {"crash": "after", "reply": "a"}],
    "model: [{reply: a, delay_ms: 20, usage: {cost: 0.5}, finish_reason: length}]": [
        {"delay": 0.02, "usage": {"cost": 0.5}, "finish_reason": "length"},
    ],
    "model: [{text: hm, tool_calls: [{name: t, input: {a: 1}}, {name: u}]}]": [
        {"reply": "hm", "calls": (("t", {"a": 1}), ("u", {}))},
    ],
}


@pytest.mark.parametrize("lines", REPLIES)
def test_replies(lines: str) -> None:
    entries = entries_of(lines)
    assert len(entries) == len(REPLIES[lines])
    for entry, wanted in zip(entries, REPLIES[lines], strict=True):
        assert {name: getattr(entry, name) for name in wanted} == wanted


def test_tools() -> None:
    tools = case_of(
        "tools:\n"
        "  a: real\n"
        "  b: {returns: null, times: 2, class: read}\n"
        "  c: {sequence: [{raises: no}, {echo: true, delay_ms: 5}]}\n"
        "  d: {when: [{args: {x: 1}, returns: one}], else: {returns: other}}\n"
        "  e: {real: true, crash: after}\n"
        "  f: {crash: before}"
    ).setting.tools
    assert tools["a"].real and tools["a"].returns is UNSET
    assert (tools["b"].returns, tools["b"].times, tools["b"].effect) == (None, 2, "read")
    first, second = tools["c"].sequence
    assert first.raises == ScriptedError("tool", "no") and second.echo and second.delay == 0.005
    ((arguments, script),) = tools["d"].when
    assert arguments == {"x": 1} and script.returns == "one"
    assert tools["d"].otherwise is not None and tools["d"].otherwise.returns == "other"
    assert tools["e"].real and tools["e"].crash == "after"
    assert tools["f"].crash == "before"


def test_answers() -> None:
    answers = case_of('answers: {2: [yes, false, 7], "3>1": {answer: true, after: 30h, by: ada}}').setting.answers
    assert [answer.value for answer in answers["2"]] == ["yes", "no", "7"]
    (late,) = answers["3 › 1"]
    assert (late.value, late.after, late.by) == ("yes", 108_000, "ada")


def test_the_rest_of_a_setting() -> None:
    setting = case_of(
        "files: {a/b.txt: text, c: {file: d.txt}, e: null}\n"
        "allow: [shell]\nlimits: {turns: 3}\nconfig: {runs: {expiry: 1h}}\nunattended: true\n"
        "clock: 2026-01-31T09:00:00Z\ncassette: true"
    ).setting
    assert {path: (one.text, one.copy_of) for path, one in setting.files.items()} == {
        "a/b.txt": ("text", ""),
        "c": (None, "d.txt"),
        "e": (None, ""),
    }
    assert (setting.allow, setting.limits, setting.config) == (("shell",), {"turns": 3}, {"runs": {"expiry": "1h"}})
    assert (setting.unattended, setting.clock, setting.cassette) == (True, "2026-01-31T09:00:00Z", True)


DEFAULTS = """
defaults:
  inputs: {a: 1, b: 2}
  model: {"1": shared, "2": also}
  tools: {t: real, u: real}
  answers: {"2": "yes"}
  files: {f: x}
  allow: [net]
  unattended: true
cases:
  - name: takes all
  - name: overrides by key
    inputs: {b: 3}
    model: {"2": own}
    tools: {u: {echo: true}}
    answers: {"3": "no"}
    allow: []
    unattended: false
  - name: a list replaces
    model: [one]
"""


def test_defaults_are_merged_by_key() -> None:
    whole, own, listed = (case.setting for case in file_of(DEFAULTS).cases)
    assert whole.inputs == {"a": 1, "b": 2} and own.inputs == {"a": 1, "b": 3}
    replies = [[(one.step, one.reply, one.shared) for one in case.model.entries] for case in (whole, own) if case.model]
    assert replies == [[("1", "shared", True), ("2", "also", True)], [("1", "shared", True), ("2", "own", False)]]
    assert listed.model is not None and [one.reply for one in listed.model.entries] == ["one"]
    assert own.tools["t"].shared and not own.tools["u"].shared and own.tools["u"].echo
    assert own.answers.keys() == {"2", "3"} and own.answers["2"][0].shared
    assert own.files.keys() == {"f"}
    assert (whole.allow, own.allow) == (("net",), ()) and (whole.unattended, own.unattended) == (True, False)


def test_positions_of_a_setting() -> None:
    text = "cases: [{name: a, inputs: {tone: x}, files: {notes.txt: y}}]"
    spans = file_of(text).cases[0].setting.spans
    assert {name: text[span.start : span.end] for name, span in spans.items()} == {
        "inputs": "inputs",
        "inputs.tone": "tone",
        "files": "files",
        "files.notes.txt": "notes.txt",
    }


def test_acts() -> None:
    acts = case_of(
        "then:\n"
        '  - {answer: {"2": "yes"}, expect: {status: completed}}\n'
        "  - {resume: {limit: {turns: 8}, budget: 1}, model: [a], tools: {t: real}}\n"
        "  - {resume: }\n"
        "  - {fork: {from: 2, set: {a: 1}}}\n"
        "  - {cancel: true}\n"
        "  - {advance: 48h}\n"
        "  - {edit: {x.yaml: new}}\n"
    ).then
    assert [act.kind for act in acts] == [
        ActKind.ANSWER,
        ActKind.RESUME,
        ActKind.RESUME,
        ActKind.FORK,
        ActKind.CANCEL,
        ActKind.ADVANCE,
        ActKind.EDIT,
    ]
    assert acts[0].answers["2"][0].value == "yes" and acts[0].expect is not None
    assert acts[1].options == {"limit": {"turns": 8}, "budget": 1} and acts[1].model and acts[1].tools["t"].real
    assert acts[3].options == {"from": "2", "set": {"a": 1}}
    assert acts[5].seconds == 172_800
    assert acts[6].edits["x.yaml"].text == "new"


def test_rows() -> None:
    rows = case_of("each: [{a: 1}]\nmatrix: {tone: [warm, dry]}").rows
    assert rows is not None and (rows.rows, rows.matrix) == (({"a": 1},), {"tone": ("warm", "dry")})
    listed = case_of("each: data/rows.jsonl").rows
    assert listed is not None and listed.file == "data/rows.jsonl"


def test_the_rest_of_a_case() -> None:
    case = case_of(
        "tags: [slow]\ntodo: later\nskip: never\nflaky: often\ncrash: everywhere\n"
        "live: {pass: 0.9, repeat: 5, judge: {rubric: j.judge.yaml}, tools: real, cost: 1, seconds: 2}"
    )
    assert (case.tags, case.todo, case.skip, case.flaky, case.crash_everywhere) == (
        ("slow",),
        "later",
        "never",
        "often",
        True,
    )
    assert case.live is not None and case.live.judge is not None
    assert (case.live.passes, case.live.repeat, case.live.tools, case.live.judge.rubric) == (
        0.9,
        5,
        "real",
        "j.judge.yaml",
    )
    assert case.expect is None and not case.draft


def test_a_draft() -> None:
    case = case_of("expect: todo")
    assert case.draft and case.expect is None


def test_the_file() -> None:
    file = file_of(
        "document: a.yaml\nabout: why\nalways: [!expr \"value != ''\"]\ncoverage: {arms: 90}\ncases: [{name: a}]"
    )
    assert file.document is not None and file.document.text == "a.yaml"
    assert (file.about, [one.text for one in file.always], file.coverage) == ("why", ["value != ''"], {"arms": 90})


def test_an_anchor_is_used_twice() -> None:
    file = file_of("cases:\n  - {name: a, inputs: &i {x: 1}}\n  - {name: b, inputs: *i}\n")
    assert [case.setting.inputs for case in file.cases] == [{"x": 1}, {"x": 1}]

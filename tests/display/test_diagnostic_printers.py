"""What the printers print."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from quire.diagnostics import Code, Diagnostic, Edit, Fix, Related, Severity, replacing
from quire.display.diagnostics import FORMATS, Findings, FormatName, printer
from quire.display.visible import visible, width
from quire.source import NOWHERE, Source, Span

ERROR = Code("PB005", "duplicate-input", Severity.ERROR, "What it is.\n\nWhy.")
LINT = Code("PB201", "unresolved-placeholder", Severity.LINT, "What.\n\nWhy.")
NOTE = Code("PB303", "text-before-title", Severity.NOTE, "What.\n\nWhy.")


def findings(text: str, *found: Diagnostic, name: str = "a.playbook.md") -> list[Findings]:
    return [Findings(Source.of(text, name), found)]


def show(name: FormatName, files: Sequence[Findings], colour: bool = False) -> str:
    return printer(name)(files, colour)


TEXT = "# T\n\n- `a` (string)\n- `a` (text)\n"
TWICE = Diagnostic(ERROR, 'Duplicate input name: "a"', Span(23, 24), "declared again here", "it is on line 3")
WHOLE = Diagnostic(NOTE, "About the whole document", NOWHERE)


STEPS = "steps:\n  - tool: {name: http__get, output: page}\n" + "\n" * 7 + "  - shell: [sh, ctx.page]\n"
SINK = STEPS.index("ctx.page")
CALLEE = Source.of("# Callee\n\nRead {{page}}.\n", "callee.md")
FLOW = Diagnostic(
    Code("TA101", "outside-to-command", Severity.WARNING, "What.\n\nWhy."),
    "text from outside reaches a command",
    Span(SINK, SINK + 8),
    "argv[1]",
    "quote it",
    related=(
        Related(Span(18, 27), "text from outside", node="1 http__get"),
        Related(Span(18, 27), "page holds it", node="page"),
        Related(Span(15, 23), "read by the model", CALLEE, "2 callee"),
        Related(Span(SINK, SINK + 8), "run", node="3 shell argv[1]"),
        Related(Span(9, 10), "not on the path"),
    ),
    confidence="possible",
)


def test_full_prints_the_path_and_its_places() -> None:
    assert show("full", findings(STEPS, FLOW, name="p.yaml")) == (
        "warning[TA101]: text from outside reaches a command (possible)\n"
        "  --> p.yaml:10:17\n"
        "   |\n"
        "10 |   - shell: [sh, ctx.page]\n"
        "   |                 ^^^^^^^^ argv[1]\n"
        "  ::: p.yaml:2:12\n"
        "   |\n"
        " 2 |   - tool: {name: http__get, output: page}\n"
        "   |            --------- 1 http__get → page: text from outside\n"
        "  ::: callee.md:3:6\n"
        "   |\n"
        " 3 | Read {{page}}.\n"
        "   |      -------- 2 callee: read by the model\n"
        "  ::: p.yaml:2:3\n"
        "   |\n"
        " 2 |   - tool: {name: http__get, output: page}\n"
        "   |   - not on the path\n"
        "   = path: 1 http__get → page → 2 callee → 3 shell argv[1]\n"
        "   = help: quote it\n"
        "\n"
    )


def test_a_long_path_is_cut_in_the_middle() -> None:
    related = tuple(Related(Span(at, at + 1), "", node=f"n{at}") for at in range(1, 31))
    text = show("full", findings("x" * 40, Diagnostic(LINT, "m", Span(0, 1), related=related)))
    assert "= path: n1 → n2 → n3 → n4 → n5 → n6 → … → n25 → n26 → n27 → n28 → n29 → n30\n" in text
    assert "= more: 10 places are not shown\n" in text
    assert text.count(":::") == 20


@pytest.mark.parametrize(
    ("fix", "line"),
    [
        (replacing(Span(23, 24), "a", "b"), "  = fix: replace a with b  (quire check --fix)\n"),
        (Fix("drop \x1bit", (Edit(Span(23, 24), "a", ""),), safe=False),
         "  = fix: drop ␛it  (quire check --fix --unsafe)\n"),
        (replacing(Span(23, 24), "c", "b"), ""),
    ],
)  # fmt: skip
def test_full_prints_what_a_fix_does(fix: Fix, line: str) -> None:
    text = show("full", findings(TEXT, Diagnostic(ERROR, "m", Span(23, 24), "", "h", fix)))
    assert text.partition("  = help: h\n")[2] == f"{line}\n"


def test_one_line_has_the_path_and_the_confidence() -> None:
    path = "[1 http__get → page → 2 callee → 3 shell argv[1]]"
    files = findings(STEPS, FLOW, name="p.yaml")
    message = f"text from outside reaches a command (possible) {path}"
    assert show("concise", files) == f"p.yaml:10:17: TA101 warning: {message}\n"
    assert show("github", files) == (
        f"::warning file=p.yaml,line=10,col=17,endColumn=25,title=TA101 outside-to-command::{message} (quote it)\n"
    )


def test_json_has_the_path_and_the_fixes() -> None:
    edit = {"line": 10, "column": 17, "old": "ctx.page", "new": "ctx.p"}
    safe = replacing(FLOW.span, "ctx.page", "ctx.p")
    (flow,) = json.loads(show("json", findings(STEPS, replace(FLOW, fix=safe), name="p.yaml")))
    assert flow["confidence"] == "possible"
    assert flow["fix"] == [edit]
    assert flow["fixes"] == [{"title": "replace ctx.page with ctx.p", "safe": True, "edits": [edit]}]
    places = [(one["file"], one["line"], one["column"], one["end_column"], one["node"]) for one in flow["related"]]
    assert places[0] == ("p.yaml", 2, 12, 21, "1 http__get")
    assert places[2] == ("callee.md", 3, 6, 14, "2 callee")
    assert flow["related"][4] == {
        "file": "p.yaml",
        "line": 2,
        "column": 3,
        "end_line": 2,
        "end_column": 4,
        "message": "not on the path",
        "node": "",
    }


def test_json_lists_an_unsafe_fix_apart_from_the_certain_edits() -> None:
    unsafe = Fix("drop it", (Edit(FLOW.span, "ctx.page", ""),), safe=False)
    (flow,) = json.loads(show("json", findings(STEPS, replace(FLOW, fix=unsafe), name="p.yaml")))
    assert flow["fix"] == []
    assert [(one["title"], one["safe"]) for one in flow["fixes"]] == [("drop it", False)]


def test_full() -> None:
    assert show("full", findings(TEXT, TWICE, WHOLE)) == (
        'error[PB005]: Duplicate input name: "a"\n'
        " --> a.playbook.md:4:4\n"
        "  |\n"
        "4 | - `a` (text)\n"
        "  |    ^ declared again here\n"
        "  = help: it is on line 3\n"
        "\n"
        "note[PB303]: About the whole document\n"
        " --> a.playbook.md:1:1\n"
        "\n"
    )


@pytest.mark.parametrize(
    ("line", "span", "shown", "carets"),
    [
        ("\tx {{a}}", (3, 8), "    x {{a}}", "      ^^^^^"),
        ("漢字 {{a}}", (3, 8), "漢字 {{a}}", "     ^^^^^"),
        ("e\u0301 {{漢}}", (3, 8), "e\u0301 {{漢}}", "  ^^^^^^"),
        ("\x1b[31m {{a}}", (6, 11), "␛[31m {{a}}", "      ^^^^^"),
        ("\u202e{{a}}", (1, 6), "\\u202e{{a}}", "      ^^^^^"),
        ("x" * 300 + "{{a}}" + "y" * 300, (300, 305), "…" + "x" * 40 + "{{a}}" + "y" * 55 + "…", " " * 41 + "^^^^^"),
        ("{" * 500, (0, 500), "{" * 100 + "…", "^" * 100),
        ("ab\ncd", (1, 5), "ab", " ^"),
        ('value: "1 +"', (11, 11), 'value: "1 +"', " " * 11 + "^"),
    ],
)
def test_full_marks_the_right_columns(line: str, span: tuple[int, int], shown: str, carets: str) -> None:
    lines = show("full", findings(line, Diagnostic(LINT, "m", Span(*span)))).split("\n")
    assert lines[3:5] == [f"1 | {shown}", f"  | {carets}"]


def test_colour_only_when_asked() -> None:
    plain, painted = (show("full", findings(TEXT, TWICE), colour) for colour in (False, True))
    assert "\x1b" not in plain
    assert "\x1b[1;31merror[PB005]\x1b[0m" in painted


def test_concise() -> None:
    assert show("concise", findings(TEXT, TWICE, WHOLE)) == (
        'a.playbook.md:4:4: PB005 error: Duplicate input name: "a"\n'
        "a.playbook.md:1:1: PB303 note: About the whole document\n"
    )


def test_json() -> None:
    assert json.loads(show("json", findings(TEXT, TWICE))) == [
        {
            "file": "a.playbook.md",
            "line": 4,
            "column": 4,
            "end_line": 4,
            "end_column": 5,
            "code": "PB005",
            "name": "duplicate-input",
            "severity": "error",
            "confidence": "proven",
            "message": 'Duplicate input name: "a"',
            "label": "declared again here",
            "help": "it is on line 3",
            "fix": [],
            "fixes": [],
            "related": [],
        }
    ]
    assert json.loads(show("json", [])) == []


def test_github() -> None:
    odd = Diagnostic(LINT, "50%\n::error::x", Span(0, 1))
    assert show("github", findings(TEXT, TWICE, odd, WHOLE, name="a,b:c.md")) == (
        "::error file=a%2Cb%3Ac.md,line=4,col=4,endColumn=5,title=PB005 duplicate-input"
        '::Duplicate input name: "a" (it is on line 3)\n'
        "::warning file=a%2Cb%3Ac.md,line=1,col=1,endColumn=2,title=PB201 unresolved-placeholder"
        "::50%25%0A::error::x\n"
        "::notice file=a%2Cb%3Ac.md,line=1,col=1,title=PB303 text-before-title::About the whole document\n"
    )


@pytest.mark.parametrize("form", FORMATS)
def test_no_printer_lets_a_control_character_through(form: FormatName) -> None:
    evil = "\x1b]0;x\x07 \x9b31m \u202e \ud800 {{a}}"
    text = show(form, findings(evil, Diagnostic(ERROR, evil, Span(0, 3), evil, evil), name=f"{evil}.md"))
    raw = json.dumps(json.loads(text), ensure_ascii=False) if form in ("json", "sarif") else text
    assert not any(sign in raw for sign in "\x1b\x07")
    assert "\ud800" not in text
    text.encode()


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("漢字", 4), ("e\u0301", 1), ("", 0)])
def test_width(text: str, columns: int) -> None:
    assert width(text) == columns


def test_visible_keeps_what_can_be_seen() -> None:
    assert visible("Überprüfung 🚀 ok") == "Überprüfung 🚀 ok"
    assert visible("a\tb\x00\x7f\x85\u2028") == "a␉b␀␡\\x85\\u2028"

"""What the printers print."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from quire.diagnostics import Code, Diagnostic, Severity
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
            "message": 'Duplicate input name: "a"',
            "label": "declared again here",
            "help": "it is on line 3",
            "fix": [],
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


def test_sarif() -> None:
    log = json.loads(show("sarif", findings(TEXT, WHOLE, TWICE, TWICE, name="dir/a b.md")))
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["PB005", "PB303"]
    assert rules[0]["shortDescription"] == {"text": "What it is."}
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    assert [result["level"] for result in run["results"]] == ["note", "error", "error"]
    assert run["results"][1]["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "dir/a%20b.md"},
                "region": {"startLine": 4, "startColumn": 4, "endLine": 4, "endColumn": 5},
            }
        }
    ]


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

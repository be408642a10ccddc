"""SARIF logs have the form of SARIF 2.1.0, and everything that a finding says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import jsonschema_rs
import pytest
from msgspec.structs import replace

from quire.diagnostics import Code, Diagnostic, Edit, Fix, Related, Severity
from quire.display.diagnostics import Findings
from quire.display.report_formats import render
from quire.source import NOWHERE, Source, Span
from quire.values import Value

ERROR = Code("PB005", "duplicate-input", Severity.ERROR, "What it is.\n\nWhy.")
NOTE = Code("PB303", "text-before-title", Severity.NOTE, "What.\n\nWhy.")
TEXT = "# T\n\n- `a` (string)\n- `a` (text)\n"
TWICE = Diagnostic(ERROR, 'Duplicate input name: "a"', Span(23, 24), "declared again here", "it is on line 3")
WHOLE = Diagnostic(NOTE, "About the whole document", NOWHERE)
OTHER = Source.of("# Other\n", "other.md")
FLOW = replace(
    TWICE,
    related=(
        Related(Span(8, 9), "first", node="1 here"),
        Related(Span(2, 7), "then", OTHER, "2 there"),
        Related(Span(0, 1), "by the way"),
    ),
    fix=Fix(
        "drop the line\nand more", (Edit(Span(20, 33), "- `a` (text)\n", ""), Edit(Span(4, 4), "", "x\n")), safe=False
    ),
    confidence="possible",
)


def _closed(properties: dict[str, Value], *required: str) -> dict[str, Value]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _list(of: Value, least: int = 0) -> Value:
    return {"type": "array", "items": of, "minItems": least, "uniqueItems": True}


_TEXT: Value = {"type": "string"}
_COUNT: Value = {"type": "integer", "minimum": 1}
_MESSAGE = _closed({"text": _TEXT}, "text")
_FILE = _closed({"uri": {"type": "string", "pattern": "^[^\\s\\\\]+$"}}, "uri")
_REGION = _closed({"startLine": _COUNT, "startColumn": _COUNT, "endLine": _COUNT, "endColumn": _COUNT}, "startLine")
_PLACE = _closed({"artifactLocation": _FILE, "region": _REGION}, "artifactLocation")
_LOCATION = _closed({"id": {"type": "integer", "minimum": -1}, "physicalLocation": _PLACE, "message": _MESSAGE})
_THREAD = _closed(
    {"locations": {"type": "array", "minItems": 1, "items": _closed({"location": _LOCATION})}}, "locations"
)
_REPLACEMENT = _closed({"deletedRegion": _REGION, "insertedContent": _closed({"text": _TEXT})}, "deletedRegion")
_CHANGE = _closed(
    {"artifactLocation": _FILE, "replacements": _list(_REPLACEMENT, 1)}, "artifactLocation", "replacements"
)
_BAG: Value = {"type": "object"}
_LEVEL: Value = {"enum": ["none", "note", "warning", "error"]}
_RESULT = _closed(
    {
        "ruleId": _TEXT,
        "ruleIndex": {"type": "integer", "minimum": -1},
        "level": _LEVEL,
        "message": _MESSAGE,
        "locations": _list(_LOCATION),
        "partialFingerprints": {"type": "object", "additionalProperties": _TEXT},
        "rank": {"type": "number", "minimum": -1, "maximum": 100},
        "properties": _BAG,
        "relatedLocations": _list(_LOCATION),
        "codeFlows": {"type": "array", "items": _closed({"threadFlows": _list(_THREAD, 1)}, "threadFlows")},
        "fixes": _list(
            _closed(
                {"description": _MESSAGE, "artifactChanges": _list(_CHANGE, 1), "properties": _BAG}, "artifactChanges"
            )
        ),
        "suppressions": _list(_closed({"kind": {"enum": ["inSource", "external"]}, "justification": _TEXT}, "kind")),
    },
    "message",
)
_RULE = _closed(
    {
        "id": _TEXT,
        "name": _TEXT,
        "shortDescription": _MESSAGE,
        "fullDescription": _MESSAGE,
        "defaultConfiguration": _closed({"level": _LEVEL}),
    },
    "id",
)
_DRIVER = _closed({"name": _TEXT, "version": _TEXT, "rules": _list(_RULE)}, "name")
_RUN = _closed(
    {
        "tool": _closed({"driver": _DRIVER}, "driver"),
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "results": {"type": "array", "items": _RESULT},
    },
    "tool",
)
FORM = _closed(
    {"$schema": _TEXT, "version": {"const": "2.1.0"}, "runs": {"type": "array", "items": _RUN}}, "version", "runs"
)
"""The parts of SARIF 2.1.0 that Quire writes; the standard closes these objects as well."""


def log_of(
    *found: Diagnostic, text: str = TEXT, name: str = "a.md", hidden: tuple[Diagnostic, ...] = ()
) -> dict[str, Any]:
    file = Findings(Source.of(text, name), found, tuple((one, "it is meant") for one in hidden))
    log = json.loads(render([file]))
    jsonschema_rs.validate(FORM, log)
    (run,) = log["runs"]
    return cast("dict[str, Any]", run)


def test_sarif() -> None:
    log = json.loads(render([Findings(Source.of(TEXT, "dir/a b.md"), (WHOLE, TWICE, TWICE))]))
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


def test_every_part_has_the_form_of_the_standard() -> None:
    run = log_of(WHOLE, TWICE, FLOW, hidden=(TWICE,))
    assert len(run["results"]) == 4
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(FORM, {"version": "2.1.0", "runs": [{**run, "more": 1}]})


def test_a_flow_is_a_code_flow_and_its_places_are_related() -> None:
    (result,) = log_of(FLOW)["results"]
    ((thread,),) = [flow["threadFlows"] for flow in result["codeFlows"]]
    steps = [one["location"] for one in thread["locations"]]
    assert [one["message"]["text"] for one in steps] == ["1 here: first", "2 there: then"]
    assert [one["physicalLocation"]["artifactLocation"]["uri"] for one in steps] == ["a.md", "other.md"]
    assert [(one["id"], one["message"]["text"]) for one in result["relatedLocations"]] == [
        (1, "1 here: first"),
        (2, "2 there: then"),
        (3, "by the way"),
    ]
    assert (result["rank"], result["properties"]) == (50.0, {"confidence": "possible"})


def test_a_fix_says_exactly_what_it_replaces() -> None:
    (result,) = log_of(FLOW)["results"]
    (fix,) = result["fixes"]
    assert fix["properties"] == {"safe": False}
    ((change,),) = [[one["replacements"] for one in fix["artifactChanges"]]]
    assert change == [
        {
            "deletedRegion": {"startLine": 4, "startColumn": 1, "endLine": 5, "endColumn": 1},
            "insertedContent": {"text": ""},
        },
        {
            "deletedRegion": {"startLine": 2, "startColumn": 1, "endLine": 2, "endColumn": 1},
            "insertedContent": {"text": "x\n"},
        },
    ]


def test_a_hidden_finding_is_a_suppressed_result() -> None:
    shown, hidden = log_of(WHOLE, hidden=(TWICE,))["results"]
    assert "suppressions" not in shown
    assert hidden["suppressions"] == [{"kind": "inSource", "justification": "it is meant"}]


def fingerprints(*found: Diagnostic, text: str, name: str = "a.md") -> list[str]:
    return [
        one["partialFingerprints"]["primaryLocationLineHash"] for one in log_of(*found, text=text, name=name)["results"]
    ]


def test_a_fingerprint_stays_when_lines_move() -> None:
    before = fingerprints(TWICE, text=TEXT)
    moved = replace(TWICE, span=Span(25, 26))
    assert fingerprints(moved, text=f"\n\n{TEXT}") == before
    assert (
        fingerprints(replace(TWICE, span=Span(25, 26)), text=TEXT.replace("- `a` (text)", "  - `a`  (text)")) == before
    )


def test_fingerprints_tell_findings_apart() -> None:
    other = replace(TWICE, code=NOTE)
    flow = replace(FLOW, fix=None)
    found = fingerprints(TWICE, TWICE, other, flow, replace(TWICE, span=Span(8, 9)), text=TEXT)
    assert len(set(found)) == len(found)
    assert [one.rpartition(":")[2] for one in found] == ["1", "2", "1", "1", "1"]
    assert fingerprints(TWICE, text=TEXT, name="b.md") != found[:1]


def test_names_are_relative_to_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (result,) = log_of(WHOLE, name=str(tmp_path / "sub" / "a.md"))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "sub/a.md"

"""Codes are stable, explained by examples that are true, and all of them can really be found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.formats.pipeline.reading import Workspace, checked, file_of

from quire.diagnostics import Code, Severity
from quire.formats import all_codes
from quire.formats.pipeline.codes import codes, errors
from quire.formats.pipeline.inline import gate
from quire.formats.pipeline.parse import parse
from quire.formats.resolver import CallTarget, Circle, DocumentInterface
from quire.source import Source

OURS = [code for code in codes() if re.fullmatch(r"PL[0-2][0-2]\d", code.id)]
"""Those of pipelines themselves: PL03x are about inline definitions, the others from 030 on about schemas."""
BETWEEN_FILES = {"PL021"}
"""Found by looking at two files: tests/cli/test_pipeline_looking.py."""
FIRST = {Severity.ERROR: "PL0", Severity.WARNING: "PL1", Severity.LINT: "PL2"}
REVIEW = """\
schema: Review
fields: {passed: {type: bool}, score: {type: number}, notes: {type: string, required: false}}
---
"""
TYPED = REVIEW + "pipeline: p\nsteps:\n- agent: {prompt: hi, schema: Review, output: review}\n"
REPORT = "pipeline: report\nsteps:\n- transform: {value: review}\n"


class LeadingBack(Workspace):
    """A directive `lead_back` calls for whoever calls it."""

    def circles(self, source: Source, calls: Sequence[CallTarget], declared: str = "") -> Sequence[Circle]:
        return [Circle(call, (declared, call.name), decided=True) for call in calls if call.name == "lead_back"]


def whole(example: str) -> str:
    """A fragment in the smallest document around it."""
    if re.match(r"(pipeline|schema|name):", example):
        return example
    if example.startswith("- "):
        schema = REVIEW if "Review" in example else ""
        return f"{schema}pipeline: p\nsteps:\n" + "\n".join(f"  {line}" for line in example.split("\n"))
    if example.startswith("value:"):
        return f"{TYPED}- transform: {{{example}}}"
    if example.startswith(("on:", "cases:")):
        on = "" if example.startswith("on:") else "    on: x\n"
        return f"{TYPED}- match:\n{on}" + "\n".join(f"    {line}" for line in example.split("\n"))
    each = "for_each:\n    over: ctx.xs\n    do: {transform: {value: item}}\n"
    for key, default in {"on_error": "abort", "collect": "{transform: {value: pipe}}"}.items():
        each += "" if example.startswith(key) else f"    {key}: {default}\n"
    return f"pipeline: p\nsteps:\n- {each}    {example}\n"


def test_ids_and_names_are_unique_and_say_how_severe() -> None:
    found = codes()
    assert len({code.id for code in found}) == len({code.name for code in found}) == len(found)
    assert all(re.fullmatch(r"PL[0-2]\d\d", code.id) and code.id.startswith(FIRST[code.severity]) for code in OURS)
    assert set(OURS) <= set(found) <= set(all_codes())
    assert len({code.name for code in all_codes()}) == len(all_codes())


@pytest.mark.parametrize("code", [one for one in OURS if one.id not in BETWEEN_FILES], ids=lambda code: code.id)
def test_examples_of_pages_are_true(code: Code) -> None:
    wrong, right = code.explanation.split("Wrong:\n\n")[1].split("\n\nRight:\n\n")
    workspace = LeadingBack(
        REPORT,
        tools=["file__read", "file__write"],
        parameters={"file__read": {"properties": {"path": {}}, "required": ["path"], "additionalProperties": False}},
        identities=["default", "reviewer"],
        documents=[DocumentInterface("directive", "greet_guest", ("guest",), ("guest",))],
        caps=(3, 2),
        python={"python__plot": "plot: the type Figure of figure cannot be given as JSON"},
    )

    def found(example: str) -> set[str]:
        text = "\n".join(line[4:] for line in example.split("\n"))
        # Only registered files have several pipelines, and only they can have two of one name.
        if code is errors.DUPLICATE:
            return {one.code.id for one in parse(Source.of(text), registered=True).diagnostics}
        return {one for one, _ in checked(whole(text), workspace)}

    assert code.id in found(wrong)
    assert not {one for one in found(right) if one == code.id or one[:3] in ("PL0", "YM0", "EX0")}


INLINE = [code for code in codes() if re.fullmatch(r"PL03\d", code.id)]


@pytest.mark.parametrize("code", INLINE, ids=lambda code: code.id)
def test_examples_of_the_gate_are_true(code: Code) -> None:
    def found(example: str) -> set[str]:
        file = file_of(whole("\n".join(line[4:] for line in example.split("\n"))))
        refusal = gate(file, "me", ("file__read",), shell=False)
        return {problem.finding.code.id for problem in refusal.problems} if refusal else set()

    wrong, right = code.explanation.split("Wrong:\n\n")[1].split("\n\nRight:\n\n")
    assert found(wrong) == {code.id} and found(right) == set()


def test_every_code_is_expected_by_some_test() -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_pipeline_*.py"))
    assert [code.id for code in OURS if f'"{code.id}"' not in tests] == []

"""Codes are stable, explained by examples that are true, and all of them can really be found."""

from __future__ import annotations

import re
from pathlib import Path, PurePath

import pytest
from tests.formats.directive.directives import METADATA, Around, codes_in, document

from quire.diagnostics import Code, Severity
from quire.formats import all_codes
from quire.formats.directive.codes import codes, knowledge_codes
from quire.formats.directive.knowledge import check_knowledge
from quire.source import Source

FIRST = {Severity.ERROR: "0", Severity.WARNING: "1", Severity.LINT: "2", Severity.NOTE: "3"}
# Their examples would be invisible, or too long to print.
NOT_SHOWN = ("DR006", "DR007", "DR008", "KN004")
BELOW_ROOT = ("metadata", "inputs", "outputs")
INPUT = '<inputs><input name="who" required="true" /></inputs>'


def whole(example: str) -> str:
    """A fragment in the smallest document around it that has nothing else to complain about."""
    if example.startswith(("#", "```")):
        return example
    tag = re.match(r"<(\w+)", example)
    if tag is None or tag[1] in ("process", "success_criteria"):
        return document(METADATA, INPUT, f"{example}\n\nGreet {{input:who}}.")
    if tag[1] in BELOW_ROOT:
        return document("" if tag[1] == "metadata" else METADATA, example, "Greet {input:who}.")
    kept = "\n".join(line for line in METADATA.split("\n") if f"<{tag[1]}" not in line)
    return document(f"{kept}\n{example}", INPUT, "Greet {input:who}.")


def test_ids_and_names_are_unique_and_say_how_severe() -> None:
    ours = (*codes(), *knowledge_codes())
    assert all(re.fullmatch(rf"(DR|KN){FIRST[code.severity]}\d\d", code.id) for code in ours)
    assert set(ours) <= set(all_codes())
    assert len({code.name for code in all_codes()}) == len({code.id for code in all_codes()}) == len(all_codes())


def test_the_small_document_is_in_order() -> None:
    assert codes_in(document(METADATA, INPUT, "Greet {input:who}."), Around()) == []


@pytest.mark.parametrize("code", [code for code in codes() if code.id not in NOT_SHOWN], ids=lambda code: code.id)
def test_examples_of_pages_are_true(code: Code) -> None:
    wrong, right = examples(code)
    assert code.id in {one for one, _ in codes_in(whole(wrong), Around())}
    assert not {one for one, _ in codes_in(whole(right), Around()) if one == code.id or one.startswith("DR0")}


@pytest.mark.parametrize(
    "code", [code for code in knowledge_codes() if code.id not in NOT_SHOWN], ids=lambda code: code.id
)
def test_examples_of_knowledge_pages_are_true(code: Code) -> None:
    wrong, right = examples(code)
    place = PurePath("team/names.md")
    assert code.id in {one.code.id for one in check_knowledge(Source.of(wrong), place)}
    assert check_knowledge(Source.of(right), place) == ()


def examples(code: Code) -> list[str]:
    pages = code.explanation.split("Wrong:\n\n")[1].split("\n\nRight:\n\n")
    return ["\n".join(line[4:] for line in page.split("\n")) for page in pages]


def test_every_code_is_expected_by_some_test() -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_directive_*.py"))
    assert [code.id for code in (*codes(), *knowledge_codes()) if f'"{code.id}"' not in tests] == []

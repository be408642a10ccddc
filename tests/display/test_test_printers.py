"""Results of document tests as each printer prints them, and hostile texts in them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from lxml import etree
from tests.display.results_of_tests import HOSTILE, NAME, hostile, results, totals

from quire.display.report_formats import junit
from quire.display.test_report import FORMATS, FormatName, again, progress, report_printer, summary
from quire.testing.case_results import CaseResult, FileResult, Outcome, Totals

SNAPSHOTS = Path(__file__).parent / "test_reports"
STARTED = "2026-11-17T05:00:00"
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]")


def printed(form: FormatName, files: Sequence[FileResult], colour: bool = False) -> str:
    printer = report_printer(form, colour)
    return printer.begin() + "".join(printer.file(file) for file in files) + printer.end(totals(*files))


@pytest.mark.parametrize("form", FORMATS)
def test_a_report_is_as_kept(form: FormatName) -> None:
    """To keep a new one: python -m tests.display.test_test_printers"""
    assert printed(form, results()) == (SNAPSHOTS / f"{form}.txt").read_text(encoding="utf-8")


def test_the_junit_file_is_as_kept() -> None:
    assert junit(results(), STARTED) == (SNAPSHOTS / "junit.xml").read_text(encoding="utf-8")


def test_colours_only_when_asked() -> None:
    assert "\x1b" not in printed("full", results())
    assert "\x1b[1;31mFAILED\x1b[0m" in printed("full", results(), colour=True)
    assert "\x1b[1;31m1 failed\x1b[0m" in summary(totals(*results()), colour=True)


def test_the_summary_counts_everything() -> None:
    assert summary(totals(*results())) == (
        "1 file error, 1 failed, 3 passed, 1 skipped, 1 to do, 1 flaky in 2 files (0.21 s)"
    )
    assert summary(Totals()) == "no case was run in 0 files (0.00 s)"
    assert progress(totals(*results()), NAME) == "7 cases · 2 failed · texts/tagline.test.yaml"


@pytest.mark.parametrize(
    ("file", "name", "command"),
    [
        ("a.test.yaml", "", "quire test a.test.yaml"),
        ("a.test.yaml", "one", "quire test a.test.yaml::one"),
        ("a.test.yaml", "it's [row 3]", "quire test 'a.test.yaml::it'\"'\"'s [row 3]'"),
        ("-a.test.yaml", "one", "quire test -- -a.test.yaml::one"),
        ("a.test.yaml", "\x1b[1m", "quire test $'a.test.yaml::\\x1b[1m'"),
    ],
)
def test_the_command_for_one_case_can_be_pasted(file: str, name: str, command: str) -> None:
    assert again(file, name) == command


def test_a_long_value_is_cut() -> None:
    file = results()[0]
    text = printed("full", [_with_value(file, "line\n" * 100 + "x" * 5000)])
    assert "… 81 more lines" in text and len(text) < 3000


def _with_value(file: FileResult, value: str) -> FileResult:
    from msgspec.structs import replace

    problem = replace(file.cases[0].problems[1], value=value)
    return replace(file, cases=(replace(file.cases[0], problems=(problem,)),))


@pytest.mark.parametrize("form", FORMATS)
def test_hostile_texts_give_no_orders(form: FormatName) -> None:
    text = printed(form, [hostile()])
    assert not CONTROLS.search(text)
    assert not re.search(r"^::error file=a", text, re.MULTILINE)


def test_hostile_texts_are_values_in_json() -> None:
    first, *cases, last = [json.loads(line) for line in printed("json", [hostile()]).splitlines()]
    meant = HOSTILE.replace("\ud800", "\ufffd")
    assert {case["case"] for case in cases} == {meant}
    assert first["problems"][0]["parts"] == [{"path": meant, "value": meant}]
    assert last["cases"] == len(cases) == 5


def test_hostile_texts_stay_one_command_each_for_github() -> None:
    lines = printed("github", [hostile()]).splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["::error", "::error", "::error", "::warning"]


def test_tap_is_read_as_it_is_meant() -> None:
    """A small reader of TAP: points with their directives, and the YAML of each block."""
    for files in (results(), [hostile()]):
        text = printed("tap", files)
        head, *lines = text.splitlines()
        assert head == "TAP version 14"
        points = [line for line in lines if re.match("(not )?ok ", line)]
        assert lines[-1] == f"1..{len(points)}"
        blocks = re.findall(r"^  ---\n(.*?)^  \.\.\.$", text, re.MULTILINE | re.DOTALL)
        assert len(blocks) == lines.count("  ---")
        for block in blocks:
            assert set(yaml.safe_load(block)) == {"message", "severity", "findings"}
        ends = [re.search(r"(?<!\\) # (SKIP|TODO)", line) for line in points]
        assert [found[1] for found in ends if found] == (
            ["TODO", "SKIP", "TODO"] if files[0].path == NAME else ["SKIP", "TODO", "TODO"]
        )


def test_hostile_texts_are_values_in_tap() -> None:
    (block, *_) = re.findall(r"^  ---\n(.*?)^  \.\.\.$", printed("tap", [hostile()]), re.MULTILINE | re.DOTALL)
    (finding,) = yaml.safe_load(block)["findings"]
    assert finding["values"] == {HOSTILE.replace("\ud800", "\ufffd"): HOSTILE.replace("\ud800", "\ufffd")}


RULES = etree.XMLSchema(etree.parse(SNAPSHOTS / "junit-rules.xsd"))


@pytest.mark.parametrize("files", [results(), [hostile()], []], ids=["results", "hostile", "none"])
def test_junit_keeps_the_rules_of_strict_readers(files: list[FileResult]) -> None:
    tree = etree.fromstring(junit(files, STARTED).encode())
    RULES.assertValid(tree)
    for suite, file in zip(tree, files, strict=True):
        assert len(suite.findall("testcase")) == int(suite.get("tests", "")) >= len(file.cases)
        for tag in ("failure", "error", "skipped"):
            count = {"failure": "failures", "error": "errors", "skipped": "skipped"}[tag]
            assert len(suite.findall(f"testcase/{tag}")) == int(suite.get(count, ""))


def test_junit_has_figures_and_the_hash_of_the_document() -> None:
    suite = etree.fromstring(junit(results(), STARTED).encode())[0]
    properties = {one.get("name"): one.get("value") for one in suite.iterfind("properties/property")}
    assert properties["document_sha256"] == "ab" * 32
    assert (properties["cost"], properties["input_tokens"]) == ("1", "160")
    assert "[[PROPERTY|cost=0.25]]" in (suite.findtext("testcase/system-out") or "")


def test_a_cost_that_is_not_known_is_not_summed() -> None:
    from msgspec.structs import replace
    from tests.display.results_of_tests import SOURCE, USED

    case = CaseResult("a", 1, Outcome.PASSED, used=replace(USED, cost=None))
    text = junit([FileResult("a.test.yaml", SOURCE, cases=(case,))], STARTED)
    assert 'name="cost"' not in text and 'name="input_tokens" value="40"' in text


if __name__ == "__main__":
    for name in FORMATS:
        (SNAPSHOTS / f"{name}.txt").write_text(printed(name, results()), encoding="utf-8")
    (SNAPSHOTS / "junit.xml").write_text(junit(results(), STARTED), encoding="utf-8")

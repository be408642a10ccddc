"""The corpus gate: every finding of a proof about documents that people write has a verdict.

`verdicts.csv` says of each whether it is `true` (the document should be changed, or a person should agree), `harmless`
(true, and the author may leave it so) or `false`. The documents are those of `examples/` and ports of workflows of
other projects, in our own words, in this folder. A finding without a verdict fails: look at it, and write one.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import pytest
from tests.analysis.corpus_table import ROOT

from quire import formats
from quire.diagnostics import Diagnostic, Severity
from quire.library.check import DocumentCheck
from quire.source import Source

HERE = Path(__file__).parent
LEAST_PORTS = 25
MOST_FALSE = 0.05


def documents() -> list[Path]:
    files = [*ROOT.joinpath("examples").rglob("*"), *HERE.rglob("*")]
    texts = [one for one in files if one.suffix in (".md", ".yaml") and one.name != "README.md"]
    named = {
        one: Source.of(one.read_text(encoding="utf-8"), str(one)) for one in sorted(texts) if ".quire" not in one.parts
    }
    return [one for one, source in named.items() if formats.format_of(source) in ("playbook", "directive", "pipeline")]


@cache
def findings() -> dict[tuple[str, str, str], Diagnostic]:
    """Return the findings by document, code and the line that they are shown at."""
    check, found = DocumentCheck(), {}
    for file in documents():
        source = Source.of(file.read_text(encoding="utf-8"), str(file))
        every = check.of(source)
        wrong = [one.message for one in every if one.severity is Severity.ERROR and not one.code.id.startswith("BD")]
        assert not wrong or HERE not in file.parents, (file, wrong)  # beside examples there are other files
        for one in every if not wrong else ():
            if one.code.id[:2] in ("TA", "GA", "BD"):
                place = str(source.position(one.span.start).line)
                found[file.relative_to(ROOT).as_posix(), one.code.id, place] = one
    return found


@cache
def verdicts() -> dict[tuple[str, str, str], str]:
    with (HERE / "verdicts.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row["reason"] for row in rows)
    return {(row["document"], row["code"], row["place"]): row["verdict"] for row in rows}


@pytest.fixture(autouse=True)
def own_space(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIRE_HOME", str(tmp_path_factory.mktemp("user")))


def test_there_are_ports_enough() -> None:
    assert len([one for one in documents() if HERE in one.parents]) >= LEAST_PORTS


def test_every_finding_has_a_verdict() -> None:
    assert {place: one.message for place, one in findings().items() if place not in verdicts()} == {}


def test_no_true_finding_is_lost() -> None:
    lost = [place for place, verdict in verdicts().items() if verdict == "true" and place not in findings()]
    assert lost == []


def test_few_findings_are_false() -> None:
    given = [verdicts()[place] for place in findings() if place in verdicts()]
    assert set(given) <= {"true", "harmless", "false"}
    assert given.count("false") <= MOST_FALSE * len(given)


def test_no_loop_brings_in_text_from_outside() -> None:
    """real-work G1."""
    sources = [one.flow[0].node for one in findings().values() if one.flow]
    assert [one for one in sources if one.endswith(" loop")] == []

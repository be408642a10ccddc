"""The page about tests on real models: its files can be read, its tables are complete, its numbers are those of the
code."""

from __future__ import annotations

import json
from pathlib import Path

from tests.docs.pages import blocks, text_of

from quire.display.test_live import pair_sentence
from quire.formats.test.fields import keys_of
from quire.formats.test.parse import parse
from quire.source import Source
from quire.testing.live.calibration import LEAST_KAPPA, LEAST_LABELS, read_labels
from quire.testing.live.judges import read_judge
from quire.testing.live.schedule import LOST_IN_A_ROW
from quire.testing.live.statistics import Comparison
from quire.testing.live.trial import SUBJECTS
from quire.testing.live.tries import Pair, Status

PAGE = "docs/guides/test-live.md"
TEST, JUDGE = blocks(PAGE, "yaml")


def test_its_files_can_be_read(tmp_path: Path) -> None:
    assert parse(Source.of(TEST.text, "x.test.yaml")).diagnostics == ()
    reading = read_judge(Source.of(JUDGE.text, "x.judge.yaml"))
    assert reading.diagnostics == () and reading.judge is not None
    (label,) = blocks(PAGE, "json")
    path = tmp_path / "x.labels.jsonl"
    path.write_text(json.dumps(json.loads(label.text)))
    assert len(read_labels(reading.judge, path)) == 1


def test_its_tables_are_complete() -> None:
    text = text_of(PAGE)
    assert all(f"| `{status}` |" in text for status in Status)
    assert all(f"`{key}" in text for key in keys_of("cases.-.live"))
    assert all(f"`{subject}`" in text for subject in SUBJECTS - {"exit"})


def test_its_numbers_are_those_of_the_code() -> None:
    text = " ".join(text_of(PAGE).split())
    assert f"at least {LEAST_LABELS} labels" in text
    assert f"interval is {LEAST_KAPPA} or more" in text
    assert LOST_IN_A_ROW == 5 and "after five in a row" in text
    (block,) = blocks(PAGE, "text")
    sentence = pair_sentence(Pair("a:one", "b:two", Comparison(40, 2, 9, 0.6, 0.775)))
    assert block.text.replace("\n  ", ": ").strip() == sentence

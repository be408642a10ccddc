"""Hashes of documents and cases: a change that runs differently changes them, and layout does not."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from tests.testing.bench import BOARD, TAGLINE, TIDY

from quire.library.document import load
from quire.testing.discovery import TestTarget
from quire.testing.live.live_run import live_standings, subject_of
from quire.testing.live.plan import LiveOptions, live_cases
from quire.testing.live.receipts import Receipt, read_receipts, store_receipts, structure_hash
from quire.testing.live.tries import Status

DOCUMENTS = {"tagline.playbook.md": TAGLINE, "board.yaml": BOARD, ".ai/directives/tidy.md": TIDY}
CHANGES = [
    ("tagline.playbook.md", "## STEP 1", "\n## STEP 1", False),
    ("tagline.playbook.md", "tagline", "slogan", True),
    ("board.yaml", "steps:", "# a comment\nsteps:", False),
    ("board.yaml", "retry(2)", "retry(1)", True),
    ("board.yaml", "as {item}", "for {item}", True),
    (".ai/directives/tidy.md", 'turns="4"', 'turns="5"', True),
    (".ai/directives/tidy.md", "sort it, write", "sort it and write", True),
]


@pytest.mark.parametrize(("name", "old", "new", "differs"), CHANGES)
def test_plans(tmp_path: Path, name: str, old: str, new: str, differs: bool) -> None:
    text = DOCUMENTS[name].lstrip("\n")
    assert old in text
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    hashes = []
    for one in (text, text.replace(old, new)):
        path.write_text(one)
        hashes.append(structure_hash(load(path).runnable()))
    assert (hashes[0] != hashes[1]) is differs


def test_values_of_any_kind_have_a_hash() -> None:
    values: list[object] = [
        None,
        1,
        "1",
        True,
        [1],
        (1, 2),
        {"a": 1},
        frozenset("ab"),
        Status.STALE,
        Path("x"),
        object(),
    ]
    assert len({structure_hash(value) for value in values}) == len(values)
    assert structure_hash({"a": 1, "b": 2}) == structure_hash({"b": 2, "a": 1})


PROMPT = """\
dialect: quire
pipeline: ask
steps:
  - agent:
      prompt: !file prompts/ask.md
      output: answer
"""
TEST = """\
document: ask.yaml
cases: [{name: asks, expect: {output: {contains: x}}, live: {}}]
"""


def test_a_file_with_a_prompt_belongs_to_the_document(tmp_path: Path) -> None:
    (tmp_path / "quire.toml").write_text("")
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "ask.md").write_text("Say x.")
    (tmp_path / "ask.yaml").write_text(PROMPT)
    (tmp_path / "ask.test.yaml").write_text(textwrap.dedent(TEST))
    options = LiveOptions((TestTarget(str(tmp_path / "ask.test.yaml")),))
    assert [one.status for one in live_standings(options)] == [Status.UNVERIFIED]
    (case,) = live_cases(options)[0]
    now = subject_of(case)
    store_receipts(tmp_path, [Receipt(now.file, now.case, "a:b", now.plan, now.test, Status.VERIFIED, 1, 1, 0.0)])
    assert len(read_receipts(tmp_path)) == 1
    assert [one.status for one in live_standings(options)] == [Status.VERIFIED]
    (tmp_path / "prompts" / "ask.md").write_text("Say y.")
    assert [(one.status, one.changed) for one in live_standings(options)] == [(Status.STALE, ("document",))]

"""The published vectors and the collected documents, when the shared folder is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.formats.trees import without_spans

from quire.formats.playbook.parse import parse
from quire.formats.playbook.write import as_vector, write
from quire.source import Source

SHARED = Path(__file__).parents[4] / "shared" / "conformance"
VECTORS = sorted(SHARED.glob("vectors/playbook/*/*.playbook.md"))
DOCUMENTS = [*VECTORS, *sorted(SHARED.glob("corpus/playbook/*.md"))]

pytestmark = pytest.mark.skipif(not DOCUMENTS, reason="the shared vectors are not here")


def without_empty(value: object) -> object:
    """The vectors leave empty fields out in places, and the lines of errors everywhere."""
    if isinstance(value, dict):
        return {key: without_empty(part) for key, part in value.items() if part not in (None, "", [], False)}
    return [without_empty(part) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_vector(path: Path) -> None:
    stem = path.name.removesuffix(".playbook.md")
    expected = next(
        path.with_name(stem + end) for end in (".expected.json", ".errors.json") if path.with_name(stem + end).exists()
    )
    found = json.loads(json.dumps(as_vector(parse(Source.of(path.read_text())))))
    wanted = json.loads(expected.read_text())
    for error in found["errors"]:
        del error["line"]
    assert without_empty(found) == without_empty(wanted)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_round_trip(path: Path) -> None:
    playbook = parse(Source.of(path.read_text())).playbook
    if playbook is None:
        pytest.skip("not a valid playbook")
    again = parse(Source.of(write(playbook))).playbook
    assert again is not None
    assert without_spans(again) == without_spans(playbook)

"""The Quire dialect: asked for in one line, refused by name without it."""

from __future__ import annotations

import pytest
from tests.formats.pipeline.reading import file_of, problems

from quire.formats.pipeline.write import write

PLAIN = "pipeline: p\nsteps: [{transform: {value: '1'}}]\n"
QUIRE = "pipeline: p\ndialect: quire\nsteps: [{transform: {value: '1'}}]\n"


def test_a_document_says_its_dialect_and_is_written_with_it() -> None:
    assert [one.dialect for one in file_of(PLAIN).pipelines] == [False]
    file = file_of(QUIRE)
    assert [one.dialect for one in file.pipelines] == [True]
    assert "dialect: quire\n" in write(file)
    assert "dialect" not in write(file_of(PLAIN))


@pytest.mark.parametrize(("said", "pointed"), [("quier", "quier"), ("3", "3"), ("[quire]", "[quire]")])
def test_another_dialect_is_refused(said: str, pointed: str) -> None:
    assert problems(QUIRE.replace("quire", said)) == [("PL022", pointed)]

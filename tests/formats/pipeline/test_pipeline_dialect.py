"""The Quire dialect: asked for in one line, refused by name without it."""

from __future__ import annotations

import pytest
from tests.formats.pipeline.reading import file_of, problems

from quire.formats.pipeline.parse import parse
from quire.formats.pipeline.write import write
from quire.source import Source

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


CALL = 'pipeline: p\nsteps:\n  - transform: {value: "upper(ctx.name)"}\n'


def test_a_function_of_the_dialect_is_refused_by_name_without_it() -> None:
    (found,) = parse(Source.of(CALL)).diagnostics
    assert (found.code.id, found.message) == ("EX001", "the function upper belongs to the Quire dialect")
    assert CALL[found.span.start : found.span.end] == "upper"
    assert found.help == "write dialect: quire beside pipeline: to use it"
    assert problems(CALL.replace("pipeline: p\n", "pipeline: p\ndialect: quire\n")) == []


def test_two_documents_of_a_file_may_have_different_dialects() -> None:
    quire = CALL.replace("pipeline: p\n", "pipeline: q\ndialect: quire\n")
    for text in (f"{quire}---\n{CALL}", f"{CALL}---\n{quire}"):
        (found,) = parse(Source.of(text), registered=True).diagnostics
        assert found.code.id == "EX001" and text.count("---", 0, found.span.start) == int(text.startswith(quire))

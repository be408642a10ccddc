"""Assumed sizes: how they are written, which size of a formula they are for, and contradictions."""

from __future__ import annotations

import pytest

from quire.analysis.assumptions import Assumption, Assumptions, assumptions_of, contradictions, parse_assumption
from quire.errors import CannotStart
from quire.plan.nodes import Plan, Sequence
from quire.schema import Schema
from quire.schema_types import Field, Kind, ListOf, Object, Ref, Simple
from quire.units import Size


@pytest.mark.parametrize(
    ("text", "name", "kind", "count"),
    [
        ("readers=20", "readers", "", 20),
        ("ctx.readers = 20", "readers", "", 20),
        ("|ctx.readers|=20", "readers", "items", 20),
        ("‖doc‖=4000", "doc", "bytes", 4000),
        ("||doc||=4K", "doc", "bytes", 4000),
        ("doc=40KB", "doc", "", 40_960),
        ("order.lines[].text=2 M", "order.lines[].text", "", 2_000_000),
        ("größe=1", "größe", "", 1),
        ("my-list=1", "my-list", "", 1),
        ("empty=0", "empty", "", 0),
    ],
)
def test_an_option_is_read(text: str, name: str, kind: str, count: int) -> None:
    found = parse_assumption(text)
    assert (found.name, found.kind, found.size.count) == (name, kind, count)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "readers",
        "readers=",
        "readers=many",
        "readers=-1",
        "readers=1.2.3",
        "readers==3",
        "=20",
        "||=20",
        "|a=20",
        "a b=20",
        "1a=20",
        "a..b=20",
        "a\x1b[31m=20",
        "a\nb=20",
        "|readers|=40KB",
        "a" * 10_000 + "=1",
        "a=" + "1" * 10_000,
    ],
)
def test_a_wrong_option_is_one_short_line(text: str) -> None:
    with pytest.raises(CannotStart) as caught:
        parse_assumption(text)
    said = str(caught.value)
    assert said.isprintable()
    assert len(said) < 400
    assert said.startswith("--assume ")


@pytest.mark.parametrize(
    ("options", "symbols", "sizes"),
    [
        (["readers=20"], ["|readers|"], {"|readers|": 20}),
        (["readers=20"], ["‖readers‖"], {"‖readers‖": 20}),
        (["readers=20"], ["|readers|", "‖readers‖"], {"|readers|": 20}),
        (["readers=20 KB"], ["|readers|", "‖readers‖"], {"‖readers‖": 20_480}),
        (["|readers|=20"], ["‖readers‖"], {}),
        (["‖readers‖=20"], ["|readers|"], {}),
        (["readers=20", "‖readers‖=900"], ["|readers|", "‖readers‖"], {"|readers|": 20, "‖readers‖": 900}),
        (["readers=20", "‖readers‖=900"], ["‖readers‖"], {"‖readers‖": 900}),
        (["readers=20", "readers=20"], ["|readers|"], {"|readers|": 20}),
        (["readers=20"], ["|readers[]|", "|writers|"], {}),
        (["x=1"], [], {}),
    ],
)
def test_an_assumption_is_for_the_size_that_is_meant(
    options: list[str], symbols: list[str], sizes: dict[str, int]
) -> None:
    assert assumptions_of({}, options).sizes(symbols) == sizes


@pytest.mark.parametrize(
    "options", [["readers=20", "readers=21"], ["readers=20", "|readers|=21"], ["doc=4KB", "‖doc‖=5"]]
)
def test_two_numbers_for_one_size_are_a_contradiction(options: list[str]) -> None:
    with pytest.raises(CannotStart, match="says both"):
        assumptions_of({}, options)


def test_options_come_before_runs_and_runs_before_the_file() -> None:
    found = assumptions_of({"a": Size(1), "b": Size(1), "c": Size(1)}, ["a=3"], {"|a|": 2, "|b|": 2}, "31 runs")
    assert found.sizes(["|a|", "|b|", "|c|"]) == {"|a|": 3, "|b|": 2, "|c|": 1}
    assert [str(one) for one in found.used(["|b|", "|c|"]).all] == ["|b|=2", "c=1"]
    assert [one.source for one in found.used(["|b|", "|c|"]).all] == ["31 runs", "[assume]"]
    assert str(assumptions_of({"doc": Size(40_960, is_text=True)})) == "doc=40 KB"


def test_the_file_may_contradict_itself() -> None:
    with pytest.raises(CannotStart, match=r"\[assume\] says both \|a\|=2 and a=1|\[assume\] says both a=1 and \|a\|=2"):
        assumptions_of({"a": Size(1), "|ctx.a|": Size(2)})
    with pytest.raises(CannotStart, match=r"\[assume\] 'a b' is not the name"):
        assumptions_of({"a b": Size(1)})


def test_an_option_that_changes_nothing_is_told_with_the_nearest_size() -> None:
    found = assumptions_of({"file_only": Size(1)}, ["reader=3", "|readers|=2"])
    (line,) = found.unused(["|readers|", "‖doc‖"])
    assert "no bound depends on reader" in line
    assert "did you mean" in line
    assert "|readers|" in line
    (line,) = assumptions_of({}, ["x=3"]).unused([])
    assert "no bound depends on a size" in line


LINES = ListOf(Object((Field("text", Simple(Kind.STRING, max_length=100)),)), max_items=20)
DECLARED = (
    Field("readers", ListOf(Simple(Kind.STRING, max_length=5), max_items=3)),
    Field("doc", Simple(Kind.STRING, max_length=1000)),
    Field("order", Ref("Order")),
    Field("free", ListOf(Simple(Kind.STRING))),
)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("readers=3", ""),
        ("readers=4", "at most 3 items of readers"),
        ("‖readers‖=4000", ""),
        ("readers=4KB", ""),
        ("readers[]=21", "at most 20 bytes (5 characters) of readers[]"),
        ("doc=4000", ""),
        ("doc=4001", "at most 4,000 bytes (1,000 characters) of doc"),
        ("doc=4KB", "at most 4,000 bytes (1,000 characters) of doc"),
        ("|doc|=9000", ""),
        ("order.lines=21", "at most 20 items of order.lines"),
        ("order.lines[].text=401", "at most 400 bytes"),
        ("order.other=101", ""),
        ("free=99999", ""),
        ("unknown=5", ""),
        ("unknown.a[].b=5", ""),
    ],
)
def test_more_than_the_document_takes_is_a_contradiction(option: str, said: str) -> None:
    schemas = {"Order": Schema("Order", (Field("lines", LINES),))}
    plan = Plan("t", "pipeline", (), Sequence(()), schemas=schemas, declared=DECLARED)
    lines = list(contradictions(Assumptions((parse_assumption(option),)), plan))
    assert len(lines) == bool(said)
    assert all(said in line for line in lines)


def test_an_assumption_reads_as_it_is_written() -> None:
    assert str(Assumption("doc", Size(40_960, is_text=True), "bytes")) == "‖doc‖=40 KB"

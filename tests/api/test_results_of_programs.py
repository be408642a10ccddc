"""Results as the types of a program, runs without an event loop, and runs that are made and never awaited."""

from __future__ import annotations

import gc
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import pytest
from pydantic import BaseModel

# msgspec refuses that of `typing` before Python 3.12: it does not tell which keys are required.
from typing_extensions import TypedDict

import quire
from quire.errors import BadDocument, BadInputs, RunState

if TYPE_CHECKING:
    from quire.values import Value


class Item(msgspec.Struct):
    name: str
    price: float


class Cart(msgspec.Struct):
    items: list[Item]


@dataclass
class Line:
    name: str
    price: float = 1.0


class Row(TypedDict):
    name: str


class Pair(NamedTuple):
    name: str
    price: float


class Model(BaseModel):
    name: str
    prices: list[int] = []


def result(value: Value, status: quire.Status = quire.Status.COMPLETED) -> quire.Result:
    text = value if isinstance(value, str) else ""
    return quire.Result("r1", status, text, text, "", {}, {}, {}, "", 0, 0, None, value)


@pytest.mark.parametrize(
    ("value", "shape", "expected"),
    [
        ({"items": [{"name": "tea", "price": 2}]}, Cart, Cart([Item("tea", 2.0)])),
        ({"name": "tea"}, Line, Line("tea")),
        ({"name": "tea"}, Row, {"name": "tea"}),
        (["tea", 2.5], Pair, Pair("tea", 2.5)),
        ({"name": "tea", "prices": [1]}, Model, Model(name="tea", prices=[1])),
        ([1, 2], list[int], [1, 2]),
        ({"a": [True]}, dict[str, list[bool]], {"a": [True]}),
        (7, int, 7),
        ("7", int, 7),
        ("7", str, "7"),
        ('"quoted"', str, '"quoted"'),
        ("just a text", str, "just a text"),
        (' {"name": "tea"}\n', Row, {"name": "tea"}),
        ('```json\n{"name": "tea", "price": 2}\n```', Line, Line("tea", 2.0)),
        ("null", type(None), None),
    ],
)
def test_a_result_is_read_as_a_type(value: Value, shape: type[Any], expected: object) -> None:
    parsed = result(value).parse(shape)
    assert parsed == expected
    assert type(parsed) is type(expected)


@pytest.mark.parametrize(
    ("value", "shape", "path", "says"),
    [
        ({"items": [{"name": "tea", "price": "2"}]}, Cart, "$.items[0].price", "Expected `float`, got `str`"),
        ({"items": [{"price": 2}]}, Cart, "$.items[0]", "missing required field `name`"),
        ({"name": "tea", "prices": [1, "many"]}, Model, "$.prices[1]", "the result does not fit Model: "),
        ({}, Model, "$.name", "Field required"),
        ("1", list[int], "$", "the result does not fit list[int]: Expected `array`, got `int`"),
        ("Tea is fine.", Cart, "$", "the result does not fit Cart: Expected `object`, got `str`"),
        ({"a": "1"}, dict[str, int], "$[...]", "Expected `int`, got `str`"),
        ([1], str, "$", "Expected `str`, got `array`"),
    ],
)
def test_another_type_is_an_error_with_a_place(value: Value, shape: type[Any], path: str, says: str) -> None:
    with pytest.raises(quire.WrongResult) as caught:
        result(value).parse(shape)
    assert caught.value.path == path
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("status", [quire.Status.FAILED, quire.Status.AWAITING_INPUT])
def test_a_run_that_has_not_completed_has_no_result(status: quire.Status) -> None:
    with pytest.raises(quire.WrongResult, match=f"run r1 has no result to parse: it is {status}"):
        result("", status).parse(str)


TOTAL = """
pipeline: total
steps:
  - transform: {value: "{sum: sum(ctx.prices)}"}
"""


def test_a_run_without_an_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = quire.run_sync(TOTAL, inputs={"prices": [1, 2]})
    assert ended.status is quire.Status.COMPLETED
    assert ended.parse(dict[str, int]) == {"sum": 3}
    assert quire.run_sync(TOTAL, inputs={"prices": [4]}).value == {"sum": 4}
    with pytest.raises(BadInputs):
        quire.run_sync(TOTAL, inputs=[])  # type: ignore[arg-type]


async def test_run_sync_in_an_event_loop_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RunState, match=r"use `await quire\.run\(…\)` instead"):
            quire.run_sync(TOTAL, inputs={"prices": [1]})
    assert not list(tmp_path.iterdir())


async def test_a_run_that_is_never_awaited_warns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.warns(RuntimeWarning, match=r"^quire\.run\(…\) was never awaited: nothing ran$"):
        quire.run(TOTAL)
        gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await quire.run(TOTAL, inputs={"prices": [1]})
        async for _ in quire.run(TOTAL, inputs={"prices": [1]}):
            pass
        await quire.run(TOTAL, inputs={"prices": [1]}).start()
        with pytest.raises(BadDocument):
            await quire.run("pipeline: total\nsteps: 1\n")
        gc.collect()

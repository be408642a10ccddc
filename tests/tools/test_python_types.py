"""G11: functions get the types that they ask for, and what they return becomes JSON."""

from __future__ import annotations

import enum
import json
import threading
from collections.abc import Iterable, Mapping, Sequence  # noqa: F401  # `Value` refers to them by name
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated
from uuid import UUID

import pytest
from annotated_types import Gt
from pydantic import BaseModel, Field

from quire.cli import main
from quire.engine.requests import ToolRequest
from quire.errors import ToolFailed
from quire.tools.gate import Gate
from quire.tools.python import PythonConnection, tool
from quire.tools.registry import Connections
from quire.trust.capabilities import Grants
from quire.trust.secrets import Redactor
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm
from quire.workspace.locate import Workspace


class Colour(enum.Enum):
    RED = "red"


class Line(BaseModel):
    article: str
    price: Decimal = Decimal(0)


class Order(BaseModel):
    lines: list[Line]
    due: date


@dataclass
class Point:
    x: int
    y: int = 0


seen: list[object] = []


def keep(value: object) -> object:
    seen.append(value)
    return value


@tool(name="p_order")
def order(order: Order) -> object:
    return keep(order)


@tool(name="p_point")
def point(point: Point, many: list[Point] = []) -> object:  # noqa: B006
    return keep([point, *many])


@tool(name="p_values")
def some(colour: Colour, on: date, id: UUID, at: Path, price: Decimal) -> object:
    return keep((colour, on, id, at, price))


@tool(name="p_numbers")
def numbers(
    whole: int,
    size: Annotated[int, Gt(0), "how large"] = 1,
    share: Annotated[float, Field(le=1)] = 1,
    rest: Value = None,
) -> object:
    return keep((whole, size, share, rest))


@tool(name="p_iterable")
def iterable(items: Iterable[int]) -> object:
    return keep(items)


class Shop:
    def __init__(self, name: str) -> None:
        self.name = name

    @tool(name="p_unbound")
    def unbound(self, x: int) -> None: ...

    def bound(self, x: int) -> str:
        return f"{self.name} {x}"


tool(name="p_bound")(Shop("tea").bound)


@tool(name="p_odd")
def odd(x: threading.Thread) -> None: ...


GATE = Gate(
    Connections({"python": PythonConnection([], Path())}), Grants.of(["rye.execute.tool.python.*"]), Redactor({})
)


async def call(name: str, **arguments: Value) -> Value:
    seen.clear()
    return await GATE.call(ToolRequest("1/tool", "1", "python", name, arguments), "e")


async def test_models_and_dataclasses() -> None:
    lines: list[Value] = [{"article": "tea", "price": "1.10"}]
    result = await call("p_order", order={"lines": lines, "due": "2026-11-16"})
    assert seen == [Order(lines=[Line(article="tea", price=Decimal("1.10"))], due=date(2026, 11, 16))]
    assert result == {"lines": lines, "due": "2026-11-16"}
    assert await call("p_point", point={"x": 3.0}, many=[{"x": 1, "y": 2}]) == [{"x": 3, "y": 0}, {"x": 1, "y": 2}]
    assert seen == [[Point(3), Point(1, 2)]]


async def test_values_that_json_writes_as_text() -> None:
    id = "9f2f4c1c-0000-4000-8000-000000000000"
    result = await call("p_values", colour="red", on="2026-11-16", id=id, at="a/b", price=1.5)
    assert seen == [(Colour.RED, date(2026, 11, 16), UUID(id), Path("a/b"), Decimal("1.5"))]
    assert result == ["red", "2026-11-16", id, "a/b", "1.5"]


async def test_numbers_and_constraints() -> None:
    await call("p_numbers", whole=3.0, share=1, rest={"any": [None]})
    assert [type(one) for one in seen[0][:3]] == [int, int, float]  # type: ignore[index]
    for given in ({"size": 0}, {"share": 1.5}, {"whole": 2.5}):
        with pytest.raises(ToolFailed, match="does not take these arguments") as failed:
            await call("p_numbers", **{"whole": 1, **given})
        assert (failed.value.kind, next(iter(given)) in failed.value.message, seen) == ("arguments", True, [])


async def test_what_a_schema_cannot_say_is_checked_too() -> None:
    with pytest.raises(ToolFailed) as failed:
        await call("p_order", order={"lines": [], "due": "2026-02-31"})
    assert "order.due: " in failed.value.message


async def test_an_iterable_is_a_list_and_a_method_of_an_object_a_tool() -> None:
    assert await call("p_iterable", items=[1, 2]) == [1, 2]
    assert seen == [[1, 2]]
    assert await call("p_bound", x=2) == "tea 2"


async def test_one_that_cannot_be_a_tool_takes_no_other_with_it() -> None:
    odd = "the type Thread of x cannot be given as JSON; a type that pydantic knows can be: str, date, a dataclass"
    for name, why in {"p_odd": odd, "p_unbound": "is a method"}.items():
        with pytest.raises(ToolFailed, match=why):
            await call(name, x=1)
    assert await GATE.preflight([("python", "p_bound")]) == []


def test_doctor_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("QUIRE_HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    work.mkdir()
    (work / "quire.toml").write_text('[tools]\nmodules = ["odd_tools_of_mine"]\n')
    code = "import quire, threading\n@quire.tool\ndef d_odd(x: threading.Thread) -> None: ...\n"
    (work / "odd_tools_of_mine.py").write_text(f"{code}@quire.tool\ndef d_good(x: int) -> None: ...\n")
    monkeypatch.chdir(work)

    def found() -> dict[str, str]:
        main(["doctor", "--json"])
        return {
            one["what"]: one["detail"] for one in json.loads(capsys.readouterr().out) if "python tool" in one["what"]
        }

    assert "not loaded before you agree" in found()["python tools"]
    confirm(load_settings(Workspace(work)))
    told = found()
    assert "d_good" in told["python tools"] and "the type Thread of x" in told["python tool d_odd"]

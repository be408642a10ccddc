"""Circles of calls: what is found, how it is said, and that large workspaces take no time."""

from __future__ import annotations

from functools import cache

import pytest
from tests.growth import within

from quire.formats.resolver import MAX_CIRCLES, Caller, CallTarget, Circle, circles

FORMATS = {"y": "pipeline", "m": "playbook", "d": "directive"}


def found(root: str, graph: dict[str, str]) -> list[tuple[str, str, bool]]:
    """The call, the circle and whether it is decided. Names end in `y` for pipelines, `m` playbooks, `d` directives."""

    @cache
    def caller(name: str) -> Caller:
        return Caller(name, name, FORMATS[name[-1]], tuple(CallTarget(one) for one in graph[name].split()))

    told = circles(caller(root), lambda _, wanted: caller(wanted.name) if wanted.name in graph else None)
    return [(one.call.name, "→".join(one.names), one.decided) for one in told]


@pytest.mark.parametrize(
    ("root", "graph", "expected"),
    [
        ("am", {"am": ""}, []),
        ("am", {"am": "nobody"}, []),
        ("am", {"am": "by cy", "by": "cy", "cy": ""}, []),
        ("am", {"am": "am"}, [("am", "am", False)]),
        ("am", {"am": "by", "by": "am"}, [("by", "am→by", False)]),
        # It is told where the checked document comes upon it, also when that is no part of it.
        ("am", {"am": "xy by", "xy": "", "by": "cm", "cm": "dy", "dy": "cm"}, [("by", "cm→dy", False)]),
        ("am", {"am": "by", "by": "cy", "cy": "by"}, [("by", "by→cy", False)]),
        # Pipelines find circles of pipelines by themselves.
        ("ay", {"ay": "by", "by": "ay"}, []),
        ("ay", {"ay": "by", "by": "cm", "cm": "ay"}, [("by", "ay→by→cm", False)]),
        ("ay", {"ay": "ay bm", "bm": "ay"}, [("bm", "ay→bm", False)]),
        # A directive's model decides.
        ("am", {"am": "bd", "bd": "cy", "cy": "am"}, [("bd", "am→bd→cy", True)]),
        ("ay", {"ay": "bd", "bd": "ay"}, [("bd", "ay→bd", True)]),
        ("ad", {"ad": "by", "by": "ad"}, [("by", "ad→by", True)]),
        ("am", {"am": "bd", "bd": "cm", "cm": "cm"}, [("bd", "cm", True)]),
        # Directives that start each other are held by their depth.
        ("ad", {"ad": "ad"}, []),
        ("am", {"am": "bd", "bd": "cd", "cd": "bd"}, []),
        ("ad", {"ad": "bd cy", "bd": "ad", "cy": "bd"}, [("cy", "ad→cy→bd", True)]),
        # What is certain hides what is decided.
        ("am", {"am": "am bd", "bd": "am"}, [("am", "am", False)]),
        ("ay", {"ay": "ay bd", "bd": "ay"}, []),
        # Two that share a document are two.
        ("am", {"am": "by cy", "by": "am", "cy": "am"}, [("by", "am→by", False), ("cy", "am→cy", False)]),
    ],
)
def test_circles(root: str, graph: dict[str, str], expected: list[tuple[str, str, bool]]) -> None:
    assert found(root, graph) == expected


def test_a_long_way_is_shortened() -> None:
    names = tuple(f"d{number}" for number in range(20))
    assert str(Circle(CallTarget("x"), names, decided=False)) == (
        "d0 can reach itself: d0 → d1 → d2 → d3 → d4 → d5 → d6 → d7 → … → d0"
    )
    assert str(Circle(CallTarget("x"), ("a",), decided=True)) == "a can reach itself: a → a"


def test_large_workspaces_take_no_time_and_tell_a_few() -> None:
    everybody = [f"{number}m" for number in range(400)]
    everything = " ".join(everybody)
    with within(10):
        assert 1 <= len(found("0m", dict.fromkeys(everybody, everything))) <= MAX_CIRCLES
        chain = {f"{number}m": f"{number + 1}m" for number in range(5_000)}
        assert found("0m", chain) == []

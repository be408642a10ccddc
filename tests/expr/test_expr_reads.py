from __future__ import annotations

from typing import get_args

import pytest

from quire.expr import compile, parse
from quire.expr.syntax import _PARTS, Node, Path, children, walk


@pytest.mark.parametrize(
    ("text", "paths", "stores"),
    [
        ("1 + 2", [], []),
        ("ctx.a.b + pipe", ["ctx.a.b", "pipe"], ["a"]),
        ("review.passed and 'OK' or verdict", ["review.passed", "verdict"], ["review", "verdict"]),
        ("ctx", ["ctx"], []),
        ("item.x + acc", ["item.x", "acc"], []),
        ("map(rows, r -> r.id + n)", ["rows", "n"], ["rows", "n"]),
        ("map(r, r -> r.id)", ["r"], ["r"]),
        ("[map(l, x -> x), x]", ["l", "x"], ["l", "x"]),
        ("map(l, x -> map(x, y -> x + y + z))", ["l", "z"], ["l", "z"]),
        ("map(l, ctx -> ctx.a)", ["l"], ["l"]),
        ("map(l, x -> get(x, 'a', d))", ["l", "d"], ["l", "d"]),
        ("get(ctx, 'a.b', d)", ["ctx", "ctx.a.b?", "d"], ["a?", "d"]),
        ("get(review, 'x')", ["review", "review.x?"], ["review", "review?"]),
        ("get({a: b}, 'a')", ["b"], ["b"]),
        ("{a: b, c: not d == -e}", ["b", "d", "e"], ["b", "d", "e"]),
        ("join(a, b) + count(c)", ["a", "b", "c"], ["a", "b", "c"]),
    ],
)
def test_what_an_expression_reads(text: str, paths: list[str], stores: list[str]) -> None:
    found = compile(parse(text)).reads()
    assert [".".join(read.path) + "?" * read.optional for read in found] == paths
    assert [read.name + "?" * read.optional for read in found] == paths
    assert [read.store + "?" * read.optional for read in found if read.store is not None] == stores


@pytest.mark.parametrize(
    ("text", "store"),
    [
        *(("ctx.review", "review"), ("review", "review"), ("errors", "errors")),
        *((text, "") for text in ("ctx", "pipe", "item", "ctx.review.notes", "review.notes", "acc.review")),
    ],
)
def test_a_path_knows_whether_it_is_a_store(text: str, store: str) -> None:
    root = parse(text).root
    assert isinstance(root, Path)
    assert root.store == store


def test_reads_have_places() -> None:
    text = "a.b + get(ctx, 'c')"
    assert [text[read.span.start : read.span.end] for read in compile(parse(text)).reads()] == [
        "a.b",
        "ctx",
        "get(ctx, 'c')",
    ]


def test_the_parts_of_every_kind_of_node_are_known() -> None:
    assert set(_PARTS) == set(get_args(Node))
    text = "not (a == -b) and {k: [c, 1]} == null or sum(map(d, x -> x)) > 2 or join(e, f) or get(g, 'h', i)"
    nodes = [node for node, _ in walk(parse(text).root)]
    named = [".".join(node.segments) for node in nodes if isinstance(node, Path)]
    assert set("abcdefgi") <= set(named)
    assert all(isinstance(part, get_args(Node)) for node in nodes for part in children(node))

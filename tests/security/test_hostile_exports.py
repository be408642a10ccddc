"""Exports in which a leaf is replaced by something absurd, with hashes that fit: refused in a sentence, or taken in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quire.errors import QuireError
from quire.runs.imports import BadExport, import_run, read_export
from quire.runs.runtime import Runtime
from quire.stores import open_store
from quire.values import sha256
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace

JOURNALS = Path(__file__).parents[1] / "fixtures" / "journals"
RAW = {"@infinite": "1e999", "@nan": "NaN", "@digits": "9" * 6_000, "@deep": "[" * 5_000 + "]" * 5_000}
"""What no encoder writes, put into the text afterwards."""

MISSING = "@missing"
HOSTILE: dict[str, Any] = {
    "null": None,
    "true": True,
    "zero": 0,
    "negative": -1,
    "63 bits": 2**63,
    "30 digits": 10**30,
    "4,000 digits": 10**4_000,
    "1e300": 1e300,
    "-1e300": -1e300,
    "1e18": 1e18,
    "half": 0.5,
    "no text": "",
    "text": "x" * 50,
    "escapes": "\x1b[31m\u202e\x9b",
    "nul": "a\0b",
    "list": [],
    "lists": [[1, 2, 3]],
    "map": {},
    "maps": {"a": {"b": 1}},
    "deep": json.loads("[" * 150 + "]" * 150),
    **{name: name for name in RAW},
    MISSING: MISSING,
}


def places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield at
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*at, key))
    elif isinstance(value, list):
        for number in range(min(len(value), 2)):
            yield from places(value[number], (*at, number))


def changed(value: Any, at: tuple[str | int, ...], new: Any) -> Any:
    if not at:
        return new
    copied: Any = dict(value) if isinstance(value, dict) else list(value)
    if len(at) == 1 and new == MISSING:
        del copied[at[0]]
    else:
        copied[at[0]] = changed(copied[at[0]], at[1:], new)
    return copied


def chained(entries: list[Any]) -> bytes:
    """The lines with the hashes that a forger gives them."""
    lines: list[bytes] = []
    prev = ""
    for entry in entries:
        if isinstance(entry, dict):
            entry = {**entry, "prev": prev} if "prev" in entry else entry
            if entry.get("type") == "end":
                entry = {"prev": prev, "type": "end", "lines": len(entries), "head": prev}
        text = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
        for name, raw in RAW.items():
            text = text.replace(f'"{name}"', raw)
        lines.append(text.encode())
        prev = sha256(lines[-1])
    return b"\n".join(lines) + b"\n"


def attempts(name: str) -> Iterator[tuple[str, list[Any]]]:
    entries = [json.loads(line) for line in (JOURNALS / f"{name}.jsonl").read_text().splitlines()]
    seen: set[tuple[object, ...]] = set()
    for number, entry in enumerate(entries[:-1]):
        kind = (entry["type"], entry.get("kind"), entry.get("event"))
        if kind in seen:
            continue
        seen.add(kind)
        for at in places(entry):
            for tag, value in HOSTILE.items():
                if at[:1] != ("prev",) and (at or tag != MISSING):
                    mutated = [*entries[:number], changed(entry, at, value), *entries[number + 1 :]]
                    yield f"line {number + 1}, {at}: {tag}", mutated


PARTS = {"0.1.0-board": 113, "0.1.0-everything": 89, "0.1.0-parent": 229}
"""Every so many of the attempts are made: primes, so that all values meet all kinds of places. 1 makes all of them."""


@pytest.mark.parametrize("name", sorted(path.stem for path in JOURNALS.glob("*.jsonl")))
def test_none_is_a_traceback(name: str, tmp_path: Path) -> None:
    (tmp_path / "quire.toml").write_text("")
    settings = load_settings(Workspace(tmp_path), {"QUIRE_HOME": str(tmp_path / "home")})
    file = tmp_path / "x.jsonl"
    refused = 0

    async def attempt(number: int, data: bytes) -> None:
        nonlocal refused
        file.write_bytes(data)
        runtime = Runtime(settings, open_store(tmp_path / f"{number}.db", durability="process"))
        try:
            run = await import_run(runtime, read_export(file))
            await runtime.view(run)
        except QuireError:
            refused += 1
        finally:
            await runtime.close()

    for number, (what, entries) in enumerate(attempts(name)):
        if number % PARTS.get(name, 101) == 0:
            try:
                asyncio.run(attempt(number, chained(entries)))
            except Exception as error:
                raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
    assert refused > 10


@pytest.mark.parametrize(
    "where, value, problem",
    [
        (("run", "created_at"), 1e300, "line 1"),
        (("run", "created_at"), "@digits", "line 1"),
        (("run", "input_tokens"), 10**30, "line 1"),
        (("pins", "answers"), 5, "'answers'"),
        (("pins", "profiles"), {"default": 5}, "'profiles'"),
        (("pins", "breakpoints"), 3, "'breakpoints'"),
        (("pins", "inputs"), {"topic": 5}, "texts"),
    ],
)
def test_the_sentence_says_what_is_wrong(where: tuple[str, ...], value: Any, problem: str, tmp_path: Path) -> None:
    (tmp_path / "quire.toml").write_text("")
    settings = load_settings(Workspace(tmp_path), {"QUIRE_HOME": str(tmp_path / "home")})
    entries = [json.loads(line) for line in (JOURNALS / "0.1.0-everything.jsonl").read_text().splitlines()]
    file = tmp_path / "x.jsonl"
    file.write_bytes(chained([changed(entries[0], where, value), *entries[1:]]))

    async def attempt() -> None:
        runtime = Runtime(settings, open_store(tmp_path / "x.db", durability="process"))
        try:
            await import_run(runtime, read_export(file))
        finally:
            await runtime.close()

    with pytest.raises(QuireError, match=problem):
        asyncio.run(attempt())


def test_an_event_cannot_lie_among_those_of_another_run(tmp_path: Path) -> None:
    """The place of an event in the store is made of its number: one that is too large would be in the next run's."""
    entries = [json.loads(line) for line in (JOURNALS / "0.1.0-everything.jsonl").read_text().splitlines()]
    at = next(number for number, entry in enumerate(entries) if entry["type"] == "event")
    file = tmp_path / "x.jsonl"
    for seq in (2**28, 2**40, -1, 0):
        file.write_bytes(chained([*entries[:at], {**entries[at], "seq": seq}, *entries[at + 1 :]]))
        with pytest.raises(BadExport):
            read_export(file)

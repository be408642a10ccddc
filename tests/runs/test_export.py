"""A run as a file: every byte counts, and nothing of a bad one is a traceback."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.runs.travel import Travel

from quire.errors import CannotStart, RunState, StoreError
from quire.runs.export import chained, export_lines, result_of, write_export
from quire.runs.imports import BadExport, NotProved, import_run, prove, read_export
from quire.values import sha256


@pytest.fixture
async def file(travel: Travel, tmp_path: Path) -> Path:
    run = await travel.everything("a-run")
    async with travel.runtime() as runtime:
        write_export(await export_lines(runtime, run), tmp_path / "run.jsonl")
    return tmp_path / "run.jsonl"


async def test_what_is_exported_comes_back(travel: Travel, tmp_path: Path) -> None:
    other = Travel(tmp_path / "other" / "work")
    for make in (travel.everything, travel.board, travel.parent):
        run = await make()
        async with travel.runtime() as runtime:
            await runtime.store.label(run, {"name": "ours", "note": "two\nlines", "seen_at": 1.0})
            write_export(await export_lines(runtime, run), tmp_path / "one.jsonl")
            row, effects, events = (
                await runtime.row(run),
                await runtime.store.effects(run),
                await runtime.store.events(run),
            )
            result = result_of(await runtime.view(run))
        async with other.runtime() as runtime:
            assert await import_run(runtime, read_export(tmp_path / "one.jsonl")) == run
            found = await runtime.row(run)
            assert {record.path: record for record in await runtime.store.effects(run)} == {
                record.path: record for record in effects
            }
            assert list(await runtime.store.events(run)) == list(events)
            assert result_of(await runtime.view(run)) == result
            assert (found.cost, found.input_tokens, found.status) == (row.cost, row.input_tokens, row.status)
            assert (found.name, found.note, found.seen_at) == ("ours", "two\nlines", None)
            assert (found.created_at, found.updated_at, found.position) == (
                row.created_at,
                row.updated_at,
                row.position,
            )
            with pytest.raises(RunState, match="imported and read-only"):
                await runtime.drive(run)
            with pytest.raises(StoreError, match=r"has a run .* already"):
                await import_run(runtime, read_export(tmp_path / "one.jsonl"))


async def test_one_that_waits_is_kept_as_one_that_can_only_be_forked(travel: Travel, tmp_path: Path) -> None:
    run, _ = await travel.run("board.yaml", {"papers": ["one"]}, [])
    async with travel.runtime() as runtime:
        write_export(await export_lines(runtime, run), tmp_path / "run.jsonl")
    kinds = [json.loads(line)["type"] for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert kinds.count("question") == 1
    async with Travel(tmp_path / "other" / "work").runtime() as runtime:
        await import_run(runtime, read_export(tmp_path / "run.jsonl"))
        row = await runtime.row(run)
        assert (row.status, row.pins["imported"]) == ("expired", {"status": "awaiting_input"})
        assert await runtime.store.questions() == []


async def test_the_chain_is_what_the_page_says(file: Path) -> None:
    lines = file.read_bytes().splitlines()
    entries = [json.loads(line) for line in lines]
    assert [entry["prev"] for entry in entries[1:]] == [sha256(line) for line in lines[:-1]]
    assert entries[0]["prev"] == "" and entries[0]["pins"]["folder"] is None
    assert entries[-1] == {
        "prev": sha256(lines[-2]),
        "type": "end",
        "lines": len(lines),
        "head": sha256(lines[-2]),
    }


def test_every_flipped_byte_is_found_in_its_line(file: Path) -> None:
    """Some bytes of each line at random, and each byte of the first and the last one."""
    data = file.read_bytes()
    chance = random.Random(7)
    starts = [0, *(at + 1 for at, byte in enumerate(data[:-1]) if byte == 10)]
    ends = [*(start - 1 for start in starts[1:]), len(data) - 1]
    for number, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        edge = number in (1, len(starts))
        places = range(start, end) if edge else chance.sample(range(start, end), 12)
        for place in places:
            changed = bytearray(data)
            changed[place] ^= 1 << chance.randrange(8)
            file.write_bytes(bytes(changed))
            with pytest.raises(BadExport) as caught:
                read_export(file)
            # The first line is not taken for one where it does not even begin like it.
            split = changed[place] == 10
            assert caught.value.line in ((number, number + 1) if split else (0, 1) if number == 1 else (number,))


def _rechained(lines: list[str], change: Callable[[list[dict[str, Any]]], None]) -> str:
    entries = [json.loads(line) for line in lines[:-1]]
    change(entries)
    for entry in entries:
        entry.pop("prev", None)
    return "\n".join(chained(entries)) + "\n"


def _of(entries: list[dict[str, Any]], kind: str, path: str = "") -> dict[str, Any]:
    return next(entry for entry in entries if entry["type"] == kind and path in (entry.get("path"), ""))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda all: _of(all, "text").update(text="# Other\n"), "holds a text that is not the one its hash names"),
        (lambda all: _of(all, "effect").pop("at"), "does not hold what a line of its kind holds"),
        (lambda all: _of(all, "effect").update(state="maybe"), "does not hold what a line of its kind holds"),
        (
            lambda all: _of(all, "effect", "6/model")["value"].update(text="forged"),
            "another result than the file states",
        ),
        (lambda all: _of(all, "result")["result"].update(output="forged"), "another result than the file states"),
        (lambda all: _of(all, "effect", "6/model").update(request="0" * 64), "does not belong to the document"),
        (lambda all: all.append(dict(_of(all, "effect"))), "has a second effect"),
        (lambda all: all.append({"type": "joke"}), "which no export has"),
        (lambda all: all[0].update(version=2), "was written by a newer Quire"),
        (lambda all: all[0].update(pins={"document": 3}), "cannot be read"),
        (lambda all: all[0]["run"].update(id="../../x"), "does not hold what"),
        (lambda all: all[0]["pins"].update(semantics_version=99), "version 99 of the rules"),
    ],
)
async def test_a_new_chain_does_not_help_what_does_not_fit(
    travel: Travel, file: Path, change: Callable[[list[dict[str, Any]]], None], problem: str
) -> None:
    file.write_text(_rechained(file.read_text().splitlines(), change), encoding="utf-8")
    with pytest.raises((BadExport, NotProved), match=problem):
        await prove(read_export(file), travel.settings)


@pytest.mark.parametrize(
    ("cut", "problem"),
    [
        (lambda data: b"", "is not an export of a run"),
        (lambda data: b"# A page\n", "is not an export of a run"),
        (lambda data: b'{"a": 1}\n', "is not an export of a run"),
        (lambda data: b"\x00\xff\n", "is not an export of a run"),
        (lambda data: data[:-1], "cut off"),
        (lambda data: data[: len(data) // 2], "cut off"),
        (lambda data: b"\n".join(data.splitlines()[:-1]) + b"\n", "and not the end: the file is cut off"),
        (
            lambda data: b"\n".join(data.splitlines()[:4] + data.splitlines()[5:]) + b"\n",
            "line 4 has been changed, or a",
        ),
        (lambda data: data + b"\n", "not a line of an export"),
    ],
)
def test_a_file_that_is_not_whole(file: Path, cut: Callable[[bytes], bytes], problem: str) -> None:
    file.write_bytes(cut(file.read_bytes()))
    with pytest.raises(BadExport, match=problem):
        read_export(file)


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    for path, problem in ((tmp_path / "none", "does not exist"), (tmp_path, "cannot be read")):
        with pytest.raises(CannotStart, match=problem):
            read_export(path)


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    def lines() -> Any:
        yield "x"
        raise OSError(28, "No space left on device")

    with pytest.raises(CannotStart, match="No space left on device"):
        write_export(lines(), tmp_path / "run.jsonl")
    assert list(tmp_path.iterdir()) == []


async def test_a_secret_is_in_no_export(travel: Travel) -> None:
    """It never was in the journal: the gate takes it out before anything is recorded."""
    secret = "sk-0123456789abcdefghij"
    travel.environ["OPENAI_API_KEY"] = secret
    travel.write("notes.txt", f"The key is {secret}.")
    run = await travel.everything()
    async with travel.runtime() as runtime:
        lines = await export_lines(runtime, run)
    assert any("The key is" in line for line in lines)
    assert not [line for line in lines if secret in line]

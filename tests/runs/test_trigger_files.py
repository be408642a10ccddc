"""Files that start runs: which are taken, when, and what never holds up the others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.runs.trigger_place import HELLO, Place, day_of, nothing

from quire.errors import Refused
from quire.operations.host import Caller, Host
from quire.operations.triggers import tick_triggers
from quire.runs.trigger_files import LARGEST, MOST_TAKEN, WatchedFiles
from quire.runs.triggers import Triggers

FILES = 'run = "hello"\ninputs = {day = {expr = "file.path"}}\nfiles = "inbox/*.csv"'


class Inbox:
    """A folder whose files start runs. Each `look` is one tick, two seconds later."""

    def __init__(self, base: Path, more: str = "") -> None:
        self.place = Place(base)
        self.folder = self.place.work / "inbox"
        self.folder.mkdir()
        self.place.configure(drop=f"{FILES}\n{more}")
        self.lines: list[str] = []
        self.runtime = self.place.runtime()
        self.triggers = Triggers(self.runtime, self.lines.append)

    async def enable(self) -> None:
        await self.place.enabled(self.runtime, "drop")

    async def look(self, times: int = 2) -> None:
        for _ in range(times):
            self.place.clock.time += 2
            await self.triggers.tick(self.place.clock.now(), nothing)

    async def started(self) -> list[str]:
        starts = await self.runtime.store.starts(state="started")
        rows = [await self.runtime.row(start.run) for start in starts]
        return sorted(day_of(row) for row in rows)


@pytest.fixture
async def inbox(tmp_path: Path) -> Inbox:
    inbox = Inbox(tmp_path)
    await inbox.enable()
    return inbox


async def test_a_file_starts_one_run_once_it_rests(inbox: Inbox) -> None:
    (inbox.folder / "a.csv").write_text("1")
    await inbox.look(1)
    assert await inbox.started() == []
    await inbox.look(1)
    assert await inbox.started() == ["inbox/a.csv"] and inbox.triggers.polls
    await inbox.look()
    again = Triggers(inbox.runtime)  # another process knows it by the claim
    for _ in range(2):
        await again.tick(inbox.place.clock.now(), nothing)
    assert await inbox.started() == ["inbox/a.csv"]
    (inbox.folder / "a.csv").rename(inbox.folder / "b.csv")
    await inbox.look()
    (inbox.folder / "b.csv").write_text("2")
    await inbox.look()
    assert await inbox.started() == ["inbox/a.csv", "inbox/b.csv", "inbox/b.csv"]
    (inbox.folder / "b.csv").write_text("1")  # as before
    await inbox.look()
    assert len(await inbox.started()) == 3
    assert len({row.source for row in await inbox.runtime.store.list()}) == 1  # one after another
    await inbox.runtime.close()


async def test_one_tick_looks_twice_and_drives(inbox: Inbox) -> None:
    (inbox.folder / "a.csv").write_text("1")
    answer = await tick_triggers.run(Host(inbox.runtime, Caller()), tick_triggers.read({}))
    assert [run["status"] for run in answer["runs"]] == ["completed"]
    await inbox.runtime.close()


@pytest.mark.parametrize("existing", [False, True])
async def test_files_that_were_there(tmp_path: Path, existing: bool) -> None:
    inbox = Inbox(tmp_path, "existing = true" if existing else "")
    for name in ("a.csv", "b.csv"):
        (inbox.folder / name).write_text(name)
    await inbox.enable()
    (inbox.folder / "new.csv").write_text("new")
    await inbox.look()
    assert await inbox.started() == ["inbox/a.csv", "inbox/b.csv", "inbox/new.csv"][0 if existing else 2 :]
    skipped = await inbox.runtime.store.starts(state="skipped")
    assert [start.reason for start in skipped] == ["found when the trigger was enabled"] * (0 if existing else 2)
    await inbox.runtime.close()


async def test_what_never_fires_holds_up_nothing(inbox: Inbox, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("secret")
    (inbox.place.work / "other.csv").write_text("other")
    (inbox.folder / "out.csv").symlink_to(tmp_path / "secret.csv")
    (inbox.folder / "in.csv").symlink_to(inbox.place.work / "other.csv")
    (inbox.folder / "gone.csv").symlink_to("nowhere")
    (inbox.folder / "folder.csv").mkdir()
    os.mkfifo(inbox.folder / "pipe.csv")
    (inbox.folder / "closed.csv").write_text("closed")
    (inbox.folder / "closed.csv").chmod(0)
    with (inbox.folder / "huge.csv").open("wb") as file:
        file.truncate(LARGEST + 1)
    with (inbox.folder / "most.csv").open("wb") as file:
        file.truncate(LARGEST)
    (inbox.folder / "good.csv").write_text("good")
    growing = inbox.folder / "growing.csv"
    for number in range(6):
        growing.write_text("x" * number)
        await inbox.look(1)
    readable = ["inbox/closed.csv"] if os.geteuid() == 0 else []
    assert await inbox.started() == [*readable, "inbox/good.csv", "inbox/most.csv"]
    assert inbox.lines == [f"inbox/huge.csv has more than {LARGEST:,} bytes and starts nothing"]
    growing.unlink()
    await inbox.look()
    assert "inbox/growing.csv" not in await inbox.started()
    await inbox.runtime.close()


async def test_a_file_that_changes_while_it_is_read_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path)
    (place.work / "a.csv").write_text("1")
    watched = WatchedFiles(place.runtime().settings, "*.csv", print)
    watched.look()
    opened = os.fdopen

    def fdopen(handle: int, mode: str) -> object:
        if mode == "rb":
            (place.work / "a.csv").write_text("22")
        return opened(handle, mode)

    monkeypatch.setattr("quire.runs.trigger_files.os.fdopen", fdopen)
    assert watched.look() == []
    monkeypatch.undo()
    assert watched.look() == []
    assert [file.size for file in watched.look()] == [2]


async def test_many_files_are_taken_in_parts(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for number in range(MOST_TAKEN + 5):
        (place.work / f"{number}.csv").touch()
    watched = WatchedFiles(place.runtime().settings, "**/*.csv", print)
    taken = []
    for _ in range(4):
        files = watched.look()
        watched.settled |= {file.path: file.mark for file in files}
        taken.append(len(files))
    assert taken == [0, MOST_TAKEN, 5, 0]


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("../*.csv", "must not contain .."),
        ("/etc/*", "must be relative"),
        (".quire/*.db", ".quire is closed to triggers"),
        ("a/.GIT/HEAD", ".git is closed to triggers"),
    ],
)
async def test_patterns_that_are_refused(tmp_path: Path, pattern: str, problem: str) -> None:
    place = Place(tmp_path)
    place.configure(drop=FILES.replace("inbox/*.csv", pattern))
    runtime = place.runtime()
    proposal = await Triggers(runtime).propose("drop")
    assert any(problem in line for line in proposal.problems), proposal.problems
    with pytest.raises(Refused):
        await Triggers(runtime).enable("drop", proposal.digest, "ada")
    await runtime.close()


async def test_a_pattern_of_everything_enters_no_closed_place(tmp_path: Path) -> None:
    place = Place(tmp_path)
    await place.runtime().store.triggers()  # it makes .quire
    (place.work / ".git").mkdir()
    (place.work / ".git" / "HEAD").touch()
    watched = WatchedFiles(place.runtime().settings, "**", print)
    watched.look()
    assert {file.path for file in watched.look()} == {
        "asking.playbook.md", "hello.playbook.md", "quire.toml", "script.json"
    }  # fmt: skip


async def test_a_failure_that_may_pass_takes_the_file_later(inbox: Inbox) -> None:
    document = inbox.place.work / "hello.playbook.md"
    document.unlink()
    (inbox.folder / "a.csv").write_text("1")
    await inbox.look(3)
    assert not await inbox.runtime.store.starts() and "is tried again" in inbox.lines[0]
    document.write_text(HELLO)
    await inbox.look(1)
    assert await inbox.started() == ["inbox/a.csv"]
    await inbox.runtime.close()


async def test_a_clone_takes_no_files(tmp_path: Path) -> None:
    """The row of an enabled trigger comes along with the folder, the settings with a quire.toml of the workspace."""
    inbox = Inbox(tmp_path)
    await inbox.enable()
    await inbox.runtime.close()
    clone = inbox.place.work.rename(tmp_path / "clone")
    inbox.place.work = clone
    (clone / "inbox" / "a.csv").write_text("1")
    runtime = inbox.place.runtime()
    triggers = Triggers(runtime)
    for _ in range(3):
        assert await triggers.tick(inbox.place.clock.now(), nothing) == []
    assert not await runtime.store.starts() and not triggers.polls
    await runtime.close()

"""A folder in which one run is killed again and again: trusted, signed, with a store of its own."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from tests.chaos.documents import Story, write_story

from quire.trust.keys import SigningKey
from quire.trust.sign_file import sign_file, signable
from quire.trust.trusted_keys import Home, keep, own_key
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm
from quire.workspace.locate import find_workspace

VERSION_1 = Path(__file__).parents[1] / "stores" / "version_1.sql"


@dataclass(frozen=True, slots=True)
class Place:
    """`url` is that of a store elsewhere, empty for the file in the workspace; with `shared` others use that too."""

    folder: Path
    story: Story
    url: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)
    shared: bool = False

    @property
    def database(self) -> Path:
        return self.folder / ".quire" / "quire.db"

    @property
    def log(self) -> Path:
        return self.folder / ".quire" / "quire.db-wal"

    def copy(self, to: Path) -> Path:
        """The database as it is now, elsewhere."""
        if to.exists():
            shutil.rmtree(to)
        to.mkdir(parents=True)
        for file in (self.database, self.log):
            if file.exists():
                shutil.copy(file, to / file.name)
        return to / self.database.name


def make_place(
    folder: Path,
    story: Story,
    *,
    url: str = "",
    old_database: bool = False,
    durability: Literal["power", "process"] = "power",
) -> Place:
    """Writes the workspace and what its user agreed to. With an old database its first process has to migrate it."""
    work, home = folder / "work", folder / "home"
    work.mkdir(parents=True)
    home.mkdir()
    write_story(story, work)
    settings = [f'[runs]\nexpiry = "7d"\ndurability = "{durability}"\n', f'[store]\nurl = "{url}"\n' if url else ""]
    (home / "quire.toml").write_text("".join(settings))
    environ = {"QUIRE_HOME": str(home), "NO_COLOR": "1", "TERM": "dumb", "CHAOS_LEDGER": story.ledger}
    confirm(load_settings(find_workspace(work), environ))
    if (work / ".ai").exists():
        _sign(work, home)
    if old_database:
        (work / ".quire").mkdir()
        connection = sqlite3.connect(work / ".quire" / "quire.db")
        connection.executescript(VERSION_1.read_text(encoding="utf-8"))
        connection.close()
    return Place(work, story, url, environ)


def settle_in(host: Place, story: Story) -> Place:
    """Another story in the same workspace, with the same database. Neither of them may be a directive: those are signed
    when their workspace is made."""
    write_story(story, host.folder)
    return replace(host, story=story, environ={**host.environ, "CHAOS_LEDGER": story.ledger}, shared=True)


def _sign(work: Path, home: Path) -> None:
    keep(Home(home), SigningKey.generate("default"), datetime.now(UTC))
    key = own_key(Home(home))
    for file in sorted((work / ".ai").rglob("*.md")):
        problems = sign_file(signable(file, work), key, datetime.now(UTC))
        assert not problems, (file, problems)

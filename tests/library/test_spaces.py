"""Spaces: which item an id means, which ids mean none, and that nothing outside of a space is ever read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.given import given

from quire.errors import CannotStart, QuireError, Refused, Unreadable
from quire.library.item_tools.fetch import SearchScope, search, summary
from quire.library.items import Entry, Spaces
from quire.library.registered import load_playbooks
from quire.source import MAX_DOCUMENT_BYTES
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace
from quire.workspace.settings import Settings


class House:
    """A project and a user's space side by side."""

    def __init__(self, folder: Path) -> None:
        self.project, self.user = folder / "project", folder / "user"
        self.project.mkdir()
        self.user.mkdir()
        self.settings: Settings = load_settings(Workspace(self.project), {"QUIRE_HOME": str(self.user)})
        self.spaces = Spaces(self.settings)

    def put(self, path: str, text: str = "text\n") -> Path:
        """`project:knowledge/a/b.md` is a file in the project's `.ai` folder."""
        space, _, below = path.partition(":")
        file = (self.project if space == "project" else self.user) / ".ai" / below
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_the_first_space_wins(house: House) -> None:
    house.put("project:knowledge/demo/k.md", "PROJECT")
    house.put("user:knowledge/demo/k.md", "USER")
    house.put("user:knowledge/rye/agent/core/Identity.md", "MINE")
    found = [
        (item.space, item.text)
        for item in (
            house.spaces.find("knowledge", "demo/k"),
            house.spaces.find("knowledge", "demo/k", "user"),
            house.spaces.find("knowledge", "rye/agent/core/Identity"),
        )
        if item
    ]
    assert found == [("project", "PROJECT"), ("user", "USER"), ("user", "MINE")]
    built_in = house.spaces.find("knowledge", "rye/agent/core/Identity", "system")
    assert built_in and built_in.space == "system"
    assert house.spaces.find("directive", "demo/k") is None
    assert house.spaces.find("knowledge", "demo/none") is None
    assert house.spaces.find("tool", "rye/bash") is None


def test_a_text_is_there_as_readers_see_it_and_as_it_is_stored(house: House) -> None:
    file = house.put("project:knowledge/k.md")
    file.write_bytes(b"\xef\xbb\xbfa\r\nb")
    found = house.spaces.find("knowledge", "k")
    assert found and (found.text, found.stored) == ("a\nb", "\ufeffa\r\nb")


def test_knowledge_may_be_yaml(house: House) -> None:
    house.put("project:knowledge/a/data.yaml", "name: data\n")
    house.put("project:directives/a/data.yaml", "name: data\n")
    found = house.spaces.find("knowledge", "a/data")
    assert found and found.path.suffix == ".yaml"
    assert house.spaces.find("directive", "a/data") is None


def test_knowledge_folders_of_the_settings_are_part_of_the_project(house: House) -> None:
    extra = house.project / "notes"
    given({"a/b.md": "NOTE"}, extra)
    spaces = Spaces(replace(house.settings, knowledge_folders=(extra,)))
    found = spaces.find("knowledge", "a/b")
    assert found and (found.space, found.text) == ("project", "NOTE")
    assert spaces.find("directive", "a/b") is None


def test_a_bare_name_is_enough_where_it_is_unique(house: House) -> None:
    house.put("project:knowledge/demo/lonely.md", "ONE")
    house.put("user:knowledge/demo/lonely.md", "HIDDEN")
    found = house.spaces.find("knowledge", "lonely")
    assert found and (found.id, found.space, found.text) == ("demo/lonely", "project", "ONE")
    house.put("user:knowledge/other/lonely.md", "TWO")
    with pytest.raises(CannotStart, match="lonely means several knowledge items: demo/lonely, other/lonely; say which"):
        house.spaces.find("knowledge", "lonely")
    in_user = house.spaces.find("knowledge", "other/lonely")
    assert in_user and in_user.text == "TWO"
    house.put("user:knowledge/lonely.md", "EXACT")
    exact = house.spaces.find("knowledge", "lonely")
    assert exact and exact.text == "EXACT", "an id that is there is no bare name"
    found = house.spaces.find("directive", "create_directive")
    assert found and found.id == "rye/core/create_directive"


@pytest.mark.parametrize(
    "item_id",
    [
        "",
        "../secret",
        "a/../../secret",
        "a/..",
        "..",
        "/etc/passwd",
        "C:/x",
        "a\\b",
        "a\0b",
        "a\nb",
        "a//b",
        "a/",
        ".hidden",
        "a/.hidden",
        "./a",
        "x" * 501,
    ],
)
def test_ids_that_are_none(house: House, item_id: str) -> None:
    (house.project / "secret.md").write_text("SECRET")
    house.put("project:knowledge/.hidden.md")
    house.put("project:knowledge/a/.hidden.md")
    for item_type in ("knowledge", "directive", "pipeline", "playbook"):
        with pytest.raises(Refused):
            house.spaces.find(item_type, item_id)


def test_names_are_spelled_as_they_are(house: House) -> None:
    house.put("project:knowledge/demo/k.md")
    for item_id in ("Demo/k", "demo/K", "demo/k.md", "demo /k"):
        assert house.spaces.find("knowledge", item_id) is None


@pytest.mark.parametrize("linked", ["project:knowledge/link.md", "project:knowledge/deep", "project:knowledge"])
def test_links_out_of_the_space_are_refused(house: House, tmp_path: Path, linked: str) -> None:
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    for name in ("link.md", "x.md", "deep/x.md"):
        (outside / name).write_text("SECRET")
    place = house.project / ".ai" / linked.partition(":")[2]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(outside / "link.md" if place.suffix else outside)
    wanted = {"link.md": "link", "deep": "deep/x", "knowledge": "link"}[place.name]
    with pytest.raises(Refused, match="a link that leads out of"):
        house.spaces.find("knowledge", wanted)


def test_an_ai_folder_that_is_a_link_is_refused(house: House, tmp_path: Path) -> None:
    given({"elsewhere/knowledge/k.md": "SECRET"}, tmp_path)
    (house.project / ".ai").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="a link that leads out of its folder"):
        house.spaces.find("knowledge", "k")


def test_a_link_inside_goes_by_the_id_of_what_it_leads_to(house: House) -> None:
    secret = house.put("project:knowledge/secret/s.md", "S")
    open_folder = house.project / ".ai" / "knowledge" / "open"
    open_folder.mkdir()
    (open_folder / "s.md").symlink_to(secret)
    found = house.spaces.find("knowledge", "open/s")
    assert found and found.id == "secret/s"
    (house.project / ".ai" / "knowledge" / "to-config.md").symlink_to(house.project / ".ai" / "config.txt")
    (house.project / ".ai" / "config.txt").write_text("x")
    with pytest.raises(Refused):
        house.spaces.find("knowledge", "to-config")


def test_what_cannot_be_read(house: House) -> None:
    house.put("project:knowledge/big.md", "x" * (MAX_DOCUMENT_BYTES + 1))
    house.put("project:knowledge/latin.md").write_bytes(b"\xff")
    house.put("project:knowledge/zero.md", "a\0b")
    (house.project / ".ai/knowledge/folder.md").mkdir()
    os.mkfifo(house.project / ".ai/knowledge/pipe.md")
    (house.project / ".ai/knowledge/gone.md").symlink_to("nowhere.md")
    for name, why in {
        "big": "is larger than",
        "latin": "not UTF-8",
        "zero": "binary",
        "folder": "not a regular file",
        "pipe": "not a regular file",
        "gone": "cannot be read",
    }.items():
        with pytest.raises(Unreadable, match=why):
            house.spaces.find("knowledge", name)


def test_pipelines_and_playbooks_are_items_of_the_project(house: House) -> None:
    (house.project / "pipelines").mkdir()
    (house.project / "pipelines" / "p.yaml").write_text("pipeline: tally\nsteps:\n  - transform: {value: ctx}\n")
    (house.project / "playbooks" / "sub").mkdir(parents=True)
    (house.project / "playbooks" / "sub" / "plan.playbook.md").write_text("# Plan\n")
    (house.project / "top.playbook.md").write_text("# Top\n")
    found = [house.spaces.find("pipeline", "tally"), house.spaces.find("playbook", "sub/plan")]
    found += [house.spaces.find("playbook", "plan"), house.spaces.find("playbook", "top")]
    assert [one.id for one in found if one] == ["tally", "sub/plan", "sub/plan", "top"]
    assert house.spaces.find("pipeline", "tally", "user") is None
    assert house.spaces.find("playbook", "none") is None
    assert [entry.id for entry in house.spaces.entries("playbook")] == ["sub/plan", "top"]


def test_playbooks_of_one_name(house: House) -> None:
    for path in ("x.playbook.md", "playbooks/x.playbook.md", "playbooks/a/y.playbook.md", "playbooks/b/y.playbook.md"):
        (house.project / path).parent.mkdir(parents=True, exist_ok=True)
        (house.project / path).write_text("# T\n")
    (house.project / "playbooks" / "link.playbook.md").symlink_to("/etc/passwd")
    (house.project / "playbooks" / ".h.playbook.md").write_text("# T\n")
    playbooks = load_playbooks(house.settings)
    assert list(playbooks.paths) == ["a/y", "b/y"]
    assert playbooks.problems == (
        "the playbook x is in x.playbook.md and in playbooks/x.playbook.md: rename one of them",
    )
    with pytest.raises(CannotStart, match="y means several playbooks: a/y, b/y"):
        playbooks.find("y")


def test_search_is_ordered_and_deterministic(house: House) -> None:
    house.put("project:knowledge/a/deploy.md", "# Anything\n")
    house.put("project:knowledge/b/deployment_rules.md", "# Rules\n")
    house.put("project:knowledge/deploy/zoo.md", "# Animals\n")
    house.put("project:knowledge/c/notes.md", "# How to deploy\n")
    house.put("user:knowledge/c/log.md", "# Log\n\nWe deploy on Monday.\n")
    house.put("user:knowledge/a/deploy.md", "# Hidden by the project's\n")
    house.put("user:knowledge/c/zzz.md", "# Other\n")
    house.put("user:knowledge/c/bad.md").write_bytes(b"deploy \xff")
    hits = search(house.spaces, "Deploy!", SearchScope.of("knowledge"))
    assert [(hit.item.id, hit.item.space, hit.score) for hit in hits] == [
        ("a/deploy", "project", 1.0),
        ("b/deployment_rules", "project", 0.8),
        ("deploy/zoo", "project", 0.6),
        ("c/notes", "project", 0.5),
        ("c/log", "user", 0.2),
    ]
    assert hits == search(house.spaces, "Deploy!", SearchScope.of("knowledge"))
    assert [hit.item.id for hit in search(house.spaces, "deploy", SearchScope.of("knowledge.c.*"))] == [
        "c/notes",
        "c/log",
    ]
    assert [hit.item.id for hit in search(house.spaces, "deploy", SearchScope.of("knowledge"), "user")] == [
        "a/deploy",
        "c/log",
    ]
    assert len(search(house.spaces, "deploy", SearchScope.of("knowledge"), limit=2)) == 2
    every = search(house.spaces, "*", SearchScope.of("knowledge"), limit=None)
    assert len(every) == 8 and {hit.score for hit in every} == {0.0}

    def only_a(entry: Entry) -> bool:
        return entry.id.startswith("a/")

    assert [hit.item.id for hit in search(house.spaces, "deploy", SearchScope.of("knowledge"), may=only_a)] == [
        "a/deploy"
    ]


@pytest.mark.parametrize("scope", ["", "widget", "know", "all"])
def test_a_scope_names_a_type(scope: str) -> None:
    with pytest.raises(QuireError, match="scope must name an item_type"):
        SearchScope.of(scope)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# Title\n\n<description>Does\n  it</description>", "Does it"),
        ('```yaml\nname: k\ntitle: "T x"\n```\n# Other', "T x"),
        ("intro\n# Heading\n", "Heading"),
        ("nothing", ""),
    ],
)
def test_summary(house: House, text: str, line: str) -> None:
    house.put("project:knowledge/k.md", text)
    item = house.spaces.find("knowledge", "k")
    assert item and summary(item) == line

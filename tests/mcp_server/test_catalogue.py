"""Which documents become tools, under which names, with which inputs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.given import given
from tests.mcp_server.serving import GREET, TOPIC, write

from quire.library.item_tools.fetch import SearchScope, search
from quire.library.items import Spaces
from quire.mcp_server.catalogue import Catalogue, tool_name
from quire.workspace.configuration import load_settings
from quire.workspace.locate import find_workspace
from quire.workspace.settings import Settings

SEVERAL = "pipeline: one\nsteps:\n  - transform: {value: '1'}\n---\n" + GREET.lstrip()


def settings_of(folder: Path) -> Settings:
    return load_settings(find_workspace(folder), {"QUIRE_HOME": str(folder / "home")})


def catalogue(folder: Path, *named: Path, report: list[str] | None = None) -> Catalogue:
    said = [] if report is None else report
    return Catalogue(settings_of(folder), named, said.append)


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("pipeline", "greet", "pipeline__greet"),
        ("pipeline", "file.greet", "pipeline__file__greet"),
        ("pipeline", "my file.a-b", "pipeline__my_file__a-b"),
        ("playbook", "ünder", "playbook___nder"),
    ],
)
def test_names_of_tools(kind: str, name: str, expected: str) -> None:
    assert tool_name(kind, name) == expected


def test_long_names_are_cut_and_stay_different() -> None:
    names = {tool_name("pipeline", "x" * 60 + end) for end in ("a", "b")}
    assert len(names) == 2 and all(len(name) == 64 for name in names)


def test_a_pipeline_has_the_inputs_that_it_reads(folder: Path) -> None:
    offered = catalogue(folder).load().tools["pipeline__greet"]
    assert offered.description == "Greets somebody."
    assert offered.required == ("name",)
    assert offered.schema["required"] == ["name"]
    assert list(offered.schema["properties"]) == ["name", "mark"]  # type: ignore[arg-type]
    assert offered.schema["additionalProperties"] is True


DECLARED = """\
schema: Person
fields: {name: {type: string, max_length: 9}}
---
pipeline: letter
dialect: quire
input:
  to: {type: ref, schema: Person, description: Who gets it.}
  tone: {type: enum, values: [warm, dry], default: dry}
steps:
  - transform: {value: "[to.name, tone]"}
"""


def test_a_pipeline_has_the_inputs_that_it_declares(folder: Path) -> None:
    write(folder, letter=DECLARED)
    offered = catalogue(folder).load().tools["pipeline__letter"]
    assert offered.required == ("to",)
    assert offered.schema == {
        "type": "object",
        "properties": {
            "to": {"$ref": "#/$defs/Person", "description": "Who gets it."},
            "tone": {"type": "string", "enum": ["warm", "dry"], "default": "dry"},
        },
        "additionalProperties": False,
        "required": ["to"],
        "$defs": {
            "Person": {
                "type": "object",
                "properties": {"name": {"type": "string", "maxLength": 9}},
                "required": ["name"],
            }
        },
    }


def test_a_playbook_has_the_inputs_that_it_declares(folder: Path) -> None:
    given({"playbooks/topic.playbook.md": TOPIC}, folder)
    listing = catalogue(folder).load()
    assert [name for name in listing.tools if name.startswith("playbook")] == ["playbook__topic"]
    offered = listing.tools["playbook__topic"]
    assert (offered.title, offered.description) == ("Topic", "Talks about it.")
    assert offered.schema == {
        "type": "object",
        "properties": {
            "topic": {"type": "string", "description": "what about"},
            "length": {"type": "number", "default": 3},
        },
        "additionalProperties": False,
        "required": ["topic"],
    }


def test_the_playbooks_are_those_that_have_a_name_everywhere_else(folder: Path) -> None:
    (folder / "playbooks" / "sub").mkdir(parents=True)
    for path in ("top", "two", "playbooks/topic", "playbooks/two", "playbooks/sub/topic", "playbooks/.hidden"):
        (folder / f"{path}.playbook.md").write_text(TOPIC)
    given({"sub/deep.playbook.md": TOPIC}, folder)
    (folder / "link.playbook.md").symlink_to(folder / "sub" / "deep.playbook.md")
    found = catalogue(folder, folder / "playbooks" / "sub" / "topic.playbook.md")
    listing = found.load()
    tools = {name: one.document.name for name, one in listing.tools.items() if name.startswith("playbook")}
    spaces = Spaces(settings_of(folder))
    entries = {tool_name("playbook", one.id): str(one.path) for one in spaces.entries("playbook")}
    hits = {hit.item.id for hit in search(spaces, "", SearchScope.of("playbook"))}
    assert set(tools) == {"playbook__sub_topic", "playbook__top", "playbook__topic"}
    assert tools == entries
    assert hits == {"sub/topic", "top", "topic"}
    (problem,) = listing.problems
    assert problem == "the playbook two is in two.playbook.md and in playbooks/two.playbook.md: rename one of them"
    before = found.stamp()
    (folder / "new.playbook.md").write_text(TOPIC)
    assert found.stamp() != before


def test_documents_that_the_user_named(folder: Path) -> None:
    named = [folder / "other.playbook.md", folder / "more.yaml", folder / "pipelines" / "greet.yaml"]
    named[0].write_text(TOPIC)
    named[1].write_text(GREET.replace("pipeline: greet", "pipeline: more"))
    listing = catalogue(folder, *named).load()
    assert list(listing.tools) == ["pipeline__approve", "pipeline__greet", "playbook__other", "pipeline__more"]
    assert listing.problems == ()


def test_several_pipelines_of_a_file_and_a_name_that_is_taken(folder: Path) -> None:
    write(folder, both=SEVERAL)
    (folder / "x.yaml").write_text(GREET)
    listing = catalogue(folder, folder / "x.yaml").load()
    assert {"pipeline__both__one", "pipeline__both__greet", "pipeline__greet"} <= set(listing.tools)
    (problem,) = listing.problems
    assert "x.yaml" in problem and "pipeline__greet is the tool of" in problem


def test_a_broken_file_is_told_once_and_left_out(folder: Path) -> None:
    write(folder, broken="pipeline: [")
    reports: list[str] = []
    found = catalogue(folder, report=reports)
    assert set(found.load().tools) == {"pipeline__approve", "pipeline__greet"}
    found.load()
    (report,) = reports
    assert "broken.yaml" in report
    write(folder, broken=GREET.replace("pipeline: greet", "pipeline: mended"))
    assert "pipeline__mended" in found.load().tools
    write(folder, broken="pipeline: [")
    found.load()
    assert len(reports) == 2


def test_the_stamp_changes_with_the_files(folder: Path) -> None:
    found = catalogue(folder)
    stamps = [found.stamp()]
    write(folder, new=GREET)
    stamps.append(found.stamp())
    os.utime(folder / "pipelines" / "new.yaml", ns=(1, 1))
    stamps.append(found.stamp())
    (folder / "pipelines" / "new.yaml").unlink()
    stamps.append(found.stamp())
    assert stamps[0] == stamps[3] == found.stamp()
    assert len(set(stamps)) == 3

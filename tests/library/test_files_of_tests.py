"""Tests, snapshots, recordings and rubrics lie beside documents, and are never taken for documents themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.given import given

from quire.errors import CannotStart
from quire.library.collect import collect, document_at, would_be_document
from quire.library.document import load
from quire.library.items import Spaces
from quire.library.listing import listed_documents
from quire.library.lookup import near_file
from quire.library.registered import in_folder, load_registry
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace
from quire.workspace.settings import Settings

PIPELINE = "pipeline: p\ndescription: x\nsteps:\n  - transform: {value: '1'}\n"
TEST = "cases:\n  - {name: a, expect: {output: 1}}\n"
# They look like pipelines and knowledge on purpose.
KEPT = {"x.test.yaml": TEST, "x.test.snap.yaml": PIPELINE, "x.cassette.yaml": PIPELINE, "x.judge.yaml": PIPELINE}


@pytest.fixture
def folder(workspace: Path) -> Path:
    for place in ("", "pipelines", ".ai/knowledge", ".ai/directives"):
        given(KEPT, workspace / place)
    return given({"pipelines/p.yaml": PIPELINE}, workspace)


def settings_of(folder: Path) -> Settings:
    return load_settings(Workspace(folder, folder / "quire.toml"))


def test_a_search_finds_documents_and_on_request_tests(folder: Path) -> None:
    assert [one.path.name for one in collect(["."])[0]] == ["p.yaml"]
    found = [one.path.as_posix() for one in collect(["."], tests=True)[0]]
    assert found == [
        "x.test.yaml",
        ".ai/directives/x.test.yaml",
        ".ai/knowledge/x.test.yaml",
        "pipelines/p.yaml",
        "pipelines/x.test.yaml",
    ]
    assert [one.path.name for one in collect(["pipelines/*.yaml"], tests=True)[0]] == ["p.yaml", "x.test.yaml"]
    assert [one.path.name for one in collect(["pipelines/*.yaml"])[0]] == ["p.yaml"]


def test_the_registry_has_the_pipeline_alone(folder: Path) -> None:
    registry = load_registry(settings_of(folder))
    assert (list(registry.pipelines), registry.problems) == (["p"], ())
    assert in_folder(folder / "pipelines" / "p.yaml", folder)
    assert not in_folder(folder / "pipelines" / "x.test.yaml", folder)


def test_they_are_not_knowledge(folder: Path) -> None:
    spaces = Spaces(settings_of(folder))
    assert spaces.entries("knowledge", "project") == []
    assert spaces.find("knowledge", "x.test") is None and spaces.find("knowledge", "x.judge") is None


def test_they_are_not_listed(folder: Path) -> None:
    assert [one.name for one in listed_documents(settings_of(folder)) if one.space == "project"] == ["p"]


@pytest.mark.parametrize("name", KEPT)
def test_they_are_not_documents_of_a_server(folder: Path, name: str) -> None:
    assert document_at(folder, name) is None and document_at(folder, f"pipelines/{name}") is None
    assert not would_be_document(folder / name, PIPELINE)


def test_they_do_not_run(folder: Path) -> None:
    with pytest.raises(CannotStart, match=r"x\.test\.yaml is a test: quire test x\.test\.yaml"):
        load("x.test.yaml")
    with pytest.raises(CannotStart, match=r"x\.cassette\.yaml belongs to a test"):
        load("x.cassette.yaml")


def test_a_missing_document_is_still_suggested(folder: Path) -> None:
    (folder / "x.playbook.md").write_text("# T\n\n## STEP 1: A\n\nx\n")
    assert near_file(Path("x.md")) == "x.playbook.md"

"""One library answers which document a name means, for callers, checks and people (U1): as the files are now, or as
they were when a snapshot was taken."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.directives import directive as directive_text
from tests.signed import SignedWorkspace

from quire.errors import Refused
from quire.formats.resolver import CallTarget
from quire.library.callees import Callees
from quire.library.check import DocumentCheck
from quire.library.directives import Directives
from quire.library.library import Library
from quire.source import Source

NOW = datetime(2026, 1, 2, tzinfo=UTC)
PIPELINE = "pipeline: {name}\nsteps:\n- transform: {{value: ctx.n}}\n"
CALLING = "pipeline: {name}\nsteps:\n- call: {{pipeline: {callee}}}\n"
PLAYBOOK = "# T\n\n## INPUTS\n\n- `word` (string)\n\n## STEP 1: A\n\nSay {{{{word}}}}.\n"


def directive(name: str, extends: str = "") -> str:
    attribute = f' extends="{extends}"' if extends else ""
    inputs = "<inputs><input name='who' required='true'>Whom</input></inputs>"
    return directive_text(name, "<fetch><knowledge>*</knowledge></fetch>", more=inputs, extends=attribute)


class House(SignedWorkspace):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "work")
        self.library = Library(self.settings)

    def callees(self) -> Callees:
        directives = Directives(self.library, self.environ)
        return Callees(self.library, lambda name: directives.gathering(one_model=True).called(name))


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path)
    house.write("pipelines/one.yaml", PIPELINE.format(name="one"))
    house.write("playbooks/two.playbook.md", PLAYBOOK.format())
    house.write(".ai/directives/demo/three.md", directive("three"), sign=True)
    return house


@pytest.mark.parametrize(
    ("name", "format", "required"),
    [("one", "pipeline", ("n",)), ("two", "playbook", ("word",)), ("three", "directive", ("who",))],
)
def test_callers_checks_and_people_mean_the_same_document(
    house: House, name: str, format: str, required: tuple[str, ...]
) -> None:
    found, callee, called = (
        house.library.find(name),
        house.callees().find(name),
        house.library.snapshot().document(name),
    )
    (entry,) = house.library.meanings(name)
    assert found and callee and called
    assert (found.format, callee.plan.format, called.format, entry.type) == (format,) * 4
    assert (found.id, called.required) == (entry.id, required)
    assert found.source.text == callee.source.text
    missing = (house.library.find("none"), house.callees().find("none"), house.library.snapshot().document("none"))
    assert missing == (None, None, None)


def test_a_pipeline_comes_before_a_playbook_and_that_before_a_directive(house: House) -> None:
    house.write("one.playbook.md", PLAYBOOK.format())
    house.write("playbooks/three.playbook.md", PLAYBOOK.format())
    kinds = [found.format for name in ("one", "three") if (found := house.library.find(name))]
    callees = [callee.plan.format for name in ("one", "three") if (callee := house.callees().find(name))]
    assert kinds == callees == ["pipeline", "playbook"]
    assert {entry.type for entry in house.library.meanings("one")} == {"pipeline", "playbook"}
    found = house.library.find("three", ("directive",))
    assert found and found.id == "demo/three"


def test_a_held_library_sees_every_change_and_a_snapshot_none(house: House) -> None:
    snapshot = house.library.snapshot()
    assert snapshot.document("one") and snapshot.plans().keys() == {"one"}
    house.write("pipelines/one.yaml", PIPELINE.format(name="uno"))
    assert snapshot.find("one") and not snapshot.find("uno")
    assert house.library.find("uno") and not house.library.find("one")


@pytest.mark.parametrize("text", ["", "<!-- changed -->\n"], ids=["the same text without a key", "another text"])
def test_a_parse_that_is_remembered_is_not_trust(house: House, text: str) -> None:
    """The text was read and verified in this process; then the file or the keys change."""
    file = house.folder / ".ai/directives/demo/three.md"
    assert house.callees().find("three")
    if text:
        file.write_text(file.read_text() + text)
    else:
        for key in (house.settings.user / "keys").iterdir():
            key.unlink()
    with pytest.raises(Refused):
        house.callees().find("three")


def test_a_link_is_refused_by_a_run_and_by_a_check(house: House) -> None:
    """The link would put one signed file in the place of another."""
    (house.folder / ".ai/directives/demo/link.md").symlink_to("three.md")
    with pytest.raises(Refused, match="demo/link is a link to demo/three; put a file of its own there, and sign it"):
        house.callees().find("demo/link")
    file = house.write(".ai/directives/demo/child.md", directive("child", "demo/link"))
    messages = [one.message for one in DocumentCheck().of(Source.of(file.read_text(), str(file)))]
    assert "the directive demo/link is a link to demo/three; put a file of its own there" in messages


def test_circles_are_found_with_one_graph_for_all_files(house: House) -> None:
    house.write("pipelines/a.yaml", CALLING.format(name="a", callee="b"))
    file = house.write("b.playbook.md", "# B\n\n## STEP 1: A\n\n@tool(quire, a)\n")
    snapshot = house.library.snapshot()
    for path in (file, house.folder / "pipelines/a.yaml"):
        source = Source.of(path.read_text(), str(path))
        own, other = ("b", "a") if path is file else ("a", "b")
        (circle,) = snapshot.circles(source, [CallTarget(other)], own if own == "a" else "")
        assert str(circle) == f"{own} can reach itself: {own} → {other} → {own}"

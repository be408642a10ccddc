"""Signatures of items: what is used, what is refused and what is only said, in both modes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.directives import directive as directive_text
from tests.signed import SignedWorkspace

from quire.engine.interpreter.thread.compose import compose
from quire.errors import BadDocument, Refused
from quire.library.items import ItemType
from quire.library.verify import VerifiedItems
from quire.workspace.settings import TrustSettings

KNOWLEDGE = "```yaml\nname: k\ntitle: T\nentry_type: reference\nversion: 1.0.0\n```\n\nBODY\n"
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def directive(name: str, extends: str = "") -> str:
    attribute = f' extends="{extends}"' if extends else ""
    context = "<context><system>demo/k</system></context>"
    return directive_text(name, "<fetch><knowledge>*</knowledge></fetch>", meta=context, extends=attribute)


class House(SignedWorkspace):
    def put(self, path: str, text: str, *, sign: bool = True) -> Path:
        return self.write(path, text, sign=sign)

    def items(self, **trust: object) -> VerifiedItems:
        return VerifiedItems.of(replace(self.settings, trust=replace(TrustSettings(), **trust)))


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "project")


CASES: list[tuple[ItemType, str, str, str]] = [
    ("knowledge", "demo/k", ".ai/knowledge/demo/k.md", KNOWLEDGE),
    ("directive", "demo/d", ".ai/directives/demo/d.md", directive("d")),
]


@pytest.mark.parametrize(("item_type", "item_id", "path", "text"), CASES)
def test_signed_unsigned_modified(house: House, item_type: ItemType, item_id: str, path: str, text: str) -> None:
    file = house.put(path, text)
    found = house.items().find(item_type, item_id)
    assert found and found.verdict.ok and found.verdict.key_id == house.key.key_id
    for changed, outcome, why in ((text, "unsigned", "unsigned"), (file.read_text() + "!", "modified", "modified")):
        file.write_text(changed)
        with pytest.raises(Refused, match=rf"{item_id} (is|was) {why}.*quire sign .*\.md"):
            house.items().find(item_type, item_id)
        warned = house.items(mode="warn")
        for _ in range(2):
            used = warned.find(item_type, item_id)
            assert used and used.verdict.outcome == outcome
        assert len(warned.warnings) == 1 and why in warned.warnings[0]


def test_a_signed_file_under_another_id_is_refused(house: House) -> None:
    file = house.put(".ai/knowledge/demo/k.md", KNOWLEDGE)
    house.put(".ai/knowledge/other/k.md", file.read_text(), sign=False)
    with pytest.raises(Refused, match="wrong place"):
        house.items().find("knowledge", "other/k")


def test_documents_are_verified_where_they_are_signed_or_asked_for(house: House) -> None:
    text = "# P\n\n## STEP 1: A\n\nDo it.\n"
    file = house.put("p.playbook.md", text, sign=False)
    assert house.items().find("playbook", "p")
    with pytest.raises(Refused, match="unsigned"):
        house.items(documents=True).find("playbook", "p")
    house.put("p.playbook.md", text)
    found = house.items(documents=True).find("playbook", "p")
    assert found and found.verdict.ok
    file.write_text(file.read_text() + "More.\n")
    with pytest.raises(Refused, match="modified"):
        house.items().find("playbook", "p")


def test_the_library_reads_what_is_verified(house: House) -> None:
    house.put(".ai/knowledge/demo/k.md", KNOWLEDGE)
    house.put(".ai/directives/demo/d.md", directive("d", "rye/agent/core/base"))
    library = house.items()
    assert library.knowledge("demo/k") == "BODY"
    assert library.knowledge("demo/none") is None and library.directive("demo/none") is None
    composed = compose("demo/d", library, {})
    assert composed.system.endswith("BODY") and composed.chain == ("demo/d", "rye/agent/core/base")
    house.put(".ai/knowledge/demo/k.md", KNOWLEDGE + "changed", sign=False)
    with pytest.raises(Refused, match="demo/k is unsigned"):
        compose("demo/d", house.items(), {})


def test_what_cannot_be_read_says_where(house: House) -> None:
    house.put(".ai/directives/demo/d.md", "# T\n\n```xml\n<directive>\n```\n", sign=False)
    house.put(".ai/knowledge/demo/k.md", "---\nname: k\n---\n", sign=False)
    library = house.items(mode="warn")
    with pytest.raises(BadDocument, match=r"the directive demo/d cannot be read: line \d+"):
        library.directive("demo/d")
    with pytest.raises(BadDocument, match=r"the knowledge demo/k cannot be read: line 1: .*frontmatter"):
        library.knowledge("demo/k")

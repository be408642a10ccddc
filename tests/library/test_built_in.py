"""The space that comes with Quire: what is in it, that it would pass our own checks, and that its hashes are right."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.engine.interpreter.thread.compose import compose
from quire.library import items as built_in
from quire.library.items import Item, ItemType, Spaces
from quire.library.verify import VerifiedItems, as_signable
from quire.source import Source, normalise
from quire.trust.sign_file import issues
from quire.trust.signature_line import digest_of
from quire.trust.trusted_keys import TrustedKeys
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace

IDS: list[tuple[ItemType, str]] = [
    ("directive", "rye/agent/core/base"),
    ("directive", "rye/core/create_directive"),
    ("directive", "rye/core/create_threaded_directive"),
    ("knowledge", "rye/agent/core/Behavior"),
    ("knowledge", "rye/agent/core/Identity"),
]


@pytest.fixture
def items(tmp_path: Path) -> VerifiedItems:
    settings = load_settings(Workspace(tmp_path), {"QUIRE_HOME": str(tmp_path / "user")})
    return VerifiedItems(Spaces(settings), TrustedKeys(), "require")


def test_hashes() -> None:
    due = {
        file.relative_to(built_in.BUILT_IN_FOLDER).as_posix(): digest_of(normalise(file.read_text(encoding="utf-8")))
        for file in sorted(built_in.BUILT_IN_FOLDER.rglob("*.*"))
    }
    assert due == built_in.HASHES, "a built-in item was changed: these are the hashes that are due"


@pytest.mark.parametrize(("item_type", "item_id"), IDS)
def test_items_are_there_trusted_and_valid(items: VerifiedItems, item_type: ItemType, item_id: str) -> None:
    found = items.find(item_type, item_id)
    assert found and found.verdict.ok and found.item.space == "system"
    file = as_signable(found.item, Path("/nowhere"))
    assert issues(file, Source.of(found.item.text, item_id)) == []


def test_nothing_else_is_there(items: VerifiedItems) -> None:
    there = [(entry.type, entry.id) for kind in ("directive", "knowledge") for entry in items.spaces.entries(kind)]
    assert there == IDS


def test_a_changed_one_is_refused(items: VerifiedItems) -> None:
    found = items.spaces.find("knowledge", "rye/agent/core/Identity")
    assert found
    changed = Item(found.id, found.type, found.space, found.path, found.text + "More.\n", found.stored)
    assert items.verdict(changed).outcome == "modified"
    elsewhere = Item(found.id, found.type, found.space, Path("/tmp/x.md"), found.text, found.stored)
    assert items.verdict(elsewhere).outcome == "modified"


def test_base_composes(items: VerifiedItems) -> None:
    composed = compose("rye/agent/core/base", items, {})
    assert "carries out one written document" in composed.system and "Begin with the first step" in composed.system
    assert composed.warnings == ()
    assert all("write" not in one.capability and "bash" not in one.capability for one in composed.capabilities)

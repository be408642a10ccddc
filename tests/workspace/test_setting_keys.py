"""The table of settings: the same in the docs, and the same keys that the readers know."""

from __future__ import annotations

from pathlib import Path

from tests.docs.pages import text_of
from tests.docs.settings_page import PAGE, settings_page

from quire.workspace.configuration import problems_in
from quire.workspace.locate import Workspace
from quire.workspace.setting_keys import SETTING_KEYS, below, key_at, tables, takes_names


def test_the_docs_have_the_same_table() -> None:
    assert text_of(PAGE) == settings_page(), "python -m tests.docs.settings_page"


def test_every_key_is_read(tmp_path: Path) -> None:
    """A key that no reader takes is reported as unknown, whatever its value is."""
    for one in SETTING_KEYS:
        *path, key = (part.lower() if part.isupper() else part for part in one.parts)
        text = f"[{'.'.join(path)}]\n{key} = true\n"
        problems = problems_in(tmp_path / "quire.toml", text, Workspace(tmp_path), tmp_path / "home")
        assert not any("is not a setting" in problem for problem in problems), (one.key, problems)


def test_every_table_that_is_read_is_listed(tmp_path: Path) -> None:
    (told,) = problems_in(tmp_path / "quire.toml", "x = 1\n", Workspace(tmp_path), tmp_path)
    known = told.partition("known are: ")[2].split(", ")
    assert set(tables()) >= set(known)
    for name in set(known) - {"assume", "http", "servers", "agents", "playbooks", "triggers", "webhooks"}:
        problems = problems_in(tmp_path / "quire.toml", f"[{name}]\nxyzzy = 1\n", Workspace(tmp_path), tmp_path)
        listed = next(one for one in problems if "is not a setting" in one).partition("known are: ")[2].split(", ")
        assert set(below((name,))) == set(listed), name


def test_names_that_the_user_chooses_are_part_of_the_path() -> None:
    found = key_at(("agents", "reviewer", "model"))
    assert found is not None and found.key == "agents.NAME.model"
    assert takes_names(("agents",)) and not takes_names(("runs",))
    assert "model" in below(("models", "tiers", "low"))
    assert key_at(("agents", "reviewer", "modle")) is None

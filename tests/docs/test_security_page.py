"""The page about security names the test of every attack: each of them exists."""

from __future__ import annotations

import re

import pytest
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "internals/security.md").read_text(encoding="utf-8")
CELLS = [line.rstrip(" |").rpartition("|")[2].strip() for line in PAGE.splitlines() if line.startswith("| ")]
NAMED = [name for cell in CELLS for name in re.findall(r"`([\w./:]*test[\w./:]*)`", cell)]


def test_there_are_many() -> None:
    assert len(NAMED) > 35


@pytest.mark.parametrize("named", sorted(set(NAMED)))
def test_the_test_of_an_attack_exists(named: str) -> None:
    place, _, function = named.partition("::")
    if place.startswith("::") or not place:
        pytest.fail(f"{named} says no file")
    if place.startswith("test_") and not place.endswith(".py"):
        place, function = "", place
    path = ROOT / place if "/" in place else ROOT / "tests" / "security" / place
    assert path.exists(), f"{named}: there is no {path}"
    if function:
        files = [path] if path.is_file() else sorted(path.glob("test_*.py"))
        assert any(re.search(rf"^(async )?def {function}\(", file.read_text(), re.MULTILINE) for file in files), named

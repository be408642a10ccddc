"""The page's modules of others are those of VENDOR.toml, byte for byte, and come with their licences."""

from __future__ import annotations

import gzip
import re
import shutil
from pathlib import Path

import pytest
from tests.vendor.manifest import FOLDERS, PAGE, ROOT, bundles, problems, read

FIRST_PAGE = ("preact.js", "hooks.js", "htm.js", "signals.js", "signals-core.js")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_files_are_those_of_the_list(folder: Path) -> None:
    assert problems(folder) == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_package_has_its_licence(folder: Path) -> None:
    without = [package.name for package in read(folder) if not any("LICENSE" in file.name for file in package.files)]
    assert without == []


def test_a_changed_a_missing_and_a_foreign_file_are_seen(tmp_path: Path) -> None:
    folder = shutil.copytree(PAGE / "vendor", tmp_path / "vendor")
    (folder / "htm.js").write_text("export default 1")
    (folder / "hooks.js").unlink()
    (folder / "more.js").write_text("")
    assert problems(folder) == [
        "hooks.js is missing",
        "more.js is not in VENDOR.toml",
        "htm.js differs from VENDOR.toml",
    ]


def test_modules_of_the_first_page_are_small() -> None:
    files = [(PAGE / "vendor" / name).read_bytes() for name in FIRST_PAGE]
    assert sum(len(gzip.compress(data, 9)) for data in files) < 12_000


def test_the_editor_is_one_small_file_of_listed_packages() -> None:
    (bundle,) = bundles(PAGE / "vendor")
    packed = gzip.compress((PAGE / "vendor" / bundle.name).read_bytes(), 9)
    assert len(packed) <= 115_000
    imported = set(re.findall(r'from "([^"]+)"', (ROOT / bundle.entry).read_text()))
    parts = {package.name for package in read(PAGE / "vendor") if package.bundled}
    assert imported and imported <= parts
    assert {package.licence for package in read(PAGE / "vendor") if package.bundled} == {"MIT"}

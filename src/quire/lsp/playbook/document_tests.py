"""The test files beside a playbook."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from quire.formats import TEST_SUFFIX

if TYPE_CHECKING:
    from quire.formats.test.syntax import TestFile
    from quire.lsp.views import View

_DOCUMENTS = (".playbook.md", ".md")


def own_test(path: str) -> str:
    """Return the path of the test that belongs to a playbook by its name."""
    ending = next((one for one in _DOCUMENTS if path.endswith(one)), "")
    return path.removesuffix(ending) + TEST_SUFFIX


def tests_of(view: View) -> Iterator[tuple[View, TestFile]]:
    """Yield the test files beside a playbook that are about it. Those with errors are left out."""
    folder, own = Path(view.path).parent, own_test(view.path)
    for name in _names(folder):
        path = str(folder / name)
        other = view.folder.view(path) if name.endswith(TEST_SUFFIX) else None
        file: TestFile | None = other.reading.file if other is not None and other.format == "test" else None
        if other is None or file is None:
            continue
        if os.path.normpath(folder / file.document.text) == view.path if file.document else path == own:
            yield other, file


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return []

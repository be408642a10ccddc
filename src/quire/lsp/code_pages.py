"""The address of the page about a code, for editors that open it when the code is clicked.

The page comes with the package (`docs/codes.md`, in a wheel `quire/codes.md`), so it is there without a network and
says what this version means. It is looked for and read when the first finding is written.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from quire.lsp.desk import uri_of

_PACKAGE = Path(__file__).parent.parent
PLACES = (_PACKAGE / "codes.md", _PACKAGE.parent.parent / "docs" / "codes.md")
"""The page of an installed package, and that of a checkout which is installed as it is."""
_HEADING = re.compile(r"^### ([A-Z]+\d+) ", re.MULTILINE)


def code_address(code: str) -> str:
    """Return the address of a code on the page; empty if the page or the code is missing. The place is a line, because
    editors show the text of a file, where the anchors of headings mean nothing."""
    page, lines = _page()
    return f"{page}#L{lines[code]}" if code in lines else ""


@lru_cache(maxsize=1)
def _page() -> tuple[str, dict[str, int]]:
    """Return the address of the page and the line of each code."""
    for place in PLACES:
        try:
            text = place.read_text(encoding="utf-8")
        except OSError:
            continue
        lines: dict[str, int] = {}
        line, at = 1, 0
        for found in _HEADING.finditer(text):
            line += text.count("\n", at, found.start())
            at = found.start()
            lines[found[1]] = line
        return uri_of(str(place)), lines
    return "", {}

"""The text of a step, put together from what is left when directives and branches are taken out."""

from __future__ import annotations

from collections.abc import Sequence


def content(text: str, pieces: Sequence[tuple[int, int]], tidy: bool) -> str:
    """Lines without the space at their ends; blank lines around a line that was taken out become one.

    `tidy` says that no line of the text ends in a blank or a tab.
    """
    if len(pieces) == 1:
        start, end = pieces[0]
        return (text[start:end] if tidy else _tidied(text[start:end])).strip()
    kept: list[str] = []
    blank = False
    for start, end in pieces:
        piece = text[start:end]
        if not tidy:
            piece = _tidied(piece)
        body = piece.strip("\n")
        if not body:
            blank = blank or piece != ""
            continue
        if kept:
            kept.append("\n\n" if blank or piece[0] == "\n" else "\n")
        kept.append(body)
        blank = piece.endswith("\n\n")
    return "".join(kept).strip()


def _tidied(text: str) -> str:
    return "\n".join([line.rstrip(" \t") for line in text.split("\n")])

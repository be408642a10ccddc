"""The text of a step, put together from what is left when directives and branches are taken out."""

from __future__ import annotations

from collections.abc import Sequence


def content(text: str, pieces: Sequence[tuple[int, int]]) -> str:
    """Lines without the space at their ends; blank lines around a line that was taken out become one."""
    if len(pieces) == 1:
        start, end = pieces[0]
        piece = text[start:end]
        return (_tidied(piece) if " \n" in piece or "\t" in piece else piece).strip()
    kept: list[str] = []
    blank = False
    for start, end in pieces:
        piece = _tidied(text[start:end])
        body = piece.strip("\n")
        if not body:
            blank = True
            continue
        if kept:
            kept.append("\n\n" if blank or piece[0] == "\n" else "\n")
        kept.append(body)
        blank = piece.endswith("\n\n")
    return "".join(kept).strip()


def _tidied(text: str) -> str:
    return "\n".join([line.rstrip(" \t") for line in text.split("\n")])

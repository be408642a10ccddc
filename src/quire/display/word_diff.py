"""Lines that show how a text changed, by words.

Changed words are coloured, or marked `[-old-]{+new+}` where there are no colours. Lines without a change are folded,
apart from one on each side, and so is the unchanged middle of a long line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

import click

from quire.display.visible import visible
from quire.text_diff import Piece, word_pieces

LINES_AROUND = 1
"""Unchanged lines shown on each side of a change."""
MOST_LINES = 40
_AROUND = 60
"""Unchanged characters shown on each side of a change in its line."""
_LONGEST = 400
"""A longer changed piece of one line is cut."""


_Line = list[Piece]


def word_diff(old: str, new: str, *, colour: bool = False, most: int = MOST_LINES) -> list[str]:
    """Return the lines that show the difference, safe for a terminal; none if the texts are the same."""
    if old == new:
        return []
    units = list(_folded(_lines(word_pieces(old, new))))
    cut = units if len(units) <= most else units[: most - 1]
    shown = [_fold(unit) if isinstance(unit, int) else _shown(unit, colour) for unit in cut]
    more = len(units) - len(cut)
    return [*shown, *([f"… {more:,} more lines"] if more else [])]


def _lines(pieces: Sequence[Piece]) -> list[_Line]:
    """Break pieces into lines. A line end that is only in one of the texts breaks the shown line too, and is shown as a
    sign where it stands alone."""
    lines: list[_Line] = [[]]
    for piece in pieces:
        *ended, rest = piece.text.split("\n")
        for text in ended:
            if text or piece.kind != "same":
                lines[-1].append(Piece(piece.kind, text or "↵"))
            lines.append([])
        if rest:
            lines[-1].append(Piece(piece.kind, rest))
    return lines if lines[-1] else lines[:-1]


def _folded(lines: Sequence[_Line]) -> Iterator[_Line | int]:
    """Yield the lines near a change, and the number of lines folded between them."""
    changed = [any(piece.kind != "same" for piece in line) for line in lines]
    skipped = 0
    for at, line in enumerate(lines):
        if any(changed[max(0, at - LINES_AROUND) : at + LINES_AROUND + 1]):
            if skipped == 1:  # folding one line saves none
                yield lines[at - 1]
            elif skipped:
                yield skipped
            skipped = 0
            yield line
        else:
            skipped += 1
    if skipped == 1:
        yield lines[-1]
    elif skipped:
        yield skipped


def _fold(count: int) -> str:
    return f"… {count:,} unchanged lines"


def _shown(line: _Line, colour: bool) -> str:
    return "".join(_marked_up(line, colour)).rstrip(" ")


def _marked_up(pieces: _Line, colour: bool) -> Iterator[str]:
    for at, piece in enumerate(pieces):
        match piece.kind:
            case "same":
                yield _visible(_middle_folded(piece.text, at > 0, at + 1 < len(pieces)))
            case "gone" | "new":
                yield _marked(piece, colour)
            case _:
                assert_never(piece.kind)


def _marked(piece: Piece, colour: bool) -> str:
    text = _visible(_cut(piece.text))
    if not colour:
        return f"[-{text}-]" if piece.kind == "gone" else f"{{+{text}+}}"
    tint = "red" if piece.kind == "gone" else "green"
    # The colour of the letters does not show on spaces.
    return click.style(text, fg=tint) if text.strip() else click.style(text, bg=tint)


def _middle_folded(text: str, changed_before: bool, changed_after: bool) -> str:
    kept_before, kept_after = (_AROUND if changed_before else 0), (_AROUND if changed_after else 0)
    if not changed_before and not changed_after:
        kept_before = 2 * _AROUND
    if len(text) <= kept_before + kept_after + _AROUND // 2:
        return text
    return f"{text[:kept_before]} … {text[len(text) - kept_after :]}" if kept_after else f"{text[:kept_before]} …"


def _cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]} … ({len(text) - _LONGEST:,} more characters)"


def _visible(text: str) -> str:
    return "\t".join(visible(part) for part in text.split("\t"))

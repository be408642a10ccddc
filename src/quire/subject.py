"""The subject of a run: the inputs that tell it from other runs of its document, in one line.

It is made when a run starts, from its inputs and those of earlier runs, and is stored with the run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from quire.wording import cut_line

if TYPE_CHECKING:
    from quire.values import Value

EARLIER = 20
"""The number of earlier runs that are compared."""
LONGEST = 90
MOST_PARTS = 3
_LONGEST_PART = 60
_LOOKED_AT = 2000
"""Characters of a text in which its first line is looked for."""
_TEXT, _NUMBER, _LIST, _MAP, _FLAG = range(5)


def subject_of(inputs: Value, title: str, created_at: float, earlier: Sequence[Mapping[str, Value]] = ()) -> str:
    """Return the subject of a run; the title and the local time for one without inputs that say something.

    Inputs that differ from those of an earlier run come first, then texts, numbers, lists and maps.
    """
    ranked: list[tuple[bool, int, str]] = []
    for name, value in inputs.items() if isinstance(inputs, Mapping) else ():
        if part := next(_parts(name, value), None):
            rank, text = part
            same = all(name in others and others[name] == value for others in earlier)
            ranked.append((same, rank, text))
    chosen = [text for _, _, text in sorted(ranked, key=lambda part: part[:2])][:MOST_PARTS]
    if not chosen:
        return cut_line(
            f"{first_line(title) or 'Run'} · {time.strftime('%Y-%m-%d %H:%M', time.localtime(created_at))}", LONGEST
        )
    if len(chosen) > 1:
        chosen = [cut_line(text, _LONGEST_PART) for text in chosen]
    return cut_line(" · ".join(dict.fromkeys(chosen)), LONGEST)


def _parts(name: str, value: Value) -> Iterator[tuple[int, str]]:
    """Yield the rank and the text of an input; nothing for an empty one."""
    words = first_line(name.replace("_", " "))
    match value:
        case bool():
            yield _FLAG, words if value else f"not {words}"
        case str():
            if (line := first_line(value)) and not line.startswith("[redacted:"):
                yield _TEXT, line
        case int() | float():
            yield _NUMBER, f"{words} {value}"
        case [str() as text] if line := first_line(text):
            yield _LIST, line
        case list() | tuple():
            yield _LIST, f"{len(value):,} {words}"
        case Mapping():
            texts = (first_line(text) for text in value.values() if isinstance(text, str))
            yield from ((_MAP, text) for text in texts if text)


def first_line(text: str) -> str:
    """Return the first line that is not blank, without the signs of a Markdown heading and repeated spaces."""
    lines = text[:_LOOKED_AT].strip().splitlines()
    return " ".join(lines[0].lstrip("# ").split()) if lines else ""

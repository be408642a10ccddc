"""Ids for the lines of a text, so that an edit can say which lines it means without repeating them.

An id depends on what the line says, which of its equals it is, and how many of those there are: it stays the same
while other lines change, and is no longer there once its own line, or the number of its equals, has changed. So an
edit by an old id is refused instead of hitting the wrong line.
"""

from __future__ import annotations

import difflib
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from quire.errors import ToolFailed
from quire.values import Value

DIGITS = 6
MAX_DIFF = 4000


def split(text: str) -> list[str]:
    """The lines with their ends. Only a line feed ends one."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def line_ids(lines: Sequence[str]) -> list[str]:
    """One for each line, no two the same."""
    bare = [line.rstrip("\r\n") for line in lines]
    totals, seen = Counter(bare), Counter[str]()
    taken: set[str] = set()
    ids = []
    for text in bare:
        seen[text] += 1
        attempt = 0
        while (found := _id(text, seen[text], totals[text], attempt)) in taken:
            attempt += 1
        taken.add(found)
        ids.append(found)
    return ids


def marked(lines: Sequence[str], ids: Sequence[str]) -> str:
    return "".join(f"[LID:{one}] {line}" for one, line in zip(ids, lines, strict=True))


def edited(text: str, changes: Sequence[Mapping[str, Value]], path: str) -> tuple[str, int]:
    """The text with all changes made, and how many lines they replaced. Raises `ToolFailed`."""
    lines = split(text)
    numbers = {one: number for number, one in enumerate(line_ids(lines))}
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    ranges: list[tuple[int, int, str]] = []
    for change in changes:
        first, last = (_number(numbers, change, name, path) for name in ("start_line_id", "end_line_id"))
        if last < first:
            raise ToolFailed(f"{path}: the lines of a change are given from the last to the first", kind="edit")
        ranges.append((first, last, str(change["new_content"])))
    ranges.sort(key=lambda one: one[0])
    for (_, before, _), (after, _, _) in pairwise(ranges):
        if after <= before:
            raise ToolFailed(f"{path}: two changes speak of the same line", kind="edit")
    for first, last, content in reversed(ranges):
        ended = last + 1 < len(lines) or lines[last].endswith("\n")
        lines[first : last + 1] = [_content(content, end, ended)]
    return "".join(lines), sum(last - first + 1 for first, last, _ in ranges)


def difference(before: str, after: str, path: str, redact: Callable[[str], str] = lambda text: text) -> str:
    """What changed, as people read it; cut where it grows long, after secrets are taken out."""
    lines = difflib.unified_diff(split(before), split(after), path, path, n=2)
    text = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
    text = redact(text)
    return text if len(text) <= MAX_DIFF else f"{text[:MAX_DIFF]}…\n"


def _id(text: str, place: int, total: int, attempt: int) -> str:
    data = f"{place}/{total}/{attempt}/{text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2s(data).hexdigest()[:DIGITS]


def _number(numbers: Mapping[str, int], change: Mapping[str, Value], name: str, path: str) -> int:
    given = change.get("line_id", change.get(name))
    if given is None:
        raise ToolFailed(
            f"{path}: a change needs line_id, or start_line_id and end_line_id, and new_content", kind="arguments"
        )
    one = str(given).strip().removeprefix("[").removesuffix("]").removeprefix("LID:")
    if one not in numbers:
        raise ToolFailed(
            f"{path} has no line {one[:40]} (any more); read the file again with line_ids: true", kind="edit"
        )
    return numbers[one]


def _content(content: str, end: str, ended: bool) -> str:
    """New text with the file's own line ends; an empty one takes the lines away."""
    if not content:
        return ""
    text = content.replace("\r\n", "\n").removesuffix("\n").replace("\n", end)
    return text + end if ended else text

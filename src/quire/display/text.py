"""Text for a terminal: make untrusted characters visible, format numbers, wrap lines, align columns, render Markdown.

Text of a model, a document or a tool is never sent to a terminal unchanged: an escape sequence could move the cursor,
change the window's title or hide other text. Files and pipes get the output itself.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

import click

from quire.display.visible import in_encoding, width
from quire.display.visible import visible as shown
from quire.patterns import late_pattern
from quire.plan.vocabulary import JOINT
from quire.wording import cut_line, pluralize

if TYPE_CHECKING:
    from quire.engine.progress import FanView


_TURN = late_pattern(r"(?:^|.* )turn \d+")
_PLAIN_WORD = late_pattern(r"[\w@%+=:,./-]+")
_WORDS = late_pattern(r"\s*\S+\s*|\s+")
_ARGUMENT = r"""(?:--?[\w-]+(?:=\S+)?|\[[^\]]*\]|[A-Z]+\b\S*|'[^']*'|"[^"]*"|last\b|[^\s;,)]*[\d/._=…][^\s;,)]*)"""
_UNITS = late_pattern(
    r"\(quire [^)]+\)\S*|\(?(?:`[^`]+`"
    rf"|quire(?: (?:trust|runs|model|keys|help|docs|new))?(?: [a-z]+)?(?: {_ARGUMENT})*"
    r"|--[\w-]+ [^\s;,)]*[\d/._:=][^\s;,)]*"
    r"|(?:uv tool|uv pip|pipx|\S+ -m pip) install .*|uvx --with .*)\S*|\S+"
)
"""Matches a word, or a whole command: with the words that look like its arguments, or in backticks."""
_EDGE = late_pattern(r"(?:(.+) )?(start|end)")


def place(label: str) -> str:
    """Name a place for a sentence: `step 3`, `step 3 › 1`, `turn 3`, `the start`, `the start of step 3`."""
    above, joint, last = label.rpartition(JOINT)
    if edge := _EDGE.fullmatch(last):
        around = one_line(edge[1]) if edge[1] else place(above) if above else ""
        return f"the {edge[2]}" + (f" of {around}" if around else "")
    if joint:
        return f"{place(above)}{JOINT}{one_line(last)}"
    return one_line(label) if _TURN.fullmatch(label) else f"step {one_line(label)}"


def visible(text: str) -> str:
    """Make every control character of a text visible; line breaks and tabs are kept."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("\t".join(shown(part) for part in line.split("\t")) for line in lines)


def one_line(text: str) -> str:
    """Make a text visible on a single line, for titles and messages."""
    return shown(" ".join(text.split()))


def pasted(text: str) -> str:
    """Quote a name for a shell if needed. Letters of any script are not quoted, unlike in `shlex.quote`.

    Characters that a terminal would obey or hide are written as escapes, which bash and zsh read.
    """
    if _PLAIN_WORD.fullmatch(text):
        return text
    if shown(text) == text:
        import shlex

        return shlex.quote(text)
    return f"$'{''.join(_escaped(character) for character in text)}'"


def _escaped(character: str) -> str:
    if shown(character) == character:
        return f"\\{character}" if character in "'\\" else character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def prompt_lines(prompt: str) -> list[str]:
    """Return the lines of a question, made safe for a terminal."""
    return visible(prompt.strip()).split("\n")


def wrapped(text: str, indent: str = "") -> str:
    """Make a text visible and break its long lines between words, to the width of the terminal on stderr.

    The width is measured in terminal columns, not in characters: some characters take two columns, and a character
    that the terminal does not have is written as an escape.
    """
    columns = terminal_columns() - width(indent)
    return wrapped_to(text, columns, indent, getattr(sys.stderr, "encoding", None) or "utf-8")


def terminal_columns(stream: TextIO | None = None) -> int:
    """Return the width of the terminal behind a stream, else behind stdout or stderr; 80 where none has a width."""
    for each in (stream, sys.__stdout__, sys.__stderr__):
        with suppress(OSError, ValueError, AttributeError):
            columns = int(os.environ.get("COLUMNS") or os.get_terminal_size(each.fileno()).columns)  # type: ignore[union-attr]
            return max(20, columns or 80)
    return 80


def wrapped_to(text: str, columns: int, indent: str = "", encoding: str = "utf-8") -> str:
    """Make a text visible with lines of at most `columns` columns."""
    lines: list[str] = []
    for line in in_encoding(visible(text), encoding).expandtabs(8).split("\n"):
        lines += (indent + row for row in _rows(line, columns))
    return "\n".join(line.rstrip() for line in lines)


def _rows(line: str, columns: int) -> list[str]:
    """Break a line after spaces where there are any."""
    if width(line) <= columns:
        return [line]
    rows, taken = [""], 0
    for word in _WORDS.findall(line):
        needed = width(word.rstrip())
        if taken and taken + needed > columns:
            rows.append("")
            taken = 0
        if needed <= columns:
            rows[-1] += word
            taken += width(word)
            continue
        for character in word:
            # A character without width stays with the one before; spaces at the end of a row are invisible.
            if taken + width(character) > columns and not character.isspace():
                rows.append("")
                taken = 0
            rows[-1] += character
            taken += width(character)
    return rows


def folded(text: str, columns: int, further: str = "  ") -> str:
    """Break the lines of a message between words, and never in a path or a command, which people copy. `further` is
    put before each further row of a line."""
    rows: list[str] = []
    for line in text.split("\n"):
        if width(line) <= columns:
            rows.append(line)
            continue
        indent = line[: len(line) - len(line.lstrip())]
        row, is_new = indent, True
        for unit in _UNITS.findall(line):
            if not is_new and width(row) + 1 + width(unit) > columns:
                rows.append(row)
                row, is_new = indent + further, True
            row, is_new = (row + unit if is_new else f"{row} {unit}"), False
        rows.append(row)
    return "\n".join(rows)


def duration(seconds: float) -> str:
    """Format seconds: `0.4s`, `12.3s`, `3m 20s`, `2h 05m`."""
    if seconds < 59.95:
        return f"{max(0.0, seconds):.1f}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02}m"


def fan_words(fan: FanView) -> str:
    """Summarise parallel items: `20 items`, `19 of 20, 1 failed`; a loop: `3 rounds`, `2 of at most 9 rounds`."""
    if fan.rounds:
        most = "" if fan.done == fan.total else f"of at most {fan.total} "
        return f"{fan.done} {most}{pluralize('round', fan.total)}"
    if not fan.failed and fan.done == fan.total:
        return f"{fan.total} {pluralize('item', fan.total)}"
    return f"{fan.done} of {fan.total}" + (f", {fan.failed} failed" if fan.failed else "")


def tokens(count: int) -> str:
    return f"{count:,} {pluralize('token', count)}"


def money(cost: float | None) -> str:
    """Format a cost; empty if it was free, "cost unknown" for None."""
    if cost is None:
        return "cost unknown"
    return f"${cost:.4f}" if cost else ""


def numbers(seconds: float, count: int, cost: float | None) -> str:
    """Return time, tokens and cost, leaving out those that are zero."""
    parts = [duration(seconds) if seconds >= 0.05 else "", tokens(count) if count else "", money(cost)]
    return " · ".join(part for part in parts if part)


_MARKDOWN = late_pattern(r"^(?:#{1,6} \S|[-*] \S|\d{1,3}\. \S|```|> \S|\|.*\|[ \t]*$)|\*\*\S[^*\n]*\*\*", re.MULTILINE)
"""Matches texts without a type that are shown as Markdown: with a heading, list, fence, quotation, table or bold
words."""
LONGEST = 200_000
"""Longest text that is rendered; a longer one is shown unrendered, because rendering takes time."""


def rendered(text: str, artifact_type: str, columns: int | None = None) -> str:
    """Render the text for a terminal, with its control characters made visible."""
    columns = columns or terminal_columns()
    if artifact_type not in ("", "markdown", "text") or len(text) > LONGEST:
        return visible(text)
    if artifact_type == "markdown" or (artifact_type == "" and _MARKDOWN.search(text)):
        return markdown_text(visible(text), columns)
    return wrapped_to(text, columns)


def markdown_text(text: str, columns: int) -> str:
    """Render Markdown whose control characters are visible already. HTML in it is text: rich would leave it out."""
    from markdown_it import MarkdownIt
    from rich.console import Console
    from rich.markdown import Markdown

    page = Markdown(text, hyperlinks=False)
    page.parsed = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).parse(text)
    written = io.StringIO()
    console = Console(file=written, width=columns, force_terminal=True, no_color=bool(os.environ.get("NO_COLOR")))
    console.print(page)
    return "\n".join(line.rstrip() for line in written.getvalue().split("\n"))


Style = Callable[[str, int], str]
"""Gets a finished cell and the number of its column; returns the same text, optionally with colour codes around it."""

GAP = "  "
_STATUS_COLOURS = {
    "completed": "green",
    "running": "cyan",
    "pending": "cyan",
    "done": "green",
    "waits": "yellow",
    "stopped": "yellow",
    "awaiting_input": "yellow",
    "answered": "yellow",
    "paused": "yellow",
    "interrupted": "yellow",
    "cancelled": "yellow",
    "failed": "red",
    "expired": "red",
}


def table(
    rows: Sequence[Sequence[str]],
    header: Sequence[str] = (),
    *,
    right: frozenset[int] = frozenset(),
    style: Style = lambda cell, column: cell,
) -> list[str]:
    """Return one line per row, with cells made safe for a terminal.

    `right` are the columns to align right. Padding is computed before `style` adds codes of zero width.
    """
    cells = [
        [" " * (len(cell) - len(cell.lstrip(" "))) + one_line(cell) for cell in row]
        for row in ([header] if header else []) + list(rows)
    ]
    if not cells:
        return []
    widths = [max(width(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = []
    for row in cells:
        padded = []
        for column, cell in enumerate(row):
            room = " " * (widths[column] - width(cell))
            padded.append(room + style(cell, column) if column in right else style(cell, column) + room)
        lines.append(GAP.join(padded).rstrip())
    return lines


def fitting_table(layouts: Iterable[list[str]], columns: int | None) -> list[str]:
    """Return the first table whose lines fit into `columns`, else the last one."""
    lines: list[str] = []
    for lines in layouts:
        if columns is None or all(width(click.unstyle(line)) <= columns for line in lines):
            break
    return lines


def status_colour(status: str) -> str | None:
    return _STATUS_COLOURS.get(status)


def age(seconds: float) -> str:
    """Format a time span in one unit: `12s`, `5m`, `3h`, `8d`."""
    seconds = max(0.0, seconds)
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def tokens_in_and_out(input_tokens: int, output_tokens: int) -> str:
    """Return `in+out`; empty if there were none."""
    return f"{input_tokens:,}+{output_tokens:,}" if input_tokens or output_tokens else ""


def short(text: str, limit: int) -> str:
    """Put a text on one line and cut it after `limit` characters."""
    return cut_line(one_line(text), limit)


def section(title: str, lines: Sequence[str]) -> Iterator[str]:
    """Yield a paragraph; nothing if it has no lines."""
    if lines:
        yield from paragraph(title, lines)


def paragraph(title: str, lines: Sequence[str]) -> Iterator[str]:
    yield ""
    yield click.style(one_line(title), bold=True)
    yield from (f"  {line}" if line else "" for line in lines)

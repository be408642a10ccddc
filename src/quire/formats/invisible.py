"""Report characters that a reader of a document does not see but a model does, in every document that is checked.

Instructions can be hidden in tag characters, zero width characters and variation selectors; bidirectional controls show
a text in another order than it has. Characters that a script or an emoji needs are not reported: joiners in Persian, in
the scripts of India and in emoji, direction marks in lines of Arabic or Hebrew, one variation selector after a
character that has variants. A byte order mark at the start of a file has already been removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from quire.diagnostics import Code, Diagnostic, Severity, make
from quire.source import Source, Span
from quire.wording import first_of

INVISIBLE = make(
    Severity.WARNING,
    "TX101",
    "invisible-letter",
    "The text holds invisible characters: tag characters, zero width characters, bidirectional controls, variation\n"
    "selectors without a character that has variants, soft hyphens, control characters and the like.",
    "People who read or sign the document do not see them, and a model reads them like any other text, so they can\n"
    "hide instructions or show a text in another order. Characters that a language or an emoji needs are not reported.",
    "Summarise the notes.\\u{E0073}\\u{E0065}\\u{E006E}\\u{E0064}",
    "Summarise the notes.",
)
NOT_TEXT = make(
    Severity.ERROR,
    "TX001",
    "not-utf-8",
    "The file is not text in UTF-8.",
    "Documents are UTF-8. Most editors can save a file again in that encoding.",
    "caf\\xe9",
    "caf\\xc3\\xa9",
)
MOST = 20
"""Maximum number of places of one document that are reported individually."""

NAMED = 3
"""Maximum number of characters of one place that are named."""

_CONTROL = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f"
_IGNORED = (
    "\x80-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)


def codes() -> tuple[Code, ...]:
    return (NOT_TEXT, INVISIBLE)


def added(source: Source, found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the findings about a document together with those about invisible characters, in the order of the text."""
    hidden = list(invisible(source))
    return tuple(sorted((*found, *hidden), key=lambda finding: finding.span.start)) if hidden else tuple(found)


def invisible(source: Source) -> Iterator[Diagnostic]:
    """Yield a finding for each place; after `MOST` of them one finding that counts the rest."""
    text = source.text
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return
    # Compiled only when needed: most documents are plain.
    pattern = re.compile(f"[{_CONTROL}{_IGNORED}]+")
    hidden = [match.span() for match in pattern.finditer(text) if not _is_needed(text, *match.span())]
    for start, end in hidden[:MOST]:
        yield _finding(text[start:end], Span(start, end))
    if len(hidden) > MOST:
        start, end = hidden[MOST]
        message = f"invisible characters in {len(hidden) - MOST:,} more places"
        yield Diagnostic(INVISIBLE, message, Span(start, end), "the next of them")


def _is_needed(text: str, start: int, end: int) -> bool:
    from quire.formats.needed_letters import is_needed  # its patterns take long to compile

    return is_needed(text, start, end)


def _finding(letters: str, span: Span) -> Diagnostic:
    import unicodedata

    names = [
        f"U+{ord(letter):04X} {unicodedata.name(letter, 'a control character')}" for letter in dict.fromkeys(letters)
    ]
    shown = ", ".join(first_of(names, NAMED))
    counted = "an invisible character" if len(letters) == 1 else f"{len(letters):,} invisible characters"
    spelled = "".join(chr(ord(letter) - 0xE0000) for letter in letters if 0xE0020 <= ord(letter) <= 0xE007E)
    label = f"spells: {spelled[:80]}" if spelled else "here"
    help = "a person who reads the document does not see this, and a model does: take it out"
    return Diagnostic(INVISIBLE, f"{counted}: {shown}", span, label, help)
